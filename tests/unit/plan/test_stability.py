"""Stability, the number of rows of each relation that one unit moves, by hand and by brute force over small joins, and its
assumptions."""

from collections import Counter
from cProfile import Profile
from dataclasses import replace
from itertools import combinations, product
from random import Random

import pytest

from dpsql.errors.exceptions import Error
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import (
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Literal,
    Project,
    Promise,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    Window,
)
from dpsql.plan.stability import (
    MOST_ROWS_PER_UNIT,
    base_column,
    base_rows,
    matches,
    most_met,
    owned,
    parts,
    promises,
    rows_in_group,
    rows_per_unit,
    tables,
    told_apart,
    unfiltered,
)
from dpsql.policy import ContributionBounds, Policy, Table, parse_policy

TEXT = """
dataset: d
source: duckdb:///d.duckdb
privacy_unit: {table: people, column: id}
budget: {epsilon: 10, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 0}
ledger: sqlite:///d.db
tables:
  people: {max_rows: 1, primary_key: [id], columns: {id: {type: integer, nullable: false}, x: {type: integer}}}
  visits:
    max_rows: 7
    primary_key: [visit]
    foreign_keys: {id: people.id}
    columns: {visit: {type: integer, nullable: false}, id: {type: integer}, x: {type: integer}}
  labs:
    max_rows: 4
    foreign_keys: {visit: visits.visit}
    columns: {visit: {type: integer}, x: {type: integer}}
  wards:
    public: true
    primary_key: [x]
    max_multiplicity: {y: 3}
    columns: {x: {type: integer}, y: {type: integer}, z: {type: integer}}
"""
ENTITY = parse_policy(TEXT)
ROWS = replace(ENTITY, privacy_unit=None)
"""The same tables with each row as a unit."""


def column(name: str, type_: Type = Type.INTEGER) -> Column:
    return Column(name, Facts(type_))


def scan(table: str, policy: Policy = ENTITY) -> Scan:
    return Scan(table, tuple(column(name) for name in policy.tables[table].columns))


PEOPLE, VISITS, LABS, WARDS = (scan(table) for table in ("people", "visits", "labs", "wards"))
RELEASED = ReleasedRows("r", (column("x"), column("y")), (("x",),), "r", ((("y",), 4),))
TRUE = Literal(True, literal_facts(True))


def projected(source: Relation, **columns: Expr) -> Project:
    return Project(source, tuple(columns.items()))


def joined(left: Relation, right: Relation, key: str = "x", kind: str = "inner", on_unit: bool = False) -> Join:
    return Join(left, right, kind, ((column(f"a.{key}"), column(f"b.{key}")),), on_unit)


def promising(policy: Policy = ENTITY, **most: int) -> Policy:
    """Return a policy in which at most so many rows of a table agree on x."""
    tables = {name: replace(policy.tables[name], max_multiplicity={("x",): number}) for name, number in most.items()}
    return replace(policy, tables={**policy.tables, **tables})


def listing(count: int) -> Policy:
    """Return the policy with so many known rows of wards."""
    wards = replace(ENTITY.tables["wards"], rows=(("x", "y", "z"), tuple((row, row, row) for row in range(count))))
    return replace(ENTITY, tables={**ENTITY.tables, "wards": wards})


def semi(left: Relation, right: Relation, on_unit: bool = False) -> SemiJoin:
    return SemiJoin(left, right, ((column("x"), column("x")),), on_unit, False, False)


def per_unit(source: Relation, *keys: str) -> UnitAggregate:
    return UnitAggregate(
        source, tuple((key, column(key)) for key in keys), (("n", "count", None, None, Facts(Type.INTEGER)),)
    )


def windowed(source: Relation, word: str = "row_number", name: str = "w", keys: tuple[Expr, ...] = ()) -> UnitWindow:
    return UnitWindow(source, (Window(name, word, None, None, 1, keys, (), Facts(Type.INTEGER)),))


def compared(function: str, value: Expr, bound: object) -> Expr:
    return call(function, value, Literal(bound, literal_facts(bound)))


NUMBERED = windowed(VISITS)


@pytest.mark.parametrize(
    ("relation", "rows"),
    [
        (PEOPLE, 1),
        (VISITS, 7),
        (WARDS, 0),
        (RELEASED, 0),
        (Filter(VISITS, TRUE), 7),
        (projected(VISITS, y=column("x")), 7),
        (Distinct(VISITS), 7),
        (NUMBERED, 7),
        (Union_((VISITS, LABS, WARDS, VISITS)), 7 + 4 + 0 + 7),
        (per_unit(VISITS), 1),
        (per_unit(VISITS, "x"), 7),
        (per_unit(per_unit(VISITS, "x"), "x"), 7),
        (per_unit(per_unit(VISITS, "x")), 1),
        (semi(VISITS, WARDS), 7),
        (semi(VISITS, LABS, on_unit=True), 7),
        (semi(VISITS, RELEASED), 7),
        (joined(VISITS, WARDS), 7),
        (joined(VISITS, WARDS, "y"), 21),
        (joined(VISITS, WARDS, "y", kind="left"), 21),
        (joined(VISITS, RELEASED), 7),
        (joined(VISITS, RELEASED, "y"), 28),
        (joined(VISITS, LABS, on_unit=True), 28),
        (joined(joined(VISITS, WARDS, "y"), PEOPLE, "id", on_unit=True), 21),
    ],
)  # fmt: skip
def test_each_relation_has_the_rows_of_its_line_in_the_table(relation: Relation, rows: int) -> None:
    assert rows_per_unit(relation, ENTITY) == rows


@pytest.mark.parametrize(("table", "rows"), [("people", 1), ("visits", 1), ("labs", 1), ("wards", 0)])
def test_under_row_privacy_a_unit_is_a_row(table: str, rows: int) -> None:
    assert rows_per_unit(scan(table), ROWS) == rows
    assert not owned(scan(table), ROWS)


# --- the first rows of a unit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["le", "lt", "eq", "ge", "gt"])
@pytest.mark.parametrize("bound", [-2, 0, 1, 2, 3, 7, 8, 100])
def test_a_condition_on_the_row_number_leaves_as_many_rows_as_pass_it(function: str, bound: int) -> None:
    passes = {
        "le": int.__le__, "lt": int.__lt__, "eq": int.__eq__, "ge": int.__ge__, "gt": int.__gt__,
    }[function]  # fmt: skip
    exact = sum(passes(number, bound) for number in range(1, 8))
    rows = rows_per_unit(Filter(NUMBERED, compared(function, column("w"), bound)), ENTITY)
    # A count of 0 is never claimed, no equality is claimed to fail, and conditions from below are not used.
    assert rows == {"le": max(1, exact), "lt": max(1, exact), "eq": 1}.get(function, 7)


FIRST_TWO = compared("le", column("w"), 2)


@pytest.mark.parametrize(
    ("relation", "rows"),
    [
        (Filter(NUMBERED, call("and", compared("gt", column("x"), 0), FIRST_TWO)), 2),
        (Filter(NUMBERED, call("and", FIRST_TWO, call("and", TRUE, compared("lt", column("w"), 2)))), 1),
        (Filter(NUMBERED, call("or", FIRST_TWO, TRUE)), 7),
        (Filter(NUMBERED, call("not", FIRST_TWO)), 7),
        (Filter(NUMBERED, TRUE), 7),
        (Filter(NUMBERED, call("le", column("w"), column("x"))), 7),
        (Filter(NUMBERED, call("le", Literal(2, literal_facts(2)), column("w"))), 7),
        (Filter(NUMBERED, replace(compared("le", column("w"), 2), arguments=(column("w"), TRUE))), 7),
        (Filter(NUMBERED, replace(FIRST_TWO, arguments=(column("w"), Literal(2.0, Facts(Type.REAL))))), 7),
        (Filter(NUMBERED, compared("le", column("x"), 2)), 7),
        (Filter(windowed(VISITS, "rank"), FIRST_TWO), 7),
        (Filter(windowed(VISITS, keys=(column("x"),)), FIRST_TWO), 7),
        (Filter(projected(NUMBERED, w=column("w")), FIRST_TWO), 2),
        (Filter(projected(NUMBERED, w=column("x"), v=column("w")), FIRST_TWO), 7),
        (Filter(projected(NUMBERED, w=call("neg", column("w"))), FIRST_TWO), 7),
        (Filter(Filter(NUMBERED, TRUE), FIRST_TWO), 2),
        (Filter(windowed(NUMBERED, "rank", "v"), FIRST_TWO), 2),
        (Filter(windowed(NUMBERED, "rank", "v"), compared("le", column("v"), 2)), 7),
        (Filter(Union_((NUMBERED, NUMBERED)), FIRST_TWO), 14),
        (Filter(Distinct(NUMBERED), FIRST_TWO), 7),
        (Filter(VISITS, FIRST_TWO), 7),
    ],
)
def test_only_numbers_of_all_rows_of_a_unit_limit_them(relation: Relation, rows: int) -> None:
    assert rows_per_unit(relation, ENTITY) == rows


# --- joins of two protected sides -----------------------------------------------------------------------------------


def most_rows(left: int, right: int, multiplicity: int, back: int, outer: bool) -> int:
    """Return the largest number of rows of a join, over every way in which the rows of both sides may match."""
    pairs = list(product(range(left), range(right)))
    most = 0
    for size in range(len(pairs) + 1):
        for chosen in combinations(pairs, size):
            met = [sum(pair[0] == row for pair in chosen) for row in range(left)]
            if max(met) <= multiplicity and all(sum(pair[1] == row for pair in chosen) <= back for row in range(right)):
                most = max(most, size + (met.count(0) if outer else 0))
    return most


@pytest.mark.parametrize("kind", ["inner", "left"])
@pytest.mark.parametrize(("left", "right"), [(1, 1), (1, 3), (3, 1), (2, 3), (3, 2), (3, 3)])
def test_a_join_on_the_unit_has_no_more_rows_than_are_counted(left: int, right: int, kind: str) -> None:
    sides = {
        name: replace(ENTITY.tables[name], bounds=ContributionBounds(max_rows=most))
        for name, most in (("visits", left), ("labs", right))
    }
    policy = replace(ENTITY, tables={**ENTITY.tables, **sides})
    relation = joined(VISITS, LABS, kind=kind, on_unit=True)
    for multiplicity, back in product((1, 2, 3, 5), repeat=2):
        exact = most_rows(left, right, multiplicity, back, kind == "left")
        counted = rows_per_unit(relation, promising(policy, labs=multiplicity, visits=back))
        # Rows of `right` that fill up some rows of `left` leave fewer unmatched rows than the claim allows for.
        is_tight = kind == "inner" or multiplicity == 1 or multiplicity >= right
        assert counted == exact if is_tight else exact <= counted <= exact + 1, (multiplicity, back)


# Join trees of random tables: no unit has more rows than are counted, whatever its rows are, as long as they keep the policy's
# promises. Rows are those of one unit, so all joins of protected tables may compare units.


def random_tree(random: Random, names: list[str]) -> Relation:
    """Return a join of the tables, in any tree, on one to two equalities of their columns."""
    if len(names) == 1:
        return Scan(names[0], tuple(map(column, ("id", "x", "y"))))
    cut = random.randrange(1, len(names))
    left, right = random_tree(random, names[:cut]), random_tree(random, names[cut:])
    ours, theirs = (sorted(shown(side)) for side in (left, right))
    keys = tuple(
        (column(f"a.{random.choice(ours)}"), column(f"b.{random.choice(theirs)}")) for _ in range(random.randint(1, 2))
    )
    if random.random() < 0.5:  # a key of two columns of the same names
        side = random.choice(ours)[:-1]
        keys = (
            tuple(
                (column(f"a.{side}{name}"), column(f"b.{name}"))
                for name in "xy"
                if f"{side}{name}" in ours and name in theirs
            )
            or keys
        )
    return Join(left, right, random.choice(["inner", "inner", "left"]), keys, True)


def shown(relation: Relation) -> set[str]:
    """Return the names of the columns of a tree."""
    if isinstance(relation, Scan):
        return {"x", "y"}
    assert isinstance(relation, Join)
    return {f"a.{name}" for name in shown(relation.left)} | {f"b.{name}" for name in shown(relation.right)}


def joined_rows(relation: Relation, data: dict[str, list[dict[str, int]]]) -> list[dict[str, int | None]]:
    """Return the rows of a tree over the rows of one unit."""
    if isinstance(relation, Scan):
        return [dict(row) for row in data[relation.table]]
    assert isinstance(relation, Join)
    left, right = joined_rows(relation.left, data), joined_rows(relation.right, data)
    nothing = {f"b.{name}": None for name in shown(relation.right)}
    rows: list[dict[str, int | None]] = []
    for row in left:
        a = {f"a.{name}": value for name, value in row.items()}
        pairs = [a | {f"b.{name}": value for name, value in partner.items()} for partner in right]
        met = [
            pair for pair in pairs if all(None is not pair[x.name] == pair[y.name] for x, y in column_pairs(relation))
        ]
        rows += met or ([a | nothing] if relation.kind == "left" else [])
    return rows


def column_pairs(relation: Join) -> list[tuple[Column, Column]]:
    return [(a, b) for a, b in relation.keys if isinstance(a, Column) and isinstance(b, Column)]


def random_rows(random: Random, table: Table) -> list[dict[str, int]]:
    """Return rows of one unit that keep the promises of a table, as many as it may have if they keep them."""
    rows: list[dict[str, int]] = []
    for _ in range(12):
        row = {name: 1 if name == "id" else random.randrange(3) for name in table.columns}
        more = [*rows, row]
        limits = [*((key, 1) for key in (table.primary_key, *table.unique) if key), *table.max_multiplicity.items()]
        held = all(
            Counter(tuple(entry[name] for name in key) for entry in more).most_common(1)[0][1] <= most
            for key, most in limits
        )
        if held and len(more) <= (table.bounds.max_rows or 0):
            rows = more
    return rows


@pytest.mark.parametrize("seed", range(40))
def test_no_unit_has_more_rows_of_a_join_tree_than_are_counted(seed: int) -> None:
    random = Random(seed)
    columns = dict.fromkeys(("id", "x", "y"), ENTITY.tables["visits"].columns["x"])
    tables = dict(ENTITY.tables)
    for name in ("visits", "labs", "tests"):
        keys = random.choice([((), ()), (("x",), ()), (("x", "y"), ()), ((), (("y",),))])
        repeats = {(random.choice("xy"),): random.randint(1, 3)} if random.random() < 0.5 else {}
        most = ContributionBounds(max_rows=random.randint(2, 6))
        tables[name] = replace(
            ENTITY.tables["visits"], name=name, columns=columns, foreign_keys={"id": ("people", "id")}, primary_key=keys[0],
            unique=keys[1], max_multiplicity=repeats, bounds=most,
        )  # fmt: skip
    policy = replace(ENTITY, tables=tables)
    for _ in range(40):
        names = random.choices(["visits", "labs", "tests"], k=random.choice([2, 3, 3, 3, 4]))
        relation = random_tree(random, names)
        counted = rows_per_unit(relation, policy)
        for _ in range(5):
            data = {name: random_rows(random, tables[name]) for name in names}
            assert len(joined_rows(relation, data)) <= counted, (relation, data)


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("relation", "key"), [(VISITS, "visit"), (WARDS, "x")])
def test_the_work_of_counting_grows_little_with_each_join(relation: Relation, key: str) -> None:
    """Each join asks for its left side several times: counted anew each time, twenty joins would take a million steps."""
    calls = []
    for joins in (7, 14):
        chain: Relation = VISITS
        for depth in range(1, joins + 1):
            pair = (column("a." * depth + key), column(f"b.{key}"))
            chain = Join(chain, relation, "inner", (pair,), relation is VISITS)
        profile = Profile()
        assert profile.runcall(rows_per_unit, chain, ENTITY) == 7
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < 8 * calls[0]


def test_a_count_beyond_the_limit_is_refused_and_the_limit_itself_is_not() -> None:
    visits = replace(ENTITY.tables["visits"], bounds=ContributionBounds(max_rows=MOST_ROWS_PER_UNIT))
    policy = replace(ENTITY, tables={**ENTITY.tables, "visits": visits})
    assert rows_per_unit(VISITS, policy) == 10**9
    with pytest.raises(Error) as refused:
        rows_per_unit(Union_((VISITS, PEOPLE)), policy)
    assert refused.value.slug == "too_many_rows_per_unit"
    with pytest.raises(Error, match="too_many_rows_per_unit"):
        rows_in_group(Union_((VISITS, PEOPLE)), (), policy)


def test_a_protected_table_without_max_rows_is_refused() -> None:
    unlimited = replace(ENTITY.tables["visits"], bounds=ContributionBounds())
    policy = replace(ENTITY, tables={**ENTITY.tables, "visits": unlimited})
    with pytest.raises(Error, match="no_max_rows"):
        rows_per_unit(VISITS, policy)
    assert rows_per_unit(VISITS, replace(policy, privacy_unit=None)) == 1


@pytest.mark.parametrize(
    ("relation", "policy"),
    [
        (joined(VISITS, LABS), ENTITY),
        (joined(Distinct(VISITS), LABS, on_unit=True), ENTITY),
        (joined(VISITS, Distinct(LABS), on_unit=True), ENTITY),
        (semi(VISITS, LABS), ENTITY),
        (semi(VISITS, Distinct(LABS), on_unit=True), ENTITY),
        (semi(Distinct(VISITS), LABS, on_unit=True), ENTITY),
        (semi(VISITS, LABS, on_unit=True), ROWS),
        (windowed(Distinct(VISITS)), ENTITY),
        (windowed(VISITS), ROWS),
        (windowed(WARDS), ENTITY),
        (joined(VISITS, RELEASED, "z"), ENTITY),
        (joined(VISITS, Filter(Filter(RELEASED, TRUE), TRUE), "z"), ENTITY),
        (joined(VISITS, WARDS, "z"), ENTITY),
        (joined(VISITS, WARDS, "z"), listing(2)),
        (Join(VISITS, WARDS, "inner", (), False), ENTITY),
        (Join(VISITS, WARDS, "inner", ((column("a.x", Type.REAL), column("b.x")),), False), ENTITY),
        (Join(VISITS, WARDS, "inner", ((column("a.x"), call("neg", column("b.x"))),), False), ENTITY),
    ],
)
def test_a_plan_that_the_binder_must_not_make_is_not_counted(relation: Relation, policy: Policy) -> None:
    with pytest.raises(Error) as refused:
        rows_per_unit(relation, policy)
    assert refused.value.slug == "internal"


# --- owners of rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "is_owned"),
    [
        (VISITS, True),
        (WARDS, False),
        (RELEASED, False),
        (Distinct(VISITS), False),
        (Filter(VISITS, TRUE), True),
        (projected(VISITS, x=column("x")), True),
        (NUMBERED, True),
        (per_unit(VISITS, "x"), True),
        (joined(VISITS, WARDS), True),
        (joined(VISITS, Distinct(LABS)), True),
        (joined(Distinct(VISITS), WARDS), False),
        (semi(VISITS, WARDS), True),
        (semi(WARDS, VISITS), False),
        (Union_((VISITS, LABS)), True),
        (Union_((VISITS, WARDS)), False),
        (Union_((Distinct(VISITS), LABS)), False),
    ],
)
def test_rows_belong_to_a_unit_where_every_row_carries_its_key(relation: Relation, is_owned: bool) -> None:
    assert owned(relation, ENTITY) is is_owned
    assert owned(relation, ROWS) is False


@pytest.mark.parametrize(
    ("relation", "keys", "rows"),
    [
        (VISITS, ("x",), 7),
        (per_unit(VISITS, "x", "y"), ("x", "y"), 1),
        (per_unit(VISITS, "x", "y"), ("y", "n", "x"), 1),
        (per_unit(VISITS, "x", "y"), ("x",), 7),
        (per_unit(VISITS, "x"), (), 7),
        (per_unit(VISITS), (), 1),
        (Filter(per_unit(VISITS, "x"), TRUE), ("x",), 1),
        (projected(per_unit(VISITS, "x"), z=column("x")), ("z",), 1),
        (projected(per_unit(VISITS, "x"), x=column("n"), z=column("x")), ("x",), 7),
        (projected(per_unit(VISITS, "x"), z=call("neg", column("x"))), ("z",), 7),
        (Distinct(per_unit(VISITS, "x")), ("x",), 7),
        (Union_((per_unit(VISITS, "x"), per_unit(LABS, "x"))), ("x",), 11),
        (per_unit(WARDS, "x"), ("x",), 0),
    ],
)
def test_a_unit_has_one_row_where_a_group_holds_all_keys_of_its_results(
    relation: Relation, keys: tuple[str, ...], rows: int
) -> None:
    assert rows_in_group(relation, tuple(column(key) for key in keys), ENTITY) == rows


def test_a_computed_key_may_be_equal_in_all_results_of_a_unit() -> None:
    assert rows_in_group(per_unit(VISITS, "x"), (call("abs", column("x")),), ENTITY) == 7


# --- what equal keys promise ----------------------------------------------------------------------------------------


def pairs(*names: str, prefix: str = "b.") -> tuple[tuple[Expr, Expr], ...]:
    return tuple((column(f"a.{name}"), column(prefix + name)) for name in names)


@pytest.mark.parametrize(
    ("unique", "repeats", "keys", "most"),
    [
        ((("x",),), (), ("x",), 1),
        ((("x", "y"),), (), ("x",), None),
        ((), (), ("x",), None),
        (((),), (), (), 1),
        ((), ((("y",), 4),), ("y",), 4),
        ((), ((("y",), 4), (("x",), 3)), ("x", "y"), 3),
        ((), ((("y",), 4), (("x", "y"), 3)), ("y",), 4),
        ((), ((("y",), 0),), ("y",), 1),
        ((("x",),), ((("y",), 4),), ("x", "y"), 1),
    ],
)
def test_rows_with_equal_keys_are_as_few_as_any_promise_about_some_of_them(
    unique: tuple[tuple[str, ...], ...],
    repeats: tuple[tuple[tuple[str, ...], int], ...],
    keys: tuple[str, ...],
    most: int | None,
) -> None:
    rows = ReleasedRows("r", (column("x"), column("y")), unique, "r", repeats)
    assert most_met(rows, pairs(*keys), "b.") == most
    assert most_met(rows, pairs(*keys, prefix="")) == most


def test_computed_keys_and_reals_promise_nothing() -> None:
    assert most_met(RELEASED, ((column("x"), call("neg", column("x"))),)) is None
    assert most_met(RELEASED, ((column("x", Type.REAL), column("x")),)) is None
    assert most_met(RELEASED, ((column("x"), column("x", Type.REAL)),)) == 1


@pytest.mark.parametrize(
    ("left", "right", "apart"),
    [
        (Type.REAL, Type.INTEGER, False),
        (Type.INTEGER, Type.REAL, True),
        (Type.REAL, Type.REAL, True),
        (Type.INTEGER, Type.INTEGER, True),
    ],
)
def test_reals_alone_do_not_keep_integers_apart(left: Type, right: Type, apart: bool) -> None:
    assert told_apart(column("x", left), column("x", right)) is apart


VISIT_HOP = Promise("visits", ("visit",), 1)


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (WARDS, set()),
        (PEOPLE, set()),
        (VISITS, set()),
        (LABS, {VISIT_HOP}),
        (RELEASED, set()),
        (joined(VISITS, WARDS), {Promise("wards", ("x",), 1)}),
        (joined(VISITS, WARDS, "y"), {Promise("wards", ("y",), 3)}),
        (joined(VISITS, projected(Filter(WARDS, TRUE), z=column("y")), "z"), {Promise("wards", ("y",), 3)}),
        (joined(VISITS, PEOPLE, "id", on_unit=True), {Promise("people", ("id",), 1)}),
        (joined(VISITS, PEOPLE, "x", on_unit=True), set()),
        (joined(VISITS, projected(PEOPLE, id=column("id")), "id", on_unit=True), {Promise("people", ("id",), 1)}),
        (joined(PEOPLE, VISITS, "id", on_unit=True), {Promise("people", ("id",), 1)}),
        (Union_((joined(VISITS, WARDS), LABS)), {Promise("wards", ("x",), 1), VISIT_HOP}),
        (semi(VISITS, LABS, on_unit=True), {VISIT_HOP}),
        (Filter(joined(LABS, WARDS, "y"), TRUE), {Promise("wards", ("y",), 3), VISIT_HOP}),
    ],
)
def test_every_promise_that_the_count_relies_on_is_listed(relation: Relation, expected: set[Promise]) -> None:
    assert promises(relation, ENTITY) == expected


@pytest.mark.parametrize("count", [0, 1, 9])
def test_a_row_that_meets_all_public_rows_relies_on_their_number(count: int) -> None:
    crossed = Join(VISITS, WARDS, "inner", (), False)
    most = max(1, count)
    assert rows_per_unit(crossed, listing(count)) == 7 * most
    assert promises(crossed, listing(count)) == {Promise("wards", (), most)}
    assert promises(crossed, ENTITY) == set()


@pytest.mark.parametrize(("most", "rows"), [(1, 7), (2, 14), (4, 28), (9, 28)])
def test_a_promise_limits_the_rows_that_match(most: int, rows: int) -> None:
    assert rows_per_unit(joined(VISITS, LABS, on_unit=True), promising(labs=most)) == rows
    assert matches(joined(VISITS, LABS, on_unit=True), promising(labs=most, visits=3)) == (most, 3)
    assert matches(joined(VISITS, WARDS), promising(visits=3)) == (1, None)


# --- below filters and projections ----------------------------------------------------------------------------------


def test_what_is_below_filters_and_projections() -> None:
    renamed = projected(Filter(VISITS, TRUE), y=column("x"), z=call("neg", column("x")))
    above = Filter(Filter(renamed, TRUE), TRUE)
    assert unfiltered(above) is renamed and unfiltered(VISITS) is VISITS
    assert base_rows(above) is VISITS and base_rows(Distinct(above)) == Distinct(above)
    assert base_column(above, column("y")) == "x"
    assert base_column(above, column("z")) is None
    assert base_column(VISITS, column("x")) == "x"
    assert base_column(VISITS, call("neg", column("x"))) is None


def test_relations_right_below_and_the_tables_that_are_read() -> None:
    assert parts(VISITS) == parts(RELEASED) == ()
    assert parts(joined(VISITS, WARDS)) == parts(semi(VISITS, WARDS)) == (VISITS, WARDS)
    assert parts(Union_((VISITS, LABS, VISITS))) == (VISITS, LABS, VISITS)
    assert parts(Filter(VISITS, TRUE)) == parts(Distinct(VISITS)) == parts(per_unit(VISITS)) == (VISITS,)
    assert tables(RELEASED) == frozenset()
    assert tables(Union_((joined(VISITS, WARDS), Distinct(semi(LABS, RELEASED))))) == {"visits", "wards", "labs"}
