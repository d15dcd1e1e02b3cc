"""A projection that only renames columns leaves the block unchanged, and no other projection does."""

from __future__ import annotations

from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.origins import without_renamings
from dpsql.plan.plan import Block, Column, Expr, Filter, Key, Measure, Project, Relation, Scan

SCAN = Scan("t", tuple(Column(name, Facts(Type.INTEGER)) for name in "xyz"))


def column(name: str) -> Column:
    return Column(name, Facts(Type.INTEGER))


def renamed(source: Relation, **names: str) -> Project:
    return Project(source, tuple((new, column(old)) for new, old in names.items()))


def sums(source: Relation, key: Expr, value: Expr) -> Block:
    measures = (Measure("m0", "sum", (value,), False, call("gt", value, key)),)
    return Block("b", source, (Key("k0", key, None),), measures)


def test_names_are_followed_through_every_projection() -> None:
    source = renamed(renamed(SCAN, a="x", b="y"), c="b", d="a")
    assert without_renamings(sums(source, column("c"), column("d"))) == sums(SCAN, column("y"), column("x"))


def test_names_that_are_exchanged_are_exchanged_at_once() -> None:
    source = renamed(SCAN, x="y", y="x", z="z")
    value = call("sub", column("x"), column("y"))
    expected = sums(SCAN, column("x"), call("sub", column("y"), column("x")))
    assert without_renamings(sums(source, column("y"), value)) == expected


def test_conditions_between_projections_are_over_the_names_below() -> None:
    inner = Filter(renamed(SCAN, a="x", b="y"), call("lt", column("a"), column("b")))
    block = without_renamings(sums(renamed(inner, x="b", y="a"), column("x"), column("y")))
    assert block == sums(Filter(SCAN, call("lt", column("x"), column("y"))), column("y"), column("x"))


def test_what_is_computed_and_what_has_no_projection_stays() -> None:
    computed = Project(SCAN, (("a", call("neg", column("x"))), ("b", column("y"))))
    for source in (SCAN, Filter(SCAN, call("lt", column("x"), column("y"))), computed):
        block = sums(source, column("a"), column("b"))
        assert without_renamings(block) is block
    above = without_renamings(sums(renamed(computed, c="a", d="b"), column("c"), column("d")))
    assert above == sums(computed, column("a"), column("b"))
