"""Bytes are counted in an account and in all that it is part of, none is lost, and no bound is passed."""

import random
import threading

import pytest

from dpsql.engine.memory_account import Held, MemoryAccount
from dpsql.errors.exceptions import Error

SERVER, USER, CONNECTION = 900, 600, 400


def tree() -> tuple[MemoryAccount, list[MemoryAccount], list[MemoryAccount]]:
    """Return a server's account, those of two users, and those of two connections of each."""
    server = MemoryAccount(SERVER, "server")
    users = [server.part(USER, f"user {number}", "close") for number in range(2)]
    return server, users, [user.part(CONNECTION, "connection", "close") for user in users for _ in range(2)]


@pytest.mark.parametrize("seed", range(40))
def test_sums_hold_after_any_steps_and_no_bound_is_passed(seed: int) -> None:
    chance = random.Random(seed)
    server, users, connections = tree()
    holders: list[tuple[int, Held, int]] = []
    for _ in range(300):
        step = chance.random()
        try:
            if step < 0.5 or not holders:
                number = chance.randrange(4)
                holders.append((number, connections[number].reserve(chance.randrange(150), chance.choice("ab")), 1))
            elif step < 0.7:
                chance.choice(holders)[1].resize(chance.randrange(200))
            elif step < 0.8:
                index = chance.randrange(len(holders))
                number, held, count = holders[index]
                held.share()
                holders[index] = (number, held, count + 1)
            else:
                number, held, count = holders.pop(chance.randrange(len(holders)))
                held.release()
                if count > 1:
                    holders.append((number, held, count - 1))
        except Error as error:
            assert (error.slug, error.sqlstate) == ("memory_full", "53200")
        sizes = [sum(held.size for place, held, _ in holders if place == number) for number in range(4)]
        assert [account.held for account in connections] == sizes
        assert [user.held for user in users] == [sizes[0] + sizes[1], sizes[2] + sizes[3]]
        assert server.held == sum(sizes) == sum(server.kinds.values()) <= SERVER
        assert max(sizes) <= CONNECTION and max(user.held for user in users) <= USER
    for account in connections:
        account.close()
        assert account.held == 0
    assert server.held == 0 and not any(server.kinds.values())


def test_a_refusal_names_the_bound_that_has_no_room_and_changes_nothing() -> None:
    server, users, connections = tree()
    first = connections[0].reserve(400, "rows")
    for account, who in ((connections[0], "connection"), (connections[1], "user 0")):
        with pytest.raises(Error, match=who):
            account.reserve(201, "rows")
    connections[2].reserve(350, "rows")
    with pytest.raises(Error, match="server"):
        connections[3].reserve(240, "rows")
    assert (server.held, users[0].held, connections[0].held, server.refused) == (750, 400, 400, 3)
    with pytest.raises(Error):
        first.resize(401)
    assert first.size == 400
    connections[0].reserve(5, "small", forced=True)
    assert server.held == 755


def test_a_statement_keeps_what_its_caller_keeps_and_releases_the_rest() -> None:
    account = MemoryAccount(100)
    account.computing(1000)
    with account.statement(10, "rows") as held:
        account.computing(60)
        account.computing(40)
        assert account.held == 60, "the largest that was needed"
        with pytest.raises(Error):
            account.computing(101)
        held.resize(30)
    assert account.held == 30
    with pytest.raises(ZeroDivisionError), account.statement(10, "rows"):
        account.computing(60)
        raise ZeroDivisionError
    assert account.held == 30
    held.release()
    assert account.held == 0
    held.resize(50)
    assert account.held == 0, "nothing is held after the last release"


def test_closing_waits_for_the_running_statement() -> None:
    """A client may be gone while a thread computes its answer, which takes memory until it has ended."""
    account = MemoryAccount(100)
    kept = account.reserve(20, "rows")
    with account.statement(10, "rows"):
        account.close()
        assert account.held == 10
        account.computing(50)
        assert account.held == 50
    assert account.held == 0
    kept.release()
    assert account.held == 0


def test_threads_lose_nothing() -> None:
    server, _, connections = tree()

    def work(account: MemoryAccount) -> None:
        for _ in range(300):
            with account.reserve(1, "rows") as held:
                held.resize(2)

    threads = [threading.Thread(target=work, args=(account,)) for account in connections * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.held == 0
