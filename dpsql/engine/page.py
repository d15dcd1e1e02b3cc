"""docs/engines.md: which engine computes which row function, from the dialects themselves.

Run `python -m dpsql.engine.page > docs/engines.md`.
"""

from __future__ import annotations

from dpsql.engine.dialect import Dialect
from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.postgresql.dialect import CASE_MAPPING_VERSION, PostgreSQLDialect
from dpsql.functions.numeric import REGISTRY

_HEAD = """# Engines

Where the data are decides which engine runs the exact part of a question. Answers, prices and refusals mean the same
everywhere: every accepted question of the test corpus has equal exact rows in both engines, and every row function is
compared with one definition in Python over random expressions. What an engine cannot compute exactly, it refuses
(`engine_function`), before anything is charged.

| | DuckDB | PostgreSQL |
| --- | --- | --- |
| `source:` | `duckdb:///file`, Parquet and CSV files, a connection or Arrow tables given in Python | `postgresql://...` |
| versions | 1.4 and later | 15 and later, encoding UTF8, extra `dpsql[postgres]` |
| the state of the data | seen by files' identity | `data_version` of the policy; without it no answer is reused |
| prepared copies (`dpsql prepare`) | yes | no: every question ranks the rows of each person anew |
| which rows stay under bounds | keyed hash of DuckDB | keyed SHA-256 of the row as text: other rows than in DuckDB, as few |
| rows leave the engine | the engine is in dpsql's process | no: groups come back, with the texts of their keys |
| bound on the time of one row (privacy.md 10) | measured | computed alike, not measured there |

[Your data is in PostgreSQL](postgresql.md) says how to set it up.

Spark is not read yet. More engines come behind the same contract (`dpsql/engine/contract.py`, `dpsql/engine/dialect.py`,
tests in `tests/support/engine_contract.py`).

## Row functions

Written by `python -m dpsql.engine.page > docs/engines.md`.

| function | DuckDB | PostgreSQL |
| --- | --- | --- |
"""


def page() -> str:
    """The text of the page."""
    old, new = PostgreSQLDialect(), PostgreSQLDialect(CASE_MAPPING_VERSION)
    rows = [f"| `{name}` | {_cell(DUCKDB, DUCKDB, name)} | {_cell(old, new, name)} |" for name in sorted(REGISTRY)]
    return _HEAD + "\n".join(rows) + "\n"


def _cell(old: Dialect, new: Dialect, name: str) -> str:
    if name in old.functions:
        return "yes"
    return f"{'from version 17 on' if name in new.functions else 'no'}: {old.unsupported[name]}"


if __name__ == "__main__":
    print(page(), end="")
