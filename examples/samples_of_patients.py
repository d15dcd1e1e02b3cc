"""Statistics without a known sensitivity, by sample and aggregate, on 17,549 real patients (the demo's NAFLD study).

    pip install "dpsql[demo]"
    python examples/samples_of_patients.py

Each line compares SAMPLE_AGGREGATE at epsilon 0.4 (zCDP) with the exact value, which only the data owner may see.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import duckdb

import dpsql
from dpsql.frontends.demo import build_demo

QUESTIONS = (
    ("correlation of weight and height", "CORR(weight, height)", (-1, 1)),
    ("skewness of the body mass index", "SKEWNESS(bmi)", (-2, 4)),
    ("entropy of diagnosis, in bits", "ENTROPY(has_nafld)", (0, 1)),
    ("deviation of ages, as a share of the mean", "STDDEV(age) / AVG(age)", (0, 1)),
    ("weight for each centimetre of height", "REGR_SLOPE(weight, height)", (-2, 4)),
)
SAMPLES = 100


def compared(folder: Path) -> list[tuple[str, float, float]]:
    """Return the name, the private and the exact value of each query."""
    os.environ["DPSQL_STATE"] = str(folder / "state")
    policy = build_demo("nafld", folder)
    rows = []
    with dpsql.connect(policy, create_ledger=True) as connection:
        connection.execute("SET dp.epsilon = 0.4")
        for name, expression, (lower, upper) in QUESTIONS:
            sql = f"SELECT SAMPLE_AGGREGATE({expression}, {lower}, {upper}, {SAMPLES}) FROM patients"
            ((private,),) = connection.execute(sql).release.rows()
            rows.append((name, expression, float(private)))
    (file,) = folder.glob("*.duckdb")
    with duckdb.connect(str(file), read_only=True) as data:
        return [
            (name, private, float(data.execute(f"SELECT {expression} FROM patients").fetchall()[0][0]))
            for name, expression, private in rows
        ]


def main() -> None:
    """Print the comparison."""
    with tempfile.TemporaryDirectory() as folder:
        for name, private, exact in compared(Path(folder)):
            print(f"{name:45} private {private:8.4f}   exact {exact:8.4f}")


if __name__ == "__main__":
    main()
