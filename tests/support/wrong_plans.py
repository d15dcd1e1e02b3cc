"""Wrong plans: what a binder with a bug could return, made from right plans by one change each, and databases to try them on.

The changes are systematic: every node of a plan has a list of variants (another column, another type, no filter, no keys, ...),
each with the name of its kind. `wrong_plans` takes a few of each kind, chosen by a seed.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb

from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import (
    UNIT,
    Block,
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Key,
    Literal,
    Measure,
    Plan,
    Project,
    PublicInput,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    base_scan,
)
from dpsql.planning.planner import Planned, Planner
from dpsql.policy import Policy, parse_policy
from dpsql.sql.binder.query import bind
from dpsql_audit.observation import Observed, ObservedSession

POLICY = """
dataset: ward
privacy_unit: {table: people, column: person}
budget: {epsilon: 100, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///ledger.db
analysts:
  some:
    epsilon: 100
    tables: [people, stays, wards, tests, codes]
    columns: {people: [person, age], stays: [stay, person, ward, days, cost, code], wards: [ward, floor]}
    where: {stays: "urgent AND ward <> 'c'"}
tables:
  people:
    max_rows: 1
    primary_key: [person]
    columns:
      person: {type: integer, nullable: false}
      age: {type: integer, lower: 0, upper: 99}
      secret: {type: integer, lower: 0, upper: 9}
  stays:
    max_rows: 3
    primary_key: [stay]
    foreign_keys: {person: people.person}
    columns:
      stay: {type: integer, nullable: false}
      person: {type: integer}
      ward: {type: text, domain: [a, b, c], nullable: false}
      days: {type: integer, lower: 0, upper: 50}
      cost: {type: real, lower: 0, upper: 1000}
      urgent: {type: boolean}
      diagnosis: {type: text, domain: [x, y]}
      code: {type: text}
  tests:
    max_rows: 4
    foreign_keys: {stay: stays.stay}
    columns: {stay: {type: integer}, value: {type: real, lower: -5, upper: 5}, kind: {type: text, domain: [alt, hb]}}
  letters:
    max_rows: 2
    foreign_keys: {person: people.person}
    columns: {person: {type: integer}, ward: {type: text, domain: [a, b, c]}, days: {type: integer, lower: 0, upper: 50}, floor: {type: integer}}
  wards:
    public: true
    primary_key: [ward]
    max_multiplicity: {floor: 2}
    columns: {ward: {type: text}, floor: {type: integer}, secret_name: {type: text}}
  codes:
    public: true
    primary_key: [number]
    columns: {number: {type: integer}}
  prices:
    public: true
    columns: {ward: {type: text}, floor: {type: integer}}
"""
QUESTIONS = (
    "SELECT ward, COUNT(*), SUM(days), AVG(cost) FROM stays WHERE days > 1 GROUP BY ward",
    "SELECT w.floor, COUNT(*), SUM(s.cost) FROM stays s JOIN wards w ON s.ward = w.ward GROUP BY w.floor",
    "SELECT COUNT(*), SUM(s.days) FROM stays s JOIN wards w ON s.days = w.floor",
    "SELECT p.age // 10, COUNT(*), SUM(s.days) FROM people p LEFT JOIN stays s ON s.person = p.person GROUP BY 1",
    "SELECT s.ward, SUM(t.value), COUNT(*) FROM stays s JOIN tests t ON t.stay = s.stay GROUP BY s.ward",
    "SELECT COUNT(*), AVG(age) FROM people p WHERE EXISTS (SELECT 1 FROM stays s WHERE s.person = p.person AND s.days > p.age)",
    "SELECT COUNT(*) FROM stays WHERE ward NOT IN (SELECT ward FROM wards WHERE floor > 1)",
    "SELECT n, COUNT(*), SUM(total) FROM (SELECT person, COUNT(*) AS n, SUM(cost) AS total FROM stays GROUP BY person) t GROUP BY n",
    "SELECT COUNT(*), SUM(n) FROM (SELECT person, ward, COUNT(*) AS n FROM stays GROUP BY person, ward) t",
    "SELECT ward, COUNT(*) FROM (SELECT ward, row_number() OVER (PARTITION BY person ORDER BY days) AS r FROM stays) t "
    "WHERE r <= 2 GROUP BY ward",
    "SELECT days, COUNT(*) FROM stays GROUP BY days",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ward, days FROM stays) t",
    "SELECT SUM(x) FROM (SELECT days AS x FROM stays UNION ALL SELECT age FROM people) t",
    "SELECT COUNT(*) FROM stays s JOIN (SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward) t ON s.ward = t.ward "
    "WHERE s.days > t.n",
    "SELECT COUNT(*) FROM stays WHERE cost > (SELECT AVG(cost) FROM stays)",
    "SELECT MEDIAN(days), COUNT(DISTINCT days), COUNT(DISTINCT person), VAR_POP(cost) FROM stays WHERE ward = 'a'",
    "SELECT floor, COUNT(*) FROM wards GROUP BY floor",
    "SELECT COUNT(*), SUM(s.days) FROM stays s CROSS JOIN (SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward LIMIT 3) t",
    "SELECT COUNT(*), SUM(n) FROM (SELECT person, COUNT(*) AS n FROM (SELECT person, days, row_number() OVER (PARTITION BY person "
    "ORDER BY days) AS r FROM stays) q GROUP BY person) t",
    "SELECT COUNT(*), SUM(days) FROM stays WHERE code = 'n/a' OR code < '5'",
    "SELECT COUNT(*), SUM(s.days) FROM stays s LEFT JOIN codes c ON s.days = c.number",
)  # fmt: skip


@cache
def policy() -> Policy:
    """Return the policy as the analyst `some` sees it."""
    return replace(parse_policy(POLICY), asker="some")


# --- databases --------------------------------------------------------------------------------------------------------

Data = dict[str, list[tuple[Any, ...]]]
TYPES = {
    "people": "person BIGINT, age BIGINT, secret BIGINT",
    "stays": "stay BIGINT, person BIGINT, ward VARCHAR, days BIGINT, cost DOUBLE, urgent BOOLEAN, diagnosis VARCHAR, code VARCHAR",
    "tests": "stay BIGINT, value DOUBLE, kind VARCHAR",
    "letters": "person BIGINT, ward VARCHAR, days BIGINT, floor BIGINT",
    "wards": "ward VARCHAR, floor BIGINT, secret_name VARCHAR",
    "codes": "number BIGINT",
    "prices": "ward VARCHAR, floor BIGINT",
}


def crowd(hidden: int = 0) -> Data:
    """Return other people. `hidden` changes what does not exist for the analyst: columns, rows without the filter, tables. No
    unit has more rows than max_rows, so that the bounded view has no choice."""
    data: Data = {"people": [], "stays": [], "tests": [], "letters": []}
    for person in range(1, 9):
        data["people"].append((person, 10 * person + 3, (person + 4 * hidden) % 10))
        for number in range(person % 4):
            stay, ward, urgent = 10 * person + number, "abc"[(person + number) % 3], (person + number) % 2 == 0
            exists = urgent and ward != "c"
            change = 0 if exists else hidden
            data["stays"].append((
                stay, person, ward, (7 * person + 3 * number + 9 * change) % 51, 90.0 * person + number + 50 * change,
                urgent, "xy"[(number + hidden) % 2], "n/a" if change else "7",
            ))  # fmt: skip
            data["tests"].append((stay, float(number) - 1, "alt"))
        data["letters"] += [(person, "abc"[(person + hidden) % 3], person + hidden, person + hidden)] * (1 + hidden)
    names = [f"{name} {hidden}" for name in ("one", "two", "three")]
    data["wards"] = list(zip("abc", (1, 1, 2), names, strict=True))
    data["codes"] = [(2**53,), (2**53 + 1,), (50,)]
    data["prices"] = [("a", 7 + hidden), ("b", 8)]
    return data


def unit(days: Sequence[int], wards: str, cost: float, urgent: bool = True) -> Data:
    """Return one more person with three stays, which come near every bound."""
    stays = [
        (900 + number, 90, wards[number % len(wards)], days[number % len(days)], cost, urgent, "x", "n/a")
        for number in range(3)
    ]
    tests = [(900 + number % 3, 5.0 - 10 * (number % 2), "hb") for number in range(4)]
    return {"people": [(90, 99, 9)], "stays": stays, "tests": tests, "letters": [(90, "a", 50, 5)] * 2}


UNITS = {
    "one group": unit([50], "a", 1000.0),
    "spread": unit([2, 30, 50], "abb", float(2**53)),
    "beyond": unit([10**6, -(10**6), 1], "ab", float("inf")),
    "matched": unit([1], "ab", 2.0**53),
    "filtered out": unit([50], "c", 1000.0, urgent=False),
}


class Ward(ObservedSession):
    """A session of the analyst over one database, which answers plans instead of texts."""

    def __init__(self, planner: Planner | None, *parts: Data) -> None:
        connection = duckdb.connect(config={"threads": 1})
        for table, types in TYPES.items():
            connection.execute(f"CREATE TABLE {table} ({types})")
            for rows in (part[table] for part in parts if part.get(table)):
                connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        super().__init__(policy(), DuckDBEngine(connection, policy(), "audit", owned=True), planner=planner)

    def answered(self, planned: Planned) -> Observed:
        """Run a planned question and return everything visible of it."""
        return self._noted(lambda: self.session.answer(planned))


# --- changes ----------------------------------------------------------------------------------------------------------

Variant = tuple[str, Any]
TRUE = Literal(True, literal_facts(True))


@cache
def scans() -> tuple[Scan, ...]:
    """Return the scans of all tables, hidden ones as well."""
    return tuple(base_scan(table) for table in policy().tables.values())


def _columns(rng: random.Random) -> Iterator[Column]:
    """Yield columns that a wrong binder could name instead: those of all tables, of this and of deeper levels."""
    known = [column for scan in scans() for column in scan.columns]
    for column in rng.sample(known, 6):
        yield column
        yield Column(f"{rng.choice('ab')}.{column.name}", column.facts)
    yield Column("secret", Facts(Type.INTEGER, Fraction(0), Fraction(9)))
    yield Column("diagnosis", Facts(Type.TEXT, values=("x", "y")))
    yield Column("u", Facts(Type.INTEGER, Fraction(0), Fraction(99)))
    yield Column(UNIT, Facts(Type.INTEGER, Fraction(0), Fraction(99)))


def _hidden_condition() -> Expr:
    return call("eq", Column("diagnosis", Facts(Type.TEXT)), Literal("x", literal_facts("x")))


def _facts(facts: Facts) -> Iterator[Variant]:
    for type_ in (Type.INTEGER, Type.REAL, Type.TEXT, Type.BOOLEAN):
        if type_ is not facts.type:
            yield "another type", replace(facts, type=type_)
    yield "never NULL", replace(facts, nullable=False)
    yield "not listed", facts.without_values()
    yield "another total", replace(facts, max_total=Fraction(3))
    if facts.type.numeric and facts.bounded:
        yield "narrower bounds", replace(facts, lower=facts.lower, upper=(facts.lower + facts.upper) / 2)
        yield "wider bounds", replace(facts, lower=facts.lower - 100, upper=facts.upper * 2 + 100)
        yield "bounds in disorder", replace(facts, lower=facts.upper + 1, upper=facts.lower)
        yield "no bounds", replace(facts, lower=None, upper=None)
    else:
        yield "bounds of what has none", replace(facts, lower=Fraction(0), upper=Fraction(5))


def variants(node: Any, rng: random.Random) -> Iterator[Variant]:
    """Yield the changes of one node of a plan, each with its kind."""
    if isinstance(node, (Column, Literal, Call)):
        yield from (("facts: " + kind, replace(node, facts=facts)) for kind, facts in _facts(node.facts))
        yield from (("another column", column) for column in _columns(rng) if column.facts.type is node.facts.type)
        yield from (("a column of another type", column) for column in _columns(rng))
    if isinstance(node, Column):
        prefix = node.name[:2] if node.name[:2] in ("a.", "b.") else ""
        yield "a real as an integer", Column(f"{prefix}cost", Facts(Type.INTEGER, Fraction(0), Fraction(999)))
    if isinstance(node, Literal):
        yield from (("another constant", replace(node, value=value)) for value in (0, 10**9, "a", True, Fraction(1, 3)))
    if isinstance(node, Call):
        others = rng.sample(
            ["add", "div", "mod", "intdiv", "to_text", "to_integer", "eq", "lower", "sample.avg", "getenv"], 4
        )
        yield from (("another function", replace(node, function=name)) for name in others)
        yield "other arguments", replace(node, arguments=node.arguments[::-1])
        yield "fewer arguments", replace(node, arguments=node.arguments[:-1])
    if isinstance(node, Relation):
        yield from _relations(node, rng)
    if isinstance(node, Key):
        yield from _keys(node, rng)
    if isinstance(node, Measure):
        yield from (
            ("another aggregate", replace(node, aggregate=word)) for word in ("count", "sum", "count_units", "mode")
        )
        yield "DISTINCT", replace(node, distinct=not node.distinct)
        yield "another FILTER", replace(node, filter=None if node.filter is not None else TRUE)
        yield "no arguments", replace(node, arguments=())
        yield "a FILTER by a hidden column", replace(node, filter=_hidden_condition())
    if isinstance(node, Block):
        yield "keys left out", replace(node, keys=node.keys[:-1])
        yield "all combinations", replace(node, combinations=None)
    if isinstance(node, PublicInput):
        yield from (("a protected table is public", replace(node, scan=scan)) for scan in scans()[:4])
        yield "a hidden public table", replace(node, scan=scans()[5])
        yield "a hidden public column", replace(node, scan=scans()[4])


def _relations(node: Relation, rng: random.Random) -> Iterator[Variant]:
    yield "DISTINCT rows", Distinct(node)
    yield "rows twice", Union_((node, node))
    yield from (("another table", scan) for scan in scans())
    if isinstance(node, Scan):
        hidden = policy().tables[node.table]
        yield (
            "all columns retyped",
            replace(node, columns=tuple(replace(c, facts=Facts(Type.TEXT)) for c in node.columns)),
        )
        if base_scan(hidden) != node:
            yield "hidden columns", base_scan(hidden)
    if isinstance(node, Filter):
        yield "no filter", node.source
        yield "a filter that is true", replace(node, predicate=TRUE)
        yield "the opposite filter", replace(node, predicate=call("not", node.predicate))
        secret = Column("diagnosis", Facts(Type.TEXT))
        yield (
            "a filter by a hidden column",
            replace(node, predicate=call("eq", secret, Literal("x", literal_facts("x")))),
        )
    if isinstance(node, Project):
        yield "names twice", replace(node, columns=tuple(("p0", expression) for _, expression in node.columns))
        yield "a column called like the unit", replace(node, columns=((UNIT, node.columns[-1][1]), *node.columns))
    if isinstance(node, (Join, SemiJoin)):
        yield from _joins(node, rng)
    if isinstance(node, UnitAggregate):
        yield "fewer keys of units", replace(node, keys=())
        yield "units of nobody", replace(node, source=Distinct(node.source))
        for word in ("sum", "count", "max", "corr"):
            yield "another aggregate of units", replace(node, columns=tuple((c[0], word, *c[2:]) for c in node.columns))
        yield from (
            ("facts of units: " + kind, replace(node, columns=((*node.columns[0][:4], facts), *node.columns[1:])))
            for kind, facts in (_facts(node.columns[0][4]) if node.columns else ())
        )
    if isinstance(node, UnitWindow):
        (window, *_) = node.windows
        for word in ("rank", "lag", "nextval"):
            yield "another window", replace(node, windows=(replace(window, word=word),))
        yield "further keys of a window", replace(node, windows=(replace(window, keys=(next(_columns(rng)),)),))
        yield "windows of nobody", replace(node, source=Distinct(node.source))
    if isinstance(node, ReleasedRows):
        names = [column.name for column in node.columns]
        yield from (("unique released rows", replace(node, unique=(key,))) for key in ((), tuple(names[-1:])))
        yield "repetitions of released rows", replace(node, unique=(), repeats=(((), 1),))
        yield from (("another result", replace(node, name=name, content=name)) for name in ("people", "dp_result_9"))
        yield "released types", replace(node, columns=tuple(replace(c, facts=Facts(Type.TEXT)) for c in node.columns))


def _joins(node: Join | SemiJoin, rng: random.Random) -> Iterator[Variant]:
    yield "no keys", replace(node, keys=())
    yield "another on_unit", replace(node, on_unit=not node.on_unit)
    yield "sides swapped", replace(node, left=node.right, right=node.left)
    donors = list(_columns(rng))
    for (a, b), other in zip(node.keys, rng.sample(donors, 1), strict=False):
        yield "another key on the left", replace(node, keys=((replace(other, name=f"a.{other.name}"), b),))
        yield "another key on the right", replace(node, keys=((a, replace(other, name=f"b.{other.name}")),))
        yield "a key twice", replace(node, keys=((a, b), (a, b)))
        yield "a key of another type", replace(node, keys=((replace(a, facts=Facts(Type.REAL)), b),))
    if isinstance(node, Join):
        yield "another kind", replace(node, kind="left" if node.kind == "inner" else "inner")
        return
    yield "negated", replace(node, negated=not node.negated)
    yield "in a list", replace(node, in_list=not node.in_list)
    yield "no condition", replace(node, condition=None)


def _keys(node: Key, rng: random.Random) -> Iterator[Variant]:
    yield from (("another key", replace(node, expression=column)) for column in _columns(rng))
    yield "a private key", replace(node, values=None)
    if node.values is not None:
        yield "fewer values", replace(node, values=node.values[:1])
        yield "values twice", replace(node, values=node.values * 2)
    yield "public values", replace(node, values=(0, 1, 2, 50))
    yield "a key by another name", replace(node, name="k0, person")


def _inner(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of a node, with a function that puts another part in its place."""
    if isinstance(node, tuple):
        for place, part in enumerate(node):
            yield part, lambda new, place=place: (*node[:place], new, *node[place + 1 :])
    elif is_dataclass(node) and not isinstance(node, (Facts, Scan)):
        for field in fields(node):
            if field.name not in ("sql", "remainder", "output_names", "results", "cuts", "combinations", "facts"):
                yield getattr(node, field.name), lambda new, name=field.name: replace(node, **{name: new})


def changes(node: Any, rng: random.Random) -> Iterator[Variant]:
    """Yield a plan, or part of one, with one change somewhere, and the kind of the change."""
    yield from variants(node, rng)
    for part, put in _inner(node):
        yield from ((kind, put(new)) for kind, new in changes(part, rng))


def wrong_plans(
    planner: Planner, each: int, seed: int, of_kinds: Sequence[str] = (), questions: Sequence[str] = QUESTIONS
) -> Iterator[tuple[str, str, Plan]]:
    """Yield wrong plans of the questions: kind of the change, question, plan; at most `each` of a kind for all questions.
    `of_kinds`: only those (empty: all)."""
    rng = random.Random(seed)
    kinds: dict[str, list[tuple[str, Plan]]] = {}
    for sql in questions:
        right = bound(planner, sql)
        for kind, plan in changes(right, rng):
            if plan != right and (not of_kinds or kind in of_kinds):
                kinds.setdefault(kind, []).append((sql, plan))
    for kind, plans in sorted(kinds.items()):
        yield from ((kind, sql, plan) for sql, plan in rng.sample(plans, min(each, len(plans))))


def bound(planner: Planner, sql: str) -> Plan:
    """Return the right plan of a question."""
    statement = planner.parse(sql, None)
    return bind(statement, planner.bound_policy(statement)[0], public_values=planner._public_values)
