"""Aggregates and windows of a question: what they compute from its rows, and the orders in which these stand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cmp_to_key
from operator import itemgetter
from typing import Any

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.aggregates import framed
from dpsql.frontends.pgwire.constants.compile import Compiled, Row, constant
from dpsql.frontends.pgwire.constants.from_clause import SourceCompiler, kind_of
from dpsql.frontends.pgwire.constants.query_syntax import Key, RowSource, distinct, identity, ordered
from dpsql.frontends.pgwire.constants.resolve import REGISTER, choose
from dpsql.frontends.pgwire.constants.syntax import Node, Order
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said

WindowStep = tuple[Callable[[list[Row]], list[Any]], list[Key], tuple[int, ...]]
"""A window function: its values for rows, the order in which it reads them, and when its turn is."""
_Edge = Callable[[list[Row]], list[int]]
_WHOLE, _MOMENTS = ("int2", "int4", "int8"), ("timestamp", "timestamptz", "interval")
_OFFSETS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    **dict.fromkeys(_WHOLE, ("numeric", "numeric", _WHOLE)), "numeric": ("numeric", "numeric", (*_WHOLE, "numeric")),
    **dict.fromkeys(("float4", "float8"), ("float8", "float8", (*_WHOLE, "numeric", "float4", "float8"))),
    "date": ("timestamp", "interval", ("interval",)), **{type_: (type_, "interval", ("interval",)) for type_ in _MOMENTS},
}  # fmt: skip
"""By the type of a key of RANGE: the types in which it and its offset are computed, and those that the offset may have."""


def _misplaced(call: Node) -> str:
    """Return what PostgreSQL says of a function that is called as an aggregate or a window function."""
    name, is_distinct, order, within, condition = call.value if call.kind == "aggregate" else (call.value, *[None] * 4)
    over = f"OVER specified, but {name} is not a window function nor an aggregate function"
    if call.kind == "call":
        return over
    words = {"DISTINCT": is_distinct, "WITHIN GROUP": within, "ORDER BY": order, "FILTER": condition}
    word = next((word for word, has in words.items() if has), f"{name}(*)")
    return f"{word} specified, but {name} is not an aggregate function"


class MeasureCompiler(SourceCompiler):
    """Compiles the aggregates, windows and orders of one question."""

    def __init__(
        self, context: t.Context, parent: SourceCompiler | None = None, ctes: dict[str, RowSource] | None = None
    ) -> None:
        super().__init__(context, parent, ctes)
        self.slots, self.windows = list[Callable[[list[Row]], Any]](), list[WindowStep]()
        self.window_keys = dict[Any, int]()
        self.named_windows: dict[str, Any] = {}
        self.has_sets = False

    # --- aggregates and windows ---------------------------------------------------------------------------------------

    def _aggregate(self, node: Node) -> Compiled:
        if self.clause is not None:
            nested = self.clause == "aggregate"
            words = (
                "aggregate function calls cannot be nested"
                if nested
                else f"aggregate functions are not allowed in {self.clause}"
            )
            raise said("42803", words, node.position)
        result, values = self._measured(node)
        self.slots.append(values)
        index, width = len(self.slots) - 1, self.width
        return Compiled(result, lambda row: row[width][index], node.position)

    def _measured(
        self, node: Node, kind: str = "aggregate", clause: str | None = "aggregate"
    ) -> tuple[str, Callable[..., Any]]:
        """Return the type of an aggregate or window function, and its value for rows. Its arguments read rows of the sources."""
        name, is_distinct, order, within, condition = (
            node.value if node.kind == "aggregate" else (node.value, False, [], [], None)
        )
        self.clause, before = clause, self.clause
        items = [self.value(item) for item in [*node.items, *(key for key, _, _ in within)]]
        self.clause = "FILTER" if clause else clause
        test = None if condition is None else self.truth(condition, "FILTER").run
        self.clause = clause
        keys = self.ordering(order or within)
        self.clause = before
        if within and kind_of(name) == "window":
            return self._hypothetical(node, items, within, test)
        signature, expected, result = choose(name, [item.type for item in items], node.position, is_operator=False)
        if signature.kind == "function":
            raise said("42809", _misplaced(node), node.position)
        if bool(within) != signature.within or signature.kind != kind:
            words = f"{name} is not an ordered-set aggregate"
            raise said("42809", words, node.position) if kind == "aggregate" else Elsewhere()
        converted = [self.coerced(item, type_) for item, type_ in zip(items, expected, strict=True)]
        runs, context, types = [item.run for item in converted], self.context, tuple(item.type for item in converted)
        if signature.sorted_:
            keys = [(converted[0].run, self.comparable(types[0]), False, False)]
        if is_distinct:
            forms, chosen = list(map(self._form, node.items)), dict[int, tuple[bool, bool]]()
            for key, descending, first in order:
                if self._form(key) not in forms:
                    words = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"
                    raise said("42P10", words, key.position)
                chosen.setdefault(forms.index(self._form(key)), (descending, first))
            chosen = {**chosen, **dict.fromkeys(chosen.keys() ^ set(range(len(types))), (False, False))}
            keys = [(itemgetter(k), self.comparable(types[k]), *direction) for k, direction in chosen.items()]

        def values(rows: list[Row], *further: Any) -> Any:
            remaining = rows if test is None else [row for row in bounds.counted(rows) if test(row) is True]
            listed = bounds.counted(remaining if is_distinct else ordered(remaining, keys))
            arguments = [tuple(run(row) for run in runs) for row in listed]
            if signature.strict:
                arguments = [part for part in arguments if None not in part]
            if is_distinct:
                arguments = ordered(distinct(arguments), keys)
            context.spent(arguments)
            if signature.strict and not arguments:
                return None
            return context.spent(signature.call(context, types, arguments, *further))

        return result, values

    def _hypothetical(
        self, node: Node, items: list[Compiled], order: list[Order], test: Callable[[Row], Any] | None
    ) -> tuple[str, Callable[..., Any]]:
        """Return the rank that a row of these values would have among the others."""
        name, count = node.value[0], len(node.items)
        if REGISTER[name][0].arguments:
            raise said("42809", f"window function {name} requires an OVER clause", node.position)
        types = [item.type for item in items]
        signature, _, result = choose(name, types if count != len(order) else [], node.position, is_operator=False)
        pairs = [self.matched([key, value], "WITHIN GROUP") for value, key in zip(items, items[count:], strict=False)]
        sort = [(itemgetter(k), self.comparable(pairs[k][1]), down, first) for k, (_, down, first) in enumerate(order)]

        def values(rows: list[Row]) -> Any:
            remaining = rows if test is None else [row for row in bounds.counted(rows) if test(row) is True]
            tuples = [tuple(key.run(row) for (key, _), _ in pairs) for row in bounds.counted(remaining)]
            further = tuple(value.run(rows[0] if rows else ()) for (_, value), _ in pairs)
            peers = [identity(list(part)) for part in ordered([*tuples, further], sort)]
            return signature.call(self.context, (), peers, peers)[peers.index(identity(list(further)))]

        return result, values

    def _window(self, node: Node) -> Compiled:
        if self.clause is not None:
            raise said("42P20", f"window functions are not allowed in {self.clause}", node.position)
        call, window = node.items[0], node.value
        if isinstance(window, str):
            if window not in self.named_windows:
                raise said("42704", f'window "{window}" does not exist', node.items[1])
            window = self.named_windows[window]
        parts, order, frame = window
        name = call.value if call.kind == "call" else call.value[0]
        if name not in REGISTER:
            raise Elsewhere
        is_window = REGISTER[name][0].kind == "window"
        excluded = "" if frame is None else frame[3]
        has_frame = frame is not None and name in ("first_value", "last_value", "nth_value")
        frame, edges = (None, [None, None]) if frame is None else self._frame(frame[:3], order)
        result, measure = self._measured(call, "window" if is_window else "aggregate", clause=None)
        if has_frame:
            inner, is_window = measure, False
            measure = lambda rows: inner(rows, [None] * len(rows))[0] if rows else None  # noqa: E731
        split, keys = [self.value(part) for part in parts], self.ordering(order)
        merge = self._merge(call, result)

        def values(rows: list[Row]) -> list[Any]:
            results, groups = dict[int, Any](), dict[Any, list[int]]()
            for number, row in enumerate(rows):
                bounds.step()
                groups.setdefault(tuple(identity(part.run(row)) for part in split), []).append(number)
            for group in groups.values():
                numbers = ordered(group, [(lambda k, value=value: value(rows[k]), *rest) for value, *rest in keys])  # type: ignore[misc]
                members = [rows[k] for k in numbers]
                peers = [tuple(identity(key[0](row)) for key in keys) for row in bounds.counted(members)]
                starts_and_stops = [None if edge is None else edge(members) for edge in edges]
                listed = (
                    measure(members, peers)
                    if is_window
                    else framed(members, peers, frame, starts_and_stops, measure, merge, excluded)
                )
                results.update(zip(numbers, listed, strict=True))
            return [results[k] for k in range(len(rows))]

        split_order = [(part.run, self.comparable(part.type), False, False) for part in split]
        numbers = [self._key_number(key) for key in (*parts, *(key for key, _, _ in order))]
        self.windows.append((values, [*split_order, *keys], (*(-number for number in numbers), 1)))
        index, width = len(self.windows) - 1, self.width
        return Compiled(result, lambda row: row[width + 1][index], node.position)

    def _key_number(self, key: Node) -> int:
        return self.window_keys.setdefault(self._form(key), len(self.window_keys) + 1)

    def windowed(self, rows: list[Any]) -> list[Any]:
        """Return rows with the values of their windows behind them, in the order in which PostgreSQL's last window has them: it
        computes those with the keys that are written last first, and of two with the same keys the longer."""
        columns, numbers = dict[int, dict[int, Any]](), list(range(len(rows)))
        for index, (values, keys, _) in sorted(enumerate(self.windows), key=lambda pair: pair[1][2]):
            numbers = ordered(numbers, [(lambda k, run=run: run(rows[k]), *rest) for run, *rest in keys])  # type: ignore[misc]
            columns[index] = dict(zip(numbers, values([rows[k] for k in numbers]), strict=True))
        return [(*rows[k], tuple(columns[index][k] for index in range(len(self.windows)))) for k in numbers]

    def _frame(self, frame: Any, order: list[Order]) -> tuple[tuple[str, float, float], list[_Edge | None]]:
        """Return a frame whose ends are numbers of rows, and in place of an end of RANGE with an offset where it is."""
        (word, *ends), edges = frame, list[_Edge | None]([None, None])
        start, stop = (end[0] if isinstance(end, tuple) else end for end in ends)
        if word == "groups" and not order:
            raise said("42P20", "GROUPS mode requires an ORDER BY clause")
        if start == math.inf or stop == -math.inf:
            words = "start cannot be UNBOUNDED FOLLOWING" if start == math.inf else "end cannot be UNBOUNDED PRECEDING"
            raise said("42P20", f"frame {words}")
        if start > stop:
            words = f"frame starting from {'following' if start else 'current'} row cannot have preceding rows"
            raise said("42P20", words)
        for k, end in enumerate(ends):
            if isinstance(end, tuple) and word == "range":
                edges[k], ends[k] = self._edge(end[0], end[1], order, k == 0), 0
            elif isinstance(end, tuple):
                if end[1].kind != "number" or not end[1].value.lstrip("-").isdecimal():
                    raise Elsewhere
                if end[1].value[0] == "-":
                    raise said("22013", f"frame {('starting', 'ending')[k]} offset must not be negative")
                ends[k] = end[0] * int(end[1].value[:9])
        return (word, *ends), edges

    def _edge(self, sign: int, node: Node, order: list[Order], is_start: bool) -> _Edge:
        """Return for the rows of a part where the frame of each begins or ends. Rows are passed once, as limits only grow."""
        words, position = "RANGE with offset PRECEDING/FOLLOWING", node.position
        if len(order) != 1:
            raise said("42P20", f"{words} requires exactly one ORDER BY column", position)
        (key, descending, first), self.clause = order[0], "window RANGE"
        size, reads, _ = self._reading(lambda: self.value(node))
        self.clause = None
        value = self.value(key)
        if reads:
            raise said("42P10", "argument of RANGE must not contain variables", position)
        type_, further, sizes = _OFFSETS.get(value.type, ("", "", ()))
        if not type_ or size.type not in (*sizes, "unknown"):
            if value.type in ("time", "timetz"):
                raise Elsewhere
            named_types = f"column type {t.sql_name(value.type)} and offset type {t.sql_name(size.type)}"
            raise said("0A000", f"{words} is not supported for {named_types}", position)
        value, size = self.coerced(value, type_), self.coerced(size, further)
        base, other = (Compiled(type_, itemgetter(k), position) for k in (0, 1))
        zero = constant(t.read("0", further, self.context), further, position)
        amount, sign = Compiled(further, itemgetter(1), position), -sign if descending else sign
        move = self._operated("+" if sign > 0 else "-", [base, amount], position).run
        passes = self._operated((">" if descending else "<") + "=" * (not is_start), [base, other], position).run
        is_negative = self._operated("<", [amount, zero], position).run

        def indexes(rows: list[Row]) -> list[int]:
            by, values = size.run(rows[0]), [value.run(row) for row in bounds.counted(rows)]
            if by is None:
                raise said("22004", f"frame {'starting' if is_start else 'ending'} offset must not be null")
            if by == math.inf:
                raise Elsewhere
            if by != by or is_negative((None, by)):
                raise said("22013", "invalid preceding or following size in window function")
            count = sum(item is None for item in values)
            low, high = (count, len(values)) if first else (0, len(values) - count)
            of_nulls = ((0, low) if first else (high, len(values)))[not is_start]
            results, index = list[int](), low
            for item in bounds.counted(values):
                limit = None if item is None else move((item, by))
                while limit is not None and index < high and passes((values[index], limit)):
                    bounds.step()
                    index += 1
                results.append(of_nulls if limit is None else index)
            return results

        return indexes

    def _merge(self, call: Node, type_: str) -> Callable[[Any, Any], Any] | None:
        """Return how the aggregates of some rows and of further rows make that of all of them; None if they do not."""
        name, is_distinct = (call.value, False) if call.kind == "call" else call.value[:2]
        if is_distinct or name not in ("count", "sum", "min", "max"):
            return None
        if name in ("min", "max"):
            key, pick = self.comparable(type_), min if name == "min" else max
            return lambda a, b: pick(a, b, key=key)
        add = self._operated("+", [Compiled(type_, itemgetter(k), call.position) for k in (0, 1)], call.position).run
        return lambda a, b: add((a, b))

    # --- orders -------------------------------------------------------------------------------------------------------

    def comparable(self, type_: str, needed: str = "an ordering operator") -> Callable[[Any], Any]:
        """Return the function by whose results the values of a type are sorted. Raises 42883 for types without an order, which
        lack what is `needed`."""
        type_ = "text" if type_ == "unknown" else type_
        if type_ in ("int2", "int4", "int8", "text", "bool", "varchar", "oid", "name", "char"):
            return lambda value: value
        if type_ in ("record", "_record"):
            return cmp_to_key(self._compared_rows)
        sides = [Compiled(type_, itemgetter(k), 0) for k in (0, 1)]
        try:
            less = self._operated("<", sides, 0).run
        except Error:
            raise said("42883", f"could not identify {needed} for type {t.sql_name(type_)}") from None
        return cmp_to_key(lambda a, b: -1 if less((a, b)) else int(bool(less((b, a)))))

    def _compared_rows(self, a: Any, b: Any) -> int:
        """Return whether a row, or an array of rows, is before another one, as a sign."""
        pairs = zip(*(v if isinstance(v, list) else v.values for v in (a, b)), strict=False)
        types = itertools.repeat("record") if isinstance(a, list) else a.types
        for (left, right), type_ in zip(pairs, types, strict=False):
            if left is None or right is None:
                sign = (left is None) - (right is None)
            else:
                first, second = map(self.comparable(type_), (left, right))
                sign = (second < first) - (first < second)
            if sign:
                return sign
        sizes = [len(v) if isinstance(v, list) else 0 for v in (a, b)]
        return (sizes[0] > sizes[1]) - (sizes[0] < sizes[1])

    def ordering(self, order: list[Order]) -> list[Key]:
        """Return the keys of an order."""
        keys = list[Key]()
        for node, descending, first in order:
            item = self.value(node)
            keys.append((item.run, self.comparable(item.type), descending, first))
        return keys
