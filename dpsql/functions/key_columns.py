"""What keys read of the base columns of a relation, brought up to the relation's rows as further columns.

A key that a subquery computes is one column of the relation, which no longer shows what it was computed from. Two facts about
that are brought up from where the base columns are read:

- `within_domains`: whether all of them lie within the policy's domains. A row of which a public key reads another value belongs
  to no group, even if a function (CASE, `coalesce`, `n > 5`) maps that value to a listed one.
- `labelled`: the value of the expression with labels (policy key `outside`) in place of other values, which is the key.

Both are functions of the row alone, so that no row decides about the group of another row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, time
from typing import Any

from dpsql.functions.public_domains import as_key, labelled_column
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Facts, Type, hull
from dpsql.plan.origins import COUNTS, UnknownOrigin, branches
from dpsql.plan.plan import (
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Key,
    Literal,
    Project,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    literal,
    names_read,
    types_of,
)
from dpsql.policy import Policy
from dpsql.storage.records import dataclass, replace

_TRUTH = Facts(Type.BOOLEAN, nullable=False)
_ANY = Facts(Type.NULL)


def within_domains(source: Relation, keys: Iterable[Key], policy: Policy) -> Relation:
    """Return the rows of `source` of which no public key reads a value outside a domain. Nothing is added for keys that are
    columns: no value outside is among theirs, except NULL, which an outer join adds to a column that never has it."""
    public = [(key.expression, key.values) for key in keys if key.values is not None]
    names = {name for expression, _ in public for name in names_read(expression)}
    guards = _Guards(policy)
    guarded, origins = guards.followed(source, names)
    conditions: dict[Expr, None] = {}
    for expression, values in public:
        column = labelled_column(expression) or expression
        base = origins[column.name].column if isinstance(column, Column) else None
        if base is None or (None in values and not base.facts.nullable):
            condition = guards.of_expression(expression, origins)
            conditions |= {} if condition is None else {condition: None}
    return Filter(guarded, _all(conditions)) if conditions else source


def labelled(
    source: Relation, names: Iterable[str], part: Relation | None = None
) -> tuple[Relation, dict[str, Expr], Relation | None]:
    """Return a relation with the rows of `source`, the expressions over it that stand for computed columns `names` in keys (none
    for columns that read no labels), and what stands in it for `part` of the source."""
    labels = _Labels() if part is None else _LabelsAround(part)
    relation, origins = labels.followed(source, set(names))
    computed: dict[str, Expr] = {name: origin.value for name, origin in origins.items() if origin.value is not None}
    return (relation, computed, labels.new_part) if computed else (source, {}, part)


_SHOWN = frozenset(("coalesce", "case", "upper", "lower", "concat", "concat_ws", "to_text"))
"""Functions in whose result a label that is the argument can still be recognised."""

_LONG = 100


def labels_used(source: Relation, key: Expr) -> dict[str, Any]:
    """Return the labels, by column of the policy, with which a key computes as if they were values (comparisons, LIKE, numbers),
    so that the group of other values is not recognisable."""
    try:
        written = [branch.written(key) for branch in branches(source)]
    except UnknownOrigin:
        return {}
    return {name: label for expression in written for name, label in _labels_within(expression, True)}


def _labels_within(expression: Expr, unchanged: bool) -> Iterator[tuple[str, Any]]:
    column = labelled_column(expression)
    if column is not None:
        if not unchanged:
            yield column.name.rpartition(".")[2], column.facts.outside
    elif isinstance(expression, Call):
        recognisable = unchanged and (expression.function in _SHOWN or _is_long_part(expression))
        last = len(expression.arguments) - 1
        for index, argument in enumerate(expression.arguments):
            tested = expression.function == "case" and index % 2 == 0 and index < last
            yield from _labels_within(argument, recognisable and not tested)


def _is_long_part(call: Call) -> bool:
    """Return whether a call takes so many first characters of a text that no label is cut (`row_costs.part_read`)."""
    most = call.arguments[1] if call.function == "left" else None
    return isinstance(most, Literal) and most.value is not None and most.value >= _LONG


@dataclass(frozen=True)
class _Origin:
    """Origin of a relation's column. `column`: the column under its name here, with the facts of the base column that it is read
    from unchanged (None: it is computed); `value`: the column that is brought up for it (None: there is none)."""

    column: Column | None = None
    value: Column | None = None

    def named(self, name: str, optional: bool = False) -> _Origin:
        """Return the origin under another name; `optional`: of rows that may have no partner."""
        column = self.column and Column(
            name, replace(self.column.facts, nullable=optional or self.column.facts.nullable)
        )
        return replace(self, column=column)


_NOTHING = _Origin()
_Origins = dict[str, _Origin]


class _Followed(ABC):
    """What is brought up of columns, from base tables through relations."""

    suffix: str

    @abstractmethod
    def of_column(self, column: Column) -> Expr | None:
        """Return what is brought up of a base column; None for nothing."""

    @abstractmethod
    def of_expression(self, expression: Expr, origins: Mapping[str, _Origin]) -> Expr | None:
        """Return what is brought up of an expression over columns with these origins; None for nothing."""

    @abstractmethod
    def of_source(self, column: Column) -> Expr:
        """Return what stands beside other sources of a union for a column of which nothing is brought up."""

    @abstractmethod
    def below(self, source: Relation, values: Sequence[Expr]) -> Relation | None:
        """Return the rows below a grouping, above which `values` cannot be brought; None: as they are."""

    @abstractmethod
    def reads(self, node: Scan) -> bool:
        """Return whether columns of a table have labels or domains."""

    def of_partner(self, side: Relation, origins: _Origins) -> tuple[Relation, _Origins]:
        """Return the side of an outer join that may have no row, and its columns' origins, with what the join itself hides."""
        return side, origins

    def brought_up(self, origin: _Origin) -> Expr | None:
        """Return what is brought up of a column."""
        return origin.value if origin.column is None else self.of_column(origin.column)

    def followed(self, node: Relation, names: AbstractSet[str]) -> tuple[Relation, _Origins]:
        """Return a relation with the rows and columns of `node`, perhaps more columns, and the origins of the columns `names`."""
        if isinstance(node, (Scan, ReleasedRows)):
            read = isinstance(node, Scan) and self.reads(node)
            return node, {column.name: _Origin(column) if read else _NOTHING for column in node.columns}
        if isinstance(node, Filter):
            source, origins = self.followed(node.source, names)
            return replace(node, source=source), origins
        if isinstance(node, SemiJoin):
            left, origins = self.followed(node.left, names)
            return replace(node, left=left), origins
        if isinstance(node, Project):
            return self._project(node, names)
        if isinstance(node, Join):
            return self._join(node, names)
        if isinstance(node, Union_):
            return self._union(node, names)
        if isinstance(node, Distinct):
            source, origins = self._grouped(node.source, {name: Column(name, _ANY) for name in names})
            return replace(node, source=source), origins
        if isinstance(node, UnitAggregate):
            source, origins = self._grouped(node.source, {name: key for name, key in node.keys if name in names})
            results = {name: _result(name, word, facts) for name, word, _, _, facts in node.columns}
            return replace(node, source=source), {"u": _NOTHING, **results, **origins}
        source, origins = self.followed(node.source, names - {window.name for window in node.windows})
        results = {window.name: _result(window.name, window.word, window.facts) for window in node.windows}
        return replace(node, source=source), {**origins, **results}

    def _grouped(self, source: Relation, keys: Mapping[str, Expr]) -> tuple[Relation, _Origins]:
        """Return the rows below a grouping by `keys`, and the origins of these."""
        rows, below = self.followed(source, {name for key in keys.values() for name in names_read(key)})
        origins = {name: _unchanged(key, below).named(name) for name, key in keys.items()}
        values = [self.of_expression(key, below) for name, key in keys.items() if origins[name].column is None]
        ending = [value for value in values if value is not None]
        return (self.below(rows, ending) if ending else None) or source, origins

    def _project(self, node: Project, names: AbstractSet[str]) -> tuple[Relation, _Origins]:
        items = [(name, expression) for name, expression in node.columns if name in names]
        source, below = self.followed(node.source, {name for _, item in items for name in names_read(item)})
        origins, more = {}, []
        for name, expression in items:
            origins[name] = _unchanged(expression, below).named(name)
            value = None if origins[name].column is not None else self.of_expression(expression, below)
            if value is not None:
                origins[name] = _Origin(value=Column(name + self.suffix, value.facts))
                more.append((name + self.suffix, value))
        return (Project(source, (*node.columns, *more)) if more else node), origins

    def _join(self, node: Join, names: AbstractSet[str]) -> tuple[Relation, _Origins]:
        origins: _Origins = {}
        sides = {}
        for prefix, side in (("a.", node.left), ("b.", node.right)):
            optional = prefix == "b." and node.kind == "left"
            sides[prefix], below = self.followed(side, {name[2:] for name in names if name.startswith(prefix)})
            if optional:
                sides[prefix], below = self.of_partner(sides[prefix], below)
            for name, origin in below.items():
                value = origin.value and Column(prefix + origin.value.name, origin.value.facts)
                if value is not None and optional:
                    value = replace(value, facts=replace(value.facts, nullable=True))
                origins[prefix + name] = replace(origin.named(prefix + name, optional), value=value)
        return replace(node, left=sides["a."], right=sides["b."]), origins

    def _union(self, node: Union_, names: AbstractSet[str]) -> tuple[Relation, _Origins]:
        """Return the union, with one more column where a source brings one up, or where base columns differ."""
        sources = [source for source in node.sources if isinstance(source, Project)]
        if len(sources) < len(node.sources):
            return node, dict.fromkeys(names, _NOTHING)
        columns = [name for name, _ in sources[0].columns]
        labels = [[name for name, _ in source.columns] for source in sources]
        followed = [
            self.followed(source, {names_of_source[columns.index(name)] for name in names})
            for source, names_of_source in zip(sources, labels, strict=True)
        ]
        origins: _Origins = {}
        more: dict[str, list[Expr]] = {}
        for name in sorted(names):
            source_names = [names_of_source[columns.index(name)] for names_of_source in labels]
            of_sources = [below[label] for (_, below), label in zip(followed, source_names, strict=True)]
            bases = {origin.column and origin.column.facts for origin in of_sources}
            base = of_sources[0].column
            values = [self.brought_up(origin) for origin in of_sources]
            origins[name] = _Origin(base).named(name) if base is not None and len(bases) == 1 else _NOTHING
            if origins[name].column is None and any(value is not None for value in values):
                more[name] = [
                    self.of_source(Column(label, dict(source.columns)[label].facts)) if value is None else value
                    for source, label, value in zip(sources, source_names, values, strict=True)
                ]
                facts = [value.facts for value in more[name]]
                origins[name] = _Origin(value=Column(name + self.suffix, hull(facts, facts[0].type)))
        if not more:
            return node, origins
        projects = []
        for index, (source, (relation, _)) in enumerate(zip(sources, followed, strict=True)):
            passed = tuple((name, Column(name, expression.facts)) for name, expression in source.columns)
            added = tuple((name + self.suffix, values[index]) for name, values in more.items())
            projects.append(Project(relation, (*passed, *added)))
        return Union_(tuple(projects)), origins


def _result(name: str, word: str, facts: Facts) -> _Origin:
    """Return the origin of a result per unit: numbers of rows always lie within their facts."""
    return _NOTHING if word in COUNTS else _Origin(Column(name, facts))


def _unchanged(expression: Expr, below: Mapping[str, _Origin]) -> _Origin:
    """Return the origin of an expression that is a base column, and no origin for any other."""
    if not isinstance(expression, Column) or below[expression.name].column is None:
        return _NOTHING
    return below[expression.name]


class _Guards(_Followed):
    """Conditions that everything that was read lies within its domain. They are never NULL, except beside a missing partner."""

    suffix = " inside"

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def reads(self, node: Scan) -> bool:
        return self._policy.is_protected(node.table)

    def of_column(self, column: Column) -> Expr | None:
        facts = column.facts
        if facts.type is Type.NULL:
            return None
        inside: list[Expr] = [] if facts.nullable else [Call("not", (_is_null(column),), _TRUTH)]
        if facts.outside is None and facts.values is not None:
            present = [literal(value) for value in facts.values if value is not None]
            inside.append(call("in", column, *present) if present else literal(False))
        elif facts.outside is None and facts.bounded and facts.type is not Type.BOOLEAN:
            inside += [
                call(word, column, _end(end, facts.type)) for word, end in (("ge", facts.lower), ("le", facts.upper))
            ]
        if not inside or not facts.nullable:
            return _all(inside) if inside else None
        return Call("or", (_is_null(column), _all(inside)), _TRUTH)

    def of_expression(self, expression: Expr, origins: Mapping[str, _Origin]) -> Expr | None:
        conditions: dict[Expr, None] = {}
        for name in sorted(names_read(expression)):
            condition = self.brought_up(origins[name])
            if isinstance(condition, Column) and condition.facts.nullable:
                condition = Call("or", (_is_null(condition), condition), _TRUTH)
            conditions |= {} if condition is None else {condition: None}
        return _all(conditions) if conditions else None

    def of_partner(self, side: Relation, origins: _Origins) -> tuple[Relation, _Origins]:
        """Return the side with the guards of columns that are never NULL: above the join, a NULL may be a missing partner's."""
        columns = {name: origin.column for name, origin in origins.items() if origin.column is not None}
        guards = {
            name: guard
            for name, column in columns.items()
            if not column.facts.nullable and (guard := self.of_column(column)) is not None
        }
        if not guards:
            return side, origins
        passed = ((name, Column(name, Facts(type_ or Type.NULL))) for name, type_ in types_of(side).items())
        added = {name: Column(name + self.suffix, _TRUTH) for name in guards}
        project = Project(side, (*passed, *((added[name].name, guard) for name, guard in guards.items())))
        return project, {**origins, **{name: _Origin(value=column) for name, column in added.items()}}

    def of_source(self, column: Column) -> Expr:
        return literal(True)

    def below(self, source: Relation, values: Sequence[Expr]) -> Relation | None:
        return Filter(source, _all(values))


class _Labels(_Followed):
    """Computed columns over base columns in which labels stand for other values."""

    suffix = " as key"
    new_part: Relation | None = None

    def reads(self, node: Scan) -> bool:
        return any(column.facts.outside is not None for column in node.columns)

    def of_column(self, column: Column) -> Expr | None:
        return None if column.facts.outside is None else as_key(column)

    def of_expression(self, expression: Expr, origins: Mapping[str, _Origin]) -> Expr | None:
        if isinstance(expression, Column):
            return self.brought_up(origins[expression.name])
        if not isinstance(expression, Call):
            return None
        parts = [self.of_expression(argument, origins) for argument in expression.arguments]
        if not any(parts):
            return None
        arguments = (part or argument for part, argument in zip(parts, expression.arguments, strict=True))
        return call(expression.function, *arguments)

    def of_source(self, column: Column) -> Expr:
        return column

    def below(self, source: Relation, values: Sequence[Expr]) -> Relation | None:
        """Return None: keys of results per person have labels where they are bound, other groupings have none."""
        return None


class _LabelsAround(_Labels):
    """Labels that also tell what becomes of a part of the relation (`new_part`)."""

    def __init__(self, part: Relation) -> None:
        self._part = self.new_part = part

    def followed(self, node: Relation, names: AbstractSet[str]) -> tuple[Relation, _Origins]:
        relation, origins = super().followed(node, names)
        if node is self._part:
            self.new_part = relation
        return relation, origins


def _end(value: Any, type_: Type) -> Literal:
    if type_ is Type.TIMESTAMP and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return literal(int(value) if type_ is Type.INTEGER else value)


def _is_null(value: Expr) -> Expr:
    return Call("is_null", (value,), _TRUTH)


def _all(conditions: Iterable[Expr]) -> Expr:
    parts = tuple(dict.fromkeys(conditions))
    return parts[0] if len(parts) == 1 else Call("and", parts, _TRUTH)
