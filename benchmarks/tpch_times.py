"""Five questions of TPC-H about customers, in times of plain DuckDB, with the published times of another extension beside them.

The questions are those of cwida/privacy (https://github.com/cwida/privacy, `benchmark/dp/tpch_queries`: 1, 5, 6, 14 and 19
of the specification with its validation values). The published slowdowns are those of its `DP-Bounded` mode
(`benchmark/results/paper/dp_tpch_runtime_figure.csv`, read on 2026-11-30: medians of three runs, scale 30, 16 threads).
There a number for each customer bounds the sums; here, as in `schemas/policies/tpch.yaml`, numbers of rows do.
"""

from __future__ import annotations

import statistics
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex

import duckdb

from benchmarks.clock import timed
from benchmarks.measure import Say, answer
from dpsql.session.session import open_session

SCALE = 3
_POLICY = Path(__file__).parents[1] / "schemas" / "policies" / "tpch.yaml"
_TABLES = ("customer", "orders", "lineitem", "part", "supplier", "partsupp", "nation", "region")
_REVENUE = "sum(l_extendedprice * (1 - l_discount))"


@dataclass(frozen=True)
class Question:
    """A question, and how many times longer than plain DuckDB it was published to take."""

    name: str
    published: float
    sql: str


QUESTIONS = (
    Question(
        "Q1",
        11.18,
        f"""SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), {_REVENUE},
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY ALL ORDER BY ALL""",
    ),
    Question(
        "Q5",
        1.76,
        f"""SELECT n_name, {_REVENUE} AS revenue FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
        AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
        AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01' GROUP BY n_name ORDER BY revenue DESC""",
    ),
    Question(
        "Q6",
        2.83,
        """SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= DATE '1994-01-01'
        AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    ),
    Question(
        "Q14",
        3.07,
        f"""SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) / {_REVENUE}
        FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
    ),
    Question(
        "Q19",
        1.85,
        f"""SELECT {_REVENUE} FROM lineitem, part WHERE p_partkey = l_partkey AND l_shipmode IN ('AIR', 'AIR REG')
        AND l_shipinstruct = 'DELIVER IN PERSON' AND (
        p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity BETWEEN 1 AND 11
        AND p_size BETWEEN 1 AND 5
        OR p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK') AND l_quantity BETWEEN 10 AND 20
        AND p_size BETWEEN 1 AND 10
        OR p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG') AND l_quantity BETWEEN 20 AND 30
        AND p_size BETWEEN 1 AND 15)""",
    ),
)


@dataclass(frozen=True)
class TpchTime:
    """Milliseconds of processor time (medians) of a question: plain, the first one over its source, later ones, and later ones
    over prepared rows; and how many times plain the other extension was published to take."""

    question: str
    plain: float
    first: float
    later: float
    prepared: float
    published: float


def tpch_times(folder: Path, repeat: int, say: Say, scale: float = SCALE) -> list[TpchTime]:
    """Ask each question `repeat` times in each way, beside plain DuckDB over the same database."""
    database = write_tables(folder, scale)
    samples = {
        question.name: dict[str, list[float]](plain=[], first=[], later=[], prepared=[]) for question in QUESTIONS
    }
    for question in QUESTIONS:  # each first question has a session and a ledger of its own
        with open_session(_write_policy(folder, database), create_ledger=True) as session:
            session.execute("SET dp.reuse = off")
            samples[question.name]["first"].append(timed(partial(answer, session, question.sql)).cpu)
    with open_session(_write_policy(folder, database), create_ledger=True) as session, duckdb.connect() as plain:
        session.execute("SET dp.reuse = off")
        plain.execute(f"ATTACH '{database}' AS plain (READ_ONLY); USE plain")
        for way in ("later", "prepared"):
            for question in QUESTIONS:
                answer(session, question.sql)
                for _ in range(repeat):
                    for name, ask in (
                        ("plain", partial(_fetched, plain, question.sql)),
                        (way, partial(answer, session, question.sql)),
                    ):
                        samples[question.name][name].append(timed(ask).cpu)
            session.context.index.prepare()
    times = [
        TpchTime(one.name, *(statistics.median(values) for values in samples[one.name].values()), one.published)
        for one in QUESTIONS
    ]
    for time in times:
        say(str(time))
    return times


def _fetched(connection: duckdb.DuckDBPyConnection, sql: str) -> object:
    return connection.execute(sql).fetchall()


def write_tables(folder: Path, scale: float) -> Path:
    """Write all tables, as `tpchgen-cli` (PyPI) makes them, to a DuckDB database in `folder`, unless it is there."""
    database = folder / f"tpch-all-{scale}.duckdb"
    if not database.exists():
        made = folder / f"tpch-{scale}"
        subprocess.run(["tpchgen-cli", "parquet", "-s", str(scale), "-o", str(made)], check=True)
        with duckdb.connect(str(database)) as connection:
            for table in _TABLES:
                connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{made / table}.parquet'")
    return database


def _write_policy(folder: Path, database: Path) -> Path:
    """Write the policy that ships, for this database and with a new ledger; return its path."""
    name = f"tpch_{token_hex(4)}"
    text = _POLICY.read_text(encoding="utf-8")
    for old, new in (
        ("dataset: tpch\n", f"dataset: {name}\n"),
        ("duckdb:///tpch.duckdb", f"duckdb:///{database.name}"),
        ("budget: {epsilon: 10,", "budget: {epsilon: 10000,"),
        ("sqlite:///tpch-ledger.db", f"sqlite:///{name}.db"),
    ):
        assert old in text
        text = text.replace(old, new)
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path
