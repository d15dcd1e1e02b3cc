"""What a check of the whole ledger finds in a chain whose digests are right: entries that no ledger of ours would hold.

Somebody who edits the ledger without the key is met in `test_tamper`; here the entries are written with the key, so that what they
say is all that can be wrong with them.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.ledger_homes import EPSILON

from dpsql.errors.exceptions import Error, IntegrityError
from dpsql.ledger import accounts
from dpsql.ledger.accounts import Account, ChainWriter, insert_account, load_accounts
from dpsql.ledger.check import first_problem, require_sound
from dpsql.ledger.database import DatabaseConnection
from dpsql.ledger.opening import create_ledger
from dpsql.ledger.records import LedgerVerdict, account_mac, to_text
from dpsql.ledger.windows import window_scope
from dpsql.ledger.witness import Head, Witness, new_witness

OCTOBER, NOVEMBER, ANN_IN_OCTOBER = (
    window_scope("2026-10-01"), window_scope("2026-11-01"), window_scope("2026-10-01", "analyst:ann"),
)  # fmt: skip


def units(epsilon: int) -> dict[str, int]:
    return {"epsilon": epsilon * EPSILON, "delta": 0}


class Book:
    """A ledger in memory, to which entries are written whatever they say."""

    def __init__(self, connection: DatabaseConnection, witness: Witness) -> None:
        self.connection, self.witness = connection, witness
        create_ledger(connection)
        self.writer = ChainWriter(connection, witness, Head())

    def write(self, kind: str, **facts: Any) -> int:
        return self.writer.append(kind, facts)

    def create(self, dataset: str = "clinic", ledger: str | None = None) -> int:
        return self.write("created", dataset=dataset, ledger=ledger or self.witness.ledger_id)

    def account(self, scope: str, epsilon: int, kind: str = "account") -> int:
        return self.write(kind, scope=scope, accountant="pure", limits=to_text(units(epsilon)))

    def charge(self, epsilon: int, *scopes: str, **facts: Any) -> int:
        return self.write("charge", **{"scopes": scopes or ("dataset",), "charge": to_text(units(epsilon)), **facts})

    def keep(self, scope: str, limit: int, spent: int, seq: int) -> None:
        """Write a row of running totals."""
        account = Account(scope, "pure", units(limit), units(spent), seq)
        insert_account(self.connection, self.witness.key, self.witness.ledger_id, account)

    def verdict(self, head: Head | None = None) -> LedgerVerdict:
        return first_problem(self.connection, self.witness, "clinic", head or self.writer.last)

    def edit(self, statement: str) -> None:
        for (name,) in self.connection.rows("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            self.connection.run(f"DROP TRIGGER {name}")
        self.connection.run(statement)

    def without_unique_columns(self) -> None:
        """Let the database hold entries that its own constraints would keep out."""
        self.edit("CREATE TABLE copy AS SELECT * FROM dpsql_entries")
        self.edit("DROP TABLE dpsql_entries")
        self.edit("ALTER TABLE copy RENAME TO dpsql_entries")


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    with closing(sqlite3.connect(":memory:")) as memory:
        yield Book(DatabaseConnection(memory), new_witness(tmp_path, "clinic", "sqlite://"))


def opened(book: Book, limit: int = 5) -> Book:
    """Entries 1 and 2: the ledger and the account of the data set."""
    book.create()
    book.account("dataset", limit)
    return book


def test_a_ledger_that_holds_is_sound_to_its_last_entry(book: Book) -> None:
    opened(book)
    book.account("analyst:ann", 3)
    first = book.charge(2, "dataset", "analyst:ann", id="a")
    book.write("committed", resolves=first)
    second = book.charge(1, id="b")
    book.write("failed", resolves=second)
    book.account("dataset", 4, kind="limits")
    book.write("unit", unit="patients")
    last = book.charge(1)
    book.keep("dataset", 4, 4, last)
    book.keep("analyst:ann", 3, 2, first)
    assert book.verdict() == LedgerVerdict(last) and book.verdict().sound
    require_sound(book.connection, book.witness, "clinic", book.writer.last)


def test_an_empty_ledger_is_sound_only_where_nothing_has_been_seen(book: Book) -> None:
    assert book.verdict(Head()) == LedgerVerdict(0)
    assert book.verdict(Head(1, "0" * 64)) == LedgerVerdict(0, 1, "entries are missing: entry 1 has been seen")


def twice_created(book: Book) -> None:
    book.create()
    book.create()


def never_created(book: Book) -> None:
    book.account("dataset", 5)


def account_opened_twice(book: Book) -> None:
    opened(book)
    book.account("dataset", 50)


def limits_without_account(book: Book) -> None:
    book.create()
    book.account("dataset", 5, kind="limits")


def limits_as_text(book: Book) -> None:
    book.create()
    book.write("account", scope="dataset", accountant="pure", limits="5")


def charge_without_account(book: Book) -> None:
    opened(book)
    book.charge(1, "dataset", "analyst:ann")


def charge_beyond_the_limit(book: Book) -> None:
    opened(book, 5)
    book.charge(3)
    book.charge(3)


def charge_beyond_a_lowered_limit(book: Book) -> None:
    opened(book, 5)
    book.charge(3)
    book.account("dataset", 3, kind="limits")
    book.charge(1)


def charge_beyond_one_of_two_limits(book: Book) -> None:
    opened(book, 5)
    book.account("analyst:ann", 1)
    book.charge(2, "dataset", "analyst:ann")


def failed_charge_given_back(book: Book) -> None:
    """What failed has been spent as well."""
    opened(book, 5)
    book.write("failed", resolves=book.charge(5))
    book.charge(1)


def charge_of_other_dimensions(book: Book) -> None:
    opened(book)
    book.write("charge", scopes=["dataset"], charge={"rho": "1"})


def charge_that_is_negative(book: Book) -> None:
    opened(book)
    book.write("charge", scopes=["dataset"], charge={"epsilon": "-1", "delta": "0"})


def charge_without_scopes(book: Book) -> None:
    opened(book)
    book.write("charge", scopes=None, charge=to_text(units(1)))


def outcome_of_no_charge(book: Book) -> None:
    opened(book)
    book.write("committed", resolves=2)


def outcome_of_a_later_charge(book: Book) -> None:
    opened(book)
    book.write("committed", resolves=4)


def window_opened_after_a_later_one(book: Book) -> None:
    opened(book)
    book.account(NOVEMBER, 3)
    book.account(OCTOBER, 3)


def window_raised_after_a_later_one(book: Book) -> None:
    opened(book)
    book.account(OCTOBER, 3)
    book.account(NOVEMBER, 3)
    book.account(OCTOBER, 4, kind="limits")


def window_lowered_but_not_closed(book: Book) -> None:
    opened(book)
    book.account(OCTOBER, 3)
    book.charge(1, "dataset", OCTOBER)
    book.account(NOVEMBER, 3)
    book.account(OCTOBER, 2, kind="limits")


SENSELESS = "its text makes no sense"
DID_NOT_FIT = "the charge did not fit scope "
LATE_WINDOW = "a budget window was opened after a later one"
WRONG: list[tuple[Callable[[Book], object], int, str]] = [
    (twice_created, 2, "a ledger is created once, by its first entry"),
    (never_created, 1, "a ledger is created once, by its first entry"),
    (lambda book: book.create(dataset="hospital"), 1, "it is the ledger of another data set"),
    (lambda book: book.create(ledger="0" * 32), 1, "it is the ledger of another data set"),
    (lambda book: book.write("created", dataset="clinic"), 1, SENSELESS),
    (account_opened_twice, 3, "the account was opened before"),
    (limits_without_account, 2, SENSELESS),
    (limits_as_text, 2, SENSELESS),
    (charge_without_account, 3, SENSELESS),
    (charge_beyond_the_limit, 4, DID_NOT_FIT + "dataset"),
    (charge_beyond_a_lowered_limit, 5, DID_NOT_FIT + "dataset"),
    (charge_beyond_one_of_two_limits, 4, DID_NOT_FIT + "analyst:ann"),
    (failed_charge_given_back, 5, DID_NOT_FIT + "dataset"),
    (charge_of_other_dimensions, 3, SENSELESS),
    (charge_that_is_negative, 3, SENSELESS),
    (charge_without_scopes, 3, SENSELESS),
    (outcome_of_no_charge, 3, "it resolves no charge that was open"),
    (outcome_of_a_later_charge, 3, "it resolves no charge that was open"),
    (window_opened_after_a_later_one, 4, LATE_WINDOW),
    (window_raised_after_a_later_one, 5, LATE_WINDOW),
    (window_lowered_but_not_closed, 6, LATE_WINDOW),
]


@pytest.mark.parametrize(("write", "first_bad", "problem"), WRONG)
def test_the_first_entry_that_no_ledger_would_hold_is_named(
    book: Book, write: Callable[[Book], object], first_bad: int, problem: str
) -> None:
    write(book)
    assert book.verdict() == LedgerVerdict(first_bad - 1, first_bad, problem)
    with pytest.raises(IntegrityError) as caught:
        require_sound(book.connection, book.witness, "clinic", book.writer.last)
    assert caught.value.slug == "ledger_tampered"
    assert f"at entry {first_bad}: {problem}" in caught.value.message


@pytest.mark.parametrize(("first", "second"), [("committed", "failed"), ("failed", "committed"), ("failed", "failed")])
def test_a_charge_has_one_outcome(book: Book, first: str, second: str) -> None:
    opened(book)
    charged = book.charge(1)
    book.write(first, resolves=charged)
    book.without_unique_columns()
    book.write(second, resolves=charged)
    assert book.verdict() == LedgerVerdict(4, 5, "it resolves no charge that was open")


def test_a_window_may_be_closed_after_a_later_one_was_opened_and_be_changed_before(book: Book) -> None:
    opened(book)
    book.account(OCTOBER, 1)
    book.account(OCTOBER, 3, kind="limits")
    spent = book.charge(2, "dataset", OCTOBER)
    november = book.account(NOVEMBER, 3)
    closed = book.account(OCTOBER, 2, kind="limits")
    book.keep("dataset", 5, 2, spent)
    book.keep(OCTOBER, 2, 2, closed)
    book.keep(NOVEMBER, 3, 0, november)
    assert book.verdict().sound


def test_accounts_of_analysts_in_an_earlier_window_are_no_window(book: Book) -> None:
    opened(book)
    november = book.account(NOVEMBER, 3)
    ann = book.account(ANN_IN_OCTOBER, 3)
    book.keep("dataset", 5, 0, 2)
    book.keep(NOVEMBER, 3, 0, november)
    book.keep(ANN_IN_OCTOBER, 3, 0, ann)
    assert book.verdict().sound


def test_an_edited_row_of_totals_is_a_problem_of_the_last_entry(book: Book) -> None:
    opened(book)
    book.keep("dataset", 5, 0, 2)
    book.write("unit", unit="patients")
    assert book.verdict().sound
    book.edit("UPDATE dpsql_accounts SET limits = replace(limits, '5', '9')")
    verdict = book.verdict()
    assert (verdict.entries, verdict.first_bad) == (3, 3)
    assert "the running totals of a scope were edited" in verdict.problem


COLUMNS = ["kind = 'charge'", "id = 'x'", "resolves = 1"]


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_say_what_the_text_says(book: Book, column: str) -> None:
    opened(book)
    book.edit(f"UPDATE dpsql_entries SET {column} WHERE seq = 2")
    assert book.verdict() == LedgerVerdict(1, 2, "its columns differ from its text")


def test_an_entry_has_the_number_that_its_text_says(book: Book) -> None:
    opened(book)
    book.write("unit", seq=4)
    assert book.verdict() == LedgerVerdict(2, 3, "its columns differ from its text")


def test_an_entry_is_missing_where_its_number_is(book: Book) -> None:
    opened(book)
    book.account("analyst:ann", 3)
    book.edit("DELETE FROM dpsql_entries WHERE seq = 2")
    assert book.verdict() == LedgerVerdict(1, 2, "the entry is missing")


def test_an_entry_has_the_digest_that_follows_from_those_before(book: Book) -> None:
    opened(book)
    book.writer = ChainWriter(book.connection, book.witness, Head(2, "0" * 64))
    book.account("analyst:ann", 3)
    assert book.verdict() == LedgerVerdict(2, 3, "its digest does not follow from its text and the entry before")


def test_the_head_is_an_entry_of_the_ledger(book: Book) -> None:
    """An entry that was seen may be followed by others; it may not be missing or be another one."""
    opened(book)
    seen = book.writer.last
    ann = book.account("analyst:ann", 3)
    book.keep("dataset", 5, 0, 2)
    book.keep("analyst:ann", 3, 0, ann)
    assert book.verdict(seen).sound and book.verdict(Head()).sound
    other = Head(2, "f" * 64)
    assert book.verdict(other) == LedgerVerdict(2, 2, "it is not the entry that was seen before")
    later = Head(4, "f" * 64)
    assert book.verdict(later) == LedgerVerdict(3, 4, "entries are missing: entry 4 has been seen")
    for head, slug in ((other, "ledger_tampered"), (later, "ledger_older")):
        with pytest.raises(IntegrityError) as caught:
            require_sound(book.connection, book.witness, "clinic", head)
        assert caught.value.slug == slug


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
def test_entries_are_checked_on_every_page(book: Book, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_AFTER", accounts._AFTER.replace("LIMIT 1000", f"LIMIT {page}"))
    opened(book)
    for _ in range(5):
        charged = book.charge(1)
    book.keep("dataset", 5, 5, charged)
    assert book.verdict() == LedgerVerdict(7)
    book.charge(1)
    assert book.verdict() == LedgerVerdict(7, 8, DID_NOT_FIT + "dataset")


# --- Rows of accounts that were edited are rejected, column by column -------------------------------------------------


KEY, LEDGER = b"k" * 32, "ledger-1"
ACCOUNT = Account("dataset", "pure", {"epsilon": 10, "delta": 3}, {"epsilon": 7, "delta": 0}, 4)


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseConnection]:
    """Yield an in-memory database in which no row is known to be authentic."""
    monkeypatch.setattr(accounts, "_KNOWN", {})
    with closing(sqlite3.connect(":memory:")) as memory:
        connection = DatabaseConnection(memory)
        create_ledger(connection)
        yield connection


def test_a_row_has_a_mac_of_everything_in_it() -> None:
    row = ACCOUNT.row(KEY, LEDGER)
    assert row == {
        "scope": "dataset",
        "accountant": "pure",
        "limits": '{"delta":"3","epsilon":"10"}',
        "spent": '{"delta":"0","epsilon":"7"}',
        "seq": 4,
        "mac": account_mac(KEY, LEDGER, {name: value for name, value in row.items() if name != "mac"}),
    }


@pytest.mark.parametrize("limits", ["no JSON", "[]", '{"epsilon":"-1"}', '{"epsilon":1}'])
def test_limits_that_are_no_amounts_are_a_fault_even_with_a_mac(connection: DatabaseConnection, limits: str) -> None:
    facts = {**ACCOUNT.row(KEY, LEDGER), "limits": limits}
    del facts["mac"]
    row = {**facts, "mac": account_mac(KEY, LEDGER, facts)}
    connection.run(accounts._INSERT_ACCOUNT, **row)
    with pytest.raises(Error) as error:
        load_accounts(connection, KEY, LEDGER)
    assert error.value.slug == "ledger_tampered"


def test_rows_that_are_known_are_forgotten_before_they_are_many(
    connection: DatabaseConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "_MOST_KNOWN", 3)
    for number in range(10):
        insert_account(connection, KEY, LEDGER, replace(ACCOUNT, scope=f"analyst:a{number}"))
        assert 1 <= len(accounts._KNOWN) <= 3
    assert len(load_accounts(connection, KEY, LEDGER)) == 10
