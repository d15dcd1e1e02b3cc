"""A server under load and faults: 64 clients, kills, slow readers, a full disk, jumps of the clock. Run by `.ci/nightly`.

`PYTHONPATH=.:tests python -m load.run --minutes 30` prints what was tried and with what outcome, and exits with 1 if an answer
was not charged, the ledger is invalid, a budget was exceeded, or the server did not come back.
"""

import argparse
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from support.raw_client import Client, framed, text
from support.served_clinic import PASSWORD, Served, build_clinic
from support.small_disk import SmallDisk

from dpsql.ledger import open_ledger
from dpsql.policy import load_policy

HERE = Path(__file__).parent
LEAST_ANSWERS = 20
ROLES = {"asks": 40, "reads slowly": 8, "leaves": 8, "cancels": 4, "strangers": 4}


@dataclass
class Load:
    """One run: the server, the events that its clients counted, and its duration."""

    served: Served
    disk: SmallDisk
    seconds: float
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    begun: float = field(default_factory=time.monotonic)

    @property
    def is_early(self) -> bool:
        """Return whether the run's time is not over, or a fault was not tried yet."""
        return time.monotonic() < self.begun + self.seconds or not self.counts.keys() >= FAULTS.keys()

    @property
    def goes_on(self) -> bool:
        """Return whether clients continue: on a slow machine until enough queries were answered, for at most ten times the run's
        time."""
        is_late = time.monotonic() > self.begun + 10 * self.seconds
        return self.is_early or (self.counts["answered"] < LEAST_ANSWERS and not is_late)

    def count(self, event: str) -> None:
        with self.lock:
            self.counts[event] += 1

    def client(self) -> Client:
        client = Client(self.served.port)
        if client.login("research", PASSWORD, "nafld")[-1][0] != b"Z":
            raise ConnectionError("no place")
        client.query("SET dp.epsilon = 0.01; SET dp.reuse = off")
        return client


def question(chance: random.Random) -> str:
    return chance.choice((
        f"SELECT COUNT(*) AS n FROM patients WHERE age > {chance.randrange(90)}",
        f"SELECT sex, AVG(weight) AS w FROM patients WHERE bmi < {chance.randrange(20, 40)} GROUP BY sex",
        f"SELECT age, COUNT(*) AS n FROM patients WHERE weight > {chance.randrange(40, 90)} GROUP BY age",
    ))  # fmt: skip


def asks(load: Load, chance: random.Random) -> None:
    client = load.client()
    while load.goes_on:
        sql = chance.choice(
            (question(chance), "SELECT relname FROM pg_class", "SELECT shoe FROM patients", "SHOW dp.budget")
        )
        kinds = {kind for kind, _ in client.query(sql)}
        if b"Z" not in kinds:
            raise ConnectionError
        about_data = sql.startswith("SELECT") and "FROM patients" in sql
        load.count("answered" if b"D" in kinds and about_data else "refused" if b"E" in kinds else "free")


def reads_slowly(load: Load, chance: random.Random) -> None:
    client = load.client()
    client.send(framed(b"Q", text("SELECT a.* FROM pg_attribute AS a, generate_series(1, 5) AS n")))
    load.count("read slowly" if client.socket.recv(64)[:1] == b"T" else "refused")
    while load.goes_on and client.socket.recv(64):
        time.sleep(0.5)


def leaves(load: Load, chance: random.Random) -> None:
    client = load.client()
    client.send(framed(b"Q", text(question(chance))))
    time.sleep(chance.random() / 20)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    load.count("left")


def cancels(load: Load, chance: random.Random) -> None:
    client = load.client()
    client.send(framed(b"Q", text(question(chance))))
    time.sleep(chance.random() / 20)
    other = Client(load.served.port)
    other.send(struct.pack("!II", 16, 80877102) + client.key)
    client.until(b"Z")
    load.count("cancelled")


def strangers(load: Load, chance: random.Random) -> None:
    client = Client(load.served.port)
    if chance.random() < 0.5:
        client.send(chance.randbytes(chance.randrange(1, 200)))
    else:
        client.start("nobody", "nafld")
    time.sleep(chance.random())
    client.close()
    load.count("strangers")


ACTIONS: dict[str, Callable[[Load, random.Random], None]] = {
    "asks": asks, "reads slowly": reads_slowly, "leaves": leaves, "cancels": cancels, "strangers": strangers,
}  # fmt: skip


def _client(load: Load, role: str, number: int) -> None:
    chance = random.Random(f"{load.seed} {role} {number}")
    while load.goes_on:
        try:
            ACTIONS[role](load, chance)
        except (OSError, StopIteration, IndexError, ValueError):
            load.count("connection lost")
            time.sleep(0.2)


# --- faults -----------------------------------------------------------------------------------------------------------


def kill(load: Load) -> None:
    load.served.stop(signal.SIGKILL)
    load.served.start()


def restart(load: Load) -> None:
    assert load.served.stop() in (0, 4), "SIGTERM ends the server"
    load.served.start()


def reload(load: Load) -> None:
    os.kill(load.served.running, signal.SIGHUP)


def full_disk(load: Load) -> None:
    """Fill the disk of ledger, stores, logs and state for a while."""
    load.disk.fill(process=load.served.running)
    time.sleep(2)
    load.disk.free(load.served.running)


def clock_jumps(load: Load) -> None:
    for days in (30, -30, 0):
        (load.served.state / "clock").write_text(str(days * 86400))
        time.sleep(1)


FAULTS = {"killed": kill, "restarted": restart, "reloaded": reload, "disk full": full_disk, "clock jumped": clock_jumps}


def memory_of(served: Served) -> int:
    """Return the resident memory of the server in MB."""
    return int(Path(f"/proc/{served.running}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def run(folder: Path, seconds: float, seed: int, clients: int = 64) -> tuple[Load, list[str]]:
    """Run the load on a disk of its own in `folder`, and return it with its counts and the failures."""
    disk = SmallDisk(folder, 400_000)
    os.environ["PYTHONPATH"] = f"{HERE / 'jumping'}:{os.environ.get('PYTHONPATH', '')}"
    os.environ["LOAD_CLOCK"] = str(folder / "state" / "clock")
    served = build_clinic(folder)
    served.options = (*served.options, "--drain-seconds", "2")
    served.start()
    load = Load(served, disk, seconds, seed)
    everybody = [(role, number) for role, most in ROLES.items() for number in range(max(1, most * clients // 64))]
    threads = [threading.Thread(target=_client, args=(load, *who), daemon=True) for who in everybody]
    for thread in threads:
        thread.start()
    chance = random.Random(seed)
    while load.goes_on:
        time.sleep(min(seconds / 12, 20))
        if not load.is_early:
            continue
        name = chance.choice(sorted(FAULTS)) if load.counts.keys() >= FAULTS.keys() else _next(load)
        FAULTS[name](load)
        load.count(name)
    for thread in threads:
        thread.join(30)
    return load, _failures(load)


def _next(load: Load) -> str:
    """Return the first fault that was not tried yet."""
    return next(name for name in FAULTS if name not in load.counts)


def _failures(load: Load) -> list[str]:
    served, failures = load.served, []
    client = load.client()
    if b"D" not in {kind for kind, _ in client.query("SELECT 1 FROM pg_class LIMIT 1")}:
        failures.append("the server does not answer at the end")
    load.counts["memory in MB"] = memory_of(served)
    client.close()
    if served.stop() not in (0, 4):
        failures.append("SIGTERM did not end the server")
    policy = load_policy(served.policy)
    with open_ledger(policy.ledger_url(), policy.dataset, state=served.state) as ledger:
        verdict = ledger.verify()
        charges = sum(entry.kind == "charge" for entry in ledger.history())
        over = [
            scope for scope, account in ledger.accounts().items() if not account.fits(dict.fromkeys(account.limits, 0))
        ]
    load.counts["charged"] = charges
    if not verdict.sound:
        failures.append(f"the ledger does not hold at entry {verdict.first_bad}: {verdict.problem}")
    if load.counts["answered"] < LEAST_ANSWERS or not load.counts.keys() >= FAULTS.keys() | {"left", "read slowly"}:
        failures.append("too few questions were answered, or a fault was not tried")
    if load.counts["answered"] > charges:
        failures.append(f"{load.counts['answered']} answers and {charges} charges")
    if over:
        failures.append(f"more was spent than there is: {', '.join(over)}")
    return failures


def main() -> int:
    """Run, print the table, and return the exit status."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=30)
    options.add_argument("--clients", type=int, default=64)
    options.add_argument("--seed", type=int, default=int(time.time()))
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        load, failures = run(Path(folder) / "disk", chosen.minutes * 60, chosen.seed, chosen.clients)
        load.disk.remove()
    print(f"load of {chosen.minutes:g} minutes, seed {chosen.seed}, a disk of its own: {load.disk.is_mounted}")
    for name, number in sorted(load.counts.items()):
        print(f"{name:<18}{number:>9}")
    print("\n".join(failures) or "1 passed: every answer was charged, the ledger holds, the server came back")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
