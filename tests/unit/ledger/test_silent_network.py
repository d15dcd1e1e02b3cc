"""A network to the ledger that loses every packet and ends no connection: charges fail in bounded time, and no one else waits."""

import threading
from collections.abc import Iterator

import pytest
from support.ledger_homes import EPSILON, Home, charge
from support.relay import Relay
from support.server_folder import server_folder

from dpsql.errors.exceptions import Error
from dpsql.ledger.ledger import Ledger

pytestmark = pytest.mark.slow
SECONDS = 2.0
"""Time that these ledgers wait for each other's locks, and again for a reply."""
WRITES = b"INSERT INTO dpsql_entries"
NEVER_SECONDS = 60.0
"""Anything that has not ended by then waits for TCP, which takes a quarter of an hour or more."""


@pytest.fixture
def relay(postgres_home: Home) -> Iterator[Relay]:
    with server_folder() as folder:  # the path of a socket is short
        network = Relay(folder, folder_of(postgres_home.url))
        yield network
        network.close()


def folder_of(url: str) -> str:
    """Return the folder of the server's socket."""
    return url.split("host=")[1].split("&", maxsplit=1)[0]


@pytest.fixture
def behind(postgres_home: Home, relay: Relay) -> Iterator[Ledger]:
    """Yield the ledger of `postgres_home`, as a process reads it through the relay."""
    postgres_home.new(timeout_seconds=SECONDS)
    home = Home(postgres_home.url.replace(folder_of(postgres_home.url), str(relay.folder)), postgres_home.state)
    yield home.open(timeout_seconds=SECONDS, adopt=True)
    home.close()


def failure(ledger: Ledger, request_id: str, network: Relay) -> Error:
    """Return the error of a charge that must end without help; otherwise, end its connection."""
    errors: list[Error] = []

    def reserve() -> None:
        try:
            ledger.reserve(charge(request_id))
        except Error as error:
            errors.append(error)

    thread = threading.Thread(target=reserve, daemon=True)
    thread.start()
    thread.join(NEVER_SECONDS)
    if thread.is_alive():
        network.close()
        pytest.fail("the charge waits for ever")
    assert errors, "the charge was answered"
    return errors[0]


@pytest.mark.parametrize(
    ("markers", "passes", "slug", "left"),
    [
        ((WRITES,), False, "ledger_unreachable", 0),
        ((WRITES, b"COMMIT"), False, "ledger_commit_unknown", 0),
        ((WRITES, b"COMMIT"), True, "ledger_commit_unknown", 1),
    ],
    ids=["while it writes", "before it is durable", "after it is durable"],
)
def test_a_charge_whose_packets_are_lost_fails_and_blocks_nobody(
    postgres_home: Home, behind: Ledger, relay: Relay, markers: tuple[bytes, ...], passes: bool, slug: str, left: int
) -> None:
    """The cut transaction holds the lock of all writers; the server still sees its connection."""
    behind.reserve(charge("before"))
    relay.cut_at(*markers, passes=passes, stalls=True)
    error = failure(behind, "lost", relay)
    assert (error.slug, error.charged) == (slug, slug == "ledger_commit_unknown")
    assert relay.cuts == 1
    (other,) = postgres_home.opened
    other.reserve(charge("of another process"))
    assert other.spent()["epsilon"] == (2 + left) * EPSILON
    relay.mend()
    behind.reserve(charge("after"))
    assert other.spent()["epsilon"] == (3 + left) * EPSILON
    assert other.verify().sound


def test_a_charge_over_an_idle_connection_that_died_silently_fails_and_the_next_one_is_made(
    postgres_home: Home, behind: Ledger, relay: Relay
) -> None:
    behind.reserve(charge("before"))
    relay.stall()
    assert failure(behind, "lost", relay).slug == "ledger_unreachable"
    relay.mend()
    behind.reserve(charge("after"))
    assert behind.spent()["epsilon"] == 2 * EPSILON
