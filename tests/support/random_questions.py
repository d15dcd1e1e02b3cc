"""Random queries as pairs: the analyst's query, and equivalent plain DuckDB SQL over clamped columns.

The reference is written by hand for each piece of the grammar and shares no code with the product. Columns named c_... are those
of the base tables after clamping: NULL for NULL and NaN, otherwise clamped to the policy's bounds.
"""

import random
from dataclasses import dataclass, field
from typing import Any

CLAMPED = {
    "patients": {"age": (0, 120), "weight": (0, 256)},
    "visits": {"cost": (0, 1000), "change": (-10, 10), "nights": (0, 30)},
    "labs": {"value": (-4, 4)},
}
REAL = {"weight", "cost", "change", "value"}
KEYS: dict[str, dict[str, list[Any]]] = {
    "patients": {"region": ["north", "south", "east", "west"], "sex": ["f", "m", None], "smoker": [False, True, None]},
    "visits": {"ward": ["er", "icu", "day", None], "nights": list(range(31))},
    "labs": {"test": ["alt", "hb", "na"], "flag": [False, True]},
}
FILTERS = {
    "patients": ["age > 30", "sex = 'f'", "weight BETWEEN 60 AND 90", "smoker", "city LIKE 'u%'", "region <> 'east'", "age IS NULL"],
    "visits": [
        "cost > 100", "ward = 'er'", "ward IN ('er', 'icu')", "nights >= 3", "day >= DATE '2024-05-01'", "diagnosis IS NULL",
        "change < 0 OR nights = 0", "NOT (ward = 'day')", "code % 2 = 0", "length(diagnosis) = 3", "cost / nullif(nights, 0) > 50",
    ],
    "labs": ["value > 0", "test = 'hb'", "flag", "value IS NOT NULL AND test <> 'na'"],
}  # fmt: skip
JOINS = (
    ("visits JOIN patients USING (patient_id)", ("visits", "patients"), ""),
    ("labs JOIN visits USING (visit_id)", ("labs", "visits"), ""),
    ("labs JOIN visits USING (visit_id) JOIN patients USING (patient_id)", ("labs", "visits", "patients"), ""),
    ("visits JOIN prices ON visits.ward = prices.ward", ("visits",), "ward"),
    ("patients JOIN regions ON patients.region = regions.region", ("patients",), "region"),
    ("patients LEFT JOIN regions ON patients.region = regions.region", ("patients",), "region"),
    ("visits LEFT JOIN prices ON visits.ward = prices.ward", ("visits",), "ward"),
    ("visits CROSS JOIN regions", ("visits",), ""),
    ("patients LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t USING (patient_id)", ("patients",), ""),
    ("visits JOIN (SELECT visit_id, code AS other FROM visits WHERE nights > 1) AS w USING (visit_id)", ("visits",), ""),
    ("visits JOIN (SELECT patient_id FROM visits WHERE nights > 3 INTERSECT SELECT patient_id FROM patients) AS w USING (patient_id)",
     ("visits",), ""),
    ("visits JOIN (SELECT patient_id FROM visits EXCEPT SELECT patient_id FROM visits WHERE nights > 25) AS w USING (patient_id)",
     ("visits",), ""),
    ("visits JOIN (SELECT patient_id FROM visits WHERE nights > 9 UNION SELECT patient_id FROM patients WHERE age > 50) AS w USING (patient_id)",
     ("visits",), ""),
    ("visits JOIN labs USING (visit_id)", ("visits", "labs"), ""),
    ("visits LEFT JOIN labs USING (visit_id)", ("visits", "labs"), ""),
    ("patients LEFT JOIN visits USING (patient_id)", ("patients", "visits"), ""),
    ("visits JOIN (SELECT patient_id, code AS other FROM visits) AS w USING (patient_id)", ("visits",), ""),
    ("visits LEFT JOIN (SELECT patient_id, nights AS other FROM visits) AS w ON visits.patient_id = w.patient_id AND w.other > 3",
     ("visits",), ""),
    ("labs JOIN (SELECT visit_id, test AS other FROM labs) AS w USING (visit_id)", ("labs",), ""),
    ("patients JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t USING (patient_id)", ("patients",), ""),
    ("(SELECT * FROM visits UNION ALL SELECT * FROM visits WHERE nights > 1) AS u", ("visits",), ""),
    ("(SELECT * FROM visits UNION ALL SELECT v.* FROM visits AS v LEFT JOIN labs USING (visit_id)) AS u", ("visits",), ""),
    ("(SELECT * FROM visits WHERE patient_id IN (SELECT patient_id FROM patients WHERE sex = 'f')) AS s", ("visits",), ""),
    ("(SELECT * FROM visits AS v WHERE EXISTS (SELECT 1 FROM patients AS p WHERE p.patient_id = v.patient_id)) AS s", ("visits",), ""),
    ("(SELECT * FROM visits WHERE visit_id NOT IN (SELECT visit_id FROM labs)) AS s", ("visits",), ""),
    ("(SELECT * FROM visits WHERE patient_id IN (SELECT p.patient_id FROM patients AS p CROSS JOIN regions)) AS s", ("visits",), ""),
    ("visits JOIN (SELECT DISTINCT p.patient_id FROM patients AS p, regions WHERE zone <> 'x') AS w USING (patient_id)", ("visits",), ""),
    ("(SELECT * FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM labs AS l WHERE l.visit_id = v.visit_id)) AS s", ("visits",), ""),
    ("(SELECT * FROM visits AS v WHERE ward IN (SELECT ward FROM prices)) AS s", ("visits",), ""),
    ("(SELECT * FROM visits AS v WHERE EXISTS (SELECT 1 FROM prices AS p WHERE p.ward = v.ward AND p.price < v.cost)) AS s",
     ("visits",), ""),
)  # fmt: skip
"""Text, tables whose columns the query may use, and the name that both sides have."""


@dataclass
class Question:
    """`asked`: the analyst's text. `meant`: the reference, with the same output columns after `keys` key columns."""

    asked: str
    meant: str
    keys: list[list[Any]] = field(default_factory=list)


def clamp(column: str, table: str) -> str:
    """Return the reference's own clamp, written with plain comparisons."""
    low, high = CLAMPED[table][column.rsplit(".", maxsplit=1)[-1]]
    missing = f"{column} IS NULL" + (f" OR isnan({column})" if column in REAL else "")
    return f"(CASE WHEN {missing} THEN NULL WHEN {column} < {low} THEN {low} WHEN {column} > {high} THEN {high} ELSE {column} END)"


def _absolute(column: str, table: str) -> str:
    """Return the clamped absolute value: clamping comes last, so this is not the absolute value of the clamped value."""
    most = max(map(abs, CLAMPED[table][column]))
    return f"CASE WHEN {clamp(column, table)} IS NOT NULL THEN least(abs({column}), {most}) END"


def question(rng: random.Random) -> Question:
    """Return one random query over one table, a join, or a per-unit aggregation."""
    kind = rng.random()
    if kind < 0.07:
        return _within_groups(rng)
    if kind < 0.13:
        return _kept(rng)
    if kind < 0.2:
        return _per_unit(rng)
    if kind < 0.32:
        return _staged(rng)
    if kind < 0.44:
        return _own_rows(rng)
    if kind < 0.6:
        source, tables, both = rng.choice(JOINS)
    else:
        table = rng.choice(["patients", "visits", "visits", "labs"])
        source, tables, both = table, (table,), ""
    where = _where(rng, tables, both)
    pairs = [_aggregate(rng, tables, both) for _ in range(rng.randint(1, 3))]
    keys = _keys(rng, tables, both)
    names = [name for name, _ in keys]
    group = f" GROUP BY {', '.join(names)}" if names else ""
    listed = "".join(f"{name}, " for name in names)
    asked = f"SELECT {listed}{', '.join(a for a, _ in pairs)} FROM {source}{where}{group}"
    meant = f"SELECT {listed}{', '.join(m for _, m in pairs)} FROM {source}{where}{group}"
    return Question(asked, meant, [values for _, values in keys])


def _filter(rng: random.Random, table: str, both: str) -> str:
    return rng.choice([text for text in FILTERS[table] if not both or both not in text])


def _where(rng: random.Random, tables: tuple[str, ...], both: str) -> str:
    chosen = [_filter(rng, rng.choice(tables), both) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
    return f" WHERE {' AND '.join(f'({c})' for c in chosen)}" if chosen else ""


def _keys(rng: random.Random, tables: tuple[str, ...], both: str) -> list[tuple[str, list[Any]]]:
    known = [(name, values) for table in tables for name, values in KEYS[table].items() if name != both]
    return rng.sample(known, min(len(known), rng.choice([0, 1, 1, 2])))


def _aggregate(rng: random.Random, tables: tuple[str, ...], both: str) -> tuple[str, str]:
    table = rng.choice(tables)
    column = rng.choice(list(CLAMPED[table]))
    inside = clamp(column, table)
    condition = _filter(rng, table, both)
    choices = [
        ("COUNT(*)", "count(*)"),
        (f"COUNT({column})", f"count({inside})"),
        (f"SUM({column})", f"coalesce(sum({inside}), 0)"),
        (f"AVG({column})", f"avg({inside})"),
        (f"SUM({column}) FILTER (WHERE {condition})", f"coalesce(sum({inside}) FILTER (WHERE {condition}), 0)"),
        (f"COUNT_IF({condition})", f"count(*) FILTER (WHERE {condition})"),
        (f"SUM(2 * {column} + 1)", f"coalesce(sum(2 * {inside} + 1), 0)"),
        (f"SUM(abs({column}))", f"coalesce(sum({_absolute(column, table)}), 0)"),
        (f"SUM(coalesce({column}, 1))", f"coalesce(sum(coalesce({inside}, 1)), 0)"),
        (f"VAR_POP({column})", f"var_pop({inside})"),
    ]
    if column in REAL:
        del choices[8]  # COALESCE does not treat NaN as NULL; the product treats it as missing only in sums
    return rng.choice(choices)


PER_UNIT = "(SELECT patient_id{further}, {inner} AS x FROM visits{where} GROUP BY patient_id{further}) AS t"
FURTHER_KEYS = ("", "", ", ward", ", diagnosis, code")
WITHIN_GROUPS = (
    ("SUM({column}, contribution_bounds_per_group => ({low}, {high}))", "sum({inside})", "coalesce(sum({clamped}), 0)"),
    (
        "COUNT({column}, contribution_bounds_per_group => ({low}, {high}))",
        "count({inside})",
        "coalesce(sum({clamped}), 0)",
    ),
    ("AVG({column}, contribution_bounds_per_group => ({low}, {high}))", "avg({inside})", "avg({clamped})"),
)
"""Contribution of one unit to each group: the text, the unit's own result, and the reference over all units."""


KEPT = (
    ("regions LEFT JOIN patients ON patients.region = regions.region", "patients"),
    ("patients RIGHT JOIN regions ON patients.region = regions.region AND patients.age > 30", "patients"),
    ("patients FULL JOIN regions ON patients.region = regions.region", "patients"),
    ("prices LEFT JOIN visits ON visits.ward = prices.ward", "visits"),
    ("regions LEFT JOIN patients ON patients.region = regions.region LEFT JOIN visits USING (patient_id)", "visits"),
    ("prices LEFT JOIN visits ON visits.cost BETWEEN prices.price AND prices.price + 100", "visits"),
)
"""Outer joins that keep public rows, and the table that is aggregated."""


def _kept(rng: random.Random) -> Question:
    """Return a query over public rows with and without a partner, where only pairs count; sometimes grouped by a column of the
    public side."""
    source, table = rng.choice(KEPT)
    column = rng.choice(list(CLAMPED[table]))
    inside = clamp(column, table)
    both = "region" if table == "patients" else "ward"
    condition = rng.choice([text for text in FILTERS[table] if both not in text and "IS NULL" not in text])
    asked, meant = rng.choice([
        (f"COUNT({column})", f"count({inside})"),
        (f"SUM({column})", f"coalesce(sum({inside}), 0)"),
        (f"AVG({column})", f"avg({inside})"),
        (f"COUNT(DISTINCT {table}.patient_id)", f"count(DISTINCT {table}.patient_id)"),
        (f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)", f"coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0)"),
    ])  # fmt: skip
    where = f" WHERE ({_filter(rng, table, both)})" if rng.random() < 0.3 else ""
    if rng.random() < 0.5:
        return Question(f"SELECT {asked} FROM {source}{where}", f"SELECT {meant} FROM {source}{where}")
    key, values = rng.choice(list(KEYS[table].items())[1:2])
    listed = [*values, None] if None not in values else values
    group = f" FROM {source}{where} GROUP BY {key}"
    return Question(f"SELECT {key}, {asked}{group}", f"SELECT {key}, {meant}{group}", [listed])


def _within_groups(rng: random.Random) -> Question:
    """Return a query with aggregates to which each patient contributes a bounded part in every group."""
    table = rng.choice(["visits", "labs"])
    source = {"visits": "visits", "labs": "labs JOIN visits USING (visit_id)"}[table]
    column = rng.choice(list(CLAMPED[table]))
    keys = _keys(rng, (table,), "")
    names = "".join(f"{name}, " for name, _ in keys)
    where = _where(rng, (table,), "")
    text, own, over = rng.choice(WITHIN_GROUPS)
    low, high = rng.choice([(0, 5), (-3, 8.5), (2, 60), (-20, -1)])
    clamped = f"CASE WHEN s IS NOT NULL THEN least(greatest(s, {low}), {high}) END"
    group = f" GROUP BY {names[:-2]}" if names else ""
    asked = text.format(column=column, low=low, high=high)
    inner = f"SELECT patient_id, {names}{own.format(inside=clamp(column, table))} AS s FROM {source}{where}"
    return Question(
        f"SELECT {names}{asked} FROM {source}{where}{group}",
        f"SELECT {names}{over.format(clamped=clamped)} FROM ({inner} GROUP BY ALL) AS t{group}",
        [values for _, values in keys],
    )


def _per_unit(rng: random.Random) -> Question:
    """Return a query that aggregates one row per patient."""
    table = "visits"
    column = rng.choice(["cost", "change", "nights"])
    inside = clamp(column, table)
    where = _where(rng, (table,), "")
    inner, plain = rng.choice([
        ("COUNT(*)", "count(*)"),
        (f"COUNT({column})", f"count({inside})"),
        (f"SUM({column})", f"sum({inside})"),
        (f"MAX(clamp({column}, 0, 9))", f"max(CASE WHEN {inside} IS NOT NULL THEN least(greatest({inside}, 0), 9) END)"),
    ])  # fmt: skip
    outer, reference = rng.choice([("SUM(x)", "coalesce(sum(x), 0)"), ("COUNT(x)", "count(x)"), ("AVG(x)", "avg(x)")])
    further = rng.choice(FURTHER_KEYS)
    shape = f"SELECT {{outer}} FROM {PER_UNIT.replace('{further}', further)}"
    return Question(
        shape.format(outer=outer, inner=inner, where=where), shape.format(outer=reference, inner=plain, where=where)
    )


STAGED = (
    ("visits AS v", "v.nights > (SELECT AVG({nights}) FROM visits{where})"),
    ("visits AS v", "v.nights <= (SELECT COUNT(*) FROM labs) AND EXISTS (SELECT 1 FROM visits{where} HAVING COUNT(*) > {few})"),
    ("visits AS v", "(SELECT COUNT(*) FROM visits AS w WHERE w.ward = v.ward AND w.ward IN ('er', 'icu', 'day')) <= {few}"),
    ("visits AS v", "v.ward IN (SELECT ward FROM visits{listed} GROUP BY ward HAVING COUNT(*) > {few})"),
    ("visits AS v", "(v.ward, v.ward) IN (SELECT ward, ward FROM visits{listed} GROUP BY ward HAVING COUNT(*) > {few})"),
    ("visits AS v", "v.ward NOT IN (SELECT ward FROM visits{listed} GROUP BY ward HAVING COUNT(*) > {few})"),
    ("visits AS v", "EXISTS (SELECT 1 FROM (SELECT ward AS w, COUNT(*) AS n FROM visits{listed} GROUP BY ward) AS t WHERE t.w = v.ward AND t.n > {few})"),
    ("visits AS v JOIN (SELECT ward AS w, COUNT(*) AS n FROM visits{listed} GROUP BY ward) AS t ON v.ward = t.w", "t.n > {few}"),
    ("visits AS v LEFT JOIN (SELECT ward AS w, SUM({nights}) AS n FROM visits{listed} GROUP BY ward) AS t ON v.ward = t.w",
     "t.n > {few} OR v.ward IS NULL"),
    ("visits AS v", "v.nights >= (SELECT AVG({inner_nights}) FROM visits AS w WHERE w.ward = v.ward AND w.ward IN ('er', 'icu', 'day'))"),
    ("visits AS v", "v.nights >= (SELECT SUM({inner_nights}) FROM visits AS w WHERE w.patient_id = v.patient_id) / 3"),
)  # fmt: skip
"""Text of FROM and a condition, both with results inside. Nights are integers, so that no comparison depends on rounding."""


def _staged(rng: random.Random) -> Question:
    """Return a query that compares visits with results that are released first."""
    source, condition = rng.choice(STAGED)
    chosen = _filter(rng, "visits", "")
    parts = {
        "where": f" WHERE {chosen}", "listed": f" WHERE ({chosen}) AND ward IN ('er', 'icu', 'day')",
        "few": rng.choice([0, 1, 3, 9]),
    }  # fmt: skip
    texts = []
    for nights, inner in (("nights", "w.nights"), (clamp("nights", "visits"), clamp("w.nights", "visits"))):
        filled = {**parts, "nights": nights, "inner_nights": inner}
        texts.append((source.format(**filled), condition.format(**filled)))
    inside = clamp("v.nights", "visits")
    aggregates = [
        ("COUNT(*)", "count(*)"),
        ("SUM(v.nights)", f"coalesce(sum({inside}), 0)"),
        ("AVG(v.nights)", f"avg({inside})"),
    ]
    asked, meant = rng.choice(aggregates)
    key, values = rng.choice([("v.ward", KEYS["visits"]["ward"]), ("", [])])
    group, listed = (f" GROUP BY {key}", f"{key}, ") if key else ("", "")
    return Question(
        *(
            f"SELECT {listed}{one} FROM {text} WHERE {test}{group}"
            for one, (text, test) in zip((asked, meant), texts, strict=True)
        ),
        [values] if key else [],
    )


OVER = "OVER (PARTITION BY patient_id ORDER BY day, visit_id)"
LATEST = "OVER (PARTITION BY patient_id ORDER BY day DESC NULLS LAST, visit_id)"
OTHER = "o.patient_id = v.patient_id AND o.visit_id <> v.visit_id AND (o.day > v.day OR o.nights < v.nights)"
OWN_ROWS = (
    ("SUM({x})", f"(SELECT *, row_number() {OVER} AS n FROM visits{{where}}) AS t WHERE n <= {{first}}"),
    ("SUM({x})", f"(SELECT * FROM visits{{where}} QUALIFY row_number() {LATEST} = 1) AS t"),
    ("SUM(x)", f"(SELECT lag({{x}}, {{first}}) {OVER} AS x FROM visits{{where}}) AS t"),
    ("COUNT(*)", "(SELECT *, rank() OVER (PARTITION BY patient_id ORDER BY ward) AS r FROM visits{where}) AS t WHERE r <= {first}"),
    ("SUM({x}), COUNT(*)", "(SELECT DISTINCT {column}, {more} FROM visits{where}) AS t"),
    ("SUM({x})", f"visits AS v WHERE EXISTS (SELECT 1 FROM visits AS o WHERE {OTHER})"),
    ("SUM({x})", f"visits AS v WHERE NOT EXISTS (SELECT 1 FROM visits AS o WHERE {OTHER})"),
)  # fmt: skip
"""Aggregates, and the text from FROM on, in which rows are chosen or values computed from the other rows of the same patient."""


def _own_rows(rng: random.Random) -> Question:
    """Return a query from OWN_ROWS over one column."""
    column = rng.choice(["cost", "change", "nights"])
    aggregates, rest = rng.choice(OWN_ROWS)
    parts = {
        "column": column, "where": _where(rng, ("visits",), ""), "first": rng.choice([1, 2, 5]),
        "more": rng.choice(["code", "ward", "day"]),
    }  # fmt: skip
    shape = f"SELECT {aggregates} FROM {rest}"
    meant = shape.replace("SUM({x})", "coalesce(SUM({x}), 0)").replace("SUM(x)", "coalesce(SUM(x), 0)")
    return Question(shape.format(x=column, **parts), meant.format(x=clamp(column, "visits"), **parts))
