"""Answers to the questions of `dpsql init`: from a file, from a draft of an earlier run, or typed; typed ones are on the disk
before the next question."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dpsql.errors.exceptions import did_you_mean, refuse
from dpsql.frontends.admin.policy_text import WrongAnswer
from dpsql.frontends.files import replace_file
from dpsql.policy.yaml_text import Problems, Unreadable, quoted, read_yaml
from dpsql.storage.records import dataclass, field

Meaning = TypeVar("Meaning")
_SIGN_FIRST = re.compile(r"""([^\s#:'"][^:]*|"[^"]*"|'[^']*'):\s+([-?](?:\s.*\S)?|[&*!%@`,].*\S|[&*!%@`,])\s*""")
"""A line of YAML whose value begins with an indicator. Matching a line takes at most time quadratic in its length."""


class Again(Exception):
    """A person takes an answer back: the dialogue begins anew, with all other answers taken as they are."""


def read_answers(text: str, origin: str) -> dict[str, str]:
    """Parse answers, by the name of their question, from YAML: a mapping of texts. Raises InterfaceError init_answers."""
    problems = Problems()
    try:
        tree = read_yaml(text, problems)
    except Unreadable as error:
        raise refuse("init_answers", place=origin, problem=_to_quote(text) or str(error)) from None
    if problems:
        path, sentence = problems.listed()[0]
        raise refuse("init_answers", place=origin, problem=f"{path}: {sentence}")
    if not isinstance(tree, dict) or not all(isinstance(answer, str) for answer in tree.values()):
        raise refuse(
            "init_answers", place=origin, problem="each line is `QUESTION: ANSWER`; quote an answer with brackets"
        )
    return {str(question): str(answer) for question, answer in tree.items()}


def _to_quote(text: str) -> str:
    """Return which line has an answer that YAML reads only in quotes, and how to write it; "" if there is none."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := _SIGN_FIRST.fullmatch(line):
            return f"line {number}: an answer that begins with {match[2][0]} stands in quotes: {match[1]}: {quoted(match[2])}"
    return ""


@dataclass
class Answers:
    """Answers by the name of their question.

    `written`: the answers given in advance; `origin`: the file that they come from, for messages. `ask`: shows a question's name
    with its default and returns the typed text; None if nobody can be asked, so that defaults are taken. `show`: prints a line of
    text. `draft`: the file in which typed answers are kept.
    """

    written: dict[str, str]
    origin: str
    show: Callable[[str], None]
    ask: Callable[[str, str], str] | None = None
    draft: Path | None = None
    taken: dict[str, str] = field(default_factory=dict)
    _remarks: set[str] = field(default_factory=set)

    def tell(self, text: str) -> None:
        """Print a remark between questions, once however often the dialogue begins anew."""
        if text not in self._remarks:
            self._remarks.add(text)
            self.show(text)

    def get(self, question: str, words: str, meaning: Callable[[str], Meaning], default: str | None = None) -> Meaning:
        """Return the meaning of an answer. `words`: the text of the question; `meaning` parses an answer, or raises WrongAnswer.

        An invalid typed answer is asked for again. Raises InterfaceError init_answer for an invalid written one,
        init_unanswered if there is neither an answer nor a default, and Again if a person types `back` or `again QUESTION`.
        """
        text = self.taken.get(question, self.written.get(question, default if self.ask is None else None))
        if text is not None:
            try:
                return self._keep(question, text, meaning)
            except WrongAnswer as error:
                if self.ask is None:
                    raise self._refusal(question, text, error) from None
                self.show(f"{question}: {text}: {error}")
        if self.ask is None:
            raise refuse("init_unanswered", question=question, words=words.strip().partition("\n")[0])
        self.show(words)
        while True:
            text = self.ask(question, default or "").strip() or (default or "")
            try:
                self._take_back(text)
                return self._keep(question, text, meaning)
            except WrongAnswer as error:
                self.show(f"  {error}")

    def _take_back(self, text: str) -> None:
        """Raise Again, with the earlier answer forgotten, if the text is `back` or `again QUESTION`."""
        word, _, named = text.partition(" ")
        if text == "back":
            named = next(reversed(self.taken), "")
            if not named:
                raise WrongAnswer("this is the first question")
        elif word != "again" or not named:
            return
        elif named not in self.taken:
            raise WrongAnswer(f"there is no answer to {named}{did_you_mean(named, self.taken)}")
        self.forget((named,))
        self.written, self.taken = {**self.written, **self.taken}, {}
        raise Again

    def forget(self, questions: tuple[str, ...]) -> None:
        """Drop answers, so that they are asked for again."""
        for question in questions:
            self.written.pop(question, None)
            self.taken.pop(question, None)

    def require_all_taken(self) -> None:
        """Raise InterfaceError init_answer for a written answer to a question that was not asked."""
        for question in self.written:
            if question not in self.taken and self.ask is None:
                error = WrongAnswer(f"there is no such question{did_you_mean(question, self.taken)}")
                raise self._refusal(question, self.written[question], error)

    def _refusal(self, question: str, answer: str, error: WrongAnswer) -> Exception:
        return refuse("init_answer", place=self.origin, question=question, answer=answer[:80], problem=str(error))

    def _keep(self, question: str, text: str, meaning: Callable[[str], Meaning]) -> Meaning:
        result = meaning(text.strip())
        self.taken[question] = text.strip()
        if self.draft is not None:
            answers = {**self.written, **self.taken}
            lines = "".join(f"{quoted(name)}: {quoted(answer)}\n" for name, answer in answers.items())
            replace_file(self.draft, lambda part: part.write_text(lines, encoding="utf-8"))
        return result
