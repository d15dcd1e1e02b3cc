"""The query that SUMMARIZE TABLE stands for: the private profile of a table, as one question at one price."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.policy import Policy, PolicyColumn
from dpsql.privacy.mechanisms.most_frequent import MOST_FREQUENT
from dpsql.privacy.mechanisms.registry import ANNEX_OF
from dpsql.sql.binder.base_tables import no_such_table

QUARTILES = ("0.25", "0.5", "0.75")
_LABELS = ("column_name", "column_type", "count", "missing", "mean", "q25", "median", "q75", "most_frequent")


def summary_query(policy: Policy, path: Sequence[str]) -> str:
    """Return the query for a table that the asker calls `path`: one row for each column that they can name.

    All numbers come from one aggregation, so that they share one price: the rows with a value and without; mean and quartiles of
    bounded numbers; the share of true; and the most frequent value of a domain. Raises no_such_table (unknown_table).
    """
    table = policy.table_at(*path)
    if table is None:
        raise no_such_table(policy, list(path), None)
    measures = ["COUNT(*) AS n"]
    rows: list[str] = []
    for index, column in enumerate(table.columns.values()):
        named = _measures(column, policy)
        measures += [f"{call} AS {label}{index}" for label, call in named.items()]
        cells = [f"{label}{index}" if label in named else "NULL" for label in ("mean", "q25", "q50", "q75", "most")]
        text = "'" + column.name.replace("'", "''") + "'"
        values = (text, f"'{column.type}'", f"present{index}", f"n - present{index}", *cells)
        named_cells = zip(values, _LABELS, strict=True)
        rows.append(
            ", ".join(f'{value} AS "{label}"' for value, label in named_cells) if not rows else ", ".join(values)
        )
    selects = " UNION ALL ".join(f"SELECT {row} FROM profile" for row in rows)
    name = ".".join(f'"{part}"' for part in path)
    return f"WITH profile AS MATERIALIZED (SELECT {', '.join(measures)} FROM {name}) {selects}"


def _measures(column: PolicyColumn, policy: Policy) -> dict[str, str]:
    """Return the aggregates of a column by their labels, of the mechanisms that the policy allows."""
    name = f'"{column.name}"'
    measures = {"present": f"COUNT({name})"}
    if column.type in ("integer", "real") and column.lower is not None:
        measures["mean"] = f"AVG({name})"
        measures |= {f"q{share[2:]:0<2}": f"QUANTILE_CONT({name}, {share})" for share in QUARTILES}
    elif column.type == "boolean":
        measures["mean"] = f"AVG(CASE WHEN {name} THEN 1 WHEN NOT {name} THEN 0 END)"
    if column.domain is not None and column.type == "text" and ANNEX_OF[MOST_FREQUENT] in policy.mechanisms:
        measures["most"] = f"MODE({name})"
    return measures
