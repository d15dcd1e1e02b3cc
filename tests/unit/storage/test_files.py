"""Locks exclude each other and end with their process; private files are new, complete and closed to others."""

import os
import random
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dpsql.storage.files import open_lock, sync, try_lock, wait_for_lock, write_private
from dpsql.storage.memory import RecentValues


def test_a_lock_excludes_every_other_descriptor(tmp_path: Path) -> None:
    first, second = open_lock(tmp_path / "lock"), open_lock(tmp_path / "lock")
    assert try_lock(first) and not try_lock(second)
    os.close(first)
    assert try_lock(second)
    os.close(second)


def test_waiting_ends_when_the_lock_is_free(tmp_path: Path) -> None:
    first, second, locked = open_lock(tmp_path / "lock"), open_lock(tmp_path / "lock"), threading.Event()
    wait_for_lock(first)
    waiting = threading.Thread(target=lambda: (wait_for_lock(second), locked.set()))
    waiting.start()
    assert not locked.wait(0.1)
    os.close(first)
    assert locked.wait(240)
    waiting.join()
    os.close(second)


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from dpsql.storage.files import open_lock, try_lock\n"
        "print(try_lock(open_lock(Path(sys.argv[1]))), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "True\n"
        descriptor = open_lock(tmp_path / "lock")
        assert not try_lock(descriptor)
        holder.kill()
        holder.wait()
        assert try_lock(descriptor)
        os.close(descriptor)


def test_a_private_file_is_new_and_for_its_owner_alone(tmp_path: Path) -> None:
    place = tmp_path / "key"
    old = os.umask(0)
    try:
        write_private(place, b"secret")
    finally:
        os.umask(old)
    sync(place)
    sync(tmp_path)
    assert place.read_bytes() == b"secret" and stat.S_IMODE(place.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write_private(place, b"other")
    assert place.read_bytes() == b"secret"


# --- A cache of recent values: how many, which ones, and the state after a failure ------------------------------------


def test_a_value_is_made_once_while_it_is_kept() -> None:
    values: RecentValues[list[int]] = RecentValues(2)
    first = values.get("a", lambda: [1])
    assert values.get("a", lambda: [2]) is first


def test_the_value_that_was_used_longest_ago_leaves_first() -> None:
    values: RecentValues[int] = RecentValues(2)
    values.get("a", lambda: 1)
    values.get("b", lambda: 2)
    values.get("a", lambda: 0)
    values.get("c", lambda: 3)
    assert [values.get(key, lambda: 9) for key in ("a", "c", "b")] == [1, 3, 9]


def test_heavy_values_leave_earlier_and_the_last_one_stays() -> None:
    values: RecentValues[int] = RecentValues(3, most_weight=10)
    for key, weight in (("a", 4), ("b", 4), ("c", 2)):
        values.get(key, lambda: 1, weight)
    assert [values.get(key, lambda: 9) for key in ("a", "b", "c")] == [1, 1, 1]
    values.get("d", lambda: 1, 5)
    assert [values.get(key, lambda: 9, 0) for key in ("c", "d", "a")] == [1, 1, 9]
    values.get("e", lambda: 1, 100)
    assert values.get("e", lambda: 9) == 1
    assert [values.get(key, lambda: 9, 0) for key in ("c", "d")] == [9, 9]


@pytest.mark.parametrize("seed", range(20))
def test_the_weight_of_what_is_kept_is_bounded(seed: int) -> None:
    chance = random.Random(seed)
    values: RecentValues[int] = RecentValues(chance.randrange(1, 9), most_weight=50)
    for _ in range(300):
        values.get(chance.randrange(12), lambda: 1, chance.randrange(40))
        assert len(values._values) <= values._most
        assert values._weight == sum(weight for _, weight in values._values.values()) <= 50


def test_a_value_that_could_not_be_made_is_made_at_the_next_request() -> None:
    values: RecentValues[float] = RecentValues(2)
    with pytest.raises(ZeroDivisionError):
        values.get("a", lambda: 1 / 0)
    assert values.get("a", lambda: 7.0) == 7.0
