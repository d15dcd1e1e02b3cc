"""Each law detects its violation: a session is made to violate it."""

from typing import Any

import numpy as np
import pytest
from support.places import POLICIES

from dpsql.errors.exceptions import refuse
from fuzz import laws
from fuzz.conftest import trial
from fuzz.laws import Broken, Seen, Trial, law_of_outcome

COUNT = "SELECT COUNT(*) FROM visits"


def outcome(sql: str, charges: list[dict[str, int]] | None = None, **facts: Any) -> None:
    error = refuse("unknown_column", name="x", position=1)
    for name, value in facts.items():
        setattr(error, name, value)
    law_of_outcome(sql, Seen(error.text(), (), charges or [], [], error))


@pytest.mark.parametrize(
    "facts",
    [
        {"slug": "new"},
        {"slug": "engine_failed"},
        {"position": 0},
        {"position": 99},
        {"charged": True},
        {"charges": [{"epsilon": 1}]},
        {"message": "Binder Error: column x"},
        {"hint": "ask DuckDB"},
        {"message": "colour \x1b[31m"},
        {"message": "half \ud800"},
        {"hint": "x" * 5_000},
    ],
)
def test_bad_refusals_break_the_law(facts: dict[str, Any]) -> None:
    outcome(COUNT)
    with pytest.raises(Broken):
        outcome(COUNT, **facts)


def test_a_refusal_that_depends_on_rows_is_noticed() -> None:
    """A refusal that depends on rows differs from the outcome of the same query on neighbours."""
    here = Trial(trial("numbers").policy)
    place = here.places[1]
    ask = place.session.execute

    def refusing(sql: str, parameters: Any = None) -> Any:
        if place.connection.execute("SELECT COUNT(*) FROM t").fetchone() != (0,):
            raise refuse("unknown_column", name="x").placed_in(sql, 1)
        return ask(sql, parameters)

    here.check("SELECT COUNT(*) FROM t")
    place.session.execute = refusing  # type: ignore[method-assign, assignment]
    with pytest.raises(Broken, match="told apart"):
        here.check("SELECT COUNT(*) FROM t")


def test_a_wrong_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is one too large is detected, and so is a missing group."""
    here = trial("numbers")
    compared = here.compared
    for sql in (
        "SELECT COUNT(*) FROM t",
        "SELECT grp, SUM(x) FROM t GROUP BY grp",
        "SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM t)",
    ):
        here.check(sql)
        with monkeypatch.context() as patch:
            patch.setattr(laws.NoiselessGate, "_draw", lambda self, noise, count: np.ones(count, np.int64) * 2**40)
            with pytest.raises(Broken, match="DuckDB's"):
                here.check(sql)
    with monkeypatch.context() as patch:
        patch.setattr(
            laws.NoiselessGate, "select", lambda self, name, counts, selection, groups: np.arange(groups.count) > 0
        )
        with pytest.raises(Broken, match="DuckDB's"):
            here.check("SELECT grp, COUNT(*) FROM t GROUP BY grp")
    assert here.compared == compared + 3


def test_doors_that_disagree_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    here = trial("numbers")

    def refusing(sql: str, parameters: Any = None) -> Any:
        raise refuse("unknown_column", name="x").placed_in(sql, 1)

    for door in ("describe", "explain"):
        with monkeypatch.context() as patch:
            patch.setattr(here.places[0].session, door, refusing)
            with pytest.raises(Broken, match="refused by"):
                here.check("SELECT COUNT(*) FROM t")


def test_other_exceptions_pass_through(monkeypatch: pytest.MonkeyPatch) -> None:
    here = trial("numbers")

    def failing(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(here.places[0].session, "execute", failing)
    with pytest.raises(ZeroDivisionError):
        here.check("SELECT COUNT(*) FROM t")


DEMOS = ("clinic", "nafld", "nycflights13")


def test_databases_of_tests_keep_their_promises() -> None:
    """All policies of the tests can be opened, and their databases satisfy the promises on which planning relies. Those of the
    demos and of the pages have databases of their own."""
    for name in ("hospital_rows", *sorted({file.stem for file in POLICIES.glob("*.yaml")} - set(DEMOS))):
        here = trial(name)
        for table in here.policy.tables.values():
            for keys in (table.primary_key, *table.max_multiplicity):
                if not keys:
                    continue
                most = table.multiplicity(keys)
                names = ", ".join(keys)
                sql = f"SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM {table.name} GROUP BY {names})"
                found = here.exact.connection.execute(sql).fetchone()
                assert most is not None and found is not None and (found[0] or 0) <= most, (
                    name,
                    table.name,
                    names,
                )
