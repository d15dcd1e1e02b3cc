"""A connection in a process that forks (gunicorn, multiprocessing): a child is told to open its own connection, and ends
normally."""

import os
import subprocess
from pathlib import Path

import pytest
from support.forked import FORKS, Forked
from support.visits_clinic import clinic, fill, rows

from dpsql.session.session import open_session

SCRIPT = """
import os, sys
import dpsql

connection = dpsql.connect(sys.argv[1])
first = connection.execute("SELECT COUNT(*) FROM visits").fetchall()
child = os.fork()
if not child:
    try:
        connection.execute("SELECT COUNT(*) FROM patients")
    except dpsql.InterfaceError as error:
        assert error.slug == "connection_forked" and not error.charged, error
    else:
        os._exit(3)
    if sys.argv[2] == "close":
        connection.close()
        try:
            connection.cursor()
        except dpsql.InterfaceError as error:
            assert error.slug == "connection_closed", error
    own = dpsql.connect(sys.argv[1])
    assert own.execute("SELECT COUNT(*) FROM visits").fetchall() == first
    own.close()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0, "the child was killed"
assert connection.execute("SELECT COUNT(*) FROM visits").fetchall() == first
connection.execute("SELECT COUNT(*) FROM patients").fetchall()
connection.close()
"""


@pytest.mark.skipif(not FORKS, reason="DuckDB 1 aborts at the end of a forked process that used it")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("how", ["close", "leave"])
def test_a_child_opens_its_own_connection_and_leaves_the_parents_alone(tmp_path: Path, how: str) -> None:
    fill(tmp_path / "clinic.duckdb", rows(1))
    policy = clinic(tmp_path)
    open_session(policy, create_ledger=True).close()
    with Forked(["-c", SCRIPT, str(policy), how], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        _, printed = child.communicate(timeout=600)
    assert child.returncode == 0, printed
