"""Notices of a question, in EXPLAIN and in answers: one rule each, in the order of `RULES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Flag, auto
from fractions import Fraction
from functools import cached_property, partial

from dpsql.errors.exceptions import Error
from dpsql.functions.key_columns import labels_used
from dpsql.plan.expression_text import column_texts, expression_text
from dpsql.plan.origins import UnknownOrigin, branches
from dpsql.plan.plan import (
    Call,
    Column,
    Expr,
    Literal,
    Relation,
    Scan,
    UnitAggregate,
    UnitWindow,
    columns_read,
    results_read,
)
from dpsql.plan.stability import parts, tables
from dpsql.planning.planner import Planned
from dpsql.policy import Policy
from dpsql.pricing.explain import block_names, confidence_text, cut_text
from dpsql.pricing.pricing import shown_half_of_the_time
from dpsql.pricing.sum_terms import EMPTY_CELLS, cut_at, units_above
from dpsql.pricing.workloads import Objective
from dpsql.privacy.loss import plain_decimal
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.local_sensitivity import REFUSED, LocalSensitivityPlan, ProposeTestRelease
from dpsql.release.error_bars.answers import likely_rows
from dpsql.release.error_bars.replicates import Unmatched
from dpsql.release.release import OutputColumn, group_notices
from dpsql.release.remainder import ReleasedBlock, Remainder, inconsistent_notice
from dpsql.release.sandbox import Sandbox
from dpsql.reuse.lookup import PaidBlock, derived_notices
from dpsql.session.clamp_notices import Clamps, bound_notices, clamp_notices, clamps_of
from dpsql.session.context import SessionContext
from dpsql.session.stages import Public, tables_read
from dpsql.sql.rewrites.dialects import differences
from dpsql.storage.memory import RecentValues
from dpsql.storage.records import dataclass, field, replace

_MOST_REMARKS = 256
_MOST_NAMED = 5
_remarks: RecentValues[str] = RecentValues(_MOST_REMARKS)


@dataclass(frozen=True)
class NoticedQuestion:
    """What notices follow from: a planned question in its session, its columns once they are known, and the blocks of its answer
    (none before anything is released)."""

    context: SessionContext
    planned: Planned
    columns: Sequence[OutputColumn] = ()
    stored: tuple[PaidBlock, ...] = field(default=())

    @property
    def policy(self) -> Policy:
        return self.context.policy

    @property
    def confidence(self) -> str:
        return confidence_text(float(self.planned.options.confidence))

    @property
    def clamps(self) -> Clamps:
        """Return what the policy's bounds clamp in the arguments of each measure."""
        clamps: Clamps = self.planned.derived(clamps_of, partial(clamps_of, self.planned.plan, self.policy))
        return clamps

    @cached_property
    def released(self) -> Mapping[str, ReleasedBlock]:
        return {part.block.name: part.block for part in self.stored}


def condition_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return notices on conditions that are counted and on compared values that the policy does not list. Omit values if the
    asker sees only some rows of a table, because the asker must not learn the values in that row filter."""
    read = {table for priced in question.planned.price.blocks for table in tables(priced.block.source)}
    unlisted = () if any(question.policy.row_filter(table) is not None for table in read) else question.planned.unlisted
    return (*question.planned.counted_conditions, *unlisted)


def empty_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return a notice where a part of the question is about nothing: no row passes its conditions, or they leave no group."""
    if question.planned.plan.empty:
        return ()
    return tuple(
        f"no value of {keys} that the policy allows passes the conditions, so there are no groups" if keys
        else "no row can pass the conditions of a part of this question, so its numbers are noise alone"
        for keys in dict.fromkeys(question.planned.about_nothing)
    )  # fmt: skip


def dialect_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return notices on what the text says that DuckDB and PostgreSQL read differently."""
    return tuple(
        f"read as {question.planned.options.dialect} (dp.dialect): {difference}"
        for difference in differences(question.planned.statement)
    )


def row_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return notices of the rows and groups of a unit that are left out because it may have too many; none if it cannot."""
    planned, policy = question.planned, question.policy
    if policy.privacy_unit is None:
        return ()
    unit = unit_word(policy)
    read = dict.fromkeys(name for priced in planned.price.blocks for name in sorted(tables(priced.block.source)))
    limited = [
        rows_of(policy.tables[name].bounds.max_rows or 1, name)
        for name in read
        if policy.is_protected(name) and not (not policy.unit_joins(name) and _once(policy, name))
    ]
    notices = [f"at most {' and '.join(limited)} count for each {unit}; further ones are left out"]
    groups = {priced.block.caps.bounds.max_groups for priced in planned.price.blocks} - {None}
    more = [
        f"each {unit} counts in at most {most} groups (max_groups)" for most in sorted(map(int, filter(None, groups)))
    ]
    return (*(notices if limited else ()), *more)


def unprotected_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return a notice on each table of the question whose rows name people who are not protected there."""
    policy = question.policy
    read = {name for priced in question.planned.price.blocks for name in tables(priced.block.source)}
    return tuple(sentence for name, sentence in policy.unprotected.items() if name in read)


def unit_word(policy: Policy) -> str:
    """Return the word for one privacy unit: the name of its column, if the asker may know that."""
    unit = policy.privacy_unit
    home = None if unit is None else policy.visible.get(unit.table)
    return unit.column if unit is not None and home is not None and unit.column in home.columns else "privacy unit"


def rows_of(most: int, table: str) -> str:
    return f"{most:,} row{'' if most == 1 else 's'} of {table}"


def _once(policy: Policy, table: str) -> bool:
    """Return whether the policy promises that each unit has one row of `table`."""
    column = policy.unit_column(table)
    return column is not None and policy.tables[table].is_unique((column,))


def target_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return a notice of what `dp.target_error` means for numbers chosen among values; nothing for questions without both."""
    options = question.planned.options
    if options.target_error is None or not any(priced.block.measurements for priced in question.planned.price.blocks):
        return ()
    return (
        f"dp.target_error: quantiles, MIN, MAX and MODE are off by at most {plain_decimal(options.target_error)} rows of rank "
        f"in {question.confidence} of cases, in the worst case; how far that is in values follows from the data",
    )


def workload_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return a notice of the rows that the tables of a workload leave out, so that all of them sum over the same rows."""
    if question.planned.options.workload is Objective.RUNNING:
        return ()
    tiles = {tile.block for workload in question.planned.price.workloads for tile in workload.tiles}
    keys = {
        expression_text(key.expression, column_texts(priced.block.source)): None
        for priced in question.planned.price.blocks
        if priced.block.name in tiles
        for key in priced.block.keys
        if key.drops
    }
    if not keys:
        return ()
    return (
        f"dp.workload: rows whose {', '.join(keys)} is none of the public keys are left out of every table and total",
    )


def stage_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return notices on what the error bars of later stages include; these are known before anything is measured."""
    plan = question.planned.plan
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


def group_column_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return the notice on columns that are computed over groups, which every release has."""
    return group_notices(question.columns)


def listed_notice(question: NoticedQuestion) -> tuple[str, ...]:
    """Return the notice that groups of public keys without a number say nothing about the data."""
    keys = dict.fromkeys(
        expression_text(key.expression, column_texts(block.source))
        for block in question.planned.plan.blocks
        if not block.measures and all(key.values is not None for key in block.keys)
        for key in block.keys
    )
    if not keys:
        return ()
    return (
        f"the shown values of {', '.join(keys)} are all that the policy and conditions on them alone allow, whether or not the "
        "data have such rows; add COUNT(*) to see how many, and HAVING COUNT(*) > 20, for example, to leave out the others",
    )


def drop_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return notices on rows that may belong to no group, because of values that the policy does not list (policy key `outside`).
    Where a label stands for those, or there are none, only a missing value that the policy excludes is left."""
    keys = [key for block in question.planned.plan.blocks for key in block.keys if key.values is not None]
    complete = {
        _plain(column.name)
        for key in keys
        for column in columns_read(key.expression)
        if column.facts.outside is not None or (column.facts.values is None and not column.facts.bounded)
    }
    names = sorted({name for key in keys for name in key.drops})
    texts = (
        ([name for name in names if name not in complete], "rows with other values of {} than the policy names"),
        ([name for name in names if name in complete], "rows without {}, which the policy excludes,"),
    )
    return tuple(
        f"{text.format(_either(columns))} belong to no group and are left out" for columns, text in texts if columns
    )


def _either(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def key_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return notices on rows that groups of public keys contain besides the rows with the key's value: rows without a value
    (NULL), and values that the key's own bounds clamp. They follow only from policy and text."""
    blocks = [priced.block for priced in question.planned.price.blocks]
    without = dict.fromkeys(
        name
        for block in blocks
        for key in block.keys
        if key.expression.facts.nullable and key.values is not None and None in key.values
        for name in (
            _MADE_NULL if _makes_null(key.expression) else _named_in(block.source, key.expression, question.policy)
        )
    )
    names = sorted(without)  # of a question, whatever the order of its keys is
    empty = f"rows without {_either(names[:_MOST_NAMED])} are in groups of their own, with NULL" if names else ""
    public = (key.expression for block in blocks for key in block.keys if key.values is not None)
    folded = sorted(set(filter(None, map(_folded, public))))
    return (*([empty] if empty else ()), *folded)


_MADE_NULL = ["a value of the computed key"]


def _makes_null(key: Expr) -> bool:
    """Return whether a key may be NULL where its columns have values: CASE without ELSE, NULLIF."""
    if not isinstance(key, Call):
        return isinstance(key, Literal) and key.value is None
    return key.function == "nullif" or any(map(_makes_null, key.arguments))


def _named_in(source: Relation, key: Expr, policy: Policy) -> list[str]:
    """Return the columns of the policy that a key reads, through subqueries too; the texts of values that are of no one row."""
    declared = {name for table in policy.tables.values() for name in table.columns}
    with suppress(UnknownOrigin):
        read = [column for branch in branches(source) for column in columns_read(branch.written(key))]
        names = [_plain(column.name) for column in read]
        if declared.issuperset(names) and not _is_per_unit(source):
            return names
    texts = column_texts(source)
    names = [texts.get(column.name, _plain(column.name)) for column in columns_read(key)]
    return [name if name in declared else f"a value of {name}" for name in names]


def _is_per_unit(relation: Relation) -> bool:
    """Return whether a relation has values of a privacy unit, such as the largest of its rows."""
    return isinstance(relation, (UnitAggregate, UnitWindow)) or any(map(_is_per_unit, parts(relation)))


def label_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return notices on computed keys in which a label (policy key `outside`) counts as if it were a value."""
    labels = {
        name: label
        for priced in question.planned.price.blocks for key in priced.block.keys if key.values is not None
        for name, label in labels_used(priced.block.source, key.expression).items()
    }  # fmt: skip
    return tuple(
        f"values of {name} that the policy does not name count as {label} in the computed key"
        for name, label in labels.items()
    )


def _plain(name: str) -> str:
    """Return a column's name without the prefix for its side of a join."""
    return name.rpartition(".")[2]


def _folded(expression: Expr) -> str:
    """Return how the bounds of a key, such as least(x, 10), count the values of a column beyond them; "" for other keys."""
    if not isinstance(expression, Call) or expression.function not in ("clamp", "least", "greatest"):
        return ""
    columns = [part for part in expression.arguments if isinstance(part, Column)]
    literals = [part.value for part in expression.arguments if isinstance(part, Literal)]
    if len(columns) != 1 or len(literals) != len(expression.arguments) - 1 or not columns[0].facts.type.numeric:
        return ""
    facts, name, ends = columns[0].facts, _plain(columns[0].name), [end for end in literals if end is not None]
    clamps = expression.function == "clamp"
    low = ends[0] if clamps else max(ends, default=None) if expression.function == "greatest" else None
    high = ends[-1] if clamps else min(ends, default=None) if expression.function == "least" else None
    moved = []
    if low is not None and facts.lower is not None and facts.lower < low:
        end = plain_decimal(Fraction(low))
        moved.append(f"from {plain_decimal(facts.lower)} to {end} in the group {end}")
    if high is not None and facts.upper is not None and high < facts.upper:
        end = plain_decimal(Fraction(high))
        moved.append(f"from {end} to {plain_decimal(facts.upper)} in the group {end}")
    return f"{name} is counted {' and '.join(moved)}" if moved else ""


def clamped_value_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return the sentences on values that the policy's bounds clamp, and on comparisons with values beyond them."""
    plan, policy = question.planned.plan, question.policy
    return (*bound_notices(plan, policy), *clamp_notices(plan, policy, question.clamps))


def min_units_notice(question: NoticedQuestion) -> tuple[str, ...]:
    """Return the notice that groups with few privacy units are not shown, if `dp.min_units` or the policy hides them."""
    least = question.planned.options.min_units
    if least is None or not question.planned.price.blocks:
        return ()
    units = "privacy units" if question.policy.privacy_unit is not None else "rows"
    return (f"groups in which fewer than {least:,} {units} are counted, with noise, are not shown (min_units)",)


def cut_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return notices of the bounds to which a unit's contributions are cut and which the question chooses (`dp.max_total = auto`
    and the like): how they will be chosen, or which they are, and what error bars do not include."""
    plan, missed = question.planned.plan, 1 - float(question.planned.options.confidence)
    priced = {block.block.name: block for block in question.planned.price.blocks}
    notices = []
    for cut in plan.cuts:
        ((_, law),) = priced[cut.block].noise.measurements[0].laws
        assert isinstance(law, Choice)
        released = question.released.get(cut.block)
        cell = 0 if released is None else int(released.terms[0].values[0])
        most, texts = cut_at(cut, cell), _OF_VALUES if cut.places else _OF_TOTALS
        text = texts[0 if released is None else 1 if cell < EMPTY_CELLS else 2].format(
            whose=unit_word(question.policy), rank=law.rank, most=f"{most:.0f}" if cut.places else f"{most:.4g}",
            few=units_above(cut, law, 0, missed), above=units_above(cut, law, cell, missed), level=question.confidence,
            option=cut.option,
        )  # fmt: skip
        notices.append(f"{cut_text(cut, plan)}: {text}")
    return tuple(notices)


_OF_TOTALS = (
    "a part of the price chooses a bound on what one {whose} adds in all, near total number {rank} from the largest down "
    "(dp.{option} = auto); what is above it is left out, and error bars do not hold that; where fewer than about {few:,} have "
    "values, the bound may be the policy's own, {most}",
    "too few have values for a bound to be chosen (dp.{option} = auto), which may take up to {few:,} of them; one {whose} adds "
    "at most {most} in all, the policy's own bound, and noise is as large as that. SET dp.{option} = a number, or a larger "
    "dp.epsilon",
    "one {whose} adds at most {most} in all, a bound that was chosen for this answer (dp.{option} = auto); of at most {above:,} "
    "who have more ({level}), the rest is left out, and error bars do not hold that",
)
"""Notices of a bound on totals: before it is chosen, if too few units have values, and once it is chosen."""
_OF_VALUES = (
    "a part of the price chooses how many values each {whose} brings, near number {rank} of values that one has, from the "
    "largest down (dp.{option} = auto); values that nobody brings are left out, and error bars do not hold that; where fewer "
    "than about {few:,} have values, it may be {most}, as many as one may have",
    "too few have values for a number to be chosen (dp.{option} = auto), which may take up to {few:,} of them; one {whose} "
    "brings up to {most}, as many as one may have, and noise is as large as that. SET dp.{option} = a number, or a larger "
    "dp.epsilon",
    "one {whose} brings at most {most} values, a number that was chosen for this answer (dp.{option} = auto); at most "
    "{above:,} have more ({level}), of which those that nobody brings are left out, and error bars do not hold that",
)
"""The same of a number of values."""


def missing_keys_notice(question: NoticedQuestion) -> tuple[str, ...]:
    """Return the notice that keys shared by few units are not shown, and its meaning for outputs over groups."""
    planned = question.planned
    sizes = [shown_half_of_the_time(block) for block in planned.own_blocks if block.noise.selection is not None]
    if not sizes:
        return ()
    few, counted = max(sizes)
    if (least := planned.options.min_units) is not None and counted == "units":
        few = max(few, least)
    fewer = f"fewer than about {few} units share" if counted == "units" else f"have fewer than about {few} rows"
    unseen = f"keys that {fewer} are mostly not shown"
    if not any(column.of_groups for column in question.columns):
        return (unseen,)
    return (
        f"{unseen}, and what they have is in no total: how many there are is not known, each may lack all that about {few} "
        f"{counted} have; the same aggregate without the private key counts them",
    )


def failed_test_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return a notice of how many released numbers are NULL because rows did not pass the test of propose_test_release."""
    released = question.released
    tested = [
        term.values
        for priced in question.planned.price.blocks if priced.block.name in released
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


def choice_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return notices on how many rows of a later stage might differ because of the noise of the blocks that selected them."""
    planned, released = question.planned, question.released
    sandbox, public = question.context.sandbox, question.context.public_table
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
    """Return the remark; "" if noise selects no rows or exact columns identify none. Never raise: the answer is charged."""
    try:
        remainder = replace(remainder, public={name: public(scan) for name, scan in scans.items()})
        always, ever = likely_rows(sandbox, remainder)
    except (Error, Unmatched):
        return ""
    return (
        "" if always == ever else f"of about {ever} rows that noise might choose there, {always} are chosen in any case"
    )


def derived_answer_notices(question: NoticedQuestion) -> tuple[str, ...]:
    return derived_notices(question.planned, question.stored)


def inconsistent_notices(question: NoticedQuestion) -> tuple[str, ...]:
    """Return notices of tables that do not agree because some of them are stored."""
    blocks = tuple(question.released.values())
    return tuple(
        notice for workload in question.planned.price.workloads for notice in inconsistent_notice(workload, blocks)
    )


class Shown(Flag):
    """Where the notices of a rule are shown. STANDING: in answers, as a notice that stands for many answers. COLUMNS: in answers,
    once their columns are known. DETAILS: in the notes of EXPLAIN, in front of all others."""

    EXPLAIN = auto()
    ANSWER = auto()
    STANDING = auto()
    COLUMNS = auto()
    DETAILS = auto()


Rule = Callable[[NoticedQuestion], tuple[str, ...]]
RULES: tuple[tuple[Rule, Shown], ...] = (
    (derived_answer_notices, Shown.ANSWER),
    (condition_notices, Shown.EXPLAIN | Shown.ANSWER),
    (empty_notices, Shown.EXPLAIN | Shown.ANSWER),
    (dialect_notices, Shown.EXPLAIN),
    (row_notices, Shown.EXPLAIN | Shown.STANDING),
    (unprotected_notices, Shown.EXPLAIN | Shown.STANDING),
    (target_notices, Shown.EXPLAIN | Shown.ANSWER),
    (workload_notices, Shown.EXPLAIN | Shown.ANSWER),
    (inconsistent_notices, Shown.ANSWER),
    (failed_test_notices, Shown.ANSWER),
    (stage_notices, Shown.DETAILS | Shown.ANSWER),
    (group_column_notices, Shown.EXPLAIN),
    (listed_notice, Shown.EXPLAIN | Shown.ANSWER),
    (drop_notices, Shown.EXPLAIN | Shown.STANDING),
    (label_notices, Shown.EXPLAIN | Shown.ANSWER),
    (key_notices, Shown.EXPLAIN | Shown.STANDING),
    (clamped_value_notices, Shown.EXPLAIN | Shown.STANDING),
    (min_units_notice, Shown.EXPLAIN | Shown.STANDING),
    (cut_notices, Shown.EXPLAIN | Shown.ANSWER),
    (choice_notices, Shown.ANSWER),
    (missing_keys_notice, Shown.EXPLAIN | Shown.COLUMNS),
)
"""All rules. What a reader learns first stands first."""
_SHOWN_AT = {target: tuple(rule for rule, targets in RULES if target in targets) for target in Shown}


def notices(question: NoticedQuestion, target: Shown) -> tuple[str, ...]:
    """Return the notices of a question that are shown at one place."""
    return tuple(notice for rule in _SHOWN_AT[target] for notice in rule(question))
