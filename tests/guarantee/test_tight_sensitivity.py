"""Every claim is tight: for each relation shape, some pair moves each norm by exactly the claimed amount.

Pairs that do not reach the claims prove little: a claim that is slightly too small would pass. Therefore a shape of the grammar
without a unit that reaches its bounds is a failure, and so is a relation of the corpus without a shape.
"""

from functools import cache
from typing import Any

import pytest
from sql.corpus import ACCEPTED
from support.neighbouring_hospitals import crowd, together
from support.places import policy
from support.recording_session import World
from support.relation_shapes import UNITS, Shape, productions, shapes

from dpsql.pricing.pricing import Price
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql_audit.distances import compare, moves
from dpsql_audit.observation import Measured, Observed

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
