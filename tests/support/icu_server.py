"""A PostgreSQL server with ICU, run from programs installed on the system: the server that pip installs is built without ICU."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from support.server_folder import server_folder

PATIENCE_SECONDS = 300
LEAST_VERSION = 15
"""The first version in which a whole database can have an ICU collation."""
WITHOUT_CASE = "CREATE COLLATION without_case (PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false)"


def programs() -> Path:
    """Return the folder with the programs of an installed server with ICU. Without one, skip the test, unless DPSQL_EVERY_CLIENT
    forbids skipping."""
    installed = [*Path("/usr/lib/postgresql").glob("*/bin"), *(Path(p) for p in os.get_exec_path())]
    for folder in installed:
        if (folder / "initdb").exists() and (folder / "pg_config").exists():
            said = subprocess.run([folder / "pg_config"], capture_output=True, text=True, check=True).stdout
            version = re.search(r"^VERSION = PostgreSQL (\d+)", said, re.M)
            if version is not None and int(version[1]) >= LEAST_VERSION and "--with-icu" in said:
                return folder
    if os.environ.get("DPSQL_EVERY_CLIENT") == "1" and shutil.which("apt-get"):
        raise RuntimeError("no PostgreSQL server with ICU is installed (on Debian: postgresql)")
    pytest.skip("no PostgreSQL server with ICU is installed")


@contextmanager
def icu_server() -> Iterator[str]:
    """Run a server and yield its URL. Its databases compare texts by letters, and by bytes only between equal texts; the database
    `postgres` also has the collation `without_case`, in which upper and lower case are equal."""
    bin_, user = programs(), "postgres" if os.getuid() == 0 else None
    with server_folder() as folder:
        data = folder / "data"
        if user is not None:
            shutil.chown(folder, user)
        subprocess.run(
            [bin_ / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale", "C.UTF-8",
             "--locale-provider", "icu", "--icu-locale", "und-u-ks-level1", "--no-sync"],
            user=user, cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
        server = subprocess.Popen(
            [bin_ / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses="],
            user=user, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            url = f"postgresql://postgres@/postgres?host={folder}"
            with _connected(url, server) as owner:
                owner.execute(WITHOUT_CASE)
            yield url
        finally:
            server.terminate()
            server.wait(PATIENCE_SECONDS)


def _connected(url: str, server: subprocess.Popen[bytes]) -> psycopg.Connection[tuple[object, ...]]:
    """Return a connection to a server that is starting, retrying until it accepts."""
    last = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return psycopg.connect(url, autocommit=True)
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > last:
                raise
            time.sleep(0.05)
