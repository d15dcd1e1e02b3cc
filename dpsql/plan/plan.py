"""The relational language in which everything about privacy is proven: ten relations, four expressions, one block.

Plans are frozen values: two questions are the same question exactly when their plans are equal. Column names inside
a plan are ours (deterministic from the shape of the plan), never the analyst's aliases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Union

from dpsql.plan.canonical_text import ADDED, KEPT_TEXTS, compared_fields
from dpsql.plan.combinations import Combinations
from dpsql.plan.formulas import Element, MeasureFormula, NoisyValue, Number, Operation
from dpsql.plan.intervals import ANY_GROUPS, Facts, GroupFacts
from dpsql.policy.bounds import UNBOUNDED, ContributionBounds, written_as
from dpsql.privacy.mechanisms.contract import Norm

if TYPE_CHECKING:
    from sqlglot import exp

UNIT = "#unit"
"""Name of the hidden column that carries the privacy unit's key through every entity-protected relation."""

OTHER = "s.c."
"""What stands before the names of the right side's columns in the condition of a semi-join."""


# --- row expressions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of the relation below."""

    name: str
    facts: Facts


@dataclass(frozen=True)
class Literal:
    """A constant of the question (None is SQL's NULL)."""

    value: Any
    facts: Facts


@dataclass(frozen=True)
class Call:
    """A total row function of `dpsql.functions.numeric`."""

    function: str
    arguments: tuple[Expr, ...]
    facts: Facts


@dataclass(frozen=True)
class ReleasedValue:
    """The one value of the `Result` called `name`: a constant, not known before that is released."""

    name: str
    facts: Facts


Expr = Union[Column, Literal, Call, ReleasedValue]


# --- relations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scan:
    """A base table of the policy; a protected one stands for its bounded view (at most max_rows rows of each unit)."""

    table: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Filter:
    """Rows for which `predicate` is true."""

    source: Relation
    predicate: Expr


@dataclass(frozen=True)
class Project:
    """New columns computed row by row; the hidden unit column goes through."""

    source: Relation
    columns: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class Join:
    """`left` (always protected) with `right` on equal keys.

    `kind` is "inner" or "left"; columns of the left side are renamed "a.<name>", of the right side "b.<name>", and so
    they are named in `keys`. `on_unit`: both sides are protected and their units are compared too. `multiplicity` is
    how many rows of `right` one row of `left` can meet at most (of the same unit, when `on_unit`), and `back` how many
    of `left` one row of `right` can meet (None: nothing is promised).
    """

    left: Relation
    right: Relation
    kind: str
    keys: tuple[tuple[Expr, Expr], ...]
    on_unit: bool
    multiplicity: int
    back: int | None = None


@dataclass(frozen=True)
class SemiJoin:
    """Rows of `left` for which `right` has (or, `negated`, has not) a row with equal keys.

    Keys of `right` are over its own columns. `on_unit`: `right` is protected, and only rows of the same unit count.
    `in_list`: NULLs count as in SQL's IN, else as in EXISTS. `condition` is asked of both rows besides the keys: it names
    columns of `left` as they are, those of `right` OTHER + name.
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

    `keys` do not name the unit itself, which is there as the visible column "u". `columns` are (name, aggregate word,
    argument or None, filter or None, facts of the result).
    """

    source: Relation
    keys: tuple[tuple[str, Expr], ...]
    columns: tuple[tuple[str, str, Expr | None, Expr | None, Facts], ...]


@dataclass(frozen=True)
class ReleasedRows:
    """Rows of the `Result` called `name`: a public table once that is released.

    `unique`: sets of columns, in each of which no two rows have the same values (but NULL); an empty set means at most
    one row. `content`: the name until they are known, then their digest (`filled`). `repeats`: sets with the most equal rows.
    """

    name: str = field(compare=False)
    columns: tuple[Column, ...]
    unique: tuple[tuple[str, ...], ...]
    content: str
    repeats: tuple[tuple[tuple[str, ...], int], ...] = field(default=(), metadata=ADDED)


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
    """Rows of `source` with one more column for each window; every window holds rows of one unit alone."""

    source: Relation
    windows: tuple[Window, ...]


@dataclass(frozen=True)
class Distinct:
    """Rows of `source` without repetitions. They belong to no unit: another unit may have had the same row."""

    source: Relation


Relation = Union[Scan, Filter, Project, Join, SemiJoin, Union_, UnitAggregate, ReleasedRows, UnitWindow, Distinct]


@dataclass(frozen=True)
class Key:
    """One GROUP BY expression; `values`: its public keys in order, None when they are private. They follow from the expression
    and `left` (fingerprint of those that conditions left; "": all). Not `whole`: HAVING leaves rows without a group.
    `drops`: its columns, where rows that meet the conditions may have values that are none of the public keys."""

    name: str
    expression: Expr
    values: tuple[Any, ...] | None = field(compare=False)
    left: str = ""
    whole: bool = True
    drops: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Measure:
    """One SQL aggregate: `aggregate` is the word of sql.md in lower case; `arguments` its row expressions.

    `per_group`: what it is among the rows of one unit in one group is kept within these first. No block has such a measure:
    `binder.group_bounds` makes one of the units' results of it."""

    name: str
    aggregate: str
    arguments: tuple[Expr, ...]
    distinct: bool
    filter: Expr | None
    per_group: tuple[Literal, Literal] | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True)
class Block:
    """A lowest aggregation over a protected relation: what is measured with noise, all at once, over disjoint groups.

    `combinations`: of the values of its keys, all of them public, those that are groups (None: all)."""

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
    """A unit's vector of sums over all groups is scaled down to `norm` (None: not chosen yet) at most `most` (grid units)."""

    most: int
    norm: Norm | None = None


@dataclass(frozen=True)
class Term:
    """One basis term (privacy.md 4).

    COUNT: rows that pass `filter` and whose `value` (when given) is not NULL. SUM: the integer round((clamp(value, lower, upper)
    - centre) * 2**grid); `lower`, `upper`, `centre` are doubles for real columns and ints for integer columns. UNITS: distinct
    privacy units. DISTINCT: distinct values of `value`; DISTINCT_SUM: their SUM. SQUARE_PART, PRODUCT_PART, PAIR_PART: products
    of a row's integers, by `place` (`joint_sums`). `magnitude` bounds what one row (unit, value) adds, in grid units. `clip`: of
    COUNT and SUM; their grid then lets nothing overflow (`sum_terms`), `finer` bits finer than that of the rows' integers, of
    which a unit adds a share in steps of 2**-finer. `shares`: a set to which a row adds one `magnitude` in all (or `absent`).
    `places`: how many different values each unit brings to a DISTINCT, in all groups together (None: all); to a DISTINCT_SHARE,
    where that is released before, and each value adds `magnitude` / places.
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
    """Contribution bounds of one block. `rows_per_unit`: stability of the relation; `groups`: most that one unit touches;
    `bounds`: those that the engine enforces; `rows_in_group`: most rows of one unit in one group (`stability.rows_in_group`)."""

    rows_per_unit: int
    groups: int
    bounds: ContributionBounds = field(default=UNBOUNDED, metadata=written_as("max_groups", "max_rows_per_group"))
    rows_in_group: int | None = field(default=None, compare=False)


class Measurement(Protocol):
    """What a block asks the engine for beside its sums, over the same groups, and makes noisy in a way of its own.

    Each floor has its part registered under `word` (`dpsql.plan.measurements`). `name` tells the measurements of a block
    apart; `numbers` names the released numbers, which formulas read as they read terms.
    """

    @property
    def word(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def numbers(self) -> tuple[str, ...]: ...

    @property
    def term(self) -> Term:
        """The value and the condition of a row that it reads, as a SUM would read them."""


@dataclass(frozen=True)
class BoundedBlock:
    """A block reduced to its basis: sums (`terms`), and `measurements` of other kinds. `formulas` gives each measure
    over terms and released numbers. `unit_weights`: what a unit adds to the count that admits private keys, by the number of
    its keys (`partition_selection.WeightedThreshold`; none: 1)."""

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

    @cached_property
    def reads_results(self) -> bool:
        """Return whether the block reads a result that is not known yet."""
        return bool(results_read(self))


@dataclass(frozen=True)
class PublicInput:
    """A public table that the remainder reads: its name in the sandbox and the columns it needs."""

    name: str
    scan: Scan


@dataclass(frozen=True, eq=False)
class Result:
    """A subquery whose rows a later block reads: `query` is like the remainder of a plan, over earlier blocks and public
    tables, and returns `columns` in their types. `unique`, `repeats`: as of `ReleasedRows`; `promised`: by the policy."""

    name: str
    query: exp.Query
    columns: tuple[Column, ...]
    unique: tuple[tuple[str, ...], ...]
    repeats: tuple[tuple[tuple[str, ...], int], ...] = ()
    promised: tuple[tuple[tuple[str, ...], str, str], ...] = ()


@dataclass(frozen=True)
class TotalCut:
    """What one unit's SUM of `value` (of rows that pass `filter`) is scaled down to in the blocks `readers`: the number of the
    Result called `result`, from `least` to `most`, which block `block` chooses among the totals of units. `places`: how many
    different values a unit brings to COUNT(DISTINCT value) instead, chosen among the numbers that units have."""

    result: str
    block: str
    readers: tuple[str, ...]
    value: Expr
    filter: Expr | None
    least: Fraction
    most: Fraction
    places: bool = False


@dataclass(frozen=True, eq=False)
class Plan:
    """A question cut into private blocks, results that later ones of them read, and the public remainder.

    Each block reads results of blocks before it alone.
    `remainder` is a validated sqlglot query over tables named like the blocks (columns: keys "k0".., measures
    "m0"..) and like the public inputs. It may hold DP_INTERVAL_LOW/HIGH/ERROR(expr) as anonymous functions.
    """

    sql: str
    blocks: tuple[Block, ...]
    public_inputs: tuple[PublicInput, ...]
    remainder: exp.Query
    output_names: tuple[str, ...]
    results: tuple[Result, ...] = ()
    cuts: tuple[TotalCut, ...] = ()


_WITHOUT_PARTS = (Facts, NoisyValue, Number, Operation, Element, Scan)
"""Values of a plan that hold no expression or relation but the columns of a table."""


def filled(value: Any, replaced: Callable[[Any], Any]) -> Any:
    """Return a plan with its parts as `replaced` returns them (the part itself: look inside). Facts are left as they are."""
    new = replaced(value)
    if new is not value:
        return new
    if isinstance(value, tuple):
        parts = tuple(filled(part, replaced) for part in value)
        return parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    kind: Any = type(value)
    names = () if kind in _WITHOUT_PARTS else compared_fields(kind) or ()
    changed = {name: part for name in names if (part := filled(old := getattr(value, name), replaced)) is not old}
    return replace(value, **changed) if changed else value


def results_read(value: Any) -> tuple[str, ...]:
    """Return names of the results that a plan reads and that are not known yet, each once."""
    names: dict[str, None] = {}

    def note(part: Any) -> Any:
        if isinstance(part, ReleasedValue) or (isinstance(part, ReleasedRows) and part.content == part.name):
            names[part.name] = None
        return part

    filled(value, note)
    return tuple(names)


KEPT_TEXTS |= {Facts: 4_000, Scan: 1 << 30}  # every expression holds facts; a scan is one value for all questions
