"""Ledgers and stores of releases written by earlier versions of dpsql, in `tests/formats/NUMBER`; never rewrite them.

`PYTHONPATH=tests python -m support.ledger_formats` writes one in the current format, for use when the format number changes.
"""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpsql.reuse.store import FORMAT
from dpsql.session.session import open_session

FORMATS = Path(__file__).parents[1] / "formats"
SQL = "SELECT COUNT(*) AS n, SUM(v) AS s FROM a WHERE v > 1"
POLICY = """
dataset: kept
source: ./a.parquet
data_version: one
ledger: sqlite:///ledger.db
budget: {epsilon: 2, delta: 1e-6}
privacy_unit: row
analysts: {ann: {epsilon: 1}}
tables:
  a: {columns: {v: {type: integer, lower: 0, upper: 100}}}
"""


def write(folder: Path) -> None:
    """Write a ledger with one charge and its stored release to a new folder."""
    folder.mkdir(parents=True)
    os.environ["DPSQL_STATE"] = str(folder / "state")
    (folder / "policy.yaml").write_text(POLICY)
    pq.write_table(pa.table({"v": [1, 2, 3]}), folder / "a.parquet")
    with open_session(folder / "policy.yaml", analyst="ann", create_ledger=True) as session:
        rows = session.execute(SQL).table.to_pylist()
    (folder / "answer.txt").write_text(repr(rows))


def opened_copy(number: str, folder: Path) -> Path:
    """Copy a ledger of this format and return the path of its policy. The copied files have the modes with which dpsql wrote
    them."""
    shutil.copytree(FORMATS / number, folder)
    for path in (*folder.glob("ledger.db*"), *folder.glob("state/*/*")):
        path.chmod(0o600)
    for path in (folder / "state", *folder.glob("state/*")):
        path.chmod(0o700)
    return folder / "policy.yaml"


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch) / "new")
        shutil.copytree(Path(scratch) / "new", FORMATS / str(FORMAT), ignore=shutil.ignore_patterns("turns", "*.log"))
