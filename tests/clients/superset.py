"""Apache Superset against the served clinic: database, datasets, charts, filters, dashboard and refresh, through its REST API.

`PYTHONPATH=.:tests python -m clients.superset FOLDER [PICTURE]`, where FOLDER is a virtual environment with sources/superset.txt
installed; PICTURE is a file for the picture of a chart that Chromium draws, which docs/bi.md shows. Superset's dependencies conflict
with all others, so this is a separate step and no pytest test. Exits with 1 if a step fails.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from support.raw_client import free_port

from clients.matrix import add
from clients.steps import CLIENTS, run_steps

STEPS = {
    "add_database": "connects", "look_around": "looks around", "add_datasets": "looks around", "charts": "asks",
    "filters": "asks", "error_bars": "asks", "bands": "asks", "add_dashboard": "asks", "refresh": "asks", "prices": "errors and notices",
    "refusals": "errors and notices",
}  # fmt: skip
"""Steps of clients/superset_client.py, each with its column of the table in docs/bi.md."""
for _step, _column in STEPS.items():
    add("Apache Superset 6.1 (psycopg2)", _column, [_step.replace("_", " ")])

CONFIG = """
SECRET_KEY = "of no use outside of this test: 0123456789abcdef"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
TALISMAN_ENABLED = False
RATELIMIT_ENABLED = False
"""
START_SECONDS = 180


@contextmanager
def running(programs: Path, folder: Path) -> Iterator[str]:
    """Run a new Superset with an empty metadata database, and yield its address."""
    (folder / "superset_config.py").write_text(CONFIG.format(folder=folder))
    environment = {
        **os.environ, "FLASK_APP": "superset", "SUPERSET_HOME": str(folder),
        "SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"),
    }  # fmt: skip
    superset = str(programs / "superset")
    admin = [
        "--username", "admin", "--firstname", "a", "--lastname", "b", "--email", "a@b.example", "--password", "admin",
    ]  # fmt: skip
    port = free_port()
    with (folder / "superset.log").open("w") as log:
        for words in (["db", "upgrade"], ["fab", "create-admin", *admin], ["init"]):
            subprocess.run([superset, *words], env=environment, stdout=log, stderr=log, check=True)
        server = subprocess.Popen([superset, "run", "-p", str(port)], env=environment, stdout=log, stderr=log)
        try:
            _wait(f"http://127.0.0.1:{port}/health", server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(240)


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers. Raises SystemExit if it does not start."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise SystemExit("Superset did not start")


def main(environment: Path, picture: str = "") -> int:
    """Run all steps. Return 1 if one failed."""
    from support.served_clinic import PASSWORD, build_clinic

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clinic = build_clinic(folder).start()
        try:
            place = {
                "PGHOST": "127.0.0.1", "PGPORT": str(clinic.port), "PGUSER": "research", "PGPASSWORD": PASSWORD,
                "PGDATABASE": "nafld",
            }  # fmt: skip
            if picture:
                place["PICTURE"] = picture
            with running(environment / "bin", folder) as address:
                program = [str(environment / "bin" / "python"), str(CLIENTS / "superset_client.py"), address]
                found = run_steps(program, {**os.environ, **place})
        finally:
            clinic.stop()
    for step in STEPS:
        print(f"superset {step}: {'passed' if found.get(step, '') is None else found.get(step, 'it did not run')}")
    return int(any(found.get(step, "it did not run") is not None for step in STEPS) or set(found) != set(STEPS))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), *sys.argv[2:]))
