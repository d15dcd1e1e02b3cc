"""`dpsql export` and `dpsql estimate`: tables of randomised rows, and what can be estimated from them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from dpsql.frontends.cli.options import (
    FILE,
    FiniteRange,
    analyst_option,
    open_session_from_options,
    option,
    policy_option,
    project_option,
)
from dpsql.frontends.rendering.terminal import say, standard_output


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
@option("--columns", "The columns to write.", "A,B,...", required=True)
@option("--epsilon", "The epsilon of one row, all its columns together.", Epsilon(), required=True, metavar="EPSILON")
@option(
    "--count-epsilon",
    "The epsilon of the number of rows; by default a tenth of --epsilon.",
    Epsilon(),
    metavar="EPSILON",
)
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
    with open_session_from_options(policy, analyst, (), project) as session:
        planned = RowExport(session, table, names, epsilon, count_epsilon)
        plan = planned.plan
        for name, mechanism, error in expected_errors(plan):
            say(f"{name}: {mechanism}; {error}", err=True)
        if plan.count_noise is not None:
            off = plan.count_noise.half_width(0.95)
            say(f"number of rows: +/- {off:,.0f} (95 %) by padding rows, or rows left out", err=True)
        say(f"price: {planned.price}, for up to {plan.rows_per_unit} row(s) of one privacy unit", err=True)
        if only_explain:
            return
        path = out or Path(f"{plan.table}.parquet")
        receipt = planned.write(path)
    say(f"{path}: {receipt.rows:,} rows", err=True)
    say(f"charged: {receipt.charged}; receipt {receipt.id}", err=True)
    for scope, left in receipt.remaining.items():
        say(f"remaining ({scope}): {left}", err=True)
    say(f'next: dpsql estimate {path} "SELECT ..., COUNT(*) FROM {plan.table} GROUP BY ..."', err=True)


@click.command()
@option(
    "--confidence",
    "The share of cases in which error bars hold.",
    FiniteRange(0.5, 1, max_open=True),
    default=0.95,
    metavar="SHARE",
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
