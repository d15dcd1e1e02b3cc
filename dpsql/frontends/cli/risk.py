"""`dpsql risk`: how easily persons of a table are recognised by their values. For the owner alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.frontends.cli.options import FiniteRange, option, policy_option
from dpsql.frontends.rendering.terminal import say, say_json, standard_output

if TYPE_CHECKING:
    from dpsql.disclosure import Generalisation, RiskReport

MOST_LISTED = 10
WARNING = "These figures are exact and about persons: they are for the data's owner alone, do not pass them on."


@click.command()
@policy_option()
@option("--columns", "Columns that others may know about a person (quasi-identifiers).", "A,B,...", required=True)
@option("--sensitive", "Columns that nobody should learn about a person.", "C,...", default="")
@option("--k", "Find generalisations in which at least K persons are alike.", click.IntRange(min=2), metavar="K")
@option(
    "--leave-out",
    "With --k: the share of persons that may be left out.",
    FiniteRange(0, 1),
    default=0.0,
    metavar="SHARE",
)
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
    engine = open_engine(loaded)
    try:
        with PersonRows(loaded, engine, table, (*quasi, *secret)) as rows:
            names = tuple(rows.columns)
            report = measure_risk(rows, names[: len(quasi)], names[len(quasi) :])
            coarser = None if k is None else generalisations(rows, report.columns, k, leave_out)
    finally:
        engine.close()
    if format == "json":
        written = {**asdict(report), "k": report.sizes.smallest, "average_risk": report.sizes.average_risk}
        if coarser is not None:
            written["generalisations"] = [asdict(entry) for entry in coarser]
        say_json(written, indent=1)
    else:
        write_report(report)
        if coarser is not None and k is not None:
            write_generalisations(coarser, k, report.persons)
    say(WARNING, err=True)


def _listed(text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated text, each once whatever its case."""
    return tuple({name.lower(): name for name in map(str.strip, text.split(",")) if name}.values())


def write_report(report: RiskReport) -> None:
    """Write the report as tables and sentences."""
    sizes, persons = report.sizes, report.persons
    say(f"{report.table}: {persons:,} persons, {report.rows:,} rows, by {', '.join(report.columns)}")
    if report.ownerless:
        say(f"left out: {report.ownerless:,} rows that belong to no person")
    if not persons:
        return
    say(f"\nk-anonymity: {sizes.smallest} (the fewest persons who are alike; {sizes.classes:,} combinations)")
    say(f"found by somebody who knows these columns of everybody: {sizes.average_risk:.2%} of the persons")
    from dpsql.disclosure.report import SIZES

    counts = [sizes.between(low, high) for low, high in SIZES]
    labels = [
        str(low) if low == high else f"{low} and more" if high is None else f"{low} to {high}" for low, high in SIZES
    ]
    _table(
        ("persons alike", "persons", "share"),
        [labels, [f"{n:,}" for n in counts], [_share(n, persons) for n in counts]],
    )
    if report.diversity:
        say("\nWhat a group of persons who are alike tells of its members")
        _table(
            ("column", "l (distinct)", "l (entropy)", "t", "persons disclosed", "share"),
            [
                [entry.column for entry in report.diversity],
                [str(entry.distinct) for entry in report.diversity],
                [f"{entry.entropy:.2f}" for entry in report.diversity],
                [f"{entry.closeness:.2f}" for entry in report.diversity],
                [f"{entry.disclosed:,}" for entry in report.diversity],
                [_share(entry.disclosed, persons) for entry in report.diversity],
            ],
        )
    singled = report.uniqueness[:MOST_LISTED]
    say("\nColumns that single persons out" + (" (the first)" if len(report.uniqueness) > len(singled) else ""))
    _table(
        ("columns", "persons alone", "share"),
        [
            [", ".join(entry.columns) for entry in singled],
            [f"{entry.persons:,}" for entry in singled],
            [_share(entry.persons, persons) for entry in singled],
        ],
    )


def write_generalisations(coarser: Sequence[Generalisation], k: int, persons: int) -> None:
    """Write the generalisations, beginning with the one that keeps the most, and the SQL of that one."""
    if not coarser:
        say(f"\nNo generalisation: there are fewer than {k} persons, or too few may be left out")
        return
    say(f"\nCoarser values with at least {k} persons alike")
    listed = coarser[:MOST_LISTED]
    names = [name for name, _ in listed[0].levels]
    columns = [[entry.levels[number][1] for entry in listed] for number in range(len(names))]
    _table(
        (*names, "combinations", "left out", "information kept"),
        [
            *columns,
            [f"{entry.classes:,}" for entry in listed],
            [_share(entry.left_out, persons) for entry in listed],
            [f"{entry.information:.0%}" for entry in listed],
        ],
        words=len(names),
    )
    say("The first, as SQL: " + ", ".join(f'{sql} AS "{name}"' for name, sql in listed[0].sql))


def _share(number: int, persons: int) -> str:
    return f"{number / persons:.1%}"


def _table(names: Sequence[str], columns: Sequence[Sequence[str]], words: int = 1) -> None:
    from dpsql.frontends.rendering.tables import draw

    draw(names, columns, [number >= words for number in range(len(names))], standard_output())
