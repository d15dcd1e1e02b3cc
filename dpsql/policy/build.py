"""Conversion of the file's shape to the policy's own types: values typed by their column, and defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from dpsql.policy import values
from dpsql.policy.reach import is_csv
from dpsql.policy.shape import (
    AnalystShape,
    BudgetShape,
    ColumnShape,
    CsvShape,
    PolicyShape,
    TableShape,
)
from dpsql.policy.types import (
    Analyst,
    ContributionBounds,
    CsvDialect,
    DatasetBudget,
    LifetimeLimit,
    PerQuery,
    Policy,
    PolicyColumn,
    Preparation,
    PrivacyUnit,
    ProjectLimit,
    ReusePolicy,
    SessionLimit,
    StorePolicy,
    Table,
    TableAccess,
    Value,
)
from dpsql.policy.yaml_text import Place, Problems
from dpsql.privacy.loss import Neighbours

_T = TypeVar("_T")
DEFAULT_EPSILON = Fraction(1, 10)
DEFAULT_CONFIDENCE = Fraction(95, 100)
LEAST_EPSILON = Fraction(1, 1000)
LEAST_SHARE = 1000
"""A question spends at least the budget's epsilon divided by this number, or `LEAST_EPSILON` if that is less."""
SELECTION_SHARE = 1000
"""Partition selection of one query takes the budget's delta divided by this number by default."""


def build_policy(shape: PolicyShape, folder: Path, problems: Problems) -> Policy:
    """Return the policy that `shape` describes; values that do not fit their column's type go to `problems` and are left out."""
    unit = None if shape.privacy_unit is None else _as(PrivacyUnit, shape.privacy_unit)
    budget, prepare, is_word = _budget(shape.budget), shape.prepare, isinstance(shape.timing, str)
    return _as(
        Policy,
        shape,
        privacy_unit=unit,
        neighbours=Neighbours(shape.neighbours),
        timing=shape.timing if is_word else "constant",
        constant_seconds=None if isinstance(shape.timing, str) else shape.timing.constant_seconds,
        budget=budget,
        per_query=_per_query(shape, budget),
        analysts={name: _as(Analyst, limit, access=_access(limit, shape)) for name, limit in shape.analysts.items()},
        session=None if shape.session is None else _as(SessionLimit, shape.session),
        tables=_tables(shape, unit is None, problems),
        projects={name: _as(ProjectLimit, limit) for name, limit in shape.projects.items()},
        reuse=_as(ReusePolicy, shape.reuse),
        store=_as(StorePolicy, shape.store),
        prepare=_as(
            Preparation,
            prepare,
            automatic=prepare.when == "auto" or (prepare.when is None and prepare.into is not None),
        ),
        folder=folder,
    )


def _as(kind: type[_T], shape: BaseModel, **computed: Any) -> _T:
    """Return a value of the policy's type `kind`: its fields are keys of `shape` with their names, or `computed`."""
    read = type(shape).model_fields
    names = (entry.name for entry in fields(kind) if entry.name in read and entry.name not in computed)  # type: ignore[arg-type]
    return kind(**{name: getattr(shape, name) for name in names}, **computed)


def _budget(shape: BudgetShape) -> DatasetBudget:
    delta, lifetime = shape.delta or Fraction(0), shape.lifetime
    in_all = None
    if lifetime is not None:
        in_all = LifetimeLimit(lifetime.epsilon, delta if lifetime.delta is None else lifetime.delta)
    return _as(DatasetBudget, shape, delta=delta, lifetime=in_all)


def _access(analyst: AnalystShape, policy: PolicyShape) -> dict[str, TableAccess] | None:
    """Return the access of an analyst; None if nothing is hidden. Names that the policy lacks are problems (see `check`)."""
    if analyst.tables is None and not analyst.columns and not analyst.where:
        return None
    names = [name for name in policy.tables if analyst.tables is None or name in analyst.tables]
    return {name: TableAccess(analyst.columns.get(name), analyst.where.get(name)) for name in names}


def _per_query(shape: PolicyShape, budget: DatasetBudget) -> PerQuery:
    limits = shape.per_query
    most = min(budget.epsilon, limits.max_epsilon or budget.epsilon)
    epsilon = limits.epsilon or min(DEFAULT_EPSILON, most)
    return _as(
        PerQuery,
        limits,
        epsilon=epsilon,
        min_epsilon=limits.min_epsilon or min(LEAST_EPSILON, budget.epsilon / LEAST_SHARE, epsilon),
        delta=budget.delta / SELECTION_SHARE if limits.delta is None else limits.delta,
        confidence=limits.confidence or DEFAULT_CONFIDENCE,
        bounds=_as(ContributionBounds, limits),
    )


def _bounds_of_table(shape: TableShape, row_privacy: bool) -> ContributionBounds:
    """Return the bounds of a table; under row privacy max_rows is 1 even if the file does not say so."""
    bounds = _as(ContributionBounds, shape)
    return replace(bounds, max_rows=1) if row_privacy and not shape.public and bounds.max_rows is None else bounds


def _tables(policy: PolicyShape, row_privacy: bool, problems: Problems) -> dict[str, Table]:
    shapes = policy.tables
    declared = {
        name: {
            column: _column(column, column_shape, ("tables", name, "columns", column), problems)
            for column, column_shape in shape.columns.items()
        }
        for name, shape in shapes.items()
    }
    _imply_key_columns(shapes, declared)
    return {
        name: _as(
            Table,
            shape,
            name=name,
            columns=declared[name],
            bounds=_bounds_of_table(shape, row_privacy),
            schema=shape.schema_name,
            foreign_keys={c: end for c, end in shape.foreign_keys.items() if c not in (shape.unprotected or ())},
            csv=_csv(shape.csv, policy.csv) if is_csv(shape.source or policy.source or "") else None,
        )
        for name, shape in shapes.items()
    }


def _csv(of_table: CsvShape | None, common: CsvShape | None) -> CsvDialect:
    """Return the dialect with each key from the table, else from the top of the file, else its default."""
    keys = ("delimiter", "quote", "header", "null", "multiline")
    settings: dict[str, Any] = {}
    for shape in (common, of_table):
        settings |= {key: getattr(shape, key) for key in keys if shape is not None and key in shape.model_fields_set}
    return CsvDialect(**settings)


def key_columns(table: TableShape | Table) -> dict[str, Place]:
    """Return the columns that the keys of a table name, with the place (below the table) where each is named first."""
    named: dict[str, Place] = {column: ("foreign_keys", column) for column in table.foreign_keys}
    sets: list[tuple[Place, tuple[str, ...]]] = [(("primary_key",), table.primary_key)]
    sets += [(("unique", index), columns) for index, columns in enumerate(table.unique)]
    sets += [(("max_multiplicity", ", ".join(columns)), columns) for columns in table.max_multiplicity]
    for place, columns in sets:
        for column in columns:
            named.setdefault(column, place)
    return named


def _imply_key_columns(shapes: Mapping[str, TableShape], declared: dict[str, dict[str, PolicyColumn]]) -> None:
    """Add key columns that are not declared: they take the type of the column at the other end of a foreign key, else
    of the columns of the same name in other tables if those agree. Others are not added (and are refused later).
    """
    missing = [(name, c) for name, shape in shapes.items() for c in key_columns(shape) if c not in declared[name]]
    changed = True
    while changed:
        changed = False
        for table, column in list(missing):
            types = _related_types(shapes, declared, table, column)
            if len(types) == 1:
                declared[table][column] = PolicyColumn(column, types.pop())
                missing.remove((table, column))
                changed = True


def _related_types(
    shapes: Mapping[str, TableShape], declared: Mapping[str, Mapping[str, PolicyColumn]], table: str, column: str
) -> set[str]:
    ends = [shapes[table].foreign_keys[column]] if column in shapes[table].foreign_keys else []
    ends += [(n, c) for n, shape in shapes.items() for c, end in shape.foreign_keys.items() if end == (table, column)]
    ends = ends or [(name, column) for name in shapes if name != table]
    return {declared[name][c].type for name, c in ends if c in declared.get(name, {})}


def _column(name: str, shape: ColumnShape, place: Place, problems: Problems) -> PolicyColumn:
    return _as(
        PolicyColumn,
        shape,
        name=name,
        **_bounds(shape, place, problems),
        domain=_domain(shape, place, problems),
        outside=_outside(shape, place, problems),
        source=shape.source_name,
    )


def _bounds(shape: ColumnShape, place: Place, problems: Problems) -> dict[str, Value | None]:
    bounds: dict[str, Value | None] = {"lower": None, "upper": None}
    for end, raw in (("lower", shape.lower), ("upper", shape.upper)):
        if raw is None:
            continue
        if shape.type in ("text", "boolean"):
            problems.add((*place, end), f"a {shape.type} column has no {end}; list its values as domain")
            continue
        try:
            bounds[end] = values.typed(raw, shape.type)
        except ValueError as error:
            problems.add((*place, end), str(error))
    return bounds


def _outside(shape: ColumnShape, place: Place, problems: Problems) -> Value | None:
    """Return the key of the group of values outside, or None if they are dropped."""
    if not shape.outside:
        return None
    place = (*place, "outside")
    if shape.type not in ("text", "integer", "date"):
        problems.add(place, f"a {shape.type} column has no group of other values; text, integer and date columns have")
        return None
    if shape.type != "text" and len(shape.outside) == 1:
        example = "-1" if shape.type == "integer" else "1900-01-01"
        problems.add(
            place, f"write the group's value, of type {shape.type} and outside the bounds, such as {{other: {example}}}"
        )
        return None
    try:
        return values.typed(shape.outside[-1], shape.type)
    except ValueError as error:
        problems.add((*place, "other"), str(error))
        return None


def _domain(shape: ColumnShape, place: Place, problems: Problems) -> tuple[Value | None, ...] | None:
    if shape.domain is None:
        return None
    if shape.type == "real":
        problems.add((*place, "domain"), "a real column has no list of values; give lower and upper")
        return None
    listed: list[Value | None] = []
    entered: set[Value | None] = set()
    for index, raw in enumerate(shape.domain):
        try:
            value = None if raw is None else values.typed(raw, shape.type)
        except ValueError as error:
            problems.add((*place, "domain", index), str(error))
            continue
        if value in entered:
            problems.add((*place, "domain", index), f"{raw if raw is not None else 'null'} is listed twice")
        entered.add(value)
        listed.append(value)
    return tuple(listed)
