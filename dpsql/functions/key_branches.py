"""Keys and conditions of one branch of a relation: which combinations of keys its rows may have.

Conditions read columns as stored, so a column of a protected table may hold anything here, inside or outside the policy's bounds
and lists: its possible values are cut into cells (`column_cells`), and conditions and keys are evaluated over each cell
(`possible_values`). The rows of public tables are known. Keys that no condition and no column ties together are searched
separately (`row_search`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from dpsql.functions.calendar_cycle import on_days, repeats
from dpsql.functions.column_cells import STEPS, cut, named_cells
from dpsql.functions.evaluate import evaluate
from dpsql.functions.possible_values import Possible, follows_order, possible
from dpsql.functions.row_search import (
    MOST_PUBLIC_WORK,
    MOST_WORK,
    ListedTable,
    Row,
    SearchBudget,
    TooMany,
    Variable,
    calls,
    cell_row,
    columns_of,
    compares_literals,
    equal_columns,
    literals_of,
    names_of,
    search,
)
from dpsql.plan.combinations import Numbers
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.origins import Branch, UnmatchedRows
from dpsql.plan.plan import Call, Column, Expr, Literal

MOST_TUPLES = 100_000
MOST_MET = 200
"""Largest number of rows of a public table with which rows without a partner are compared."""
_KEY = "#key "

Values = tuple[Any, ...]
PublicRows = Mapping[str, tuple[tuple[str, ...], Sequence[tuple[Any, ...]]]]
"""All rows of the small public tables, by table: the names of the columns, and the values of each row."""
NO_ROWS: PublicRows = {}


@dataclass(frozen=True, eq=False)
class KeyCombinations:
    """Keys (by position) that are tied together, and the combinations that they may have: `cells` has a row for each combination
    and a column for each key, with positions of the key's values."""

    keys: tuple[int, ...]
    cells: Numbers

    @classmethod
    def from_combinations(cls, keys: tuple[int, ...], combinations: Iterable[tuple[int, ...]]) -> KeyCombinations:
        """Return the part with these `combinations` (positions of values, in the order of `keys`), sorted."""
        ordered = sorted(combinations)
        return cls(keys, np.array(ordered, dtype=np.int64).reshape(len(ordered), len(keys)))

    @classmethod
    def whole(cls, key: int, size: int) -> KeyCombinations:
        """Return the part of a key that no condition restricts: all `size` values."""
        return cls((key,), np.arange(size, dtype=np.int64)[:, None])


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """Yield the conjuncts of a condition."""
    if isinstance(condition, Call) and condition.function == "and":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    else:
        yield condition


@dataclass(frozen=True)
class _Tied:
    """Keys (by position), conditions and columns that are tied together."""

    keys: tuple[int, ...]
    conditions: tuple[Expr, ...]
    columns: Mapping[str, Column]


@dataclass
class KeyBranch:
    """Keys and conditions over base columns of one branch; every row of the branch satisfies the conditions."""

    keys: list[Expr]
    values: list[Values]
    conditions: list[Expr]
    tables: list[ListedTable]
    within: frozenset[str]

    @classmethod
    def from_branch(
        cls, branch: Branch, keys: list[Expr], values: list[Values], more: Iterable[Expr], public: PublicRows
    ) -> KeyBranch:
        """Return the keys and conditions of `branch`, with equal columns replaced by one of them."""
        conditions = [part for condition in (*branch.conditions, *more) for part in conjuncts(condition)]
        tables = _tables(branch, public)
        conditions += [part for unmatched in branch.unmatched for part in _without_partner(unmatched, public)]
        written = [branch.written(key) for key in keys]
        same = _equalities(written, conditions, {name for table in tables for name in table.names})
        if same:
            written, conditions = ([_renamed(part, same) for part in parts] for parts in (written, conditions))
        return cls(written, values, conditions, tables, branch.within)

    def parts(self) -> list[KeyCombinations]:
        """Return parts whose product is the set of the combinations of keys that rows may have."""
        if any(not possible(condition, {}).holds(True) for condition in self.conditions if not names_of(condition)):
            return [KeyCombinations.from_combinations((), ())]
        return [part for tied in self._tied() for part in self._parts_of(tied)]

    def _tied(self) -> list[_Tied]:
        """Return the keys and conditions in sets that share no column, neither directly nor through others."""
        columns = {
            column.name: column for expression in (*self.conditions, *self.keys) for column in columns_of(expression)
        }
        table_of = {name: index for index, table in enumerate(self.tables) for name in table.names}
        sets: list[tuple[set[object], list[int], list[Expr]]] = []
        items: list[tuple[Expr, list[int], list[Expr]]] = [(key, [index], []) for index, key in enumerate(self.keys)]
        items += [(condition, [], [condition]) for condition in self.conditions]
        for expression, numbers, parts in items:
            marks: set[object] = {table_of.get(column.name, column.name) for column in columns_of(expression)}
            if not marks and parts:
                continue
            meeting = [tied_set for tied_set in sets if tied_set[0] & marks]
            sets = [tied_set for tied_set in sets if not tied_set[0] & marks]
            whole = marks.union(*(marked for marked, _, _ in meeting))
            sets.append(
                (whole, sum((keys for _, keys, _ in meeting), numbers), sum((met for _, _, met in meeting), parts))
            )
        tied_sets = []
        for _, keys, conditions in sets:
            used = {name for index in keys for name in names_of(self.keys[index])}.union(*map(names_of, conditions))
            columns_used = {name: column for name, column in columns.items() if name in used}
            tied_sets.append(_Tied(tuple(sorted(keys)), tuple(conditions), columns_used))
        return tied_sets

    def _parts_of(self, tied: _Tied) -> list[KeyCombinations]:
        public = any(name in table.names for table in self.tables for name in tied.columns)
        if len(tied.keys) == 1 and tied.columns and not tied.conditions and not public:
            return [self._whole(tied)]
        tuples = self._tuples(tied, MOST_PUBLIC_WORK if public else MOST_WORK)
        if tuples is not None:
            return [KeyCombinations.from_combinations(tied.keys, tuples)]
        if len(tied.keys) == 1:
            return [self._whole(tied)]
        return [part for key in tied.keys for part in self._parts_of(self._alone(tied, key))]

    def _whole(self, tied: _Tied) -> KeyCombinations:
        (key,) = tied.keys
        return KeyCombinations.whole(key, len(self.values[key]))

    def _alone(self, tied: _Tied, key: int) -> _Tied:
        """Return one key with the conditions that are tied to it if the other keys are ignored."""
        lone = replace(self, keys=[self.keys[key]], values=[self.values[key]], conditions=list(tied.conditions))
        (tied_key,) = (tied_set for tied_set in lone._tied() if tied_set.keys)
        return replace(tied_key, keys=(key,))

    def _tuples(self, tied: _Tied, most: int) -> set[tuple[int, ...]] | None:
        """Return the keys' combinations over all tied columns, else over their own, else over wide cells; None: too much work."""
        every = frozenset(tied.columns)  # without unreleased values, which no row of the search has
        key_columns = every & {name for key in tied.keys for name in names_of(self.keys[key])}
        ways = [(every, key_columns), (key_columns, key_columns), (key_columns, frozenset[str]())]
        if not key_columns:
            ways = [(every, key_columns)]
        elif self._in_order(tied):
            ways = [(every, frozenset[str]())]
        for names, inside in dict.fromkeys(ways):
            try:
                budget = SearchBudget(most)
                conditions = [condition for condition in tied.conditions if names_of(condition) & names]
                rows = search(list(self._variables(tied, names, inside)), conditions, key_columns, budget)
                if not tied.keys:
                    return {()} if rows else set()
                return self._expanded(rows, tied, conditions, budget)
            except TooMany:
                continue
        return None if tied.keys else {()}

    def _in_order(self, tied: _Tied) -> bool:
        """Return whether wide cells are as exact as single values: conditions compare one column with literals alone, and there
        is one key that is monotone in it, or all keys repeat with the calendar."""
        keys = [self.keys[key_index] for key_index in tied.keys]
        names = {name for key in keys for name in names_of(key)}
        if len(names) != 1 or any(names <= set(table.names) for table in self.tables):
            return False
        if not all(compares_literals(condition) and len(names_of(condition)) == 1 for condition in tied.conditions):
            return False
        return all(map(repeats, keys)) or (len(keys) == 1 and follows_order(keys[0]) is not None)

    def _variables(self, tied: _Tied, names: frozenset[str], inside: frozenset[str]) -> Iterator[Variable]:
        """Yield public tables with rows, other columns with cells. `inside`: columns whose policy values are separate cells."""
        literals = [
            value
            for expression in (*(self.keys[index] for index in tied.keys), *tied.conditions)
            for value in literals_of(expression)
        ]
        listed = set(names)
        for table in self.tables:
            columns_read, rows = table.distinct(names)
            if columns_read:
                listed -= set(columns_read)
                yield Variable(
                    frozenset(columns_read), [Row(dict(zip(columns_read, row, strict=True))) for row in rows]
                )
        for name in sorted(listed):
            column = tied.columns[name]
            keys_of_column = [index for index in tied.keys if self.keys[index] == column]
            values = [
                value for index in keys_of_column if name in inside for value in self.values[index] if value is not None
            ]
            cells = cut(column.facts, [*literals, *values], name in inside)
            yield Variable(frozenset((name,)), [cell_row(name, cell) for cell in cells])

    # --- keys of rows -------------------------------------------------------------------------------------------------

    def _expanded(
        self, rows: Iterable[Row], tied: _Tied, conditions: Sequence[Expr], budget: SearchBudget | None = None
    ) -> set[tuple[int, ...]]:
        """Return the combinations of keys that rows may have. Conditions on whole keys are tested on each key value of a cell."""
        combinations: set[tuple[int, ...]] = set()
        keys = [(_KEY + str(index), self.keys[index]) for index in tied.keys]
        undecided = [] if self._in_order(tied) else conditions
        on_keys = [written for condition in undecided if (written := _with_keys(condition, keys)) != condition]
        places = [_Places(self.values[index]) for index in tied.keys]
        work = sum(calls(key) for _, key in keys)
        names = {name for _, key in keys for name in names_of(key)}
        for row in rows:
            if budget is not None:
                budget.spend(work)
            unknown = names - row.values.keys()
            for chosen in self._chosen(row, [key for _, key in keys], unknown, places, MOST_TUPLES - len(combinations)):
                if not unknown or not on_keys or self._met(on_keys, row, tied, chosen):
                    combinations.add(chosen)
        return combinations

    def _chosen(
        self, row: Row, keys: list[Expr], names: set[str], places: list[_Places], most: int
    ) -> Iterable[tuple[int, ...]]:
        """Return the combinations that the keys of a row may have, as positions. `names`: columns for which the row has no single
        value. Raises TooMany for more than `most` combinations."""
        cell = row.cells.get(next(iter(names))) if len(names) == 1 else None
        if not names:
            positions = [place.position(evaluate(key, row.values)) for place, key in zip(places, keys, strict=True)]
            return [tuple(position for position in positions if position is not None)] if None not in positions else []
        if cell is not None and not cell.null and all(map(repeats, keys)):
            values = on_days(tuple(keys), next(iter(names)), cell.lower, cell.upper)
            positions_by_day = (
                [place.position(value) for place, value in zip(places, day_values, strict=True)]
                for day_values in values
            )
            return [
                tuple(position for position in positions if position is not None)
                for positions in positions_by_day
                if None not in positions
            ]
        options = [place.positions(row.image(key)) for place, key in zip(places, keys, strict=True)]
        if prod(map(len, options)) > most:
            raise TooMany
        return product(*options)

    def _met(self, on_keys: Sequence[Expr], row: Row, tied: _Tied, chosen: tuple[int, ...]) -> bool:
        values = {_KEY + str(key): self.values[key][position] for key, position in zip(tied.keys, chosen, strict=True)}
        keyed = replace(row, values={**row.values, **values})
        return all(keyed.image(condition).holds(True) for condition in on_keys)

    # --- rows without a key -------------------------------------------------------------------------------------------

    def leaves_out(self) -> bool:
        """Return whether a row that satisfies the conditions may have none of the key's values."""
        if any(not possible(part, {}).holds(True) for part in self.conditions if not names_of(part)):
            return False
        (key,), (values,) = self.keys, self.values
        columns = {column.name: column for column in columns_of(key)}
        every = frozenset(values)
        if not columns:
            return not self._holds_all(possible(key, {}), every)
        conditions = [part for part in self.conditions if names_of(part) & columns.keys()]
        literals = [value for part in (key, *conditions) for value in literals_of(part)]
        alone = len(columns) == 1  # rows of values that the policy names are not searched for
        variables = [
            Variable(frozenset((name,)), [
                cell_row(name, cell, named) for cell, named in named_cells(column.facts, literals)
                if (not alone if named else name not in self.within)
            ])
            for name, column in columns.items()
        ]  # fmt: skip
        if all(row.named for variable in variables for row in variable.rows):
            return False
        try:
            rows = search(variables, conditions, frozenset(columns), SearchBudget(MOST_WORK))
        except TooMany:
            return True
        return any(not row.named and not self._holds_all(row.image(key), every) for row in rows)

    def _holds_all(self, image: Possible, every: frozenset[Any]) -> bool:
        """Return whether every possible value is one of the key's values."""
        if image.null and None not in every:
            return False
        if image.values is not None:
            return image.values <= every
        type_ = self.keys[0].facts.type
        step, low, high = STEPS.get(type_), image.lower, image.upper
        if step is None or low is None or high is None or type_ is Type.TIMESTAMP:
            return False
        return bool(sum(1 for value in every if value is not None and low <= value <= high) == (high - low) // step + 1)


class _Places:
    """Positions of a key's values."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._place = {value: position for position, value in enumerate(values)}
        self._present = values[:-1] if values and values[-1] is None else values
        kinds = {type(value) for value in self._present}
        plain = kinds and len(kinds) == 1 and not kinds & {float, bool, type(None)}
        self._kind = kinds.pop() if plain and list(self._present) == sorted(self._present) else None

    def position(self, value: Any) -> int | None:
        """Return the position of a value, None if it is not a public key."""
        return self._place.get(value)

    def positions(self, image: Possible) -> Sequence[int]:
        """Return the positions of the values that are in `image`."""
        missing = [self._place[None]] if image.null and None in self._place else []
        if image.values is not None:
            return [self._place[value] for value in image.values if value in self._place] + missing
        ends = [end for end in (image.lower, image.upper) if end is not None]
        if self._kind is None or any(type(end) is not self._kind for end in ends):
            return [position for position, value in enumerate(self._values) if image.holds(value)]
        first = 0 if image.lower is None else bisect_left(self._present, image.lower)
        after = len(self._present) if image.upper is None else bisect_right(self._present, image.upper)
        inside = range(first, after)
        return [*(position for position in inside if self._present[position] not in image.excluded), *missing]


def _tables(branch: Branch, public: PublicRows) -> list[ListedTable]:
    named = ((prefix, public[table]) for prefix, table in branch.tables if table in public)
    return [ListedTable(tuple(prefix + name for name in names), rows) for prefix, (names, rows) in named]


def _meets_many(searched: KeyBranch) -> bool:
    """Return whether unrestricted keys have too many values, judged by the columns of one table: rows of other tables repeat them
    (and if a table has no rows, there are no pairs, so that yielding no condition is right)."""
    if searched.conditions or not all(isinstance(key, Column) for key in searched.keys):
        return False
    named = {name for key in searched.keys for name in names_of(key)}
    return any(len(table.distinct(named)[1]) > MOST_MET for table in searched.tables)


def _without_partner(unmatched: UnmatchedRows, public: PublicRows) -> Iterator[Expr]:
    """Yield conditions that hold for each row without a partner among the rows of a small public table."""
    conditions = [part for expression in unmatched.branch.conditions for part in conjuncts(expression)]
    searched = KeyBranch(
        [b for _, b in unmatched.pairs], [], conditions, _tables(unmatched.branch, public), frozenset()
    )
    columns = {column.name: column for expression in (*searched.keys, *conditions) for column in columns_of(expression)}
    public_names = {name for table in searched.tables for name in table.names}
    unreleased = any(names_of(expression) - columns.keys() for expression in (*searched.keys, *conditions))
    if not columns.keys() <= public_names or unreleased or unmatched.branch.unmatched:
        return
    if _meets_many(searched):
        return
    every = _Tied((), tuple(conditions), columns)
    try:
        key_columns = frozenset(name for key in searched.keys for name in names_of(key))
        rows = search(
            list(searched._variables(every, frozenset(columns), frozenset())),
            conditions,
            key_columns,
            SearchBudget(MOST_PUBLIC_WORK),
        )
    except TooMany:
        return
    met = dict.fromkeys(tuple(evaluate(key, row.values) for key in searched.keys) for row in rows)
    if len(met) > MOST_MET:
        return
    truth = Facts(Type.BOOLEAN)
    if unmatched.in_list and met:
        yield Call("not", (Call("is_null", (unmatched.pairs[0][0],), truth),), truth)
        if (None,) in met:
            yield Literal(False, literal_facts(False))
    for values in met:
        if None in values or any(isinstance(value, float) for value in values):
            continue
        apart: list[Expr] = []
        for (a, _), value in zip(unmatched.pairs, values, strict=True):
            apart += [Call("is_null", (a,), truth), Call("ne", (a, Literal(value, literal_facts(value))), truth)]
        yield Call("or", tuple(apart), truth)


# --- expressions ------------------------------------------------------------------------------------------------------


def _equalities(keys: list[Expr], conditions: list[Expr], public: set[str]) -> dict[str, Column]:
    """Map each column that a condition equates with another to its representative: a column of a public table, else of a key."""
    key_columns = {name for key in keys for name in names_of(key)}
    same: dict[str, Column] = {}
    for condition in conditions:
        pair = equal_columns(condition)
        if pair is None:
            continue
        a, b = (_last(column, same) for column in pair)
        if a.name == b.name:
            continue
        a, b = sorted((a, b), key=lambda column: (column.name in public) * 2 + (column.name in key_columns))
        if a.name not in public:
            same[a.name] = b
    return same


def _last(column: Column, same: Mapping[str, Column]) -> Column:
    while column.name in same:
        column = same[column.name]
    return column


def _renamed(expression: Expr, same: Mapping[str, Column]) -> Expr:
    if isinstance(expression, Column):
        return _last(expression, same)
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(_renamed(part, same) for part in expression.arguments))
    return expression


def _with_keys(condition: Expr, keys: Sequence[tuple[str, Expr]]) -> Expr:
    """Return a condition with the keys' expressions in it replaced by columns."""
    for name, key in keys:
        if condition == key:
            return Column(name, key.facts)
    if isinstance(condition, Call):
        parts = tuple(_with_keys(argument, keys) for argument in condition.arguments)
        return Call(condition.function, parts, condition.facts)
    return condition
