"""Budget windows in the ledger: each is spent once, whatever clocks and processes do, and a restored ledger forgets none."""

import json
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.exceptions import BudgetRefusal, Error
from dpsql.ledger import windows
from dpsql.ledger.accounts import Account
from dpsql.ledger.backup import back_up, restore
from dpsql.ledger.ledger import Ledger, forecasts
from dpsql.ledger.windows import BudgetWindow, of_present, parts, present_start, window_scope

FORK = multiprocessing.get_context("fork")
OCTOBER, NOVEMBER, DECEMBER = "2026-10-01", "2026-11-01", "2026-12-01"


def units(epsilon: int) -> dict[str, int]:
    return {"epsilon": epsilon * EPSILON, "delta": 0}


def window(start: str, epsilon: int = 3, in_all: int | None = None) -> BudgetWindow:
    return BudgetWindow(start, "pure", units(epsilon), None if in_all is None else units(in_all))


def scopes(start: str) -> tuple[str, ...]:
    return ("dataset", window_scope(start))


def spend(ledger: Ledger, start: str, name: str, attempts: int) -> int:
    """Return how many of `attempts` charges of epsilon 1 fitted."""
    made = 0
    for attempt in range(attempts):
        try:
            ledger.reserve(charge(f"{name}-{attempt}", scopes=scopes(start))).commit()
            made += 1
        except BudgetRefusal:
            pass
    return made


def test_each_window_is_spent_once_and_nothing_is_carried_over(home: Home) -> None:
    ledger = home.open(create=True)
    ledger.open_window(window(OCTOBER))
    assert spend(ledger, OCTOBER, "october", 2) == 2
    ledger.open_window(window(NOVEMBER))
    assert spend(ledger, NOVEMBER, "november", 9) == 3
    assert ledger.spent() == units(5) and ledger.spent(window_scope(NOVEMBER)) == units(3)
    assert ledger.remaining() == units(0)
    assert ledger.verify().sound


def test_a_window_that_is_open_is_opened_again_without_an_entry(home: Home) -> None:
    ledger = home.open(create=True)
    ledger.open_window(window(OCTOBER))
    spend(ledger, OCTOBER, "october", 2)
    before = len(list(ledger.history()))
    ledger.open_window(window(OCTOBER))
    home.open().open_window(window(OCTOBER))
    assert len(list(ledger.history())) == before
    assert spend(ledger, OCTOBER, "again", 9) == 1


def test_a_clock_that_is_behind_opens_nothing_and_charges_nothing(home: Home) -> None:
    late, early = home.open(create=True), home.open()
    early.open_window(window(OCTOBER))
    late.open_window(window(NOVEMBER))
    before = len(list(late.history()))
    with pytest.raises(Error) as opened:
        early.open_window(window(OCTOBER))
    with pytest.raises(Error) as charged:
        early.reserve(charge("one more", scopes=scopes(OCTOBER)))
    assert opened.value.slug == charged.value.slug == "window_closed"
    assert OCTOBER in opened.value.message and NOVEMBER in opened.value.message and not charged.value.charged
    assert len(list(late.history())) == before
    assert late.limits(window_scope(OCTOBER)) == late.spent(window_scope(OCTOBER)) == units(0)


def test_a_clock_that_was_ahead_does_not_give_the_later_window_twice(home: Home) -> None:
    ledger = home.open(create=True)
    ledger.open_window(window(DECEMBER))
    assert spend(ledger, DECEMBER, "too soon", 9) == 3
    for start in (OCTOBER, NOVEMBER):
        with pytest.raises(Error, match="closed"):
            ledger.open_window(window(start))
    ledger.open_window(window(DECEMBER))
    assert spend(ledger, DECEMBER, "in december", 9) == 0


def test_a_lifetime_limit_ends_all_windows(home: Home) -> None:
    ledger = home.open(create=True)
    made = 0
    for start in (OCTOBER, NOVEMBER, DECEMBER):
        ledger.open_window(window(start, in_all=7))
        made += spend(ledger, start, start, 9)
    assert made == 7 and ledger.spent() == units(7) and ledger.limits() == units(7)


def test_analysts_have_accounts_in_each_window(home: Home) -> None:
    ledger = home.open(create=True)
    for start in (OCTOBER, NOVEMBER):
        ledger.open_window(window(start))
        ann = window_scope(start, "analyst:ann")
        ledger.open_account(ann, "pure", units(1))
        ledger.reserve(charge(start, scopes=(*scopes(start), ann)))
        with pytest.raises(BudgetRefusal):
            ledger.reserve(charge(f"{start} again", scopes=(*scopes(start), ann)))
    assert ledger.verify().sound
    assert set(of_present(ledger.accounts())) == {*scopes(NOVEMBER), window_scope(NOVEMBER, "analyst:ann")}
    assert {outlook.scope for outlook in forecasts(ledger)} == set(of_present(ledger.accounts()))


@pytest.mark.parametrize(("first", "second", "left"), [(3, 5, 3), (3, 2, 0), (3, 1, 0)])
def test_the_limit_of_a_window_changes_with_the_policy(home: Home, first: int, second: int, left: int) -> None:
    ledger = home.open(create=True)
    ledger.open_window(window(OCTOBER, first))
    assert spend(ledger, OCTOBER, "first", 2) == 2
    ledger.open_window(window(OCTOBER, second))
    assert ledger.remaining() == ledger.remaining(window_scope(OCTOBER)) == units(left)
    assert spend(ledger, OCTOBER, "second", 9) == left
    assert ledger.verify().sound


def test_what_was_spent_before_there_were_windows_counts(home: Home) -> None:
    ledger = home.new(limit=4 * EPSILON)
    for number in range(4):
        ledger.reserve(charge(number))
    ledger.open_window(window(OCTOBER, in_all=6))
    assert spend(ledger, OCTOBER, "october", 9) == 2
    ledger.open_window(window(NOVEMBER))
    assert spend(ledger, NOVEMBER, "november", 9) == 3 and ledger.spent() == units(9)


def test_a_window_has_the_accountant_of_its_ledger(home: Home) -> None:
    ledger = home.new()
    with pytest.raises(Error) as error:
        ledger.open_window(replace(window(OCTOBER), accountant="zcdp"))
    assert error.value.slug == "ledger_accountant"
    assert window_scope(OCTOBER) not in ledger.accounts()


def test_a_window_is_not_opened_as_another_account(home: Home) -> None:
    ledger = home.open(create=True)
    ledger.open_window(window(OCTOBER))
    ledger.open_window(window(NOVEMBER))
    with pytest.raises(Error) as error:
        ledger.open_account(window_scope(OCTOBER), "pure", units(9))
    assert error.value.slug == "ledger_request"


@pytest.mark.parametrize("start", [OCTOBER, "2026-09-01"])
def test_verify_notices_a_window_that_was_opened_after_a_later_one(home: Home, start: str) -> None:
    """Anyone with the key can write any entry; the order of windows is among the checked properties."""
    ledger = home.open(create=True)
    ledger.open_window(window(OCTOBER))
    ledger.open_window(window(NOVEMBER))
    earlier = {scope: account for scope, account in ledger.accounts().items() if parts(scope)[0] in (None, start)}
    with ledger._write_transaction() as writer:
        windows.open_in(writer, earlier, window(start, epsilon=5))
    verdict = ledger.verify()
    assert not verdict.sound and "window" in verdict.problem


class Killer:
    """A step hook that ends the process without cleanup at the first step with a given name."""

    def __init__(self, step: str) -> None:
        self.step = step

    def __call__(self, step: str) -> None:
        if step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("step", ["before begin", "begun", "before commit", "after commit", "after head"])
def test_killed_while_a_window_is_opened_it_is_opened_whole_or_not_at_all(home: Home, step: str) -> None:
    ledger = home.open(create=True)
    ledger.open_window(window(OCTOBER))
    assert spend(ledger, OCTOBER, "october", 2) == 2
    ledger.close()

    def work() -> None:
        home.open(step=Killer(step)).open_window(window(NOVEMBER))

    child = FORK.Process(target=work)
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    ledger = home.open()
    opened = window_scope(NOVEMBER) in ledger.accounts()
    assert opened == (step in ("after commit", "after head"))
    assert ledger.remaining(window_scope(OCTOBER)) == units(0 if opened else 1)
    ledger.open_window(window(NOVEMBER))
    assert spend(ledger, NOVEMBER, "november", 9) == 3
    assert ledger.verify().sound


def test_processes_open_and_spend_a_window_together(home: Home, tmp_path: Path) -> None:
    home.open(create=True).close()

    def work(name: str) -> None:
        ledger = home.open()
        for start in (OCTOBER, NOVEMBER):
            try:
                ledger.open_window(window(start, epsilon=20))
                (tmp_path / f"{name}-{start}").write_text(str(spend(ledger, start, f"{name}-{start}", 15)))
            except Error as error:
                assert error.slug == "window_closed"

    workers = [FORK.Process(target=work, args=(str(number),)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    ledger = home.open()
    spent = {start: ledger.spent(window_scope(start))["epsilon"] // EPSILON for start in (OCTOBER, NOVEMBER)}
    assert spent[OCTOBER] <= 20 and spent[NOVEMBER] == 20
    assert ledger.spent()["epsilon"] // EPSILON == sum(spent.values())
    assert ledger.verify().sound


@pytest.mark.parametrize("in_all", [None, 12])
@pytest.mark.parametrize("lost", [None, 1])
def test_a_restored_ledger_counts_the_window_that_the_backup_has_not_seen(
    sqlite_home: Home, tmp_path: Path, lost: int | None, in_all: int | None
) -> None:
    ledger = sqlite_home.open(create=True)
    ledger.open_window(window(OCTOBER, in_all=in_all))
    spend(ledger, OCTOBER, "october", 2)
    back_up(ledger, tmp_path / "backup")
    ledger.open_window(window(NOVEMBER, in_all=in_all))
    assert spend(ledger, NOVEMBER, "november", 9) == 3
    ledger.close()
    assert sqlite_home.file is not None
    sqlite_home.file.write_bytes(b"damaged")
    for suffix in ("-wal", "-shm"):
        sqlite_home.file.with_name(sqlite_home.file.name + suffix).unlink(missing_ok=True)
    restore(
        tmp_path / "backup", sqlite_home.url, "clinic", lost=None if lost is None else units(lost),
        state=sqlite_home.state, window=window(NOVEMBER, in_all=in_all),
    )  # fmt: skip
    ledger = sqlite_home.open()
    assert ledger.verify().sound
    ledger.open_window(window(NOVEMBER, in_all=in_all))
    assert spend(ledger, NOVEMBER, "after the restore", 9) == (0 if lost is None else 2)


def test_the_name_of_a_scope_tells_its_window() -> None:
    assert parts("window:2026-11-01:analyst:a:b") == ("2026-11-01", "analyst:a:b")
    assert parts("analyst:window:2026-11-01") == (None, "analyst:window:2026-11-01")
    assert parts(window_scope(NOVEMBER)) == (NOVEMBER, "dataset")

    def present(*scopes: str) -> str | None:
        return present_start({scope: Account(scope, "pure", {}, {}, seq) for seq, scope in enumerate(scopes)})

    assert present("dataset", "session:x") is None
    assert present("dataset", window_scope(NOVEMBER), window_scope(OCTOBER, "project:p")) == NOVEMBER
    assert present(window_scope(DECEMBER), window_scope(NOVEMBER)) == NOVEMBER


def test_an_export_of_windows_adds_up_for_an_auditor(sqlite_home: Home, tmp_path: Path) -> None:
    from dpsql_audit.verify_export import Audit

    ledger = sqlite_home.open(create=True)
    for start in (OCTOBER, NOVEMBER):
        ledger.open_window(window(start))
        spend(ledger, start, start, 2)
    audit = Audit(ledger.witness.key)
    for entry in ledger.history():
        facts = json.loads(entry.body)
        for name in ("charge", "limits"):
            if name in facts:
                facts[name] = {dimension: int(amount) for dimension, amount in facts[name].items()}
        audit.add(facts, entry.body, entry.digest)
    assert not audit.problems
    assert audit.spent["dataset"]["epsilon"] == 4 * EPSILON
