"""The check of every plan before it is priced: the binder that wrote it may be wrong, and then it is refused here.

Stability, price and engine text follow from the same block, so most mistakes of a binder give a wrong answer at the right price.
The facts on which privacy or access rest are derived again or compared here, from the policy alone; the others cannot do harm:

- `Scan`: compared. The table and its columns exist for the analyst, in the policy's types.
- `Filter` above a `Scan`: compared with the owner's row filter, as it was read when the session was opened.
- `Column`: derived. It is a column of the relation below that exists for the analyst, in its type.
- `Call`, `Window`, `UnitAggregate`: derived. Words are of an allow-list, and the type follows from the arguments, because the
  texts of functions are total only for arguments of their types. `Literal`, offsets: compared, as values of their type.
- `Facts.type`: derived, as above; stability (`told_apart`), casts and sums believe it.
- `Facts.lower`, `upper`: not believed, because every row is clamped to them; compared, as values of the type, in order.
- `Facts.nullable`, `values`, `outside`, `max_total`: not believed. They choose formulas, labels, and clips that the engine does.
- Names in `Project`, `Join`, `Union_`: compared. Each occurs once, none is hidden, and sides of a union have equal ones.
- Keys of `Join` and `SemiJoin`: derived, as comparable types. `on_unit` and the number of rows that match: derived in
  `plan.stability`, from keys, policy and results. Unit, max_rows and max_groups are not in a plan, but in the policy.
- `ReleasedRows`, `ReleasedValue`: compared. The name is dpsql's own; columns, unique keys and repetitions are compared with the
  rows when they are released (`session.stages`).
- `Key.values`, `Block.combinations`: not believed, because rows outside of them belong to no group (`noise.group_layout`).
  `Key.left`, `whole`, `drops`: not believed, because they choose among released numbers.
- `Measure`: derived. Its terms are those of `aggregates` and `basis`, and only numbers are summed (`sum_terms.summed`).
- `PublicInput.scan`: compared with the policy when it is read (`require_public`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from fractions import Fraction

from dpsql.aggregates.contract import Arguments, aggregate_of
from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.canonical_conditions import filter_condition
from dpsql.functions.sample_statistics import Operands, Statistic, parts_of, statistic_of
from dpsql.functions.signatures import REGISTRY, WrongArguments, call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    OTHER,
    Block,
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Key,
    Literal,
    Measure,
    Plan,
    Project,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    Window,
    literal,
    results_read,
    types_of,
)
from dpsql.plan.stability import owned
from dpsql.policy import Policy, Table

RowFilters = Mapping[str, Expr]
"""The conditions on the rows that exist for an analyst, by table."""
NO_FILTERS: RowFilters = {}
Columns = Mapping[str, Type]
"""The columns of a relation that an expression above it may read, with their types."""

_KEY, _MEASURE, _RESULT, _WINDOW = (re.compile(text) for text in (r"k\d+", r"m\d+", r"dp_[a-z]+_\d+", r"#w\d+"))
_RANKS = frozenset({"row_number", "rank", "dense_rank"})
_NEIGHBOURS = frozenset({"lag", "lead", "first_value"})
_OF_NUMBERS = frozenset({"sum", "avg"})
_OF_ROWS = frozenset({"count", "count_units"})
"""Aggregates of rows, which need no argument."""
_LEAST = {Arguments.PAIR: 2, Arguments.QUANTILE: 2, Arguments.END_ROW: 2, Arguments.SAMPLES: 2}
"""Least number of arguments of a measure, by how the arguments of its aggregate are read (1 for all others)."""
_PYTHON = {
    Type.BOOLEAN: (bool,), Type.INTEGER: (int,), Type.REAL: (Fraction, float, int), Type.TEXT: (str,),
    Type.DATE: (date,), Type.TIMESTAMP: (datetime,),
}  # fmt: skip


def check_plan(plan: Plan, policy: Policy) -> None:
    """Raise InternalError unless the blocks of a plan read no results but those of the plan, and its public inputs are public.
    Each block is checked where it is bounded."""
    for entry in plan.public_inputs:
        require_public(entry.scan, policy)
    if not set(results_read(plan.blocks)) <= {result.name for result in plan.results}:
        raise _wrong("results that it does not have")


def check_block(block: Block, policy: Policy, row_filters: RowFilters = NO_FILTERS) -> None:
    """Raise InternalError unless a block reads only rows and columns that exist for the policy's asker, and every expression has
    the type that it claims. `row_filters`: the asker's conditions (`Policy.row_filter`), as expressions over their tables."""
    check = _Check(policy, row_filters)
    columns = check.columns(block.source)
    _distinct_names(key.name for key in block.keys)
    for key in block.keys:
        _named(_KEY, key.name)
        _check_values(key, check.expression(key.expression, columns))
    for measure in block.measures:
        _named(_MEASURE, measure.name)
        check.measure(measure, columns)


def require_public(scan: Scan, policy: Policy) -> None:
    """Raise InternalError unless a scan is of a public table and of columns that exist for the policy's asker."""
    table = policy.visible.get(scan.table) if isinstance(scan, Scan) else None
    if table is None or not table.public:
        raise _wrong("rows of a table that is not public")
    for column in scan.columns:
        _check_column(column, table)


class _Check:
    """The check of one block. Types of expressions are kept by the identity of expression and columns."""

    def __init__(self, policy: Policy, row_filters: RowFilters) -> None:
        self._policy, self._row_filters = policy, row_filters
        self._checked: dict[tuple[int, int], tuple[Expr, Columns]] = {}

    # --- relations ----------------------------------------------------------------------------------------------------

    def columns(self, node: Relation) -> Columns:
        """Return the columns of a relation that may be read above it. Raises InternalError for a wrong relation."""
        if isinstance(node, Scan):
            return self._scan(node, filtered=False)
        if isinstance(node, Filter):
            if isinstance(node.source, Scan) and (required := self._row_filter(node.source.table)) is not None:
                if node.predicate not in (required, filter_condition(required)):
                    raise _wrong("rows that do not exist for the analyst")
                return self._scan(node.source, filtered=True)
            columns = self.columns(node.source)
            self._condition(node.predicate, columns)
            return columns
        if isinstance(node, Project):
            columns = self.columns(node.source)
            _own_names(name for name, _ in node.columns)
            return {name: self.expression(expression, columns) for name, expression in node.columns}
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, SemiJoin):
            return self._semi_join(node)
        if isinstance(node, Union_):
            return self._union(node)
        if isinstance(node, ReleasedRows):
            _named(_RESULT, node.name)
            _own_names(column.name for column in node.columns)
            return {column.name: _claimed(column.facts, column.facts.type) for column in node.columns}
        if isinstance(node, Distinct):
            return self._all_columns(node.source, "distinct rows")
        return self._windows(node) if isinstance(node, UnitWindow) else self._per_unit(node)

    def _row_filter(self, table: str) -> Expr | None:
        """Return the asker's condition on the rows of a table, None if all exist."""
        if table not in self._policy.visible:
            raise _wrong("a table that does not exist for the analyst")
        if self._policy.row_filter(table) is None:
            return None
        if table not in self._row_filters:
            raise _wrong("a row filter that was not read")
        return self._row_filters[table]

    def _scan(self, node: Scan, filtered: bool) -> Columns:
        required = None if filtered else self._row_filter(node.table)
        if required is not None and filter_condition(required) != literal(True):
            raise _wrong("rows that do not exist for the analyst")
        table, visible = self._policy.tables[node.table], self._policy.visible[node.table]
        _distinct_names(column.name for column in node.columns)
        for column in node.columns:
            _check_column(column, table)
        return {column.name: column.facts.type for column in node.columns if column.name in visible.columns}

    def _join(self, node: Join) -> Columns:
        if node.kind not in ("inner", "left"):
            raise _wrong(f"a join of the kind {node.kind}")
        left, right = (
            {prefix + name: type_ for name, type_ in self.columns(side).items()}
            for prefix, side in (("a.", node.left), ("b.", node.right))
        )
        for a, b in node.keys:
            self._comparable(a, left, b, right)
        return {**left, **right}

    def _semi_join(self, node: SemiJoin) -> Columns:
        left, right = self.columns(node.left), self.columns(node.right)
        for a, b in node.keys:
            self._comparable(a, left, b, right)
        if node.in_list and not node.on_unit and len(node.keys) != 1:
            raise _wrong("a list with several keys")
        if node.condition is not None:
            self._condition(node.condition, {**left, **{OTHER + name: type_ for name, type_ in right.items()}})
        return left

    def _union(self, node: Union_) -> Columns:
        first, *rest = (self._all_columns(source, "rows of a union") for source in node.sources)
        if any(list(other.items()) != list(first.items()) for other in rest):
            raise _wrong("a union of different columns")
        return first

    def _all_columns(self, source: Relation, rows: str) -> Columns:
        """Return the columns of a relation whose rows are told apart by all of them. Raises InternalError if one is hidden."""
        columns = self.columns(source)
        if types_of(source).keys() != columns.keys():
            raise _wrong(f"{rows} with columns that do not exist for the analyst")
        return columns

    def _per_unit(self, node: UnitAggregate) -> Columns:
        columns = self.columns(node.source)
        if not owned(node.source, self._policy):
            raise _wrong("rows of one unit that belong to no unit")
        _own_names(("u", *(name for name, _ in node.keys), *(column[0] for column in node.columns)))
        types = self._unit_column(node.source)
        types |= {name: self.expression(key, columns) for name, key in node.keys}
        for name, word, argument, condition, facts in node.columns:
            types[name] = self._of_unit(word, argument, condition, facts, columns)
        return types

    def _windows(self, node: UnitWindow) -> Columns:
        columns = self.columns(node.source)
        if not owned(node.source, self._policy):
            raise _wrong("windows of one unit over rows that belong to no unit")
        _distinct_names(window.name for window in node.windows)
        types = dict(columns)
        for window in node.windows:
            _named(_WINDOW, window.name)
            if window.name in types_of(node.source):
                raise _wrong("two columns of one name")
            types[window.name] = self._window(window, columns)
        return types

    def _window(self, window: Window, columns: Columns) -> Type:
        for part in (*window.keys, *(item.by for item in window.order)):
            self.expression(part, columns)
        if window.word not in _RANKS | _NEIGHBOURS:
            return self._of_unit(window.word, window.argument, window.filter, window.facts, columns)
        argument = None if window.argument is None else self.expression(window.argument, columns)
        type_ = Type.INTEGER if window.word in _RANKS else argument
        if (argument is None) != (window.word in _RANKS) or window.filter is not None or type(window.offset) is not int:
            raise _wrong(f"a window function {window.word} with other arguments")
        return _claimed(window.facts, type_)

    def _of_unit(
        self, word: str, argument: Expr | None, condition: Expr | None, facts: Facts, columns: Columns
    ) -> Type:
        """Return the type of an exact aggregate over rows of one unit."""
        if condition is not None:
            self._condition(condition, columns)
        of_unit = aggregate_of(word).of_unit
        if of_unit is None or (argument is None and word != "count"):
            raise _wrong(f"an aggregate {word} of one unit")
        if argument is not None:
            self.expression(argument, columns)
        if word in _OF_NUMBERS and (argument is None or not _is_bounded_number(argument)):
            raise _wrong("a sum of one unit over values that are no bounded numbers")
        measure = Measure("", word, () if argument is None else (argument,), False, condition)
        return _claimed(facts, of_unit(measure, 1).type)

    def _unit_column(self, node: Relation) -> dict[str, Type]:
        """Return the column of the key of the unit to which rows belong, that of their first table; none if it is hidden."""
        while not isinstance(node, Scan):
            if isinstance(node, (Join, SemiJoin)):
                node = node.left
            elif isinstance(node, Union_):
                node = node.sources[0]
            elif isinstance(node, ReleasedRows):
                raise _wrong("the unit of a result")
            else:
                node = node.source
        hops, column = self._policy.unit_joins(node.table), self._policy.unit_column(node.table)
        table = hops[-1][2] if hops else node.table
        if column is None:
            raise _wrong("the unit of rows that belong to no unit")
        visible = self._policy.visible.get(table)
        is_hidden = visible is None or column not in visible.columns
        return {} if is_hidden else {"u": Type(self._policy.tables[table].columns[column].type)}

    # --- expressions --------------------------------------------------------------------------------------------------

    def measure(self, measure: Measure, columns: Columns) -> None:
        _check_arity(measure)
        samples = any(statistic is not None for statistic in map(_first_statistic, measure.arguments))
        for argument in measure.arguments:
            self.expression(argument, columns if not samples else {}, columns if samples else None)
        if measure.filter is not None:
            self._condition(measure.filter, columns)

    def expression(self, node: Expr, columns: Columns, rows: Columns | None = None) -> Type:
        """Return the type of an expression. `rows`: columns that statistics of samples read; None where there are none."""
        identity = (id(node), id(columns))
        if identity not in self._checked:
            self._check_expression(node, columns, rows)
            self._checked[identity] = (node, columns)
        return node.facts.type

    def _check_expression(self, node: Expr, columns: Columns, rows: Columns | None) -> None:
        if isinstance(node, Column):
            if node.name not in columns:
                raise _wrong("a column that does not exist for the analyst")
            _claimed(node.facts, columns[node.name])
        elif isinstance(node, Literal):
            _check_literal(node)
        elif not isinstance(node, Call):
            _named(_RESULT, node.name)
            _claimed(node.facts, node.facts.type)
        elif (statistic := _statistic(node)) is not None:
            if rows is None:
                raise _wrong("a statistic of samples among row functions")
            self._statistic(node, statistic, rows)
        else:
            for argument in node.arguments:
                self.expression(argument, columns, rows)
            _claimed(node.facts, _type_of_call(node))

    def _statistic(self, node: Call, statistic: Statistic, rows: Columns) -> None:
        arguments, condition = parts_of(node)
        if len(arguments) != statistic.arity or len(node.arguments) > statistic.arity + 1:
            raise _wrong(f"a statistic {statistic.word} with other arguments")
        for argument in arguments:
            self.expression(argument, rows)
        numbers = arguments[: 2 if statistic.operands is Operands.PAIR else 1]
        of_numbers = statistic.operands in (Operands.NUMBER, Operands.PAIR, Operands.QUANTILE)
        if of_numbers and not all(map(_is_bounded_number, numbers)):
            raise _wrong(f"a statistic {statistic.word} of values that are no bounded numbers")
        if statistic.operands is Operands.QUANTILE and not isinstance(arguments[1], Literal):
            raise _wrong("a quantile that depends on rows")
        if condition is not None:
            self._condition(condition, rows)
        _claimed(node.facts, statistic.facts.type)

    def _condition(self, node: Expr, columns: Columns) -> None:
        if self.expression(node, columns) not in (Type.BOOLEAN, Type.NULL):
            raise _wrong("a condition that is no truth value")

    def _comparable(self, a: Expr, left: Columns, b: Expr, right: Columns) -> None:
        self.expression(a, left)
        self.expression(b, right)
        _type_of_call(Call("eq", (a, b), Facts(Type.BOOLEAN)))


def _type_of_call(node: Call) -> Type:
    """Return the type that a row function has for its arguments."""
    if node.function not in REGISTRY:
        raise _wrong(f"a row function {node.function}")
    try:
        return call(node.function, *node.arguments).facts.type
    except WrongArguments:
        raise _wrong(f"a row function {node.function} with other arguments") from None


def _statistic(node: Expr) -> Statistic | None:
    try:
        return statistic_of(node)
    except KeyError:
        raise _wrong("a statistic of samples that does not exist") from None


def _first_statistic(node: Expr) -> Statistic | None:
    """Return a statistic of samples that an expression calls, None if it calls none."""
    if not isinstance(node, Call):
        return None
    return _statistic(node) or next(filter(None, map(_first_statistic, node.arguments)), None)


def _is_bounded_number(node: Expr) -> bool:
    return node.facts.type.numeric and node.facts.bounded


def _check_column(column: Column, table: Table) -> None:
    declared = table.columns.get(column.name)
    if declared is None:
        raise _wrong("a column that does not exist for the analyst")
    _claimed(column.facts, Type(declared.type))


def _claimed(facts: Facts, type_: Type | None) -> Type:
    """Return the type of `facts`. Raises InternalError unless it is `type_`, and the bounds are in order."""
    if facts.type is not type_:
        raise _wrong("an expression of another type")
    _check_bounds(facts)
    return facts.type


def _check_bounds(facts: Facts) -> None:
    """Raise InternalError for bounds that are no values of the type, or the lower of which is above the upper."""
    ends = [end for end in (facts.lower, facts.upper) if end is not None]
    kinds = (Fraction, int) if facts.type.numeric else _PYTHON.get(facts.type, ())
    if not all(isinstance(end, kinds) and isinstance(end, datetime) is (facts.type is Type.TIMESTAMP) for end in ends):
        raise _wrong("bounds of another type")
    if len(ends) == 2 and ends[0] > ends[1]:
        raise _wrong("a lower bound above the upper one")


def _check_literal(node: Literal) -> None:
    value, type_ = node.value, node.facts.type
    if value is None:
        return
    right = isinstance(value, _PYTHON.get(type_, ())) and isinstance(value, bool) is (type_ is Type.BOOLEAN)
    if not right or isinstance(value, datetime) is not (type_ is Type.TIMESTAMP):
        raise _wrong("a constant of another type")


def _check_arity(measure: Measure) -> None:
    """Raise InternalError for a measure with too few arguments, or others than bounded numbers where numbers are read."""
    rules = set(aggregate_of(measure.aggregate).spellings.values())
    least = 0 if measure.aggregate in _OF_ROWS else max((_LEAST.get(rule, 1) for rule in rules), default=1)
    if len(measure.arguments) < least:
        raise _wrong(f"an aggregate {measure.aggregate} without its arguments")
    numbers = measure.arguments[: 2 if Arguments.PAIR in rules else 1 if Arguments.NUMBER in rules else 0]
    if not all(map(_is_bounded_number, numbers)):
        raise _wrong(f"an aggregate {measure.aggregate} of values that are no bounded numbers")
    facts = measure.arguments[0].facts if Arguments.QUANTILE in rules else None
    if facts is not None and (facts.type.numeric or facts.type.temporal) and not facts.bounded:
        raise _wrong("a quantile of values without bounds")


def _check_values(key: Key, type_: Type) -> None:
    """Raise InternalError for public values of a key that are no values of its type."""
    kinds = set(map(type, key.values or ())) - {type(None)}
    if not kinds <= set(_PYTHON.get(type_, ())):
        raise _wrong("public values of another type")


def _own_names(names: Iterable[str]) -> None:
    """Raise InternalError for a name that occurs twice, or that may be one of the emitter's own columns."""
    listed = list(names)
    if any(name.startswith("#") for name in listed):
        raise _wrong("a column with a hidden name")
    _distinct_names(listed)


def _distinct_names(names: Iterable[str]) -> None:
    """Raise InternalError for a name that occurs twice; engines fold names to lower case."""
    folded = [name.lower() for name in names]
    if len(set(folded)) < len(folded):
        raise _wrong("two columns of one name")


def _named(pattern: re.Pattern[str], name: str) -> None:
    if pattern.fullmatch(name) is None:
        raise _wrong("a part of a plan with another name")


def _wrong(part: str) -> Error:
    return refuse("internal", what=f"a plan with {part}")
