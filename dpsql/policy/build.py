"""The policy from what its file gives: values typed by their column, and defaults that depend on other values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from dpsql.policy import values
from dpsql.policy.fields import Stated
from dpsql.policy.reach import is_csv
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
LEAST_EPSILON = Fraction(1, 1000)
LEAST_SHARE = 1000
"""A question spends at least the budget's epsilon divided by this number, or `LEAST_EPSILON` if that is less."""
SELECTION_SHARE = 1000
"""Partition selection of one query takes the budget's delta divided by this number by default."""


def build_policy(stated: Stated, folder: Path, problems: Problems) -> Policy:
    """Return the policy that `stated` says; values that do not fit their column's type go to `problems` and are left out."""
    unit = None if stated["privacy_unit"] is None else PrivacyUnit(**stated["privacy_unit"])
    budget, timing = _budget(stated["budget"]), stated.get("timing", "plain")
    tables = _tables(stated, unit is None, problems)
    return _as(
        Policy,
        stated,
        privacy_unit=unit,
        source=stated.get("source"),
        neighbours=Neighbours(stated.get("neighbours", Neighbours.ADD_REMOVE)),
        timing=timing if isinstance(timing, str) else "constant",
        constant_seconds=None if isinstance(timing, str) else timing["constant_seconds"],
        budget=budget,
        per_query=_per_query(stated.get("per_query", {}), budget),
        analysts={name: _analyst(limit, tables) for name, limit in stated.get("analysts", {}).items()},
        session=_limit(SessionLimit, stated["session"]) if "session" in stated else None,
        tables=tables,
        projects={name: _limit(ProjectLimit, limit) for name, limit in stated.get("projects", {}).items()},
        reuse=ReusePolicy(**stated.get("reuse", {})),
        store=StorePolicy(**stated.get("store", {})),
        prepare=_preparation(stated.get("prepare", {})),
        folder=folder,
    )


def _as(kind: type[_T], stated: Stated, **computed: Any) -> _T:
    """Return a value of the policy's type `kind`, whose fields are `computed`, or else as the file says."""
    names = [entry.name for entry in fields(kind) if entry.name in stated]  # type: ignore[arg-type]
    return kind(**({name: stated[name] for name in names} | computed))


def _limit(kind: type[_T], stated: Stated, **computed: Any) -> _T:
    return _as(kind, {"delta": None, **stated}, **computed)


def _budget(stated: Stated) -> DatasetBudget:
    delta, in_all = stated.get("delta", Fraction(0)), stated.get("lifetime")
    lifetime = None if in_all is None else LifetimeLimit(**{"delta": delta, **in_all})
    return _as(DatasetBudget, stated, delta=delta, lifetime=lifetime)


def _preparation(stated: Stated | str) -> Preparation:
    """Return where copies are written, and by whom. A word alone, auto or manual, is what `when` would be."""
    keys = {"when": stated} if isinstance(stated, str) else stated
    return _as(Preparation, keys, automatic=keys.get("when", "auto" if "into" in keys else "manual") == "auto")


def _analyst(stated: Stated, tables: Mapping[str, Table]) -> Analyst:
    """Return an analyst with their access: None if nothing is hidden. Names that the policy lacks are problems (see `check`)."""
    listed, columns, where = stated.get("tables"), stated.get("columns", {}), stated.get("where", {})
    people = {name: _limit(SessionLimit, limit) for name, limit in stated.get("people", {}).items()}
    if listed is None and not columns and not where:
        return _limit(Analyst, stated, people=people)
    names = [name for name in tables if listed is None or name in listed]
    access = {name: TableAccess(columns.get(name), where.get(name)) for name in names}
    return _limit(Analyst, stated, people=people, access=access)


def _per_query(stated: Stated, budget: DatasetBudget) -> PerQuery:
    most_named = stated.get("max_epsilon")
    most = min(budget.epsilon, most_named or budget.epsilon)
    epsilon = stated.get("epsilon") or min(DEFAULT_EPSILON, most)
    least = min(LEAST_EPSILON, budget.epsilon / LEAST_SHARE, epsilon)
    defaults = {"min_epsilon": least, "delta": budget.delta / SELECTION_SHARE}
    bounds = _as(ContributionBounds, stated)
    return _as(PerQuery, defaults | stated, epsilon=epsilon, max_epsilon=most_named, bounds=bounds)


def _tables(policy: Stated, row_privacy: bool, problems: Problems) -> dict[str, Table]:
    declared = {
        name: {
            column: _column(column, about, policy.get("timezone"), ("tables", name, "columns", column), problems)
            for column, about in stated.get("columns", {}).items()
        }
        for name, stated in policy["tables"].items()
    }
    tables = {
        name: _as(
            Table,
            stated,
            name=name,
            columns=declared[name],
            bounds=_bounds_of_table(stated, row_privacy),
            csv=_csv(stated, policy) if is_csv(stated.get("source") or policy.get("source") or "") else None,
        )
        for name, stated in policy["tables"].items()
    }
    _imply_key_columns(tables, declared)
    return {name: replace(table, foreign_keys=_to_units(table)) for name, table in tables.items()}


def _to_units(table: Table) -> dict[str, tuple[str, str]]:
    """Return the foreign keys of a table without columns that name further people."""
    return {column: end for column, end in table.foreign_keys.items() if column not in (table.unprotected or ())}


def _bounds_of_table(stated: Stated, row_privacy: bool) -> ContributionBounds:
    """Return the bounds of a table; under row privacy max_rows is 1 even if the file does not say so."""
    bounds = _as(ContributionBounds, stated)
    is_row = row_privacy and not stated.get("public") and bounds.max_rows is None
    return replace(bounds, max_rows=1) if is_row else bounds


def _csv(table: Stated, policy: Stated) -> CsvDialect:
    """Return the dialect with each key from the table, else from the top of the file, else its default."""
    return CsvDialect(**{**policy.get("csv", {}), **table.get("csv", {})})


def key_columns(table: Table) -> dict[str, Place]:
    """Return the columns that the keys of a table name, with the place (below the table) where each is named first."""
    named: dict[str, Place] = {column: ("foreign_keys", column) for column in table.foreign_keys}
    sets: list[tuple[Place, tuple[str, ...]]] = [(("same_unit", column), (column,)) for column in table.same_unit]
    sets += [(("primary_key",), table.primary_key)]
    sets += [(("unique", index), columns) for index, columns in enumerate(table.unique)]
    sets += [(("max_multiplicity", ", ".join(columns)), columns) for columns in table.max_multiplicity]
    for place, columns in sets:
        for column in columns:
            named.setdefault(column, place)
    return named


def _imply_key_columns(tables: Mapping[str, Table], declared: dict[str, dict[str, PolicyColumn]]) -> None:
    """Add key columns that are not declared: they take the type of the column at the other end of a foreign key, else
    of the columns of the same name in other tables if those agree. Others are not added (and are refused later).
    """
    missing = [(name, c) for name, table in tables.items() for c in key_columns(table) if c not in declared[name]]
    changed = True
    while changed:
        changed = False
        for name, column in list(missing):
            types = _related_types(tables, name, column)
            if len(types) == 1:
                declared[name][column] = PolicyColumn(column, types.pop())
                missing.remove((name, column))
                changed = True


def _related_types(tables: Mapping[str, Table], table: str, column: str) -> set[str]:
    ends = [tables[table].foreign_keys[column]] if column in tables[table].foreign_keys else []
    ends += [(n, c) for n, about in tables.items() for c, end in about.foreign_keys.items() if end == (table, column)]
    ends = ends or [(name, column) for name in tables if name != table]
    return {tables[name].columns[c].type for name, c in ends if name in tables and c in tables[name].columns}


def _column(name: str, stated: Stated, timezone: str | None, place: Place, problems: Problems) -> PolicyColumn:
    """Return a column; `timezone` is that of the whole file."""
    temporal = stated["type"] in ("date", "timestamp")
    if "timezone" in stated and not temporal:
        why = f"a {stated['type']} column has no points of time; date and timestamp columns have"
        problems.add((*place, "timezone"), why)
    return _as(
        PolicyColumn,
        stated,
        name=name,
        timezone=stated.get("timezone", timezone) if temporal else None,
        **_bounds(stated, place, problems),
        domain=_domain(stated, place, problems),
        outside=_outside(stated, place, problems),
    )


def _bounds(stated: Stated, place: Place, problems: Problems) -> dict[str, Value | None]:
    type_ = stated["type"]
    bounds: dict[str, Value | None] = {"lower": None, "upper": None}
    for end, raw in (("lower", stated.get("lower")), ("upper", stated.get("upper"))):
        if raw is None:
            continue
        if type_ in ("text", "boolean"):
            problems.add((*place, end), f"a {type_} column has no {end}; list its values as domain")
            continue
        try:
            bounds[end] = values.typed(raw, type_)
        except ValueError as error:
            problems.add((*place, end), str(error))
    return bounds


def _outside(stated: Stated, place: Place, problems: Problems) -> Value | None:
    """Return the key of the group of values outside, or None if they are dropped."""
    outside, type_ = stated.get("outside"), stated["type"]
    if not outside:
        return None
    place = (*place, "outside")
    if type_ not in ("text", "integer", "date"):
        problems.add(place, f"a {type_} column has no group of other values; text, integer and date columns have")
        return None
    if type_ != "text" and len(outside) == 1:
        example = "-1" if type_ == "integer" else "1900-01-01"
        problems.add(
            place, f"write the group's value, of type {type_} and outside the bounds, such as {{other: {example}}}"
        )
        return None
    try:
        return values.typed(outside[-1], type_)
    except ValueError as error:
        problems.add((*place, "other"), str(error))
        return None


def _domain(stated: Stated, place: Place, problems: Problems) -> tuple[Value | None, ...] | None:
    domain, type_ = stated.get("domain"), stated["type"]
    if domain is None:
        return None
    if type_ == "real" and "scale" not in stated:
        problems.add((*place, "domain"), "a real column without a scale has no list of values; give lower and upper")
        return None
    listed: list[Value | None] = []
    entered: set[Value | None] = set()
    for index, raw in enumerate(domain):
        try:
            value = None if raw is None else values.typed(raw, type_)
        except ValueError as error:
            problems.add((*place, "domain", index), str(error))
            continue
        if value in entered:
            problems.add((*place, "domain", index), f"{raw if raw is not None else 'null'} is listed twice")
        entered.add(value)
        listed.append(value)
    return tuple(listed)
