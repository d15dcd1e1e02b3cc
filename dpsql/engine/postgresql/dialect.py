"""PostgreSQL's dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpsql.engine.dialect import MOST_SENT_BYTES, Dialect, Template
from dpsql.engine.postgresql import literals
from dpsql.engine.postgresql.functions import FUNCTIONS, UNSUPPORTED, WITH_CASE_MAPPING
from dpsql.engine.postgresql.reals import let
from dpsql.plan.intervals import Type
from dpsql.plan.plan import ReleasedValue

CASE_MAPPING_VERSION = 170000
"""From this server version, the case of letters beyond ASCII is mapped by Unicode's table on every machine."""
_SHORT = 1000
"""The most bytes of a value that is hashed as part of its row's text."""


class PostgreSQLDialect(Dialect):
    """PostgreSQL 15 and later. Constants are in the text, so that COPY can run it."""

    name = "postgresql"
    title = "PostgreSQL"
    types = literals.TYPES
    takes_parameters = False
    clamps_on_grid = True

    def __init__(self, version: int = 150000) -> None:
        """`version`: the server's version in its own numbering (160002)."""
        self._functions = {**FUNCTIONS, **(WITH_CASE_MAPPING if version >= CASE_MAPPING_VERSION else {})}

    @property
    def functions(self) -> Mapping[str, Template]:  # type: ignore[override]
        """The row functions of this server's version."""
        return self._functions

    unsupported = UNSUPPORTED

    def constant(self, value: Any) -> str:
        return literals.constant(value)

    def cast_column(self, source: str, type_: Type, engine_type: str) -> str:
        return literals.cast_column(source, type_, engine_type)

    def released_value(self, node: ReleasedValue) -> str:
        value = super().released_value(node)
        return literals.binary(value) if node.facts.type is Type.TEXT else value

    def is_nan(self, value: str) -> str:
        return f"({value} = {literals.NAN})"

    def unsigned_zero(self, value: str) -> str:
        return f"{value} + {literals.real('0')}"

    def real_key(self, value: str) -> str:
        """Return a real by which rows are grouped. All NaNs are one key in PostgreSQL, with the same text."""
        return let({"k": value}, f"(CASE WHEN k = {literals.real('0')} THEN {literals.real('0')} ELSE k END)")

    def sent_text(self, value: str) -> str:
        return f"(CASE WHEN octet_length({value}) <= {MOST_SENT_BYTES} THEN {value} END)"

    def sign_of(self, value: str) -> str:
        """Return the value as text, in which zeros are '-0' and '0'. A question cannot see the sign of NaN."""
        return literals.binary(f"CAST({value} AS text)")

    def moved_to_grid(self, value: str, lower: float, upper: float, centre: float, grid: int, type_: str) -> str:
        """Return the row's integer in one CASE. The planner copies the text of a subquery's column to every place that names it,
        so a separate clamp would compute all of this three times.

        The clamp comes first. It gives the same integer as a clamp of the moved value, and nothing outside the two ends:
        subtraction of doubles is monotone, scaling by a power of two is exact, and rounding is monotone; the ends are moved
        and rounded in the same way in Python. (After the clamp no double overflows, which would be an error in PostgreSQL;
        nor does one underflow to zero, another error, because values nearer to the centre than half a step of a coarse grid
        become 0 at once.) NaN is greater than every number and matches no branch.
        """
        ends = [f"CAST({round((end - centre) * 2.0**grid)} AS {type_})" for end in (lower, upper)]
        moved = f"(v - {literals.constant(centre)})" if centre else "v"
        scaled = f"{moved} * {literals.constant(2.0**grid)}"
        if grid < 0:
            scaled = f"CASE WHEN abs({moved}) < 1 THEN {literals.real('0')} ELSE {scaled} END"
        return let(
            {"v": value},
            f"(CASE WHEN v < {literals.constant(lower)} THEN {ends[0]} WHEN v <= {literals.constant(upper)} "
            f"THEN CAST({scaled} AS {type_}) WHEN v < {literals.NAN} THEN {ends[1]} END)",
        )

    def wide(self, value: str) -> str:
        return f"CAST({value} AS numeric)"

    def narrow(self, value: str) -> str:
        return f"(CASE WHEN {value} BETWEEN {literals.LEAST} AND {literals.MOST} THEN CAST({value} AS bigint) END)"

    def truth_value(self, condition: str) -> str:
        return f"(CASE WHEN {condition} THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END)"

    def whole_quotient(self, dividend: str, divisor: str) -> str:
        """Return the quotient of two integers of 64 bits, rounded down."""
        return f"{dividend} / {divisor}"

    def derived(self, select: str, alias: str = "#rows") -> str:
        return f"({select}) AS {self.identifier(alias)}"

    def keyed_order(self, key: str, content: list[str]) -> str:
        """Return the SHA-256 of the key and the row as text, which quotes its parts, so different rows give different texts.

        A value of more than `_SHORT` bytes is represented by its own hash, because PostgreSQL raises if the text of a row has
        more than a gigabyte. The bytes are those in storage, where compression makes a text at most 255 times shorter: so a
        row of 1,664 values, each quoted, has at most 850 MB of text. Rows whose hashes are equal are ordered by their content.
        """
        items = (
            f"CASE WHEN pg_column_size({item}) > {_SHORT} THEN encode(sha256(convert_to(CAST({item} AS text), 'UTF8')), 'hex') "
            f"ELSE CAST({item} AS text) END"
            for item in content
        )
        row = ", ".join([literals.constant(key), *items])
        return f"sha256(convert_to(CAST(ROW({row}) AS text), 'UTF8'))"

    def sample_number(self, key: str, content: list[str], samples: int) -> str:
        """Return a sample's number from the first 56 bits of the hash."""
        first = f"encode(substring({self.keyed_order(key, content)} FROM 1 FOR 7), 'hex')"
        return f"CAST(CAST(('x' || {first}) AS bit(56)) AS bigint) % {samples}"

    def distinct_sum(self, value: str, condition: str, integer: Callable[[str], str]) -> str:
        return f'(SELECT sum({integer("e")}) FROM unnest(array_agg(DISTINCT {value}){condition}) AS "#e" (e))'
