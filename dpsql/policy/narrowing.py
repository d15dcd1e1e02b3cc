"""The test whether a new version of a policy widens a promise: a running server may adopt only narrower ones without a restart.

It is an allow-list: a change that is not known to be as narrow as before counts as wider. The data set, its tables and the
accountant stay; limits may only shrink, access may only be taken away, and analysts and projects may be added, because the
budget of the data set holds for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpsql.policy.types import Policy, Preparation, StorePolicy, TableAccess


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
