"""Random questions over the hospital's tables, each written in several ways that mean the same.

A question is a tree of tuples. `write` chooses one of the spellings of every part, so that two texts of one tree differ in all of
them at once; every spelling has the same value on all rows, those with NULL, NaN and extreme values too.
"""

import math
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from support.neighbouring_hospitals import PUBLIC, SCHEMAS

Tree = tuple[Any, ...]

COLUMNS: dict[str, dict[str, list[str]]] = {
    "v": {"integer": ["nights", "code"], "real": ["cost", "change"], "text": ["ward", "diagnosis"], "date": ["day"], "timestamp": ["seen"]},
    "p": {"integer": ["age"], "real": ["weight", "income"], "text": ["sex", "city"], "boolean": ["smoker"]},
    "r": {"integer": ["population"], "text": ["zone"]},
}  # fmt: skip
LITERALS: dict[str, list[str]] = {
    "integer": ["0", "3", "5", "30", "-1"], "real": ["0.5", "200", "1e3", "-5.25"],
    "text": ["'er'", "'icu'", "'flu'", "''", "'cold'", "'f'"], "date": ["DATE '2024-02-01'", "DATE '2024-07-15'"],
    "timestamp": ["TIMESTAMP '2024-02-01 12:00:00'"],
}  # fmt: skip
PERIODS = {"year": 12, "quarter": 3, "month": 1}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


# --- trees ------------------------------------------------------------------------------------------------------------


def value(rng: random.Random, table: str, type_: str, depth: int = 2) -> Tree:
    """Return a random value over the columns of one table."""
    named = COLUMNS[table].get(type_)
    if not named:
        return ("literal", rng.choice(LITERALS[type_]))
    if not depth or rng.random() < 0.45:
        return ("column", f"{table}.{rng.choice(named)}")
    below = [value(rng, table, type_, depth - 1) for _ in range(2)]
    constant = ("literal", rng.choice(LITERALS[type_]))
    kinds = ["coalesce", "nullif", "case", *{"text": ["left", "joined"], "real": []}.get(type_, ["least"])]
    kind = rng.choice([*kinds, *(["sum", "product", "difference"] if type_ in ("integer", "real") else [])])
    if kind == "case":
        return (kind, condition(rng, table, 1), *below)
    if kind in ("left", "joined"):
        return (kind, below[0], rng.randint(1, 3)) if kind == "left" else (kind, *below, constant)
    return (kind, below[0], constant if kind == "difference" or rng.random() < 0.5 else below[1])


def condition(rng: random.Random, table: str, depth: int = 2) -> Tree:
    """Return a random condition on the rows of one table."""
    if depth and rng.random() < 0.5:
        kind = rng.choice(["and", "or", "not"])
        return (kind, *(condition(rng, table, depth - 1) for _ in range(1 if kind == "not" else rng.randint(2, 3))))
    type_ = rng.choice(list(COLUMNS[table]))
    if type_ == "boolean":
        return ("truth", f"{table}.{COLUMNS[table][type_][0]}")
    left = value(rng, table, type_, 1)
    kind = rng.choice(["compare", "compare", "compare", "between", "in", "null", "part", "kept", "kept"])
    if kind == "kept" and type_ == "text":
        return (rng.choice(["start", "end", "inside", "whole"]), left, rng.choice(["e", "er", "f", "İ", "flu", "i\\"]))
    if kind == "kept" and type_ in ("date", "timestamp"):
        return (
            "period",
            type_,
            rng.choice([*PERIODS, "week", "day"]),
            left,
            rng.choice([date(2024, 2, 1), date(1, 1, 1), date(9999, 12, 1)]),
        )
    if kind == "kept" and type_ == "integer":
        return ("span", left, low := rng.randint(-2, 29), low + rng.randint(0, 3))
    if kind == "null":
        return (kind, left)
    if kind == "part" and type_ in ("date", "timestamp"):
        return (kind, rng.choice(["year", "month", "day"]), left, rng.randint(1, 12))
    if kind == "in":
        return (kind, left, tuple(rng.sample(LITERALS[type_], min(len(LITERALS[type_]), rng.randint(1, 3)))))
    if kind == "between":
        return (kind, left, *(("literal", rng.choice(LITERALS[type_])) for _ in range(2)))
    other = value(rng, table, type_, 1) if rng.random() < 0.4 else ("literal", rng.choice(LITERALS[type_]))
    return ("compare", rng.choice(list(MIRRORED)), left, other)


def question(rng: random.Random) -> Tree:
    """Return a random question: tables, conditions with their tables, keys and measures."""
    tables = rng.choice(["v", "v", "p", "vp", "vp", "pr", "vpr", "pv1", "vp-"])
    plain = tables.strip("1-")
    conditions = tuple((table, condition(rng, table)) for table in plain for _ in range(rng.randint(0, 2)))
    first = plain[0]
    measures = tuple(_measure(rng, first) for _ in range(rng.randint(1, 3)))
    split = ("case", condition(rng, first, 1), ("literal", "'a'"), ("literal", "'b'"))
    column = ("column", "v.ward" if "v" in plain else "p.sex")
    keys = rng.choice([(), (), (column,), (split,), (column, split)])
    met = rng.choice([None, None, condition(rng, "v", 1)]) if tables == "p" else None
    further = random.Random(str(measures))
    if not keys and tables != "vp-" and further.random() < 0.4:  # in WHERE, or in FILTER of each measure
        conditions = (*conditions, (first, ("of all", condition(further, first, 1))))
    return (tables, conditions, keys, measures, met)


def _measure(rng: random.Random, table: str) -> Tree:
    chosen = condition(rng, table, 1)
    number = ("clamp", value(rng, table, rng.choice(["integer", "real"])))
    return rng.choice([
        ("count",), ("count", chosen), ("sum", number), ("sum", number, chosen), ("avg", number), ("avg", number, chosen),
        ("share", chosen), ("units",), ("units", chosen),
    ])  # fmt: skip


def _with_filter(measure: Tree, tested: Tree) -> Tree:
    """Return a measure of the rows that satisfy a further condition."""
    plain = 2 if measure[0] in ("sum", "avg") else 1
    chosen = measure[plain:]
    return (*measure[:plain], ("and", *chosen, tested) if chosen else tested)


# --- spellings --------------------------------------------------------------------------------------------------------


def write(rng: random.Random, tree: Tree, named: dict[str, str]) -> str:
    """Return one spelling of a value or a condition; `named`: what stands before the columns of each table."""

    def part(inner: Tree) -> str:
        return write(rng, inner, named)

    def choice(*ways: Callable[[], str]) -> str:
        return rng.choice(ways)()

    kind, *rest = tree
    if kind in ("column", "truth"):
        table, name = rest[0].split(".")
        column = f"{named[table]}{name}"
        return column if kind == "column" else rng.choice([column, f"({column} = TRUE)", f"({column} <> FALSE)"])
    if kind == "literal":
        return str(rest[0])
    if kind in ("sum", "product", "least"):
        a, b = rng.sample(rest, 2)
        return (
            f"least({part(a)}, {part(b)})"
            if kind == "least"
            else f"({part(a)} {'+' if kind == 'sum' else '*'} {part(b)})"
        )
    if kind == "difference":
        return f"({part(rest[0])} - {part(rest[1])})".replace("- -", "+ ")
    if kind == "clamp":
        return f"clamp({part(rest[0])}, 0, 50)"
    if kind == "coalesce":
        a, b = rest
        return choice(
            lambda: f"coalesce({part(a)}, {part(b)})", lambda: f"ifnull({part(a)}, {part(b)})",
            lambda: f"CASE WHEN {part(a)} IS NOT NULL THEN {part(a)} ELSE {part(b)} END",
            lambda: f"if({part(a)} IS NULL, {part(b)}, {part(a)})",
        )  # fmt: skip
    if kind == "nullif":
        a, b = rest
        return choice(
            lambda: f"nullif({part(a)}, {part(b)})", lambda: f"CASE WHEN {part(b)} = {part(a)} THEN NULL ELSE {part(a)} END",
            lambda: f"if({part(a)} = {part(b)}, NULL, {part(a)})",
        )  # fmt: skip
    if kind == "case":
        c, a, b = rest
        return choice(
            lambda: f"CASE WHEN {part(c)} THEN {part(a)} ELSE {part(b)} END", lambda: f"if({part(c)}, {part(a)}, {part(b)})",
            lambda: f"CASE WHEN ({part(c)}) IS TRUE THEN {part(a)} WHEN FALSE THEN {part(b)} ELSE {part(b)} END",
            lambda: f"if(coalesce({part(c)}, FALSE), {part(a)}, if({part(c)}, {part(a)}, {part(b)}))",
        ) if a != b else part(a)  # fmt: skip
    if kind == "left":
        ways = ("left({}, {})", "substr({}, 1, {})", "substring({} from 1 for {})")
        return rng.choice(ways).format(part(rest[0]), rest[1])
    if kind == "joined":
        a, b, c = map(part, rest)
        return rng.choice([f"({a} || {b} || {c})", f"({a} || ({b} || {c}))"])
    if kind == "null":
        return rng.choice(["({} IS NULL)", "(NOT {} IS NOT NULL)"]).format(part(rest[0]))
    if kind == "part":
        name, moment, number = rest
        read = rng.choice(["extract({0} from {1})", "{0}({1})", "date_part('{0}', {1})"]).format(name, part(moment))
        return rng.choice(["({} = {})", "({} IN ({}))"]).format(read, number)
    return _condition(rng, kind, rest, part)


_TEXT_TESTS = {
    "start": ["({x} LIKE '{t}%')", "starts_with({x}, '{t}')", "(left({x}, {n}) = '{t}')", "({x} LIKE '{t}%%')",
              "(substr({x}, 1, {n}) IN ('{t}'))", "(NOT {x} NOT LIKE '{t}%')"],
    "end": ["({x} LIKE '%{t}')", "ends_with({x}, '{t}')", "suffix({x}, '{t}')"],
    "inside": ["({x} LIKE '%{t}%')", "contains({x}, '{t}')", "(strpos({x}, '{t}') > 0)", "(0 <> position('{t}' IN {x}))"],
    "whole": ["({x} LIKE '{t}')", "({x} = '{t}')", "({x} IN ('{t}'))", "(NOT {x} <> '{t}')"],
}  # fmt: skip


def _period(rng: random.Random, type_: str, unit: str, moment: str, inside: date) -> str:
    """Return one spelling of the condition that a day or moment lies in the same year, month, ... as `inside`."""
    month = (inside.month - 1) // PERIODS.get(unit, 1) * PERIODS.get(unit, 1)
    back = {"week": inside.weekday(), "day": 0}.get(unit)
    start = date(inside.year, month + 1, 1) if back is None else inside - timedelta(days=back)
    at = f"({moment} >= DATE '{start}'"
    ways = [
        f"(date_trunc('{unit}', {moment}) = DATE '{start}')",
        f"(DATE '{start}' IN (date_trunc('{unit}', {moment})))",
    ]
    ways += (
        [f"(year({moment}) = {start.year})", f"(extract(year FROM {moment}) IN ({start.year}))"]
        if unit == "year"
        else []
    )
    ways += [f"(CAST({moment} AS DATE) = '{start}')"] if unit == "day" else []
    try:
        after = (
            start + timedelta(days=7 if unit == "week" else 1)
            if back is not None
            else date(start.year + (month + PERIODS[unit]) // 12, (month + PERIODS[unit]) % 12 + 1, 1)
        )
    except ValueError:  # the last period of the calendar
        return rng.choice([*ways, f"{at})"])
    last = after - timedelta(days=1)
    ways += [f"{at} AND {moment} < DATE '{after}')", f"(NOT ({moment} < DATE '{start}' OR {moment} >= DATE '{after}'))"]
    ways += [
        f"({moment} BETWEEN '{start}' AND '{last}')"
        if type_ == "date"
        else f"(CAST({moment} AS DATE) BETWEEN '{start}' AND '{last}')"
    ]
    return rng.choice(ways)


def _condition(rng: random.Random, kind: str, rest: list[Any], part: Callable[[Tree], str]) -> str:
    if kind == "compare":
        word, a, b = rest
        if rng.random() < 0.5:
            word, a, b = MIRRORED[word], b, a
        return f"({part(a)} {word} {part(b)})" if rng.random() < 0.6 else f"(NOT {part(a)} {OPPOSITE[word]} {part(b)})"
    if kind in ("start", "end", "inside", "whole"):
        return rng.choice(_TEXT_TESTS[kind]).format(x=part(rest[0]), t=rest[1], n=len(rest[1]))
    if kind == "period":
        return _period(rng, rest[0], rest[1], part(rest[2]), rest[3])
    if kind == "span":
        a, low, high = part(rest[0]), rest[1], rest[2]
        listed = ", ".join(map(str, rng.sample(range(low, high + 1), high + 1 - low)))
        return rng.choice(
            [f"({a} BETWEEN {low} AND {high})", f"({a} IN ({listed}))", f"({a} > {low - 1} AND NOT {a} > {high})"]
        )
    if kind == "between":
        a, low, high = (lambda: part(rest[0])), part(rest[1]), part(rest[2])
        return rng.choice([
            lambda: f"({a()} BETWEEN {low} AND {high})", lambda: f"({high} >= {a()} AND {low} <= {a()})",
            lambda: f"(NOT ({a()} < {low} OR {a()} > {high}))",
        ])()  # fmt: skip
    if kind == "in":
        items = rng.sample(rest[1], len(rest[1]))
        if rng.random() < 0.5:
            return f"({part(rest[0])} IN ({', '.join([*items, rng.choice(items)])}))"
        return f"({' OR '.join(f'{part(rest[0])} = {item}' for item in items)})"
    if kind == "not":
        return f"(NOT {part(rest[0])})"
    parts = [part(inner) for inner in rng.sample(rest, len(rest))]
    if rng.random() < 0.3:
        other = "OR" if kind == "and" else "AND"
        return f"(NOT ({f' {other} '.join(f'NOT {inner}' for inner in parts)}))"
    return f"({f' {kind.upper()} '.join(parts)})"


def _aggregate(rng: random.Random, measure: Tree, unit: str, part: Callable[[Tree], str]) -> str:
    kind, *rest = measure
    if kind in ("sum", "avg"):
        chosen = rest[1] if len(rest) > 1 else None
        if chosen is None:
            return f"{kind}({part(rest[0])})"
        ways = ["{0}({1}) FILTER (WHERE {2})", "{0}(CASE WHEN {2} THEN {1} END)", "{0}(if({2}, {1}, NULL))"]
        # Bounds that leave 0 out, as those of cost + 200, hold for the rows that are chosen, and so differ for ELSE 0.
        ways += ["{0}(CASE WHEN {2} THEN {1} ELSE 0 END)"] if kind == "sum" and rest[0][1][0] == "column" else []
        return rng.choice(ways).format(kind, part(rest[0]), part(chosen))
    if kind == "share":
        return rng.choice(["avg(CASE WHEN {} THEN 1.0 ELSE 0 END)", "avg(if({}, 1, 0))", "avg(CASE WHEN {} THEN 1 ELSE 0.0 END)",
                           "avg(1.0 * if({}, 1, 0))"]).format(part(rest[0]))  # fmt: skip
    if kind == "units":
        plain, chosen = (
            f"count(DISTINCT {unit})",
            [f"count(DISTINCT CASE WHEN {{}} THEN {unit} END)", f"count(DISTINCT {unit}) FILTER (WHERE {{}})"],
        )
        return rng.choice(chosen).format(part(rest[0])) if rest else plain
    if not rest:
        return rng.choice(["count(*)", "count(1)", "sum(1)"])
    ways = [
        "count(*) FILTER (WHERE {})",
        "sum(CASE WHEN {} THEN 1 ELSE 0 END)",
        "count(CASE WHEN {} THEN 'x' END)",
        "count_if({})",
    ]
    return rng.choice(ways).format(part(rest[0]))


SOURCES = {"v": "visits", "p": "patients", "r": "regions"}
SHARED = {"vp": "patient_id", "pr": "region"}
FIRST = "SELECT *, row_number() OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS place FROM visits"


def text(rng: random.Random, tree: Tree) -> tuple[str, list[int]]:
    """Return one text of a question, and the place of each of its keys and measures in the SELECT list."""
    tables, conditions, keys, measures, met = tree
    plain = list(tables.strip("1-"))
    named = {table: f"{table}." for table in plain}
    of_all = [tested[1] for _, tested in conditions if tested[0] == "of all"]
    conditions = [(table, tested) for table, tested in conditions if tested[0] != "of all"]
    if of_all and rng.random() < 0.5 and all(measure[0] != "share" for measure in measures):
        measures = [_with_filter(measure, of_all[0]) for measure in measures]
    else:
        conditions += [(plain[0], tested) for tested in of_all]
    inside: dict[str, list[str]] = {table: [] for table in plain}
    outside: list[str] = []
    for table, tested in conditions:
        # Rows without a partner stay in a LEFT JOIN: conditions on its right side are those of ON or of WHERE.
        if rng.random() < 0.5 and (tables != "vp-" or table == "v"):
            inside[table].append(write(rng, tested, {table: ""}))
        else:
            outside.append(write(rng, tested, named))
    common: list[str] = []
    sources = {table: _source(rng, table, inside[table], tables == "pv1", outside, common) for table in plain}
    if met is not None:
        outside.append(_met(rng, met))
    source = _joined(rng, plain, sources, outside, left=tables.endswith("-"))

    def part(inner: Tree) -> str:
        return write(rng, inner, named)

    unit = "v.patient_id" if "v" in plain else "p.patient_id"
    items = [part(key) for key in keys] + [_aggregate(rng, measure, unit, part) for measure in measures]
    order = rng.sample(range(len(items)), len(items))
    places = [order.index(place) for place in range(len(items))]
    prefix = rng.choice(["a", "out", "n_"])
    listed = ", ".join(f"{items[place]} AS {prefix}{place}" for place in order)
    grouped = [rng.choice([str(places[n] + 1), f"{prefix}{n}"]) for n, _ in enumerate(keys)]
    group = f" GROUP BY {', '.join(grouped)}" if grouped else ""
    rng.shuffle(outside)
    where = f" WHERE {' AND '.join(outside)}" if outside else ""
    return f"{'WITH ' + ', '.join(common) + ' ' if common else ''}SELECT {listed} FROM {source}{where}{group}", places


def _source(
    rng: random.Random, table: str, inside: list[str], numbered: bool, outside: list[str], common: list[str]
) -> str:
    """Return one table of FROM: itself, a subquery, or an entry of WITH."""
    rows = f"SELECT * FROM {SOURCES[table]}"
    if numbered and table == "v":
        rows = f"SELECT * FROM ({FIRST}) AS q"
        if rng.random() < 0.5:
            inside = [*inside, "place = 1"]
        else:
            outside.append("v.place = 1")
    elif not inside and rng.random() < 0.6:
        return f"{SOURCES[table]} AS {table}"
    rng.shuffle(inside)
    while inside and rng.random() < 0.3:
        rows = f"SELECT * FROM ({rows} WHERE {inside.pop()}) AS q{len(inside)}"
    query = f"{rows} WHERE {' AND '.join(inside)}" if inside else rows
    if rng.random() < 0.3:
        common.append(f"some_{table} AS ({query})")
        return f"some_{table} AS {table}"
    return f"({query}) AS {table}"


def _joined(rng: random.Random, plain: list[str], sources: dict[str, str], outside: list[str], left: bool) -> str:
    if left:
        turned = rng.random() < 0.5
        a, b = (sources["p"], sources["v"]) if turned else (sources["v"], sources["p"])
        tie = rng.choice(["USING (patient_id)", "ON v.patient_id = p.patient_id", "ON p.patient_id = v.patient_id"])
        return f"{a} {'RIGHT' if turned else 'LEFT'} JOIN {b} {tie}"
    order = (
        rng.sample(plain, len(plain))
        if len(plain) < 3
        else rng.choice([["v", "p", "r"], ["r", "p", "v"], ["p", "v", "r"]])
    )
    source = sources[order[0]]
    for place, table in enumerate(order[1:], 1):
        pair = next(pair for pair in SHARED if table in pair and set(pair) <= set(order[: place + 1]))
        a, b = rng.sample(pair, 2)
        key = SHARED[pair]
        if rng.random() < 0.2:
            source += f" CROSS JOIN {sources[table]}"
            outside.append(f"{a}.{key} = {b}.{key}")
            continue
        moved = [outside.pop()] if outside and place == len(plain) - 1 and rng.random() < 0.3 else []
        source += f" JOIN {sources[table]} " + (
            f"USING ({key})"
            if not moved and rng.random() < 0.5
            else f"ON {' AND '.join([f'{a}.{key} = {b}.{key}', *moved])}"
        )
    return source


def _met(rng: random.Random, tested: Tree) -> str:
    """Return the condition that a patient has a visit of some kind."""
    if rng.random() < 0.5:
        distinct = rng.choice(["", "DISTINCT "])
        return f"p.patient_id IN (SELECT {distinct}patient_id FROM visits WHERE {write(rng, tested, {'v': ''})})"
    tie = rng.choice(["v.patient_id = p.patient_id", "p.patient_id = v.patient_id"])
    return f"EXISTS (SELECT 1 FROM visits AS v WHERE {' AND '.join(rng.sample([tie, write(rng, tested, {'v': 'v.'})], 2))})"


# --- rows -------------------------------------------------------------------------------------------------------------


def rows(rng: random.Random) -> dict[str, list[dict[str, Any]]]:
    """Return rows of all tables that keep the policy's keys and declared columns, full of NULL, NaN and extreme values."""
    days = [date(2024, 1, 1), date(2024, 2, 1), date(2024, 7, 15), date(9999, 12, 31), date(1, 1, 1), None]
    reals = [0.5, 200.0, 1e3, -5.25, -0.0, math.inf, -math.inf, math.nan, None]
    numbers = [0, 3, 5, 30, -1, 29, 4, 2**62, -(2**62), None]
    patients = [
        {"patient_id": number, "region": rng.choice(["north", "south", "east"]), "sex": rng.choice(["f", "m", "", None]),
         "age": rng.choice(numbers), "weight": rng.choice(reals), "smoker": rng.choice([True, False, None]),
         "city": rng.choice(["ulm", "er", "", None]), "income": rng.choice(reals)}
        for number in range(1, 13)
    ]  # fmt: skip
    visits = [
        {"visit_id": number, "patient_id": rng.randint(1, 14), "ward": rng.choice(["er", "icu", "day", "", None]), "day": rng.choice(days),
         "seen": rng.choice([None, datetime(2024, 2, 1, 12) + timedelta(hours=rng.randint(-9, 9)), datetime(9999, 12, 31, 23, 59)]),
         "cost": rng.choice(reals), "change": rng.choice(reals), "nights": rng.choice(numbers[:-1]),
         "diagnosis": rng.choice(["flu", "er", "fl", "", "İ", None]), "code": rng.choice(numbers)}
        for number in range(60)
    ]  # fmt: skip
    return {"patients": patients, "visits": visits}


class PlainAnswers:
    """Answers of plain DuckDB over rows of `rows`, by the order of a question's keys and measures."""

    def __init__(self, rng: random.Random) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute(
            "CREATE MACRO clamp(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END"
        )
        for name, listed in (PUBLIC | rows(rng)).items():
            self._connection.register("listed", pa.Table.from_pylist(listed, SCHEMAS[name]))
            self._connection.execute(f"CREATE TABLE {name} AS FROM listed")

    def of(self, sql: str, places: list[int], keys: int) -> list[tuple[Any, ...]] | None:
        """Return the rows of an answer, sorted; None where a row's number is too large for DuckDB, which one form may avoid to
        compute."""
        try:
            answer = self._connection.execute(sql).fetchall()
        except (duckdb.OutOfRangeException, duckdb.ConversionException):
            return None
        read = [tuple(row[at] if n < keys else _number(row[at]) for n, at in enumerate(places)) for row in answer]
        return sorted(read, key=str)


def _number(number: Any) -> float | str:
    """Return a result as it is compared: SUM over no rows is shown as 0, and sums of reals depend on the order of rows."""
    number = float(number or 0)
    return "nan" if math.isnan(number) else float(f"{number:.9g}")
