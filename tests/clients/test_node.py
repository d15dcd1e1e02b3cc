"""node-pg (with its cursor and its stream) against the served clinic; clients/client.js runs the queries."""

import os
from pathlib import Path

import pytest
from support.served_clinic import PASSWORD, Served

from clients.matrix import add
from clients.programs import needs
from clients.steps import run_steps

pytestmark = needs("node", "npm")
STEPS = {
    "connect": "connects", "wrong_password": "connects", "pool": "connects", "query": "asks", "types": "asks",
    "parameters": "asks", "prepared": "asks", "batch": "asks", "cursor": "in pieces", "stream": "in pieces",
    "errors": "errors and notices", "transaction": "errors and notices", "notices": "errors and notices",
    "timeout": "stops",
}  # fmt: skip
"""Steps of the program, each with its column of the table in docs/bi.md."""
for _step, _column in STEPS.items():
    add("node-pg 8", _column, [_step.replace("_", " ")])


@pytest.fixture(scope="module")
def node(served: Served, node_folder: Path) -> dict[str, str | None]:
    place = {"PGHOST": "127.0.0.1", "PGPORT": str(served.port), "PGUSER": "research", "PGDATABASE": "nafld"}
    return run_steps(["node", str(node_folder / "client.js")], {**os.environ, **place, "PGPASSWORD": PASSWORD})


@pytest.mark.parametrize("step", STEPS)
def test_node_passes_each_step(node: dict[str, str | None], step: str) -> None:
    assert node[step] is None, node[step]


def test_every_step_is_known(node: dict[str, str | None]) -> None:
    assert set(node) == set(STEPS)
