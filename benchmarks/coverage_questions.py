"""Queries and data of `coverage`: settings, a table of skewed values, and a query for every class of outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

HIGHEST = 1000
"""Upper bound of x and y; most values are far below it."""
ROWS_OF_A_PERSON = 3


@dataclass(frozen=True)
class Setting:
    """Data and policy: `groups` groups with about `rows` rows each; under entity privacy a person has three rows anywhere.

    `classes`: the outputs to count; empty: all.
    """

    groups: int
    rows: int
    epsilon: float
    accountant: str = "pure"
    entity: bool = False
    private: bool = False
    classes: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Return a name for files."""
        return "-".join(word.replace(" ", "").replace(",", "").replace(".", "") for word in self.label.split(", "))

    @property
    def label(self) -> str:
        """Return a description for the table."""
        words = [f"{self.groups:,} groups of {self.rows:,} rows", f"epsilon {self.epsilon:g}", self.accountant]
        words += [f"{ROWS_OF_A_PERSON} rows a person"] * self.entity + ["private keys"] * self.private
        return ", ".join(words)

    @property
    def facts(self) -> dict[str, Any]:
        """Return the properties that distinguish this setting, for a report."""
        return {name: getattr(self, name) for name in ("groups", "rows", "epsilon", "accountant", "entity", "private")}

    def filled(self, sql: str) -> str:
        """Return `sql` with the sizes of this setting: `{rows}` of a group; `{some}`, which nearly every group exceeds; `{clip}`,
        which a third of the people exceed."""
        sizes = {"rows": self.rows, "some": self.rows // 4, "clip": 200}
        for word, size in sizes.items():
            sql = sql.replace(f"{{{word}}}", str(size))
        return sql


def _anywhere(setting: Setting) -> bool:
    return True


def _of_people(setting: Setting) -> bool:
    return setting.entity


def _of_rows(setting: Setting) -> bool:
    return not setting.entity and not setting.private and _with_rows_enough(setting)


def _clips_absolute_values(setting: Setting) -> bool:
    return setting.entity and setting.accountant == "pure"


def _with_rows_enough(setting: Setting) -> bool:
    return setting.rows >= 300


def _with_public_keys(setting: Setting) -> bool:
    return not setting.private


@dataclass(frozen=True)
class Question:
    """Several classes of outputs in one query: `sql` returns `keys` columns that identify the row, then a column for each class.

    `exact`: the query for plain DuckDB, if it differs. `before`: a query that is run (and charged) first. `options`: values for
    SET. `wide` and `narrow`: reasons why bars may hold more or less often than they state. `when`: the settings in which to run
    it.
    """

    classes: tuple[str, ...]
    sql: str
    keys: int = 1
    exact: str = ""
    before: str = ""
    options: tuple[str, ...] = ()
    wide: str = ""
    narrow: str = ""
    when: Callable[[Setting], bool] = _anywhere


HULL = "hull of two intervals"
WHOLE = "whole numbers"
OTHER_CHOICE = "exact numbers choose other rows, a notice says so"
ALL_GROUPS = "holds for all groups at once"
ENDS = "its ends are noisy quantiles, which lie where both may be off"
SELECTED = "holds for rows that noise chose"
_COUNTS = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
_ABOVE = "(SELECT k, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY k HAVING COUNT(*) > {some})"
_CLIPPED = (
    "SELECT k, SUM(x * least(1, {clip} / total)) FROM t JOIN (SELECT person, SUM(x) AS total FROM t GROUP BY person) "
    "USING (person) GROUP BY k"
)
_MEANS = "SELECT k, AVG(x) AS a FROM t GROUP BY k"
_PER_PERSON = "SELECT k, AVG(total) FROM (SELECT person, k, SUM(x) AS total FROM t GROUP BY person, k) GROUP BY k"


def _each(name: str, expression: str, wide: str = "") -> Question:
    return Question((name,), f"SELECT k, {expression} AS v FROM t GROUP BY k", wide=wide)


QUESTIONS = (
    _each("COUNT", "COUNT(*)", WHOLE),
    _each("SUM", "SUM(x)"),
    _each("AVG", "AVG(x)", HULL),
    _each("COUNT(DISTINCT)", "COUNT(DISTINCT x)", WHOLE),
    Question(("COUNT(DISTINCT person)",), "SELECT k, COUNT(DISTINCT person) FROM t GROUP BY k", wide=WHOLE, when=_of_people),
    _each("VAR", "VAR_SAMP(x)", HULL),
    _each("STDDEV", "STDDEV_SAMP(x)", HULL),
    _each("COVAR", "COVAR_POP(y, x)", HULL),
    _each("CORR", "CORR(y, x)", HULL),
    _each("REGR_SLOPE", "REGR_SLOPE(y, x)", HULL),
    _each("REGR_R2", "REGR_R2(y, x)", HULL),
    _each("share of rows", "100.0 * COUNT(*) FILTER (WHERE x > 50) / COUNT(*)", HULL),
    _each("SUM / COUNT", "SUM(x) / COUNT(*)"),
    _each("SUM / SUM", "SUM(x) / SUM(y)"),
    Question(("clipped SUM",), "SELECT k, SUM(x) FROM t GROUP BY k", exact=_CLIPPED, options=("dp.max_total = {clip}",),
             when=_clips_absolute_values),
    Question(("MEDIAN", "90 % quantile"), "SELECT k, MEDIAN(x), QUANTILE_CONT(x, 0.9) FROM t GROUP BY k",
             options=("dp.quantile_bars = on",), wide=ENDS),
    Question(("AVG of people's SUM",), _PER_PERSON, wide=HULL, when=_of_people),
    Question(("AVG joined to public rows",), "SELECT half, AVG(x) FROM t JOIN halves USING (k) GROUP BY half",
             when=_with_public_keys),
    Question(("derived COUNT", "derived AVG"), "SELECT k, COUNT(*), AVG(x) FROM t GROUP BY k",
             before="SELECT k, person % 2 = 0, COUNT(*), AVG(x) FROM t GROUP BY 1, 2", when=_with_public_keys, wide=HULL),
    Question(("AVG under ROLLUP",), "SELECT k, AVG(x) AS v FROM t GROUP BY ROLLUP (k)", wide=HULL),
    Question(("AVG in a join",), "SELECT a.k, b.v FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) a "
             "JOIN (SELECT k, AVG(x) AS v FROM t GROUP BY k) b ON a.k = b.k", wide=HULL),
    Question(("AVG in UNION ALL",), "SELECT -1 AS k, AVG(x) AS v FROM t UNION ALL SELECT k, AVG(x) FROM t GROUP BY k",
             wide=HULL),
    Question(("share of total",), f"SELECT k, 100.0 * n / SUM(n) OVER () AS v FROM ({_COUNTS})", wide=HULL),
    Question(("running total",), f"SELECT k, SUM(n) OVER (ORDER BY k) AS v FROM ({_COUNTS})", wide=WHOLE),
    Question(("LAG",), f"SELECT k, n - LAG(n) OVER (ORDER BY k) AS v FROM ({_COUNTS} HAVING COUNT(*) > {{some}})", wide=WHOLE),
    Question(("RANK",), f"SELECT k, RANK() OVER (ORDER BY n DESC) AS v FROM ({_COUNTS})", wide=WHOLE),
    Question(("MEDIAN of counts", "quantile of counts", "STDDEV of counts", "SUM of counts", "COUNT above a threshold",
              "SUM above a threshold"),
             "SELECT MEDIAN(n), quantile_cont(n, 0.9), stddev_pop(n), SUM(n), COUNT(*) FILTER (WHERE n > {rows}), "
             f"SUM(n) FILTER (WHERE n > {{rows}}) FROM {_ABOVE}", 0, wide=WHOLE),
    Question(("MAX of counts", "MIN of AVG"), f"SELECT MAX(n), MIN(a) FROM {_ABOVE}", 0, wide=ALL_GROUPS),
    Question(("top 1",), f"{_COUNTS} ORDER BY n DESC LIMIT 1", exact=_COUNTS, wide=SELECTED),
    Question(("top 5",), f"{_COUNTS} ORDER BY n DESC LIMIT 5", exact=_COUNTS, wide=SELECTED),
    Question(("HAVING",), f"{_COUNTS} HAVING COUNT(*) > {{rows}} * 1.1", exact=_COUNTS, wide=SELECTED),
    Question(("top 3 by AVG",), f"SELECT k, a FROM ({_MEANS}) ORDER BY a DESC LIMIT 3", exact=f"SELECT k, a FROM ({_MEANS})",
             wide=SELECTED),
    Question(("HAVING on AVG",), f"SELECT k, a FROM ({_MEANS}) WHERE a > 60", exact=f"SELECT k, a FROM ({_MEANS})",
             wide=SELECTED),
    Question(("QUALIFY",), f"SELECT k, n FROM ({_COUNTS}) QUALIFY RANK() OVER (ORDER BY n DESC) <= 3", exact=_COUNTS,
             wide=SELECTED),
    Question(("MIN of rows", "MAX of rows"), "SELECT k, MIN(x), MAX(x) FROM t GROUP BY k", options=("dp.quantile_bars = on",),
             wide=ENDS, when=_with_rows_enough),
    Question(("SAMPLE_AGGREGATE",), "SELECT k, SAMPLE_AGGREGATE(AVG(x), 0, 200, 20) FROM t GROUP BY k",
             exact="SELECT k, AVG(x) FROM t GROUP BY k", options=("dp.quantile_bars = on",), wide=ENDS, when=_with_rows_enough),
    Question(("mean of samples",), "SELECT k, SAMPLE_AGGREGATE(COUNT(*), 0, 64, 20, 'mean') FROM t GROUP BY k",
             exact="SELECT k, COUNT(*) / 20 FROM t GROUP BY k", when=_of_rows),
    Question(("COUNT in a join of two protected tables", "AVG in a join of two protected tables"),
             "SELECT t.k, COUNT(*), AVG(p.age) FROM t JOIN people AS p ON t.person = p.person WHERE p.age < 70 GROUP BY t.k",
             wide=HULL, when=_of_people),
    Question(("COUNT above a mean of an earlier stage",),
             "SELECT k, COUNT(*) FILTER (WHERE x > (SELECT AVG(x) FROM t)) FROM t GROUP BY k", wide=WHOLE, narrow=OTHER_CHOICE),
    Question(("COUNT of groups that a noisy threshold chose",), "SELECT COUNT(*) FROM t WHERE k IN (SELECT k FROM t GROUP BY k "
             "HAVING COUNT(*) > {rows})", 0, narrow=OTHER_CHOICE, when=_with_public_keys),
)  # fmt: skip
_SHOWN_SELDOM = frozenset({"COUNT", "SUM", "AVG", "share of rows", "HAVING"})
_MOMENTS = frozenset({"SUM", "VAR", "COVAR", "CORR", "REGR_SLOPE", "REGR_R2"})
_BY_ROW = frozenset({"COUNT", "SUM", "AVG", "VAR", "CORR", "AVG under ROLLUP"})
SETTINGS = (
    Setting(20, 300, 1, "zcdp"),
    Setting(20, 10, 1),
    Setting(20, 300, 0.1),
    Setting(20, 300, 1, "zcdp", entity=True, private=True),
    Setting(20, 300, 0.1, entity=True),
    Setting(20, 16, 1, private=True, classes=frozenset({"COUNT", "top 5"})),
    Setting(20, 40, 1, private=True, classes=_SHOWN_SELDOM),
    Setting(20, 90, 1, "zcdp", entity=True, private=True, classes=_SHOWN_SELDOM),
    Setting(20_000, 10, 1, "zcdp", classes=_BY_ROW),
    Setting(10, 50_000, 1, "zcdp", classes=_MOMENTS),
)


_EVERYWHERE = frozenset({"COUNT", "SUM", "AVG", "VAR"})
_MOST_ROWS = 1_000_000


def _combination(groups: int, epsilon: float, accountant: str, entity: bool, private: bool) -> Setting:
    """Return a setting whose groups have enough rows to be shown under private keys; otherwise fewer rows with more groups."""
    shown = (250 if entity else 45) * round(1 / epsilon)
    rows = shown if private else {10: 300, 300: 100, 3_840: 30, 20_000: 10}[groups]
    return Setting(groups, rows, epsilon, accountant, entity, private, _EVERYWHERE)


COMBINATIONS = tuple(
    setting
    for private, entity, groups in product((False, True), (False, True), (10, 300, 3_840, 20_000))
    for accountant, epsilon in product(("pure", "zcdp"), (0.1, 1.0))
    if (setting := _combination(groups, epsilon, accountant, entity, private)).rows * groups <= _MOST_ROWS
)
"""Every combination of privacy unit, accountant, keys, number of groups and epsilon for which a million rows are enough."""
_PEOPLE = """
  people:
    max_rows: 1
    primary_key: [person]
    columns:
      person: {type: integer, nullable: false}
      age: {type: integer, lower: 18, upper: 90, nullable: false}
"""


def write_data(folder: Path, setting: Setting) -> Path:
    """Write a DuckDB file with table t: key k (0..), x skewed within [0, 1000], y with a correlation of about a half, three rows
    per person; the people, each with an age; and a public table that halves the keys."""
    random = np.random.default_rng([setting.groups, setting.rows])
    sizes = np.maximum(1, np.round(setting.rows * (0.7 + 0.6 * random.random(setting.groups)))).astype(int)
    k = np.repeat(np.arange(setting.groups), sizes)
    mean = 30 + 50 * (k % 7) / 6
    x = np.minimum(random.gamma(2.0, mean / 2), HIGHEST)
    y = np.minimum(0.5 * x + random.gamma(2.0, 15.0, len(k)), HIGHEST)
    columns = {"person": random.permutation(len(k)) // ROWS_OF_A_PERSON, "k": k, "x": np.round(x), "y": np.round(y)}
    path = folder / f"{setting.name}.duckdb"
    with duckdb.connect(str(path)) as raw:
        raw.register("columns", columns)
        raw.execute("CREATE TABLE t AS FROM columns")
        raw.execute("CREATE TABLE people AS SELECT DISTINCT person, 18 + person * 37 % 73 AS age FROM t")
        raw.execute("CREATE TABLE halves AS SELECT DISTINCT k, k % 2 AS half FROM t")
    return path


def write_policy(folder: Path, setting: Setting, ledger: str = "") -> Path:
    """Write the policy file of a setting, over the file that `write_data` wrote."""
    unit = "{table: people, column: person}" if setting.entity else "row"
    keys = "" if setting.private else f", domain: [{', '.join(map(str, range(setting.groups)))}]"
    text = f"""
dataset: coverage
source: duckdb:///{setting.name}.duckdb
privacy_unit: {unit}
budget: {{epsilon: 10000, delta: 9e-4, accountant: {setting.accountant}}}
per_query: {{epsilon: {setting.epsilon}, delta: 1e-7, timeout_seconds: 3600, max_public_groups: 100000}}
ledger: sqlite:///{setting.name}{ledger}.db
tables:
  t:
    {f"max_rows: {ROWS_OF_A_PERSON}" if setting.entity else ""}
    {"foreign_keys: {person: people.person}" if setting.entity else ""}
    columns:
      person: {{type: integer, nullable: false}}
      k: {{type: integer, nullable: false{keys}}}
      x: {{type: real, lower: 0, upper: {HIGHEST}, nullable: false}}
      y: {{type: real, lower: 0, upper: {HIGHEST}, nullable: false}}
{_PEOPLE if setting.entity else ""}
  halves:
    public: true
    primary_key: [k]
    columns:
      k: {{type: integer, nullable: false}}
      half: {{type: integer, nullable: false}}
"""
    path = folder / f"{setting.name}{ledger}.yaml"
    path.write_text("\n".join(line for line in text.splitlines() if line.strip()) + "\n", encoding="utf-8")
    return path
