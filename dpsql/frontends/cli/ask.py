"""Commands that ask: query, explain, run, plan, repl, watch; export writes randomised rows, and estimate reads them."""

from __future__ import annotations

import math
import re
import shutil
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsql.errors.custodian_log import registering, unexpected
from dpsql.errors.exceptions import Error, Exit
from dpsql.frontends.cli import (
    COUNT,
    FILE,
    FOLDER,
    PATH,
    FiniteRange,
    SessionOptions,
    analyst_option,
    exit_status,
    objective_option,
    option,
    policy_option,
    project_option,
    session_options,
)
from dpsql.frontends.files import read_text
from dpsql.frontends.rendering.terminal import (
    Progress,
    notify,
    say,
    say_cells,
    say_json,
    say_line,
    standard_output,
    waiting,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dpsql.frontends.watch import Comparison, Watch
    from dpsql.sql.lexer import Piece


_FORMATS = ("table", "csv", "json", "md", "parquet", "arrow")
_FILE_FORMATS = ("csv", "parquet", "json", "md", "arrow")
_format = option("-f --format", "The format of the output; by default that of --out's ending, or table.", _FORMATS)
_spreadsheet = option("--spreadsheet", "Let no text of a csv be a formula: an apostrophe precedes =, +, - and @.")
_sql = click.argument("sql", required=False)


@click.command()
@session_options
@_format
@option("-o --out", "Write the answer to this file.", FILE)
@option("--bars", "Add columns NAME_low and NAME_high (csv, parquet, arrow).")
@option("--plot picture", "Also draw the answer: .svg, .png or .html.", FILE)
@_spreadsheet
@option("--explain only_explain", "Show plan and price; nothing is charged.")
@option("-v --verbose", "Also show the exact charge and the receipt.")
@_sql
def query(
    *, chosen: SessionOptions, format: str | None, out: Path | None, bars: bool, picture: Path | None, spreadsheet: bool,
    only_explain: bool, verbose: bool, sql: str | None,
) -> None:  # fmt: skip
    """Answer one statement. Without SQL, or with -, read it from standard input."""
    from dpsql.frontends.interruptible import ask
    from dpsql.frontends.rendering.formats import BINARY_FORMATS, say_price, write_binary, write_file, write_text

    if only_explain and (format, out, bars, picture, spreadsheet) != (None, None, False, None, False):
        raise click.UsageError("--explain gives no answer: leave out --format, --out, --bars, --plot and --spreadsheet")
    text, format = _statement(chosen, sql), format or _format_of(out)
    if format in BINARY_FORMATS and out is None and sys.stdout.isatty():
        raise click.UsageError(f"{format} is no text for a terminal: name a file with --out, or redirect the output")
    with chosen.open() as session:
        if only_explain:
            say(session.explain(text).to_text())
            return
        if picture is not None:
            from dpsql.frontends.rendering.plots import check_plot, draw_release, require_drawable

            check_plot(picture)
            require_drawable(session, text)
        release = ask(session, text, waiting=waiting(), advise=partial(say_line, err=True))
        with registering(charged=release.receipt.is_paid, passing=OSError):
            # The price is shown first: it has been charged, even if the answer cannot be written.
            say_price(session, release, verbose=verbose)
            if out is not None:
                write_file(release, out, format, bars, for_spreadsheet=spreadsheet)
            elif format in BINARY_FORMATS:
                write_binary(release.to_arrow(bars=bars), sys.stdout.buffer, format)
            else:
                write_text(release, standard_output(), format, bars, terminal_width(), for_spreadsheet=spreadsheet)
            if picture is not None:
                draw_release(release, picture)


def _format_of(out: Path | None) -> str:
    """Return the format that the ending of a file stands for, or that for a terminal."""
    ending = "" if out is None else out.suffix.lower().removeprefix(".")
    return ending if ending in _FORMATS else "table"


@click.command()
@session_options
@option("-f --format", "The format of the plan.", ("text", "json"), default="text")
@option("-v --verbose", "Also show the noise of each measured number.")
@option("--sql engine_sql", "Also show the engine's SQL of each block (owner only).")
@_sql
def explain(
    *, chosen: SessionOptions, format: str, verbose: bool, engine_sql: bool, sql: str | None,
) -> None:  # fmt: skip
    """Show the price and the expected error of a query. Nothing is charged, and no data are read."""
    from dpsql.frontends.rendering.formats import plan_object

    if engine_sql and chosen.analyst is not None:
        raise click.UsageError("--sql is for the owner: the engine's SQL names what the owner calls the data")
    with chosen.open() as session:
        plan = session.explain(_statement(chosen, sql))
    if format == "json":
        say_json(plan_object(plan))
        return
    say(plan.to_text())
    if verbose:
        say(plan.details())
    for block, text in plan.engine_sql if engine_sql else ():
        say(f"{block}: {text}")


@click.command()
@session_options
@option("--out", "The folder for the results.", FOLDER, required=True)
@option("-f --format", "The format of the results.", _FILE_FORMATS, default="csv")
@option("--dry-run", "Price the whole set and stop; nothing is charged.")
@option("--charge-again", "Ask again what an earlier run charged but lost.")
@option("--keep-going", "Answer the other statements if some are refused.")
@option("--bars", "Add columns NAME_low and NAME_high (csv, parquet, arrow).")
@_spreadsheet
@option("--workload", "Measure tables over the same rows together, as `dpsql plan` shows.")
@objective_option
@option("--report", "Write an .html page with all answers, error bars and prices.", FILE)
@option("--json as_json", "Write the outcome of each statement to standard output as JSON.")
@click.argument("files", nargs=-1, required=True, type=PATH)
def run(
    *, chosen: SessionOptions, out: Path, format: str, dry_run: bool, charge_again: bool,
    keep_going: bool, bars: bool, spreadsheet: bool, workload: bool, objective: str, report: Path | None, as_json: bool,
    files: tuple[Path, ...],
) -> int:  # fmt: skip
    """Answer all statements of SQL files: price them as a whole first, write one result file each. Safe to run again.

    A folder stands for its .sql files. `-- name: NAME` before a statement names its result; `dpsql help run` has more.
    """
    from dpsql.frontends.batch import Batch
    from dpsql.frontends.batch.statements import OBJECTIVES

    scripts = _scripts(chosen, files)
    if report is not None:
        _begin_report(report, out, dry_run, (chosen.policy, *files, *(file for file, _ in scripts)))
    with chosen.open() as session:
        batch = Batch(
            session, scripts, out, format, charge_again=charge_again, keep_going=keep_going, bars=bars,
            for_spreadsheet=spreadsheet,
            keep_notes=report is not None, objective=OBJECTIVES[objective] if workload else None,
        )  # fmt: skip
        status, failure = int(Exit.FAULT), None
        try:
            with Progress() as progress:
                status = batch.price(progress) if dry_run else batch.run(progress)
        except Error as error:
            status, failure = exit_status(error), error
            raise
        except OSError:
            raise  # the output is closed, or cannot be written
        except Exception as error:
            failure = unexpected(error)
            raise failure from error
        finally:
            summary = batch.summary(status, failure, dry_run=dry_run)
            if as_json:
                say_json(summary, indent=1)
            if report is not None:
                from dpsql.frontends.batch.statements import write_report
                from dpsql.frontends.rendering.formats import left_text

                unprotected = [*session.policy.unprotected.values()]
                write_report(report, batch.reports, summary, left_text(session), batch.plan_lines(), unprotected)
    return status


def _begin_report(report: Path, out: Path, dry_run: bool, read: Iterable[Path]) -> None:
    """Prepare the place of a report. Refuse one that is a file which the run reads."""
    from dpsql.frontends.batch.statements import begin_report

    if dry_run:
        raise click.UsageError("--dry-run writes nothing: leave --report out")
    if report.exists() and any(file.exists() and file.samefile(report) for file in read):
        raise click.UsageError(f"{report} is read by this run: name another file with --report")
    if report.parent == out:
        out.mkdir(parents=True, exist_ok=True)  # which the run would do only after its prices
    begin_report(report)


@click.command()
@session_options
@objective_option
@option("--json as_json", "Write the plan as JSON.")
@click.argument("files", nargs=-1, required=True, type=PATH)
def plan(*, chosen: SessionOptions, objective: str, as_json: bool, files: tuple[Path, ...]) -> int:
    """Plan the questions of SQL files together: errors and price one by one and together. Free; no data are read.

    `dpsql run --workload` then answers them in this way. `-- weight: 3` before a statement makes its errors count three times.
    """
    from dpsql.frontends.batch.statements import OBJECTIVES, QuestionPlans, asked_questions

    scripts = _scripts(chosen, files)
    count = 0

    def refused(path: str, sql: str, error: Error) -> None:
        nonlocal count
        count += 1
        notify(f"{path}: {error.text()}")

    def left_out(path: Path, line: int) -> None:
        notify(f"{path}: what follows is not planned, as it may depend on line {line}")

    with chosen.open() as session:
        questions = asked_questions(session, scripts, refused, left_out)
        plans = QuestionPlans(session, questions, OBJECTIVES[objective])
        if as_json:
            say_json(plans.objects(), indent=1)
        else:
            for line in plans.lines():
                say(line)
    return Exit.REFUSAL if count else Exit.DONE


def _scripts(chosen: SessionOptions, paths: tuple[Path, ...]) -> list[tuple[Path, str]]:
    """Return the files with their texts."""
    files = sql_files(paths)
    return list(zip(files, chosen.filled([read_text(file) for file in files]), strict=True))


def sql_files(paths: tuple[Path, ...]) -> list[Path]:
    """Return the files, with each folder replaced by its .sql files in the order of their names. Raises UsageError."""
    files: list[Path] = []
    for path in paths:
        inside = sorted(path.glob("*.sql")) if path.is_dir() else [path]
        if not inside:
            raise click.UsageError(f"the folder {path} has no .sql files")
        files += inside
    stems = [file.stem for file in files]
    for stem in stems:
        if stems.count(stem) > 1:
            raise click.UsageError(f"two files are named {stem}: their results would have the same name")
    return files


@click.command()
@session_options
def repl(*, chosen: SessionOptions) -> int:
    """Answer statements typed at a prompt, or read from standard input one by one."""
    from dpsql.frontends.repl import run_repl

    with chosen.open() as session:
        return run_repl(session, chosen.values)


def terminal_width() -> int | None:
    """Return the width of the terminal in characters, None if the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _statement(chosen: SessionOptions, sql: str | None) -> str:
    if sql is None and sys.stdin.isatty():
        raise click.UsageError('no SQL: dpsql query -p POLICY "SELECT ..."')
    return chosen.filled([sys.stdin.read() if sql in (None, "-") else str(sql)])[0]


# --- a stream of counts or sums against a threshold; only what is above it is paid for --------------------------------


@click.command()
@session_options
@option("--threshold T", "The number with which counts and sums are compared.", required=True)
@option("--hits", "The most runs that may be paid for, in total.", COUNT, default=1)
@option("--name NAME", "The name under which the ledger counts the runs; by default that of the file.")
@option("--values", "Also show how large the sums above the threshold are, with error bars, at no extra price.")
@option("--every SECONDS", "Start the file again after this time, until all runs are over.", FiniteRange(0, 86400))
@option("-f --format", "The format of the output.", ("text", "json"), default="text")
@click.argument("file", type=PATH)
def watch(
    *, chosen: SessionOptions, threshold: str, hits: int, name: str | None, values: bool, every: float | None, format: str,
    file: Path,
) -> int:  # fmt: skip
    """Compare the counts and sums of FILE with a threshold, one after the other, until --hits of them are above it.

    Each statement is one COUNT or one SUM. A run costs --epsilon and makes many comparisons: it is charged when it
    starts, and ends with the first number above the threshold. All statements are checked before anything is charged. If
    the watch is stopped and started again, it pays for another run, but never for more than --hits in total.
    """
    from dpsql.frontends.watch import Watch
    from dpsql.sql.lexer import split_file

    pieces = split_file(chosen.filled([read_text(file)])[0])
    if not pieces:
        raise click.UsageError(f"{file} has no statement")
    with chosen.open() as session:
        named = name or re.sub(r"[^A-Za-z0-9_.-]", "-", file.stem)[:40] or "default"
        watching = Watch(session, threshold, hits, named)
        if not _are_comparable(watching, pieces, file):
            return Exit.REFUSAL
        watching.expect(pieces)
        plan = watching.explain(pieces[0])
        notify(f"a run costs {plan.price}; at most {hits} in all; {plan.notes[-1]}")
        while True:
            for piece in pieces:
                comparison = watching.ask(piece)
                _write_comparison(comparison, piece, f"{file}:{piece.line}", values, format)
                receipt = comparison.release.receipt
                if receipt.charged != "nothing" or not comparison.under_way:
                    for line in (f"charged: {receipt.charged}", *receipt.notices):
                        notify(line)
                if comparison.is_last:
                    return Exit.DONE
            if every is None:
                return Exit.DONE
            time.sleep(every)


def _are_comparable(watching: Watch, pieces: Sequence[Piece], file: Path) -> bool:
    """Return whether all statements can be compared; print each refusal with its place. Nothing is charged."""
    refused = 0
    for piece in pieces:
        try:
            watching.explain(piece)
        except Error as error:
            notify(f"{file}:{piece.line}: {error.text()}")
            refused += 1
    if refused:
        notify(f"{refused} of the statements cannot be compared; nothing was run")
    return not refused


def _write_comparison(comparison: Comparison, piece: Piece, path: str, values: bool, format: str) -> None:
    if format == "json":
        facts = {"place": path, "sql": " ".join(piece.sql.split()), "above": comparison.above}
        parts = {"value": comparison.value, "error": comparison.error} if values else {}
        say_json({**facts, **parts})
        return
    answer = "above" if comparison.above else "below"
    if values and comparison.value is not None and comparison.error is not None:
        digits = max(0, 1 - math.floor(math.log10(comparison.error))) if comparison.error > 0 else 0
        answer += f"  {comparison.value:,.{digits}f} +/- {comparison.error:,.{digits}f}"
    say_cells(answer, path, " ".join(piece.sql.split()))


# --- tables of randomised rows, and what can be estimated from them ---------------------------------------------------


class Epsilon(click.ParamType):  # type: ignore[type-arg]  # click 8.1 knows no parameter of it
    """An exact decimal number above 0."""

    name = "epsilon"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        """Return a number above 0 as a fraction. Raises UsageError for anything else."""
        from dpsql.privacy.loss import exact_number, positive

        if isinstance(value, Fraction):
            return value
        try:
            return positive(exact_number(value))
        except ValueError:
            return self.fail(f"{value!r} is not a number above 0", param, ctx)


@click.command()
@policy_option()
@analyst_option
@project_option
@option("--columns A,B,...", "The columns to write.", required=True)
@option("--epsilon EPSILON", "The epsilon of one row, all its columns together.", Epsilon(), required=True)
@option("--count-epsilon EPSILON", "The epsilon of the number of rows; by default a tenth of --epsilon.", Epsilon())
@option("-o --out", "A new .parquet or .csv file; by default TABLE.parquet.", FILE)
@option("--explain only_explain", "Show price and expected errors; nothing is charged.")
@click.argument("table")
def export(
    *, policy: Path, analyst: str | None, project: str | None, columns: str, epsilon: Fraction,
    count_epsilon: Fraction | None, out: Path | None, only_explain: bool, table: str,
) -> None:  # fmt: skip
    """Write randomised rows of TABLE for people who need rows (local differential privacy).

    Each value is replaced by a random one that depends on it only a little, rows are in random order, and the key of the
    privacy unit is left out. A unit with R rows costs R times --epsilon; the number of rows costs a little more. `dpsql
    estimate` computes counts and averages of the file with error bars, any number of times.
    """
    from dpsql.exports.rows_file import expected_errors
    from dpsql.session.row_export import RowExport

    names = tuple(filter(None, map(str.strip, columns.split(","))))
    with SessionOptions(policy, analyst, project).open() as session:
        planned = RowExport(session, table, names, epsilon, count_epsilon)
        plan = planned.plan
        for name, mechanism, error in expected_errors(plan):
            notify(f"{name}: {mechanism}; {error}")
        if plan.count_noise is not None:
            off = plan.count_noise.half_width(0.95)
            notify(f"number of rows: +/- {off:,.0f} (95 %) by padding rows, or rows left out")
        notify(f"price: {planned.price}, for up to {plan.rows_per_unit} row(s) of one privacy unit")
        if only_explain:
            return
        path = out or Path(f"{plan.table}.parquet")
        receipt = planned.write(path)
    notify(f"{path}: {receipt.rows:,} rows")
    notify(f"charged: {receipt.charged}; receipt {receipt.id}")
    for scope, left in receipt.remaining.items():
        notify(f"remaining ({scope}): {left}")
    notify(f'next: dpsql estimate {path} "SELECT ..., COUNT(*) FROM {plan.table} GROUP BY ..."')


@click.command()
@option(
    "--confidence SHARE",
    "The share of cases in which error bars hold.",
    FiniteRange(0.5, 1, max_open=True),
    default=0.95,
)
@option("-f --format", "The format of the output.", ("table", "csv", "json"), default="table")
@click.argument("file", type=FILE)
@click.argument("sql")
def estimate(*, confidence: float, format: str, file: Path, sql: str) -> None:
    """Estimate counts, sums and means from a FILE of `dpsql export`; free, as the rows are public.

    Estimates are unbiased: COUNT and SUM may be below zero where there are few rows. NAME_low and NAME_high are the ends of
    an error bar.
    """
    from dpsql.exports.estimates import EstimatedValue
    from dpsql.exports.estimates import estimate as estimated
    from dpsql.exports.rows_file import read_rows
    from dpsql.frontends.rendering.formats import write_rows

    answer = estimated(read_rows(file), sql, confidence)
    names: list[str] = []
    rows: list[list[Any]] = [[] for _ in answer.rows]
    for index, name in enumerate(answer.names):
        values = [row[index] for row in answer.rows]
        bars = bool(values) and isinstance(values[0], EstimatedValue)
        names += [name, f"{name}_low", f"{name}_high"] if bars else [name]
        for number, value in enumerate(values):
            rows[number] += map(_rounded, (value.value, value.low, value.high)) if bars else [value]
    write_rows(names, rows, standard_output(), format)


def _rounded(value: float) -> float:
    """Round to six digits: the rest is noise."""
    return float(f"{value:.6g}")
