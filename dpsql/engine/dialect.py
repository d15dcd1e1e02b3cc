"""The contract of an engine's SQL text: names, constants, casts, row functions, aggregates, and the keyed order of rows.

`dpsql.engine.emit` writes every query from few node types and asks a `Dialect` for each piece of text on which
engines differ. A dialect only writes text: it reads no data, and refuses functions that it cannot write exactly
(`engine_function`).

Passing of the constants of comparisons to the engine as parameters.

A dashboard asks the same question with another date or another name. DuckDB takes as long to parse a generated text
as to plan it, and parsed texts are cached (`engine.duckdb.settings`): questions that differ only in such constants
share one text. DuckDB binds the values of parameters before it plans, so filters reach the scan and row groups are skipped
in the same way as with constants in the text. Each parameter is inside a CAST to the type of its literal.

Parameters replace constants on a side of a comparison and in the list of an IN, in WHERE and FILTER over rows.
Arguments of functions (units of time, patterns, formats) stay in the text, and so do bounds and grids, which come
from the policy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import date, datetime
from fractions import Fraction
from math import isfinite
from typing import Any, ClassVar

from dpsql.engine.query import Source
from dpsql.errors.exceptions import refuse
from dpsql.media.text import sql_name
from dpsql.plan.intervals import Type
from dpsql.plan.plan import (
    BoundedBlock,
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    ReleasedValue,
    SemiJoin,
    Term,
    TermKind,
    UnitAggregate,
    UnitWindow,
)
from dpsql.policy import Table
from dpsql.storage.records import dataclass, replace

Template = Callable[[Call, list[str]], str]
"""A function that returns the text of a call from the texts of its arguments."""

MOST_LENGTH = 2_000_000
"""Most characters of an expression. Some engines repeat an argument (Spark that of `lower` four times), so that calls nested
twenty deep would fill the memory. Statements are far shorter, and so is what the binder's MOST_WEIGHT allows in DuckDB."""

MOST_SENT_BYTES = 1 << 16
"""Most bytes of a group's key that a server sends. PostgreSQL sends at most 1 GB for a group, with its quotes doubled, and Spark
2 GB for 10,000 groups."""

MEETS_NULL = frozenset({
    "and", "or", "case", "coalesce", "least", "greatest", "in", "nullif", "not_distinct", "is_null", "is_true",
    "is_false", "concat_ws",
})  # fmt: skip
"""Functions that a bare NULL does not make NULL. For other functions the engine may not know which overload NULL means."""


def is_always_null(node: Call) -> bool:
    """Return whether a call is written as NULL, without its arguments."""
    bare = any(argument.facts.type is Type.NULL for argument in node.arguments)
    return node.facts.type is Type.NULL or (bare and node.function not in MEETS_NULL)


def constant_of(
    value: Any, integer: Callable[[int], str], real: Callable[[float], str], text: Callable[[str], str]
) -> str:
    """Return a constant with its type, from the texts of an engine's integers, doubles and texts."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, (Fraction, float)):
        return real(float(value))
    return time_constant(value) if isinstance(value, date) else text(str(value))


def time_constant(value: date) -> str:
    """Return a date or a timestamp as a constant, which all engines write alike."""
    return f"(TIMESTAMP '{value.isoformat(' ')}')" if isinstance(value, datetime) else f"(DATE '{value.isoformat()}')"


def in_calendar(type_: Type, value: str) -> str:
    """Return a date or timestamp in the years 1 to 9999; others (BC, infinity) are NULL, so that no function overflows."""
    first, last = (date.min, date.max) if type_ is Type.DATE else (datetime.min, datetime.max)
    return f"(CASE WHEN {value} BETWEEN {time_constant(first)} AND {time_constant(last)} THEN {value} END)"


@dataclass(frozen=True)
class Parameter:
    """A placeholder for the value of a literal: number `number` (from 1) of the query's parameters."""

    number: int
    type: Type


class Dialect(ABC):
    """The text of one engine. Immutable; one object serves every query."""

    name: ClassVar[str]
    title: ClassVar[str]
    """The engine's name as people write it."""
    types: ClassVar[Mapping[Type, str]]
    functions: ClassVar[Mapping[str, Template]]
    """Row functions, which are total and equal to `dpsql.functions.evaluate` for every value."""
    unsupported: ClassVar[Mapping[str, str]] = {}
    """Row functions that the engine cannot compute exactly, each with the reason."""
    takes_parameters: ClassVar[bool]
    """Whether constants may be passed separately from the text."""
    clamps_on_grid: ClassVar[bool] = False
    """Whether `moved_to_grid` also clamps and rounds, so that its text is the row's integer."""
    groups_by_few_values: ClassVar[bool] = False
    """Whether grouping rows by a number with few values takes less time than the sums of products over all rows."""
    most_places: ClassVar[int] = 0
    """Most groups that are held as bits of an integer (`emit.group_caps`); 0: the engine has no such functions of lists."""
    without_clipping: ClassVar[str] = ""
    """The reason why units' sums cannot be clipped (max_total, max_count); "" if they can."""

    # --- names, constants, casts --------------------------------------------------------------------------------------

    def identifier(self, name: str) -> str:
        return sql_name(name)

    @abstractmethod
    def constant(self, value: Any) -> str:
        """Return a constant with its type, so that the engine promotes no operand by its own rules."""

    def parameter(self, parameter: Parameter) -> str:
        """Return a parameter in the type of its literal."""
        return f"CAST(${parameter.number} AS {self.types[parameter.type]})"

    @abstractmethod
    def cast_column(self, source: str, type_: Type, engine_type: str) -> str:
        """Return a source column in our type, with texts compared byte by byte; a value that does not fit is NULL."""

    def columns_of(self, table: Table, source: Source) -> dict[str, str]:
        """Return the texts of a table's columns in the types of the policy, by name."""
        return {
            column.name: self.cast_column(self.identifier(column.name), Type(column.type), source.types[column.name])
            for column in table.columns.values()
        }

    def listed_values(self, table: Table, source: Source, most: int) -> dict[str, str]:
        """Return the queries for the values of a table's columns that may be keys (NULL last), by column: at most `most` + 1."""
        return {
            column: f"SELECT DISTINCT {value} AS v FROM {source.sql} ORDER BY v NULLS LAST LIMIT {most + 1}"
            for column, value in self.columns_of(table, source).items()
            if table.columns[column].type not in ("real", "timestamp")
        }

    def listed_rows(self, table: Table, source: Source, most: int) -> str:
        """Return the query for the rows of a table in the types of the policy: at most `most` + 1."""
        values = self.columns_of(table, source).items()
        items = ", ".join(f"{value} AS {self.identifier(column)}" for column, value in values)
        return f"SELECT {items} FROM {source.sql} LIMIT {most + 1}"

    def released(self, result: str) -> str:
        """Return the name of a released result's table (`EngineQuery.released`), which no table of the source has."""
        return self.identifier(result)

    # --- row expressions ----------------------------------------------------------------------------------------------

    def expression(self, node: Expr) -> str:
        """Return the text of a row expression. Raises Refusal engine_function, and heavy_expression if repetitions of arguments
        make it longer than MOST_LENGTH."""
        if isinstance(node, Column):
            return self.identifier(node.name)
        if isinstance(node, Literal):
            if isinstance(node.value, Parameter):
                return self.parameter(node.value)
            typed = node.value is not None or node.facts.type is Type.NULL
            return self.constant(node.value) if typed else self._null(node.facts.type)
        if isinstance(node, ReleasedValue):
            return self.released_value(node)
        if node.facts.type is Type.NULL:
            return "NULL"
        if is_always_null(node):
            return self._null(node.facts.type)
        if node.function not in self.functions:
            raise refuse(
                "engine_function",
                function=node.function, engine=self.title, reason=self.unsupported.get(node.function, ""),
            )  # fmt: skip
        text = self.functions[node.function](node, [self.expression(argument) for argument in node.arguments])
        if len(text) > MOST_LENGTH:
            raise refuse("heavy_expression")
        return text

    def condition(self, node: Expr) -> str:
        """Return the text of a condition. A bare NULL gets a type, which some engines require."""
        return self._null(Type.BOOLEAN) if node.facts.type is Type.NULL else self.expression(node)

    def released_value(self, node: ReleasedValue) -> str:
        """Return the text that reads the single value of a released result."""
        return f"(SELECT c0 FROM {self.released(node.name)})"

    def _null(self, type_: Type) -> str:
        return f"CAST(NULL AS {self.types[type_]})"

    @abstractmethod
    def is_nan(self, value: str) -> str:
        """Return the condition that a real is NaN."""

    @abstractmethod
    def unsigned_zero(self, value: str) -> str:
        """Return a real with -0.0 and 0.0 made the same."""

    @abstractmethod
    def real_key(self, value: str) -> str:
        """Return a real by which rows are grouped: the two zeros, and NaN of either sign, are one value each."""

    def sent_text(self, value: str) -> str:
        """Return a text that leaves the engine as part of a group; NULL instead of one of more than MOST_SENT_BYTES, unless the
        engine sends very long texts as well."""
        return f"(CASE WHEN octet_length({value}) <= {MOST_SENT_BYTES} THEN {value} END)"

    @abstractmethod
    def sign_of(self, value: str) -> str:
        """Return a text that distinguishes the two zeros, which are equal, and not NaN by its sign, which no question sees."""

    def moved_to_grid(self, value: str, lower: float, upper: float, centre: float, grid: int, type_: str) -> str:
        """Return (value - centre) * 2**grid in doubles, which never fails; if `clamps_on_grid`, of the value clamped to [lower,
        upper], rounded half to even, as an integer of `type_`, NULL for NaN. Subtraction is monotone and the scaling exact, so
        order is kept."""
        moved = value if centre == 0 else f"({value} - {self.constant(centre)})"
        return f"({moved} * {self.constant(2.0**grid)})"

    def real(self, value: str) -> str:
        """Return an integer of up to 38 digits as a double."""
        return f"CAST({value} AS {self.types[Type.REAL]})"

    def nearest_integer(self, value: str, type_: str) -> str:
        """Return a real inside the bounds of `type_`, rounded half to even."""
        return f"CAST({value} AS {type_})"

    @abstractmethod
    def wide(self, value: str) -> str:
        """Return an integer in a type that holds 38 digits."""

    @abstractmethod
    def narrow(self, value: str) -> str:
        """Return an integer of up to 38 digits as an integer of 64 bits, or NULL if it does not fit."""

    def truth_value(self, condition: str) -> str:
        """Return 1 for true and 0 for false, as integers of 64 bits."""
        return f"CAST({condition} AS {self.types[Type.INTEGER]})"

    @abstractmethod
    def whole_quotient(self, dividend: str, divisor: str) -> str:
        """Return the quotient of two non-negative integers, rounded down."""

    def halved(self, value: str, times: int) -> str:
        """Return a non-negative integer of 64 bits, divided by 2**`times` and rounded down."""
        return f"({value} >> {times})"

    # --- relations and aggregates -------------------------------------------------------------------------------------

    def derived(self, select: str, alias: str = "#rows") -> str:
        """Return a SELECT as an item of FROM. Items of the same FROM have different `alias`es."""
        return f"({select}) AS {self.identifier(alias)}"

    def semi_join(self, rows: str, listed: str, column: str) -> str:
        """Return a FROM item with the rows of `rows` (also an item) whose `column` is among the values of the SELECT `listed`."""
        return self.derived(f"SELECT * FROM {rows} WHERE {column} IN ({listed})", "#semi")

    @abstractmethod
    def keyed_order(self, key: str, content: list[str]) -> str:
        """Return a hash of `content` under a secret, by which the rows of one unit are ordered (privacy.md 2)."""

    def order_below(self, share: str) -> str:
        """Return a value of `keyed_order` below which about a `share` (a text, at most 1) of the hashes lies; NULL: unknown."""
        return "NULL"

    def require_clipping(self) -> None:
        """Raise Refusal engine_function if units' sums cannot be clipped."""
        if self.without_clipping:
            function = "clipping (max_total, max_count)"
            raise refuse("engine_function", function=function, engine=self.title, reason=self.without_clipping)

    def sample_number(self, key: str, content: list[str], samples: int) -> str:
        """Return a number from 0 to `samples` - 1 by a hash of `content` under a secret. Raises Refusal engine_function."""
        reason = "no hash for samples of units is written for it"
        raise refuse("engine_function", function="SAMPLE_AGGREGATE", engine=self.title, reason=reason)

    def entropy(self, value: str) -> str:
        """Return the entropy in bits of a group's values, independent of the order of rows. Raises Refusal engine_function."""
        reason = "it has no aggregate that counts equal values inside of a group"
        raise refuse("engine_function", function="ENTROPY of a sample", engine=self.title, reason=reason)

    def exact_sum(self, value: str, filtered: str = "", most: int = 2**63) -> str:
        """Return the exact sum of integers of at most `most` in size; NULL without rows. `filtered`: a FILTER, an OVER, or ""."""
        return f"sum({value}){filtered}"

    @abstractmethod
    def distinct_sum(self, value: str, condition: str, integer: Callable[[str], str]) -> str:
        """Return the sum of `integer` (text to text) over the distinct values of a group; `condition` is a FILTER or ""."""


# --- parameters -------------------------------------------------------------------------------------------------------

MOST_LISTED = 100
"""Longer lists of values stay in the text: two lists rarely have the same length, and every value is passed separately."""
_COMPARING = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in"})


@dataclass(frozen=True)
class Parametrised:
    """A block whose constants are `Parameter`s, and their values in order: int, float, str or date."""

    block: BoundedBlock
    values: tuple[Any, ...]


def parametrised(block: BoundedBlock, dialect: Dialect) -> Parametrised:
    """Replace the constants of comparisons in `block` by parameters, equal ones by one, so that equal expressions stay equal."""
    work = _Constants(dialect)
    source = work.relation(block.source)
    terms = tuple(
        replace(term, filter=work.expression(term.filter)) if term.filter is not None and not _follows(term) else term
        for term in block.terms
    )
    return Parametrised(replace(block, source=source, terms=terms) if work.values else block, tuple(work.values))


def _follows(term: Term) -> bool:
    """Return whether a term is computed from the value of its set (`emit.joint_sums`), so that its own filter is not written."""
    return bool(term.shares) and term.kind is TermKind.COUNT


class _Constants:
    """The parameters collected so far."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.values: list[Any] = []
        self._parameters: dict[str, Parameter] = {}

    def relation(self, node: Relation) -> Relation:
        if isinstance(node, Filter):
            return Filter(self.relation(node.source), self.expression(node.predicate))
        if isinstance(node, (Project, UnitAggregate, UnitWindow, Distinct)):
            source = self.relation(node.source)
            return node if source is node.source else replace(node, source=source)
        if isinstance(node, (Join, SemiJoin)):
            left, right = self.relation(node.left), self.relation(node.right)
            return node if left is node.left and right is node.right else replace(node, left=left, right=right)
        return node

    def expression(self, node: Expr) -> Expr:
        if not isinstance(node, Call) or is_always_null(node):
            return node  # an expression that is not written takes no parameter
        comparing = node.function in _COMPARING and len(node.arguments) <= MOST_LISTED
        arguments = tuple(
            self._constant(part) if comparing and isinstance(part, Literal) else self.expression(part)
            for part in node.arguments
        )
        return Call(node.function, arguments, node.facts)

    def _constant(self, node: Literal) -> Literal:
        value = float(node.value) if isinstance(node.value, Fraction) else node.value
        if not _handed_over(value):
            return node
        written = self._dialect.constant(value)
        if written not in self._parameters:
            self.values.append(value)
            self._parameters[written] = Parameter(len(self.values), node.facts.type)
        return Literal(self._parameters[written], node.facts)


def _handed_over(value: Any) -> bool:
    """Return whether the engine receives exactly this value. Truth values and NULL change the meaning of a query text; before
    DuckDB 2 a text value ended at its first NUL."""
    if isinstance(value, str):
        return "\0" not in value
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, (int, date)) and not isinstance(value, bool)
