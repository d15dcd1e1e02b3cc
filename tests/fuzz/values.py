"""Random values in the places where a client supplies them: options in SET and in OPTIONS (...), and parameters of a driver."""

import random
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np

OPTIONS = (
    "epsilon", "delta", "mechanism", "max_groups", "max_rows_per_group", "confidence", "target_error", "nonnegative", "reuse",
    "max_groups_contributed", "max_rows_contributed", "privacy_unit_column", "EPSILON", "unknown", "all", "min_privacy_units_per_group", "",
)  # fmt: skip
VALUES = (
    "1", "0", "-1", "0.5", "1e-9", "1e-300", "1e-400", "1e400", "1e401", "1e999999999", "NaN", "inf", "-inf", "infinity", "none", "null", "default",
    "on", "off", "true", "auto", "laplace", "gaussian", "LAPLACE", "derive", "''", "'1'", "'0.1'", "'on'", "1/3", "0x10", "1_0", "+1", "1.", ".5", "١٢", "²",
    "9" * 59, "9" * 61, "0." + "0" * 58 + "1", "1000000", "1000001", "1000000000", "1000000001", "99999999999999999999", "0.9999", "0.99991", "0.49", "1e-5", "1e5",
    "1 1", "(1)", "-", "$1", "?", "ſ", "'\u202e'", "'" + "x" * 1000 + "'", "1e15", "1e16", "123456789.987654321", "[1]", "DATE '2024-01-01'", "'a''b'", "\"on\"",
)  # fmt: skip
QUESTIONS = (
    "SELECT COUNT(*) FROM visits", "SELECT ward, AVG(cost), SUM(change) FROM visits GROUP BY ward", "SELECT city, COUNT(*) FROM patients GROUP BY city",
    "SELECT SUM(nights) FROM visits WHERE cost > 3", "SELECT STDDEV(cost), COUNT(DISTINCT patient_id) FROM visits", "SELECT diagnosis, COUNT(DISTINCT code) FROM visits GROUP BY 1",
    "SELECT zone, COUNT(*) FROM patients JOIN regions USING (region) GROUP BY zone",
)  # fmt: skip


def settings(rng: random.Random) -> tuple[list[str], str]:
    """Return some SET statements and a query to run under them."""
    chosen = [
        f"dp.{rng.choice(OPTIONS[:9])}" if rng.random() < 0.9 else rng.choice(OPTIONS)
        for _ in range(rng.choice([1, 1, 2, 3]))
    ]
    lines = [f"SET {name} {rng.choice(['=', '=', 'TO'])} {rng.choice(VALUES)}" for name in chosen]
    question = rng.choice(QUESTIONS)
    if rng.random() < 0.3:
        inside = ", ".join(f"{rng.choice(OPTIONS)} = {rng.choice(VALUES)}" for _ in range(rng.choice([1, 2])))
        question = question.replace("SELECT", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({inside})", 1)
    return lines, question


class Word(str):
    """A string subclass."""


class Number(IntEnum):
    """An integer subclass."""

    ONE = 1


ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 30, 2**31, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**40, 10**400, -(10**5000), 0.0, -0.0, 0.5, 1e308, 5e-324, float("nan"), float("inf"), -float("inf"),
    Decimal("1.5"), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), Decimal("1e400"), Decimal("1e-401"), Decimal("1e999999"), Decimal("0E+999999"), Decimal("1." + "3" * 200), Fraction(1, 3), 1 + 2j,
    "", "er", "it's", "a\x00b", "\ud800", "\u202e", "日本", "x" * 1_000_000, "'; DROP TABLE visits; --", "2024-01-31", "$1", "?", b"er", bytearray(b"x"), memoryview(b"y"), date(2024, 1, 31), date(1, 1, 1), date(9999, 12, 31),
    datetime(2024, 1, 31, 12), datetime(2024, 1, 31, tzinfo=UTC), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), time(12), timedelta(days=1), timedelta(days=-999999999), uuid.UUID(int=7), [1, 2], (1,), {"a": 1}, {1},
    object(), int, len, range(3), np.int64(7), np.float64("nan"), np.float32(1.5), np.bool_(True), np.datetime64("2024-01-31"), np.str_("er"), np.array([1, 2]), Word("er"), Number.ONE, Ellipsis, NotImplemented,
)  # fmt: skip
PLACES = (
    "SELECT COUNT(*) FROM visits WHERE {0} = {1}", "SELECT COUNT(*) FROM visits WHERE cost > {0} AND ward = {1}", "SELECT SUM(clamp(cost, {0}, {1})) FROM visits", "SELECT {0}, COUNT(*) + {1} FROM visits",
    "SELECT COUNT(*) FROM visits WHERE day >= {0} AND seen < {1}", "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > {0} LIMIT {1}", "SELECT COUNT(*) FROM visits WHERE nights IN ({0}, {1})", "SELECT left(ward, {0}), round(AVG(cost), {1}) FROM visits GROUP BY 1",
    "SELECT CASE WHEN cost > {0} THEN {1} END AS k, COUNT(*) FROM visits GROUP BY k", "SELECT COUNT(*) FROM visits WHERE diagnosis LIKE {0} OR diagnosis || {1} = 'x'", "SELECT * FROM regions WHERE region = {0} OR population > {1}", "SELECT day + {0}, COUNT({1}) FROM visits GROUP BY 1",
    "SELECT {0}", "SELECT INTERVAL {0} DAY", "SELECT COUNT(*) FROM {0}", "SELECT COUNT(*) FROM visits WHERE nights = {0}", "SELECT COUNT(*) FROM visits",
)  # fmt: skip


def parameters(rng: random.Random) -> tuple[str, Any]:
    """Return a query with placeholders, and values for them: often too few, too many, or in an unexpected form."""
    style: Callable[[int], str] = rng.choice(
        [lambda at: "?", lambda at: f"${at + 1}", lambda at: f":p{at}", lambda at: f"$p{at}"]
    )
    sql = rng.choice(PLACES).format(style(0), style(1))
    values = [rng.choice(ODD) for _ in range(rng.choice([2, 2, 2, 1, 1, 0, 3]))]
    given = rng.choice([list, tuple, list, lambda them: {f"p{at}": value for at, value in enumerate(them)}])(values)
    return sql, rng.choice(ODD) if rng.random() < 0.05 else given
