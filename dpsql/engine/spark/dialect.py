"""Spark's dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsql.engine.dialect import MOST_SENT_BYTES, Dialect
from dpsql.engine.spark import literals
from dpsql.engine.spark.functions import FUNCTIONS, UNSUPPORTED
from dpsql.plan.intervals import Type

_LIMB_BITS = 21
"""Bits of a limb: a sum of integers below 2**22 stays inside 64 bits for 2**41 rows."""
_SHORT = 1000
"""The most bytes of a text that is hashed together with the rest of its row."""


class SparkDialect(Dialect):
    """Spark 4, in sessions whose settings `engine.spark.sessions` pins: names are between double quotes."""

    name = "spark"
    title = "Spark"
    types = literals.TYPES
    functions = FUNCTIONS
    unsupported = UNSUPPORTED
    takes_parameters = False
    without_clipping = (
        "it reads rows several times, and nothing proves that Spark reads the same rows each time; bound the rows of each "
        "unit instead (max_rows)"
    )

    def constant(self, value: Any) -> str:
        return literals.constant(value)

    def cast_column(self, source: str, type_: Type, engine_type: str) -> str:
        return literals.cast_column(source, type_, engine_type)

    def is_nan(self, value: str) -> str:
        return f"isnan({value})"

    def unsigned_zero(self, value: str) -> str:
        return f"{value} + {literals.real(0.0)}"

    def real_key(self, value: str) -> str:
        """Return a real by which rows are grouped. Spark gives every NaN the same bits when it groups by it."""
        return f"({value} + {literals.real(0.0)})"

    def sent_text(self, value: str) -> str:
        return f"(CASE WHEN octet_length({value}) <= {MOST_SENT_BYTES} THEN {value} END)"

    def sign_of(self, value: str) -> str:
        """Return a zero as text, '-0.0' or '0.0', else NULL. A question cannot see the sign of NaN."""
        return f"(CASE WHEN {value} = {literals.real(0.0)} THEN CAST({value} AS STRING) END)"

    def moved_to_grid(self, value: str, lower: float, upper: float, centre: float, grid: int, type_: str) -> str:
        """Return the unclamped value on the grid. Subtraction is monotone and the scaling exact, so order is kept, and doubles
        never raise."""
        moved = value if centre == 0 else f"({value} - {self.constant(centre)})"
        return f"({moved} * {self.constant(2.0**grid)})"

    def nearest_integer(self, value: str, type_: str) -> str:
        """Return a real rounded half to even; the engine's own cast truncates the fraction."""
        return f"CAST(rint({value}) AS {type_})"

    def wide(self, value: str) -> str:
        return f"CAST({value} AS DECIMAL(38, 0))"

    def narrow(self, value: str) -> str:
        return f"try_cast({value} AS BIGINT)"

    def truth_value(self, condition: str) -> str:
        return f"CAST({condition} AS BIGINT)"

    def whole_quotient(self, dividend: str, divisor: str) -> str:
        return f"{dividend} div {divisor}"

    def halved(self, value: str, times: int) -> str:
        return f"shiftright({value}, {times})"

    def derived(self, select: str, alias: str = "#rows") -> str:
        return f"({select}) AS {self.identifier(alias)}"

    def keyed_order(self, key: str, content: list[str]) -> str:
        """Return the SHA-256 of the key and of every value as text after its length, so that different rows give different
        texts. A text of more than `_SHORT` bytes is represented by its own hash, because Java's texts end at 2 GB; rows whose
        hashes are equal are ordered by their content."""
        texts = [f"CAST({item} AS STRING)" for item in content]
        shorter = [f"if(octet_length({text}) > {_SHORT}, sha2({text}, 256), {text})" for text in texts]
        parts = [
            f"coalesce(concat(octet_length({text}), ':', {short}), '-')"
            for text, short in zip(texts, shorter, strict=True)
        ]
        return f"sha2(concat({', '.join([self.constant(key), *parts])}), 256)"

    def exact_sum(self, value: str, filtered: str = "", most: int = 2**63) -> str:
        """Return an exact sum of integers. The engine's sum of BIGINT has 64 bits, and its sum of decimals takes many times as
        long. So an integer x is split into limbs, x = h * 2**42 + m * 2**21 + l with 0 <= m, l < 2**21 and h of x's sign, |h| <=
        2**21: the shift rounds down, and the bits below it form the rest. Each limb is summed in 64 bits, exactly for up to
        2**41 rows (beyond that the session raises instead of wrapping), and the sums are joined in 38 digits: the total is below
        2**41 * 2**63 = 2**104 < 10**38. Limbs that are empty according to `most` are left out."""
        wide = f"CAST({value} AS BIGINT)"
        limbs = 1 if most < 2 ** (_LIMB_BITS + 1) else 2 if most < 2 ** (2 * _LIMB_BITS + 1) else 3
        parts = []
        for limb in range(limbs):
            shifted = f"shiftright({wide}, {limb * _LIMB_BITS})" if limb else wide
            part = shifted if limb == limbs - 1 else f"({shifted} & {2**_LIMB_BITS - 1}L)"
            total = self.wide(f"sum({part}){filtered}")
            parts.append(f"{total} * {2 ** (limb * _LIMB_BITS)}L" if limb else total)
        return f"({' + '.join(parts)})"

    def distinct_sum(self, value: str, condition: str, integer: Callable[[str], str]) -> str:
        element, zero = self.wide(integer("e")), self.wide("0")
        return f"aggregate(collect_set({value}){condition}, {zero}, (a, e) -> {self.wide(f'a + coalesce({element}, {zero})')})"


SPARK = SparkDialect()
