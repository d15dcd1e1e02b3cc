"""Rank errors of released quantiles in rows: several quantiles together, separately, and with OpenDP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from dpsql.session.session import Session, open_session

ROWS = (500, 5_000, 100_000)
EPSILONS = (0.1, 1.0)
SHARES = {
    "median": (Fraction(1, 2),),
    "3 quartiles": tuple(Fraction(part, 4) for part in range(1, 4)),
    "9 deciles": tuple(Fraction(part, 10) for part in range(1, 10)),
}
HIGHEST = (1 << 14) - 1
ANSWERS = 10
"""Answers of each setting per repeat."""
Values = npt.NDArray[np.int64]
Answer = Callable[[Sequence[Fraction], float], Sequence[int]]
"""A function of (shares, epsilon of all of them together) that returns one value for each share."""


@dataclass(frozen=True)
class RankError:
    """Rank errors, in rows, between released and exact quantiles of `rows` values: their mean over quantiles and `answers`, its
    standard deviation, and the mean over answers of each answer's worst quantile.

    `way`: "together" in one query, "apart" in a query for each with an equal part of epsilon, "OpenDP" apart there.
    """

    quantiles: str
    way: str
    epsilon: float
    rows: int
    mean: float
    deviation: float
    largest: float
    answers: int


def rank_errors(
    folder: Path,
    repeat: int,
    say: Callable[[str], None],
    rows: Sequence[int] = ROWS,
    epsilons: Sequence[float] = EPSILONS,
) -> list[RankError]:
    """Measure every set of quantiles in every setting, with `ANSWERS` times `repeat` answers, each charged."""
    errors = []
    for size in rows:
        values = _values(size)
        with open_session(_policy(folder, values), create_ledger=True) as session:
            session.execute("SET dp.reuse = off")
            ways = {"together": _together(session), "apart": _apart(session)}
            if find_spec("opendp") is not None:
                ways["OpenDP"] = _opendp(values)
            for epsilon in epsilons:
                for name, shares in SHARES.items():
                    for way, answer in ways.items():
                        if (name, way) == ("median", "apart"):
                            continue
                        answers = [answer(shares, epsilon) for _ in range(ANSWERS * repeat)]
                        errors.append(_error(name, way, epsilon, values, answers))
                        say(f"{errors[-1]}")
    return errors


def rank_error(values: Values, share: Fraction, answer: int) -> float:
    """Return how many of the ascending `values` lie between `answer` and the quantile `share`."""
    wanted = float(share * values.size)
    below, through = np.searchsorted(values, answer), np.searchsorted(values, answer, side="right")
    return max(0.0, float(below) - wanted, wanted - float(through))


def _error(name: str, way: str, epsilon: float, values: Values, answers: Sequence[Sequence[int]]) -> RankError:
    shares = SHARES[name]
    wrong = np.array(
        [[rank_error(values, share, value) for share, value in zip(shares, row, strict=True)] for row in answers]
    )
    means, largest = wrong.mean(axis=1), wrong.max(axis=1)
    deviation = float(means.std(ddof=1) / np.sqrt(means.size))
    return RankError(name, way, epsilon, values.size, float(means.mean()), deviation, float(largest.mean()), means.size)


def _values(rows: int) -> Values:
    """Return ascending log-normal integers: dense at the lower end and sparse at the upper one, like incomes and durations."""
    drawn = np.random.default_rng(rows).lognormal(7.0, 1.0, rows)
    return np.sort(np.minimum(np.round(drawn), HIGHEST).astype(np.int64))


def _policy(folder: Path, values: Values) -> Path:
    name = f"quantiles-{values.size}"
    with duckdb.connect(str(folder / f"{name}.duckdb")) as raw:
        raw.register("drawn", {"x": values})
        raw.execute("CREATE OR REPLACE TABLE t AS FROM drawn")
    path = folder / f"{name}.yaml"
    path.write_text(f"""
dataset: quantiles
source: duckdb:///{name}.duckdb
privacy_unit: row
budget: {{epsilon: 10000, delta: 1e-6, accountant: pure}}
per_query: {{epsilon: 1, delta: 1e-9}}
ledger: sqlite:///{name}.db
tables: {{t: {{columns: {{x: {{type: integer, lower: 0, upper: {HIGHEST}, nullable: false}}}}}}}}
""")
    return path


def _together(session: Session) -> Answer:
    def answer(shares: Sequence[Fraction], epsilon: float) -> Sequence[int]:
        session.execute(f"SET dp.epsilon = {epsilon}")
        ((row,),) = session.execute(f"SELECT QUANTILE_DISC(x, [{', '.join(map(_decimal, shares))}]) FROM t").rows()
        return list(row)

    return answer


def _apart(session: Session) -> Answer:
    def answer(shares: Sequence[Fraction], epsilon: float) -> Sequence[int]:
        session.execute(f"SET dp.epsilon = {epsilon / len(shares):.9f}")
        texts = (f"SELECT QUANTILE_DISC(x, {_decimal(share)}) FROM t" for share in shares)
        return [int(next(session.execute(text).rows())[0]) for text in texts]

    return answer


def _decimal(share: Fraction) -> str:
    return str(float(share))


def _opendp(values: Values) -> Answer:
    """Return OpenDP's noisy choice among the same values, scored by the distance of their ranks."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    candidates: list[Any] = list(range(HIGHEST + 1))
    space = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
    choices: dict[tuple[Fraction, float], Callable[[], int]] = {}
    rows = values.tolist()

    def choice(share: Fraction, epsilon: float) -> Callable[[], int]:
        scores = space >> dp.t.then_quantile_score_candidates(candidates, float(share))

        def chosen_with(scale: float) -> Any:
            return scores >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True)

        scale = dp.binary_search_param(chosen_with, d_in=1, d_out=epsilon, T=float)
        output = scores.output_domain, scores.output_metric
        noisy = output >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True)
        exact = scores(rows)  # the same for every answer
        return lambda: candidates[noisy(exact)]

    def answer(shares: Sequence[Fraction], epsilon: float) -> Sequence[int]:
        part = epsilon / len(shares)
        for share in shares:
            if (share, part) not in choices:
                choices[share, part] = choice(share, part)
        return [choices[share, part]() for share in shares]

    return answer
