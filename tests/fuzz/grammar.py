"""Random queries over a policy's tables: mostly well typed, mixed with shapes from `odd_sql`, or with corners of what is accepted."""

import random
import string

from dpsql.policy import Policy
from fuzz import odd_sql

MOST_DEPTH = 4
Columns = list[tuple[str, str]]
"""Column names as written in the query, with their types."""


class Writer:
    """A writer of one query. `wild`: the share of parts taken from `odd_sql` (0: dpsql should answer everything). `corners`: the
    share of parts that are accepted and rare: values of earlier stages, kept public rows, samples, extreme numbers."""

    def __init__(self, rng: random.Random, policy: Policy, wild: float, corners: float = 0.0) -> None:
        self.rng = rng
        self.policy = policy
        self.wild = wild
        self.corners = corners
        self.names = 0
        self.here: Columns = [("x", "integer")]

    def statement(self) -> str:
        """Return a query, or occasionally another statement."""
        if self._oddly(0.3):
            return self._filled(self.rng.choice(odd_sql.STATEMENTS), MOST_DEPTH)
        sql = self.query(MOST_DEPTH)[0]
        return f"EXPLAIN {sql}" if self._oddly(0.2) else sql

    # --- queries ------------------------------------------------------------------------------------------------------

    def query(self, depth: int) -> tuple[str, Columns]:
        """Return a query whose rows may be released, and its columns."""
        if depth <= 0 or self._oddly():
            shape = self.rng.choice(odd_sql.QUERIES) if depth > 0 else "SELECT COUNT(*) AS x FROM {t}"
            return self._filled(shape, depth - 1), [("x", "integer")]
        kind = self.rng.random()
        if kind < 0.55:
            return self.aggregated(depth - 1)
        if kind < 0.75:
            return self._over_results(depth - 1)
        if kind < 0.85:
            return self._joined_results(depth - 1)
        if kind < 0.93:
            sql, columns = self._over_results(depth - 1)
            name = self._name("c")
            inner, _ = self.aggregated(depth - 1)
            return f"WITH {name} AS ({inner}) {sql}", columns
        one, columns = self.aggregated(depth - 1)
        word = self.rng.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        return f"{one} {word} {one}", columns

    def aggregated(self, depth: int) -> tuple[str, Columns]:
        """Return a query that aggregates protected rows, grouped or not."""
        source, self.here = self._source(depth)
        where = f" WHERE {self._expression('boolean', depth)}" if self.rng.random() < 0.4 else ""
        keys = [self._key(depth) for _ in range(self.rng.choice([0, 0, 1, 1, 1, 2]))]
        items, columns, calls = [], [], []
        for text, type_ in keys:
            items.append(f"{text} AS {(name := self._name('g'))}")
            columns.append((name, type_))
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            call, type_ = self._aggregate(depth)
            calls.append(call)
            outer = self._after(call, type_)
            items.append(f"{outer} AS {(name := self._name('n'))}")
            columns.append((name, "real" if outer != call else type_))
        group = self._group([text for text, _ in keys], [name for name, _ in columns])
        having = (
            f" HAVING {self.rng.choice(calls)} {self.rng.choice(['>', '<', '<>'])} {self.rng.choice(['0', '1', '2.5'])}"
        )
        tail = having if self.rng.random() < 0.15 else ""
        tail += f" ORDER BY {', '.join(name for name, _ in columns)}" if self.rng.random() < 0.2 else ""
        return f"SELECT {', '.join(items)} FROM {source}{where}{group}{tail}", columns

    def _group(self, keys: list[str], names: list[str]) -> str:
        if not keys:
            return ""
        kind = self.rng.random()
        if kind < 0.1 and len(keys) > 1:
            word = self.rng.choice(["ROLLUP", "CUBE"])
            return f" GROUP BY {word} ({', '.join(keys)})"
        if kind < 0.3:
            return f" GROUP BY {', '.join(names[: len(keys)])}"
        if kind < 0.5:
            return f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}"
        return " GROUP BY ALL" if kind < 0.6 else f" GROUP BY {', '.join(keys)}"

    def _after(self, call: str, type_: str) -> str:
        """Return arithmetic over an aggregate, for the public remainder."""
        if type_ not in ("integer", "real") or self.rng.random() < 0.7:
            return call
        return self.rng.choice([f"round({call}, 2)", f"{call} * 2 + 1", f"coalesce({call}, 0)", f"CASE WHEN {call} > 1 THEN {call} ELSE -1 END",
                                f"SUM({call}) OVER ()", f"rank() OVER (ORDER BY {call})", f"abs({call})", f"least({call}, 5)"])  # fmt: skip

    def _over_results(self, depth: int) -> tuple[str, Columns]:
        inner, columns = self.query(depth)
        self.here = columns
        numbers = [name for name, type_ in columns if type_ in ("integer", "real")] or ["1"]
        value = self.rng.choice(numbers)
        kind = self.rng.random()
        if kind < 0.3:
            word = self.rng.choice(["SUM", "AVG", "MAX", "COUNT", "MIN"])
            return f"SELECT {word}({value}) AS r, COUNT(*) AS s FROM ({inner}) AS q", [("r", "real"), ("s", "integer")]
        if kind < 0.6:
            return f"SELECT * FROM ({inner}) AS q WHERE {value} IS NOT NULL AND {value} > -3", columns
        if kind < 0.8:
            first = columns[0][0]
            return f"SELECT {first}, MAX({value}) AS m FROM ({inner}) AS q GROUP BY {first}", [
                columns[0],
                ("m", "real"),
            ]
        items = [self._expression(type_, depth - 2) for _, type_ in columns]
        named = ", ".join(f"{text} AS v{at}" for at, text in enumerate(items))
        return f"SELECT {named} FROM ({inner}) AS q", [(f"v{at}", type_) for at, (_, type_) in enumerate(columns)]

    def _joined_results(self, depth: int) -> tuple[str, Columns]:
        one, left = self.aggregated(depth)
        other, right = self.aggregated(depth)
        word = self.rng.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        keys = [(a, b) for a, t in left for b, u in right if t == u and a.startswith("g") and b.startswith("g")]
        if not keys:
            return f"SELECT * FROM ({one}) AS l, ({other}) AS r", left + right
        a, b = self.rng.choice(keys)
        return f"SELECT * FROM ({one}) AS l {word} ({other}) AS r ON l.{a} = r.{b}", left + right

    # --- sources ------------------------------------------------------------------------------------------------------

    def _source(self, depth: int) -> tuple[str, Columns]:
        """Return an item of FROM over protected rows, and its columns."""
        table = self.rng.choice([name for name in self.policy.tables if self.policy.is_protected(name)])
        if self._oddly(0.5) and depth > 0:
            return self._filled(self.rng.choice(odd_sql.SOURCES), depth - 1), self._columns(table, "")
        if self._corner():
            return self._kept(table)
        kind = self.rng.random()
        if kind < 0.4 or depth <= 0:
            return table, self._columns(table, "")
        if kind < 0.65:
            return self._join(table)
        if kind < 0.8:
            self.here = self._columns(table, "")
            where = self._expression("boolean", depth - 2)
            return f"(SELECT * FROM {table} WHERE {where}) AS s", self.here
        unit = (
            self.policy.unit_column(table) if self.policy.privacy_unit and not self.policy.unit_joins(table) else None
        )
        if kind < 0.9 and unit is not None:
            self.here = self._columns(table, "")
            call, type_ = self._aggregate(depth - 2, per_unit=True)
            inner = f"SELECT {unit}, {call} AS u1, COUNT(*) AS u2 FROM {table} GROUP BY {unit}"
            return f"({inner}) AS p", [("u1", type_), ("u2", "integer")]
        self.here = self._columns(table, "")
        chosen = self.rng.sample(self.here, min(3, len(self.here)))
        side = f"SELECT {', '.join(name for name, _ in chosen)} FROM {table}"
        where = self._expression("boolean", depth - 2)
        return f"({side} UNION ALL {side} WHERE {where}) AS b", chosen

    def _join(self, table: str) -> tuple[str, Columns]:
        """Return a join along a declared foreign key, if the table has one."""
        keys = self.policy.tables[table].foreign_keys
        if not keys:
            return table, self._columns(table, "")
        key = self.rng.choice(sorted(keys))
        parent, column = keys[key]
        word = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN"])
        source = f"{table} AS l {word} {parent} AS r ON l.{key} = r.{column}"
        return source, self._columns(table, "l.") + self._columns(parent, "r.")

    def _kept(self, table: str) -> tuple[str, Columns]:
        """Return a join that keeps public rows without a partner, if the table has a public parent."""
        keys = self.policy.tables[table].foreign_keys
        public = [key for key in sorted(keys) if self.policy.tables[keys[key][0]].public]
        if not public:
            return self._join(table)
        parent, column = keys[key := self.rng.choice(public)]
        sides = [f"{parent} AS r LEFT JOIN {table} AS l", f"{table} AS l RIGHT JOIN {parent} AS r",
                 f"{parent} AS r FULL JOIN {table} AS l"]  # fmt: skip
        source = f"{self.rng.choice(sides)} ON l.{key} = r.{column}"
        return source, self._columns(table, "l.") * 3 + self._columns(parent, "r.")

    def _columns(self, table: str, prefix: str) -> Columns:
        return [(f"{prefix}{column.name}", column.type) for column in self.policy.tables[table].columns.values()]

    # --- aggregates and expressions -----------------------------------------------------------------------------------

    def _aggregate(self, depth: int, per_unit: bool = False) -> tuple[str, str]:
        number, other = self._bounded(depth), self._bounded(depth)
        some = self.rng.choice(self.here)[0]
        choices = [
            ("COUNT(*)", "integer"), (f"COUNT({some})", "integer"), (f"SUM({number})", "real"), (f"AVG({number})", "real"),
            (f"COUNT(DISTINCT {some})", "integer"), (f"COUNT_IF({self._expression('boolean', depth - 1)})", "integer"),
        ]  # fmt: skip
        if per_unit:
            choices += [(f"MIN({number})", "real"), (f"MAX({number})", "real")]
        else:
            choices += [(f"VAR_POP({number})", "real"), (f"STDDEV({number})", "real"), (f"COVAR_POP({number}, {other})", "real"),
                        (f"BOOL_OR({self._expression('boolean', depth - 1)})", "boolean"), (f"REGR_COUNT({number}, {other})", "integer")]  # fmt: skip
            choices += self._chosen(number, depth)
            choices += self._of_samples(number, other, depth) if self._corner() else []
        call, type_ = self.rng.choice(choices)
        if self._oddly(0.3):
            return self._filled("{a}", depth - 1), "real"
        if self.rng.random() < 0.15:
            call += f" FILTER (WHERE {self._expression('boolean', depth - 1)})"
        return call, type_

    def _chosen(self, number: str, depth: int) -> Columns:
        """Return aggregates whose result is chosen among values: quantiles, the most frequent value, the key of an extreme
        row."""
        whole = f"clamp({self._expression('integer', depth - 1)}, 0, {self.rng.choice([1, 9, 300])})"
        truth = self._expression("boolean", depth - 1)
        share = self.rng.choice(["0", "0.25", "0.5", "0.9", "1"])
        return [
            (f"QUANTILE_DISC({whole}, {share})", "integer"), (f"MIN({whole})", "integer"), (f"MAX({whole})", "integer"),
            (f"MEDIAN({number})", "real"), (f"MODE({whole})", "integer"), (f"MODE({truth})", "boolean"),
            (f"ARG_MAX({truth}, {number})", "boolean"), (f"MIN({truth})", "boolean"),
        ]  # fmt: skip

    def _of_samples(self, number: str, other: str, depth: int) -> Columns:
        """Return aggregates of pairs, and the median or mean of any aggregate over samples."""
        some, truth = self.rng.choice([number, other]), self._expression("boolean", depth - 1)
        words = ["AVG", "SUM", "MEDIAN", "VAR_SAMP", "STDDEV_POP", "MIN", "COUNT", "KURTOSIS", "SKEWNESS", "ENTROPY"]
        inner = [*(f"{word}({some})" for word in words), "COUNT(*)", f"CORR({some}, {other})",
                 f"SUM({some}) / COUNT(*)", f"AVG({some}) FILTER (WHERE {truth})"]  # fmt: skip
        tail = self.rng.choice(["", ", 'mean'"])
        samples = [f"SAMPLE_AGGREGATE({text}, {self.rng.choice(['-2, 5', '0, 1', '-1e99, 1e99', '0, 1e-99'])}, 8{tail})" for text in inner]  # fmt: skip
        pairs = ["COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_AVGX", "REGR_AVGY"]
        return [(text, "real") for text in (*samples, *(f"{word}({number}, {other})" for word in pairs), f"VAR_SAMP({number})")]  # fmt: skip

    def _bounded(self, depth: int) -> str:
        """Return a number with bounds: a column that has them, or a clamped expression."""
        text = self._expression(self.rng.choice(["integer", "real"]), depth - 1)
        if self._corner():
            plain = [name for name, type_ in self.here if type_ in ("integer", "real")] or ["1"]
            column, factor = self.rng.choice(plain), self.rng.choice(EXTREME)
            return self.rng.choice(
                [column, f"{factor} * {column}", f"{column} + {factor}", f"clamp({text}, {self.rng.choice(ENDS)})"]
            )
        low = self.rng.choice([-10, 0, 1])
        return f"clamp({text}, {low}, {low + self.rng.choice([1, 9, 1000])})"

    def _key(self, depth: int) -> tuple[str, str]:
        name, type_ = self.rng.choice(self.here)
        kind = self.rng.random()
        if kind < 0.5:
            return name, type_
        type_ = self.rng.choice(["integer", "text", "boolean", "date"])
        return self._expression(type_, depth - 1), type_

    def _expression(self, type_: str, depth: int) -> str:
        """Return a row expression of `type_` over the columns in scope."""
        if self._oddly(0.3) and depth > 0:
            return f"({self._filled(self.rng.choice(odd_sql.EXPRESSIONS), depth - 1)})"
        if type_ in ("integer", "real") and self._corner(0.5):
            return self.rng.choice(
                [self._earlier(), self.rng.choice(EXTREME)] if type_ == "real" else [self._earlier()]
            )
        known = [name for name, of in self.here if of == type_]
        if depth <= 0 or self.rng.random() < 0.3:
            return self.rng.choice(known) if known and self.rng.random() < 0.8 else self.rng.choice(_LITERALS[type_])
        shape = self.rng.choice(_SHAPES[type_])
        for word, of in _HOLES.items():
            while word in shape:
                shape = shape.replace(word, self._expression(of, depth - 1), 1)
        return shape

    def _earlier(self) -> str:
        """Return a single value that an earlier stage releases."""
        table = self.rng.choice([name for name in self.policy.tables if self.policy.is_protected(name)])
        numbers = [column.name for column in self.policy.tables[table].columns.values() if column.lower is not None]
        bounded = [name for name in numbers if self.policy.tables[table].columns[name].type in ("integer", "real")]
        calls = ["COUNT(*)", *(f"{word}({name})" for name in bounded for word in ("AVG", "SUM", "MAX", "0.5 * AVG"))]
        return f"(SELECT {self.rng.choice(calls)} FROM {table})"

    def _corner(self, share: float = 1.0) -> bool:
        return self.corners > 0 and self.rng.random() < self.corners * share

    # --- odd shapes ---------------------------------------------------------------------------------------------------

    def _oddly(self, share: float = 1.0) -> bool:
        return self.rng.random() < self.wild * share

    def _filled(self, shape: str, depth: int) -> str:
        """Return a shape of `odd_sql` with its holes filled."""
        parts = []
        for literal, hole, _, _ in string.Formatter().parse(shape):
            parts.append(literal)
            if hole is not None:
                parts.append(self._hole(hole, depth))
        return "".join(parts)

    def _hole(self, hole: str, depth: int) -> str:
        lists = {"n": odd_sql.NUMBERS, "s": odd_sql.STRINGS, "i": odd_sql.IDENTIFIERS, "y": odd_sql.TYPES}
        if hole in lists:
            some = lists[hole]
            return self.rng.choice(some if self.rng.random() < 0.5 else some[:4]).replace("{{", "{").replace("}}", "}")
        if hole == "t":
            return self.rng.choice(list(self.policy.tables))
        if hole == "c":
            return self.rng.choice(self.here)[0]
        if hole == "q":
            return self.query(depth - 1)[0] if depth > 0 else "SELECT 1"
        if hole == "w":
            return self.rng.choice(_WINDOWS)
        if hole == "a":
            return self.rng.choice(["COUNT(*)", f"SUM({self._bounded(0)})", f"AVG({self.rng.choice(self.here)[0]})"])
        return self._expression(self.rng.choice(list(_LITERALS)), depth - 1)

    def _name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"


EXTREME = (
    "5e-324", "-5e-324", "2.2250738585072014e-308", "1e-300", "-1e-160", "1e-16", "0.0", "-0.0", "1e16", "1e154", "-1e300",
    "1.7976931348623157e308", "9007199254740993", "9223372036854775807", "-9223372036854775808", "4503599627370497.5",
)  # fmt: skip
ENDS = (
    "0, 5e-324", "-5e-324, 5e-324", "1, 1", "0, 0", "1, 1.0000000000000002", "-1e300, 1e300", "0, 1.7976931348623157e308",
    "-9007199254740993, 9007199254740993", "1e-300, 2e-300", "-1e-310, 0", "123456789, 123456790",
)  # fmt: skip
_WINDOWS = (
    "", "ORDER BY 1", "PARTITION BY 1 ORDER BY 2 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING", "ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES",
    "PARTITION BY COUNT(*) ORDER BY SUM(x)", "ROWS -1 PRECEDING", "w", "ORDER BY 1 GROUPS 2 PRECEDING",
)  # fmt: skip
_HOLES = {"{I}": "integer", "{R}": "real", "{T}": "text", "{B}": "boolean", "{D}": "date", "{S}": "timestamp"}
_LITERALS = {
    "integer": ["0", "1", "2", "7", "-3", "100", "NULL"], "real": ["0.5", "1.0", "-2.25", "1e3", "10.125"],
    "text": ["'flu'", "''", "'er'", "'12'", "'north'", "'a b'"], "boolean": ["true", "false"],
    "date": ["DATE '2024-02-29'", "DATE '1996-12-31'"], "timestamp": ["TIMESTAMP '2024-03-01 12:30:00'"],
}  # fmt: skip
_SHAPES = {
    "integer": [
        "({I} + {I})", "({I} - {I})", "({I} * {I})", "({I} // {I})", "({I} % {I})", "abs({I})", "sign({R})", "length({T})", "coalesce({I}, {I})", "nullif({I}, {I})",
        "CASE WHEN {B} THEN {I} ELSE {I} END", "CASE WHEN {B} THEN {I} END", "extract(month FROM {D})", "date_diff('day', {D}, {D})", "date_diff('hour', {S}, {S})",
        "year({D})", "dayofweek({D})", "least({I}, {I})", "greatest({I}, {I}, {I})", "width_bucket({R}, 0, 10, 5)", "CAST({B} AS INTEGER)", "TRY_CAST({T} AS INTEGER)",
        "date_part('week', {D})", "date_part('hour', {S})", "(-{I})", "if({B}, {I}, {I})", "CAST({T} AS INTEGER)", "({D} - {D})", "isodow({D})", "date_part('dow', {D})",
    ],
    "real": [
        "({R} + {R})", "({R} - {I})", "({R} * {R})", "({I} / 4)", "({R} / nullif({R}, 0))", "abs({R})", "floor({R})", "ceil({R})", "round({R}, 2)", "round({R})", "sqrt(greatest({R}, 1))", "coalesce({R}, {I})",
        "CASE WHEN {B} THEN {R} ELSE {I} END", "least({R}, {I})", "greatest({R}, {R})", "CAST({I} AS DOUBLE)", "nullif({R}, {R})", "CAST({R} AS DECIMAL(12, 2))", "ln(greatest({R}, 0.5))", "power({R}, 2)",
        "({R} ** 2)", "CASE {I} WHEN {I} THEN {R} WHEN 2 THEN {R} ELSE 0 END",
    ],
    "text": [
        "({T} || {T})", "lower({T})", "upper({T})", "trim({T})", "left({T}, 2)", "right({T}, 1)", "substr({T}, 2, 3)", "coalesce({T}, {T})", "concat({T}, {T})", "replace({T}, 'a', 'bb')",
        "CASE WHEN {B} THEN {T} ELSE {T} END", "CAST({I} AS VARCHAR)", "nullif({T}, {T})", "CAST({D} AS VARCHAR)", "CAST({B} AS VARCHAR)", "substring({T} FROM 2)", "ltrim({T})", "least({T}, {T})",
        "CAST({S} AS VARCHAR)",
    ],
    "boolean": [
        "({I} > {I})", "({R} <= {R})", "({I} = {I})", "({T} = {T})", "({T} <> {T})", "({D} < {D})", "({B} AND {B})", "({B} OR {B})", "(NOT {B})", "({I} IS NULL)", "({T} IS NOT NULL)",
        "({I} IN (1, 2, 7))", "({T} IN ('er', 'flu', NULL))", "({I} BETWEEN {I} AND {I})", "({T} LIKE 'f%')", "({T} ILIKE '%L_')", "starts_with({T}, {T})", "contains({T}, {T})",
        "({B} IS TRUE)", "({B} IS NOT FALSE)", "({I} IS NOT DISTINCT FROM {I})", "({I} NOT IN (1, 2))", "({T} < {T})", "ends_with({T}, 'u')", "({R} > {I})", "({S} >= {D})", "({B} = {B})",
        "({R} IS DISTINCT FROM {R})", "(NOT {T} LIKE '_%u')", "coalesce({B}, {B})", "({T} BETWEEN 'a' AND 'g')", "({I}, {T}) = ({I}, {T})", "({D} BETWEEN {D} AND {D})",
    ],
    "date": [
        "CAST({S} AS DATE)", "date_trunc('month', {D})", "({D} + 3)", "({D} - 1)", "coalesce({D}, {D})", "least({D}, {D})", "CASE WHEN {B} THEN {D} END", "({D} + {I})",
        "CAST(({D} + INTERVAL 1 MONTH) AS DATE)", "greatest({D}, {D})", "date_trunc('week', {D})", "nullif({D}, {D})",
    ],
    "timestamp": ["date_trunc('hour', {S})", "({S} + INTERVAL 2 HOUR)", "CAST({D} AS TIMESTAMP)", "coalesce({S}, {S})", "({S} - INTERVAL '1' MONTH)", "date_trunc('quarter', {S})"],
}  # fmt: skip
