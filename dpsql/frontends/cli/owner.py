"""Commands of the owner: check, init, demo."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dpsql.errors.exceptions import Exit
from dpsql.frontends.cli.options import FILE, FOLDER, PATH, option, policy_option
from dpsql.frontends.rendering.terminal import say


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
        from dpsql.frontends.cli.init_dialogue import ask_owner

        ask_owner(source, place, unit, answers_file)
        return
    open_places = write_starter(source, place, unit)
    say(f"{place} is written; {open_places} places in it wait for the owner's word (marked with #?).", err=True)
    say(f"next: fill them in, then: dpsql check {place} --create-ledger", err=True)


@click.command()
@click.argument("folder", required=False, default="dpsql-demo", type=FOLDER)
@click.pass_context
def demo(context: click.Context, folder: Path) -> None:
    """Build a real data set with policy and ledger in DIR (dpsql-demo), and ask questions that a hospital would ask."""
    from dpsql.frontends.demo.run import run_demo

    run_demo(folder)
    context.exit(Exit.DONE)
