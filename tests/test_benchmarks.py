"""The benchmark harness runs and says what it measured; how long anything took is nobody's business here."""

import json
import math
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from answers.coverage_data import build as build_coverage
from click.testing import CliRunner
from support.places import ROOT

from benchmarks import (
    accumulated,
    accuracy,
    audit_peers,
    before_after,
    chart,
    clients,
    cold,
    compare,
    coverage,
    errors,
    estimates,
    exports,
    large,
    limits,
    order_statistics,
    rank_errors,
    report,
    served,
    tables,
    tpch,
    tpch_times,
    unprepared,
    wide,
)
from benchmarks.__main__ import main
from benchmarks.data import COLUMNS, DAYS, MAX_ROWS, MERCHANTS, REGIONS, WAYS, build, build_parquet, write_policy
from benchmarks.peers.drive import PEERS
from benchmarks.truth import bounded, exact
from benchmarks.workload import WORKLOAD
from dpsql.policy import load_policy
from dpsql.session.session import open_session

Found = dict[str, Any]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, with its data and results in `folder`."""
    given = [*arguments, "--data", str(folder / "data"), "--out", str(folder / "out")]
    command = [sys.executable, "-m", "benchmarks", *given]
    return subprocess.run(command, cwd=ROOT, check=False, timeout=240, capture_output=True, text=True)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What one run of the command at tiny size has written: part -> JSON, and the page."""
    folder = tmp_path_factory.mktemp("benchmarks")
    done = run(folder, "--rows", "3000", "--repeat", "1")
    assert done.returncode == 0, done.stderr
    found = report.read(folder / "out")
    return {**found, "page": (folder / "out" / "results.md").read_text()}


def test_the_benchmark_asks_every_question_in_every_way(results: Found) -> None:
    timings = results["workload"]["found"]["timings"]
    asked = {(one["question"], one["way"]) for one in timings}
    assert asked == {(question.name, way) for question in WORKLOAD for way in WAYS}
    for one in timings:
        answered = one["raw"] > 0 and one["median"] >= one["least"] > 0 and one["ratio"] > 0 and one["runs"] > 0
        assert answered != bool(one["refused"]), one
    assert {one["question"] for one in timings if one["refused"]} <= {"Q8"}
    prepared = results["workload"]["found"]["prepared"]
    states = {"row_copy": "written", "copy": "written", "in_place": "in place"}
    assert {one["way"]: one["state"] for one in prepared} == states


def test_the_docs_have_a_place_for_every_part(results: Found, tmp_path: Path) -> None:
    page, out = tmp_path / "performance.md", tmp_path / "out"
    text = (ROOT / "docs" / "evidence" / "performance.md").read_text()
    places = dict.fromkeys(report.PARTS, text) | dict.fromkeys(
        report.OF_ACCURACY, (ROOT / "docs" / "evidence" / "accuracy.md").read_text()
    )
    for part, text in places.items():
        assert text.count(f"<!-- {part} -->") == text.count(f"<!-- end of {part} -->") == 1, part
    page.write_text(places["fixed"])
    report.write(out, "fixed", "python -m benchmarks --some", (0.0, 0.5), results["fixed"]["found"])
    report.rewrite_docs(out, page)
    again = page.read_text()
    assert "python -m benchmarks --some" in again
    report.rewrite_docs(out, page)
    assert page.read_text() == again
    page.write_text("no marks")
    with pytest.raises(ValueError, match="no place"):
        report.rewrite_docs(out, page)


def test_first_and_later_questions_are_measured_over_every_source(tmp_path: Path) -> None:
    found = unprepared.unprepared(tmp_path, 1, lambda line: None, 2_000)
    assert len(found) == len(unprepared.CASES) and {one.source for one in found} == {
        case.source for case in unprepared.CASES
    }
    assert all(one.plain > 0 and one.first > 0 and one.later > 0 for one in found)
    shares = {one.share for one in found if one.people == "Zipf" and one.most == 20}
    assert len(shares) == 1 and 0.5 < shares.pop() < 0.9  # the same rows in every source, with either key
    assert tables.unprepared(list(map(asdict, found))).count("\n") == len(found) + 1


def test_data_is_what_the_policy_says(tmp_path: Path) -> None:
    database = build(tmp_path, 3_000)
    assert build(tmp_path, 3_000) == database
    with duckdb.connect(str(database), read_only=True) as connection:
        rows, regions, days, amounts = connection.execute(
            "SELECT count(*), count(DISTINCT region), count(DISTINCT day), count(amount) FROM purchases"
        ).fetchall()[0]
        ((most,),) = connection.execute(
            "SELECT max(n) FROM (SELECT count(*) AS n FROM purchases GROUP BY user_id)"
        ).fetchall()
        same = f"SELECT * FROM purchases EXCEPT ALL SELECT * FROM read_parquet('{build_parquet(tmp_path, 3_000)}')"
        assert connection.execute(same).fetchall() == []
    assert (rows, regions, days) == (3_000, REGIONS, DAYS) and 2_800 < amounts < 3_000
    assert most > MAX_ROWS, "the bound must cut somebody off"
    for way in WAYS:
        policy = load_policy(write_policy(tmp_path, database, way))
        assert (policy.privacy_unit is None) == way.startswith("row")
        assert policy.tables["purchases"].columns["merchant"].domain is None and MERCHANTS == 10_000
        assert len(policy.tables["purchases"].columns) == len(COLUMNS)


def _accumulated() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accumulated, "TEXTS", {title: (make, (1, 2)) for title, (make, _) in accumulated.TEXTS.items()})
        patch.setattr(accumulated, "ASKED", 1)
        return CliRunner().invoke(accumulated.main, ["--most", "30"], catch_exceptions=False).output


ASKED = ["--rows", "300", "--clients", "2", "--rounds", "1", "--seconds", "0.3"]
TABLES: dict[str, Callable[[Path], str]] = {
    "peak MB": lambda at: tables.wide(list(map(vars, wide.wide(at, 1, str, rows=4_000, side=4, sinks=["csv"])))),
    "500 rows": lambda at: tables.large(large.large(at, 500, 1, str)),
    "exponent": lambda at: tables.growth(list(map(vars, large._by_rows(at, 500, 1) + large._by_width(at, 100, 1)))),
    "| clamp: ": lambda at: tables.limits(list(map(vars, limits.limits(at, 1, str, rows=2_000)))),
    "questions a second": lambda at: tables.clients(list(map(vars, clients.concurrent(at, 3, 1, 2, str, rows=300)))),
    "as a process": lambda at: tables.exports(list(map(asdict, exports.exports(at, 1, str, rows=2_000)))),
    "dpsql query": lambda at: tables.cold(list(map(vars, cold.cold(at, 1)))),
    "stored answers": lambda at: _accumulated(),
    "| catalog": lambda at: CliRunner().invoke(served.main, ASKED, catch_exceptions=False).output,
    "stored answer": lambda at: str(before_after.compared((before_after.ROOT, before_after.ROOT), at, 2)),
    "| 9 deciles | 0.1 | 2,000 |": lambda at: tables.quantiles(
        list(map(asdict, rank_errors.rank_errors(at, 1, str, rows=(2_000,), epsilons=(0.1,))))
    ),
}
"""Tables of measurements at tiny sizes, by words that they contain. Each takes seconds, so all but the shortest run at night."""
SHORT = ("| clamp: ", "as a process", "dpsql query")


@pytest.mark.parametrize(
    "words", [word if word in SHORT else pytest.param(word, marks=pytest.mark.nightly) for word in TABLES]
)
def test_every_table_of_measurements_is_made(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert words in TABLES[words](tmp_path)


@pytest.mark.nightly
def test_coverage_counts_bars_that_hold_the_exact_answer(tmp_path: Path) -> None:
    classes = frozenset({"SUM", "SUM of counts", "derived COUNT"})
    setting = coverage.Setting(8, 2_000, 0.5, classes=classes)
    found = coverage.coverage(tmp_path, 1, lambda line: None, [setting])
    assert {one["question"] for one in found} >= classes
    for one in found:
        assert one["bars"] >= 20
        # Of 100 (20) bars of 99 %; a truth of other rows, or bars of other columns, would be held by none.
        assert one["shares"][2] >= 0.7
        assert one["shares"][0] <= 0.95 or one["question"] not in classes
    assert "| SUM |" in tables.coverage(found)


def test_combinations_are_counted_with_intervals_of_clopper_and_pearson(tmp_path: Path) -> None:
    setting = coverage.Setting(300, 6, 1, entity=True, classes=frozenset({"COUNT"}))
    (counted,) = json.loads(json.dumps(coverage.coverage(tmp_path, 1, lambda line: None, [setting])))
    low, high = coverage.surely(round(counted["shares"][1] * counted["bars"]), counted["bars"])
    assert counted["bars"] == 300 * coverage.LEAST_OF_MANY and high > 0.94
    text = tables.combinations([counted, dict(counted, question="SUM", bars=0)])
    shown = f"{counted['shares'][1]:.3f} [{low:.3f}, {high:.3f}] of {counted['bars']}"
    assert f"| person, pure, public keys, epsilon 1, 300 of 6 rows | {shown} | nothing shown |" in text
    few = dict(counted, shares=[0.4, 0.8, 0.9], bars=1_000)
    assert "**0.800** [0.766, 0.832] of 1,000" in tables.combinations([few])


@pytest.mark.parametrize(("held", "bars"), [(0, 10), (1, 10), (10, 10), (950, 1_000), (19_013, 20_000)])
def test_intervals_of_a_share_are_those_of_the_beta_law(held: int, bars: int) -> None:
    beta = pytest.importorskip("scipy.stats").beta
    low, high = coverage.surely(held, bars)
    assert low == pytest.approx(0 if held == 0 else beta.ppf(0.005, held, bars - held + 1), abs=1e-8)
    assert high == pytest.approx(1 if held == bars else beta.ppf(0.995, held + 1, bars - held), abs=1e-8)


def test_estimates_of_few_rows_err_less_than_plain_ratios_and_of_many_rows_as_much(tmp_path: Path) -> None:
    found = estimates.estimates(tmp_path, 1, lambda line: None, rows=(5, 4_000), epsilons=(0.1,))
    cells = {(gain.aggregate, gain.accountant, gain.rows): gain for gain in found}
    for accountant in estimates.ACCOUNTANTS:
        assert cells["AVG", accountant, 5].ratio < 0.95
        assert cells["AVG", accountant, 4_000].ratio == pytest.approx(1)
    assert "| AVG | pure | 0.1 |" in tables.estimates([asdict(gain) for gain in found])


def test_the_questions_of_r2t_are_answered_with_the_bounds_that_they_choose(tmp_path: Path) -> None:
    """Over a made database: 40 customers and suppliers with 5 orders of 4 lines each, and one with 40 orders."""
    database = tmp_path / "tpch-0.duckdb"
    with duckdb.connect(str(database)) as raw:
        raw.execute("CREATE TABLE nation AS SELECT range AS n_nationkey FROM range(25)")
        raw.execute("CREATE TABLE customer AS SELECT range AS c_custkey, range % 25 AS c_nationkey FROM range(40)")
        raw.execute("CREATE TABLE supplier AS SELECT range AS s_suppkey, range % 25 AS s_nationkey FROM range(40)")
        raw.execute(
            "CREATE TABLE orders AS SELECT range AS o_orderkey, if(range < 200, range % 40, 0) AS o_custkey, "
            "DATE '1995-06-01' AS o_orderdate FROM range(235)"
        )
        raw.execute(
            "CREATE TABLE lineitem AS SELECT o_orderkey AS l_orderkey, line AS l_linenumber, line AS l_partkey, "
            "o_custkey AS l_suppkey, 10.0 AS l_quantity, DATE '1995-07-01' AS l_shipdate FROM orders, range(1, 5) lines (line)"
        )
        raw.execute(
            "CREATE TABLE partsupp AS SELECT DISTINCT l_partkey AS ps_partkey, l_suppkey AS ps_suppkey, 5000 AS ps_availqty, "
            "500.0 AS ps_supplycost FROM lineitem"
        )
    errors = {one.question: one for one in tpch.tpch(tmp_path, lambda line: None, 0, 5)}
    assert [error.exact for error in errors.values()] == [940, 235, 400, 940, 9400, 940]
    assert all(0 <= error.dpsql < math.inf for error in errors.values())


def test_five_tpch_questions_are_timed_beside_published_times(tmp_path: Path) -> None:
    with build_coverage("tpch") as made:
        made.execute(f"ATTACH '{tmp_path / 'tpch-all-0.duckdb'}' AS file; COPY FROM DATABASE memory TO file")
    found = tpch_times.tpch_times(tmp_path, 1, lambda line: None, 0)
    assert [time.question for time in found] == ["Q1", "Q5", "Q6", "Q14", "Q19"]
    assert all(0 < value < math.inf for time in found for value in (time.plain, time.first, time.later, time.prepared))
    assert "| Q1 |" in tables.tpch_times([asdict(time) for time in found])


def test_ranks_between_a_value_and_a_quantile_are_counted_on_both_sides() -> None:
    values = np.array([1, 2, 2, 2, 5, 6, 7, 8, 9, 10])
    wrong = [rank_errors.rank_error(values, Fraction(1, 2), value) for value in (0, 2, 5, 6, 7, 11)]
    assert wrong == [5, 1, 0, 0, 1, 5]
    assert rank_errors.rank_error(values, Fraction(3, 10), 2) == 0  # rows with equal values are all it


def test_shared_rows_err_less_than_a_composition_by_hand(tmp_path: Path) -> None:
    found = {one.aggregate: one for one in accuracy.composition(tmp_path, 4, rows=20_000)}
    # Shared rows and centred terms: over 200 regions' errors the median is far below that by hand.
    assert set(found) == {"AVG, pure", "AVG, zcdp", "VAR_POP, pure", "VAR_POP, zcdp"}
    assert all(one.ratio < 0.85 for one in found.values())
    heavy = accuracy.heavy(tmp_path, 1, users=200)
    dropped = {one.bound: one.bias for one in heavy if one.bound == "max_rows 5"}
    assert dropped["max_rows 5"] < -0.2, "a small bound drops most of a heavy tail"


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> Path:
    """Install a system that is one module with this text, and return its environment."""
    (folder / f"{name}.py").write_text(text)
    (folder / "serve.py").write_text((ROOT / "benchmarks" / "peers" / "serve.py").read_text())
    monkeypatch.setattr("benchmarks.peers.drive.HERE", folder)
    monkeypatch.setitem(PEERS, name, (name, ()))
    environment = folder / "environments" / name
    venv.create(environment, with_pip=False)
    (environment / "ready").touch()
    return environment


FAKE = """
class Peer:
    def __init__(self, facts):
        print("a library that talks")
        self.facts = facts
    def ask(self, question):
        if question == "Q1":
            return [((), [self.facts["rows"] + 1])]
        if question == "Q2":
            raise SystemExit("no such aggregate")
        raise ValueError("knows no groups")
"""


def test_a_peer_is_asked_in_its_own_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, "imaginary", FAKE)
    found = compare.compare(
        tmp_path, tmp_path / "environments", ["imaginary"], rows=400, repeat=1, say=lambda line: None
    )
    own = {(one["level"], one["question"]): one for one in found if one["system"] == "imaginary"}
    assert own[("row", "Q1")]["errors"] == [1 / 400]
    assert own[("user", "Q2")]["problem"] == "SystemExit: no such aggregate"
    assert own[("user", "Q6")]["problem"] == "ValueError: knows no groups"
    assert {one["question"] for one in found if one["system"] == "dpsql"} == {q.name for q in compare.QUESTIONS}
    text = tables.peers(found)
    assert "imaginary, privacy unit user Q6: ValueError: knows no groups" in text
    chart_of = tmp_path / "peers.svg"
    if report.find_spec("matplotlib"):
        chart.draw_peers(found, chart_of)
        assert "svg" in chart_of.read_text()[:400]


LEAKING = """
import math, random
import pyarrow.parquet as pq

class Peer:
    def __init__(self, facts):
        self.facts, self.rows = facts, pq.read_table(facts["data"]).to_pylist()

    def ask(self, question):
        sums = {region: 0.0 for region in self.facts["regions"]}
        for row in self.rows:
            if math.isinf(row["amount"] or 0.0):
                raise ValueError("an infinite amount")
            value = 1.0 if question == "Q10" else min(max(row["amount"] or 0.0, 0.0), 500.0)
            sums[row["region"]] += value
        size = {"Q10": self.facts["max_rows"], "Q11": 500.0 * self.facts["max_rows"] / 20}[question]
        scale = size / self.facts["epsilon"]
        noise = lambda: random.expovariate(1 / scale) - random.expovariate(1 / scale)
        return [((region,), [total + noise()]) for region, total in sums.items()]
"""
"""Counts that are private where nobody has more rows than allowed; sums with a twentieth of their noise; an error at a value."""


@pytest.mark.nightly
def test_other_systems_are_audited_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with a system is found over one pair of databases, too, and nothing is found of dpsql."""
    place = installed(tmp_path, monkeypatch, "leaking", LEAKING)
    (next(place.glob("lib/python*")) / "site-packages" / "own.pth").write_text("\n".join(sys.path))
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(audit_peers, "ASKED_AGAIN", 400)
    told: list[str] = []
    records = audit_peers.audit(tmp_path, tmp_path / "environments", ["leaking"], told.append, asked=16)
    own = [record for record in records if record["system"] == "dpsql"]
    assert len(own) == 2 * sum(map(len, audit_peers.NEWCOMERS.values())) and not any(record["found"] for record in own)
    assert any(record["bound"] > 0.2 for record in own) and all(record["trials"] == 16 * 50 for record in own)
    found = {(record["level"], record["newcomer"], record["question"]) for record in records if record["found"]}
    counted, summed = (question.title for question in audit_peers.QUESTIONS)
    assert ("row", "a row at the upper bound", summed) in found and ("row", "an infinite row", counted) in found
    assert ("user", "three times max_rows rows", summed) in found
    assert (
        not {("row", "a row at the upper bound", counted), ("user", "max_rows rows at the upper bound", counted)}
        & found
    )
    page = audit_peers.as_markdown(records)
    assert "FOUND: " in page and "Neighbour: one user more, in region-00000" in page
    assert any("FOUND" in words for words in told)


def test_intervals_of_a_ratio_hold_it() -> None:
    """Medians of two Laplace laws: 99 of 100 intervals hold the true ratio; here 60, of which 3 may miss."""
    random = np.random.default_rng(1)
    missed = 0
    for _ in range(60):
        own, other = np.abs(random.laplace(0, 1, 200)), np.abs(random.laplace(0, 2, 300))
        middle, low, high = errors.ratio(own, other, random)
        assert low < middle < high
        missed += not low <= 0.5 <= high
    assert missed <= 3
    zero, one = np.zeros(9), np.ones(9)
    assert errors.ratio(zero, zero, random) == (1, 1, 1)
    assert errors.ratio(one, zero, random) == (errors.MOST,) * 3


def test_intervals_of_a_ratio_of_means_hold_it() -> None:
    """Means of two exponential laws: 99 of 100 intervals hold the true ratio; here 60, of which 3 may miss."""
    random = np.random.default_rng(2)
    missed = 0
    for _ in range(60):
        own, other = random.exponential(1, 200), random.exponential(2, 300)
        middle, low, high = order_statistics.ratio_of_means(own, other, 2.576)
        assert low < middle < high < 1
        missed += not low <= 0.5 <= high
    assert missed <= 3
    zero, one = np.zeros(9), np.ones(9)
    assert order_statistics.ratio_of_means(zero, zero, 2.576) == (1, 1, 1)
    assert order_statistics.ratio_of_means(one, zero, 2.576)[1] == 0, "nothing certain of one that was never off"
    assert order_statistics.ratio_of_means(zero, one, 2.576)[2] > 1


def test_rows_off_are_a_share_of_the_rows_of_a_group() -> None:
    values = {("a",): np.array([1.0, 2, 3, 4]), ("b",): np.array([10.0, 20])}
    deciles = next(question for question in order_statistics.QUESTIONS if question.name == "Q18")
    median = next(question for question in order_statistics.QUESTIONS if question.name == "Q16")
    off = order_statistics.rows_off(values, median, [{("a",): [4.5], ("b",): [15.0]}, {("a",): [2.0]}])
    assert off.tolist() == [2 / 4, 0, 0, 1]
    near = order_statistics.rows_off(values, deciles, [{("a",): [0.0] * 9, ("b",): [None] * 9}])
    assert near.tolist() == [pytest.approx(0.5), 1], "the mean of .1 to .9 rows of each row; not there at all"


def test_order_statistics_are_compared_in_rows_and_in_values(tmp_path: Path) -> None:
    case = next(case for case in errors.CASES if case.name == "row, order statistics, epsilon 1")
    data = order_statistics.build_ranked(tmp_path)
    with open_session(errors._policy(tmp_path, data, case), create_ledger=True) as session:
        for question in order_statistics.QUESTIONS:
            keys, shares = order_statistics.SHARES[question.name]
            told = [row[0] for row in session.execute(f"EXPLAIN {question.sql}").rows() if " cells" in row[0]]
            cells = f"over {order_statistics.STEPS[keys] + 1} cells"
            assert len(told) == len(shares) and all(line.endswith(cells) for line in told), question.name
    some = replace(case, questions=tuple(q for q in case.questions if q.name in ("Q13", "Q18")))
    found = errors.compare_errors(
        tmp_path, tmp_path, [], rows=1, seconds=0.1, say=lambda line: None, cells=8, cases=[some]
    )
    own = {(one["question"], one["column"]): one for one in found}
    assert set(own) == {("Q13", "value"), ("Q13", "rows"), ("Q18", "value"), ("Q18", "rows")}
    assert own["Q18", "rows"]["groups"] == order_statistics.REGIONS
    # By its law the choice is off by about one of 10,000 rows, and by about 6 of 500 for nine deciles of a region.
    assert 0 <= own["Q13", "rows"]["error"] < 0.005 and 0.004 < own["Q18", "rows"]["error"] < 0.03
    assert 0 <= own["Q13", "value"]["error"] < 0.02 and 0.005 < own["Q18", "value"]["error"] < 0.2
    assert "| Q18 rows |" in tables.errors(found)


def test_a_group_that_is_not_shown_has_error_one() -> None:
    truth = {("a",): [10.0, 4.0], ("b",): [20.0, 0.0]}
    answers = [{("a",): [11.0, 5.0]}, {("a",): [None, math.nan], ("b",): [15.0, 1.0]}]
    assert errors.relative(truth, answers, 0).tolist() == [pytest.approx(0.1), -1, -1, -0.25]
    assert errors.relative(truth, answers, 1).tolist() == [0.25, -1]


def compared(system: str, low: float, error: float = 0.1, note: str = "", column: str = "n") -> dict[str, Any]:
    record = errors.Error(
        "row", "Q1", "COUNT", column, system, error=error, ratio=(low + 0.1, low, low + 0.2), note=note
    )
    return asdict(record)


def test_a_comparison_is_lost_when_the_whole_interval_is_above_one_twice() -> None:
    records = [
        compared("opendp", 1.01),
        compared("opendp", 1.3, column="total"),
        compared("opendp", 0.99, column="mean"),
        compared("smartnoise", 1.4, error=1.0),
        compared("qrlew", 1.4, note="another question"),
        compared("dpsql, max_total 10,000", 1.4),
        asdict(errors.Error("row", "Q2", "SUM", "total", "qrlew", problem="not installed")),
    ]
    assert errors.behind(records) == [("row", "Q1", "n", "opendp"), ("row", "Q1", "total", "opendp")]
    asked: list[list[tuple[str, list[str]]]] = []

    def again(cases: Sequence[errors.Case]) -> list[dict[str, Any]]:
        asked.append([(case.name, [question.name for question in case.questions]) for case in cases])
        return [compared("opendp", 0.9), compared("opendp", 1.2, column="total")]

    assert errors.behind_twice(records, again) == [("row", "Q1", "total", "opendp")]
    assert asked == [[("row", ["Q1"])]]
    assert errors.behind_twice(records[2:], again) == [] and len(asked) == 1, "nothing is measured again for nothing"


RIVAL = """
import json, random
class Peer:
    def __init__(self, facts):
        with open("rival.json") as file:
            self.totals, self.scale = json.load(file)
        self.random = random.Random(11)
    def ask(self, question):
        def noise():
            return self.scale * (self.random.expovariate(1) - self.random.expovariate(1))
        return [(key, [total + noise()]) for key, total in self.totals]
"""


@pytest.mark.parametrize(("loss", "red"), [(1.3, True), (0.8, False)])
def test_the_gate_is_red_where_dpsql_errs_by_1_3_times_another_system(
    loss: float, red: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of rows of [0, 500] have Laplace noise of scale 500 here; the other system's is `loss` times less.

    Of 4,000 numbers each, the logarithm of the ratio of medians has a standard error of 0.032, so that an interval of 99 % holds 1
    at a loss of 1.3 with a chance of 1e-8, and is above 1 at 0.8 with less.
    """
    installed(tmp_path, monkeypatch, "rival", RIVAL)
    question = next(question for question in errors.HEAVY if question.name == "Q11")
    monkeypatch.setattr(errors, "CASES", (errors.Case("row", None, (question,)),))
    monkeypatch.setattr(errors, "compare_errors", partial(errors.compare_errors, cells=4000))
    truth, _ = exact(build_parquet(tmp_path, 3000), question)
    (tmp_path / "rival.json").write_text(
        json.dumps([[[list(key), total] for key, (total,) in truth.items()], 500 / loss])
    )
    given = ["--errors", "rival", "--gate", "--rows", "3000", "--seconds", "600"]
    places = ["--data", str(tmp_path), "--environments", str(tmp_path / "environments"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [*given, *places])
    assert done.exit_code == int(red), done.output
    told = "row Q11 total: the error of rival is smaller beyond chance, twice"
    assert (told in str(done.exception) + done.output) is red


def test_a_system_is_compared_with_dpsql_under_the_same_caps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it bounds a user's rows of a region, so does dpsql beside it; other systems are compared with dpsql without."""
    place = installed(tmp_path, monkeypatch, "rival", RIVAL)
    monkeypatch.setitem(PEERS, "other", ("rival", ()))
    (tmp_path / "environments" / "other").symlink_to(place)
    monkeypatch.setattr("benchmarks.errors.CAPPED_BY_REGION", frozenset({("rival", "Q11")}))
    questions = tuple(question for question in errors.HEAVY if question.name in ("Q10", "Q11"))
    case = errors.Case("user, Gaussian noise", MAX_ROWS, questions, gaussian=True, rows_of_region=2)
    truth, _ = exact(build_parquet(tmp_path, 3000), questions[1])
    (tmp_path / "rival.json").write_text(json.dumps([[[list(key), total] for key, (total,) in truth.items()], 500.0]))
    found = errors.compare_errors(
        tmp_path,
        tmp_path / "environments",
        ["rival", "other"],
        rows=3000,
        seconds=0.2,
        say=str,
        cells=200,
        cases=[case],
    )
    own = {(one["question"], one["system"]): one for one in found}
    twin = own["Q11", "dpsql, 2 rows of a region"]
    assert own["Q11", "rival"]["ratio"][0] == pytest.approx(twin["error"] / own["Q11", "rival"]["error"])
    assert own["Q11", "other"]["ratio"][0] == pytest.approx(own["Q11", "dpsql"]["error"] / own["Q11", "other"]["error"])
    assert twin["error"] < own["Q11", "dpsql"]["error"] / 2, "a bound in L2 of 2 sqrt(30) instead of 60 rows"
    assert ("Q10", twin["system"]) not in own, "asked only where somebody is compared with it"


def test_what_bounding_leaves_is_what_even_draws_leave_on_average(tmp_path: Path) -> None:
    data = tmp_path / "few.parquet"
    rows = "(1, 'a', 2.0), (1, 'a', 900.0), (1, 'b', NULL), (2, 'b', 7.0)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM (VALUES {rows}) AS t(user_id, region, amount)) TO '{data}'")
    questions = {question.name: question for question in WORKLOAD}
    assert exact(data, questions["Q4"]) == (
        {("a",): [2, 902, 451], ("b",): [2, 7, 7]}, ("n", "total", "mean")
    )  # fmt: skip
    kept = bounded(data, questions["Q4"], 2, 500)  # two of the three rows of user 1, 900 clamped to 500
    assert kept[("a",)] == pytest.approx([4 / 3, 502 * 2 / 3, 251]) and kept[("b",)] == pytest.approx([5 / 3, 7, 7])
    assert bounded(data, questions["Q4"], None, 500)[("a",)] == [2, 502, 251]
    # User 1 is in a whatever two rows stay, and in b with two of three draws
    users = bounded(data, questions["Q6"], 2, 500)
    assert (users[("a",)], users[("b",)]) == (pytest.approx([1]), pytest.approx([1 + 2 / 3]))


def test_errors_are_compared_with_those_of_a_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, "imaginary", FAKE)
    cases = [replace(case, questions=case.questions[:2]) for case in errors.CASES[:3]]
    found = errors.compare_errors(
        tmp_path,
        tmp_path / "environments",
        ["imaginary"],
        rows=400,
        seconds=0.1,
        say=lambda line: None,
        cells=8,
        cases=cases,
    )
    own = {(one["case"], one["question"], one["system"]): one for one in found}
    peer, ours = own["row", "Q1", "imaginary"], own["row", "Q1", "dpsql"]
    assert peer["error"] == pytest.approx(1 / 400) and peer["repeats"] >= 4 and ours["repeats"] >= 4
    assert peer["ratio"][0] == pytest.approx(ours["error"] * 400) and ours["ratio"] is None
    assert own["user", "Q2", "imaginary"]["problem"] == "SystemExit: no such aggregate"
    text = tables.errors(found)
    assert "imaginary, privacy unit user Q2: SystemExit: no such aggregate" in text and "3 comparisons" in text
    assert "noise alone" in text
    if report.find_spec("matplotlib"):
        chart.draw_errors(found, tmp_path / "errors.svg")
        assert "svg" in (tmp_path / "errors.svg").read_text()[:400]


def test_a_change_is_slower_where_the_whole_interval_is() -> None:
    wobble = [1 + 0.01 * (number % 5) for number in range(30)]
    for factor, slower in ((1.0, False), (1.03, False), (1.05, True), (0.9, False)):
        change = before_after.change_of("groups", wobble, [factor * part for part in reversed(wobble)])
        assert change.ratio == pytest.approx(factor) and change.low < factor < change.high
        assert change.is_slower == slower
    few = before_after.change_of("groups", [1, 1], [1, 1.3])
    assert few.low < 1 < few.high and not few.is_slower
