"""Public keys that a row can have: decided from the text, the policy and public rows, by asking for values of expressions.

Every key and condition is followed to the base columns of each branch (`plan.origins`). Each base column gets a table of
candidate values: a column that a key reads its domain, other columns of conditions one value of each cell of their line or
none, because conditions read columns as stored, inside or outside the policy's lists and bounds. Conditions on what is unknown
are weakened (`weakening`), and the keys' values in rows that satisfy the conditions are asked for (`key_questions`), in parts
that share no column. Every step may only add groups: a row whose keys read values within their domains finds its candidates,
for which each known expression has the row's own value and each condition is true.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from dpsql.functions.evaluate import evaluate
from dpsql.functions.key_candidates import Uses, cells, domain
from dpsql.functions.key_questions import (
    EVALUATED,
    MOST_ASKED,
    MOST_VARIABLES,
    TRUE,
    UNKNOWN,
    VARIABLE,
    Candidates,
    PublicValues,
    Rows,
    Unanswered,
    ValueQuestion,
    Weakening,
    folded,
    reads_result,
    rewritten,
)
from dpsql.functions.public_domains import MOST_VALUES, Values, domain_of, labelled_column
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.origins import Branch, UnknownOrigin, UnmatchedRows, branches
from dpsql.plan.plan import Call, Column, Expr, Literal, Numbers, Relation, columns_read, literal, names_read
from dpsql.plan.stability import conjuncts
from dpsql.storage.records import dataclass, field, replace

MOST_LISTED = 250_000
"""Largest number of combinations that are listed. If more remain, every combination of the remaining values is a group."""
MOST_MET = 200
"""Largest number of rows of a public table with which rows without a partner are compared."""
PublicRows = Mapping[str, tuple[tuple[str, ...], Sequence[tuple[Any, ...]]]]
"""All rows of the small public tables, by table: the names of the columns, and the values of each row."""
NO_ROWS: PublicRows = {}
_KEY = " as key"
_TRUTH = Facts(Type.BOOLEAN)


@dataclass(frozen=True)
class RemainingKeys:
    """The remaining values of each key, in order (None: not public). `numbers`: the remaining cells of the grid of these values
    (None: all)."""

    values: tuple[Values | None, ...]
    numbers: Numbers | None = None


@dataclass(frozen=True)
class KeyPart:
    """Keys (by position) that are tied together, and the combinations of their values."""

    keys: tuple[int, ...]
    rows: Rows


def remaining(
    source: Relation,
    keys: Sequence[tuple[Expr, Values | None]],
    more: Sequence[Expr] = (),
    public: PublicRows = NO_ROWS,
    public_values: PublicValues = EVALUATED,
) -> RemainingKeys:
    """Return the combinations of keys that a row of `source` may have if it also satisfies the conditions `more` on keys. `keys`:
    each with its expression over `source`, and the values that it has if nothing better is known (None: it is not public)."""
    try:
        parts_by_branch = [
            (branch, _Search.from_branch(branch, keys, more, public, public_values).parts())
            for branch in branches(source)
        ]
        possible = [
            (_with_images(branch, keys, parts), parts) for branch, parts in parts_by_branch if parts is not None
        ]
    except UnknownOrigin:
        return RemainingKeys(tuple(values for _, values in keys))
    hidden = {
        index
        for index in range(len(keys))
        if any(listed[index][1] is None and index not in _listed(parts) for listed, parts in possible)
    }
    by_branch = [_completed(parts, listed, hidden) for listed, parts in possible]
    return _union(keys, hidden, [parts for parts in by_branch if all(part.rows for part in parts)])


def _with_images(
    branch: Branch, keys: Sequence[tuple[Expr, Values | None]], parts: Iterable[KeyPart]
) -> list[tuple[Expr, Values | None]]:
    """Return the keys with the values that each has where no part lists it: those of its expression over base columns."""
    listed = _listed(parts)
    return [
        (key, values)
        if index in listed or not isinstance(key, Column)
        else (key, domain_of(branch.written(key)) or values)
        for index, (key, values) in enumerate(keys)
    ]


def _listed(parts: Iterable[KeyPart]) -> set[int]:
    return {key for part in parts for key in part.keys}


def _completed(parts: list[KeyPart], keys: Sequence[tuple[Expr, Values | None]], hidden: set[int]) -> list[KeyPart]:
    """Return the parts without the keys that are not public, and with those whose values no question gives."""
    public_parts = []
    for part in parts:
        indexes = [index for index, key in enumerate(part.keys) if key not in hidden]
        rows = part.rows
        if len(indexes) < len(part.keys):
            rows = tuple(dict.fromkeys(tuple(row[index] for index in indexes) for row in rows))
        public_parts.append(KeyPart(tuple(part.keys[index] for index in indexes), rows))
    missing = [index for index in range(len(keys)) if index not in hidden | _listed(parts)]
    public_parts += [KeyPart((index,), tuple((value,) for value in keys[index][1] or ())) for index in missing]
    return [_within_domains(part, keys) for part in public_parts]


def _within_domains(part: KeyPart, keys: Sequence[tuple[Expr, Values | None]]) -> KeyPart:
    """Return the part without NaN, which is no key, and without values beyond the domain of a key that is a column: a public
    table to which the column is equal may have some."""
    rows = part.rows
    for index, key in enumerate(part.keys):
        expression, values = keys[key]
        if isinstance(expression, Column) and values is not None:
            allowed = frozenset(values)
            rows = tuple(row for row in rows if row[index] in allowed)
        elif expression.facts.type is Type.REAL:
            rows = tuple(row for row in rows if row[index] is None or not math.isnan(row[index]))
    return part if rows is part.rows else KeyPart(part.keys, rows)


def _union(
    keys: Sequence[tuple[Expr, Values | None]], hidden: set[int], by_branch: list[list[KeyPart]]
) -> RemainingKeys:
    """Return the union of the branches, each of which has every combination of its parts' combinations."""
    values_by_key: list[set[Any]] = [set() for _ in keys]
    for part in (part for parts in by_branch for part in parts):
        for position, index in enumerate(part.keys):
            values_by_key[index].update(row[position] for row in part.rows)
    values = tuple(
        None if index in hidden else _ordered(listed, values_by_key[index]) for index, (_, listed) in enumerate(keys)
    )
    public_positions = [index for index in range(len(keys)) if index not in hidden]
    positions = {index: {value: index for index, value in enumerate(values[index] or ())} for index in public_positions}
    size = prod(len(positions[index]) for index in public_positions)
    counts = [prod(len(part.rows) for part in parts) for parts in by_branch]
    if any(count == size for count in counts) or sum(counts) > MOST_LISTED or size >= 1 << 62 or not by_branch:
        return RemainingKeys(values)
    strides = {
        index: prod(len(positions[later]) for later in public_positions if later > index) for index in public_positions
    }
    every = np.unique(np.concatenate([_numbers(parts, positions, strides) for parts in by_branch]))
    return RemainingKeys(values) if len(every) == size else RemainingKeys(values, every)


def _ordered(listed: Values | None, remaining_values: set[Any]) -> Values:
    """Return values in the order of `listed`, if it has all of them, else sorted with NULL last."""
    if listed is not None and remaining_values <= set(listed):
        return (
            listed
            if len(remaining_values) == len(listed)
            else tuple(value for value in listed if value in remaining_values)
        )
    return (
        *sorted(value for value in remaining_values if value is not None),
        *((None,) if None in remaining_values else ()),
    )


def _numbers(parts: list[KeyPart], positions: Mapping[int, Mapping[Any, int]], strides: Mapping[int, int]) -> Numbers:
    """Return the numbers of one branch's combinations in the grid of remaining values."""
    numbers = np.zeros(1, dtype=np.int64)
    for part in parts:
        indexes = [(positions[key], strides[key]) for key in part.keys]
        part_numbers = np.array(
            [
                sum(position_of[value] * stride for (position_of, stride), value in zip(indexes, row, strict=True))
                for row in part.rows
            ],
            dtype=np.int64,
        )
        numbers = (numbers[:, None] + part_numbers).ravel()
    return numbers


def leaves_out(
    source: Relation, key: Expr, public: PublicRows = NO_ROWS, public_values: PublicValues = EVALUATED
) -> bool:
    """Return whether a row of `source` that satisfies its conditions may have a value in a column of `key` that the policy does
    not name, so that it belongs to no group (`key_columns`); True if that is unknown."""
    try:
        searches = [
            _Search.from_branch(branch, [(key, None)], (), public, public_values) for branch in branches(source)
        ]
    except UnknownOrigin:
        return True
    return any(search.leaves_out() for search in searches)


def may_hold(condition: Expr, public_values: PublicValues = EVALUATED) -> bool:
    """Return whether a condition can be true, if nothing is known of its columns."""
    search = _Search(
        [], [folded(part) for part in conjuncts(condition)], [], [], frozenset(), public_values, blind=True
    )
    return search.parts() is not None


def image(expression: Expr, public_values: PublicValues = EVALUATED) -> frozenset[Any] | None:
    """Return the values that an expression can have if nothing is known of its columns; None if they cannot be listed."""
    parts = _Search([folded(expression)], [], [], [], frozenset(), public_values, blind=True).parts() or []
    return frozenset(row[0] for row in parts[0].rows) if parts else None


@dataclass
class _Search:
    """Keys and conditions over the base columns of one branch. `where`: conditions that read columns as stored; `having`:
    conditions on keys; `blind`: nothing is known of any column; `values`: those of keys that are columns; `laws`: the number of
    conditions at the end of `where` that are left out if they would tie many combinations together."""

    keys: list[Expr]
    where: list[Expr]
    having: list[Expr]
    listed: list[Candidates]
    within: frozenset[str]
    public_values: PublicValues
    blind: bool = False
    values: Mapping[str, Values] = field(default_factory=dict)
    laws: int = 0
    tables: dict[str, Candidates] = field(default_factory=dict)

    @classmethod
    def from_branch(
        cls,
        branch: Branch,
        keys: Sequence[tuple[Expr, Values | None]],
        more: Iterable[Expr],
        public: PublicRows,
        public_values: PublicValues,
    ) -> _Search:
        """Return the keys and conditions of `branch`. Raises UnknownOrigin."""
        written = [folded(_keyed(branch.written(key))) for key, _ in keys]
        values = {
            key.name: listed
            for key, (_, listed) in zip(written, keys, strict=True)
            if isinstance(key, Column) and listed
        }
        having = [folded(part) for each in more for part in conjuncts(_keyed(branch.written(each)))]
        listed = _tables(branch, public)
        where = [folded(part) for each in branch.conditions for part in conjuncts(each)]
        where += [part for unmatched in branch.unmatched for part in _without_partner(unmatched, public, public_values)]
        read = {name for part in (*written, *having, *where) for name in names_read(part)}
        laws = [folded(law) for law in branch.laws if names_read(law) <= read]
        where += laws
        same = _equalities([*written, *having], where, {name for table in listed for name in table.names})
        if same:
            written, where, having = (
                [rewritten(part, partial(_renamed, same)) for part in parts] for parts in (written, where, having)
            )
        return cls(written, where, having, listed, branch.within, public_values, values=values, laws=len(laws))

    def parts(self) -> list[KeyPart] | None:
        """Return parts whose product is the set of the combinations of keys that rows may have; keys that are in no part may have
        any value. None: no row satisfies the conditions."""
        self._find_candidates()
        return self._answered()

    def _answered(self) -> list[KeyPart] | None:
        weakening = Weakening(self._is_unknown, believed=not self.blind)
        keys = [weakening.freed(key) for key in self.keys]
        weakening.believed = False
        if len(weakening.variables) > MOST_VARIABLES:
            weakening = Weakening(self._is_unknown)
            keys = list(self.keys)
        public_keys = [index for index, key in enumerate(keys) if not self._is_unknown(key)]
        last = len(self.where) - self.laws
        conditions = [weakening.weak(part) for part in (*self.where[:last], *self.having)]
        laws = [law for law in map(weakening.weak, self.where[last:]) if law != TRUE]
        tables = {name: table for table in [*self.tables.values(), *weakening.tables()] for name in table.names}
        if any(not table.size for table in self.listed):
            return None
        items = [((index,), keys[index]) for index in public_keys]
        tests = [part for condition in conditions for part in conjuncts(condition) if part != TRUE]
        parts = []
        for tied in _tied(items, tests, laws, tables):
            for part in self._ways(tied, keys):
                if not part.rows:
                    return None
                if part.keys:
                    parts.append(part)
        return parts

    def _ways(self, tied: _Tied, keys: list[Expr]) -> Iterator[KeyPart]:
        """Yield the combinations of tied keys, of too many the values of each key; without keys of unknown values."""
        rows = self._rows(tied, keys)
        if rows is not None:
            yield KeyPart(tied.keys, rows)
            return
        for key in tied.keys:
            tables = tuple(table for table in tied.tables if names_read(keys[key]) & set(table.names))
            names = {name for table in tables for name in table.names}
            on_key = tuple(condition for condition in tied.conditions if names_read(condition) <= names)
            for conditions in (on_key, ()):
                rows = self._rows(_Tied((key,), conditions, tables), keys)
                if rows is not None:
                    yield KeyPart((key,), rows)
                    break

    def _rows(self, tied: _Tied, keys: list[Expr]) -> Rows | None:
        """Return the combinations of keys; None if there are too many, or no question gives them."""
        expressions = tuple(keys[index] for index in tied.keys)
        question = ValueQuestion(expressions, tied.tables, tied.conditions)
        if not tied.conditions and len(tied.tables) == 1 and len(expressions) == 1:
            (table,), (expression,) = tied.tables, expressions
            if isinstance(expression, Column) and table.names == (expression.name,):
                return tuple(table.values())
        try:
            rows = self.public_values.rows(question)
        except Unanswered:
            return None
        for position, index in enumerate(tied.keys):
            if len({row[position] for row in rows}) > MOST_VALUES:
                return None
            if keys[index].facts.type is Type.REAL:  # engines group both zeros as 0.0
                rows = tuple(
                    (
                        *row[:position],
                        row[position] if row[position] is None else row[position] + 0.0,
                        *row[position + 1 :],
                    )
                    for row in rows
                )
        return tuple(dict.fromkeys(rows))

    # --- candidates ---------------------------------------------------------------------------------------------------

    def _is_unknown(self, expression: Expr) -> bool:
        unlisted = names_read(expression) - self.tables.keys()
        unknown = any(not name.startswith(VARIABLE) for name in unlisted)
        return unknown or reads_result(expression) or not self.public_values.shares(expression)

    def _find_candidates(self, outside: str = "") -> None:
        """Find the candidates of each column. `outside`: a column that shall have only values that the policy does not name."""
        for table in self.listed:
            used = _used(
                table,
                {column.name for part in (*self.keys, *self.where, *self.having) for column in columns_read(part)},
            )
            self.tables |= dict.fromkeys(used.names, used)
        if self.blind:
            return
        in_keys = {column.name: column for part in (*self.keys, *self.having) for column in columns_read(part)}
        in_conditions: dict[str, list[Column]] = {}
        for part in self.where:
            for column in columns_read(part):
                in_conditions.setdefault(column.name, []).append(column)
        for name, column in {**{name: columns[0] for name, columns in in_conditions.items()}, **in_keys}.items():
            if name in self.tables or name + _KEY in in_keys:
                continue
            if name.endswith(_KEY):
                self._find_labelled(name, column, name == outside)
                continue
            sure = name in in_keys or name in self.within
            if name == outside:
                candidates = self._beyond(column)
            elif sure or column.facts.type is Type.BOOLEAN:
                candidates = domain(column) or self._named(column) or self._cells(column, True)
            elif len(in_conditions[name]) > 1:
                candidates = self._cells(column, False)
            else:
                candidates = None
            if candidates is not None:
                self.tables |= dict.fromkeys(candidates.names, candidates)

    def _named(self, column: Column) -> Candidates | None:
        """Return the values of a key that is this column."""
        values = self.values.get(column.name)
        return None if values is None else Candidates((column.name,), tuple((value,) for value in values))

    def _find_labelled(self, name: str, column: Column, outside: bool) -> None:
        """Enter the candidates of a column as a key in which one label stands for all values outside its domain, which are
        stored. `outside`: only a NULL that the policy excludes."""
        base, facts = name.removesuffix(_KEY), replace(column.facts, outside=None)
        plain = Column(base, facts)
        inside = domain(plain)
        if inside is None or any(names_read(key) & {base} for key in (*self.keys, *self.having)):
            return
        if outside:
            rows = [] if facts.nullable else [(None, None)]
        elif (beyond := self._beyond(plain)) is not None:
            rows = [(*row, *row) for row in inside.values() if row != (column.facts.outside,)]
            rows += [(value, column.facts.outside) for (value,) in beyond.rows if value is not None]
        else:
            return
        both = Candidates((base, name), tuple(rows))
        self.tables |= dict.fromkeys(both.names, both)

    def _cells(self, column: Column, within: bool) -> Candidates | None:
        """Return one value of each cell of a column; None if a key's cells are not known. Conditions with such become unknown."""
        uses = Uses(column)
        for part in (*self.keys, *self.having):
            uses.read(part, lambda column_read: column_read)
        if uses.unknown:
            return None
        for reading in (uses, Uses(column, compared=True)):
            where = [reading.read(part, _made_unknown) for part in self.where]
            candidates = cells(reading, within)
            if candidates is not None or within:
                break
        if candidates is not None:
            self.where = where
        return candidates

    # --- rows without a key -------------------------------------------------------------------------------------------

    def leaves_out(self) -> bool:
        """Return whether a row within the conditions may have a value that the policy does not name in a key's column."""
        (key,) = self.keys
        public = {name for table in self.listed for name in table.names}
        for name in sorted(names_read(key) - public - self.within):
            search = _Search(self.keys, self.where, [], self.listed, self.within, self.public_values, laws=self.laws)
            search._find_candidates(name)
            if (name not in search.tables or search.tables[name].size) and search._answered() is not None:
                return True
        return False

    def _beyond(self, column: Column) -> Candidates | None:
        """Return candidates of a column that the policy does not name, one in each cell of what conditions distinguish."""
        if column.facts.values is None and not column.facts.bounded:  # the policy names all values
            return Candidates((column.name,), () if column.facts.nullable else ((None,),))
        uses = Uses(column)
        for part in self.keys:
            uses.read(part, lambda column_read: column_read)
        where = [uses.read(part, _made_unknown) for part in self.where]
        facts, type_ = column.facts, column.facts.type
        ends = [facts.lower, facts.upper] if facts.values is None and facts.bounded else []
        if type_.numeric or type_.temporal:
            for value in [*ends, *(value for value in facts.values or () if value is not None)]:
                uses._is_compared([value])
        uses.grains, uses.widths, uses.steps = set(), set(), {}
        wide = Column(column.name, Facts(type_))
        beyond = cells(Uses(wide, uses.points), False)
        if beyond is None:
            return None
        self.where = where
        inside = domain(column)
        if inside is not None and inside.span is None:
            named_rows = set(inside.rows)
            rows = tuple(row for row in beyond.rows if row not in named_rows)
        else:
            rows = tuple(row for row in beyond.rows if not _is_named(row[0], facts))
        return Candidates(beyond.names, rows)


def _is_named(value: Any, facts: Facts) -> bool:
    """Return whether the policy names a value: it lies between the bounds, or is NULL and may be."""
    if value is None:
        return facts.nullable
    if not facts.bounded or (isinstance(value, float) and math.isnan(value)):
        return False
    return bool(
        evaluate(Call("ge", (Literal(value, Facts(facts.type)), _constant(facts.lower, facts.type)), _TRUTH), {})
        and evaluate(Call("le", (Literal(value, Facts(facts.type)), _constant(facts.upper, facts.type)), _TRUTH), {})
    )


def _constant(value: Any, type_: Type) -> Literal:
    return Literal(value, Facts(type_))


def _made_unknown(column: Column) -> Column:
    return Column(UNKNOWN + column.name, column.facts)


def _keyed(expression: Expr) -> Expr:
    """Return an expression with each column in which a label stands for other values (`as_key`) as a column of its own."""

    def change(part: Expr) -> Expr | None:
        column = labelled_column(part)
        return None if column is None else Column(column.name + _KEY, column.facts)

    return rewritten(expression, change)


def _tables(branch: Branch, public: PublicRows) -> list[Candidates]:
    return [
        Candidates(tuple(prefix + name for name in public[table][0]), tuple(map(tuple, public[table][1])))
        for prefix, table in branch.tables
        if table in public
    ]


def _used(table: Candidates, names: set[str]) -> Candidates:
    indexes = [index for index, name in enumerate(table.names) if name in names]
    rows = dict.fromkeys(tuple(row[index] for index in indexes) for row in table.rows)
    return Candidates(tuple(table.names[index] for index in indexes), tuple(rows))


@dataclass(frozen=True)
class _Tied:
    """Keys (by position), conditions and tables that are tied together."""

    keys: tuple[int, ...]
    conditions: tuple[Expr, ...]
    tables: tuple[Candidates, ...]

    @property
    def size(self) -> int:
        return prod(table.size for table in self.tables)


def _tied(
    items: Iterable[tuple[tuple[int, ...], Expr]],
    conditions: Iterable[Expr],
    laws: Iterable[Expr],
    tables: Mapping[str, Candidates],
) -> Iterator[_Tied]:
    """Yield keys and conditions in sets that share no table. Conditions over few candidates come first; one that would tie too
    many together is left out, a law that would tie more than a list of combinations has."""
    sets = [_Tied(keys, (), _read(expression, tables)) for keys, expression in items]
    merged: list[_Tied] = []
    tests = sorted((_Tied((), (part,), _read(part, tables)) for part in conditions), key=lambda test: test.size)
    at_end = [_Tied((), (law,), _read(law, tables)) for law in laws]
    for item in (*sets, *tests, *at_end):
        names = {name for table in item.tables for name in table.names}
        meeting = [part for part in merged if names & {name for table in part.tables for name in table.names}]
        whole = _Tied(
            sum((part.keys for part in meeting), item.keys),
            sum((part.conditions for part in meeting), item.conditions),
            tuple({table.names: table for part in (*meeting, item) for table in part.tables}.values()),
        )
        if whole.size > (MOST_LISTED if item in at_end else MOST_ASKED) and item.conditions:
            continue
        merged = [*(part for part in merged if part not in meeting), whole]
    yield from merged


def _read(expression: Expr, tables: Mapping[str, Candidates]) -> tuple[Candidates, ...]:
    return tuple({tables[name].names: tables[name] for name in sorted(names_read(expression))}.values())


# --- rows without a partner ---------------------------------------------------------------------------------------------


def _without_partner(unmatched: UnmatchedRows, public: PublicRows, public_values: PublicValues) -> Iterator[Expr]:
    """Yield conditions that hold for each row without a partner among the rows of a small public table."""
    conditions = [folded(part) for each in unmatched.branch.conditions for part in conjuncts(each)]
    listed, keys = _tables(unmatched.branch, public), tuple(folded(b) for _, b in unmatched.pairs)
    names = {name for table in listed for name in table.names}
    parts = (*keys, *conditions)
    if unmatched.branch.unmatched or any(names_read(part) - names or reads_result(part) for part in parts):
        return
    used = [_used(table, {column.name for part in parts for column in columns_read(part)}) for table in listed]
    if any(not table.size for table in listed):
        return
    try:
        met = public_values.rows(ValueQuestion(keys, tuple(table for table in used if table.names), tuple(conditions)))
    except Unanswered:
        return
    if len(met) > MOST_MET or not all(map(public_values.shares, parts)):
        return
    if unmatched.in_list and met:
        yield Call("not", (Call("is_null", (unmatched.pairs[0][0],), _TRUTH),), _TRUTH)
        if (None,) in met:
            yield literal(False)
    for values in met:
        if None in values or any(isinstance(value, float) for value in values):
            continue
        apart: list[Expr] = []
        for (a, _), value in zip(unmatched.pairs, values, strict=True):
            apart += [Call("is_null", (a,), _TRUTH), Call("ne", (a, literal(value)), _TRUTH)]
        yield Call("or", tuple(apart), _TRUTH)


# --- equal columns ------------------------------------------------------------------------------------------------------


def equal_columns(condition: Expr) -> tuple[Column, Column] | None:
    """Return the two columns of the same type that a condition sets equal, so that their values are identical bit by bit."""
    if not isinstance(condition, Call) or condition.function != "eq":
        return None
    a, b = condition.arguments
    if not isinstance(a, Column) or not isinstance(b, Column) or a.facts.type is not b.facts.type:
        return None
    return None if a.facts.type in (Type.REAL, Type.NULL) else (a, b)


def _equalities(keys: list[Expr], conditions: list[Expr], public: set[str]) -> dict[str, Column]:
    """Map each column that a condition equates with one of a public table, or with one that a key reads, to that one."""
    in_keys = {name for key in keys for name in names_read(key)}
    same: dict[str, Column] = {}
    for condition in conditions:
        pair = equal_columns(condition)
        if pair is None:
            continue
        a, b = (_last(column, same) for column in pair)
        if a.name == b.name:
            continue
        a, b = sorted((a, b), key=lambda column: (column.name in public) * 2 + (column.name in in_keys))
        if a.name not in public and (a.name not in in_keys or b.name in public):
            same[a.name] = b
    return same


def _last(column: Column, same: Mapping[str, Column]) -> Column:
    while column.name in same:
        column = same[column.name]
    return column


def _renamed(same: Mapping[str, Column], expression: Expr) -> Expr | None:
    return _last(expression, same) if isinstance(expression, Column) else None
