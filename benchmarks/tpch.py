"""The six TPC-H questions of R2T over one private table, with the published errors beside those of dpsql.

R2T: Dong, Fang, Yi, Tao and Machanavajjhala, "R2T: Instance-optimal Truncation for Differentially Private Query Evaluation with
Foreign Keys" (SIGMOD 2022). Questions, scale, privacy loss and the way in which runs are averaged are those of its published
experiments (https://github.com/hkustDB/Race-to-the-Top: `Query`, `TestSystem`, `Script/CollectResultsTPCH.py`, `Result/TPCH`):
scale factor 1, epsilon 0.8, ten runs, of whose absolute errors the two smallest and the two largest are left out. As there,
little is assumed of what one customer, supplier or order may have: at most a million rows, so the bound is chosen by the question
(`dp.max_total = auto`). The bounds of values of one row are those of the specification.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import duckdb

from dpsql.session.session import open_session

EPSILON = 0.8
RUNS = 10
LEFT_OUT = 2
"""Of the sorted absolute errors, how many are left out at each end."""
MOST_ROWS = 1_000_000


@dataclass(frozen=True)
class Question:
    """A question with its primary private table and the published relative error of R2T, in percent."""

    name: str
    unit: str
    sql: str
    published: float


QUESTIONS = (
    Question(
        "Q3",
        "customer",
        "SELECT SUM(1) FROM customer, orders, lineitem WHERE o_custkey = c_custkey AND l_orderkey = o_orderkey "
        "AND o_orderdate < DATE '1997-01-01' AND l_shipdate > DATE '1994-01-01'",
        0.254,
    ),
    Question(
        "Q10",
        "customer",
        "SELECT SUM(1) FROM orders, customer, nation WHERE c_custkey = o_custkey AND c_nationkey = n_nationkey",
        0.174,
    ),
    Question(
        "Q11",
        "supplier",
        "SELECT SUM(ps_supplycost * ps_availqty / 1000000) FROM nation, supplier, partsupp "
        "WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey",
        1.82,
    ),
    Question("Q12", "orders", "SELECT SUM(1) FROM orders, lineitem WHERE o_orderkey = l_orderkey", 0.0229),
    Question(
        "Q18",
        "customer",
        "SELECT SUM(l_quantity) FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey",
        0.132,
    ),
    Question(
        "Q20",
        "supplier",
        "SELECT SUM(1) FROM supplier, nation, partsupp, lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey "
        "AND s_nationkey = n_nationkey AND s_suppkey = ps_suppkey",
        0.579,
    ),
)
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "nation": {"n_nationkey": "{type: integer, lower: 0, upper: 24, nullable: false}"},
    "customer": {
        "c_custkey": "{type: integer, nullable: false}",
        "c_nationkey": "{type: integer, lower: 0, upper: 24, nullable: false}",
    },
    "orders": {
        "o_orderkey": "{type: integer, nullable: false}",
        "o_custkey": "{type: integer, nullable: false}",
        "o_orderdate": "{type: date, lower: 1992-01-01, upper: 1998-12-31, nullable: false}",
    },
    "lineitem": {
        "l_orderkey": "{type: integer, nullable: false}",
        "l_linenumber": "{type: integer, lower: 1, upper: 7, nullable: false}",
        "l_partkey": "{type: integer, nullable: false}",
        "l_suppkey": "{type: integer, nullable: false}",
        "l_quantity": "{type: real, lower: 1, upper: 50, nullable: false}",
        "l_shipdate": "{type: date, lower: 1992-01-01, upper: 1998-12-31, nullable: false}",
    },
    "supplier": {
        "s_suppkey": "{type: integer, nullable: false}",
        "s_nationkey": "{type: integer, lower: 0, upper: 24, nullable: false}",
    },
    "partsupp": {
        "ps_partkey": "{type: integer, nullable: false}",
        "ps_suppkey": "{type: integer, nullable: false}",
        "ps_availqty": "{type: integer, lower: 1, upper: 9999, nullable: false}",
        "ps_supplycost": "{type: real, lower: 1, upper: 1000, nullable: false}",
    },
}
"""The columns that the questions read, with the bounds of the specification (TPC-H 3.0, section 4.2.3)."""
_KEYS = {
    "nation": "[n_nationkey]", "customer": "[c_custkey]", "orders": "[o_orderkey]", "lineitem": "[l_orderkey, l_linenumber]",
    "supplier": "[s_suppkey]", "partsupp": "[ps_partkey, ps_suppkey]",
}  # fmt: skip
_BELOW: Mapping[str, Mapping[str, str]] = {
    "customer": {
        "customer": "{c_nationkey: nation.n_nationkey}",
        "orders": "{o_custkey: customer.c_custkey}",
        "lineitem": "{l_orderkey: orders.o_orderkey}",
    },
    "orders": {"orders": "{}", "lineitem": "{l_orderkey: orders.o_orderkey}"},
    "supplier": {
        "supplier": "{s_nationkey: nation.n_nationkey}",
        "partsupp": "{ps_suppkey: supplier.s_suppkey}",
        "lineitem": "{l_suppkey: supplier.s_suppkey}",
    },
}
"""For each private table, the tables whose rows belong to its units, with their foreign keys."""


@dataclass(frozen=True)
class TrimmedError:
    """Relative errors of a question in percent of the exact answer: of dpsql, and as published for R2T."""

    question: str
    unit: str
    exact: float
    dpsql: float
    published: float


def tpch(folder: Path, say: Callable[[str], None], scale: float = 1, runs: int = RUNS) -> list[TrimmedError]:
    """Ask each question `runs` times and return its errors. The data are made once, in `folder`, by `tpchgen-cli` (PyPI)."""
    database = write_tables(folder, scale)
    units = sorted({question.unit for question in QUESTIONS})
    policies = {unit: write_policy(folder, unit, database) for unit in units}
    errors = []
    for question in QUESTIONS:
        with duckdb.connect(str(database), read_only=True) as raw:
            ((exact,),) = raw.sql(question.sql).fetchall()
        wrong = []
        with open_session(policies[question.unit]) as session:
            for setting in (f"epsilon = {EPSILON}", "max_total = auto", "reuse = off"):
                session.execute(f"SET dp.{setting}")
            for _ in range(runs):
                ((answer,),) = session.execute(question.sql).rows()
                wrong.append(abs(float(answer) - float(exact)))
        mean = trimmed_mean(wrong)
        errors.append(
            TrimmedError(question.name, question.unit, float(exact), 100 * mean / float(exact), question.published)
        )
        say(f"{question.name}: {errors[-1].dpsql:.3g} %, published {question.published} %")
    return errors


def trimmed_mean(values: list[float]) -> float:
    """Return the mean of values without the `LEFT_OUT` smallest and largest. There are more than twice as many."""
    middle = sorted(values)[LEFT_OUT:-LEFT_OUT]
    return sum(middle) / len(middle)


def write_tables(folder: Path, scale: float) -> Path:
    """Write the tables that the questions read to a DuckDB database in `folder`, unless it is there, and return its path."""
    database = folder / f"tpch-{scale}.duckdb"
    if database.exists():
        return database
    made = folder / f"tpch-{scale}"
    subprocess.run(["tpchgen-cli", "parquet", "-s", str(scale), "-o", str(made)], check=True)
    with duckdb.connect(str(database)) as connection:
        for table, columns in _COLUMNS.items():
            connection.execute(f"CREATE TABLE {table} AS SELECT {', '.join(columns)} FROM '{made / table}.parquet'")
    return database


def write_policy(folder: Path, unit: str, database: Path) -> Path:
    """Write the policy under which the rows of the table `unit` are the privacy units, with a new ledger; return its path."""
    name = f"tpch_{unit}_{token_hex(4)}"  # a data set whose ledger is deleted cannot be opened again
    (key,) = _KEYS[unit].strip("[]").split(", ")
    lines = [
        f"dataset: {name}", f"source: duckdb:///{database.name}", f"privacy_unit: {{table: {unit}, column: {key}}}",
        "budget: {epsilon: 1000, accountant: pure}", "per_query: {epsilon: 0.8}", f"ledger: sqlite:///{name}.db",
        "tables:",
    ]  # fmt: skip
    for table in ("nation", *_BELOW[unit]):
        lines += [f"  {table}:", f"    primary_key: {_KEYS[table]}"]
        lines += ["    public: true"] if table == "nation" else [f"    foreign_keys: {_BELOW[unit][table]}"]
        if table != "nation":
            lines.append(f"    max_rows: {1 if table == unit else MOST_ROWS}")
        lines += ["    columns:", *(f"      {name}: {kind}" for name, kind in _COLUMNS[table].items())]
    path = folder / f"{name}.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with open_session(path, create_ledger=True):
        pass
    return path
