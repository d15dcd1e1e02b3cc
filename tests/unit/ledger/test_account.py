"""Rows of accounts that were edited are rejected, column by column."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from dpsql.errors.exceptions import Error
from dpsql.ledger import accounts
from dpsql.ledger.accounts import Account, insert_account, load_accounts
from dpsql.ledger.database import DatabaseConnection
from dpsql.ledger.opening import create_ledger
from dpsql.ledger.records import account_mac

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


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("scope", "analyst:bob"),
        ("accountant", "zcdp"),
        ("limits", '{"delta":"3","epsilon":"11"}'),
        ("spent", '{"delta":"0","epsilon":"6"}'),
        ("seq", 5),
        ("mac", "0" * 64),
        ("mac", ""),
    ],
)
def test_an_edited_row_is_a_fault(connection: DatabaseConnection, column: str, value: Any) -> None:
    insert_account(connection, KEY, LEDGER, ACCOUNT)
    load_accounts(connection, KEY, LEDGER)
    connection.run(f"UPDATE dpsql_accounts SET {column} = :value", value=value)
    with pytest.raises(Error) as error:
        load_accounts(connection, KEY, LEDGER)
    assert error.value.slug == "ledger_tampered"


@pytest.mark.parametrize("limits", ["no JSON", "[]", '{"epsilon":"-1"}', '{"epsilon":1}'])
def test_limits_that_are_no_amounts_are_a_fault_even_with_a_mac(connection: DatabaseConnection, limits: str) -> None:
    facts = {**ACCOUNT.row(KEY, LEDGER), "limits": limits}
    del facts["mac"]
    row = {**facts, "mac": account_mac(KEY, LEDGER, facts)}
    connection.run(accounts._INSERT_ACCOUNT, **row)
    with pytest.raises(Error) as error:
        load_accounts(connection, KEY, LEDGER)
    assert error.value.slug == "ledger_tampered"


@pytest.mark.parametrize(("key", "ledger"), [(b"x" * 32, LEDGER), (KEY, "ledger-2")], ids=["key", "ledger"])
def test_a_row_of_another_key_or_ledger_is_a_fault(connection: DatabaseConnection, key: bytes, ledger: str) -> None:
    insert_account(connection, KEY, LEDGER, ACCOUNT)
    with pytest.raises(Error):
        load_accounts(connection, key, ledger)


def test_rows_that_are_known_are_forgotten_before_they_are_many(
    connection: DatabaseConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "_MOST_KNOWN", 3)
    for number in range(10):
        insert_account(connection, KEY, LEDGER, replace(ACCOUNT, scope=f"analyst:a{number}"))
        assert 1 <= len(accounts._KNOWN) <= 3
    assert len(load_accounts(connection, KEY, LEDGER)) == 10
