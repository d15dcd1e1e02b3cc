"""Notices in answers and in EXPLAIN, most of them about rows that noise selects: in stages, and among private keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from dpsql.errors.exceptions import Error
from dpsql.plan.plan import Call, Column, Expr, Literal, Scan, columns_read, results_read
from dpsql.plan.stability import tables
from dpsql.planning.planner import Planned
from dpsql.policy import Policy
from dpsql.pricing.block_names import block_names
from dpsql.pricing.pricing import shown_half_of_the_time
from dpsql.privacy.loss import plain_decimal
from dpsql.privacy.mechanisms.local_sensitivity import REFUSED, LocalSensitivityPlan, ProposeTestRelease
from dpsql.release.error_bars.answers import likely_rows
from dpsql.release.error_bars.reruns import Unmatched
from dpsql.release.remainder import ReleasedBlock, Remainder
from dpsql.release.sandbox import Sandbox
from dpsql.session.stages import Public, tables_read
from dpsql.storage.recent_values import RecentValues

_MOST_REMARKS = 256
_MOST_NAMED = 5
_remarks: RecentValues[str] = RecentValues(_MOST_REMARKS)


def condition_notices(planned: Planned, policy: Policy) -> tuple[str, ...]:
    """Return notices on conditions that are counted and on compared values that the policy does not list. Omit values if the
    asker sees only some rows of a table, because the asker must not learn the values in that row filter."""
    read = {table for priced in planned.price.blocks for table in tables(priced.block.source)}
    unlisted = () if any(policy.row_filter(table) is not None for table in read) else planned.unlisted
    return (*planned.counted_conditions, *unlisted)


def stage_notices(planned: Planned) -> tuple[str, ...]:
    """Return notices on what the error bars of later stages include; these are known before anything is measured."""
    plan = planned.plan
    if not plan.results:
        return ()
    names = block_names(plan)
    results = {result.name: result.query for result in plan.results}
    notices = []
    for block in plan.blocks:
        read = {table for name in results_read(block) for table in tables_read(results[name])}
        earlier = [words for name, words in names.items() if name in read]
        if earlier:
            notices.append(
                f"{names[block.name]} is measured after {' and '.join(earlier)}, over what noisy numbers chose there: error "
                "bars hold the exact answer for this choice, and less often the answer for the choice that exact numbers "
                "would make"
            )
    return tuple(notices)


def choice_notices(
    planned: Planned, blocks: Sequence[ReleasedBlock], sandbox: Sandbox, public: Public
) -> tuple[str, ...]:
    """Return notices on how many rows of a later stage might differ because of the noise of `blocks`, which selected
    them."""
    released = {block.name: block for block in blocks}
    remarks = []
    cuts = {cut.result for cut in planned.plan.cuts}
    for result in planned.plan.results:
        if result.name in cuts:
            continue  # a number, which selects no rows
        read = tables_read(result.query)
        chosen = tuple(block for name, block in released.items() if name in read)
        if chosen:
            remainder = Remainder(result.query, tuple(column.name for column in result.columns), chosen, {})
            scans = {entry.name: entry.scan for entry in planned.plan.public_inputs if entry.name in read}
            remark = partial(_remark, sandbox, remainder, scans, public)
            remarks.append(_remarks.get((remainder.text, remainder.seed), remark))
    return tuple(filter(None, remarks))


def _remark(sandbox: Sandbox, remainder: Remainder, scans: Mapping[str, Scan], public: Public) -> str:
    """Return the remark, or "" if noise selects no rows or exact columns do not identify rows. Never raise: the answer
    is already charged."""
    try:
        remainder = replace(remainder, public={name: public(scan) for name, scan in scans.items()})
        always, ever = likely_rows(sandbox, remainder)
    except (Error, Unmatched):
        return ""
    return (
        "" if always == ever else f"of about {ever} rows that noise might choose there, {always} are chosen in any case"
    )


def min_units_notice(planned: Planned, policy: Policy) -> tuple[str, ...]:
    """Return the notice that groups with few privacy units are not shown, if `dp.min_units` or the policy hides them."""
    least = planned.options.min_units
    if least is None or not planned.price.blocks:
        return ()
    units = "privacy units" if policy.privacy_unit is not None else "rows"
    return (f"groups in which fewer than {least:,} {units} are counted, with noise, are not shown (min_units)",)


def failed_test_notices(planned: Planned, blocks: Sequence[ReleasedBlock]) -> tuple[str, ...]:
    """Return a notice of how many released numbers are NULL because rows did not pass the test of propose_test_release."""
    released = {block.name: block for block in blocks}
    tested = [
        term.values
        for priced in planned.price.blocks if priced.block.name in released
        for measurement in priced.noise.measurements
        if isinstance(measurement, LocalSensitivityPlan) and isinstance(measurement.law, ProposeTestRelease)
        for term in released[priced.block.name].terms if term.name == measurement.name
    ]  # fmt: skip
    failed, every = sum(int((values == REFUSED).sum()) for values in tested), sum(map(len, tested))
    if not failed:
        return ()
    return (
        f"{failed:,} of {every:,} numbers are NULL, as their rows did not pass the test of dp.proposed_sensitivity: an answer "
        "like any other, charged and stored; a larger dp.proposed_sensitivity is passed more easily, with more noise",
    )


def key_notices(planned: Planned, policy: Policy) -> tuple[str, ...]:
    """Return notices on rows that groups of public keys contain besides the rows with the key's value: rows without a value
    (NULL), and values that the key's own bounds clamp. They follow only from policy and text."""
    keys = [key for priced in planned.price.blocks for key in priced.block.keys if key.values is not None]
    declared = {name for table in policy.tables.values() for name in table.columns}
    without = dict.fromkeys(
        name if (name := _plain(column.name)) in declared else "a value"  # columns of subqueries have names of the plan
        for key in keys if key.expression.facts.nullable and key.values is not None and None in key.values
        for column in columns_read(key.expression)
    )  # fmt: skip
    names = list(without)
    empty = f"rows without {' or '.join(names[:_MOST_NAMED])} are in groups of their own, with NULL" if names else ""
    folded = dict.fromkeys(filter(None, (_folded(key.expression) for key in keys)))
    return (*([empty] if empty else ()), *folded)


def _plain(name: str) -> str:
    """Return a column's name without the prefix for its side of a join."""
    return name.rpartition(".")[2]


def _folded(expression: Expr) -> str:
    """Return how the bounds of a key, such as least(x, 10), count the values of a column beyond them; "" for other keys."""
    if not isinstance(expression, Call) or expression.function not in ("clamp", "least", "greatest"):
        return ""
    columns = [part for part in expression.arguments if isinstance(part, Column)]
    ends = [part.value for part in expression.arguments if isinstance(part, Literal)]
    if len(columns) != 1 or len(ends) != len(expression.arguments) - 1 or not columns[0].facts.type.numeric:
        return ""
    facts, name = columns[0].facts, _plain(columns[0].name)
    low = ends[0] if expression.function == "clamp" else max(ends) if expression.function == "greatest" else None
    high = ends[-1] if expression.function == "clamp" else min(ends) if expression.function == "least" else None
    moved = []
    if low is not None and facts.lower is not None and facts.lower < low:
        end = plain_decimal(Fraction(low))
        moved.append(f"from {plain_decimal(facts.lower)} to {end} in the group {end}")
    if high is not None and facts.upper is not None and high < facts.upper:
        end = plain_decimal(Fraction(high))
        moved.append(f"from {end} to {plain_decimal(facts.upper)} in the group {end}")
    return f"{name} is counted {' and '.join(moved)}" if moved else ""


def missing_keys_notice(planned: Planned, of_groups: bool) -> tuple[str, ...]:
    """Return the notice that private keys shared by few units are not shown; `of_groups`: the query computes over the
    groups."""
    sizes = [shown_half_of_the_time(block) for block in planned.own_blocks if block.noise.selection is not None]
    if not sizes:
        return ()
    few, counted = max(sizes)
    if (least := planned.options.min_units) is not None and counted == "units":
        few = max(few, least)
    fewer = f"fewer than about {few} units share" if counted == "units" else f"have fewer than about {few} rows"
    unseen = f"keys that {fewer} are mostly not shown"
    if not of_groups:
        return (unseen,)
    return (
        f"{unseen}, and what they have is in no total: how many there are is not known, each may lack all that about {few} "
        f"{counted} have; the same aggregate without the private key counts them",
    )
