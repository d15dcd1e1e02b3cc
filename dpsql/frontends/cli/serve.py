"""Commands of the wire protocol: serve, and user with its commands."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from dpsql.errors.custodian_log import TRACES, audit
from dpsql.errors.exceptions import Error, Exit, refuse
from dpsql.frontends.cli import PATH, FiniteRange, open_owners_ledger, option, policy_option
from dpsql.frontends.rendering.terminal import notify, standard_output
from dpsql.storage.memory import use_few_arenas

if TYPE_CHECKING:
    from dpsql.frontends.pgwire.connection import StatusServer, Tls
    from dpsql.frontends.pgwire.logins import Logins
    from dpsql.frontends.pgwire.server import Server, ServerState

DEFAULT_ADDRESS = "127.0.0.1:5433"
_CLOSING_SECONDS = 5.0
_OWN_DESCRIPTORS = 256
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.command()
@policy_option()
@option("--listen HOST:PORT", "The address at which BI tools connect.", default=DEFAULT_ADDRESS, show_default=True)
@option("--tls-cert", "The certificate (chain), PEM.", PATH)
@option("--tls-key", "The key of the certificate, PEM.", PATH)
@option("--tls-self-signed", "Use a certificate made for this data set, kept next to the ledger's key.")
@option("--allow-plain", "Let clients on other machines connect without TLS.")
@option("--connections", "The most connections at a time.", click.IntRange(1, 1000), default=100, show_default=True)
@option("--concurrency", "The most questions measured at a time.", click.IntRange(1, 256), default=4, show_default=True)
@option("--concurrency-per-user", "The most of these for one user; by default all but one.", click.IntRange(1, 256))
@option(
    "--memory MB",
    "The most memory for answers and statements that are held for clients, in megabytes.",
    click.IntRange(16, 1 << 20),
    default=1024,
    show_default=True,
)
@option("--memory-per-user MB", "The most of it for one user; by default three quarters.", click.IntRange(1, 1 << 20))
@option("--memory-per-connection MB", "The most of it for one connection; by default half.", click.IntRange(1, 1 << 20))
@option("--status HOST:PORT", "A port for the owner: GET /healthz, /readyz, /metrics. Not for analysts.")
@option("--traces", "Send durations of phases to your OpenTelemetry collector (OTEL_...).")
@option(
    "--drain-seconds",
    "How long to wait for running questions at the end.",
    FiniteRange(0, 3600),
    default=30.0,
    show_default=True,
)
def serve(
    policy: Path, listen: str, tls_cert: Path | None, tls_key: Path | None, tls_self_signed: bool, allow_plain: bool,
    connections: int, concurrency: int, concurrency_per_user: int | None,
    memory: int, memory_per_user: int | None, memory_per_connection: int | None,
    drain_seconds: float, status: str | None, traces: bool,
) -> None:  # fmt: skip
    """Serve BI tools like a PostgreSQL server; the database is named after the data set."""
    from dpsql.frontends.pgwire.connection import Limits
    from dpsql.frontends.pgwire.server import Server

    host, port = _address(listen)
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    use_few_arenas()
    if traces:
        TRACES.start()
    state = open_server_state(policy)
    try:
        tls = _tls(state, host, tls_cert, tls_key, tls_self_signed)
        if tls is None and host not in _LOOPBACK and not allow_plain:
            raise refuse("serve_plain", address=listen)
        state.logins.prepare()
        limits = Limits(
            connections,
            concurrency=concurrency,
            concurrency_per_user=concurrency_per_user,
            memory_megabytes=memory,
            memory_per_user_megabytes=memory_per_user,
            memory_per_connection_megabytes=memory_per_connection,
            drain_seconds=drain_seconds,
        )
        _raise_descriptors(limits.sockets)
        server = Server(state, tls=tls, allow_plain=allow_plain, limits=limits)
        gc.freeze()  # what is open now stays; to look through it for garbage takes longer than to answer a question
        left = asyncio.run(_run_and_prepare(server, state, policy, (host, port), tls is not None, status))
        if left:
            _leave(state, left)
    finally:
        state.engine.close()
        state.store.close()
        state.ledger.close()
        TRACES.stop()


def _leave(state: ServerState, left: int) -> NoReturn:
    """End the process although threads run that cannot be stopped; a normal exit would wait for them.

    Their charges are in the ledger already, without an outcome, and count as spent.
    """
    closing = threading.Thread(target=state.ledger.close, daemon=True)
    closing.start()
    closing.join(_CLOSING_SECONDS)
    notify(
        f"left {left} threads that could not be stopped (a device that does not answer?); what was charged stays charged"
    )
    sys.stderr.flush()
    os._exit(Exit.FAULT)


def _raise_descriptors(sockets: int) -> None:
    """Raise the limit of descriptors to twice the clients' sockets, plus those for data and ledger. Raises serve_descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * sockets + _OWN_DESCRIPTORS
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < sockets + _OWN_DESCRIPTORS:
        raise refuse("serve_descriptors", most=most, wanted=needed)


def open_server_state(path: Path) -> ServerState:
    """Open policy, data, ledger, stored releases and logins. Raises PolicyRefusal, Fault, IntegrityError."""
    from dpsql.engine.registry import open_engine
    from dpsql.frontends.pgwire.logins import open_logins
    from dpsql.frontends.pgwire.server import ServerState
    from dpsql.ledger import open_ledger
    from dpsql.policy import load_policy
    from dpsql.reuse.questions import open_questions
    from dpsql.reuse.store import open_releases

    policy = load_policy(path)
    engine = open_engine(policy)
    try:
        ledger = open_ledger(policy.ledger_url(), policy.dataset, witness=policy.witness)
        releases, questions = open_releases(ledger, policy.store), open_questions(ledger, policy)
        return ServerState(policy, engine, ledger, releases, open_logins(ledger, policy), questions)
    except BaseException:
        engine.close()
        raise


def _tls(state: ServerState, host: str, certificate: Path | None, key: Path | None, make_own: bool) -> Tls | None:
    from dpsql.frontends.pgwire.connection import load_tls, self_signed

    if certificate is not None and key is not None:
        return load_tls(certificate, key)
    return self_signed(state.ledger.witness.directory, host) if make_own else None


async def _run_and_prepare(
    server: Server, state: ServerState, path: Path, address: tuple[str, int], encrypted: bool, status: str | None
) -> int:
    """Serve, and meanwhile keep prepared copies up to date if the policy says so."""
    from dpsql.frontends.python.background_copies import CopyKeeper, unprepared

    keeper = CopyKeeper(path, lambda: unprepared(server.policy, server.engine, lambda: state.ledger.witness.key))
    keeper.start()
    try:
        return await _run(server, path, *address, encrypted, status)
    finally:
        keeper.end()


async def _run(server: Server, path: Path, host: str, port: int, encrypted: bool, status: str | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; a second one ends the process at once; SIGHUP reloads the policy from `path`. Return the
    number of threads that could not be stopped."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    host, port = await server.start(host, port)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    reloads: set[asyncio.Task[None]] = set()
    loop.add_signal_handler(signal.SIGHUP, lambda: reloads.add(loop.create_task(_reload(server, path))))
    notify(
        f"serving {server.policy.dataset} on {host}:{port}{' with TLS' if encrypted else ''}, {len(server.logins)} logins"
    )
    if not len(server.logins):
        notify("nobody can log in yet: dpsql user add -p POLICY NAME")
    notify(f'psql "host={host} port={port} dbname={server.policy.dataset} user=NAME"')
    pages = await _open_status(server, status)
    await stop.wait()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.remove_signal_handler(number)
    notify("stopping: questions that run are answered first")
    left = await server.drain()
    if pages is not None:
        pages.close()
    return left


async def _reload(server: Server, path: Path) -> None:
    """Reload the policy file after SIGHUP, or keep the present policy and say why."""
    from dpsql.policy import load_policy

    try:
        server.reload(await asyncio.get_running_loop().run_in_executor(None, load_policy, path))
    except Error as error:
        audit("reload_refused", slug=error.slug, reason=error.message)
        notify(f"the policy stays as it was: {error.message}; {error.hint}")
    else:
        audit("reload", policy=server.policy.version)
        notify("the policy was read again")


async def _open_status(server: Server, address: str | None) -> StatusServer | None:
    from dpsql.frontends.pgwire.connection import StatusServer

    if address is None:
        return None
    pages = StatusServer(server.pages())
    host, port = await pages.start(*_address(address))
    notify(f"status on http://{host}:{port}/readyz, /healthz, /metrics")
    return pages


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.strip("[]")
    if not (colon and host and port.isdecimal() and int(port) < 65536):
        raise refuse("serve_address", address=text)
    return host, int(port)


@click.group()
def user() -> None:
    """Manage the logins of BI tools."""


@contextmanager
def _logins(policy: Path) -> Iterator[Logins]:
    from dpsql.frontends.pgwire.logins import open_logins

    with open_owners_ledger(policy, witness=None) as (loaded, ledger):
        yield open_logins(ledger, loaded)


@user.command("add")
@policy_option()
@click.argument("name")
def user_add(policy: Path, name: str) -> None:
    """Set the password of analyst NAME, asked for on a terminal or read from standard input."""
    with _logins(policy) as logins:
        if name not in logins.names():
            raise refuse("user_name", name=name, known=", ".join(logins.names()))
        logins.add(name, _password())
    _can_log_in(name)
    notify(_questions_of(policy, name))


def _questions_of(policy: Path, name: str) -> str:
    """Return how many questions the account of an analyst, and the data set, have left."""
    from dpsql.session.budget import budget_of_everybody, question_price

    with open_owners_ledger(policy) as (loaded, ledger):
        budget = budget_of_everybody(loaded, ledger.accounts())
    colleagues = (f"analyst:{other}" for other in loaded.analysts if other != name)
    return f"left: {budget.without(colleagues).questions_text(question_price(loaded), loaded.per_query.epsilon)}"


@user.command("password")
@policy_option()
@click.argument("name")
def user_password(policy: Path, name: str) -> None:
    """Replace the password of an existing login NAME; a disabled login is enabled."""
    with _logins(policy) as logins:
        logins.check_known(name)
        logins.add(name, _password(), existing=True)
    _can_log_in(name)


def _password() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    return sys.stdin.readline().rstrip("\r\n")


def _can_log_in(name: str) -> None:
    audit("owner", act="user add", user=name)
    notify(f"{name} can log in")


@user.command("list")
@policy_option()
@option("-f --format", "", ("table", "csv", "json"), default="table")
def user_list(policy: Path, format: str) -> None:
    """List all who may log in, and the state of their logins."""
    from dpsql.frontends.rendering.formats import write_rows

    with _logins(policy) as logins:
        write_rows(("user", "login"), list(logins.states().items()), standard_output(), format)


def _changing(word: str, outcome: str, help: str) -> None:
    """Register a command that changes an existing login; a running server applies it with the user's next message."""

    @user.command(word, help=help)
    @policy_option()
    @click.argument("name")
    def change(policy: Path, name: str) -> None:
        with _logins(policy) as logins:
            getattr(logins, word)(name)
        audit("owner", act=f"user {word}", user=name)
        notify(f"{name} {outcome}")


_changing("remove", "has no login any more", "Remove the login of NAME; open connections end.")
_changing("disable", "is let in no more", "Disable the login of NAME but keep its password; open connections end.")
_changing("enable", "can log in again", "Enable the login of NAME again.")
