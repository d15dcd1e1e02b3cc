"""How often error bars hold the exact answer: every class of output, asked through the public API with its real noise.

A bar says 95 % (50 %, 99 %); here the share of bars that hold the exact answer is counted over groups and repeated
measurements. The exact answer is that of plain DuckDB for the same text: no value is outside its bounds, no row is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from dpsql.release.error_bars import bars
from dpsql.release.release import Release
from dpsql.release.sandbox import shared_sandbox
from dpsql.session.opening import open_session

CONFIDENCES = (0.5, 0.95, 0.99)
HIGHEST = 1000
"""Upper bound of x and y; values are mostly far below it."""
LABELS = 30_000


@dataclass(frozen=True)
class Setting:
    """Data and policy: `groups` with about `rows` rows each; under entity privacy a person has three rows."""

    groups: int
    rows: int
    epsilon: float
    accountant: str = "pure"
    entity: bool = False
    private: bool = False

    @property
    def name(self) -> str:
        """For files."""
        return "-".join(word.replace(" ", "").replace(",", "").replace(".", "") for word in self.label.split(", "))

    @property
    def label(self) -> str:
        """Words for the table."""
        words = [f"{self.groups:,} groups of {self.rows:,} rows", f"epsilon {self.epsilon:g}", self.accountant]
        words += ["entity"] * self.entity + ["private keys"] * self.private
        return ", ".join(words)


@dataclass(frozen=True)
class Question:
    """A class of outputs: `sql` over table t with key k; its columns before `shown` (or the row alone) say which row it is."""

    name: str
    sql: str
    shown: int = 1


@dataclass
class Covered:
    """Counts of bars: all that were computed, those that hold the exact answer by confidence, those without width, and
    those without information (`unknown`)."""

    bars: int = 0
    unknown: int = 0
    zero: int = 0
    hits: dict[float, int] = field(default_factory=lambda: dict.fromkeys(CONFIDENCES, 0))

    def share(self, confidence: float) -> float:
        """Share of bars that hold the exact answer."""
        return self.hits[confidence] / max(1, self.bars)


_EACH = "SELECT k, {} AS v FROM t GROUP BY k"
_OVER = "SELECT {} AS v FROM (SELECT k, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY k HAVING COUNT(*) > {{some}})"
QUESTIONS = (
    *(
        Question(name, _EACH.format(text))
        for name, text in {
            "COUNT": "COUNT(*)", "SUM": "SUM(x)", "AVG": "AVG(x)", "COUNT(DISTINCT)": "COUNT(DISTINCT x)",
            "VAR": "VAR_SAMP(x)", "STDDEV": "STDDEV_SAMP(x)", "COVAR": "COVAR_POP(y, x)", "CORR": "CORR(y, x)",
            "REGR_SLOPE": "REGR_SLOPE(y, x)", "REGR_R2": "REGR_R2(y, x)",
            "share of rows": "100.0 * COUNT(*) FILTER (WHERE x > 50) / COUNT(*)",
        }.items()
    ),
    Question("AVG under ROLLUP", "SELECT k, AVG(x) AS v FROM t GROUP BY ROLLUP (k)"),
    Question("AVG in a join", "SELECT a.k, b.v FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) a "
             "JOIN (SELECT k, AVG(x) AS v FROM t GROUP BY k) b ON a.k = b.k"),
    Question("AVG in UNION ALL", "SELECT -1 AS k, AVG(x) AS v FROM t UNION ALL SELECT k, AVG(x) FROM t GROUP BY k"),
    Question("share of total", "SELECT k, 100.0 * n / SUM(n) OVER () AS v FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)"),
    Question("running total", "SELECT k, SUM(n) OVER (ORDER BY k) AS v FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)"),
    Question("LAG", "SELECT k, n - LAG(n) OVER (ORDER BY k) AS v FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k "
             "HAVING COUNT(*) > {some})"),
    Question("MEDIAN of counts", _OVER.format("MEDIAN(n)"), 0),
    Question("quantile of counts", _OVER.format("quantile_cont(n, 0.9)"), 0),
    Question("STDDEV of counts", _OVER.format("stddev_pop(n)"), 0),
    Question("MAX of counts", _OVER.format("MAX(n)"), 0),
    Question("MIN of AVG", _OVER.format("MIN(a)"), 0),
    Question("SUM of counts", _OVER.format("SUM(n)"), 0),
    Question("COUNT above a threshold", _OVER.format("COUNT(*) FILTER (WHERE n > {rows})"), 0),
    Question("SUM above a threshold", _OVER.format("SUM(n) FILTER (WHERE n > {rows})"), 0),
    Question("RANK", "SELECT k, RANK() OVER (ORDER BY n DESC) AS v FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)"),
    Question("top 1", "SELECT k, COUNT(*) AS v FROM t GROUP BY k ORDER BY v DESC LIMIT 1"),
    Question("top 5", "SELECT k, COUNT(*) AS v FROM t GROUP BY k ORDER BY v DESC LIMIT 5"),
    Question("HAVING", "SELECT k, COUNT(*) AS v FROM t GROUP BY k HAVING COUNT(*) > {rows} * 1.1"),
)  # fmt: skip
_BY_ROW = frozenset({"COUNT", "AVG", "VAR", "CORR", "AVG under ROLLUP"})
SETTINGS: tuple[tuple[Setting, frozenset[str]], ...] = (
    (Setting(20, 300, 1, "zcdp"), frozenset()),
    (Setting(20, 10, 1), frozenset()),
    (Setting(20, 300, 0.1), frozenset()),
    (Setting(20, 300, 1, "zcdp", entity=True, private=True), frozenset()),
    (Setting(20, 14, 1, private=True), frozenset({"COUNT", "SUM", "AVG"})),
    (Setting(20_000, 10, 1, "zcdp"), _BY_ROW),
    (Setting(10, 50_000, 1, "zcdp"), frozenset({"VAR", "COVAR", "CORR", "REGR_SLOPE", "REGR_R2"})),
)
"""Settings, and which questions are asked in them (none: all)."""
SELECTED = frozenset({"top 1", "top 5", "HAVING"})
"""Questions whose exact rows are others than those shown: the truth is asked without what follows GROUP BY."""


def data(setting: Setting) -> pa.Table:
    """Table t: key k (0..), x skewed within [0, 1000], y with a correlation of about a half, three rows a person."""
    random = np.random.default_rng([setting.groups, setting.rows])
    sizes = np.maximum(1, np.round(setting.rows * (0.7 + 0.6 * random.random(setting.groups)))).astype(int)
    k = np.repeat(np.arange(setting.groups), sizes)
    mean = 30 + 50 * (k % 7) / 6
    x = np.minimum(random.gamma(2.0, mean / 2), HIGHEST)
    y = np.minimum(0.5 * x + random.gamma(2.0, 15.0, len(k)), HIGHEST)
    person = random.permutation(len(k)) // 3
    return pa.table({"person": person, "k": k, "x": np.round(x), "y": np.round(y)})


def policy(folder: Path, setting: Setting) -> Path:
    """The policy file of a setting."""
    unit = "{table: t, column: person}" if setting.entity else "row"
    known = "" if setting.private else f", lower: 0, upper: {setting.groups - 1}"
    text = f"""
dataset: coverage
source: duckdb:///none.duckdb
privacy_unit: {unit}
budget: {{epsilon: 10000, delta: 1e-4, accountant: {setting.accountant}}}
per_query: {{epsilon: {setting.epsilon}, delta: 1e-9, timeout_seconds: 3600, max_public_groups: 100000}}
ledger: sqlite:///{setting.name}.db
tables:
  t:
    {"max_rows: 3" if setting.entity else ""}
    columns:
      person: {{type: integer, nullable: false}}
      k: {{type: integer, nullable: false{known}}}
      x: {{type: real, lower: 0, upper: {HIGHEST}, nullable: false}}
      y: {{type: real, lower: 0, upper: {HIGHEST}, nullable: false}}
"""
    path = folder / f"{setting.name}.yaml"
    path.write_text("\n".join(line for line in text.splitlines() if line.strip()) + "\n", encoding="utf-8")
    return path


def cover(
    folder: Path, setting: Setting, questions: Sequence[Question], wanted: int, most: int = 2_000, least: int = 1
) -> dict[str, Covered]:
    """Each question asked until `wanted` bars are there (`most` times at most, `least` at least)."""
    table = data(setting)
    found: dict[str, Covered] = {}
    with (
        duckdb.connect() as raw,
        open_session(policy(folder, setting), source={"t": table}, create_ledger=True) as session,
    ):
        raw.register("t", table)
        session.execute("SET dp.reuse = off")
        for question in questions:
            sql = question.sql.replace("{rows}", str(setting.rows)).replace("{some}", str(setting.rows // 4))
            truth = _truth(raw, question, sql)
            counted = found[question.name] = Covered()
            for asked in range(most):
                _count(counted, session.execute(sql), question, truth)
                if counted.bars >= wanted and asked + 1 >= least:
                    break
    return found


def _truth(raw: duckdb.DuckDBPyConnection, question: Question, sql: str) -> dict[tuple[Any, ...], float]:
    plain = (
        sql.split(" HAVING ", maxsplit=1)[0].split(" ORDER BY v", maxsplit=1)[0] if question.name in SELECTED else sql
    )
    return {tuple(row[: question.shown]): row[question.shown] for row in raw.sql(plain).fetchall()}


def _count(counted: Covered, release: Release, question: Question, truth: dict[tuple[Any, ...], float]) -> None:
    rows = list(release.rows())
    exact = np.array([truth.get(tuple(row[: question.shown]), np.nan) for row in rows], dtype=float)
    there = np.isfinite(exact)
    slack = 1e-9 * np.maximum(1, np.abs(exact))
    for confidence in CONFIDENCES:
        known = bars(release.sandbox or shared_sandbox(), replace(release.answered, confidence=confidence))
        low, high = (
            np.asarray(part.column(question.shown).to_numpy(), dtype=float) for part in (known.low, known.high)
        )
        hit = there & (~np.isfinite(low) | ((low - slack <= exact) & (exact <= high + slack)))
        counted.hits[confidence] += int(hit.sum())
        if confidence == 0.95:
            counted.bars += int(there.sum())
            nothing = np.asarray(known.unknown.column(question.shown).to_numpy(), dtype=bool)
            counted.unknown += int((there & (nothing | ~np.isfinite(low))).sum())
            counted.zero += int((there & (high - low <= 0)).sum())


def coverage(folder: Path, repeat: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Every question in every setting: for each unit of `repeat` about 100 bars of questions with a row for each group, and
    20 of others."""
    found = []
    for setting, questions in SETTINGS:
        asked = [one for one in QUESTIONS if not questions or one.name in questions]
        for question in asked:
            wanted = (20 if question.shown == 0 or question.name == "top 1" else 100) * repeat
            (counted,) = cover(folder, setting, [question], wanted, least=1 if setting.groups > 1_000 else 3).values()
            found.append(
                {
                    "setting": setting.label, "question": question.name, "bars": counted.bars,
                    "shares": [counted.share(confidence) for confidence in CONFIDENCES],
                    "unknown": counted.unknown / max(1, counted.bars), "zero": counted.zero / max(1, counted.bars),
                }
            )  # fmt: skip
            say(f"{setting.label}: {question.name} {found[-1]['shares']} of {counted.bars}")
    return found
