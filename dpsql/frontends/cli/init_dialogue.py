"""The dialogue of `dpsql init` at a terminal, and its answers from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.frontends.admin.answers import Answers, read_answers
from dpsql.frontends.admin.wizard import ask_for_policy
from dpsql.frontends.files import read_text
from dpsql.frontends.rendering.terminal import say
from dpsql.media.text import terminal

if TYPE_CHECKING:
    from collections.abc import Callable


def ask_owner(source: Path, place: Path, unit: str | None, answers_file: Path | None) -> None:
    """Write a policy to `place` from answers in a file, or typed. Typed answers are kept in a file next to it until it is
    written."""
    written = {} if unit is None else {"unit": unit}
    if answers_file is not None:
        written |= read_answers(read_text(answers_file), str(answers_file))
        tables = ask_for_policy(source, place, Answers(written, str(answers_file), _show))
    else:
        draft = place.with_suffix(".answers.yaml")
        if draft.exists():
            written = read_answers(read_text(draft), str(draft)) | written
            _show(f"Going on with the answers in {draft}; delete it to begin anew.")
        _show("Enter takes the default in brackets. Ctrl-C stops; answers are kept, and the same command goes on.")
        try:
            tables = ask_for_policy(source, place, Answers(written, str(draft), _show, _asker(), draft))
        except (KeyboardInterrupt, EOFError):
            if draft.exists():
                _show(f"The answers are kept in {draft}; the same command goes on with them.")
            raise KeyboardInterrupt from None
        draft.unlink(missing_ok=True)
    _show(f"\n{place} is written, with {tables} table{'s' if tables > 1 else ''}.")
    _show(f"next: dpsql check {place} --create-ledger")


def _show(text: str) -> None:
    say(text, err=True)


def _asker() -> Callable[[str, str], str]:
    """Return a function that asks at the terminal: it shows the name of a question and, in brackets, its default."""
    from prompt_toolkit import PromptSession

    session: PromptSession[str] = PromptSession()

    def ask(question: str, default: str) -> str:
        return session.prompt(terminal(f"{question}{f' [{default}]' if default else ''}: "))

    return ask
