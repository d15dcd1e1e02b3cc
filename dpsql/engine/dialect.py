"""The contract of an engine's text: names, constants, casts, row functions, aggregates, and the keyed order of rows.

`dpsql.engine.emit` writes every query from few node types and asks a `Dialect` for each piece of text on which
engines differ. A dialect only writes text: it reads no data, and refuses what it cannot write exactly
(`engine_function`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Column, Expr, Literal, ReleasedValue

Template = Callable[[Call, list[str]], str]
"""The text of a call from the texts of its arguments."""

MOST_LENGTH = 2_000_000
"""Characters of an expression. Some engines need an argument several times (four times that of `lower` in Spark), so that what is
nested twenty deep would fill the memory. Statements are far shorter, and so is in DuckDB what the binder's MOST_WEIGHT allows."""

MEETS_NULL = frozenset({
    "and", "or", "case", "coalesce", "least", "greatest", "in", "nullif", "not_distinct", "is_null", "is_true",
    "is_false", "concat_ws",
})  # fmt: skip
"""Functions that a bare NULL does not make NULL. For the others the engine may not know which overload NULL means."""


def is_always_null(node: Call) -> bool:
    """Return whether a call is written as NULL, without its arguments."""
    bare = any(argument.facts.type is Type.NULL for argument in node.arguments)
    return node.facts.type is Type.NULL or (bare and node.function not in MEETS_NULL)


@dataclass(frozen=True)
class Parameter:
    """A placeholder for the value of a literal: number `number` (from 1 on) of the query's parameters."""

    number: int
    type: Type


class Dialect(ABC):
    """The text of one engine. Immutable; one object serves every query."""

    name: ClassVar[str]
    title: ClassVar[str]
    """The engine's name as people write it."""
    types: ClassVar[Mapping[Type, str]]
    functions: ClassVar[Mapping[str, Template]]
    """Row functions: total, and equal to `dpsql.functions.evaluate` value by value."""
    unsupported: ClassVar[Mapping[str, str]] = {}
    """Row functions that the engine cannot compute exactly, each with the reason."""
    takes_parameters: ClassVar[bool]
    """Whether constants may be handed over beside the text."""
    clamps_on_grid: ClassVar[bool] = False
    """Whether `moved_to_grid` clamps and rounds as well, so that its text is the row's integer."""
    without_clipping: ClassVar[str] = ""
    """Why units' sums are not clipped (max_total, max_count); "" where they are."""

    # --- names, constants, casts --------------------------------------------------------------------------------------

    def identifier(self, name: str) -> str:
        """Return a quoted identifier."""
        return '"' + name.replace('"', '""') + '"'

    @abstractmethod
    def constant(self, value: Any) -> str:
        """Return a constant with its type, so that no operand is promoted by the engine's own rules."""

    def parameter(self, parameter: Parameter) -> str:
        """Return a parameter in the type of its literal."""
        return f"CAST(${parameter.number} AS {self.types[parameter.type]})"

    @abstractmethod
    def cast_column(self, source: str, type_: Type, engine_type: str) -> str:
        """Return a source column in our type, texts compared byte by byte; a value that does not fit is NULL."""

    def released(self, result: str) -> str:
        """Return the table of a released result (`EngineQuery.released`), under a name that no table of the source has."""
        return self.identifier(result)

    # --- row expressions ----------------------------------------------------------------------------------------------

    def expression(self, node: Expr) -> str:
        """Return the text of a row expression. Raises Refusal engine_function, and heavy_expression where what an engine writes
        several times makes it longer than MOST_LENGTH."""
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
        """Return the text of a condition. A bare NULL has a type, which some engines ask for."""
        return self._null(Type.BOOLEAN) if node.facts.type is Type.NULL else self.expression(node)

    def released_value(self, node: ReleasedValue) -> str:
        """Return the one value of a released result."""
        return f"(SELECT c0 FROM {self.released(node.name)})"

    def _null(self, type_: Type) -> str:
        return f"CAST(NULL AS {self.types[type_]})"

    @abstractmethod
    def is_nan(self, value: str) -> str:
        """Return whether a real is NaN."""

    @abstractmethod
    def unsigned_zero(self, value: str) -> str:
        """Return a real with one sign of zero."""

    @abstractmethod
    def real_key(self, value: str) -> str:
        """Return a real by which rows are grouped: of the two zeros and the two signs of NaN, which are equal, always the
        same."""

    @abstractmethod
    def sign_of(self, value: str) -> str:
        """Return what tells reals apart that are equal: the two zeros, and what else the engine can show the signs of."""

    @abstractmethod
    def moved_to_grid(self, value: str, lower: float, upper: float, centre: float, grid: int, type_: str) -> str:
        """(value - centre) * 2**grid in doubles, never an error; where `clamps_on_grid`, of the value clamped to [lower,
        upper], rounded half to even, in the integers of `type_`, NULL for NaN."""

    def real(self, value: str) -> str:
        """Return an integer, of up to 38 digits, as a double."""
        return f"CAST({value} AS {self.types[Type.REAL]})"

    def nearest_integer(self, value: str, type_: str) -> str:
        """Return a real inside the bounds of `type_`, rounded half to even."""
        return f"CAST({value} AS {type_})"

    @abstractmethod
    def wide(self, value: str) -> str:
        """Return an integer in a type that holds 38 digits."""

    @abstractmethod
    def narrow(self, value: str) -> str:
        """Return an integer of up to 38 digits as one of 64 bits, NULL beyond them."""

    @abstractmethod
    def truth_value(self, condition: str) -> str:
        """1 for true and 0 for false, of 64 bits."""

    @abstractmethod
    def whole_quotient(self, dividend: str, divisor: str) -> str:
        """Return the quotient of two integers, neither negative, rounded down."""

    def halved(self, value: str, times: int) -> str:
        """Return an integer of 64 bits, not negative, divided by 2**`times` and rounded down."""
        return f"({value} >> {times})"

    # --- relations and aggregates -------------------------------------------------------------------------------------

    @abstractmethod
    def derived(self, select: str, alias: str = "#rows") -> str:
        """Return a SELECT as an item of FROM. Items of the same FROM have different `alias`es."""

    def semi_join(self, rows: str, listed: str, column: str) -> str:
        """FROM item: those of `rows` (an item) whose `column` the SELECT `listed` has."""
        return self.derived(f"SELECT * FROM {rows} WHERE {column} IN ({listed})", "#semi")

    @abstractmethod
    def keyed_order(self, key: str, content: list[str]) -> str:
        """Return a hash of `content` under a secret, by which the rows of one unit are ordered (privacy.md 2)."""

    def require_clipping(self) -> None:
        """Raise Refusal engine_function where units' sums are not clipped."""
        if self.without_clipping:
            function = "clipping (max_total, max_count)"
            raise refuse("engine_function", function=function, engine=self.title, reason=self.without_clipping)

    def sample_number(self, key: str, content: list[str], samples: int) -> str:
        """Return a number from 0 to `samples` - 1 by a hash of `content` under a secret. Raises Refusal engine_function."""
        reason = "no hash for samples of units is written for it"
        raise refuse("engine_function", function="SAMPLE_AGGREGATE", engine=self.title, reason=reason)

    def entropy(self, value: str) -> str:
        """Return the entropy in bits of a group's values, the same in every order of rows. Raises Refusal engine_function."""
        reason = "it has no aggregate that counts equal values inside of a group"
        raise refuse("engine_function", function="ENTROPY of a sample", engine=self.title, reason=reason)

    def exact_sum(self, value: str, filtered: str = "", most: int = 2**63) -> str:
        """Return the sum of integers of 64 bits, none beyond `most` in absolute value, exactly; NULL of no rows. `filtered` is a
        FILTER or an OVER, or ""."""
        return f"sum({value}){filtered}"

    @abstractmethod
    def distinct_sum(self, value: str, condition: str, integer: Callable[[str], str]) -> str:
        """Return the sum of `integer` (text to text) over the different values of a group; `condition` is a FILTER or ""."""
