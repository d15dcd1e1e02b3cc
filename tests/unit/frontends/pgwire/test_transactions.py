"""A transaction covers settings and options: ROLLBACK and savepoints restore them, COMMIT keeps the changes of SET."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import pytest
from support.places import CLINIC

from dpsql.engine.memory_account import MemoryAccount
from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.commands import Command, read_command, without_local
from dpsql.frontends.pgwire.rows import StatementResult
from dpsql.frontends.pgwire.settings import Settings
from dpsql.frontends.pgwire.transactions import MOST_SAVEPOINTS, Transaction
from dpsql.policy import Policy, parse_policy
from dpsql.pricing.options import Options
from dpsql.sql.lexer import POSTGRESQL, Piece, read_script
from dpsql.sql.parse import Statement, parse

POLICY = parse_policy(CLINIC)
FIRST = Options.of_policy(POLICY, None)


@dataclass
class SessionOptions:
    """The part of a session that a transaction uses."""

    options: Options = FIRST
    first_options: Options = FIRST
    policy: Policy = POLICY

    def set_option(self, name: str, value: str) -> None:
        self.options = self.options.with_value(name, value, self.policy)


class Connection:
    """One connection: its transaction, its settings and the options of its session."""

    def __init__(self) -> None:
        self.settings, self.session = Settings("ann"), SessionOptions()
        self.memory = MemoryAccount()
        self.transaction = Transaction(cast(Any, self))

    def run(self, sql: str) -> StatementResult:
        """Return the result of the last of several commands."""
        results = [self._run(piece) for piece in read_script(sql, POSTGRESQL).pieces]
        return results[-1]

    def _run(self, piece: Piece) -> StatementResult:
        """Return the result of one command, which is a message of its own."""
        read = command(piece.sql)
        self.transaction.enter()
        try:
            if not read.is_option:
                return self.transaction.run(read)
            return self.transaction.change_option(
                read, lambda: self._changed(without_local(piece) if read.local else piece)
            )
        finally:
            self.transaction.settle()

    def _changed(self, piece: Piece) -> StatementResult:
        """Execute SET or RESET of an option as `Session.execute` does."""
        _set_or_reset(self.session, parse(piece))
        return StatementResult("SET")

    def value(self, name: str) -> str:
        return self.settings.get(name)

    @property
    def state(self) -> tuple[str, dict[str, str], Options]:
        return self.transaction.status, self.settings.all(), self.session.options

    def set_epsilon(self, epsilon: int) -> None:
        self.session.options = replace(self.session.options, epsilon=Fraction(epsilon))


def _set_or_reset(session: SessionOptions, statement: Statement) -> None:
    if statement.kind == "reset" or statement.value.lower() == "default":
        session.options = session.options.reset(statement.name, session.first_options)
    else:
        session.set_option(statement.name, statement.value)


def command(sql: str) -> Command:
    (piece,) = read_script(sql, POSTGRESQL).pieces
    read = read_command(piece)
    assert read is not None
    return read


@pytest.fixture
def connection() -> Connection:
    return Connection()


def slug_of(connection: Connection, sql: str) -> str:
    before = connection.state
    with pytest.raises(Error) as caught:
        connection.run(sql)
    assert connection.state == before, "a refused command changes nothing"
    return caught.value.slug


# --- begin and end ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "tag", "status"),
    [
        ("BEGIN", "BEGIN", "T"), ("START TRANSACTION READ ONLY", "START TRANSACTION", "T"), ("BEGIN; COMMIT", "COMMIT", "I"),
        ("BEGIN; END", "COMMIT", "I"), ("BEGIN; ROLLBACK", "ROLLBACK", "I"), ("BEGIN; ABORT", "ROLLBACK", "I"),
        ("BEGIN; SAVEPOINT a", "SAVEPOINT", "T"), ("BEGIN; SAVEPOINT a; RELEASE a", "RELEASE", "T"),
        ("BEGIN; SAVEPOINT a; ROLLBACK TO a", "ROLLBACK", "T"), ("SET geqo_effort = 1", "SET", "I"),
        ("RESET geqo_effort", "RESET", "I"), ("LISTEN a", "LISTEN", "I"), ("SET TRANSACTION READ ONLY", "SET", "I"),
    ],
)  # fmt: skip
def test_commands_have_their_tags_and_lead_to_a_status(connection: Connection, sql: str, tag: str, status: str) -> None:
    result = connection.run(sql)
    assert (result.tag, connection.transaction.status) == (tag, status)
    assert (result.notices, result.table, result.fields) == ((), None, ())


@pytest.mark.parametrize("sql", ["BEGIN READ WRITE", "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE"])
def test_nobody_may_write(connection: Connection, sql: str) -> None:
    assert slug_of(connection, sql) == "read_write"


def test_an_error_fails_a_transaction_and_nothing_else(connection: Connection) -> None:
    connection.transaction.fail()
    assert connection.transaction.status == "I"
    connection.run("BEGIN")
    connection.transaction.fail()
    connection.transaction.fail()
    assert connection.transaction.status == "E"


def test_a_failed_transaction_takes_the_commands_that_end_it() -> None:
    ends = [command(sql).kind for sql in ("COMMIT", "END", "ROLLBACK", "ABORT", "ROLLBACK TO a")]
    assert frozenset(ends) == Transaction.ENDS


# --- settings and options ---------------------------------------------------------------------------------------------


def test_the_next_transaction_goes_back_to_its_own_beginning(connection: Connection) -> None:
    connection.run("BEGIN; SET geqo_effort = '1'; COMMIT; BEGIN; SET geqo_effort = '2'; ROLLBACK")
    assert connection.value("geqo_effort") == "1"
    connection.run("BEGIN; SET LOCAL geqo_effort = '3'; COMMIT; SET geqo_effort = '4'; BEGIN; COMMIT")
    assert connection.value("geqo_effort") == "4", "what was local in an earlier one is over"


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("BEGIN; SET LOCAL geqo_effort = '1'; SET geqo_effort = '2'; COMMIT", "2"),
        ("BEGIN; SAVEPOINT s; SET LOCAL geqo_effort = '1'; ROLLBACK TO s; SET geqo_effort = '2'; COMMIT", "2"),
        (
            "SET geqo_effort = '3'; BEGIN; SET LOCAL geqo_effort = '1'; SAVEPOINT s; SET geqo_effort = '2'; ROLLBACK TO s; COMMIT",
            "3",
        ),
        ("SET geqo_effort = '3'; BEGIN; SET LOCAL geqo_effort = '1'; RESET geqo_effort; COMMIT", "5"),
        ("SET geqo_effort = '3'; BEGIN; SET LOCAL geqo_effort = '1'; RESET ALL; COMMIT", "5"),
        ("SET geqo_effort = '3'; BEGIN; SET LOCAL geqo_effort = DEFAULT; COMMIT", "3"),
        ("SET geqo_effort = '3'; SET LOCAL geqo_effort = DEFAULT", "3"),
    ],
)
def test_what_is_set_after_a_local_setting_stays(connection: Connection, sql: str, value: str) -> None:
    connection.run(sql)
    assert connection.value("geqo_effort") == value


@pytest.mark.parametrize(
    ("sql", "inside", "after"),
    [
        ("BEGIN; SET LOCAL dp.epsilon = 0.2", "0.2", "0.1"),
        ("BEGIN; set local DP.Epsilon TO 0.2", "0.2", "0.1"),
        ("SET dp.epsilon = 0.3; BEGIN; SET LOCAL dp.epsilon = 0.2", "0.2", "0.3"),
        ("BEGIN; SET dp.epsilon = 0.3; SET LOCAL dp.epsilon = 0.2; SET LOCAL dp.epsilon = 0.4", "0.4", "0.3"),
        ("BEGIN; SET LOCAL dp.epsilon = 0.2; SET dp.epsilon = 0.3", "0.3", "0.3"),
        ("SET dp.epsilon = 0.3; BEGIN; SET LOCAL dp.epsilon = DEFAULT", "0.1", "0.3"),
        ("SET dp.epsilon = 0.3; BEGIN; SET LOCAL dp.epsilon = 0.2; RESET dp.epsilon", "0.1", "0.1"),
        ("SET dp.epsilon = 0.3; BEGIN; SET LOCAL dp.epsilon = 0.2; RESET dp.all", "0.1", "0.1"),
        ("SET dp.epsilon = 0.3; BEGIN; SET LOCAL dp.epsilon = 0.2; RESET ALL", "0.1", "0.1"),
        ("BEGIN; SET LOCAL dp.epsilon = 0.2; SAVEPOINT s; SET LOCAL dp.epsilon = 0.3; ROLLBACK TO s", "0.2", "0.1"),
        ("BEGIN; SAVEPOINT s; SET LOCAL dp.epsilon = 0.2; RELEASE s", "0.2", "0.1"),
        ("BEGIN; SAVEPOINT s; SET LOCAL dp.epsilon = 0.2; ROLLBACK TO s; SET dp.epsilon = 0.3", "0.3", "0.3"),
        (
            "SET dp.epsilon = 0.4; BEGIN; SET LOCAL dp.epsilon = 0.2; SAVEPOINT s; SET dp.epsilon = 0.3; ROLLBACK TO s",
            "0.2",
            "0.4",
        ),
        ("BEGIN; SET LOCAL dp.epsilon = 0.2; COMMIT; SET dp.epsilon = 0.5; BEGIN", "0.5", "0.5"),
    ],
)
def test_a_local_option_ends_with_the_transaction(connection: Connection, sql: str, inside: str, after: str) -> None:
    assert connection.run(sql).tag in ("SET", "RESET", "RELEASE", "ROLLBACK", "BEGIN")
    assert connection.session.options.show()["dp.epsilon"] == inside
    connection.run("COMMIT")
    assert connection.session.options.show()["dp.epsilon"] == after


def test_a_rollback_ends_a_local_option(connection: Connection) -> None:
    connection.run("SET dp.epsilon = 0.3; BEGIN; SET dp.epsilon = 0.4; SET LOCAL dp.epsilon = 0.2; ROLLBACK")
    assert connection.session.options.epsilon == Fraction(3, 10)


def test_a_local_option_leaves_the_others(connection: Connection) -> None:
    connection.run("BEGIN; SET LOCAL dp.max_total = auto; SET dp.hits = 2; SET LOCAL dp.unknown = null; COMMIT")
    assert connection.session.options == replace(FIRST, hits=2)


@pytest.mark.parametrize("value", ["0.2", "DEFAULT"])
def test_a_local_option_outside_of_a_transaction_sets_nothing_and_says_so(connection: Connection, value: str) -> None:
    connection.run("SET dp.epsilon = 0.3")
    before = connection.state
    result = connection.run(f"SET LOCAL dp.epsilon = {value}")
    assert (result.tag, [notice[0] for notice in result.notices]) == (
        "SET", ["SET LOCAL can only be used in transaction blocks"],
    )  # fmt: skip
    assert connection.state == before
    connection.run("BEGIN; COMMIT")
    assert connection.state == before


def test_a_message_of_several_statements_is_a_transaction() -> None:
    connection = Connection()

    def run_as_message(sql: str, fails: bool = False) -> None:
        connection.transaction.several = True
        for piece in read_script(sql, POSTGRESQL).pieces:
            connection.transaction.enter()
            connection.transaction.run(command(piece.sql))
        if fails:
            connection.transaction.fail()

    run_as_message("SET LOCAL geqo_effort = 1; SET geqo_pool_size = 2")
    assert connection.value("geqo_effort") == "1"
    connection.transaction.settle()
    assert (connection.value("geqo_effort"), connection.value("geqo_pool_size")) == ("5", "2")
    run_as_message("SET geqo_effort = 1; ROLLBACK; SET geqo_pool_size = 3", fails=True)
    assert connection.transaction.settle() == []
    assert (connection.value("geqo_effort"), connection.value("geqo_pool_size")) == ("5", "2")
    run_as_message("SET geqo_effort = 1; BEGIN; SET geqo_pool_size = 3", fails=True)
    connection.transaction.settle()
    assert connection.transaction.status == "E"
    run_as_message("ROLLBACK")
    assert (connection.value("geqo_effort"), connection.value("geqo_pool_size")) == ("5", "2")


# --- savepoints -------------------------------------------------------------------------------------------------------


def test_a_savepoint_brings_back_settings_and_options_any_number_of_times(connection: Connection) -> None:
    connection.run("BEGIN; SET geqo_effort = '1'")
    connection.set_epsilon(2)
    connection.run("SAVEPOINT a")
    for epsilon in (3, 4):
        connection.run(f"SET geqo_effort = '{epsilon}'")
        connection.set_epsilon(epsilon)
        connection.transaction.fail()
        connection.run("ROLLBACK TO a")
        assert (connection.value("geqo_effort"), connection.session.options.epsilon) == ("1", 2)
        assert connection.transaction.status == "T"


def test_rolling_back_to_a_savepoint_keeps_it_and_drops_later_ones(connection: Connection) -> None:
    connection.run("BEGIN; SAVEPOINT a; SAVEPOINT b; SAVEPOINT c; ROLLBACK TO b")
    assert slug_of(connection, "ROLLBACK TO c") == "savepoint_unknown"
    connection.run("ROLLBACK TO b; ROLLBACK TO a")
    assert slug_of(connection, "RELEASE b") == "savepoint_unknown"


@pytest.mark.parametrize("sql", ["SAVEPOINT a", "RELEASE a", "ROLLBACK TO a"])
def test_savepoints_are_parts_of_transactions(connection: Connection, sql: str) -> None:
    assert slug_of(connection, sql) == "transaction_none"
    connection.run("BEGIN; SAVEPOINT a; COMMIT; BEGIN")
    if sql != "SAVEPOINT a":
        assert slug_of(connection, sql) == "savepoint_unknown", "one of an earlier transaction"


def test_the_number_of_savepoints_is_bounded(connection: Connection) -> None:
    connection.run("BEGIN")
    for number in range(MOST_SAVEPOINTS):
        connection.transaction.run(Command("savepoint", "SAVEPOINT", f"s{number}"))
    assert slug_of(connection, "SAVEPOINT more") == "wire_limit"
    connection.run("RELEASE s9; SAVEPOINT more")
