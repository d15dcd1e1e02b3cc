"""Two versions of a policy: whether the newer one widens a promise, and which parts decide what a stored release measured.

A running server may adopt only narrower versions without a restart. The test is an allow-list: a change that is not known to be
as narrow as before counts as wider. The data set, its tables and the accountant stay; limits may only shrink, access may only be
taken away, and analysts and projects may be added, because the budget of the data set holds for all of them together.

A release reads tables and columns. Each has a mark that changes when the policy's part does: that of a table covers the source,
the way of its rows to their privacy unit and the rows that a unit may bring; that of a column covers everything that the policy
says of it. What a release does not read has no part in its identity: a new table or column, or another column's bounds, make no
stored release unusable (docs/reuse.md). Marks are complete by construction: they are fingerprints of the policy's own
dataclasses, from which only what is listed here is left out, so that a new field of a table or column counts until somebody
decides otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from dpsql.policy.fields import fingerprint
from dpsql.policy.types import UNBOUNDED, Policy, PolicyColumn, Preparation, StorePolicy, Table, TableAccess
from dpsql.storage.records import replace


def widened(old: Policy, new: Policy) -> list[str]:
    """Return the places (paths in the file) at which `new` may promise less than `old`; empty if `new` may be adopted."""
    places = [
        name
        for name in ("dataset", "source", "ledger", "witness", "neighbours")
        if getattr(old, name) != getattr(new, name)
    ]
    if old.privacy_unit != new.privacy_unit:
        places.append("privacy_unit")
    if old.meaning != new.meaning and not places:
        places.append("tables")
    if old.budget.accountant != new.budget.accountant:
        places.append("budget.accountant")
    if old.budget.every != new.budget.every:
        places.append("budget.every")
    places += _limits("budget", old.budget, new.budget)
    if old.budget.lifetime is not None:
        lifetime = new.budget.lifetime
        places += ["budget.lifetime"] if lifetime is None else _limits("budget.lifetime", old.budget.lifetime, lifetime)
    places += _queries(old, new)
    if old.reuse != new.reuse and old.reuse != replace(new.reuse, shared=True):
        places.append("reuse")
    if not set(new.mechanisms) <= set(old.mechanisms):
        places.append("mechanisms")
    if (old.timing, old.constant_seconds) != (new.timing, new.constant_seconds) and old.timing != "plain":
        places.append("timing")
    if old.session is not None:
        places += ["session"] if new.session is None else _limits("session", old.session, new.session)
    places += _named("analysts", old.analysts, new.analysts, _access)
    places += _named("projects", old.projects, new.projects, _members)
    return places


PERIODS = {"hourly": "%Y-%m-%d %H h", "daily": "%Y-%m-%d", "weekly": "%G week %V", "monthly": "%Y-%m"}
"""Words for `data_version` that name the present period in UTC, by its format: stored answers last until the period ends. They
say nothing about the data, which may change at any moment (`named_state`)."""


def named_state(policy: Policy) -> str | None:
    """Return the owner's name for a state of the data, under which what was found stays true; None if the policy names none."""
    name = policy.data_version
    return None if name is None or name in PERIODS else f"declared:{name}"


def declared_version(policy: Policy) -> str | None:
    """Return the version for which stored answers are given again: the named state, or the present period; None if the policy
    has neither, so that the source decides."""
    name = policy.data_version
    if name is None:
        return None
    return f"{name} {datetime.now(UTC):{PERIODS[name]}}" if name in PERIODS else named_state(policy)


def same_for(old: Policy, new: Policy, analyst: str | None) -> bool:
    """Return whether both policies are the same for one analyst (None: the owner)."""

    def part(policy: Policy) -> str:
        analysts = {name: limit for name, limit in policy.analysts.items() if name == analyst}
        projects = {
            name: replace(limit, members=None) for name, limit in policy.projects.items()
            if analyst is None or limit.members is None or analyst in limit.members
        }  # fmt: skip
        return replace(
            policy,
            asker=None,
            log_sql=None,
            prepare=Preparation(),
            store=StorePolicy(),
            analysts=analysts,
            projects=projects,
        ).version

    return part(old) == part(new)


def _limits(place: str, old: Any, new: Any) -> Iterator[str]:
    """Yield the limits of a budget, an analyst, a project or a session that grew."""
    if new.epsilon > old.epsilon:
        yield f"{place}.epsilon"
    if _above(new.delta, old.delta):
        yield f"{place}.delta"


def _above(new: Fraction | int | None, old: Fraction | int | None) -> bool:
    """Return whether one limit is above another; None means no limit."""
    return old is not None and (new is None or new > old)


def _queries(old: Policy, new: Policy) -> Iterator[str]:
    before, after = old.per_query, new.per_query
    if _above(after.max_epsilon, before.max_epsilon):
        yield "per_query.max_epsilon"
    if after.min_epsilon < before.min_epsilon:
        yield "per_query.min_epsilon"
    if before.min_units is not None and (after.min_units is None or after.min_units < before.min_units):
        yield "per_query.min_units"
    if _above(after.delta, before.delta):
        yield "per_query.delta"
    if after.epsilon > before.epsilon:
        yield "per_query.epsilon"
    unchanged = {
        name: getattr(before, name)
        for name in ("max_epsilon", "min_epsilon", "delta", "epsilon", "confidence", "min_units")
    }
    if replace(after, **unchanged) != before:
        yield "per_query"


def _named(
    key: str, old: Mapping[str, Any], new: Mapping[str, Any], rest: Callable[[str, Any, Any], Iterator[str]]
) -> Iterator[str]:
    """Yield the limits that grew for each analyst or project that is in both versions."""
    for name in old.keys() & new.keys():
        yield from _limits(f"{key}.{name}", old[name], new[name])
        yield from rest(f"{key}.{name}", old[name], new[name])


def _members(place: str, old: Any, new: Any) -> Iterator[str]:
    if old.members is not None and (new.members is None or not set(new.members) <= set(old.members)):
        yield f"{place}.members"


def _access(place: str, old: Any, new: Any) -> Iterator[str]:
    yield from (f"{place}.people.{name}" for name in old.people.keys() - new.people.keys())
    yield from _named(f"{place}.people", old.people, new.people, lambda *_: iter(()))
    if old.access is None:
        return
    if new.access is None or not new.access.keys() <= old.access.keys():
        yield f"{place}.tables"
        return
    for table, access in new.access.items():
        yield from _table_access(place, table, old.access[table], access)


def _table_access(place: str, table: str, old: TableAccess, new: TableAccess) -> Iterator[str]:
    if old.columns is not None and (new.columns is None or not set(new.columns) <= set(old.columns)):
        yield f"{place}.columns.{table}"
    if old.where is not None and new.where != old.where:
        yield f"{place}.where.{table}"


_NO_KEYS: dict[str, Any] = {
    "columns": {}, "primary_key": (), "unique": (), "max_multiplicity": {}, "foreign_keys": {}, "same_unit": {},
}  # fmt: skip
"""Columns have marks of their own; keys decide only the price and the caps, which are parts of a block."""
_NOT_COMPARED: dict[str, Any] = {
    "lower": None, "upper": None, "domain": None, "nullable": True, "max_total": None, "outside": None, "scale": None,
}  # fmt: skip
"""What the policy says of the values of a key does not decide which rows it joins."""


def table_mark(policy: Policy, name: str) -> str:
    """Return the mark of a table: its source and how it is read, and the same of each table on the way to the privacy unit, the
    keys of this way, the unit, and the table's own contribution bounds."""
    table, path = policy.tables[name], policy.unit_path(name)
    above = [replace(policy.tables[hop[2]], bounds=UNBOUNDED) for hop in path]
    keys = [pair for child, column, parent, key in path for pair in ((child, column), (parent, key))]
    unit = policy.privacy_unit
    if unit is not None and not table.public:
        keys.append((unit.table, unit.column))
    columns = tuple(replace(policy.tables[owner].columns[column], **_NOT_COMPARED) for owner, column in keys)
    chain = tuple(replace(each, **_NO_KEYS) for each in (table, *above))
    return fingerprint((policy.dataset, policy.source, unit, policy.neighbours, path, chain, columns))


def column_mark(column: PolicyColumn) -> str:
    return fingerprint(column)


def mark(policy: Policy, name: str) -> str | None:
    """Return the mark of `TABLE` or `TABLE.COLUMN` under a policy; None if the policy has no such table or column."""
    marks = policy.marks
    if name not in marks:
        table, _, column = name.partition(".")
        about: Table | None = policy.tables.get(table)
        if about is None or (column and column not in about.columns):
            return None
        marks[name] = column_mark(about.columns[column]) if column else table_mark(policy, table)
    return marks[name]


def changed(policy: Policy, reads: Mapping[str, str]) -> list[str]:
    """Return the names of tables and columns that a release read and that a policy no longer has as they were."""
    return [name for name, read in reads.items() if mark(policy, name) != read]
