"""Random questions over the table of `test_answers`, for which DuckDB's answer is known, and the comparison of whole answers."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from exact_session import Row, plain, rows_of, same

from dpsql.release import Release

KEYS = ("kind", "word", "month(day)", "date_trunc('month', day)", "x IS NULL", "uid % 3 = 0", "CASE WHEN y > 0 THEN 'up' ELSE 'down' END",
        "kind || '-' || word", "floor(y)", "kind = 'p'")  # fmt: skip
NULLABLE = ("code", "x", "coalesce(x, 99)", "CASE WHEN y > 1 THEN 'up' WHEN y < -1 THEN 'down' END")
MEASURES = ("COUNT(*)", "COUNT(x)", "SUM(x)", "SUM(x) FILTER (WHERE y > 0)", "COUNT(DISTINCT uid)", "COUNT(DISTINCT word)", "SUM(DISTINCT x)",
            "COUNT(*) FILTER (WHERE kind = 'q')", "SUM(CASE WHEN x > 5 THEN 1 ELSE 0 END)", "COUNT(DISTINCT -uid)")  # fmt: skip
CONDITIONS = ("kind = 'p'", "kind IN ('p', 'r')", "word LIKE 'w%'", "day BETWEEN DATE '2024-01-10' AND DATE '2024-02-10'", "x BETWEEN 2 AND 7",
              "x IS NOT NULL", "y > 0 OR word = 'w1'", "NOT (kind = 'q')", "word <> 'w3'", "day >= DATE '2024-02-01'", "uid < 200",
              "kind > 'a'", "month(day) = 1")  # fmt: skip
OVER = ("COUNT(*)", "SUM(n)", "MAX(n)", "MIN(n)", "AVG(n)", "COUNT(*) FILTER (WHERE n > 30)", "SUM(n * 2 + n)", "MIN(g)", "MAX(g)",
        "COUNT(DISTINCT g)", "SUM(CASE WHEN n > 50 THEN 1 ELSE 0 END)", "MEDIAN(n)", "SUM(n) / COUNT(*)")  # fmt: skip
WINDOWS = ("RANK() OVER (ORDER BY n DESC)", "n * 1.0 / SUM(n) OVER ()", "ROW_NUMBER() OVER (ORDER BY g)", "SUM(n) OVER (ORDER BY g)",
           "LAG(n) OVER (ORDER BY g)", "COUNT(*) OVER ()", "MAX(n) OVER ()", "n - MIN(n) OVER ()", "DENSE_RANK() OVER (ORDER BY n DESC)",
           "SUM(n) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)")  # fmt: skip
UNIT_KEYS = (
    "uid",
    "CAST(uid AS VARCHAR)",
    "uid + 1",
    "-uid",
    "uid * 2 - 7",
    "'p' || CAST(uid AS VARCHAR)",
    "coalesce(uid, 0)",
)
PER_UNIT = ("COUNT(*)", "SUM(x)", "MAX(x)", "MIN(x)", "COUNT(DISTINCT word)", "COUNT(x)")


class Questions:
    """Random questions; `nullable`: keys that may be NULL too."""

    def __init__(self, source: random.Random, nullable: bool = False) -> None:
        self.random = source
        self.keys = (*KEYS, *NULLABLE) if nullable else KEYS

    def one(self) -> str:
        """A question of any of the shapes."""
        shapes = (
            self.grouped,
            self.over_groups,
            self.windows,
            self.by_unit,
            self.sets,
            self.united,
            self.joined,
            self.nested,
        )
        return self._one(shapes)()

    def _one(self, of: Sequence):  # type: ignore[type-arg, no-untyped-def]
        return self.random.choice(of)

    def rows(self) -> str:
        """FROM and WHERE, perhaps through renamings."""
        where = " AND ".join(self.random.sample(CONDITIONS, self.random.choice((0, 0, 1, 1, 2))))
        table = self._one(
            (
                "a",
                "a",
                "(SELECT * FROM a) AS a",
                "(SELECT uid, x, y, code, kind, word, day, big FROM a WHERE big >= 0) AS a",
            )
        )
        return f"FROM {table}{f' WHERE {where}' if where else ''}"

    def grouped(self) -> str:
        keys = self.random.sample(self.keys, self._one((0, 1, 1, 2)))
        measures = self.random.sample(MEASURES, self._one((1, 2, 3)))
        items = [f"{key} AS k{at}" for at, key in enumerate(keys)] + [f"{m} AS m{at}" for at, m in enumerate(measures)]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = self._one(("", "", " HAVING COUNT(*) > 20")) if keys else ""
        return f"SELECT {', '.join(items)} {self.rows()}{group}{having}"

    def block(self) -> str:
        having = self._one(("", "", " HAVING COUNT(*) > 20", " HAVING COUNT(DISTINCT uid) >= 10"))
        # A group may have rows and no values to add: their sum is 0 here, also for what is computed from it.
        return f"SELECT {self._one(self.keys)} AS g, coalesce({self._one(MEASURES)}, 0) AS n {self.rows()} GROUP BY 1{having}"

    def over_groups(self) -> str:
        items = ", ".join(self.random.sample(OVER, self._one((1, 2, 3))))
        return f"SELECT {items} FROM ({self.block()}) AS q{self._one(('', '', ' WHERE n > 40'))}"

    def windows(self) -> str:
        items = ", ".join(self.random.sample(WINDOWS, self._one((1, 2))))
        return f"SELECT g, n, {items} FROM ({self.block()}) AS q{self._one(('', ' WHERE n > 40'))}"

    def by_unit(self) -> str:
        unit, others = self._one(UNIT_KEYS), self.random.sample(self.keys[:2], self._one((0, 0, 1)))
        keys = [unit, *others]
        items = [f"{key} AS u{at}" for at, key in enumerate(keys)]
        inner = f"SELECT {', '.join(items)}, {self._one(PER_UNIT)} AS n {self.rows()} GROUP BY {', '.join(keys)}"
        for _ in range(self._one((0, 0, 1, 2))):
            inner = f"SELECT u0, n FROM ({inner}) AS r"
        outer = self._one(
            ("COUNT(*), SUM(n)", "COUNT(n)", "SUM(n), AVG(n)", "COUNT(DISTINCT u0)", "COUNT(*) FILTER (WHERE n > 2)")
        )
        return f"SELECT {outer} FROM ({inner}) AS q"

    def sets(self) -> str:
        a, b = self.random.sample(self.keys[:4], 2)
        form = self._one(
            ("ROLLUP({a}, {b})", "CUBE({a}, {b})", "GROUPING SETS (({a}), ({b}), ())", "ROLLUP(uid, {a})", "CUBE(uid)")
        )
        measure = self._one(MEASURES)
        inner = f"SELECT {measure} AS n {self.rows()} GROUP BY {form.format(a=a, b=b)}"
        if "uid" in form:
            return f"SELECT COUNT(*), SUM(n) FROM ({inner}) AS q"
        return f"SELECT {a} AS a, {b} AS b, GROUPING({a}, {b}) AS g, {measure} AS n {inner[inner.index('FROM') :]}"

    def united(self) -> str:
        word = self._one(("UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
        return f"SELECT COUNT(*) FROM (SELECT g FROM ({self.block()}) AS q {word} SELECT g FROM ({self.block()}) AS r) AS s"

    def joined(self) -> str:
        key, kind = self._one(self.keys), self._one(("JOIN", "LEFT JOIN", "FULL JOIN"))
        sides = [f"(SELECT {key} AS g, {self._one(MEASURES)} AS n {self.rows()} GROUP BY 1)" for _ in range(2)]
        item = self._one(("COUNT(*)", "SUM(p.n)", "SUM(p.n + q.n)", "COUNT(q.g)", "MIN(p.g)"))
        return f"SELECT {item} FROM {sides[0]} AS p {kind} {sides[1]} AS q ON p.g = q.g"

    def nested(self) -> str:
        inner = f"SELECT {self._one(self.keys)} AS g, {self._one(KEYS)} AS h, {self._one(MEASURES)} AS n {self.rows()} GROUP BY 1, 2"
        middle = f"SELECT h, {self._one(('SUM(n)', 'COUNT(*)', 'MAX(n)', 'AVG(n)'))} AS n, SUM(n) AS s FROM ({inner}) AS q GROUP BY h"
        item = self._one(("SUM(s), MAX(s)", "COUNT(*)", "SUM(n)", "COUNT(*) FILTER (WHERE s > 10)", "MAX(n)", "MIN(h)"))
        return f"SELECT {item} FROM ({middle}) AS r"


def difference(release: Release, expected: Sequence[Row]) -> str | None:
    """What of an answer is not DuckDB's, None where all is; columns that say that their error is not known are left out.

    Rows that DuckDB does not have are groups without rows: their counts and sums are 0, and no row has their exact values.
    """
    shown = [at for at, column in enumerate(release.columns) if not column.of_groups]
    exact = [at for at in shown if not release.columns[at].noisy]
    answer = [tuple(row[at] for at in range(len(row))) for row in rows_of(release)]
    wanted = [tuple(plain(value) for value in row) for row in expected]
    left = list(answer)
    for row in wanted:
        found = next((other for other in left if _alike(row, other, exact, shown)), None)
        if found is None:
            return f"{row} is missing from {answer[:6]}"
        left.remove(found)
    keys = {tuple(row[at] for at in exact) for row in wanted}
    sums = [
        at
        for at, column in enumerate(release.columns)
        if column.noisy and not column.of_groups and re.fullmatch(r"m\d|n|count", column.name)
    ]
    for row in left:
        if not exact or tuple(row[at] for at in exact) in keys or any(row[at] for at in sums):
            return f"{row} should not be there: {wanted[:6]}"
    return None


def _alike(row: Row, other: Row, exact: Sequence[int], shown: Sequence[int]) -> bool:
    """Whether two rows agree; a sum of no values is NULL in SQL and 0 here."""
    noisy = (at for at in shown if at not in exact)
    return all(same(row[at], other[at]) for at in exact) and all(same(row[at] or 0.0, other[at] or 0.0) for at in noisy)


def types(release: Release, expected: Sequence[Row]) -> str | None:
    """A column that has values of another kind than DuckDB's (whole, real, boolean, text, date), None where all agree."""
    for at, column in enumerate(release.columns):
        kinds = [{_kind(value) for value in values if value is not None}
                 for values in (release.table.column(at).to_pylist(), [row[at] for row in expected])]  # fmt: skip
        if all(kinds) and kinds[0] != kinds[1]:
            return f"{column.name} is {kinds[0]}, not {kinds[1]}"
    return None


def _kind(value: object) -> str:
    if isinstance(value, (float, Decimal)):
        return "real"
    return "date" if isinstance(value, date) else type(value).__name__
