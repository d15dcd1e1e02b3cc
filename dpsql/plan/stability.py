"""Stability: how many rows of a relation one privacy unit can change, node by node (privacy.md 3). Columns that nothing reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from dpsql.errors.exceptions import refuse
from dpsql.plan.canonical_text import compared_fields
from dpsql.plan.intervals import Type
from dpsql.plan.plan import (
    OTHER,
    Block,
    BoundedBlock,
    Call,
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
    ReleasedValue,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    columns_read,
    names_read,
)
from dpsql.policy import Policy
from dpsql.policy.versions import mark
from dpsql.storage.records import dataclass, replace

MOST_ROWS_PER_UNIT = 10**9


class Limit(NamedTuple):
    """At most `most` rows agree on some columns, if the policy's `promises` hold."""

    most: int
    promises: frozenset[Promise]


def rows_per_unit(relation: Relation, policy: Policy) -> int:
    """Return the most rows that appear or vanish when one unit is added or removed. Raises a refusal above MOST_ROWS_PER_UNIT.

    Each case is one row of the table in privacy.md 3; the bounded view (Scan) is the only source of a number.
    """
    rows = _rows(relation, policy)
    if rows > MOST_ROWS_PER_UNIT:
        raise refuse("too_many_rows_per_unit", rows=rows, most=MOST_ROWS_PER_UNIT)
    return rows


def _rows(relation: Relation, policy: Policy) -> int:
    if isinstance(relation, Scan):
        if not policy.is_protected(relation.table):
            return 0
        if policy.privacy_unit is None:
            return 1
        most = policy.tables[relation.table].bounds.max_rows
        if most is None:
            raise refuse("no_max_rows", table=relation.table)
        return most
    if isinstance(relation, ReleasedRows):
        return 0  # paid for at their release; after that nothing in them depends on a unit
    if isinstance(relation, Filter):
        rows = _rows(relation.source, policy)
        # row_number() counts the unit's rows, so at most k of them have a number up to k.
        return min([rows, *(most for part in conjuncts(relation.predicate) if (most := _first(relation.source, part)))])
    if isinstance(relation, (Project, Distinct)):
        # Distinct: a row appears (or vanishes) only with an equal row of `source`, at most one for each.
        return _rows(relation.source, policy)
    if isinstance(relation, UnitWindow):
        # One more column for each row, computed from rows of the same unit: the emitted window is over the unit.
        if not owned(relation.source, policy):
            raise refuse("internal", what="a window of one unit's rows over rows that belong to no unit")
        return _rows(relation.source, policy)
    if isinstance(relation, SemiJoin):
        # Whether a row of `left` stays depends on public rows, or on rows of its own unit (the emitted join compares
        # the units): adding a unit never changes another unit's rows.
        _check_on_unit(relation, policy)
        rows, limit = _rows(relation.left, policy), _limit_of_kept(relation, policy)
        return rows if limit is None else min(rows, _rows(relation.right, policy) * limit.most)
    if isinstance(relation, Union_):
        return sum(_rows(source, policy) for source in relation.sources)
    if isinstance(relation, Join):
        return _joined_rows(relation, policy)
    # UnitAggregate: each of the unit's rows is in one group, so the unit has at most as many groups as rows. (The size of a
    # declared domain is no bound here: values outside it may form groups of their own.)
    return 1 if not relation.keys else _rows(relation.source, policy)


def rows_in_group(relation: Relation, keys: tuple[Expr, ...], policy: Policy, rows: int | None = None) -> int:
    """Return the most rows that one unit can have with equal `keys`, expressions over the relation. `rows`: all of the unit's, if
    they are counted already.

    A `UnitAggregate` has one row for each unit and combination of its keys, and filters and projections add none. If all of its
    keys occur unchanged among `keys`, rows of one unit with equal `keys` agree on them and so are a single row.
    """
    rows = rows_per_unit(relation, policy) if rows is None else rows
    base = base_rows(relation)
    if not isinstance(base, UnitAggregate) or not owned(relation, policy):
        return rows
    columns = {base_column(relation, key) for key in keys}
    return min(rows, 1) if columns.issuperset(name for name, _ in base.keys) else rows


def owned(relation: Relation, policy: Policy) -> bool:
    """Return whether each row belongs to one privacy unit, whose key it carries: entity privacy, and not above DISTINCT."""
    if policy.privacy_unit is None or isinstance(relation, (Distinct, ReleasedRows)):
        return False
    if isinstance(relation, Scan):
        return policy.is_protected(relation.table)
    if isinstance(relation, (Join, SemiJoin)):
        return owned(relation.left, policy)
    return all(owned(part, policy) for part in parts(relation))


def flat(word: str, parts: Iterable[Expr]) -> Iterator[Expr]:
    """Yield the parts of conditions that are connected by a word, "and" or "or"."""
    for part in parts:
        yield from flat(word, part.arguments) if isinstance(part, Call) and part.function == word else (part,)


def conjuncts(predicate: Expr) -> tuple[Expr, ...]:
    joined = isinstance(predicate, Call) and predicate.function == "and"
    return tuple(flat("and", (predicate,))) if joined else (predicate,)


def _first(source: Relation, condition: Expr) -> int:
    """Return the most rows of one unit that satisfy `row_number() <= k`, `< k` or `= k`; 0 for other predicates."""
    if not isinstance(condition, Call) or condition.function not in ("le", "lt", "eq") or len(condition.arguments) != 2:
        return 0
    number, bound = condition.arguments
    if not isinstance(bound, Literal) or type(bound.value) is not int or not _is_row_number(source, number):
        return 0
    return max(1, {"le": bound.value, "lt": bound.value - 1, "eq": 1}[condition.function])


def _is_row_number(relation: Relation, expression: Expr) -> bool:
    """Return whether a column of `relation` numbers the rows of each unit from 1 on; filters may have removed some rows since."""
    while isinstance(expression, Column):
        if isinstance(relation, Project):
            expression = dict(relation.columns)[expression.name]
        elif isinstance(relation, UnitWindow):
            window = next((window for window in relation.windows if window.name == expression.name), None)
            if window is not None:
                return window.word == "row_number" and not window.keys
        elif not isinstance(relation, Filter):
            return False
        relation = relation.source
    return False


def _check_on_unit(relation: Join | SemiJoin, policy: Policy) -> None:
    """Check again what the binder ensures: two protected sides are joined on the key of a privacy unit, or not at all."""
    owners = owned(relation.left, policy) and owned(relation.right, policy)
    if (relation.on_unit or _rows(relation.right, policy) > 0) and not (relation.on_unit and owners):
        raise refuse("internal", what="protected sides that do not meet on the privacy unit")


def _joined_rows(relation: Join, policy: Policy) -> int:
    """Return the most rows of one unit in a join. A row of `left` matches at most `met` rows of `right`; with on_unit, only rows
    of the same unit match.

    Counted from the other side, each row of the unit in `right` matches at most `back` rows in `left`. An outer join also keeps
    the rows of `left` without a match. With j rows of `left` that have a match, there are at most right * min(back, j) pairs, and
    left - j rows have none: the sum is largest at j = min(back, left). Both counts are bounds, so the smaller one is.
    """
    _check_on_unit(relation, policy)
    left = _rows(relation.left, policy)
    met, back = matches(relation, policy)
    if not relation.on_unit:
        if met is None:
            raise refuse("internal", what="public rows of which a row meets any number")
        return left * met
    right = _rows(relation.right, policy)
    forward = left * _most_with_equal_keys(relation, 1, met, policy, right)
    back = _most_with_equal_keys(relation, 0, back, policy, left)
    return min(forward, right * back + (left - back if relation.kind == "left" else 0))


def _most_with_equal_keys(relation: Join, side: int, promised: int | None, policy: Policy, rows: int) -> int:
    """Return the most rows of one unit on one side (0: left, 1: right) of a join of units that have equal keys. `promised`: by
    the policy. `rows`: the unit's rows on that side; counting them anew would double the work with each join."""
    source = (relation.left, relation.right)[side]
    most = rows_in_group(source, tuple(_keys_of_side(relation, side)), policy, rows)
    return most if promised is None else min(most, promised)


def matches(relation: Join, policy: Policy) -> tuple[int | None, int | None]:
    """Return the most rows of `right` that match one row of `left`, and, with on_unit, the most rows of `left` that match one
    row of `right`; None where neither keys and policy nor the text of a result limit them."""
    rows = unfiltered(relation.right)
    if isinstance(rows, ReleasedRows) and not relation.on_unit:
        return most_met(rows, relation.keys, "b."), None
    forward, back = (_limit_of_side(relation, side, policy) for side in (1, 0))
    return (
        None if forward is None else forward.most,
        None if back is None or not relation.on_unit else back.most,
    )


def _limit_of_side(relation: Join, side: int, policy: Policy) -> Limit | None:
    """Return the limit on the rows of one side (0: left, 1: right) that agree on the keys of a join: by keys of its tables, or,
    without keys, by the number of rows of a public table. None if there is none."""
    source, keys = (relation.left, relation.right)[side], _keys_of_side(relation, side)
    if keys:
        return _limit(source, frozenset(key.name for key in keys), policy, {})
    rows = base_rows(source)
    if not isinstance(rows, Scan) or relation.keys:
        return None
    table = policy.tables[rows.table]
    if not table.public or table.rows is None:
        return None
    most = max(1, len(table.rows[1]))
    return Limit(most, frozenset({Promise(rows.table, (), most)}))


def _limit_of_kept(relation: SemiJoin, policy: Policy) -> Limit | None:
    """Return the limit on the rows of one unit on the left that agree on the keys of a semi-join, each of which meets one of the
    unit's rows on the right; None where it bounds nothing, or not known."""
    if relation.negated or not relation.on_unit or len(relation.keys) < 2:
        return None
    pairs = [(a, b) for a, b in relation.keys if isinstance(a, Column) and told_apart(b, a)]
    return _limit(relation.left, frozenset(key.name for key, _ in pairs), policy, {})


Limits = dict[tuple[int, frozenset[str]], Limit | None]
"""Limits of the joins of one relation, by identity and columns: a join asks each side twice, and chains of joins ask again."""


def _limit(relation: Relation, columns: frozenset[str], policy: Policy, limits: Limits) -> Limit | None:
    """Return the limit on rows (of one unit, where rows have units) that agree on `columns`, none of which is NULL in them.

    Rows of a table agree as its keys promise. In a join, each row of one side occurs once for each row of the other side that it
    meets, and all of these agree on the join's keys: so at most l * m rows agree if l rows of one side do and each meets m.
    Columns that are compared with those that agree, agree too. An outer join also keeps each row of its left side that meets
    none, with NULL on the right: there nothing follows from the right side.
    """
    if isinstance(relation, (Filter, SemiJoin)):  # some of the rows, unchanged
        return _limit(parts(relation)[0], columns, policy, limits)
    if isinstance(relation, Project):
        defined = dict(relation.columns)
        same = (defined[name] for name in columns)
        names = frozenset(column.name for column in same if isinstance(column, Column))
        return _limit(relation.source, names, policy, limits)
    if isinstance(relation, Scan):
        compared = tuple(sorted(columns))
        most = policy.tables[relation.table].multiplicity(compared)
        return None if most is None else Limit(most, frozenset({Promise(relation.table, compared, most)}))
    if not isinstance(relation, Join):
        return None
    if (id(relation), columns) not in limits:
        limits[id(relation), columns] = _joined_limit(relation, columns, policy, limits)
    return limits[id(relation), columns]


def _joined_limit(relation: Join, columns: frozenset[str], policy: Policy, below: Limits) -> Limit | None:
    agreed, pairs = set(columns), [(a, b) for a, b in relation.keys if isinstance(a, Column) and isinstance(b, Column)]
    for a, b in pairs:
        if a.name in agreed and told_apart(a, b):
            agreed.add(b.name)
        elif relation.kind == "inner" and b.name in agreed and told_apart(b, a):
            agreed.add(a.name)
    sides = [frozenset(name[2:] for name in agreed if name[0] == letter) for letter in "ab"]
    met = [frozenset(key.name for key in _keys_of_side(relation, side)) for side in (0, 1)]
    limits: list[Limit] = []
    for first, source, other in ((0, relation.left, relation.right), (1, relation.right, relation.left)):
        if (first == 1 and relation.kind != "inner") or not sides[first] or not met[1 - first]:
            continue
        agreements = [(source, sides[first]), (other, met[1 - first] | sides[1 - first])]
        agreements.sort(
            key=lambda side: isinstance(base_rows(side[0]), Join)
        )  # a table first: without its limit there is none
        most, relied_on = 1, frozenset[Promise]()
        for side, agreeing in agreements:
            limit = _limit(side, agreeing, policy, below)
            if limit is None:
                break
            most, relied_on = most * limit.most, relied_on | limit.promises
        else:
            limits.append(Limit(most, relied_on))
    return min(limits, key=lambda limit: limit.most, default=None)


def _keys_of_side(relation: Join, side: int) -> list[Column]:
    """Return the key columns of one side (0: left, 1: right) of a join that tell its rows apart, by their names on that side."""
    keys = [pair[side] for pair in relation.keys if told_apart(pair[1 - side], pair[side])]
    return [replace(key, name=key.name[2:]) for key in keys if isinstance(key, Column)]


def most_met(rows: ReleasedRows, keys: tuple[tuple[Expr, Expr], ...], prefix: str = "") -> int | None:
    """Return the most rows with equal keys (second of each pair, named with `prefix`); None where no limit is known.

    Rows with equal keys agree on each set of columns among the keys, so every limit for such a set holds.
    """
    names = {b.name.removeprefix(prefix) for a, b in keys if isinstance(b, Column) and told_apart(a, b)}
    limits = [1 for unique in rows.unique if names.issuperset(unique)]
    limits += [max(1, most) for columns, most in rows.repeats if names.issuperset(columns)]
    return min(limits, default=None)


def told_apart(a: Expr, b: Expr) -> bool:
    """Return whether a value of `a` equals at most one value of `b`. Engines compare an integer with a real as reals, where 2**53
    and 2**53 + 1 are the same number; all other comparisons distinguish the values of `b`."""
    return not (a.facts.type is Type.REAL and b.facts.type is Type.INTEGER)


def promises(relation: Relation, policy: Policy) -> frozenset[Promise]:
    """Return the policy's promises on which `rows_per_unit` of a relation, or its path, relies. The engine checks them."""
    relied_on: set[Promise] = set()
    if isinstance(relation, Scan):
        for _, _, parent, column in policy.unit_joins(relation.table):
            relied_on.add(Promise(parent, (column,), 1))
        return frozenset(relied_on)
    limits = [_limit_of_side(relation, side, policy) for side in (0, 1)] if isinstance(relation, Join) else []
    if isinstance(relation, SemiJoin):
        limits = [_limit_of_kept(relation, policy)]
    for limit in limits:
        relied_on |= frozenset() if limit is None else limit.promises
    return frozenset(relied_on).union(*(promises(part, policy) for part in parts(relation)))


def unfiltered(relation: Relation) -> Relation:
    """Return the relation below all filters: removing rows breaks no promise about keys."""
    while isinstance(relation, Filter):
        relation = relation.source
    return relation


def base_rows(relation: Relation) -> Relation:
    """Return the relation below filters and projections: each of its rows yields at most one row above."""
    while isinstance(relation, (Filter, Project)):
        relation = relation.source
    return relation


def base_column(relation: Relation, expression: Expr) -> str | None:
    """Return the column of `base_rows` that an expression over `relation` is, unchanged; None for computed ones."""
    while isinstance(relation, (Filter, Project)) and isinstance(expression, Column):
        if isinstance(relation, Project):
            expression = dict(relation.columns)[expression.name]
        relation = relation.source
    return expression.name if isinstance(expression, Column) else None


def parts(relation: Relation) -> tuple[Relation, ...]:
    """Return the relations directly below."""
    if isinstance(relation, (Scan, ReleasedRows)):
        return ()
    if isinstance(relation, (Join, SemiJoin)):
        return (relation.left, relation.right)
    return relation.sources if isinstance(relation, Union_) else (relation.source,)


def relations(relation: Relation) -> list[Relation]:
    """Return a relation and all below it, each before those below, from left to right."""
    listed = [relation]
    for part in parts(relation):
        listed += relations(part)
    return listed


def tables(relation: Relation) -> frozenset[str]:
    return frozenset(map(attrgetter("table"), scans(relation)))


# --- relations without the columns that nothing above them reads ------------------------------------------------------
# For an engine (`narrowed`) the rows and their multiplicity do not change: a column is left out of a SELECT over the
# same rows. All columns stay wherever rows are distinguished by all of them: below DISTINCT and UNION, and below window
# functions, whose ties the content breaks. The bounded view is always computed from all columns of the policy
# (`engine.emit.bounded_view`).
#
# For the name of a release (`identity`, `family`) what breaks ties is left out as well. Which rows of a unit stay under
# max_rows, and which of equal rows comes first in a window, is a choice by a secret hash of all columns. With a new
# column a new measurement would choose other rows, but the stored one answers the same question: any choice is one.

Needed = frozenset[str] | None
"""Names of the columns that the relations above read; None: all columns."""


def narrowed(block: BoundedBlock) -> BoundedBlock:
    """Return the block over relations that have only the columns that it reads."""
    of_terms = (part for term in block.terms for part in (term.value, term.filter))
    read = [*(key.expression for key in block.keys), *of_terms]
    return replace(block, source=Narrowing(ties=True).narrow(block.source, _names(read)))


def without_unread_results(block: Block) -> Block:
    """Return the block without results of one unit's rows that nothing reads."""
    if not any(isinstance(part, UnitAggregate) and part.columns for part in relations(block.source)):
        return block
    read = frozenset(column.name for column in _columns((block.keys, block.measures)))
    return replace(block, source=Narrowing(ties=True).narrow(block.source, read))


def identity(block: BoundedBlock) -> Relation:
    """Return the source of a block with only the columns on which its numbers depend, for the name of its release."""
    read = ([key.expression for key in block.keys], block.terms, block.measurements)
    return Narrowing(least=0).narrow(block.source, frozenset(column.name for column in _columns(read)))


def family(relation: Relation) -> Relation:
    """Return a relation with only the columns that itself reads, for a name that blocks over it share, whatever they read."""
    return Narrowing(least=0, projected=True).narrow(relation, frozenset())


def scans(relation: Relation) -> list[Scan]:
    """Return the base tables of a relation, repeated ones as well."""
    return [part for part in relations(relation) if isinstance(part, Scan)]


def marks_read(source: Relation, policy: Policy) -> dict[str, str]:
    """Return the marks of the tables and columns that a relation reads (`policy.versions`), by name."""
    names = {name for scan in scans(source) for name in (scan.table, *(f"{scan.table}.{c.name}" for c in scan.columns))}
    return {name: str(mark(policy, name)) for name in sorted(names)}


@dataclass(frozen=True)
class Narrowing:
    """One way to leave out columns. `least`: a relation keeps at least so many, because SQL has no rows without columns; `ties`:
    the content of rows breaks ties in windows; `projected`: all items of a projection stay, because only they say what its names
    mean."""

    least: int = 1
    ties: bool = False
    projected: bool = False

    def narrow(self, node: Relation, needed: Needed) -> Relation:
        if isinstance(node, Scan):
            columns = node.columns if needed is None else tuple(entry for entry in node.columns if entry.name in needed)
            return Scan(node.table, columns or node.columns[: self.least])
        if isinstance(node, Filter):
            return Filter(self.narrow(node.source, _with(needed, [node.predicate])), node.predicate)
        if isinstance(node, Project):
            everything = needed is None or self.projected
            items = node.columns if everything else tuple(item for item in node.columns if item[0] in (needed or ()))
            items = items or node.columns[: self.least]
            return Project(self.narrow(node.source, _names(expression for _, expression in items)), items)
        if isinstance(node, Join):
            below = _with(needed, [part for pair in node.keys for part in pair])
            left, right = (
                self.narrow(side, _of_side(below, prefix)) for prefix, side in (("a.", node.left), ("b.", node.right))
            )
            return replace(node, left=left, right=right)
        if isinstance(node, SemiJoin):
            return self._semi_join(node, needed)
        if isinstance(node, UnitAggregate):
            whole = needed is None or self.projected
            results = node.columns if whole else tuple(part for part in node.columns if part[0] in (needed or ()))
            read: list[Expr | None] = [key for _, key in node.keys]
            for result in results:
                read += [result[2], result[3]]
            return replace(node, source=self.narrow(node.source, _names(read)), columns=results)
        if isinstance(node, Union_):
            return Union_(tuple(self.narrow(source, None) for source in node.sources))
        if isinstance(node, UnitWindow) and not self.ties and needed is not None:
            windows = frozenset(column.name for column in _columns(node.windows))
            return replace(node, source=self.narrow(node.source, needed | windows))
        return node if isinstance(node, ReleasedRows) else replace(node, source=self.narrow(node.source, None))

    def _semi_join(self, node: SemiJoin, needed: Needed) -> Relation:
        """Return the semi-join over pruned sides. Its condition names columns of both, those of the right with OTHER before."""
        both = _names([node.condition])
        of_right = frozenset(name.removeprefix(OTHER) for name in both if name.startswith(OTHER))
        left = _with(needed, [key for key, _ in node.keys])
        left = None if left is None else left | both
        right = _names(key for _, key in node.keys) | of_right
        return replace(node, left=self.narrow(node.left, left), right=self.narrow(node.right, right))


def _columns(whole: Any) -> Iterator[Column]:
    """Yield all columns in a part of a plan, whatever its class is."""
    waiting = [whole]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (Column, Call, Literal, ReleasedValue)):
            yield from columns_read(part)
        elif isinstance(part, (tuple, list, frozenset)):
            waiting += part
        else:
            waiting += map(part.__getattribute__, compared_fields(part.__class__) or ())


def _of_side(needed: Needed, prefix: str) -> Needed:
    return None if needed is None else frozenset(name[2:] for name in needed if name.startswith(prefix))


def _with(needed: Needed, expressions: Iterable[Expr | None]) -> Needed:
    return None if needed is None else needed | _names(expressions)


def _names(expressions: Iterable[Expr | None]) -> frozenset[str]:
    return frozenset(name for expression in expressions if expression is not None for name in names_read(expression))
