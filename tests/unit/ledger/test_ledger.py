"""Contract tests of the ledger, on SQLite and on PostgreSQL."""

import csv
import hashlib
import hmac
import io
import json
import multiprocessing
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.exceptions import BudgetRefusal, Error, Fault
from dpsql.ledger import ChargeRequest, decimal_text
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import readable_text

FORK = multiprocessing.get_context("fork")


def reserve_some(ledger: Ledger, name: str, attempts: int) -> int:
    """Return how many of `attempts` charges succeeded; the others were refused for lack of budget."""
    made = 0
    for attempt in range(attempts):
        try:
            ledger.reserve(charge(f"{name}-{attempt}")).commit("done")
            made += 1
        except BudgetRefusal:
            pass
    return made


def slug(error: pytest.ExceptionInfo[Error]) -> str:
    return error.value.slug


def test_a_charge_counts_in_every_scope_and_is_never_given_back(home: Home) -> None:
    ledger = home.new()
    ledger.open_account("analyst:ann", "pure", {"epsilon": 3 * EPSILON, "delta": 0})
    both = ("dataset", "analyst:ann")
    ledger.reserve(charge(1, EPSILON, scopes=both)).commit("rows: 3")
    ledger.reserve(charge(2, EPSILON, scopes=both)).fail("engine")
    ledger.reserve(charge(3, EPSILON // 2, scopes=both))
    for scope in both:
        assert ledger.spent(scope) == {"epsilon": 5 * EPSILON // 2, "delta": 0}
    assert ledger.remaining("analyst:ann") == {"epsilon": EPSILON // 2, "delta": 0}
    assert [entry.kind for entry in ledger.history()] == [
        *("created", "account", "account", "charge", "committed", "charge", "failed", "charge")
    ]
    assert ledger.verify().sound


def test_the_last_unit_fits_and_one_more_does_not(home: Home) -> None:
    ledger = home.new(limit=7)
    ledger.reserve(charge(1, 4))
    with pytest.raises(BudgetRefusal) as error:
        ledger.reserve(charge(2, 4))
    assert error.value.remaining == {"dataset": f"epsilon {decimal_text('epsilon', 3)}, delta 0"}
    assert not error.value.charged
    ledger.reserve(charge(3, 3))
    with pytest.raises(BudgetRefusal):
        ledger.reserve(charge(4, 1))
    assert ledger.spent() == {"epsilon": 7, "delta": 0}
    assert ledger.remaining() == {"epsilon": 0, "delta": 0}


def test_one_full_scope_refuses_all_and_nothing_is_written(home: Home) -> None:
    ledger = home.new()
    ledger.open_account("session:s1", "pure", {"epsilon": EPSILON // 2, "delta": 0})
    before = list(ledger.history())
    with pytest.raises(BudgetRefusal) as error:
        ledger.reserve(charge(1, EPSILON, scopes=("dataset", "session:s1")))
    assert error.value.remaining == {"dataset": "epsilon 10, delta 0", "session:s1": "epsilon 0.5, delta 0"}
    assert list(ledger.history()) == before
    assert ledger.spent() == {"epsilon": 0, "delta": 0}
    ledger.reserve(charge(1, EPSILON))


def test_every_dimension_must_fit(home: Home) -> None:
    ledger = home.open(create=True)
    ledger.open_account("dataset", "zcdp", {"rho": 10**40, "delta": 5})

    def request(number: int, **units: int) -> ChargeRequest:
        return ChargeRequest(str(number), "ann", "s1", ("dataset",), units, "block", "v1")

    ledger.reserve(request(1, rho=10**40 - 1, delta=5))
    with pytest.raises(BudgetRefusal):
        ledger.reserve(request(2, rho=1, delta=1))
    with pytest.raises(Error) as error:
        ledger.reserve(request(3, delta=0))
    assert slug(error) == "ledger_shape"
    with pytest.raises(Error) as error:
        ledger.reserve(request(4, rho=0, delta=0, epsilon=1))
    assert slug(error) == "ledger_shape"
    ledger.reserve(request(5, rho=1, delta=0))
    assert ledger.remaining() == {"rho": 0, "delta": 0}


def test_an_id_is_charged_once(home: Home) -> None:
    ledger = home.new()
    seq = ledger.reserve(charge("same")).seq
    with pytest.raises(Error) as error:
        ledger.reserve(charge("same"))
    assert slug(error) == "request_repeated"
    assert str(seq) in error.value.message
    assert ledger.spent()["epsilon"] == EPSILON
    found = ledger.find("same")
    assert found is not None
    assert found.seq == seq
    assert ledger.find("other") is None


def test_a_charge_is_resolved_once(home: Home) -> None:
    ledger = home.new()
    reservation = ledger.reserve(charge(1))
    reservation.commit()
    with pytest.raises(Error) as error:
        reservation.fail()
    assert slug(error) == "ledger_resolved"


def test_limits_change_on_the_record_and_the_accountant_does_not(home: Home) -> None:
    ledger = home.new(limit=5)
    ledger.reserve(charge(1, 4))
    before = len(list(ledger.history()))
    ledger.open_account("dataset", "pure", {"epsilon": 5, "delta": 0})
    assert len(list(ledger.history())) == before
    ledger.open_account("dataset", "pure", {"epsilon": 3, "delta": 0})
    last = list(ledger.history())[-1].facts
    assert (last["kind"], last["were"]["epsilon"], last["limits"]["epsilon"]) == ("limits", "5", "3")
    assert ledger.remaining()["epsilon"] == 0
    with pytest.raises(BudgetRefusal):
        ledger.reserve(charge(2, 0 + 1))
    for accountant, limits in (("zcdp", {"epsilon": 9, "delta": 0}), ("pure", {"rho": 9, "delta": 0})):
        with pytest.raises(Fault) as error:
            ledger.open_account("dataset", accountant, limits)
        assert slug(error) == "ledger_accountant"
    assert ledger.spent() == {"epsilon": 4, "delta": 0}
    assert home.open().verify().sound


def test_a_scope_without_an_account_is_not_free(home: Home) -> None:
    ledger = home.new()
    with pytest.raises(Error) as error:
        ledger.reserve(charge(1, scopes=("dataset", "analyst:bob")))
    assert slug(error) == "ledger_account"
    assert ledger.spent()["epsilon"] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"charge": {}}, {"charge": {"epsilon": -1}}, {"charge": {"epsilon": True}}, {"charge": {"epsilon": 0.5}},
        {"charge": {"money": 1}}, {"scopes": ("analyst:ann",)}, {"scopes": ("dataset", "dataset")},
        {"scopes": ("dataset", "everybody")}, {"id": ""}, {"what": "x" * 5000},
    ],
)  # fmt: skip
def test_malformed_requests_are_refused(change: dict[str, Any]) -> None:
    good: dict[str, Any] = {"id": "1", "analyst": "a", "session": "s", "scopes": ("dataset",), "what": "w"}
    with pytest.raises(Error) as error:
        ChargeRequest(**{**good, "charge": {"epsilon": 1}, "policy_version": "v", **change})
    assert slug(error) == "ledger_request"


def test_twelve_processes_on_thirty_charges_get_thirty(home: Home) -> None:
    home.new(limit=30 * EPSILON).close()

    def work(number: int, out: Any) -> None:
        out.put(reserve_some(home.open(), f"p{number}", 4))

    out = FORK.Queue()
    workers = [FORK.Process(target=work, args=(number, out)) for number in range(12)]
    for worker in workers:
        worker.start()
    made = [out.get(timeout=240) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(made) == 30
    ledger = home.open()
    assert ledger.spent()["epsilon"] == 30 * EPSILON
    assert ledger.verify().sound
    assert ledger.witness.head().seq == max(entry.seq for entry in ledger.history() if entry.kind == "charge")


def machines(home: Home, elsewhere: Path) -> list[Ledger]:
    """Return one ledger opened with two second places, so that only the database separates the writers."""
    ledger = home.new(limit=20 * EPSILON)
    shutil.copytree(home.state, elsewhere)
    (elsewhere / ledger.ledger_id / "head").unlink()
    return [home.open(), home.open(state=elsewhere, adopt=True)]


def race(ledgers: list[Ledger], attempts: int) -> int:
    """Return the total number of charges when a thread for each ledger charges at the same time."""
    made: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n, ledger=ledger: made.append(reserve_some(ledger, f"t{n}", attempts)))
        for n, ledger in enumerate(ledgers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == len(ledgers)
    return sum(made)


def test_two_machines_share_one_budget(home: Home, tmp_path: Path) -> None:
    ledgers = machines(home, tmp_path / "elsewhere")
    assert race(ledgers, 14) == 20
    assert ledgers[0].verify().sound


def test_a_second_machine_waits_from_the_first_statement_on(home: Home, tmp_path: Path) -> None:
    """The budget that the first machine reads is unchanged when it writes: no one else charges in between."""
    ledger, _ = machines(home, tmp_path / "elsewhere")
    other = home.open(state=tmp_path / "elsewhere", timeout_seconds=0.1)
    refused: list[str] = []

    def intrude(step: str) -> None:
        if step == "begun":
            ledger.store.step = lambda name: None
            with pytest.raises(Fault) as error:
                other.reserve(charge("second"))
            refused.append(slug(error))

    ledger.store.step = intrude
    ledger.reserve(charge("first"))
    assert refused == ["ledger_locked"]
    other.reserve(charge("second"))
    assert ledger.spent()["epsilon"] == 2 * EPSILON


def test_a_server_that_defaults_to_stale_snapshots_changes_nothing(postgres_home: Home, tmp_path: Path) -> None:
    postgres_home.sql("ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'serializable'")
    try:
        ledgers = machines(postgres_home, tmp_path / "elsewhere")
        assert race(ledgers, 14) == 20
    finally:
        postgres_home.sql("ALTER ROLE CURRENT_USER RESET default_transaction_isolation")
    assert ledgers[0].verify().sound


def test_the_head_never_moves_back(home: Home) -> None:
    """A second process comes between the commit and the head of the first, and has to wait its turn."""
    ledger, other = home.new(), home.open(timeout_seconds=0.1)

    def intrude(step: str) -> None:
        if step == "after commit":
            ledger.store.step = lambda name: None
            with pytest.raises(Fault) as error:
                other.reserve(charge("second"))
            assert slug(error) == "ledger_locked"

    ledger.store.step = intrude
    seq = ledger.reserve(charge("first")).seq
    assert ledger.witness.head().seq == seq
    assert seq == other.reserve(charge("second")).seq - 1
    assert ledger.witness.head().seq == seq + 1


def test_a_charge_is_flushed_and_a_note_need_not_be(home: Home) -> None:
    seen: list[str] = []

    def step(name: str) -> None:
        if name == "before commit":
            connection = ledger.store._connection
            assert connection is not None
            query = "PRAGMA synchronous" if home.file else "SHOW synchronous_commit"
            seen.append(str(connection.value(query)))

    ledger = home.new()
    ledger.store.step = step
    ledger.reserve(charge(1)).commit()
    assert ledger.verify().sound
    ledger.reserve(charge(2)).commit()
    ledger.reserve(charge(3)).fail()
    assert seen == (["2", "1", "2", "2", "1"] if home.file else ["on", "off", "on", "on", "off"])


def test_many_creators_make_one_ledger(home: Home) -> None:
    def work(number: int) -> None:
        home.new(limit=100 * EPSILON).reserve(charge(number))

    workers = [FORK.Process(target=work, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 6
    assert home.open().spent()["epsilon"] == 6 * EPSILON
    assert len(list(home.state.iterdir())) == 1


def test_threads_of_one_ledger_get_exactly_the_budget(home: Home) -> None:
    ledger = home.new(limit=30 * EPSILON)
    assert race([ledger] * 12, 4) == 30
    assert ledger.verify().sound


def test_a_ledger_survives_a_fork(home: Home) -> None:
    """Parent and children continue with the same object at the same time, while other threads of the parent are charging."""
    ledger = home.new(limit=100 * EPSILON)
    stop = threading.Event()

    def busy() -> None:
        number = 0
        while not stop.is_set():
            ledger.reserve(charge(f"busy-{number}", 1))
            number += 1

    thread = threading.Thread(target=busy)
    thread.start()
    workers = [FORK.Process(target=reserve_some, args=(ledger, f"c{number}", 5)) for number in range(4)]
    for worker in workers:
        worker.start()
    reserve_some(ledger, "parent", 5)
    for worker in workers:
        worker.join()
    stop.set()
    thread.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert ledger.spent()["epsilon"] // EPSILON == 25
    assert ledger.verify().sound


def test_clock_jumps_do_not_matter(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = home.new()
    for number, time in enumerate(("2031-01-01T00:00:00", "1970-01-01T00:00:00", "2025-01-01T00:00:00")):
        monkeypatch.setattr("dpsql.ledger.accounts.now", lambda time=time: time)
        ledger.reserve(charge(number))
    assert [entry.seq for entry in ledger.history()] == [1, 2, 3, 4, 5]
    assert home.open().spent()["epsilon"] == 3 * EPSILON


def test_an_auditor_can_add_the_export_up_and_check_the_chain(home: Home) -> None:
    ledger = home.new()
    ledger.open_account("analyst:ann", "pure", {"epsilon": 9 * EPSILON, "delta": 0})
    ledger.reserve(charge("=cmd()", 3, scopes=("dataset", "analyst:ann"))).commit()
    ledger.reserve(charge("plain", 4))
    out = io.StringIO()
    ledger.export(out, "json")
    key = bytes.fromhex((home.state / ledger.ledger_id / "key").read_text())
    previous, total = "0" * 64, 0
    for line in out.getvalue().splitlines():
        entry = json.loads(line)
        text = f"dpsql entry\n{previous}\n{entry['body']}".encode()
        assert hmac.new(key, text, hashlib.sha256).hexdigest() == entry["digest"]
        previous = entry["digest"]
        total += int(json.loads(entry["body"]).get("charge", {}).get("epsilon", 0))
    assert total == ledger.spent()["epsilon"] == 7
    out = io.StringIO()
    ledger.export(out, "csv")
    rows = list(csv.DictReader(out.getvalue().splitlines()))
    charges = [row for row in rows if row["kind"] == "charge"]
    assert sum(int(row["epsilon"]) for row in charges if "dataset" in row["scopes"].split()) == 7
    assert charges[0]["id"] == "'=cmd()"
    with pytest.raises(Error):
        ledger.export(out, "xml")


SCOPES = ("dataset", "analyst:ann", "analyst:bob", "session:s1")


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 3), st.sets(st.sampled_from(SCOPES[1:])), st.integers(0, 9)),
        max_size=12,
    )
)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_totals_follow_a_model(home: Home, actions: list[tuple[int, int, set[str], int]]) -> None:
    """Charges, changed limits and reopening compared with a dictionary; amounts exceed 64 bits."""
    ledger = home.open(create=True)
    unit = 10**30
    limits = {scope: account.limits["epsilon"] // unit for scope, account in ledger.accounts().items()}
    spent = {scope: account.spent["epsilon"] // unit for scope, account in ledger.accounts().items()}
    for scope in SCOPES:
        limits[scope] = spent.setdefault(scope, 0) + 20
        ledger.open_account(scope, "pure", {"epsilon": limits[scope] * unit, "delta": 0})
    for amount, act, scopes, number in actions:
        applied = ("dataset", *sorted(scopes))
        if act == 0:
            limits["dataset"] = spent["dataset"] + number
            ledger.open_account("dataset", "pure", {"epsilon": limits["dataset"] * unit, "delta": 0})
        elif act == 1:
            ledger = home.open()
        fits = all(spent[scope] + amount <= limits[scope] for scope in applied)
        try:
            request = charge(len(list(ledger.history())), amount * unit, scopes=applied)
            ledger.reserve(request)
            assert fits
            spent |= {scope: spent[scope] + amount for scope in applied}
        except BudgetRefusal:
            assert not fits
    assert {scope: ledger.spent(scope)["epsilon"] for scope in SCOPES} == {s: spent[s] * unit for s in SCOPES}
    assert ledger.verify().sound
    home.close()


@pytest.mark.parametrize(
    ("exact", "text"),
    [
        ("0.022937446688722182839169551808912461", "0.02293"), ("0.0000005", "0.0000005"), ("10", "10"), ("0", "0"),
        ("1234567", "1234000"), ("0.99999999", "0.9999"),
    ],
)  # fmt: skip
def test_what_is_left_is_readable_and_never_more_than_there_is(exact: str, text: str) -> None:
    assert readable_text(exact) == text and float(text) <= float(exact)
