"""`dpsql fit`: bounds, domains and caps that suit the data, or one question, from a small private measurement."""

from __future__ import annotations

from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.errors.custodian_log import audit, registering
from dpsql.frontends.cli import COUNT, SessionOptions, analyst_option, option, policy_option, settings_of
from dpsql.frontends.rendering.terminal import notify, say, say_json, say_line

if TYPE_CHECKING:
    from dpsql.session.explanation import PrivacyPlan
    from dpsql.session.session import Session
    from dpsql.tuning import Advice
    from dpsql.tuning.choices import SampleTable, WayTable
    from dpsql.tuning.policy_fit import PolicyFit


@click.command()
@policy_option()
@option("--apply", "Write the proposal into the policy.")
@option("--table tables TABLE", "Only this protected table.", multiple=True)
@option("--epsilon EPSILON", "The epsilon of the measurement; with it, no confirmation is asked for.")
@option("-f --format", "The format of the output.", ("text", "json"), default="text")
@analyst_option
@option("--set settings NAME=VALUE", "With SQL: options of the question.", multiple=True)
@option("--groups N", "With SQL: the number of groups of the answer, for private keys.", COUNT)
@click.argument("sql", required=False)
def fit(
    *, policy: Path, apply: bool, tables: tuple[str, ...], epsilon: str | None, format: str, analyst: str | None,
    settings: tuple[str, ...], groups: int | None, sql: str | None,
) -> None:  # fmt: skip
    """Find bounds, domains and caps that do not suit the data; with SQL, the contribution bounds that suit a question.

    One small private measurement, charged like any question; its price is shown first. It counts, per column, the persons
    with a value below or above the bounds, outside the domain, missing or unreadable, and those above max_rows and the
    policy's other caps. What it proposes follows from these noisy counts alone; --apply writes it into the policy.
    Measuring again over the same data is free.

    With SQL it proposes max_rows, max_total, max_count and max_groups for that question: each with its expected error,
    which is bias from the part that is cut off, and noise. For SAMPLE_AGGREGATE it shows, for free, the expected errors of
    the median and the mean for several numbers of samples.
    """
    from dpsql.privacy.loss import exact_number

    try:
        exact_epsilon = None if epsilon is None else exact_number(epsilon)
    except ValueError:
        raise click.BadParameter(f"{epsilon!r} is no number", param_hint="--epsilon") from None
    if sql is not None:
        if apply or tables:
            raise click.UsageError("--apply and --table are for the whole policy: leave SQL out")
        with SessionOptions(policy, analyst, None, settings_of(None, None, settings)).open() as session:
            _fit_question(session, sql, exact_epsilon, groups, format)
        return
    if settings or groups or analyst:
        raise click.UsageError("--set, --groups and --analyst are for one question: write its SQL")
    _fit_policy(policy, exact_epsilon, tables, format, apply)


def _is_confirmed(plan: PrivacyPlan, session: Session, epsilon: Fraction | None) -> bool:
    """Show the price, and return whether to measure: asked for unless the epsilon was stated."""
    notify(f"price of measuring: {plan.share}")
    notify(f"left: {session.left_text()}")
    if epsilon is not None or click.confirm("measure?", err=True, default=False):
        return True
    notify("nothing was measured, nothing was charged")
    return False


def _fit_question(session: Session, sql: str, epsilon: Fraction | None, groups: int | None, format: str) -> None:
    from dpsql.tuning import Advice, Tuning, free_advice

    samples, nothing_else = free_advice(session, sql)
    if nothing_else:
        _write(Advice((), "nothing", "", 0.0, 0.0, (), samples), format)
        notify("nothing was measured, nothing was charged")
        return
    tuning = Tuning(session, sql, epsilon=epsilon, groups=groups)
    if not _is_confirmed(tuning.plan, session, epsilon):
        return
    advice = replace(tuning.measure(), samples=samples)
    _write(advice, format)
    again = session.context.again(session.options)
    notify(f"charged: {advice.price}; receipt {advice.receipt}; the same measurement again {again}")


def _fit_policy(path: Path, epsilon: Fraction | None, tables: tuple[str, ...], format: str, apply: bool) -> None:
    from dpsql.errors.exceptions import did_you_mean
    from dpsql.frontends.admin.policy_text import policy_diff, replace_policy
    from dpsql.policy import load_policy
    from dpsql.tuning.policy_fit import Fitting

    policy = load_policy(path)
    protected = [name for name in policy.tables if policy.is_protected(name)]
    for name in tables:
        if name not in protected:
            raise click.BadParameter(
                f"no protected table is {name}{did_you_mean(name, protected)}", param_hint="--table"
            )
    fitting = Fitting(policy, epsilon=epsilon, tables=tables)
    try:
        if not _is_confirmed(fitting.plan(), fitting.session, epsilon):
            return
        fitted, again = fitting.measure(), fitting.session.context.again(fitting.session.options)
    finally:
        fitting.close()
    with registering(charged=fitted.price != "nothing", passing=OSError):
        text, difference = policy_diff(path, [(proposal.place, proposal.value) for proposal in fitted.proposals])
    if format == "json":
        proposals = [{**asdict(proposal), "value": _plain(proposal.value)} for proposal in fitted.proposals]
        say_json({**asdict(fitted), "proposals": proposals, "diff": difference})
    else:
        write_policy_fit(fitted)
        say(f"\n{difference}" if difference else "nothing to propose")
    notify(f"charged: {fitted.price}; receipt {fitted.receipt}; the same measurement again {again}")
    if apply and difference:
        replace_policy(path, text)
        audit("owner", act="fit", changes=len(fitted.proposals))
        notify(f"{path} is changed; next: dpsql check -p {path}")
    elif difference:
        notify(
            "read each change: a bound is what can be, and a code such as 999 is no value; --apply writes all of them"
        )


_CAPS = ("max_count", "max_total", "max_groups", "max_values")
_KINDS = ("below", "above", "outside", "missing", "unreadable", "rows", *_CAPS)
_OVER = {"rows": "over max_rows"} | {kind: f"over {kind}" for kind in _CAPS}


def write_policy_fit(fitted: PolicyFit) -> None:
    """Print for each table how many persons each bound, domain and cap cuts off, then the proposals."""
    from dpsql.frontends.rendering.tables import say_table

    for table, persons in fitted.persons.items():
        say(f"{table}: about {persons:,.0f} {fitted.unit}; each count +/- {fitted.bar:,.0f} or more (95 %)")
        cells: dict[str, dict[str, str]] = {}
        for finding in fitted.findings:
            if finding.table == table:
                cell = f"{finding.persons:,.0f} ({finding.share:.1%})" if finding.persons else "-"
                cells.setdefault(finding.column or "(rows)", {})[finding.kind] = cell
        kinds = [kind for kind in _KINDS if any(kind in row for row in cells.values())]
        names = ["column", *(_OVER.get(kind, kind) for kind in kinds)]
        if kinds:
            say_table(names, [(column, *(row.get(kind, "") for kind in kinds)) for column, row in cells.items()])
        say("")
    say(f"-: none, or so few that noise hides them: up to about {fitted.least:,.0f} {fitted.unit} in one place")
    for proposal in fitted.proposals:
        table, *column, name = (part for part in proposal.place[1:] if part != "columns")
        say_line(f"proposed: {'.'.join([table, *column])} {name} {_value_text(proposal.value)}: {proposal.why}")


def _plain(value: object) -> object:
    """Return a proposed value as JSON has it."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value if isinstance(value, (bool, int, list)) else str(value)


def _value_text(value: object) -> str:
    return f"with {', '.join(map(str, value))} added" if isinstance(value, list) else str(_plain(value)).lower()


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
    from dpsql.frontends.rendering.tables import say_table

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
    say_table(names, rows, words=(4,))
    if table.recommended is None:
        say("no recommendation: groups of dp.assume_rows rows are too small for samples")
    say("")


def write_advice(advice: Advice) -> None:
    from dpsql.frontends.rendering.tables import say_table

    say(f"about {_short(advice.people)} persons, with up to about {_short(advice.rows)} rows each")
    for table in advice.tables:
        say(f"\n{table.setting} for {table.of}" + ("" if table.now is None else f" (now {table.now:.10g})"))
        rows = [
            (
                f"{choice.value:.10g}", f"{choice.lost:.1%}", _short(choice.bias), _short(choice.noise),
                _short(choice.together), "<- least error" if choice.recommended else "",
            )
            for choice in table.choices
        ]  # fmt: skip
        say_table([table.setting, "lost", "bias", "noise", "together", ""], rows, words=(5,))
        if table.why:
            say(f"no recommendation: {table.why}")
    for ways in advice.ways:
        write_ways(ways)
    say("")
    for note in advice.notes:
        say(f"note: {note}")
    for name, value in advice.settings.items():
        number = value if isinstance(value, str) else f"{value:.10g}"
        say(f"proposed: {f'max_rows {number} in the policy' if name == 'max_rows' else f'SET dp.{name} = {number}'}")


_WORDS_OF_WAYS = {
    "policy": "max_rows of the policy",
    "number": "max_total of the table above",
    "auto": "max_total = auto",
}


def write_ways(table: WayTable) -> None:
    from dpsql.frontends.rendering.tables import say_table

    say(f"\nways to bound {table.output}")
    names = ["way", "bound", "lost", "bias", "noise", "together", "with hidden persons", ""]
    rows = []
    for candidate in table.ways:
        errors = map(_short, (candidate.bias, candidate.noise, candidate.together, candidate.hidden))
        mark = "<- proposed" if candidate.recommended else ""
        rows.append((_WORDS_OF_WAYS[candidate.name], _short(candidate.bound), f"{candidate.lost:.1%}", *errors, mark))
    say_table(names, rows, words=(0, 7))
    if table.why:
        say(f"no recommendation: {table.why}")
    say(
        f"max_total = auto takes about {table.enough:,} persons with values; of fewer, its bound may be the policy's own"
    )


def _short(value: float) -> str:
    """Format a number with three digits and without an exponent."""
    return f"{value:.3g}" if value < 100 else f"{float(f'{value:.3g}'):,.0f}"
