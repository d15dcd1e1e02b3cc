"""Locks exclude each other and end with their process; private files are new, complete and closed to others."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dpsql.storage.files import open_lock, sync, try_lock, wait_for_lock, write_private


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
