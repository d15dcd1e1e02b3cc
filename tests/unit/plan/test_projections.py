"""A projection below a block says only what its names stand for: the block is the same over what they stand for."""

from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.origins import MOST_BRANCHES, branches, without_projections
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
    assert without_projections(sums(source, column("c"), column("d"))) == sums(SCAN, column("y"), column("x"))


def test_names_that_are_exchanged_are_exchanged_at_once() -> None:
    source = renamed(SCAN, x="y", y="x", z="z")
    value = call("sub", column("x"), column("y"))
    expected = sums(SCAN, column("x"), call("sub", column("y"), column("x")))
    assert without_projections(sums(source, column("y"), value)) == expected


def test_conditions_between_projections_are_over_the_names_below() -> None:
    inner = Filter(renamed(SCAN, a="x", b="y"), call("lt", column("a"), column("b")))
    block = without_projections(sums(renamed(inner, x="b", y="a"), column("x"), column("y")))
    assert block == sums(Filter(SCAN, call("lt", column("x"), column("y"))), column("y"), column("x"))


def test_a_name_stands_for_its_expression_and_the_condition_below_stays_below() -> None:
    doubled = call("mul", column("x"), column("y"))
    inner = Filter(Project(SCAN, (("a", doubled), ("b", column("y")))), call("lt", column("a"), column("b")))
    outer = Project(inner, (("c", call("neg", column("a"))), ("d", column("b"))))
    expected = sums(Filter(SCAN, call("lt", doubled, column("y"))), call("neg", doubled), column("y"))
    assert without_projections(sums(outer, column("c"), column("d"))) == expected


def test_without_a_projection_the_block_is_the_same_object() -> None:
    for source in (SCAN, Filter(SCAN, call("lt", column("x"), column("y")))):
        block = sums(source, column("x"), column("y"))
        assert without_projections(block) is block


def test_names_that_double_their_expression_again_and_again_stay_names() -> None:
    """Ten of them would be a thousand parts, thirty a billion."""
    source: Relation = SCAN
    for _ in range(30):
        source = Project(source, (("x", call("add", column("x"), column("x"))), ("y", column("y"))))
    block = without_projections(sums(source, column("y"), column("x")))
    assert len(repr(block)) < 200_000 and isinstance(block.source, Project)


def test_a_table_keeps_the_branches_of_few_prefixes_however_many_shapes_questions_have() -> None:
    table = Scan("t", (Column("n", Facts(Type.INTEGER)),))
    names = [branches(table, f"{shape}.")[0].columns["n"].name for shape in range(1000)]
    assert names == [f"{shape}.n" for shape in range(1000)]
    assert sum(map(len, vars(table)["#branches"].values())) <= MOST_BRANCHES
