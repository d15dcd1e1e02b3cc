"""Equal keys are treated as those of one privacy unit where the policy declares it, and nowhere else."""

from dataclasses import replace

import pytest
from support.places import POLICIES

from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import (
    Column,
    Expr,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    Window,
)
from dpsql.policy import load_policy
from dpsql.sql.binder.equal_keys import along_key, naming_unit, origin

SHOP = load_policy(POLICIES / "shop.yaml")
INTEGER = Facts(Type.INTEGER)


def column(name: str) -> Column:
    return Column(name, INTEGER)


def rows(table: str) -> Scan:
    return Scan(table, tuple(map(column, SHOP.tables[table].columns)))


def pairs(*names: str) -> list[tuple[Expr, Expr]]:
    """Return equal columns, one pair for each "a=b"."""
    return [(column(left), column(right)) for left, right in (name.split("=") for name in names)]


@pytest.mark.parametrize(
    ("left", "right", "equal", "expected"),
    [
        ("orders", "users", ["user_id=user_id"], True),
        ("users", "orders", ["user_id=user_id"], True),
        ("orders", "events", ["user_id=user_id"], True),
        ("orders", "events", ["price=duration_ms", "user_id=user_id"], True),
        ("orders", "orders", ["order_id=order_id"], True),
        ("orders", "orders", ["status=status", "order_id=order_id"], True),
        # one product, and one country, is shared by many people
        ("orders", "orders", ["product_id=product_id"], False),
        ("users", "users", ["country=country"], False),
        ("orders", "products", ["product_id=product_id"], False),
        ("products", "orders", ["product_id=product_id"], False),
        # a key identifies rows that have it as their own key, not equal numbers elsewhere
        ("orders", "users", ["order_id=user_id"], False),
        ("orders", "users", ["user_id=age"], False),
        ("orders", "orders", ["status=status"], False),
        ("orders", "orders", ["order_id=user_id"], False),
        ("events", "events", ["page=page"], False),
    ],
)
def test_keys_of_one_unit_are_those_that_the_policy_declares(
    left: str, right: str, equal: list[str], expected: bool
) -> None:
    assert along_key(rows(left), rows(right), pairs(*equal), SHOP) is expected


def test_computed_keys_are_nobodys() -> None:
    shifted = call("add", column("user_id"), Literal(1, literal_facts(1)))
    assert not along_key(rows("orders"), rows("users"), [(shifted, column("user_id"))], SHOP)
    renamed = Project(rows("orders"), (("user_id", column("product_id")), ("buyer", column("user_id"))))
    assert not along_key(renamed, rows("users"), pairs("user_id=user_id"), SHOP)
    assert along_key(renamed, rows("users"), pairs("buyer=user_id"), SHOP)


def test_a_column_is_followed_to_its_table_through_rows_that_keep_it() -> None:
    orders, users = rows("orders"), rows("users")
    joined: Relation = Join(orders, users, "left", tuple(pairs("user_id=user_id")), True)
    for relation in (joined, Filter(joined, column("x")), SemiJoin(joined, orders, (), False, False, False)):
        assert origin(relation, column("a.price")) == ("orders", "price")
        assert origin(relation, column("b.age")) == ("users", "age")
    swapped = Project(joined, (("a.age", column("b.age")), ("b.age", column("a.quantity"))))
    assert origin(swapped, column("a.age")) == ("users", "age")
    assert origin(swapped, column("b.age")) == ("orders", "quantity")
    grouped = UnitAggregate(orders, (("g0", column("status")),), (("a0", "min", column("price"), None, INTEGER),))
    assert origin(grouped, column("g0")) == ("orders", "status")
    assert origin(grouped, column("a0")) is None
    assert origin(grouped, column("u")) is None


def join_of(kind: str) -> Join:
    return Join(rows("orders"), rows("orders"), kind, ((column("a.order_id"), column("b.order_id")),), True)


def part_of(table: str, *items: Expr) -> Project:
    return Project(rows(table), tuple((f"p{number}", item) for number, item in enumerate(items)))


ORDER = column("order_id")
TWICE, HALF = (call(word, ORDER, Literal(2, literal_facts(2))) for word in ("mul", "intdiv"))
NUMBERED = UnitWindow(rows("orders"), (Window("w0", "row_number", None, None, 0, (), (), INTEGER),))


@pytest.mark.parametrize(
    ("relation", "names", "expected"),
    [
        (part_of("orders", TWICE), ["p0"], True),
        (part_of("orders", HALF), ["p0"], False),
        (NUMBERED, ["order_id"], True),
        (NUMBERED, ["w0"], False),
        (Union_((part_of("orders", ORDER), part_of("orders", TWICE))), ["p0"], True),
        (Union_((part_of("orders", ORDER), part_of("orders", HALF))), ["p0"], False),
        (Union_((part_of("orders", ORDER), part_of("orders", column("product_id")))), ["p0"], False),
        (Union_((part_of("orders", column("user_id")), part_of("users", column("user_id")))), ["p0"], True),
        (Union_((part_of("orders", column("user_id")), part_of("users", column("age")))), ["p0"], False),
        (rows("orders"), ["order_id"], True),
        (rows("orders"), ["status", "order_id"], True),
        (rows("orders"), ["user_id"], True),
        (rows("orders"), ["product_id"], False),
        (rows("orders"), ["status"], False),
        (rows("orders"), [], False),
        (rows("users"), ["country"], False),
        (rows("products"), ["product_id"], False),
        (Filter(rows("orders"), column("status")), ["order_id"], True),
        (Project(rows("orders"), (("p0", column("order_id")), ("p1", column("price")))), ["p0"], True),
        (Project(rows("orders"), (("p0", column("order_id")), ("p1", column("price")))), ["p1"], False),
        (join_of("inner"), ["a.order_id"], True),
        (join_of("inner"), ["b.order_id"], True),
        (join_of("left"), ["a.order_id"], True),
        # rows of many people without a partner have NULL in it
        (join_of("left"), ["b.order_id"], False),
    ],
)
def test_groups_of_one_unit_are_those_of_its_declared_keys(
    relation: Relation, names: list[str], expected: bool
) -> None:
    assert bool(naming_unit(relation, list(map(column, names)), SHOP)) is expected


def test_a_composite_key_names_its_unit_with_all_columns_of_one_scan() -> None:
    policy = replace(
        SHOP, tables={**SHOP.tables, "orders": replace(SHOP.tables["orders"], primary_key=("order_id", "quantity"))}
    )
    assert naming_unit(rows("orders"), [column("quantity"), column("order_id")], policy)
    assert not naming_unit(rows("orders"), [column("order_id")], policy)
    assert not naming_unit(join_of("inner"), [column("a.order_id"), column("b.quantity")], policy)
    assert naming_unit(join_of("inner"), [column("b.order_id"), column("b.quantity")], policy)


def test_a_unique_column_that_may_be_null_names_no_unit() -> None:
    orders = SHOP.tables["orders"]
    unique = replace(orders, primary_key=(), unique=(("order_id",),))
    nullable = replace(
        unique, columns={**orders.columns, "order_id": replace(orders.columns["order_id"], nullable=True)}
    )
    for table, expected in ((unique, True), (nullable, False)):
        policy = replace(SHOP, tables={**SHOP.tables, "orders": table})
        assert bool(naming_unit(rows("orders"), [column("order_id")], policy)) is expected
