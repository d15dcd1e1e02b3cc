"""No value of an expression is outside its extent, and the extent is the smallest that the bounds permit."""

from itertools import product
from math import inf

import pytest
import sqlglot
from sqlglot import exp
from support.plain_duckdb import plain_duckdb

from dpsql.release.formulas import EVERYTHING, Extent, extent

COLUMNS: dict[str, Extent] = {
    "p": (1.0, 4.0), "n": (-4.0, -1.0), "z": (-2.0, 3.0), "h": (0.5, 1.5), "o": (0.0, 2.0), "b": (-3.0, 2.5),
    "u": EVERYTHING, "up": (2.0, inf), "down": (-inf, -2.0), "m": (-3.0, 0.0),
}  # fmt: skip


def parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="duckdb")


def extent_of(text: str) -> Extent:
    return extent(parsed(text), lambda column: COLUMNS[column.name])


REACHED = (  # both ends are values of the expression
    "p", "(p)", "-p", "-z", "p + z", "p - z", "n - p", "p * z", "n * z", "n * n", "z * z", "p * p", "b * z", "p / h",
    "z / p", "z / n", "n / p", "abs(p)", "abs(n)", "abs(z)", "abs(b)", "sqrt(p)", "sqrt(o)", "round(h)", "round(b)",
    "round(n * h)", "least(p, h)", "greatest(p, z)", "least(z, 1, p)", "greatest(z, 0)", "7", "p + 0.5 * z",
    "p::DOUBLE * 2", "TRY_CAST(p AS DOUBLE)", "CAST(p AS INTEGER)", "o * m", "2 - (z - p)",
)  # fmt: skip


@pytest.mark.parametrize("text", REACHED)
def test_the_extent_is_that_of_the_values_over_the_bounds(text: str) -> None:
    """All combinations of 0 and both ends of each column; these expressions have no other extremes."""
    names = sorted({column.name for column in parsed(text).find_all(exp.Column)})
    grids = [sorted({*COLUMNS[name], *([0.0] if COLUMNS[name][0] < 0 < COLUMNS[name][1] else [])}) for name in names]
    cells = [", ".join(f"{number!r}::DOUBLE AS {name}" for name, number in zip(names, point, strict=True))
             for point in product(*grids)]  # fmt: skip
    source = " UNION ALL ".join(f"SELECT {cell or '1'}" for cell in cells)
    least, most = (
        plain_duckdb().execute(f"SELECT min({text})::DOUBLE, max({text})::DOUBLE FROM ({source})").fetchall()[0]
    )
    assert extent_of(text) == pytest.approx((least, most))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("z::VARCHAR", EVERYTHING),
        ("CAST(p + 0.6 AS INTEGER)", (1.0, 5.0)),
        ("TRY_CAST(0.4 - h AS BIGINT)", (-2.0, 0.0)),
        ("CAST(u AS BIGINT)", EVERYTHING),
        ("TRY_CAST(z AS DATE)", EVERYTHING),
        ("'7'", EVERYTHING),
        ("NULL", EVERYTHING),
        ("p / z", EVERYTHING),
        ("p / o", EVERYTHING),
        ("p / m", EVERYTHING),
        ("p % 3", EVERYTHING),
        ("round(p, 1)", EVERYTHING),
        ("nothing_known(p)", EVERYTHING),
        ("sqrt(z)", (0.0, 3.0**0.5)),
        ("sqrt(n)", (0.0, 0.0)),
        ("round(0.5 * u)", EVERYTHING),
        ("u * 0", (0.0, 0.0)),
        ("u * p", EVERYTHING),
        ("u * u", (0.0, inf)),
        ("p / up", (0.0, 2.0)),
        ("n / down", (0.0, 2.0)),
        ("up - p", (-2.0, inf)),
        ("abs(down)", (2.0, inf)),
        ("sum(p)", (0.0, inf)),
        ("sum(n)", (-inf, 0.0)),
        ("sum(z)", EVERYTHING),
        ("sum(o)", (0.0, inf)),
        ("sum(m)", (-inf, 0.0)),
        ("count(n)", (0.0, inf)),
        ("count(*)", (0.0, inf)),
        ("stddev(z)", (0.0, inf)),
        ("var_pop(z)", (0.0, inf)),
        ("rank() OVER (ORDER BY z)", (1.0, inf)),
        ("row_number() OVER ()", (1.0, inf)),
        ("dense_rank() OVER (ORDER BY z)", (1.0, inf)),
        ("percent_rank() OVER (ORDER BY z)", (0.0, 1.0)),
        ("cume_dist() OVER (ORDER BY z)", (0.0, 1.0)),
        ("sum(p) OVER ()", (0.0, inf)),
        ("avg(p) FILTER (WHERE z > 0)", COLUMNS["p"]),
        ("max(DISTINCT p)", COLUMNS["p"]),
        ("lag(p, 1) OVER (ORDER BY z)", COLUMNS["p"]),
        ("lag(p, 1, 99) OVER (ORDER BY z)", EVERYTHING),
        ("last_value(p IGNORE NULLS) OVER ()", COLUMNS["p"]),
        ("nullif(p, 2)", COLUMNS["p"]),
        ("coalesce(p, n)", (-4.0, 4.0)),
        ("coalesce(h, p, 0)", (0.0, 4.0)),
        ("CASE WHEN z > 0 THEN p WHEN z < 0 THEN h END", (0.5, 4.0)),
        ("CASE WHEN z > 0 THEN p ELSE n END", (-4.0, 4.0)),
    ],
)
def test_each_operation_has_its_extent(text: str, expected: Extent) -> None:
    assert extent_of(text) == pytest.approx(expected)
