"""Joins with rows of which only the presence counts are semi-joins: `JOIN (SELECT DISTINCT k ...)` is IN, `LEFT JOIN t ... WHERE
t.k IS NULL` is NOT EXISTS, and `(SELECT COUNT(*) FROM t WHERE t.k = x.k) >= 3` is IN (SELECT k ... HAVING COUNT(*) >= 3).

They keep the same rows, so the texts are one question; a LEFT JOIN no longer counts the rows that it leaves out. A JOIN with the
row that a declared key names stays: a table by its columns has that source, and shares bounds and stored answers with its total.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dpsql.functions.canonical_conditions import filter_condition, in_canonical_form, tested_for_null
from dpsql.functions.evaluate import evaluate
from dpsql.functions.kept_rows import name_of
from dpsql.functions.signatures import call
from dpsql.plan.plan import (
    OTHER,
    Block,
    Call,
    Column,
    Expr,
    Filter,
    Join,
    Literal,
    Measure,
    Names,
    Project,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    UnitAggregate,
    base_scan,
    filled,
    literal,
    moved,
    named,
    names_read,
    parts_of,
    results_read,
    types_of,
)
from dpsql.plan.stability import conjuncts, relations, rows_per_unit, scans, told_apart, unfiltered
from dpsql.policy import Policy
from dpsql.storage.records import replace


def with_tested_rows(block: Block, policy: Policy) -> Block:
    """Return the block with semi-joins in place of joins of which nothing but the presence of a row is read."""
    counts_units = all(replace(_UNITS, name=measure.name) == measure for measure in block.measures)
    if not block.keys and (units := _set_of_units(block, counts_units, policy)) is not None:
        one_row = rows_per_unit(units, policy) == 1
        measures = (measure if one_row else replace(_UNITS, name=measure.name) for measure in block.measures)
        return replace(block, source=units, measures=tuple(measures))
    if Join not in map(type, relations(block.source)):
        return block
    source, names = _tested(block.source, _read((block.keys, block.measures)), policy)
    if source is block.source:
        return block
    return replace(block, source=source, keys=named(block.keys, names), measures=named(block.measures, names))


_UNITS = Measure("", "count_units", (), True, None)
_ROWS = Measure("", "count", (), False, None)


def _set_of_units(block: Block, counts_units: bool, policy: Policy) -> Relation | None:
    """Return the rows of a block that only counts units, as one form of all that have the same units: joins on the unit's key, IN
    and INTERSECT in any order, NOT IN and EXCEPT. None where it reads more, or other rows."""
    counts_rows = all(replace(_ROWS, name=measure.name) == measure for measure in block.measures)
    if not (counts_units or counts_rows) or any(map(policy.row_filter, (scan.table for scan in scans(block.source)))):
        return None
    met, missing = list[Relation](), list[Relation]()
    if not _put_units(block.source, met, missing, policy) or len(met) + len(missing) < 2:
        return None
    if counts_rows and rows_per_unit(block.source, policy) != 1:
        return None
    first, *further = sorted(dict.fromkeys(met), key=lambda rows: (rows_per_unit(rows, policy) > 1, _text(rows)))
    rows, conditions = _rows_and_conditions(first)
    (unit,) = _units_of(first, policy)
    absent = sorted(dict.fromkeys(missing), key=_text)
    for other, negated in [*((rows, False) for rows in further), *((rows, True) for rows in absent)]:
        (partner,) = _units_of(other, policy)
        rows = SemiJoin(rows, other, ((unit, partner),), True, negated, True)
    return filtered(rows, conditions)


def _text(rows: Relation) -> str:
    return name_of(in_canonical_form(rows))


def _put_units(relation: Relation, met: list[Relation], missing: list[Relation], policy: Policy) -> bool:
    """Add the tables in which a unit must have a row (`met`) or must have none (`missing`), each with its conditions, to be in a
    relation; return whether there is nothing else in it."""
    rows, conditions = _rows_and_conditions(relation)
    if isinstance(rows, Scan):
        met.append(filtered(rows, conditions))
        return bool(_units_of(rows, policy))
    if isinstance(rows, (Project, UnitAggregate)):
        plain = isinstance(rows, Project) or not rows.keys
        return plain and not conditions and _put_units(rows.source, met, missing, policy)
    on_unit = isinstance(rows, (Join, SemiJoin)) and rows.on_unit and len(rows.keys) == 1
    if not isinstance(rows, (Join, SemiJoin)) or not on_unit:
        return False
    ((key, other),) = rows.keys
    if isinstance(rows, Join):
        if rows.kind != "inner" or key not in _units_of(rows, policy) or other not in _units_of(rows, policy):
            return False
        same = (call("eq", key, other), call("eq", other, key))
        left = [part for part in conditions if part not in (*same, literal(True))]
        of_side = {prefix: [part for part in left if _of_side(part, prefix)] for prefix in ("a.", "b.")}
        sides = ((rows.left, "a."), (rows.right, "b."))
        return sum(map(len, of_side.values())) == len(left) and all(
            _put_units(filtered(side, [moved(p, part, down=True) for part in of_side[p]]), met, missing, policy)
            for side, p in sides
        )
    if key not in _units_of(rows.left, policy) or other not in _units_of(rows.right, policy) or rows.condition:
        return False
    if not rows.negated:
        put = _put_units(rows.right, met, missing, policy)
    else:
        absent, tests = _rows_and_conditions(rows.right)
        while isinstance(absent, Project) and not tests:
            absent, tests = _rows_and_conditions(absent.source)
        missing.append(filtered(absent, tests))
        put = isinstance(absent, Scan) and not (key.facts.nullable or other.facts.nullable)
    return put and _put_units(filtered(rows.left, conditions), met, missing, policy)


def _units_of(relation: Relation, policy: Policy) -> tuple[Expr, ...]:
    """Return the columns of rows that hold the key of the unit they belong to."""
    if isinstance(relation, Filter):
        return _units_of(relation.source, policy)
    if isinstance(relation, SemiJoin):
        return _units_of(relation.left, policy)
    if isinstance(relation, Join):
        sides = ((relation.left, "a."), (relation.right, "b."))
        return tuple(moved(prefix, unit) for side, prefix in sides for unit in _units_of(side, policy))
    if isinstance(relation, Project):
        units = _units_of(relation.source, policy)
        return tuple(Column(name, part.facts) for name, part in relation.columns if part in units)
    if isinstance(relation, UnitAggregate) and not relation.keys:
        return tuple(
            replace(unit, name="u") for unit in _units_of(relation.source, policy)[:1] if isinstance(unit, Column)
        )
    if not isinstance(relation, Scan) or not policy.is_protected(relation.table):
        return ()
    name = policy.unit_column(relation.table)
    return tuple(column for column in relation.columns if column.name == name)


def _read(part: Any) -> frozenset[str]:
    return frozenset(inner.name for inner in parts_of(part) if isinstance(inner, Column))


def _tested(relation: Relation, read: frozenset[str], policy: Policy, repeated: bool = False) -> tuple[Relation, Names]:
    """Return a relation, of which the columns `read` are read above, with semi-joins, and the new names of its columns.
    `repeated`: how often a row stands there has no effect."""
    rows, conditions = _rows_and_conditions(relation)
    if isinstance(rows, Join):
        without = _without_join(rows, conditions, read, policy, repeated)
        if without is None:
            return _in_sides(relation, rows, conditions, read, policy)
        semi_joined, names = without
        semi_joined, further = _tested(semi_joined, frozenset(names.get(name, name) for name in read), policy, repeated)
        return semi_joined, {old: further.get(new, new) for old, new in names.items()}
    if isinstance(relation, Filter):
        semi_joined, names = _tested(relation.source, read | _read(relation.predicate), policy, repeated)
        same = semi_joined is relation.source
        return (relation, {}) if same else (Filter(semi_joined, named(relation.predicate, names)), names)
    if isinstance(relation, SemiJoin):
        return _semi_join(relation, read, policy, repeated)
    if isinstance(relation, (Project, UnitAggregate)):
        of_side = {name: getattr(relation, name) for name in ("keys", "columns") if hasattr(relation, name)}
        several = repeated if isinstance(relation, Project) else not relation.columns
        semi_joined, names = _tested(relation.source, _read(tuple(of_side.values())), policy, several)
        if semi_joined is relation.source:
            return relation, {}
        return replace(relation, source=semi_joined, **{name: named(part, names) for name, part in of_side.items()}), {}
    return relation, {}


def _rows_and_conditions(relation: Relation) -> tuple[Relation, list[Expr]]:
    """Return the rows below all filters, and the conditions of all of these."""
    conditions = list[Expr]()
    while isinstance(relation, Filter):
        conditions += conjuncts(relation.predicate)
        relation = relation.source
    return relation, conditions


def _semi_join(relation: SemiJoin, read: frozenset[str], policy: Policy, repeated: bool) -> tuple[Relation, Names]:
    condition = _read(relation.condition)
    of_left = _read(tuple(key for key, _ in relation.keys)) | {name for name in condition if not name.startswith(OTHER)}
    of_right = {name.removeprefix(OTHER) for name in condition if name.startswith(OTHER)}
    left, names = _tested(relation.left, read | of_left, policy, repeated)
    right, partner = _tested(relation.right, _read(tuple(key for _, key in relation.keys)) | of_right, policy, True)
    return with_sides(relation, left, names, right, partner)


def with_sides(
    relation: SemiJoin, left: Relation, names: Names, right: Relation, partner: Names
) -> tuple[SemiJoin, Names]:
    """Return a semi-join of other sides, in which columns have new names; itself if the sides are its own."""
    if left is relation.left and right is relation.right:
        return relation, {}
    keys = tuple((named(key, names), named(other, partner)) for key, other in relation.keys)
    both = {**names, **{OTHER + old: OTHER + new for old, new in partner.items()}}
    return replace(relation, left=left, right=right, keys=keys, condition=named(relation.condition, both)), names


def _in_sides(
    relation: Relation, join: Join, conditions: Sequence[Expr], read: frozenset[str], policy: Policy
) -> tuple[Relation, Names]:
    """Return a join that stays with semi-joins in its sides, below its conditions."""
    read |= _read((join.keys, tuple(conditions)))
    names: dict[str, str] = {}
    sides = []
    for prefix, side in (("a.", join.left), ("b.", join.right)):
        semi_joined, of_side = _tested(side, frozenset(name[2:] for name in read if name.startswith(prefix)), policy)
        names |= {prefix + old: prefix + new for old, new in of_side.items()}
        sides.append(semi_joined)
    if sides[0] is join.left and sides[1] is join.right:
        return relation, {}
    joined = replace(join, left=sides[0], right=sides[1], keys=named(join.keys, names))
    return filtered(joined, [named(part, names) for part in conditions]), names


def _without_join(
    join: Join, conditions: Sequence[Expr], read: frozenset[str], policy: Policy, repeated: bool
) -> tuple[Relation, Names] | None:
    """Return a semi-join that keeps the rows of a join which pass the conditions, and the new names of its columns; None where
    more than the presence of a row is read."""
    if not join.keys:
        return None  # each row of one side meets all of the other, and there may be none
    if join.kind == "inner":
        sides = ["b.", "a."] if join.on_unit else ["b."]
        if isinstance(unfiltered(join.left), UnitAggregate):
            sides.reverse()
        semi_joined = (_present(join, side, conditions, read, policy, repeated) for side in sides)
        return next((part for part in semi_joined if part is not None and _has_no_more(part[0], join, policy)), None)
    if (absent := _absent(join, conditions, read, policy)) is not None:
        return absent
    if any(_of_side(part, "b.") and _fails_for_none(part) for part in conditions):
        return _present(join, "b.", conditions, read, policy, repeated)
    unread = not any(name.startswith("b.") for name in read | _read(tuple(conditions)))
    return _with_conditions_of_side(join.left, conditions, "a.", {}) if unread and _is_one_row(join, "b.") else None


def _has_no_more(rows: Relation, join: Join, policy: Policy) -> bool:
    """Return whether no more rows of one unit are proven to be possible than in a join, which counts from both of its sides."""
    return not join.on_unit or rows_per_unit(rows, policy) <= rows_per_unit(join, policy)


def _is_one_row(join: Join, side: str) -> bool:
    """Return whether a row of the other side meets at most one row of this side, because that is a unit's only row."""
    rows = unfiltered(join.left if side == "a." else join.right)
    pairs = [pair if side == "b." else pair[::-1] for pair in join.keys]
    names = tuple(b.name.removeprefix(side) for a, b in pairs if isinstance(b, Column) and told_apart(a, b))
    return isinstance(rows, UnitAggregate) and join.on_unit and not rows.keys and "u" in names


def _of_side(part: Expr, prefix: str) -> bool:
    names = names_read(part)
    return bool(names) and all(name.startswith(prefix) for name in names) and not results_read(part)


def _fails_for_none(condition: Expr) -> bool:
    """Return whether a condition is not true for a row without a partner."""
    return not evaluate(filled(condition, lambda c: literal(None) if isinstance(c, Column) else c), {})


def _absent(
    join: Join, conditions: Sequence[Expr], read: frozenset[str], policy: Policy
) -> tuple[Relation, Names] | None:
    """Return the rows without a partner, which LEFT JOIN ... WHERE b.key IS NULL keeps."""
    sure = {key.name for _, key in join.keys if isinstance(key, Column)}
    rows = unfiltered(join.right)
    sure |= (
        {f"b.{column.name}" for column in rows.columns if not column.facts.nullable}
        if isinstance(rows, Scan)
        else set()
    )
    left = [part for part in conditions if not (_is_null_test(part) and _read(part) <= sure)]
    if len(left) == len(conditions) or isinstance(rows, ReleasedRows) or _is_of_others(join, join.right, policy):
        return None
    if any(name.startswith("b.") for name in read | _read(tuple(left))):
        return None
    keys = tuple((moved("a.", key, down=True), moved("b.", other, down=True)) for key, other in join.keys)
    right: Relation = join.right
    if isinstance(right, UnitAggregate) and _is_one_row(join, "b.") and isinstance(keys[0][1], Column):
        right, unit = _units_with(right, (), keys[0][1], policy)
        keys = ((keys[0][0], unit),)
    listed = len(keys) == 1 and not any(side.facts.nullable for side in keys[0])
    return _with_conditions_of_side(SemiJoin(join.left, right, keys, join.on_unit, True, listed), left, "a.", {})


def _is_of_others(join: Join, rows: Relation, policy: Policy) -> bool:
    """Return whether rows are protected and not compared by unit (row privacy): a semi-join would read those of other units."""
    return not join.on_unit and any(policy.is_protected(scan.table) for scan in scans(rows))


def _is_null_test(part: Expr) -> bool:
    return isinstance(part, Call) and part.function == "is_null" and isinstance(part.arguments[0], Column)


def _says_not_null(part: Expr, columns: Collection[str]) -> bool:
    tested = tested_for_null(part)
    return isinstance(tested, Column) and tested.name in columns


def _present(
    join: Join, side: str, conditions: Sequence[Expr], read: frozenset[str], policy: Policy, repeated: bool
) -> tuple[Relation, Names] | None:
    """Return the rows of the other side that meet a row of this side which passes its conditions, if they meet no more than one
    and nothing else of it is read."""
    if not repeated and not _is_one_row(join, side):
        return None
    rows, partner, other = (join.left, join.right, "b.") if side == "a." else (join.right, join.left, "a.")
    pairs = [(a, b) if side == "b." else (b, a) for a, b in join.keys]
    same = [call("eq", *sides) for pair in pairs for sides in (pair, pair[::-1])]
    of_side = [part for part in conditions if _of_side(part, side)]
    left = [part for part in conditions if part not in of_side and part not in same]
    units, of_units = _rows_and_conditions(rows)
    if isinstance(units, ReleasedRows) or _is_of_others(join, rows, policy):
        return None
    unit = {side + "u"} if isinstance(units, UnitAggregate) and not units.keys else set()
    if any(name.startswith(side) for name in (read | _read(tuple(left))) - unit):
        return None
    outer = [moved(other, around, down=True) for around, _ in pairs]
    keys = [moved(side, key, down=True) for _, key in pairs]
    compared = {key.name for _, key in pairs if isinstance(key, Column)}
    tested = [moved(side, part, down=True) for part in of_side if not _says_not_null(part, compared)]
    names: dict[str, str] = {}
    if isinstance(units, UnitAggregate) and unit and len(keys) == 1:
        if not isinstance(outer[0], Column) or not isinstance(keys[0], Column) or keys[0].name != "u":
            return None
        names = {side + "u": outer[0].name}
        rows, keys[0] = _units_with(units, [*tested, *of_units], keys[0], policy)
    else:
        rows = filtered(rows, tested)
    semi_join = SemiJoin(partner, rows, tuple(zip(outer, keys, strict=True)), join.on_unit, False, len(keys) == 1)
    return _with_conditions_of_side(semi_join, left, other, names)


def filtered(rows: Relation, conditions: Sequence[Expr]) -> Relation:
    if not conditions:
        return rows
    return Filter(rows, conditions[0] if len(conditions) == 1 else call("and", *conditions))


def _with_conditions_of_side(
    rows: Relation, conditions: Sequence[Expr], prefix: str, more: Names
) -> tuple[Relation, Names]:
    """Return the rows that one side keeps with the conditions on that side, and the new names of the columns of that side."""
    names = {f"{prefix}{name}": name for name in types_of(rows)} | {**more}
    return filtered(rows, [named(part, names) for part in conditions]), names


def _units_with(
    units: UnitAggregate, conditions: Sequence[Expr], unit: Column, policy: Policy
) -> tuple[Relation, Column]:
    """Return the rows that say which units pass conditions on their results, and the column that names the unit: the rows that
    the results are of, where each unit with a row passes."""
    counts = {
        name: argument is None and tested is None
        for name, word, argument, tested, _ in units.columns
        if word == "count"
    }
    facts = {name: result for name, *_, result in units.columns}

    def plainly(part: Any) -> Any:
        counted = part.arguments[0] if isinstance(part, Call) and part.function == "coalesce" else part
        if not isinstance(counted, Column) or counted.name not in (facts if counted is part else counts):
            return part
        return Column(counted.name, facts[counted.name])

    left = [
        part for part in (filled(condition, plainly) for condition in conditions) if not _counts_a_row(part, counts)
    ]
    if left:
        return filtered(units, left), unit
    scan = unfiltered(units.source)
    if not isinstance(scan, Scan):
        return units, unit
    whole = base_scan(policy.tables[scan.table])  # that of the results may lack the column
    rows: Relation = filled(units.source, lambda part: whole if part is scan else part)
    named_by = policy.unit_column(scan.table)
    column = next((column for column in whole.columns if column.name == named_by), None)
    return (units, unit) if column is None else (rows, column)


def _counts_a_row(part: Expr, counts: Mapping[str, bool]) -> bool:
    """Return whether a condition says that a count of all rows is above 0, as it is for each unit with a row."""
    form = filter_condition(part)
    if not isinstance(form, Call) or form.function != "ge" or not isinstance(form.arguments[0], Column):
        return False
    least = form.arguments[1]
    return isinstance(least, Literal) and least.value == 1 and counts.get(form.arguments[0].name, False)
