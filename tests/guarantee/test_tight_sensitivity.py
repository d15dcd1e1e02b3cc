"""Every claim is tight: for each relation shape, some pair moves each norm by exactly the claimed amount.

Pairs that do not reach the claims prove little: a claim that is slightly too small would pass. Therefore a shape of the grammar
without a unit that reaches its bounds is a failure, and so is a relation of the corpus without a shape.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, timedelta
from functools import cache
from itertools import cycle, islice
from typing import Any

import pytest
from sql.corpus import ACCEPTED
from support.neighbouring_hospitals import PLAIN, SCHEMAS, Data, crowd, together
from support.places import policy
from support.random_questions import CLAMPED, FURTHER_KEYS, JOINS, OWN_ROWS, PER_UNIT, STAGED
from support.recording_session import World

from dpsql.plan.plan import Join, Relation, ReleasedRows, SemiJoin
from dpsql.plan.stability import matches, rows_per_unit
from dpsql.policy import Policy
from dpsql.pricing.pricing import Price
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql_audit.distances import compare, moves
from dpsql_audit.observation import Measured, Observed

NUMBER = 900
"""The number of the added unit; no one else in the hospitals has it."""
FEW = (30, 40)
"""Values with which STAGED compares released counts; the fixed outputs of the recording gate lie around both."""


@dataclass(frozen=True)
class Shape:
    """One shape. `texts`: variants of FROM and WHERE with one claimed stability, which some pair must reach. `key`: the column to
    group by."""

    name: str
    texts: tuple[str, ...]
    key: str = ""


def shapes() -> Iterator[Shape]:
    """Yield the shapes of the grammar."""
    for table in CLAMPED:
        yield Shape(table, (table,), _key((table,), ""))
    for text, tables, _ in JOINS:
        yield Shape(text, (text,), _key(tables, text))
    parts = {
        "where": "",
        "listed": " WHERE ward IN ('er', 'icu', 'day')",
        "nights": "nights",
        "inner_nights": "w.nights",
    }
    for source, condition in STAGED:
        text = f"{source} WHERE {condition}"
        key = _key(("v",), text.replace("{listed}", ""))
        yield Shape(text, tuple(text.format(**parts, few=few) for few in FEW), key)
    for number, (_, rest) in enumerate(OWN_ROWS):
        text = rest.format(x="nights", column="nights", where="", first=3, more="ward")
        yield Shape(f"own rows {number}: {text}", (text,), "" if "lag(" in text else _key(("visits",), text))
    for further in dict.fromkeys(FURTHER_KEYS):
        yield Shape(f"per unit{further}", (PER_UNIT.format(further=further, inner="COUNT(*)", where=""),))
    more = PER_UNIT.format(further=", ward, code", inner="COUNT(*)", where="")
    yield Shape("per unit, ward, code, by ward", (more,), "ward")
    yield Shape("per unit, ward, by ward", (more.replace(", code", ""),), "ward")
    counted = "(SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t"
    yield Shape(
        "results of a unit that are read",
        (f"patients AS p LEFT JOIN {counted} ON p.patient_id = t.patient_id WHERE coalesce(t.n, 0) <> 3",),
    )
    yield Shape("listed rows, some equal", ("visits AS v CROSS JOIN UNNEST(['a', 'a', 'b']) AS l(letter)",), "ward")


def _key(tables: tuple[str, ...], text: str) -> str:
    """Return a column to group by that occurs in no condition, so that a unit's rows may be in any of its groups."""
    if tables == ("patients",):
        return "sex"
    if "visits" not in tables and "v" not in tables:
        return "test"
    return "date_trunc('quarter', day)" if "ward" in text and "DISTINCT" not in text else "ward"


# --- units ----------------------------------------------------------------------------------------------------------


def unit(visits: int, labs: list[int], values: dict[str, list[Any]]) -> Data:
    """Return a patient with `visits` visits, and one laboratory value on the visit of each number in `labs`.

    `values`: columns whose values the rows take in turn; all other columns are those of PLAIN.
    """

    def rows(table: str, count: int, keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
        columns = {
            name: list(islice(cycle(values.get(name, [PLAIN.get(name)])), count)) for name in SCHEMAS[table].names
        }
        return [{name: column[row] for name, column in columns.items()} | keys[row] for row in range(count)]

    visit = [{"visit_id": NUMBER * 1000 + number, "patient_id": NUMBER} for number in range(visits)]
    return {
        "patients": rows("patients", 1, [{"patient_id": NUMBER}]),
        "visits": rows("visits", visits, visit),
        "labs": rows("labs", len(labs), [{"visit_id": NUMBER * 1000 + number} for number in labs]),
    }


DAYS = [date(2024, 2, 1) + timedelta(days=number) for number in range(20)]
QUARTERS = [date(2024, 1 + 3 * (number % 5), 1 + number) if number % 5 < 4 else None for number in range(20)]
APART = {
    "day": DAYS,
    "code": list(range(20)),
    "diagnosis": [f"d{number}" for number in range(20)],
    "nights": list(range(4, 24)),
}
WARDS = {"ward": ["er", "icu", "day", None], "test": ["alt", "hb", "na"]}
SAME, EACH = [0] * 12, list(range(12))
UNITS: dict[str, Data] = {
    "one group": unit(20, SAME, APART),
    "one group, equal rows": unit(20, EACH, {"nights": [30]}),
    "one group, no nights": unit(20, [], {**APART, "nights": [0]}),
    "one ward in each quarter": unit(20, SAME, {**APART, "day": QUARTERS, "nights": [99]}),
    "another ward in each quarter": unit(20, SAME, {**APART, "ward": ["icu"], "test": ["hb"], "day": QUARTERS}),
    "the last ward": unit(20, SAME, {**APART, "ward": ["day"], "test": ["na"]}),
    "an unlisted ward": unit(20, SAME, {**APART, "ward": [None]}),
    "spread": unit(20, SAME, {**APART, **WARDS, "day": QUARTERS, "nights": [99]}),
    "spread, a laboratory value each": unit(20, EACH, {**APART, **WARDS, "day": QUARTERS}),
    "spread, equal otherwise": unit(20, [], {**WARDS, "nights": [0]}),
    "a ward for each visit": unit(20, [], {**APART, "ward": [f"w{number}" for number in range(20)]}),
}
"""Units with exactly max_rows rows in every table, so that the bounded view has no choice."""


# --- parts of a plan ---------------------------------------------------------------------------------------------------


def productions(relation: Relation, policy: Policy) -> set[tuple[Any, ...]]:
    """Return the relations of a plan, each with the properties on which its entry in the stability table depends."""
    found: set[tuple[Any, ...]] = set()

    def look(node: Any) -> None:
        if isinstance(node, Join):
            met, back = matches(node, policy)
            one = "one" if met == 1 or rows_per_unit(node.right, policy) == 1 else "many"
            found.add(("Join", node.kind, node.on_unit, back is not None, isinstance(node.right, ReleasedRows), one))
        elif isinstance(node, SemiJoin):
            found.add(("SemiJoin", node.on_unit, node.negated, node.in_list, node.condition is not None))
        elif isinstance(node, Relation):
            found.add((type(node).__name__,))
        for part in fields(node) if is_dataclass(node) else ():
            value = getattr(node, part.name)
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Relation):
                    look(inner)

    look(relation)
    return found


SHAPES = tuple(shapes())
NORMS = ("l0", "l1", "l2_squared", "linf")


@cache
def worlds() -> dict[str, World]:
    """Return the crowd alone (""), and the crowd with each of the units."""
    first = World(policy("hospital"))
    first.load(together(crowd(), {}))
    found = {"": first}
    for name, rows in UNITS.items():
        found[name] = World(first.policy, planner=first.session.planner)
        found[name].load(together(crowd(), rows))
    return found


def planned(world: World, sql: str) -> Price:
    return world.session.plan(world.session.planner.parse(sql, None)).price


def settings(shape: Shape) -> list[tuple[str, list[str]]]:
    """Return SELECT clauses with their options: the whole, by group, and by group with caps that drop rows."""
    found: list[tuple[str, list[str]]] = [("SELECT COUNT(*) FROM {}", [])]
    if shape.key:
        grouped = f"SELECT {shape.key}, COUNT(*) FROM {{}} GROUP BY {shape.key}"
        found.append((grouped, []))
        if "DISTINCT" not in shape.name:
            found.append((grouped, ["dp.max_groups = 2", "dp.max_rows_per_group = 3"]))
    return found


def reached(head: str, options: list[str], texts: tuple[str, ...]) -> dict[tuple[int, str, str], tuple[int, int]]:
    """Return for each block, term and norm the largest distance that a unit moved it, and the claim. Try texts until all claims
    are reached."""
    most: dict[tuple[int, str, str], tuple[int, int]] = {}
    for text in texts:
        base = observed("", head.format(text), options)
        with worlds()[""].options(options):
            price = planned(worlds()[""], head.format(text))
        measuring = [priced for priced in price.blocks if priced.noise.terms]
        for name in UNITS:
            other = observed(name, head.format(text), options)
            assert compare(price, base.blocks, other.blocks).problems == [], (
                f"{head.format(text)}\nand the unit: {name}"
            )
            for number, (priced, left, right) in enumerate(zip(measuring, base.blocks, other.blocks, strict=True)):
                for term, (moved, claim) in farthest(priced.noise.terms, left, right).items():
                    for norm in NORMS:
                        key = (number, term, norm)
                        most[key] = (max(moved[norm], most.get(key, (0, 0))[0]), getattr(claim, norm))
            if all(moved == claim for moved, claim in most.values()):
                return most
    return most


def observed(name: str, sql: str, options: list[str]) -> Observed:
    with worlds()[name].options(options):
        seen = worlds()[name].observe(sql)
    assert seen.outcome == "answered", f"{sql}\n{seen.outcome}"
    return seen


def farthest(terms: Any, left: Measured, right: Measured) -> dict[str, tuple[dict[str, int], Sensitivity]]:
    """Return how far each term moved in each norm, and its claim. Terms that share each row form one vector with one claim."""
    sizes: dict[str, list[int]] = {}
    claims = {}
    for term in terms:
        moved = moves(left.terms[term.name], right.terms[term.name]).values()
        sizes.setdefault(term.shares or term.name, []).extend(map(abs, moved))
        claims[term.shares or term.name] = term.noise.sensitivity
    return {
        name: (
            {"l0": len(of), "l1": sum(of), "l2_squared": sum(size * size for size in of), "linf": max(of, default=0)},
            claims[name],
        )
        for name, of in sizes.items()
    }


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name.replace(" ", "_"))
def test_every_claim_is_reached(shape: Shape) -> None:
    for head, options in settings(shape):
        short = {key: pair for key, pair in reached(head, options, shape.texts).items() if pair[0] != pair[1]}
        assert not short, f"{head} {options}: (moved, claimed) {short}"


def test_every_relation_of_the_corpus_has_a_shape() -> None:
    """Every relation in the corpus's plans occurs in a shape whose claims are reached."""
    world = worlds()[""]
    tight = set()
    planner = world.session.planner
    for shape in SHAPES:
        sql = f"SELECT COUNT(*) FROM {shape.texts[0]}"
        policy = planner.bound_policy(planner.parse(sql, None))[0]
        for priced in planned(world, sql).blocks:
            tight |= productions(priced.block.source, policy)
    used = {}
    for case in ACCEPTED:
        with world.options(case.marks.get("set", [])):
            statement = planner.parse(case.sql, case.parameters)
            if statement.query is None:
                continue
            policy = planner.bound_policy(statement)[0]
            for priced in world.session.plan(statement, case.parameters).price.blocks:
                used.update(dict.fromkeys(productions(priced.block.source, policy), case.id))
    assert {part: case for part, case in used.items() if part not in tight} == {}
