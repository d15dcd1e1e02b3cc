"""Commands of the owner: check, init, demo, prepare, risk, plot; and help."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpsql.frontends.cli import (
    FILE,
    FOLDER,
    PATH,
    FiniteRange,
    SessionOptions,
    open_owners_ledger,
    option,
    policy_option,
    session_options,
)
from dpsql.frontends.files import read_text, require_replaceable
from dpsql.frontends.rendering.terminal import notify, say, say_json, say_styled
from dpsql.media.text import terminal

if TYPE_CHECKING:
    from dpsql.disclosure import Generalisation, RiskReport
    from dpsql.disclosure.report import Exact
    from dpsql.engine.contribution_index import ContributionIndex
    from dpsql.frontends.admin.answers import Answers
    from dpsql.ledger.ledger import Ledger
    from dpsql.policy import Policy
    from dpsql.session.session import Session


Answered = TypeVar("Answered")


@click.command()
@policy_option(required=False)
@option("--create-ledger", "Create the ledger of a data set that never had one.")
@option("--change-unit", "Keep a ledger that has charges for another privacy unit.")
@option("--second-budget REASON", "Create a ledger although the data set has another one; the reason is recorded.")
@option("--scan", "Read every row, and report where that fails; exact figures, for the owner.")
@click.argument("file", required=False, type=PATH)
def check(policy: Path | None, file: Path | None, **how: Any) -> int:
    """Check a policy, the structure of its data, and its ledger; report all problems at once."""
    from dpsql.frontends.admin.check import check_policy_file

    path = file or policy
    if path is None:
        raise click.UsageError("no policy: dpsql check POLICY")
    findings = check_policy_file(path, **how)
    for line in findings.notes:
        say(line)
    for line in findings.problems:
        notify(line)
    return findings.status


@click.command()
@option(
    "--from source PATH",
    "A DuckDB, Parquet or CSV file, a glob, a folder of them or of lake tables, postgresql://..., or spark://...",
)
@option("--out", "The policy file; by default NAME.yaml.", FILE)
@option("--unit TABLE.COLUMN", "The privacy unit: the column with a person's key, or `row`.")
@option(
    "--answers answers_file",
    "A file with the owner's answers, one `QUESTION: ANSWER` per line; nothing is asked.",
    FILE,
)
@option("--add TABLE", "Ask for one further TABLE of the source, and add it to the policy PATH.")
@option("--starter", "Ask nothing, and mark open questions with #? (the default without a terminal).")
@click.argument("path", required=False)
def init(
    source: str | None, out: Path | None, unit: str | None, answers_file: Path | None, add: str | None, starter: bool,
    path: str | None,
) -> None:  # fmt: skip
    """Write a policy from the structure of a source (never its values) and the owner's answers.

    At a terminal it asks the owner's decisions one by one; Ctrl-C keeps the answers given so far.
    """
    from dpsql.frontends.admin.policy_text import data_set_name, glob_of_files, source_link, write_starter
    from dpsql.frontends.admin.wizard import ask_for_policy, ask_for_table
    from dpsql.policy.reach import is_file, lake_table

    if (source is None) == (path is None):
        raise click.UsageError("name one source: dpsql init PATH, or dpsql init --from PATH")
    named = source or path
    assert named is not None
    origin = named if "://" in named else Path((lake_table(named) or ("", named))[1])
    if add is not None:
        if source is not None or out is not None or unit is not None or starter:
            raise click.UsageError("--add changes a policy that exists: dpsql init --add TABLE POLICY")
        file = Path(named)
        added = _with_answers(lambda answers: ask_for_table(file, add, answers), file, {}, answers_file)
        notify(f"{file} has {'the table' if added else 'no table'} {add}.")
        notify(f"next: dpsql check {file}")
        return
    if starter and answers_file is not None:
        raise click.UsageError("--starter asks nothing, so that --answers has no questions")
    file = out or Path(f"{data_set_name(origin)}.yaml")
    if isinstance(origin, str) and source_link(origin, file) != origin:
        notify("the password stays out of the policy: give it in PGPASSWORD or ~/.pgpass when dpsql runs")
    if (pattern := glob_of_files(origin)) is not None:
        notify(
            f"the files of {origin} have the same columns: if they are one table, stop, and say dpsql init '{pattern}'"
        )
    if isinstance(origin, Path) and origin.is_dir():
        names = sorted(file.name for file in origin.iterdir() if file.is_file())
        if unread := [name for name in names if not is_file(name) and not name.startswith(".")]:
            notify(f"left out, as they are no Parquet or CSV files: {', '.join(unread)}")
    if answers_file is not None or (not starter and sys.stdin.isatty() and sys.stdout.isatty()):
        written = {} if unit is None else {"unit": unit}
        tables = _with_answers(lambda answers: ask_for_policy(origin, file, answers), file, written, answers_file)
        notify(f"\n{file} is written, with {tables} table{'s' if tables > 1 else ''}.")
        notify(f"next: dpsql check {file} --create-ledger")
        return
    open_places = write_starter(origin, file, unit)
    notify(f"{file} is written; {open_places} places in it wait for the owner's word (marked with #?).")
    notify(f"next: fill them in, then: dpsql check {file} --create-ledger")


def _with_answers(
    use: Callable[[Answers], Answered], path: Path, written: dict[str, str], answers_file: Path | None
) -> Answered:
    """Return what `use` makes of answers in a file, or typed. Typed answers are kept in a file next to `path` until then."""
    from dpsql.frontends.admin.answers import Answers, read_answers

    if answers_file is not None:
        written |= read_answers(read_text(answers_file), str(answers_file))
        return use(Answers(written, str(answers_file), notify))
    if not sys.stdin.isatty():
        return use(Answers(written, "no file", notify))
    draft = path.with_suffix(".answers.yaml")
    introduction = [
        "Enter takes the default in brackets. `back` takes the last answer back, `again QUESTION` an earlier one."
        " Ctrl-C stops; answers are kept, and the same command goes on."
    ]
    if draft.exists():
        written = read_answers(read_text(draft), str(draft)) | written
        introduction.insert(0, f"Going on with the answers in {draft}; delete it to begin anew.")

    def show(text: str) -> None:
        """Show a text, in the terminal's width, the first one behind the introduction: a source that is refused needs none."""
        width = shutil.get_terminal_size().columns
        for line in "\n".join((*introduction, text)).split("\n"):
            indent = line[: len(line) - len(line.lstrip())]
            notify(textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))
        introduction.clear()

    try:
        result = use(Answers(written, str(draft), show, _asker(), draft))
    except (KeyboardInterrupt, EOFError):
        if draft.exists():
            notify(f"The answers are kept in {draft}; the same command goes on with them.")
        raise KeyboardInterrupt from None
    draft.unlink(missing_ok=True)
    return result


def _asker() -> Callable[[str, str], str]:
    """Return a function that asks at the terminal: it shows the name of a question and, in brackets, its default."""
    from prompt_toolkit import PromptSession

    session: PromptSession[str] = PromptSession()

    def ask(question: str, default: str) -> str:
        return session.prompt(terminal(f"{question}{f' [{default}]' if default else ''}: "))

    return ask


@click.command()
@click.argument("folder", required=False, default="dpsql-demo", type=FOLDER)
def demo(folder: Path) -> None:
    """Build a real data set with policy and ledger in DIR (dpsql-demo), and ask questions that a hospital would ask."""
    from dpsql.frontends.demo import run_demo

    run_demo(folder)


# --- the contribution index of a policy's protected tables ------------------------------------------------------------


@contextmanager
def open_index(policy: Path) -> Iterator[tuple[Policy, Ledger, ContributionIndex]]:
    """Open the prepared copies of a policy's data, with its ledger."""
    from dpsql.engine.contribution_index import ContributionIndex
    from dpsql.engine.registry import open_engine

    with open_owners_ledger(policy) as (loaded, ledger), closing(open_engine(loaded)) as engine:
        yield loaded, ledger, ContributionIndex(loaded, engine, lambda: ledger.witness.key)


@click.command()
@policy_option()
@option("--copy", "Write the rows even where none is dropped, so that every question takes equal work.")
@option("--memory SIZE", "The most memory to use, e.g. 4GB; the rest goes to disk.")
@option("--jobs N", "The number of threads.", click.IntRange(1, 256))
def prepare(policy: Path, copy: bool, memory: str | None, jobs: int | None) -> None:
    """Prepare the bounded rows of each person, so that queries take about as long as without privacy.

    Run it once for each version of the data; answers stay the same. Safe to stop and to run again. If each row is a
    different person (privacy_unit: row), a copy with bounded columns as integers is written.
    """
    from rich.console import Console
    from rich.progress import Progress

    with (
        open_index(policy) as (loaded, _, index),
        Progress(console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bars,
    ):
        tasks = {name: bars.add_task(name, total=1.0) for name in loaded.tables if loaded.is_protected(name)}

        def report(table: str, activity: str, share: float) -> None:
            bars.update(tasks[table], description=f"{table}: {activity}", completed=share)

        for prepared in index.prepare(copy=copy, memory=memory, jobs=jobs, progress=report):
            notify(f"{prepared.table}: {prepared.state}{f', {prepared.why}' if prepared.why else ''}")
        if count := index.copies_of_other_policies():
            notify(
                f"{count} other prepared copies of this data set stay: other policies may read them, or earlier forms of "
                "this one wrote them; `dpsql erase copies` removes all that are not of this policy"
            )


# --- the documentation at the terminal --------------------------------------------------------------------------------


@click.command()
@click.argument("words", nargs=-1)
@click.pass_context
def help(context: click.Context, words: tuple[str, ...]) -> None:
    """Show a page of the documentation, an error by its slug, or where words stand; without words, the list of pages.

    Markdown when standard output is no terminal.
    """
    from dpsql.frontends.rendering.terminal import drawn_page, help_page, topic_list, topics
    from dpsql.frontends.repl.commands import Screen

    group, name = context.find_root().command, " ".join(words)
    command = group.get_command(context, name) if isinstance(group, click.Group) else None
    if not words:
        say(
            f"{topic_list()}\n`dpsql help TOPIC` shows a page, `dpsql help SLUG` an error, `dpsql help WORDS` finds words, "
            "`dpsql COMMAND --help` shows the options of a command."
        )
    elif command is not None and name not in topics():
        say(command.get_help(click.Context(command, context.parent, name)))
    elif sys.stdout.isatty():
        screen = Screen()
        columns = shutil.get_terminal_size().columns
        screen.styled_page(drawn_page(help_page(name), columns, styled=screen.styled))
    else:
        say_styled(help_page(name))


# --- how easily persons of a table are recognised by their values: for the owner alone --------------------------------

MOST_LISTED = 10
_RISK_WARNING = "These figures are exact and about persons: they are for the data's owner alone, do not pass them on."


@click.command()
@policy_option()
@option("--columns A,B,...", "Columns that others may know about a person (quasi-identifiers).", required=True)
@option("--sensitive C,...", "Columns that nobody should learn about a person.", default="")
@option("--k K", "Find generalisations in which at least K persons are alike.", click.IntRange(min=2))
@option("--leave-out SHARE", "With --k: the share of persons that may be left out.", FiniteRange(0, 1), default=0.0)
@option("-f --format", "The format of the output.", ("text", "json"), default="text")
@click.argument("table")
def risk(
    *, policy: Path, columns: str, sensitive: str, k: int | None, leave_out: float, format: str, table: str
) -> None:  # fmt: skip
    """Show how easily persons of TABLE are recognised by their values, for its owner.

    Shows k-anonymity, l-diversity and t-closeness of the given columns, which columns single persons out and, with --k,
    which coarser values would hide each person among K. Reads the protected rows. The result is not private, so nothing is
    charged and it must not be given to analysts, whose sessions cannot reach this command.
    """
    from dpsql.disclosure import PersonRows, generalisations, measure_risk
    from dpsql.engine.registry import open_engine
    from dpsql.policy import load_policy

    loaded = load_policy(policy)
    quasi, secret = _listed(columns), _listed(sensitive)
    if not quasi:
        raise click.BadParameter("it names no column", param_hint="--columns")
    if both := set(map(str.lower, quasi)) & set(map(str.lower, secret)):
        raise click.BadParameter(f"{min(both)} stands among --columns, too", param_hint="--sensitive")
    with closing(open_engine(loaded)) as engine, PersonRows(loaded, engine, table, (*quasi, *secret)) as rows:
        names = tuple(rows.columns)
        report = measure_risk(rows, names[: len(quasi)], names[len(quasi) :])
        coarser = None if k is None else generalisations(rows, report.columns, k, leave_out)
    if format == "json":
        written = {**asdict(report), "k": report.sizes.smallest, "average_risk": report.sizes.average_risk}
        if coarser is not None:
            written["generalisations"] = [asdict(entry) for entry in coarser]
        say_json(written, indent=1)
    else:
        write_report(report)
        if coarser is not None and k is not None:
            write_generalisations(coarser, k, report.persons)
    for sentence in filter(None, [loaded.unprotected.get(report.table)]):
        notify(sentence)
    notify(_RISK_WARNING)


def _listed(text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated text, each once whatever its case."""
    return tuple({name.lower(): name for name in map(str.strip, text.split(",")) if name}.values())


def write_report(report: RiskReport) -> None:
    sizes, persons = report.sizes, report.persons
    say(f"{report.table}: {persons:,} persons, {report.rows:,} rows, by {', '.join(report.columns)}")
    if report.ownerless:
        say(f"left out: {report.ownerless:,} rows that belong to no person")
    if not persons:
        return
    say(f"\nk-anonymity: {sizes.smallest} (the fewest persons who are alike; {sizes.classes:,} combinations)")
    say(f"found by somebody who knows these columns of everybody: {sizes.average_risk:.2%} of the persons")
    from dpsql.disclosure.report import SIZES
    from dpsql.frontends.rendering.tables import say_table

    def shared(number: int) -> tuple[str, str]:
        return f"{number:,}", f"{number / persons:.1%}"

    labels = [
        str(low) if low == high else f"{low} and more" if high is None else f"{low} to {high}" for low, high in SIZES
    ]
    say_table(
        ("persons alike", "persons", "share"),
        [(label, *shared(sizes.between(*ends))) for label, ends in zip(labels, SIZES, strict=True)],
    )
    if report.diversity:
        say("\nWhat a group of persons who are alike tells of its members")
        say_table(
            ("column", "l (distinct)", "l (entropy)", "t", "persons disclosed", "share"),
            [
                (e.column, str(e.distinct), f"{e.entropy:.2f}", f"{e.closeness:.2f}", *shared(e.disclosed))
                for e in report.diversity
            ],
        )
    singled = report.uniqueness[:MOST_LISTED]
    say("\nColumns that single persons out" + (" (the first)" if len(report.uniqueness) > len(singled) else ""))
    rows = [(", ".join(entry.columns), *shared(entry.persons)) for entry in singled]
    say_table(("columns", "persons alone", "share"), rows)


def write_generalisations(coarser: Sequence[Generalisation], k: int, persons: int) -> None:
    """Write the generalisations, beginning with the one that keeps the most, and the SQL of that one."""
    from dpsql.frontends.rendering.tables import say_table

    if not coarser:
        say(f"\nNo generalisation: there are fewer than {k} persons, or too few may be left out")
        return
    say(f"\nCoarser values with at least {k} persons alike")
    listed = coarser[:MOST_LISTED]
    names = [name for name, _ in listed[0].levels]
    rows = [
        (
            *(level for _, level in entry.levels), f"{entry.classes:,}", f"{entry.left_out / persons:.1%}",
            f"{entry.information:.0%}",
        )
        for entry in listed
    ]  # fmt: skip
    say_table((*names, "combinations", "left out", "information kept"), rows, words=range(len(names)))
    say("The first, as SQL: " + ", ".join(f'{sql} AS "{name}"' for name, sql in listed[0].sql))


# --- pictures of an answer, or of how its error falls with epsilon ----------------------------------------------------

_PICTURE_WARNING = (
    "The picture has exact numbers, which are not private: it is for the data's owner alone, do not pass it on."
)


@click.command()
@session_options
@option("-o --out", "The picture: a .svg, .png, .html or .json file.", FILE, required=True)
@option("--errors", "Draw the expected error against epsilon; nothing is charged.")
@option("--exact", "Also draw the exact numbers, which are not private: for the owner of the data only.")
@click.argument("sql")
def plot(*, chosen: SessionOptions, out: Path, errors: bool, exact: bool, sql: str) -> None:
    """Draw the answer to a question with its error bars (charged as the question is; needs the extra `plot`).

    The answer has up to two columns of keys: the first is the axis, the second the colours. With --errors, draw how the error
    of each number falls with epsilon, for free. With --exact, also draw what the database itself answers to the same text,
    without bounds and noise.
    """
    from dpsql.frontends.interruptible import ask
    from dpsql.frontends.rendering.formats import say_price
    from dpsql.frontends.rendering.plots import (
        check_plot,
        draw_release,
        error_chart,
        release_chart,
        require_drawable,
        write_owners_plot,
        write_plot,
    )

    text = chosen.filled([sys.stdin.read() if sql == "-" else sql])[0]
    if exact and (errors or chosen.analyst):
        raise click.UsageError("--exact is for the data's owner: it goes neither with --analyst nor with --errors")
    check_plot(out)
    if exact:
        require_replaceable(out)
    with chosen.open() as session:
        if errors:
            title = "noise of each measured number against epsilon (as EXPLAIN says, 95 %)"
            write_plot(error_chart(expected_errors(session, text), title), out)
            return
        require_drawable(session, text)
        exact_rows = _exact_rows(session, chosen.policy, text) if exact else None
        release = ask(session, text)
        say_price(session, release)
        if exact_rows is None:
            draw_release(release, out)
            return
    write_owners_plot(release_chart(release, exact=exact_rows), out, charged=release.receipt.is_paid)
    notify(_PICTURE_WARNING)


def _exact_rows(session: Session, policy: Path, sql: str) -> Exact:
    """Return the exact answer of the database to a question, by the values of its keys; it is read before anything is charged."""
    from dpsql.disclosure import plain_answer
    from dpsql.engine.registry import open_engine
    from dpsql.policy import load_policy

    loaded = load_policy(policy)
    keys = [position for position, column in enumerate(session.describe(sql)) if not column.noisy]
    with closing(open_engine(loaded)) as engine:
        return plain_answer(loaded, engine, sql, keys)


def expected_errors(session: Session, sql: str) -> list[tuple[float, str, float]]:
    """Return (epsilon, output, error) of a question, at epsilons up to the most that the policy allows for one question."""
    from dpsql.frontends.rendering.plots import epsilons

    limits = session.policy.per_query
    most = float(limits.max_epsilon or min(session.policy.budget.epsilon, Fraction(10)))
    points = []
    for epsilon in epsilons(max(float(limits.min_epsilon), most / 1000), most):
        session.set_option("epsilon", f"{epsilon:.10f}")
        for output in session.explain(sql).outputs:
            if output.error_95:
                name = f"{output.output}: {output.aggregate}" if output.output else output.aggregate
                points.append((epsilon, name, output.error_95))
    return points
