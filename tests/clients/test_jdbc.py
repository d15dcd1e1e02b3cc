"""pgJDBC in its query modes against the served clinic; clients/Steps.java runs the queries."""

import subprocess

import pytest
from support.served_clinic import PASSWORD, Served
from support.spark_source import JAVA_OPTIONS

from clients.matrix import add
from clients.programs import needs
from clients.steps import CLIENTS, run_steps

DRIVER = "/usr/share/java/postgresql.jar"
"""Path where Debian's libpostgresql-jdbc-java installs the driver."""
pytestmark = needs("java", "javac", DRIVER)
MODES = ("simple", "extended", "extendedCacheEverything")
STEPS = {
    "connect": "connects", "wrong_password": "connects", "tables": "looks around", "columns": "looks around",
    "keys": "looks around", "types": "looks around", "query": "asks", "values": "asks", "parameters": "asks",
    "prepared": "asks", "describe": "asks", "batch": "asks", "fetch_size": "in pieces", "copy": "COPY",
    "errors": "errors and notices", "transaction": "errors and notices", "read_only": "errors and notices",
    "notices": "errors and notices", "timeout": "stops", "cancel": "stops",
}  # fmt: skip
"""Steps of the program, each with its column of the table in docs/bi.md."""
TRIED = [(mode, step) for mode in MODES for step in STEPS if (mode, step) != ("simple", "describe")]
"""pgJDBC cannot describe columns in its simple mode, whatever the server."""
for _mode, _step in TRIED:
    add(f"pgJDBC 42, {_mode}", STEPS[_step], [_step.replace("_", " ")])


@pytest.fixture(scope="module")
def jdbc(served: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str | None]]:
    """Return the outcome of each step in each mode."""
    compiled = tmp_path_factory.mktemp("compiled")
    subprocess.run(["javac", "-cp", DRIVER, "-d", compiled, CLIENTS / "Steps.java"], check=True, timeout=240)
    url = f"jdbc:postgresql://127.0.0.1:{served.port}/nafld?sslmode=require&preferQueryMode="
    program = ["java", *JAVA_OPTIONS.split(), "-cp", f"{DRIVER}:{compiled}", "Steps"]
    return {mode: run_steps([*program, url + mode, "research", PASSWORD]) for mode in MODES}


@pytest.mark.parametrize(("mode", "step"), TRIED)
def test_jdbc_passes_each_step(jdbc: dict[str, dict[str, str | None]], mode: str, step: str) -> None:
    assert jdbc[mode][step] is None, jdbc[mode][step]


def test_every_step_is_known(jdbc: dict[str, dict[str, str | None]]) -> None:
    assert {(mode, step) for mode in jdbc for step in jdbc[mode]} == set(TRIED)
