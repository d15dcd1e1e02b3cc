"""An expression as a function of the values of its source's columns, with its type: what PostgreSQL does before it computes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from dpsql.frontends.pgwire.catalog.shape import DOMAINS, static
from dpsql.frontends.pgwire.catalog.tables import Vector
from dpsql.frontends.pgwire.constants import bounds, conversions
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.collections_of_values import element_at, flat, part_of
from dpsql.frontends.pgwire.constants.conversions import all_true, opposite, signed
from dpsql.frontends.pgwire.constants.moments import read_interval
from dpsql.frontends.pgwire.constants.resolve import (
    NO_COLUMNS,
    REGISTER,
    choose,
    common_type,
    denied_functions,
    first_misfit,
    in_order,
    is_registered,
    known_functions,
    not_computed,
    record_functions,
)
from dpsql.frontends.pgwire.constants.syntax import BY_WORDS, Node, TypeName
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said

Row = Sequence[Any]

HASHED = {"int2", "int4", "int8", "oid", "text", "name", "char", "bool", "varchar"}
"""Types whose values are equal where Python's are."""


@dataclass(slots=True)
class Compiled:
    """An expression: its type, its value for a row, its text if it is a literal of no type yet, whether it makes rows,
    its number if it is a parameter of no type yet, and of a row the names and types of its columns."""

    type: str
    run: Callable[[Row], Any]
    position: int
    literal: str | None = None
    rows: bool = False
    parameter: int = 0
    shape: tuple[tuple[str, str], ...] = ()
    origin: tuple[int, int] = (0, 0)
    modifier: int = -1
    """The sizes of the type of a cast, as PostgreSQL keeps them."""


class Compiler:
    """Compiles expressions. Those that read columns, rows and questions are in `queries`."""

    def __init__(self, context: t.Context) -> None:
        self.context = context

    def compile(self, node: Node) -> Compiled:
        """Return an expression compiled. Raises PostgreSQL's errors, and `Elsewhere`."""
        bounds.step()
        compiled: Compiled = getattr(self, "_" + node.kind)(node)
        return compiled

    clause: str | None = None
    """The clause in which expressions stand, if they may not stand everywhere."""

    def value(self, node: Node, construct: str = "") -> Compiled:
        """Return an expression that makes no rows. Raises 0A000 in PostgreSQL's words where it has none, too: in `construct`."""
        compiled = self.compile(node)
        if compiled.rows:
            forbidding = construct or (
                self.clause if self.clause in ("WHERE", "VALUES", "LIMIT", "OFFSET", "FILTER") else ""
            )
            if not forbidding:
                raise Elsewhere
            raise said("0A000", f"set-returning functions are not allowed in {forbidding}", compiled.position)
        return compiled

    # --- types --------------------------------------------------------------------------------------------------------

    def coerced(self, item: Compiled, type_: str) -> Compiled:
        """Return a value as another type, to which it is converted implicitly."""
        if item.type == type_ or type_ in ("any", "unknown"):
            return item
        if item.literal is not None:
            return constant(t.read(item.literal, type_, self.context, item.position), type_, item.position)
        if item.parameter:
            return self._bound(item.parameter, type_, item.position)
        if item.type == "unknown":
            return Compiled(type_, item.run, item.position)
        if item.type == "record":
            raise Elsewhere
        convert, run = conversions.converter(item.type, type_, self.context), item.run
        if item.rows:
            listed = lambda row: [None if value is None else convert(value) for value in run(row)]  # noqa: E731
            return Compiled(type_, listed, item.position, rows=True)
        return Compiled(type_, lambda row: None if (value := run(row)) is None else convert(value), item.position)

    def truth(self, node: Node, clause: str) -> Compiled:
        """Return a condition. Raises 42804 for another type."""
        item = self.value(node)
        if item.type not in ("bool", "unknown"):
            raise said(
                "42804", f"argument of {clause} must be type boolean, not type {t.sql_name(item.type)}", item.position
            )
        return self.coerced(item, "bool")

    def matched(self, items: Sequence[Compiled], construct: str) -> tuple[list[Compiled], str]:
        """Return values of one type, and it. Raises 42804 in PostgreSQL's words."""
        types = [item.type for item in items]
        common = common_type(types)
        if common is None:
            index = first_misfit(types)
            first = common_type(types[:index]) if any(type_ != "unknown" for type_ in types[:index]) else types[0]
            words = f"{construct} types {t.sql_name(str(first))} and {t.sql_name(types[index])} cannot be matched"
            raise said("42804", words, items[index].position)
        return [self.coerced(item, common) for item in items], common

    # --- literals -----------------------------------------------------------------------------------------------------

    def _number(self, node: Node) -> Compiled:
        text = node.value
        digits = text.lstrip("-")
        if digits.isdecimal() or digits[:2] in ("0x", "0o", "0b"):
            number = int(digits[:1001], 0 if digits[:2] in ("0x", "0o", "0b") else 10) * (-1 if text[0] == "-" else 1)
            for type_ in ("int4", "int8"):
                if -t.WHOLE[type_] <= number < t.WHOLE[type_]:
                    return constant(number, type_, node.position)
            return constant(Decimal(number), "numeric", node.position)
        return constant(t.read_numeric(text), "numeric", node.position)

    def _string(self, node: Node) -> Compiled:
        text = node.value
        return Compiled("unknown", lambda row: text, node.position, text)

    def _bits(self, node: Node) -> Compiled:
        return constant(t.read(node.value, "bit", self.context, node.position), "bit", node.position)

    def _truth(self, node: Node) -> Compiled:
        return constant(node.value, "unknown" if node.value is None else "bool", node.position)

    def _bracket(self, node: Node) -> Compiled:
        return self.compile(node.items[0])

    def _constant(self, node: Node) -> Compiled:
        name = {"user": "current_user", "current_role": "current_user", "current_catalog": "current_database"}.get(
            node.value, node.value
        )
        called, _, result = choose(name, (), node.position, is_operator=False)
        return Compiled(result, lambda row: called.call(self.context), node.position)

    # --- casts --------------------------------------------------------------------------------------------------------

    def _type(self, name: TypeName) -> str:
        if name.schema not in ("", "pg_catalog", "information_schema"):
            raise said("3F000", f'schema "{name.schema}" does not exist', name.position)
        type_ = name.name.strip('"')
        if name.schema == "information_schema":
            type_ = DOMAINS.get(type_, f"{name.schema}.{type_}")
        if not t.exists(type_) or type_ in ("unknown", "record"):
            base = type_.removeprefix("_")
            if t.exists(base) or name.name in ("serial", "bigserial"):
                raise Elsewhere
            raise said("42704", f'type "{base}{"[]" * type_.startswith("_")}" does not exist', name.position)
        return type_

    def _cast(self, node: Node) -> Compiled:
        modifier = t.modifier(self._type(node.value), node.value.sizes, node.value.fields, node.value.position)
        item = self._converted(node)
        return item if modifier < 0 else replace(item, modifier=modifier)

    def _converted(self, node: Node) -> Compiled:
        type_, to, inner, spent = self._type(node.value), node.value, node.items[0], self.context.spent
        if inner.kind == "array" and type_.startswith("_"):
            item = self._array(inner, type_[1:])
        else:
            item = self.compile(inner)
        if item.literal is not None:
            has_fields = type_ == "interval" and bool(to.fields)
            value = (
                read_interval(item.literal, item.position, to.fields)
                if has_fields
                else t.read(item.literal, type_, self.context, item.position)
            )
            return constant(conversions.sized(value, type_, to.sizes), type_, item.position)
        if item.parameter:
            item = self._bound(item.parameter, type_, item.position)
        if item.type == type_:
            run = item.run
            return (
                Compiled(
                    type_,
                    lambda row: spent(conversions.sized(run(row), type_, to.sizes)),
                    item.position,
                    rows=item.rows,
                )
                if to.sizes
                else item
            )
        if item.rows and not to.sizes:
            return self.coerced(item, type_)
        if item.rows:
            raise Elsewhere
        if to.parameter and not t.assignable(item.type, type_):
            words = f"parameter ${to.parameter} of type {t.sql_name(item.type)} cannot be coerced to the expected type"
            hint = "You will need to rewrite or cast the expression."
            raise said("42804", f"{words} {t.sql_name(type_)}", node.position, hint)
        if not t.castable(item.type, type_):
            raise said("42846", f"cannot cast type {t.sql_name(item.type)} to {t.sql_name(type_)}", node.position)
        if item.type in ("int4", "int8") and type_ in t.BITS:
            return self._as_bits(item, to, type_)
        if item.type == "unknown":
            return Compiled(type_, item.run, item.position)
        convert, inner_run = conversions.converter(item.type, type_, self.context), item.run
        return Compiled(
            type_,
            lambda row: (
                None if (v := inner_run(row)) is None else spent(conversions.sized(convert(v), type_, to.sizes))
            ),
            item.position,
        )

    def _as_bits(self, item: Compiled, to: TypeName, type_: str) -> Compiled:
        size, run, spent = (to.sizes or (1,))[0], item.run, self.context.spent
        if not 0 < size <= 10_000 or type_ != "bit":
            raise Elsewhere
        return Compiled(
            type_, lambda row: None if (v := run(row)) is None else spent(f"{v % (1 << size):0{size}b}"), item.position
        )

    def _collate(self, node: Node) -> Compiled:
        typed_ones = {*static("pg_collation")["collname"], "C", "POSIX", "default", "ucs_basic"}
        if node.value not in typed_ones:
            raise said("42704", f'collation "{node.value}" for encoding "UTF8" does not exist', node.position)
        item = self.value(node.items[0])
        if item.type != "unknown" and item.type not in t.TEXTS:
            raise said("42804", f"collations are not supported by type {t.sql_name(item.type)}", node.position)
        return self.coerced(item, "text") if item.type == "unknown" else item

    # --- calls and operators ------------------------------------------------------------------------------------------

    def _call(self, node: Node) -> Compiled:
        name, arguments = node.value.removeprefix(BY_WORDS), list(node.items)
        if arguments and arguments[-1].kind == "schema":
            raise said("3F000" if arguments[-1].value not in ("public", "information_schema") else "42883",
                       f'schema "{arguments[-1].value}" does not exist' if arguments[-1].value not in ("public",
                       "information_schema")
                       else self._missing(f"{arguments[-1].value}.{name}", arguments[:-1]), node.position)  # fmt: skip
        if name in denied_functions():
            raise said("42501", f"permission denied for function {name}")
        if name == "grouping":
            return self._grouping(node)
        if not is_registered(name):
            if len(arguments) == 1 and t.exists(name) and arguments[0].kind != "argument":
                return self._cast(Node("cast", node.position, TypeName(name, node.position), arguments))
            if name in record_functions():
                raise said("42601", NO_COLUMNS, node.position)
            if name in known_functions():
                self._refuse_xml(name, arguments)
                raise not_computed(name, node.position)
            choose(node.value, [self.value(argument).type for argument in arguments], node.position, is_operator=False)
        if REGISTER[name][0].kind == "aggregate":
            if not arguments and any(not signature.arguments for signature in REGISTER[name]):
                words = f"{name}(*) must be used to call a parameterless aggregate function"
                raise said("42809", words, node.position)
            return self._aggregate(node)
        if REGISTER[name][0].kind == "window":
            raise said("42809", f"window function {name} requires an OVER clause", node.position)
        if any(argument.kind == "argument" for argument in arguments):
            arguments = in_order(name, arguments)
        if arguments and arguments[-1].kind == "spread":
            return self._spread(name, arguments, node.position)
        items = [self.compile(argument) for argument in arguments]
        return self._applied(node.value, items, node.position, is_operator=False)

    def _refuse_xml(self, name: str, arguments: Sequence[Node]) -> None:
        if "xml" in name or name.startswith("xpath"):
            for argument in arguments:
                self.value(argument)
            raise said("0A000", "unsupported XML feature")

    def _missing(self, name: str, arguments: Sequence[Node]) -> str:
        types = ", ".join(t.sql_name(self.value(argument).type) for argument in arguments)
        return f"function {name}({types}) does not exist"

    def _operator(self, node: Node) -> Compiled:
        name = "<>" if node.value == "!=" else node.value
        if len(node.items) == 2 and node.items[0].kind == "row" and node.items[1].kind in ("row", "subquery"):
            return self._rows_compared(name, node)
        items = [self.compile(item) for item in node.items]
        return self._operated(name, items, node.position)

    def _operated(self, name: str, items: list[Compiled], position: int) -> Compiled:
        return self._applied(name, items, position, is_operator=True)

    def _applied(self, name: str, items: list[Compiled], position: int, is_operator: bool) -> Compiled:
        if any(item.type == "record" for item in items) and is_operator:
            raise Elsewhere
        signature, expected, result = choose(name, [item.type for item in items], position, is_operator)
        converted = [self.coerced(item, type_) for item, type_ in zip(items, expected, strict=True)]
        makers, runs = list[tuple[Compiled, list[Any]]](), list[Callable[[Row], Any]]()
        for item in converted:
            cell = list[Any]([None])
            makers += [(item, cell)] * item.rows
            runs.append((lambda row, cell=cell: cell[0]) if item.rows else item.run)  # type: ignore[misc]
        call, context = signature.call, self.context
        spent = context.spent
        if signature.typed:
            types = tuple(item.type for item in converted)

            def run(row: Row) -> Any:
                return spent(call(context, types, *[inner(row) for inner in runs]))
        elif signature.strict:
            head = (context,) if signature.context else ()

            def run(row: Row) -> Any:
                values = [inner(row) for inner in runs]
                return (None if not signature.rows else []) if None in values else spent(call(*head, *values))
        else:
            leading = (context,) if signature.context else ()

            def run(row: Row) -> Any:
                return spent(call(*leading, *[inner(row) for inner in runs]))

        start = items[0].position if is_operator and len(items) == 2 else position
        shape = tuple(
            (name, t.element(items[0].type) if type_ == "anyelement" else type_) for name, type_ in signature.shape
        )
        if makers and signature.rows:
            raise Elsewhere
        if makers:
            return Compiled(result, _of_each(run, makers), start, rows=True)
        return Compiled(result, run, start, rows=signature.rows, shape=shape)

    def _rows_compared(self, name: str, node: Node) -> Compiled:
        first, second = node.items
        if len(first.items) != len(second.items):
            raise said("42601", "unequal number of entries in row expressions", node.position)
        if name not in ("=", "<>", "<", "<=", ">", ">="):
            raise Elsewhere
        values = (
            [item if isinstance(item, Compiled) else self.value(item) for item in side.items] for side in node.items
        )
        pairs = list(map(list, zip(*values, strict=True)))
        equal = [self._operated("=", pair, node.position).run for pair in pairs]
        if name in ("=", "<>"):
            return Compiled(
                "bool",
                lambda row: (
                    all_true(test(row) for test in equal)
                    if name == "="
                    else opposite(all_true(test(row) for test in equal))
                ),
                node.position,
            )
        tests = [
            self._operated(name if k == len(pairs) - 1 else name[0], pair, node.position).run
            for k, pair in enumerate(pairs)
        ]

        def run(row: Row) -> Any:
            for same, test in zip(equal, tests, strict=True):
                if (is_same := same(row)) is not True:
                    return None if is_same is None else test(row)
            return tests[-1](row)

        return Compiled("bool", run, node.position)

    def _quantified(self, node: Node) -> Compiled:
        (operator, word), (left, right) = node.value, node.items
        operator, element = "<>" if operator == "!=" else operator, list[Any]([None])
        by_value: Callable[[Row], Any] | None = None
        if right.kind == "gathered" and left.kind != "row" and t.element(self.value(left).type):
            left = Node("row", left.position, None, [left])  # rows of one array each
            node = replace(node, items=[left, right])
        if left.kind == "row" and right.kind == "gathered" and (operator, word) == ("=", "any"):
            listed, test = self._row_tests(node, element)
        else:
            value, array = self._value_and_array(node)
            item = Compiled(t.element(array.type), lambda row: element[0], right.position)
            comparison = self._operated(operator, [value, item], node.position)
            if comparison.type != "bool":
                raise said("42809", "op ANY/ALL (array) requires operator to yield boolean", node.position)
            listed, test = array.run, comparison.run
            by_value = value.run if (operator, word) == ("=", "any") and {value.type, item.type} <= HASHED else None
        members: tuple[Any, set[Any]] = (None, set())

        def run(row: Row) -> Any:
            nonlocal members
            items = listed(row)
            if items is None:
                return None
            if by_value is not None:
                if items is not members[0]:
                    members = items, set(self.context.spent(list(flat(items))))
                bounds.step()
                if (sought := by_value(row)) is None or sought not in members[1]:
                    return None if None in members[1] or (sought is None and members[1]) else False
                return True
            results = list[Any]()
            for item in self.context.spent(list(flat(items))):
                element[0] = item
                results.append(test(row))
            return all_true(results) if word == "all" else opposite(all_true(map(opposite, results)))

        return Compiled("bool", run, node.position)

    def _row_tests(self, node: Node, element: list[Any]) -> tuple[Callable[[Row], Any], Callable[[Row], Any]]:
        """Return the rows of a question, and whether the one in `element` has the values of the row on the left."""
        raise Elsewhere

    def _value_and_array(self, node: Node) -> tuple[Compiled, Compiled]:
        value, array = map(self.value, node.items)
        if array.type == "unknown":
            array = self.coerced(array, "_" + ("text" if value.type == "unknown" else value.type))
        if not t.element(array.type):
            raise said("42809", "op ANY/ALL (array) requires array on right side", node.position)
        return value, array

    # --- conditions ---------------------------------------------------------------------------------------------------

    def _not(self, node: Node) -> Compiled:
        run = self.truth(node.items[0], "NOT").run
        return Compiled("bool", lambda row: opposite(run(row)), node.position)

    def _and(self, node: Node) -> Compiled:
        tests = [self.truth(item, "AND").run for item in node.items]
        return Compiled("bool", lambda row: all_true(test(row) for test in tests), node.position)

    def _or(self, node: Node) -> Compiled:
        tests = [self.truth(item, "OR").run for item in node.items]
        return Compiled("bool", lambda row: opposite(all_true(opposite(test(row)) for test in tests)), node.position)

    def _is(self, node: Node) -> Compiled:
        word, negated = node.value
        if word == "null":
            run = self.value(node.items[0]).run
            return Compiled("bool", lambda row: t.is_null(run(row), negated), node.position)
        run = self.truth(node.items[0], f"IS {'NOT ' * negated}{word.upper()}").run
        expected = {"true": True, "false": False, "unknown": None}[word]
        return Compiled("bool", lambda row: (run(row) is expected) != negated, node.position)

    def _distinct(self, node: Node) -> Compiled:
        if all(item.kind == "row" for item in node.items):
            first, second = node.items
            parts = [
                self._distinct(Node("distinct", node.position, False, [a, b])).run
                for a, b in zip(first.items, second.items, strict=True)
            ]
            return Compiled("bool", lambda row: any(part(row) for part in parts) != node.value, node.position)
        left, right = (self.value(item) for item in node.items)
        equal = self._operated("=", [left, right], node.position).run

        def run(row: Row) -> bool:
            nulls = (left.run(row) is None) + (right.run(row) is None)
            return bool((nulls == 1 or (nulls == 0 and not equal(row))) != node.value)

        return Compiled("bool", run, node.position)

    def _between(self, node: Node) -> Compiled:
        negated, symmetric = node.value
        value, low, high = (self.value(item) for item in node.items)

        def inside(first: Compiled, second: Compiled) -> Callable[[Row], Any]:
            above = self._operated(">=", [value, first], node.position).run
            below = self._operated("<=", [value, second], node.position).run
            return lambda row: all_true((above(row), below(row)))

        tests = [inside(low, high)] + ([inside(high, low)] if symmetric else [])
        return Compiled(
            "bool",
            lambda row: signed(opposite(all_true(opposite(test(row)) for test in tests)), negated),
            node.position,
        )

    def _in(self, node: Node) -> Compiled:
        left, *rest = node.items
        if left.kind == "row":
            tests = [self._rows_compared("=", Node("operator", node.position, "=", [left, item])).run for item in rest]
        else:
            value, items = self.value(left), [self.value(item) for item in rest]
            common = common_type([value.type, *(item.type for item in items)])
            if common is not None and len(items) > 1:
                items = [self.coerced(item, common) if item.type == "unknown" else item for item in items]
            if len({item.type for item in items}) == 1 and all(item.kind in ("string", "number") for item in rest):
                _, expected, _ = choose("=", [value.type, items[0].type], node.position, is_operator=True)
                if set(expected) <= HASHED:
                    return self._in_values(value, items, expected, node)
            tests = [self._operated("=", [value, item], node.position).run for item in items]
        return Compiled(
            "bool",
            lambda row: signed(opposite(all_true(opposite(test(row)) for test in tests)), node.value),
            node.position,
        )

    def _in_values(self, value: Compiled, items: list[Compiled], expected: Sequence[str], node: Node) -> Compiled:
        """Return whether a value is one of literals, which are looked up."""
        run, spent = self.coerced(value, expected[0]).run, self.context.spent
        values = {self.coerced(item, expected[1]).run(()) for item in items}
        return Compiled(
            "bool", lambda row: None if (v := spent(run(row))) is None else (v in values) != node.value, node.position
        )

    def _like(self, node: Node) -> Compiled:
        operator, negated = node.value
        items = [self.value(item) for item in node.items]
        run = self._applied(f"like {operator}", items, node.position,
        is_operator=False).run if len(items) == 3 or operator == "similar" else (
            self._operated(operator, items, node.position).run)  # fmt: skip
        return Compiled("bool", lambda row: signed(run(row), negated), node.position)

    # --- choices and collections --------------------------------------------------------------------------------------

    def _case(self, node: Node) -> Compiled:
        subject, default, starts = node.value
        tests, values = list[Callable[[Row], Any]](), list[Compiled]()
        whole = None if subject is None else self.value(subject)
        whole = whole and self.coerced(whole, "text" if whole.type == "unknown" else whole.type)
        for start, (condition, value) in zip(starts, node.items, strict=False):
            if whole is None:
                tests.append(self.truth(condition, "CASE/WHEN").run)
            else:
                tests.append(self._operated("=", [whole, self.value(condition)], start).run)
            values.append(self.value(value, "CASE"))
        last = Compiled("unknown", lambda row: None, node.position) if default is None else self.value(default, "CASE")
        # PostgreSQL matches the type of ELSE first.
        (*_,), common = self.matched([last, *values], "CASE")
        results = [self.coerced(value, common).run for value in values]
        otherwise = self.coerced(last, common).run

        def run(row: Row) -> Any:
            for test, result in zip(tests, results, strict=True):
                if test(row) is True:
                    return result(row)
            return otherwise(row)

        return Compiled(common, run, node.position)

    def _coalesce(self, node: Node) -> Compiled:
        items = [self.value(item, "COALESCE" if node.value == "coalesce" else "") for item in node.items]
        if node.value == "nullif":
            _, expected, _ = choose("=", [item.type for item in items], node.position, is_operator=True)
            equal, first = self._operated("=", items, node.position).run, self.coerced(items[0], expected[0])
            return Compiled(first.type, lambda row: None if equal(row) is True else first.run(row), node.position)
        values, common = self.matched(items, node.value.upper())
        runs = [value.run for value in values]
        present: Callable[[Row], Any] = lambda row: (v for run in runs if (v := run(row)) is not None)  # noqa: E731
        if node.value == "coalesce":
            return Compiled(common, lambda row: next(present(row), None), node.position)
        pick, key = max if node.value == "greatest" else min, self.comparable(common, "a comparison function")
        return Compiled(common, lambda row: pick(present(row), key=key, default=None), node.position)

    def comparable(self, type_: str, needed: str) -> Callable[[Any], Any]:
        """Return the function by whose results values of a type are sorted: `MeasureCompiler` has it."""
        raise Elsewhere

    def _array(self, node: Node, element: str = "") -> Compiled:
        if not node.items:
            if element:
                return constant([], "_" + element, node.position)
            raise said("42P18", "cannot determine type of empty array", node.position,
                       "Explicitly cast to the desired type, for example ARRAY[]::integer[].")  # fmt: skip
        items = [self._array(item, element) if item.kind == "array" else self.value(item) for item in node.items]
        nested = all(item.type.startswith("_") for item in items)
        values, common = self.matched(items, "ARRAY")
        runs = [value.run for value in values]
        if not nested and not t.exists("_" + common):
            raise Elsewhere

        def run(row: Row) -> Any:
            built = self.context.spent([inner(row) for inner in runs])
            if nested and len({len(part) for part in built if part is not None}) > 1:
                raise said("2202E", "multidimensional arrays must have array expressions with matching dimensions")
            return built

        return Compiled(common if nested else "_" + common, run, node.position)

    def _row(self, node: Node) -> Compiled:
        items = [self.value(item) for item in node.items]
        types = tuple("text" if item.type == "unknown" else item.type for item in items)
        runs, spent = [item.run for item in items], self.context.spent
        return Compiled("record", lambda row: t.Record(tuple(spent([run(row) for run in runs])), types), node.position)

    def _subscript(self, node: Node) -> Compiled:
        """Return an element of an array, or a part if one of the brackets behind it has a colon."""
        links, array = [node], node.items[0]
        while array.kind == "subscript":
            links, array = [array, *links], array.items[0]
        whole, cell = self.compile(array), list[Any]([None])
        maker = whole if whole.rows else None
        whole = whole if maker is None else replace(whole, run=lambda row: cell[0], rows=False)
        ends = [[None if end is None else self.value(end) for end in link.items[1:]] for link in links]
        if whole.type == "jsonb" and not any(link.value for link in links):
            for keys in ends:
                whole = self._applied("->", [whole, keys[0]] if keys[0] else [whole], node.position, is_operator=True)
            return whole
        if whole.type == "name":  # a name is an array of characters, which counts from 0
            letters = whole.run
            read: Callable[[Row], Any] = lambda row: None if (v := letters(row)) is None else Vector(v)  # noqa: E731
            whole = Compiled("_char", read, whole.position)
        if whole.type in ("point", "box", "lseg") and len(links) == 1 and ends[0][0] is not None and not links[0].value:
            return self._applied("[]", [whole, ends[0][0]], node.position, is_operator=True)
        if not t.element(whole.type):
            words = f"cannot subscript type {t.sql_name(whole.type)} because it does not support subscripting"
            raise said("42804", words, whole.position)
        runs = [[None if end is None else self.coerced(end, "int4").run for end in pair] for pair in ends]
        has_slice, absent = any(link.value for link in links), [[run is None for run in pair] for pair in runs]

        def picked(row: Row) -> Any:
            values, numbers = whole.run(row), [[None if run is None else run(row) for run in pair] for pair in runs]
            if values is None or [[number is None for number in pair] for pair in numbers] != absent:
                return None
            if not has_slice:
                return element_at(values, [pair[0] for pair in numbers])
            limits = [pair if link.value else (1, pair[0]) for pair, link in zip(numbers, links, strict=True)]
            return part_of(values, limits)

        run = picked if maker is None else _of_each(picked, [(maker, cell)])
        type_ = f"_{t.element(whole.type)}" if has_slice else t.element(whole.type)
        return Compiled(type_, run, node.position, rows=maker is not None)

    # --- parameters ---------------------------------------------------------------------------------------------------

    def _parameter(self, node: Node) -> Compiled:
        type_ = self.context.parameters.setdefault(node.value, "unknown")
        if type_ != "unknown":
            return self._bound(node.value, type_, node.position)
        return Compiled("unknown", lambda row: None, node.position, parameter=node.value)

    def _bound(self, number: int, type_: str, position: int) -> Compiled:
        """Return a parameter as a value of a type, which it has from here on."""
        if self.context.parameters[number] not in ("unknown", type_):
            raise said("42P08", f"inconsistent types deduced for parameter ${number}", position)
        self.context.parameters[number] = type_
        values = self.context.values
        text = None if values is None else values[number - 1]
        return constant(None if text is None else t.read(text, type_, self.context), type_, position)

    # --- what further classes compile ---------------------------------------------------------------------------------

    def _field(self, node: Node) -> Compiled:
        inner, name = node.items[0], node.value
        if inner.kind != "row":
            return self._of_record(self.compile(inner), name, node.position)
        items = inner.items
        if not (name[:1] == "f" and name[1:].isdecimal() and 0 < int(name[1:4]) <= len(items)):
            raise Elsewhere
        return self.value(items[int(name[1:4]) - 1])

    @staticmethod
    def _of_record(item: Compiled, name: str, position: int) -> Compiled:
        """Return a column of a row, or of the rows that a function returns."""
        labels, run = [label for label, _ in item.shape], item.run
        if item.type == "record" and not labels:
            raise said("42703", f'could not identify column "{name}" in record data type', position)
        if item.type != "record":
            raise said(
                "42809",
                f"column notation .{name} applied to type {t.sql_name(item.type)}, which is not a composite type",
                position,
            )
        if name not in labels:
            raise said("42703", f'column "{name}" not found in data type {t.sql_name(item.type)}', position)
        index = labels.index(name)
        type_ = item.shape[index][1]
        if item.rows:
            return Compiled(type_, lambda row: [record.values[index] for record in run(row)], position, rows=True)
        return Compiled(type_, lambda row: None if (record := run(row)) is None else record.values[index], position)

    def _spread(self, name: str, arguments: list[Node], position: int) -> Compiled:
        raise Elsewhere

    def _aggregate(self, node: Node) -> Compiled:
        raise Elsewhere

    _star = _grouping = _argument = _aggregate


def _of_each(run: Callable[[Row], Any], makers: list[tuple[Compiled, list[Any]]]) -> Callable[[Row], list[Any]]:
    """Return a function that returns what one returns for each of the rows that its arguments make, which it reads in cells."""

    def listed(row: Row) -> list[Any]:
        results = list[Any]()
        for values in itertools.zip_longest(*(item.run(row) for item, _ in makers)):
            for (_, cell), value in zip(makers, values, strict=True):
                cell[0] = value
            results.append(run(row))
        return results

    return listed


def constant(value: Any, type_: str, position: int) -> Compiled:
    """Return a value as an expression."""
    return Compiled(type_, lambda row: value, position)
