"""`dpsql tune`: contribution bounds that suit a question, from a small private measurement."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.frontends.cli.options import (
    COUNT,
    analyst_option,
    open_session_from_options,
    option,
    policy_option,
    settings_of,
)
from dpsql.frontends.rendering.terminal import say, say_json, standard_output

if TYPE_CHECKING:
    from dpsql.tuning import Advice
    from dpsql.tuning.choices import ChoiceTable, WayTable
    from dpsql.tuning.samples import SampleTable


@click.command()
@policy_option()
@analyst_option
@option("--epsilon", "The epsilon of the measurement; with it, no confirmation is asked for.", "EPSILON")
@option("--set settings", "Options of the question to be tuned.", "NAME=VALUE", multiple=True)
@option("--groups", "The number of groups of the answer, for private keys.", COUNT, metavar="N")
@option("-f --format", "The format of the output.", ("text", "json"), default="text")
@click.argument("sql")
def tune(
    *, policy: Path, analyst: str | None, epsilon: str | None, settings: tuple[str, ...], groups: int | None,
    format: str, sql: str,
) -> None:  # fmt: skip
    """Recommend max_rows, max_total, max_count and max_groups for a question.

    Measures privately how much privacy units contribute: rows, groups, and totals of summed values, counted in bins
    that double in width. This is charged like any question; the price is shown first. Then each bound is listed with
    its expected error: bias from the part that is cut off, and noise. Asking again about the same data is free.

    For SAMPLE_AGGREGATE it shows the expected errors of the median and the mean for several numbers of samples. That is free.
    """
    from dpsql.privacy.loss import exact_number
    from dpsql.tuning import Advice, Tuning, free_advice

    try:
        exact_epsilon = None if epsilon is None else exact_number(epsilon)
    except ValueError:
        raise click.BadParameter(f"{epsilon!r} is no number", param_hint="--epsilon") from None
    with open_session_from_options(policy, analyst, settings_of(None, None, settings)) as session:
        samples, nothing_else = free_advice(session, sql)
        if nothing_else:
            _write(Advice((), "nothing", "", 0.0, 0.0, (), samples), format)
            say("nothing was measured, nothing was charged", err=True)
            return
        tuning = Tuning(session, sql, epsilon=exact_epsilon, groups=groups)
        say(f"measuring costs {tuning.plan.price}", err=True)
        for scope, left in tuning.plan.remaining:
            say(f"remaining ({scope}): {left}", err=True)
        if epsilon is None and not click.confirm("measure?", err=True, default=False):
            say("nothing was measured, nothing was charged", err=True)
            return
        advice = replace(tuning.measure(), samples=samples)
    _write(advice, format)
    say(f"charged: {advice.price}; receipt {advice.receipt}", err=True)


def _write(advice: Advice, format: str) -> None:
    if format == "json":
        say_json({**asdict(advice), "settings": advice.settings})
        return
    for samples in advice.samples:
        write_samples(samples)
    if advice.receipt:
        write_advice(advice)


def write_samples(table: SampleTable) -> None:
    """Print how exact the median and the mean would be with each number of samples."""
    from dpsql.frontends.rendering.tables import draw

    say(f"samples for {table.statistic} (now the {table.combined} of {table.samples})")
    names = ["samples", "rows in each", "median off by", "mean +/-", ""]
    rows = [
        (
            str(choice.samples), _short(choice.rows),
            f"{choice.rank_error:.0%} of the samples" if choice.rank_error < 0.5 else "any value", f"{choice.mean_error:.3g}",
            f"<- recommended: the {choice.recommended}" if choice.recommended else "",
        )
        for choice in table.choices
    ]  # fmt: skip
    draw(names, [list(cells) for cells in zip(*rows, strict=True)], [True] * 4 + [False], standard_output())
    if table.recommended is None:
        say("no recommendation: groups of dp.assume_rows rows are too small for samples")
    say("")


def write_advice(advice: Advice) -> None:
    """Print the tables, the recommendations last."""
    from dpsql.frontends.rendering.tables import draw

    say(f"about {_short(advice.people)} privacy units, with up to about {_short(advice.rows)} rows each")
    for table in advice.tables:
        say(f"\n{table.setting} for {table.of}" + ("" if table.now is None else f" (now {table.now:.10g})"))
        draw(*_columns(table), standard_output())
        if table.why:
            say(f"no recommendation: {table.why}")
    for ways in advice.ways:
        write_ways(ways)
    say("")
    for note in advice.notes:
        say(f"note: {note}")
    for name, value in advice.settings.items():
        say(f"recommended: {name} {value:.10g}")


_WORDS_OF_WAYS = {
    "policy": "max_rows of the policy",
    "number": "max_total of the table above",
    "auto": "max_total = auto",
}


def write_ways(table: WayTable) -> None:
    """Print which way of bounding a sum is recommended."""
    from dpsql.frontends.rendering.tables import draw

    say(f"\nways to bound {table.output}")
    names = ["way", "bound", "lost", "bias", "noise", "together", "with hidden units", ""]
    rows = [
        (
            _WORDS_OF_WAYS[candidate.name],
            _short(candidate.bound),
            f"{candidate.lost:.1%}",
            *map(_short, (candidate.bias, candidate.noise, candidate.together, candidate.hidden)),
            "<- suits" if candidate.recommended else "",
        )
        for candidate in table.ways
    ]
    draw(names, [list(cells) for cells in zip(*rows, strict=True)], [False] + [True] * 6 + [False], standard_output())
    if table.why:
        say(f"no recommendation: {table.why}")
    say(
        f"max_total = auto takes about {table.enough:,} privacy units with values; of fewer, its bound may be the policy's own"
    )


def _short(value: float) -> str:
    """Format a number with three digits and without an exponent."""
    return f"{value:.3g}" if value < 100 else f"{float(f'{value:.3g}'):,.0f}"


def _columns(table: ChoiceTable) -> tuple[list[str], list[list[str]], list[bool]]:
    names = [table.setting, "lost", "bias", "noise", "together", ""]
    rows = [
        (
            f"{choice.value:.10g}", f"{choice.lost:.1%}", _short(choice.bias), _short(choice.noise),
            _short(choice.together), "<- recommended" if choice.recommended else "",
        )
        for choice in table.choices
    ]  # fmt: skip
    return names, [list(cells) for cells in zip(*rows, strict=True)], [True] * 5 + [False]
