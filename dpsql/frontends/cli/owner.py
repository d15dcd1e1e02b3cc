"""Commands of the owner: check, init, demo."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from dpsql.errors.exceptions import Exit
from dpsql.frontends.cli.options import FILE, FOLDER, PATH, option, policy_option
from dpsql.frontends.files import read_text
from dpsql.frontends.rendering.terminal import say
from dpsql.media.text import terminal


@click.command()
@policy_option(required=False)
@option("--create-ledger", "Create the ledger of a data set that never had one.")
@option("--change-unit", "Keep a ledger that has charges for another privacy unit.")
@option("--second-budget", "Create a ledger although the data set has another one; the reason is recorded.", "REASON")
@option("--scan", "Read every row, and report where that fails; exact figures, for the owner.")
@click.argument("file", required=False, type=PATH)
@click.pass_context
def check(
    context: click.Context,
    policy: Path | None,
    create_ledger: bool,
    change_unit: bool,
    second_budget: str | None,
    scan: bool,
    file: Path | None,
) -> None:
    """Check a policy, the structure of its data, and its ledger; report all problems at once."""
    from dpsql.frontends.admin.check import check_policy_file

    place = file or policy
    if place is None:
        raise click.UsageError("no policy: dpsql check POLICY")
    findings = check_policy_file(
        place, create_ledger=create_ledger, change_unit=change_unit, second_budget=second_budget, scan=scan
    )
    for line in findings.notes:
        say(line)
    for line in findings.problems:
        say(line, err=True)
    context.exit(findings.status)


@click.command()
@option("--from source", "A DuckDB file, a Parquet or CSV file, a glob, or a folder of them.", PATH)
@option("--out", "The policy file; by default NAME.yaml.", FILE)
@option("--unit", "The privacy unit: the column with a person's key, or `row`.", "TABLE.COLUMN")
@option(
    "--answers answers_file",
    "A file with the owner's answers, one `QUESTION: ANSWER` per line; nothing is asked.",
    FILE,
)
@option("--starter", "Ask nothing, and mark open questions with #? (the default without a terminal).")
@click.argument("path", required=False, type=PATH)
def init(
    source: Path | None, out: Path | None, unit: str | None, answers_file: Path | None, starter: bool, path: Path | None
) -> None:
    """Write a policy from the structure of a source (never its values) and the owner's answers.

    At a terminal it asks the owner's decisions one by one; Ctrl-C keeps the answers given so far.
    """
    from dpsql.frontends.admin.starter_policy import data_set_name, write_starter

    if (source is None) == (path is None):
        raise click.UsageError("name one source: dpsql init PATH, or dpsql init --from PATH")
    source = source or path
    assert source is not None
    if starter and answers_file is not None:
        raise click.UsageError("--starter asks nothing, so that --answers has no questions")
    place = out or Path(f"{data_set_name(source)}.yaml")
    if answers_file is not None or (not starter and sys.stdin.isatty() and sys.stdout.isatty()):
        _ask_owner(source, place, unit, answers_file)
        return
    open_places = write_starter(source, place, unit)
    say(f"{place} is written; {open_places} places in it wait for the owner's word (marked with #?).", err=True)
    say(f"next: fill them in, then: dpsql check {place} --create-ledger", err=True)


def _ask_owner(source: Path, place: Path, unit: str | None, answers_file: Path | None) -> None:
    """Write a policy to `place` from answers in a file, or typed. Typed answers are kept in a file next to it until it is
    written."""
    from dpsql.frontends.admin.answers import Answers, read_answers
    from dpsql.frontends.admin.wizard import ask_for_policy

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


@click.command()
@click.argument("folder", required=False, default="dpsql-demo", type=FOLDER)
@click.pass_context
def demo(context: click.Context, folder: Path) -> None:
    """Build a real data set with policy and ledger in DIR (dpsql-demo), and ask questions that a hospital would ask."""
    from dpsql.frontends.demo.run import run_demo

    run_demo(folder)
    context.exit(Exit.DONE)
