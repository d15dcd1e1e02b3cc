"""A series of 32,768 numbers and 100 queries, half of them repeats, at a total of epsilon 1 and delta 1e-6: the remaining noise.

    python examples/repeated_series.py [FOLDER]

runs the queries through real sessions and prints a table; with FOLDER it draws the picture of docs/evidence/accuracy.md there
(extra `plot`). One person adds up to 18 to one number of the series. Fifty different queries run, then the first of them fifty
more times, in four ways: with Gaussian and with multivariate Laplace noise (`dp.mechanism = 'correlated_laplace'`), and each with
repeats from the store, which are free, or with `dp.reuse = off`, where every repeat is charged and has new noise. Each way spends
one budget.

Averaging repeats from the store gains nothing. If noise is drawn anew, and paid for, the mean of the answers is more accurate;
for multivariate Laplace noise a weighted mean is even more accurate, because 32,768 residuals reveal the size of each answer's
noise.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import yaml
from numpy.typing import NDArray

from dpsql.frontends.rendering.plots import comparison_chart, write_plot
from dpsql.policy import load_policy
from dpsql.session.session import Session, open_session

Floats = NDArray[np.float64]
TUPLES, QUESTIONS = 32_768, 100
SENSITIVITY, EPSILON, DELTA = 18, 1, "1e-6"
WAYS = {
    "Gaussian, from the store": ("gaussian", True),
    "Gaussian, drawn anew": ("gaussian", False),
    "correlated Laplace, from the store": ("correlated_laplace", True),
    "correlated Laplace, drawn anew": ("correlated_laplace", False),
}
"""By name: `dp.mechanism`, and whether repeats come from the store."""
ESTIMATES = ("one answer", "mean of all repeats", "weighted mean")


@contextmanager
def opened(tuples: int) -> Iterator[tuple[Session, Floats]]:
    """Yield a session over rows of one person each, ten for each number of the series, and the exact series of their sums."""
    amounts = np.random.default_rng(7).integers(0, SENSITIVITY + 1, (tuples, 10))
    data = {"tuple": np.repeat(np.arange(1, tuples + 1), 10), "amount": amounts.reshape(-1)}
    columns = {
        "tuple": {"type": "integer", "lower": 1, "upper": tuples, "nullable": False},
        "amount": {"type": "integer", "lower": 0, "upper": SENSITIVITY, "nullable": False},
    }
    policy = {
        "dataset": "series",
        "privacy_unit": "row",
        "budget": {"epsilon": EPSILON, "delta": float(DELTA), "accountant": "zcdp"},
        "per_query": {"epsilon": 0.01, "max_public_groups": tuples},
        "ledger": "sqlite:///ledger.db",
        "tables": {"rows": {"columns": columns}},
    }
    before = os.environ.get("DPSQL_STATE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPSQL_STATE"] = str(Path(folder) / "state")
        place = Path(folder) / "policy.yaml"
        place.write_text(yaml.safe_dump(policy))
        try:
            with open_session(load_policy(place), source={"rows": pa.table(data)}, create_ledger=True) as session:
                yield session, amounts.sum(axis=1).astype(float)
        finally:
            os.environ.pop("DPSQL_STATE")
            if before is not None:
                os.environ["DPSQL_STATE"] = before


def epsilon_of_each(session: Session, questions: int) -> str:
    """Return the epsilon, rounded down, with which `questions` queries, each of rho = epsilon**2 / 2, spend the budget."""
    (remaining,) = session.budget().remaining.values()
    return f"{math.floor(math.sqrt(2 * Fraction(remaining['rho']) / questions) * 10**6) / 10**6:.6f}"


def answers_of(way: str, tuples: int, questions: int) -> tuple[Floats, Floats]:
    """Return the errors of all answers, one row each: to the different queries, and to the repeats of the first. Raises Refusal
    if the budget does not suffice for all queries."""
    mechanism, stored = WAYS[way]
    different = questions // 2
    with opened(tuples) as (session, series):
        session.set_option("mechanism", mechanism)
        session.set_option("reuse", "on" if stored else "off")
        session.set_option("epsilon", epsilon_of_each(session, different if stored else questions))
        leaving_out = [*range(different), *[0] * (questions - different)]
        errors = []
        for number in leaving_out:
            answer = session.execute(
                f"SELECT tuple, SUM(amount) FILTER (WHERE tuple <> {number}) FROM rows GROUP BY tuple"
            )
            exact = np.where(np.arange(1, tuples + 1) == number, 0, series)
            errors.append(answer.table.column(1).to_numpy() - exact)
    return np.array(errors[:different], dtype=float), np.array([errors[0], *errors[different:]], dtype=float)


def weighted_mean(answers: Floats) -> Floats:
    """Return the mean of the answers (or of their errors, which differ from it by the series), each weighted by the inverse of
    its variance around that mean, in 20 iterations."""
    weights = np.ones(len(answers))
    for _ in range(20):
        middle = weights @ answers / weights.sum()
        own = np.minimum(weights / weights.sum(), 0.99)
        variances = ((answers - middle) ** 2).mean(axis=1) / (1 - own)
        weights = 1 / np.maximum(variances, 1e-9)
    return np.asarray(weights @ answers / weights.sum())


def figures(tuples: int = TUPLES, questions: int = QUESTIONS) -> dict[str, tuple[float, float, float]]:
    """Return for each way the mean absolute errors of the `ESTIMATES`, the first over all different queries."""
    numbers = {}
    for way in WAYS:
        different, repeated = answers_of(way, tuples, questions)
        estimates = different, repeated.mean(axis=0), weighted_mean(repeated)
        one, mean, weighted = (float(np.abs(errors).mean()) for errors in estimates)
        numbers[way] = (one, mean, weighted)
    return numbers


def main(folder: Path | None) -> None:
    """Print a table, and draw it if a folder is given."""
    errors = figures()
    print(f"{f'mean absolute error, {QUESTIONS // 2 + 1} times the same question':50} " + "  ".join(ESTIMATES))
    for way, numbers in errors.items():
        print(
            f"{way:50} "
            + "  ".join(f"{number:{len(name)}.0f}" for name, number in zip(ESTIMATES, numbers, strict=True))
        )
    if folder is not None:
        rows = [
            (estimate, way, number, None, None) for way, numbers in errors.items()
            for estimate, number in zip(ESTIMATES, numbers, strict=True)
        ]  # fmt: skip
        title = (
            f"{TUPLES:,} sums, each person adds up to {SENSITIVITY}; {QUESTIONS} questions at epsilon {EPSILON} in all"
        )
        chart = comparison_chart(rows, "what an analyst makes of 51 answers", "mean absolute error", title)
        write_plot(chart, folder / "comparison-correlated.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
