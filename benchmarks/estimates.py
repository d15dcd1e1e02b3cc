"""The gain of estimates over plain ratios of released sums: mean squared error and bias of the same releases shown both ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from benchmarks.coverage_questions import Setting, write_data, write_policy
from dpsql.session.session import Session, open_session

ROWS = (5, 10, 25, 100, 1_000, 10_000)
EPSILONS = (0.1, 0.5, 1.0)
ACCOUNTANTS = ("pure", "zcdp")
AGGREGATES = {
    "AVG": "AVG(x)", "VAR_SAMP": "VAR_SAMP(x)", "STDDEV_SAMP": "STDDEV_SAMP(x)", "COVAR_SAMP": "COVAR_SAMP(y, x)",
    "CORR": "CORR(y, x)", "REGR_SLOPE": "REGR_SLOPE(y, x)",
}  # fmt: skip
MOST_ROWS = 200_000
GROUPS = 100
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Gain:
    """Errors of one aggregate over groups of about `rows` rows and repeated releases: root mean squared error and mean error of
    the plain formula and of the estimate, in the unit of the answer, over the `numbers` results that are NULL in neither."""

    aggregate: str
    accountant: str
    epsilon: float
    rows: int
    plain: float
    estimate: float
    plain_bias: float
    bias: float
    numbers: int

    @property
    def ratio(self) -> float:
        """Return the mean squared error of the estimate divided by that of the plain formula."""
        return (self.estimate / self.plain) ** 2


def estimates(
    folder: Path,
    repeat: int,
    say: Callable[[str], None],
    rows: Sequence[int] = ROWS,
    epsilons: Sequence[float] = EPSILONS,
) -> list[Gain]:
    """Measure every aggregate with `repeat` releases in every setting, each charged once and shown both ways."""
    gains = []
    for accountant in ACCOUNTANTS:
        for size in rows:
            for epsilon in epsilons:
                setting = Setting(max(10, min(GROUPS, MOST_ROWS // size)), size, epsilon, accountant)
                write_data(folder, setting)
                gains += _gains(folder, setting, repeat)
                (folder / f"{setting.name}.duckdb").unlink()
                say(f"{setting.label}: done")
    return gains


def _gains(folder: Path, setting: Setting, repeat: int) -> list[Gain]:
    errors: dict[str, list[tuple[Values, Values]]] = {name: [] for name in AGGREGATES}
    with duckdb.connect(str(folder / f"{setting.name}.duckdb"), read_only=True) as raw:
        exact = {name: _numbers(raw.sql(_text(call)).fetchall()) for name, call in AGGREGATES.items()}
    for number in range(repeat):
        with open_session(write_policy(folder, setting, f"-{number}"), create_ledger=True) as session:
            for name, call in AGGREGATES.items():
                plain, shrunk = (_shown(session, call, switch) - exact[name] for switch in ("off", "on"))
                errors[name].append((plain, shrunk))
    return [_gain(name, setting, np.concatenate(pairs, axis=1)) for name, pairs in errors.items()]


def _shown(session: Session, call: str, switch: str) -> Values:
    session.execute(f"SET dp.shrinkage = {switch}")
    release: Any = session.execute(_text(call))
    if switch == "on" and not release.receipt.reused:
        raise AssertionError("two measurements were compared")
    return _numbers(release.rows())


def _text(call: str) -> str:
    return f"SELECT k, {call} AS v FROM t GROUP BY k ORDER BY k"


def _numbers(rows: Sequence[tuple[Any, ...]]) -> Values:
    return np.array([np.nan if row[1] is None else row[1] for row in rows], dtype=np.float64)


def _gain(name: str, setting: Setting, errors: Values) -> Gain:
    plain, shrunk = errors[:, np.isfinite(errors).all(axis=0)]
    squares = [float(np.sqrt(np.mean(wrong**2))) if wrong.size else float("nan") for wrong in (plain, shrunk)]
    biases = [float(np.mean(wrong)) if wrong.size else float("nan") for wrong in (plain, shrunk)]
    return Gain(name, setting.accountant, setting.epsilon, setting.rows, *squares, *biases, plain.size)
