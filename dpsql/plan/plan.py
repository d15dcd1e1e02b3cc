"""The relational language in which all privacy properties are proven: ten relations, four expressions, one block.

Plans are frozen values: two questions are the same exactly when their plans are equal. dpsql chooses the column names inside a
plan (deterministically, from the plan's shape); they are never the analyst's aliases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache
from math import prod
from operator import attrgetter, is_not
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol, Union

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.canonical_text import ADDED, KEPT_TEXTS, compared_fields
from dpsql.plan.formulas import Element, MeasureFormula, NoisyValue, Number, Operation
from dpsql.plan.intervals import ANY_GROUPS, Facts, GroupFacts, Type, literal_facts
from dpsql.policy import PolicyColumn, Table
from dpsql.policy.fields import written_as
from dpsql.policy.types import UNBOUNDED, ContributionBounds
from dpsql.privacy.mechanisms.contract import Norm
from dpsql.storage.records import dataclass, field, hashed_once, replace

if TYPE_CHECKING:
    from sqlglot import exp


# --- combinations of public keys --------------------------------------------------------------------------------------

# Combinations of public keys, where an answer does not have all of them.
# The *grid* of public keys holds every combination of their values, the first key slowest. Conditions on several keys at
# once, keys that depend on each other, and rows of public tables leave only a part of it; the rest belongs to no group.

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Combinations:
    """The groups of an answer as numbers of grid cells, ascending. `mark` is their fingerprint.

    `whole`: no row that the block reads has a missing combination; otherwise HAVING excluded groups that have rows.
    """

    mark: str
    whole: bool
    numbers: Numbers = field(compare=False, repr=False)

    def positions(self, sizes: Sequence[int]) -> list[Numbers]:
        """Return for each key the positions of the groups' values among the key's values; `sizes`: their numbers by key."""
        return positions(self.numbers, sizes)


def positions(numbers: Numbers, sizes: Sequence[int]) -> list[Numbers]:
    """Return the positions of cells among the values of each key, one array per key."""
    by_key, rest = [], numbers
    for size in reversed(sizes):
        by_key.append(rest % size)
        rest = rest // size
    return by_key[::-1]


def combinations(numbers: Numbers, whole: bool) -> Combinations:
    """Return the combinations with these cell numbers, which are ascending and unique."""
    return Combinations(hashlib.sha256(np.ascontiguousarray(numbers, "<i8").tobytes()).hexdigest(), whole, numbers)


def group_count(values: Sequence[Sequence[object] | None], listed: Combinations | None) -> int:
    """Return the number of groups of public keys (1 without keys; a private key counts as one value)."""
    return len(listed.numbers) if listed is not None else prod(1 if value is None else len(value) for value in values)


# --- plan -------------------------------------------------------------------------------------------------------------

UNIT = "#unit"
"""Name of the hidden column that carries the privacy unit's key through every entity-protected relation."""

OTHER = "s.c."
"""Prefix of the right side's column names in the condition of a semi-join."""


# --- row expressions ------------------------------------------------------------------------------------------------


@hashed_once
@dataclass(frozen=True)
class Column:
    """A column of the relation below."""

    name: str
    facts: Facts


@hashed_once
@dataclass(frozen=True)
class Literal:
    """A constant of the question (None is SQL's NULL)."""

    value: Any
    facts: Facts


def literal(value: Any) -> Literal:
    return Literal(value, literal_facts(value))


@hashed_once
@dataclass(frozen=True)
class Call:
    """A total row function of `dpsql.functions.numeric`."""

    function: str
    arguments: tuple[Expr, ...]
    facts: Facts


@dataclass(frozen=True)
class ReleasedValue:
    """The single value of the `Result` called `name`: a constant that is unknown until that result is released."""

    name: str
    facts: Facts


Expr = Union[Column, Literal, Call, ReleasedValue]


def columns_read(expression: Expr) -> list[Column]:
    """Return the columns of an expression in their order, repeated ones as well. A call keeps its own."""
    if not isinstance(expression, Call):
        return [expression] if isinstance(expression, Column) else []
    columns = expression.__dict__.get("#columns")
    if columns is None:
        columns = [column for part in expression.arguments for column in columns_read(part)]
        expression.__dict__["#columns"] = columns
    return [*columns]


def names_read(expression: Expr) -> set[str]:
    return set(map(attrgetter("name"), columns_read(expression)))


# --- relations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scan:
    """A base table of the policy; a protected table means its bounded view (at most max_rows rows of each unit)."""

    table: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Filter:
    """Rows for which `predicate` is true."""

    source: Relation
    predicate: Expr


@dataclass(frozen=True)
class Project:
    """New columns computed row by row; the hidden unit column is kept."""

    source: Relation
    columns: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class Join:
    """Join of `left` (always protected) with `right` on equal keys. `kind` is "inner" or "left". Columns of the left side are
    renamed "a.<name>", of the right side "b.<name>"; `keys` use these names. `on_unit`: both sides are protected, and their units
    are compared too. How many rows match follows from keys and policy (`stability.matches`)."""

    left: Relation
    right: Relation
    kind: str
    keys: tuple[tuple[Expr, Expr], ...]
    on_unit: bool


@dataclass(frozen=True)
class SemiJoin:
    """Rows of `left` for which `right` has (or, `negated`, does not have) a row with equal keys.

    Keys of `right` are over its own columns. `on_unit`: `right` is protected, and only rows of the same unit count. `in_list`:
    NULLs are treated as in SQL's IN, otherwise as in EXISTS. `condition` must also hold for both rows; in it, columns of `left`
    keep their names and columns of `right` are called OTHER + name.
    """

    left: Relation
    right: Relation
    keys: tuple[tuple[Expr, Expr], ...]
    on_unit: bool
    negated: bool
    in_list: bool
    condition: Expr | None = None


@dataclass(frozen=True)
class Union_:
    """UNION ALL: rows of both, columns matched by position and named as in the first."""

    sources: tuple[Relation, ...]


@dataclass(frozen=True)
class UnitAggregate:
    """One row for each privacy unit and combination of `keys`: exact aggregates of the unit's own rows.

    `keys` do not include the unit itself, which is the visible column "u". `columns` are (name, aggregate word, argument or None,
    filter or None, facts of the result).
    """

    source: Relation
    keys: tuple[tuple[str, Expr], ...]
    columns: tuple[tuple[str, str, Expr | None, Expr | None, Facts], ...]

    def value(self, name: str) -> Expr | None:
        """Return what the column `name` takes from a single row, which the filter chooses by a window, as in ARG_MAX; None for
        the result of an aggregation."""
        columns = ((argument, condition) for label, _, argument, condition, _ in self.columns if label == name)
        argument, condition = next(columns, (None, None))
        chosen = condition is not None and any(read.startswith("#w") for read in names_read(condition))
        return argument if chosen else None


@dataclass(frozen=True)
class ReleasedRows:
    """Rows of the `Result` called `name`: a public table once that result is released. `unique`: sets of columns on each of which
    no two rows agree (NULLs apart); an empty set means at most one row. `content`: the name until the rows are released, then
    their digest (`filled`). `repeats`: sets of columns, with the most rows that agree on each. `labels`: the columns'
    names in the question."""

    name: str = field(compare=False)
    columns: tuple[Column, ...]
    unique: tuple[tuple[str, ...], ...]
    content: str
    repeats: tuple[tuple[tuple[str, ...], int], ...] = field(default=(), metadata=ADDED)
    labels: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Sorting:
    """One expression of ORDER BY."""

    by: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Window:
    """A window function over one unit's rows with equal `keys`: row_number, rank, dense_rank, lag, lead, first_value, or an
    aggregate word of `UnitAggregate`. `offset` belongs to lag and lead."""

    name: str
    word: str
    argument: Expr | None
    filter: Expr | None
    offset: int
    keys: tuple[Expr, ...]
    order: tuple[Sorting, ...]
    facts: Facts


@dataclass(frozen=True)
class UnitWindow:
    """Rows of `source` with one more column for each window; every window is over rows of a single unit."""

    source: Relation
    windows: tuple[Window, ...]


@dataclass(frozen=True)
class Distinct:
    """Rows of `source` without repetitions. They belong to no unit: another unit may have had the same row."""

    source: Relation


Relation = Union[Scan, Filter, Project, Join, SemiJoin, Union_, UnitAggregate, ReleasedRows, UnitWindow, Distinct]


@dataclass(frozen=True)
class Key:
    """One GROUP BY expression. `values`: its public keys in order, None when they are private; they follow from the expression
    and `left` (fingerprint of the values that conditions leave; "": all). `whole`: False where HAVING leaves rows without a
    group. `drops`: columns of the key in which rows that meet the conditions may have values outside the public keys."""

    name: str
    expression: Expr
    values: tuple[Any, ...] | None = field(compare=False)
    left: str = ""
    whole: bool = True
    drops: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Measure:
    """One SQL aggregate: `aggregate` is the word of sql.md in lower case; `arguments` its row expressions. `per_group`: bounds to
    which a unit's result in each group is clamped before units are combined. After binding no block has such a measure:
    `binder.group_bounds` rewrites it as a measure of the units' results."""

    name: str
    aggregate: str
    arguments: tuple[Expr, ...]
    distinct: bool
    filter: Expr | None
    per_group: tuple[Literal, Literal] | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True)
class Block:
    """An innermost aggregation over a protected relation: everything that is measured with noise at once, over disjoint groups.

    `combinations`: the combinations of its keys' values that are groups, where all keys are public (None: all combinations)."""

    name: str
    source: Relation
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    combinations: Combinations | None = field(default=None, metadata=ADDED)


class TermKind(str, Enum):
    """The summand of a term: an integer per row, per unit or per distinct value."""

    COUNT = "count"
    SUM = "sum"
    UNITS = "units"
    DISTINCT = "distinct"
    DISTINCT_SUM = "distinct sum"
    DISTINCT_SHARE = "distinct share"
    SQUARE_PART = "square part"
    PRODUCT_PART = "product part"
    PAIR_PART = "pair part"


@dataclass(frozen=True)
class Clip:
    """Clipping of a unit's vector of sums over all groups: its norm `norm` (None: not chosen yet) is at most `most` (grid
    units)."""

    most: int
    norm: Norm | None = None


@dataclass(frozen=True)
class Term:
    """One basis term (privacy.md 4).

    COUNT: rows that satisfy `filter` and whose `value` (when given) is not NULL. SUM: the integer round((clamp(value, lower,
    upper) - centre) * 2**grid); `lower`, `upper`, `centre` are doubles for real columns and ints for integer columns. UNITS:
    distinct privacy units. DISTINCT: distinct values of `value`; DISTINCT_SUM: their SUM. SQUARE_PART, PRODUCT_PART, PAIR_PART:
    products of a row's integers, by `place` (`joint_sums`). `magnitude` bounds what one row (unit, value) adds, in grid units.
    `clip`: for COUNT and SUM; their grid then excludes overflow (`sum_terms`) and is `finer` bits finer than the grid of the
    rows' integers, of which a unit adds a share in steps of 2**-finer. `shares`: a set of terms to which a row adds one
    `magnitude` in total (or `absent`). `places`: the most different values that a unit brings to a DISTINCT, over all groups
    (None: all); for a DISTINCT_SHARE an earlier step releases it, and each value adds `magnitude` / places.
    """

    name: str
    kind: TermKind
    value: Expr | None
    filter: Expr | None
    magnitude: int
    grid: int = 0
    lower: float | int = 0
    upper: float | int = 0
    centre: float | int = 0
    clip: Clip | None = None
    finer: int = 0
    shares: str = ""
    absent: bool = False
    place: int = field(default=0, metadata=ADDED)
    places: Expr | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True)
class Caps:
    """Contribution bounds of one block. `rows_per_unit`: stability of the relation; `groups`: most groups that one unit touches;
    `bounds`: bounds that the engine enforces; `rows_in_group`: most rows of one unit in one group (`stability.rows_in_group`)."""

    rows_per_unit: int
    groups: int
    bounds: ContributionBounds = field(default=UNBOUNDED, metadata=written_as("max_groups", "max_rows_per_group"))
    rows_in_group: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Promise:
    """A promise of the policy on which stability relies: at most `most` rows of the table agree on `columns`."""

    table: str
    columns: tuple[str, ...]
    most: int


class Measurement(Protocol):
    """Engine results other than sums that a block reads, over the same groups; each kind has its own way of adding noise.

    Each floor has a part registered under `word` (`dpsql.plan.measurements`). `name` distinguishes the measurements of a block;
    `numbers` names the released numbers, which formulas read like terms.
    """

    @property
    def word(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def numbers(self) -> tuple[str, ...]: ...

    @property
    def term(self) -> Term:
        """The value and the condition that are read of a row, in the form of a SUM."""


@dataclass(frozen=True)
class BoundedBlock:
    """A block reduced to its basis: sums (`terms`), and `measurements` of other kinds. `formulas` gives each measure over terms
    and released numbers. `unit_weights`: what a unit adds to the count that admits private keys, by the number of its keys
    (`partition_selection.WeightedThreshold`; empty: 1). `promises`: of the policy, on which rows_per_unit relies. `set_parts`:
    sets of joint sums that take another number of parts of the budget than one (`pricing.sharing`)."""

    name: str
    source: Relation
    keys: tuple[Key, ...]
    terms: tuple[Term, ...]
    formulas: tuple[MeasureFormula, ...]
    selection_term: str | None
    caps: Caps
    groups: GroupFacts = field(default=ANY_GROUPS, compare=False)
    measurements: tuple[Measurement, ...] = field(default=(), metadata=ADDED)
    combinations: Combinations | None = field(default=None, metadata=ADDED)
    unit_weights: tuple[tuple[int, int], ...] = field(default=(), metadata=ADDED)
    promises: frozenset[Promise] = field(default=frozenset(), compare=False)
    set_parts: tuple[tuple[str, Fraction], ...] = field(default=(), metadata=ADDED)

    @cached_property
    def reads_results(self) -> bool:
        """Return whether the block reads a result that is not released yet."""
        return bool(results_read(self))


@dataclass(frozen=True)
class PublicInput:
    """A public table that the remainder reads: its name in the sandbox and the columns it needs."""

    name: str
    scan: Scan


@dataclass(frozen=True, eq=False)
class Result:
    """A subquery whose rows a later block reads: `query` is like a plan's remainder, over earlier blocks and public tables, and
    returns `columns` in their types. `unique`, `repeats`: as in `ReleasedRows`; `promised`: sets of `unique` that the policy
    promises. `value_at`: where it stands as one value, if only the rows of public tables, looked at before the charge, show that
    it has one row."""

    name: str
    query: exp.Query
    columns: tuple[Column, ...]
    unique: tuple[tuple[str, ...], ...]
    repeats: tuple[tuple[tuple[str, ...], int], ...] = ()
    promised: tuple[tuple[tuple[str, ...], str, str], ...] = ()
    value_at: int | None = None


@dataclass(frozen=True)
class TotalCut:
    """Privately chosen bound to which one unit's SUM of `value` (over rows that satisfy `filter`) is scaled down in the blocks
    `readers`: the number of the Result called `result`, from `least` to `most`, which block `block` chooses among the totals of
    units. `option`: the one that asks for it. Under max_count the sum is one of ones, in place of a count; under max_values the
    number is the most different values that a unit brings to COUNT(DISTINCT value), chosen among the units' numbers of values."""

    result: str
    block: str
    readers: tuple[str, ...]
    value: Expr
    filter: Expr | None
    least: Fraction
    most: Fraction
    option: str = "max_total"

    @property
    def places(self) -> bool:
        return self.option == "max_values"


@dataclass(frozen=True, eq=False)
class Plan:
    """A question divided into private blocks, results that later blocks read, and the public remainder.

    Each block reads only results of earlier blocks. `remainder` is a validated sqlglot query over tables named like the blocks
    (columns: keys "k0".., measures "m0"..) and like the public inputs. It may hold DP_INTERVAL_LOW/HIGH/ERROR(expr) as anonymous
    functions. `empty`: the text says outright that the answer has no rows (LIMIT 0), so that nothing need be measured.
    """

    sql: str
    blocks: tuple[Block, ...]
    public_inputs: tuple[PublicInput, ...]
    remainder: exp.Query
    output_names: tuple[str, ...]
    results: tuple[Result, ...] = ()
    cuts: tuple[TotalCut, ...] = ()
    empty: bool = False


_WITHOUT_PARTS = frozenset({Facts, NoisyValue, Number, Operation, Element, Scan, Caps, GroupFacts, ContributionBounds})
"""Types of plan values that contain no expression or relation except the columns of a table."""
_ATOMS = frozenset({str, int, bool, float, NoneType, Fraction, TermKind})
"""Types of values that are no plan."""


def types_of(node: Relation) -> dict[str, Type | None]:
    """Return the types of all columns of a relation by name, hidden ones included; that of the unit's own key is None."""
    if isinstance(node, (Scan, ReleasedRows)):
        return {column.name: column.facts.type for column in node.columns}
    if isinstance(node, (Filter, Distinct)):
        return types_of(node.source)
    if isinstance(node, Project):
        return {label: expression.facts.type for label, expression in node.columns}
    if isinstance(node, Join):
        sides = (("a.", node.left), ("b.", node.right))
        return {prefix + name: type_ for prefix, side in sides for name, type_ in types_of(side).items()}
    if isinstance(node, SemiJoin):
        return types_of(node.left)
    if isinstance(node, Union_):
        return types_of(node.sources[0])
    if isinstance(node, UnitWindow):
        return {**types_of(node.source), **{window.name: window.facts.type for window in node.windows}}
    keys = {label: key.facts.type for label, key in node.keys}
    return {"u": None, **keys, **{column[0]: column[4].type for column in node.columns}}


def filled(value: Any, replaced: Callable[[Any], Any]) -> Any:
    """Return a plan with parts `replaced`; where that returns the part itself, its own parts are visited. Facts stay."""
    kind: Any = type(value)
    if kind in _ATOMS:
        return value
    if (new := replaced(value)) is not value:
        return new
    if isinstance(value, tuple):
        parts = tuple([part if type(part) in _ATOMS else filled(part, replaced) for part in value])
        return parts if any(map(is_not, parts, value)) else value
    changed = {
        name: part
        for name in (() if kind in _WITHOUT_PARTS else compared_fields(kind) or ())
        if type(old := getattr(value, name)) not in _ATOMS and (part := filled(old, replaced)) is not old
    }
    return replace(value, **changed) if changed else value


Names = Mapping[str, str]
"""New names of columns by their old ones."""


def named(value: Any, names: Names) -> Any:
    """Return a part of a plan with the columns named anew."""
    if not names:
        return value
    return filled(value, lambda c: replace(c, name=names[c.name]) if isinstance(c, Column) and c.name in names else c)


def moved(prefix: str, expression: Expr, down: bool = False) -> Expr:
    """Return an expression with its columns renamed to their names above the join, or (`down`) below it."""

    def renamed(part: Any) -> Any:
        if not isinstance(part, Column):
            return part
        return replace(part, name=part.name.removeprefix(prefix) if down else prefix + part.name)

    renamed_: Expr = filled(expression, renamed)
    return renamed_


def parts_of(value: Any) -> Iterator[Any]:
    """Yield every relation and expression of a plan, and what else holds some."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        kind: Any = type(part)
        if kind in _ATOMS:
            continue
        if isinstance(part, tuple):
            waiting += part[::-1]
            continue
        yield part
        if kind not in _WITHOUT_PARTS:
            waiting += map(part.__getattribute__, reversed(compared_fields(kind) or ()))


def results_read(value: Any) -> tuple[str, ...]:
    """Return the names of the results that a plan reads and that are not released yet, each once."""
    read = (
        part.name
        for part in parts_of(value)
        if isinstance(part, ReleasedValue) or (isinstance(part, ReleasedRows) and part.content == part.name)
    )
    return tuple(dict.fromkeys(read))


# Every expression holds facts, and is compared by its text on the way to its form; a scan is one value for all questions.
KEPT_TEXTS |= {Facts: 4_000, Column: 4_000, Call: 1_000, Scan: 1 << 30}


# --- tables of the policy ---------------------------------------------------------------------------------------------

# Tables of the policy as relations of a plan, with the facts that the policy declares.


def facts_of(column: PolicyColumn) -> Facts:
    """Return the facts of a column (type, bounds, domain, nullability, ...) as the policy declares them."""
    type_ = Type(column.type)
    lower: Any = column.lower
    upper: Any = column.upper
    domain = column.domain
    present = [value for value in domain or () if value is not None]
    if present and (type_.numeric or type_.temporal):
        lower, upper = min(present), max(present)
    if type_.numeric:
        lower, upper = (None if bound is None else Fraction(bound) for bound in (lower, upper))
    values = None if domain is None else tuple(domain)
    return Facts(type_, lower, upper, values, column.nullable, column.max_total, column.outside, column.scale)


@lru_cache(maxsize=1024)
def base_scan(table: Table) -> Scan:
    """Return the scan of all columns of a policy table. It is cached, so that `plan.canonical_text` writes it only once."""
    return Scan(table.name, tuple(Column(column.name, facts_of(column)) for column in table.columns.values()))
