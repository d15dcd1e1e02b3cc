"""A binder with a bug leaks nothing: a wrong plan is refused, or its answer is wrong within its price.

Every wrong plan (`support.wrong_plans`) is priced as the binder's own would be. If that is not refused, it is answered over
neighbouring databases: nothing that is seen may differ, and exact sums move by no more than is claimed and charged. And it is
answered over a database that differs in what does not exist for the analyst (hidden columns and tables, rows without the row
filter): its exact sums must be the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any

import pytest
from support.effort import NIGHTLY
from support.wrong_plans import QUESTIONS, UNITS, Ward, bound, crowd, wrong_plans

from dpsql.errors.exceptions import Error
from dpsql.plan import stability
from dpsql.plan.plan import Plan, Scan, UnitWindow, filled
from dpsql.planning import planner as planning
from dpsql.planning.planner import Planned
from dpsql.pricing import bounding, plan_check
from dpsql.session import context, stages
from dpsql_audit.distances import compare
from dpsql_audit.observation import Observed
from dpsql_audit.replay import same_outcome, same_stages

SEED = 11
FEW, MANY, EVERY = 2, 40 if NIGHTLY else 10, 10_000
"""Wrong plans of each kind: by default, in the slow test (more at night), and until one of them leaks."""


@cache
def worlds() -> dict[str, Ward]:
    """Return the databases: the crowd, the crowd with what is hidden changed, and the crowd with one more unit."""
    base = Ward(None, crowd())
    further = {name: Ward(base.session.planner, crowd(), rows) for name, rows in UNITS.items()}
    return {"crowd": base, "hidden": Ward(base.session.planner, crowd(hidden=1)), **further}


def leaking(
    plans: Iterable[tuple[str, str, Plan]], units: tuple[str, ...], fates: Counter[str] | None = None
) -> Iterator[str]:
    """Yield the leaks of wrong plans: kind of the change, question, problem. `fates` counts plans that are refused or answered."""
    fates = Counter() if fates is None else fates
    for kind, sql, plan in plans:
        try:
            planned = priced(sql, plan)
        except Error:
            fates["refused"] += 1
            continue
        fates["answered"] += 1
        yield from (f"{kind}: {sql}: {problem}" for problem in leaks_of(planned, units))


def priced(sql: str, plan: Plan) -> Planned:
    session = worlds()["crowd"].session
    return session.planner.priced(session.planner.parse(sql, None), plan, session.options)


def leaks_of(planned: Planned, units: tuple[str, ...]) -> list[str]:
    """Return what the answers to a plan reveal beyond its price, or of what does not exist for the analyst."""
    crowd_seen = worlds()["crowd"].answered(planned)
    problems = []
    for name in units:
        seen = worlds()[name].answered(planned)
        left, right = same_stages(planned.price, crowd_seen, seen)
        if _slug(left) != "answered" and _slug(left) == _slug(right):
            continue
        found = same_outcome(left, right).problems or compare(planned.price, left.blocks, right.blocks).problems
        problems += [f"{name}: {problem}" for problem in found]
    hidden = worlds()["hidden"].answered(planned)
    if not _has_windows(planned) and (_slug(hidden), _exact(hidden)) != (_slug(crowd_seen), _exact(crowd_seen)):
        problems.append("the answer depends on what does not exist for the analyst")
    if hidden.answer != crowd_seen.answer:
        problems.append("the answer shows what does not exist for the analyst")
    return problems


def _slug(seen: Observed) -> str:
    return " ".join(seen.outcome.split()[:2])


def _exact(seen: Observed) -> list[Any]:
    return [(block.keys, block.terms, block.histograms, block.counts) for block in seen.blocks]


def _has_windows(planned: Planned) -> bool:
    """Return whether a plan has windows: their ties are broken by a keyed hash of all columns, which tells nothing of them."""
    windows: list[Any] = []

    def note(part: Any) -> Any:
        windows.extend([part] if isinstance(part, UnitWindow) else [])
        return part

    filled(tuple(priced_block.block for priced_block in planned.price.blocks), note)
    return bool(windows)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_right_plans_are_answered_and_leak_nothing(sql: str) -> None:
    planned = priced(sql, bound(worlds()["crowd"].session.planner, sql))
    assert _slug(worlds()["crowd"].answered(planned)) == "answered"
    assert leaks_of(planned, tuple(UNITS)) == []


def test_a_hundred_wrong_plans_are_refused_or_wrong_within_their_price() -> None:
    fates: Counter[str] = Counter()
    plans = wrong_plans(worlds()["crowd"].session.planner, FEW, SEED)
    assert list(leaking(plans, ("one group", "spread"), fates)) == []
    assert fates["refused"] >= 50 and fates["answered"] >= 50, fates


@pytest.mark.parametrize("kind", ["a FILTER by a hidden column", "no filter", "a protected table is public"])
def test_what_does_not_exist_for_the_analyst_is_refused(kind: str) -> None:
    asked = [QUESTIONS[0], next(sql for sql in QUESTIONS if sql.endswith("FROM wards GROUP BY floor"))]
    plans = list(wrong_plans(worlds()["crowd"].session.planner, 3, SEED, (kind,), asked))
    assert plans
    if kind == "no filter":
        plans = [(name, sql, plan) for name, sql, plan in plans if "WHERE" not in sql]
    for _, sql, plan in plans:
        with pytest.raises(Error, match="internal"):
            priced(sql, plan)


def _every_column(self: Any, node: Scan, filtered: bool) -> dict[str, Any]:
    return {column.name: column.facts.type for column in node.columns}


def _nothing(*_: Any) -> None:
    return None


PLANTED: dict[str, tuple[tuple[tuple[Any, str, Callable[..., Any]], ...], tuple[str, ...]]] = {
    "no plan is checked": (
        ((bounding, "check_block", _nothing), (planning, "check_plan", _nothing)),
        ("no filter", "a filter by a hidden column"),
    ),
    "hidden columns are read": (((plan_check._Check, "_scan", _every_column),), ("a FILTER by a hidden column",)),
    "row filters need not be there": (((plan_check._Check, "_row_filter", _nothing),), ("no filter",)),
    "types are believed": (((plan_check, "_claimed", lambda facts, _: facts.type),), ("a real as an integer",)),
    "every table is public": (
        ((plan_check, "require_public", _nothing), (context, "require_public", _nothing)),
        ("a protected table is public", "a hidden public table"),
    ),
    "promises about released rows are believed": (
        ((stages, "_check_released", _nothing),),
        ("unique released rows", "repetitions of released rows"),
    ),
    "every row meets one row": (((stability, "matches", lambda *_: (1, 1)),), ("negated",)),
}
"""Checks left out: what is replaced, and the kinds of wrong plans that must then leak."""


def test_columns_called_like_the_unit_are_refused() -> None:
    """Without this check no known plan leaks, because such a column is read by nothing."""
    planner = worlds()["crowd"].session.planner
    wrong = list(wrong_plans(planner, EVERY, SEED, ("a column called like the unit",)))
    for _, sql, plan in wrong:
        with pytest.raises(Error, match="internal"):
            priced(sql, plan)
    assert wrong


@pytest.mark.parametrize("name", PLANTED)
def test_a_check_that_is_left_out_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced, kinds = PLANTED[name]
    for place, attribute, bug in replaced:
        monkeypatch.setattr(place, attribute, bug)
    planner = worlds()["crowd"].session.planner
    right = (("right", sql, bound(planner, sql)) for sql in QUESTIONS if "codes" in sql or "wards w ON" in sql)
    asked = [sql for sql in QUESTIONS if "codes" in sql] if "a real as an integer" in kinds else QUESTIONS
    plans = chain(wrong_plans(planner, EVERY, SEED, kinds, asked), right)
    assert next(leaking(plans, ("one group", "spread", "matched")), None) is not None


@pytest.mark.slow
def test_many_wrong_plans_are_refused_or_wrong_within_their_price() -> None:
    plans = wrong_plans(worlds()["crowd"].session.planner, MANY, SEED + 1)
    assert list(leaking(plans, tuple(UNITS))) == []
