"""Random queries over the table of `test_answers`, whose answers DuckDB computes exactly, and the comparison of whole answers."""

import random
import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal

from dpsql.release.release import Release
from support.exact_session import Row, plain, rows_of, same

KEYS = ("kind", "word", "month(day)", "date_trunc('month', day)", "x IS NULL", "uid % 3 = 0", "CASE WHEN y > 0 THEN 'up' ELSE 'down' END",
        "kind || '-' || word", "floor(y)", "kind = 'p'")  # fmt: skip
NULLABLE = ("code", "x", "coalesce(x, 99)", "CASE WHEN y > 1 THEN 'up' WHEN y < -1 THEN 'down' END")
MEASURES = ("COUNT(*)", "COUNT(x)", "SUM(x)", "SUM(x) FILTER (WHERE y > 0)", "COUNT(DISTINCT uid)", "COUNT(DISTINCT word)", "SUM(DISTINCT x)",
            "COUNT(*) FILTER (WHERE kind = 'q')", "SUM(CASE WHEN x > 5 THEN 1 ELSE 0 END)", "COUNT(DISTINCT -uid)")  # fmt: skip
CONDITIONS = ("kind = 'p'", "kind IN ('p', 'r')", "word LIKE 'w%'", "day BETWEEN DATE '2024-01-10' AND DATE '2024-02-10'", "x BETWEEN 2 AND 7",
              "x IS NOT NULL", "y > 0 OR word = 'w1'", "NOT (kind = 'q')", "word <> 'w3'", "day >= DATE '2024-02-01'", "uid < 200",
              "kind > 'a'", "month(day) = 1")  # fmt: skip
JOINT = ("(kind = 'p' AND x < 4) OR (kind = 'q' AND x > 7)", "kind = code", "(x = 1 AND day < DATE '2024-01-20') OR (x = 2 AND kind = 'q')",
         "kind <> code OR code IS NULL", "x > 5 OR kind = 'p'", "CASE WHEN kind = 'p' THEN x > 3 ELSE x <= 3 END")  # fmt: skip
TIED = (("kind", "code"), ("kind", "x"), ("day", "date_trunc('month', day)"), ("month(day)", "monthname(day)"), ("x", "x > 4"), ("code", "x // 3", "x"),
        ("dayofweek(day)", "dayname(day)"), ("kind", "kind = 'p'", "code"), ("day", "month(day)", "kind"),
        ("x", "CASE WHEN x < 3 THEN 'low' WHEN x < 8 THEN 'mid' ELSE 'high' END"))  # fmt: skip
HAVING = ("{a} IS NULL", "{b} IS NOT NULL", "GROUPING({a}) = 0", "GROUPING({a}, {b}) IN (0, 1) AND {a} IS NOT NULL", "GROUPING({b}) = 1 OR {b} IS NULL",
          "COUNT(*) > 20 AND {a} IS NOT NULL")  # fmt: skip
OVER = ("COUNT(*)", "SUM(n)", "MAX(n)", "MIN(n)", "AVG(n)", "COUNT(*) FILTER (WHERE n > 30)", "SUM(n * 2 + n)", "MIN(g)", "MAX(g)",
        "COUNT(DISTINCT g)", "SUM(CASE WHEN n > 50 THEN 1 ELSE 0 END)", "MEDIAN(n)", "SUM(n) / COUNT(*)")  # fmt: skip
WINDOWS = ("RANK() OVER (ORDER BY n DESC)", "n * 1.0 / SUM(n) OVER ()", "ROW_NUMBER() OVER (ORDER BY g)", "SUM(n) OVER (ORDER BY g)",
           "LAG(n) OVER (ORDER BY g)", "COUNT(*) OVER ()", "MAX(n) OVER ()", "n - MIN(n) OVER ()", "DENSE_RANK() OVER (ORDER BY n DESC)",
           "SUM(n) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)")  # fmt: skip
UNIT_KEYS = (
    "uid", "CAST(uid AS VARCHAR)", "uid + 1", "-uid", "uid * 2 - 7", "'p' || CAST(uid AS VARCHAR)",
    "coalesce(uid, 0)",
)  # fmt: skip
PER_UNIT = ("COUNT(*)", "SUM(x)", "MAX(x)", "MIN(x)", "COUNT(DISTINCT word)", "COUNT(x)")


PUBLIC = (
    ("a LEFT JOIN codes AS c ON a.code = c.code", "a LEFT JOIN codes AS c USING (code)", "codes AS c RIGHT JOIN a ON c.code = a.code",
     "a LEFT JOIN codes AS c ON a.code = c.code AND c.weight > 2", "a LEFT JOIN codes AS c ON c.code = a.kind AND label IS NOT NULL",
     "a LEFT JOIN codes AS c ON lower(a.code) = c.code", "(SELECT * FROM a WHERE x > 2) AS a LEFT JOIN codes AS c ON a.code = c.code",
     "a LEFT JOIN scores AS s ON a.x + 1 = s.x LEFT JOIN codes AS c ON c.code = a.code"),
    ("label", "label IS NULL", "coalesce(label, 'none')", "weight", "c.code", "a.code", "kind", "weight > 2", "label || kind",
     "CASE WHEN label IS NULL THEN 'none' WHEN weight > 2 THEN 'some' END", "coalesce(weight, -1)", "a.code = c.code", "y > weight"),
    ("COUNT(*)", "COUNT(label)", "COUNT(c.code)", "SUM(weight)", "SUM(coalesce(weight, 1))", "COUNT(DISTINCT label)", "SUM(DISTINCT weight)",
     "COUNT(*) FILTER (WHERE label IS NULL)", "COUNT(DISTINCT uid)", "SUM(a.x * weight)", "SUM(CASE WHEN c.code IS NULL THEN 1 ELSE 0 END)"),
    ("label IS NULL", "label IS NOT NULL", "label = 'first'", "label IN ('first', 'last')", "weight > 1 OR weight IS NULL", "a.code IS NULL",
     "coalesce(label, 'none') <> 'first'", "NOT (label = 'third')", "c.code IS NULL", "weight BETWEEN 0 AND 3", "a.code = 'q'", "y > 0"),
)  # fmt: skip
PEOPLE = (
    ("a LEFT JOIN b ON a.uid = b.uid", "a LEFT JOIN b USING (uid)", "b RIGHT JOIN a ON b.uid = a.uid", "b LEFT JOIN a ON a.uid = b.uid",
     "a LEFT JOIN b ON a.uid = b.uid AND b.z > 5", "a RIGHT JOIN b USING (uid)", "b LEFT JOIN a ON b.uid = a.uid AND x > 4 AND kind = 'p'",
     "a LEFT JOIN (SELECT uid, city, size, z, w, town FROM b WHERE w > 0) AS b ON a.uid = b.uid",
     "a LEFT JOIN b USING (uid) LEFT JOIN codes AS c ON c.code = a.code"),
    ("city", "size", "town", "z", "city IS NULL", "w IS NULL", "b.uid IS NULL", "coalesce(city, 'none')", "size = 's'", "kind", "kind || size",
     "a.uid IS NULL", "floor(w)", "CASE WHEN b.uid IS NULL THEN 'none' WHEN z > 9 THEN 'big' END", "z > a.x", "coalesce(z, -1)"),
    ("COUNT(*)", "COUNT(b.uid)", "COUNT(a.uid)", "COUNT(size)", "COUNT(city)", "SUM(z)", "SUM(w)", "SUM(coalesce(z, 3))", "COUNT(DISTINCT b.uid)",
     "COUNT(DISTINCT a.uid)", "COUNT(*) FILTER (WHERE w IS NULL)", "SUM(a.x)", "COUNT(DISTINCT city)", "SUM(z + a.x)", "SUM(DISTINCT z)"),
    ("b.uid IS NULL", "b.uid IS NOT NULL", "city IS NULL", "w IS NULL", "size = 's'", "size <> 's' OR size IS NULL", "NOT (city = 'oslo')",
     "city IN ('oslo', 'lima')", "z BETWEEN 3 AND 12", "coalesce(z, 0) < 10", "kind = 'p'", "x IS NULL", "z > x", "town LIKE 't%'"),
)  # fmt: skip
SUMMARIES = (
    ("b LEFT JOIN (SELECT uid, COUNT(*) AS rows, SUM(x) AS s, MAX(kind) AS top FROM a GROUP BY uid) AS a ON a.uid = b.uid",
     "b LEFT JOIN (SELECT uid, COUNT(*) AS rows, SUM(x) AS s, MIN(code) AS top FROM a WHERE x > 5 GROUP BY uid) AS a USING (uid)",
     "(SELECT uid, COUNT(*) AS rows, coalesce(SUM(x), 0) AS s, MIN(kind) AS top FROM a GROUP BY uid) AS a LEFT JOIN b ON a.uid = b.uid",
     "(SELECT uid, COUNT(x) AS rows, MAX(x) AS s, MAX(code) AS top FROM a WHERE y > 3 GROUP BY uid) AS a RIGHT JOIN b USING (uid)"),
    ("rows", "top", "rows IS NULL", "coalesce(rows, 0)", "s > 10", "s IS NULL", "size", "city", "z > rows", "coalesce(top, 'none')",
     "a.uid IS NULL", "b.uid IS NULL", "CASE WHEN rows > 1 THEN 'many' WHEN rows = 1 THEN 'one' ELSE 'none' END"),
    ("COUNT(*)", "COUNT(rows)", "SUM(rows)", "SUM(coalesce(rows, 0))", "COUNT(*) FILTER (WHERE rows IS NULL)", "COUNT(a.uid)", "COUNT(b.uid)",
     "COUNT(top)", "SUM(z)", "SUM(least(greatest(s, 0), 40))", "COUNT(DISTINCT b.uid)", "SUM(CASE WHEN s > 5 THEN rows ELSE 1 END)"),
    ("rows IS NULL", "rows > 1", "coalesce(rows, 0) < 3", "s IS NOT NULL", "top = 'p' OR top IS NULL", "NOT (rows = 3)", "size = 'm'",
     "city IS NULL", "rows BETWEEN 1 AND 2", "z > 4", "b.uid IS NOT NULL", "a.uid IS NULL"),
)  # fmt: skip
RENAMED = (
    "a",
    "a",
    "(SELECT * FROM a) AS a",
    "(SELECT uid, x, y, code, kind, word, day, big FROM a WHERE big >= 0) AS a",
)


class Questions:
    """A generator of random queries; `nullable`: columns used as keys that may also be NULL."""

    def __init__(self, source: random.Random, nullable: bool = False) -> None:
        self.random = source
        self.keys: Sequence[str] = (*KEYS, *NULLABLE) if nullable else KEYS
        self.measures: Sequence[str] = MEASURES
        self.conditions: Sequence[str] = CONDITIONS
        self.sources: Sequence[str] = RENAMED

    def one(self) -> str:
        """Return a query of any shape."""
        return self._one((*self.shapes(), self.by_unit, self.sets))()

    def shapes(self) -> Sequence[Callable[[], str]]:
        """Return the generators of all shapes of queries."""
        return (self.grouped, self.over_groups, self.windows, self.united, self.joined, self.nested)

    def _one(self, of: Sequence):  # type: ignore[type-arg, no-untyped-def]
        return self.random.choice(of)

    def rows(self) -> str:
        """Return FROM and WHERE, sometimes with renamed tables."""
        where = " AND ".join(self.random.sample(self.conditions, self.random.choice((0, 0, 1, 1, 2))))
        return f"FROM {self._one(self.sources)}{f' WHERE {where}' if where else ''}"

    def grouped(self) -> str:
        keys = self.random.sample(self.keys, self._one((0, 1, 1, 2)))
        measures = self.random.sample(self.measures, self._one((1, 2, 3)))
        items = [f"{key} AS k{at}" for at, key in enumerate(keys)] + [f"{m} AS m{at}" for at, m in enumerate(measures)]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = self._one(("", "", " HAVING COUNT(*) > 20")) if keys else ""
        return f"SELECT {', '.join(items)} {self.rows()}{group}{having}"

    def block(self) -> str:
        having = self._one(("", "", " HAVING COUNT(*) > 20", " HAVING COUNT(DISTINCT uid) >= 10"))
        # A group may have rows but no values to add. Its sum is then 0 in dpsql, also in expressions over it.
        return f"SELECT {self._one(self.keys)} AS g, coalesce({self._one(self.measures)}, 0) AS n {self.rows()} GROUP BY 1{having}"

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
            ("ROLLUP({a}, {b})", "CUBE({a}, {b})", "GROUPING SETS (({a}), ({b}), ())", "ROLLUP(uid, {a})", "CUBE(uid)",
             "uid, ROLLUP({a}, {b})", "GROUPING SETS ((uid, {a}), (uid, {b}))", "GROUPING SETS (({a}, {b}), ({a}))")
        )  # fmt: skip
        measure = self._one(PER_UNIT if "uid" in form else self.measures)
        inner = f"SELECT {measure} AS n {self.rows()} GROUP BY {form.format(a=a, b=b)}"
        if "uid" in form:
            return f"SELECT COUNT(*), SUM(n) FROM ({inner}) AS q"
        having = self._one(("", *(f" HAVING {one.format(a=a, b=b)}" for one in HAVING)))
        return (
            f"SELECT {a} AS a, {b} AS b, GROUPING({a}, {b}) AS g, {measure} AS n {inner[inner.index('FROM') :]}{having}"
        )

    def united(self) -> str:
        word = self._one(("UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
        return f"SELECT COUNT(*) FROM (SELECT g FROM ({self.block()}) AS q {word} SELECT g FROM ({self.block()}) AS r) AS s"

    def joined(self) -> str:
        key, kind = self._one(self.keys), self._one(("JOIN", "LEFT JOIN", "FULL JOIN"))
        sides = [f"(SELECT {key} AS g, {self._one(self.measures)} AS n {self.rows()} GROUP BY 1)" for _ in range(2)]
        item = self._one(("COUNT(*)", "SUM(p.n)", "SUM(p.n + q.n)", "COUNT(q.g)", "MIN(p.g)"))
        return f"SELECT {item} FROM {sides[0]} AS p {kind} {sides[1]} AS q ON p.g = q.g"

    def nested(self) -> str:
        inner = f"SELECT {self._one(self.keys)} AS g, {self._one(self.keys)} AS h, {self._one(self.measures)} AS n {self.rows()} GROUP BY 1, 2"
        middle = f"SELECT h, {self._one(('SUM(n)', 'COUNT(*)', 'MAX(n)', 'AVG(n)'))} AS n, SUM(n) AS s FROM ({inner}) AS q GROUP BY h"
        item = self._one(("SUM(s), MAX(s)", "COUNT(*)", "SUM(n)", "COUNT(*) FILTER (WHERE s > 10)", "MAX(n)", "MIN(h)"))
        return f"SELECT {item} FROM ({middle}) AS r"


class TiedKeys(Questions):
    """A generator of queries whose keys depend on each other or are tied by conditions; all groups are compared."""

    def one(self) -> str:
        keys = self.random.choice(TIED)
        where = [
            *self.random.sample(JOINT, self._one((0, 1, 1, 2))),
            *self.random.sample(CONDITIONS, self._one((0, 0, 1))),
        ]
        clause = f" WHERE {' AND '.join(f'({one})' for one in where)}" if where else ""
        having = (
            self._one(("", "", *(f" HAVING {one}" for one in JOINT[:5]))) if {"kind", "code", "x"} <= set(keys) else ""
        )
        items = [f"{key} AS k{at}" for at, key in enumerate(keys)]
        compared = any(" = " in key or " > " in key for key in keys)  # sqlglot reads no comparison inside ROLLUP
        form = "{}" if compared else self._one(("{}", "{}", "{}", "ROLLUP({})", "CUBE({})"))
        items += [] if form == "{}" else [f"GROUPING({', '.join(keys)}) AS g"]
        asked = f"SELECT {', '.join(items)}, COUNT(*) AS n FROM {self._one(RENAMED)}{clause} GROUP BY {form.format(', '.join(keys))}{having}"
        return self._one((asked, asked, f"SELECT COUNT(*), SUM(n), MAX(n) FROM ({asked}) AS q"))


class OuterJoins(Questions):
    """A generator of queries over outer joins with rows that have no partner; columns of the other side are NULL there."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        self.sources, self.keys, self.measures, self.conditions = self._one((PUBLIC, PEOPLE, SUMMARIES))

    def one(self) -> str:
        return self._one(self.shapes())()


def difference(release: Release, expected: Sequence[Row]) -> str | None:
    """Return a description of the first difference from DuckDB's answer, or None. Columns whose error is stated as unknown are
    left out.

    Rows that DuckDB does not return are groups without rows: their counts and sums are 0, and their exact values occur in no
    other row.
    """
    shown = [at for at, column in enumerate(release.columns) if not (column.of_groups or column.if_all_exist)]
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
        if column.noisy and not (column.of_groups or column.if_all_exist) and re.fullmatch(r"m\d|n|count", column.name)
    ]
    for row in left:
        if not exact or tuple(row[at] for at in exact) in keys or any(row[at] for at in sums):
            return f"{row} should not be there: {wanted[:6]}"
    return None


def _alike(row: Row, other: Row, exact: Sequence[int], shown: Sequence[int]) -> bool:
    """Return whether two rows agree; a sum of no values is NULL in SQL and 0 in dpsql."""
    noisy = (at for at in shown if at not in exact)
    return all(same(row[at], other[at]) for at in exact) and all(same(row[at] or 0.0, other[at] or 0.0) for at in noisy)


def types(release: Release, expected: Sequence[Row]) -> str | None:
    """Return a description of a column whose values are of another kind than DuckDB's (whole, real, boolean, text, date), or
    None."""
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
