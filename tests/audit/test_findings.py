"""Contents of a finding: the violated rule of docs/privacy.md, and statements that recreate the same databases."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest
from support.places import POLICIES

from dpsql.errors.exceptions import refuse
from dpsql.policy import Policy, load_policy
from dpsql.privacy.loss import Neighbours
from dpsql_audit import findings
from dpsql_audit.findings import CHARGES, PRIVATE_KEYS, PROMISE, SENSITIVITY, SPLIT, Finding, Rule, rule_of
from dpsql_audit.observation import ObservedSession
from dpsql_audit.questions import Question
from dpsql_audit.replay import Replay, Replayed
from dpsql_audit.report import alone, as_html, as_json, as_text
from dpsql_audit.run import AuditReport
from dpsql_audit.sources import SourceChecked
from dpsql_audit.synthetic import NEWCOMER, PROFILES, Synthetic, as_sql

ODD = next(profile for profile in PROFILES if profile.default == "odd")


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(POLICIES / "hospital.yaml")


@pytest.mark.parametrize(
    ("problem", "rule"),
    [
        ("block 0 t0: L1 distance 4 > claimed 2", SENSITIVITY),
        ("delta 1e-08 > charged 1e-09", PRIVATE_KEYS),
        ("epsilon 2.0 > charged 1.0", CHARGES),
        ("charge {'epsilon': 1} is below the price", CHARGES),
        ("notices and receipts differ: ('charge', 'keys') / ()", PROMISE),
        ("engine SQL differs", SPLIT),
        ("outcome 'answered' / 'refused'", PROMISE),
    ],
)
def test_a_problem_breaks_one_rule(problem: str, rule: Rule) -> None:
    assert rule_of(problem) == rule


def rows_of(rows: pa.Table) -> list[str]:
    """Return every row as text that distinguishes negative zero, NaN and the smallest number from other values."""
    return [repr(tuple(row.values())) for row in rows.to_pylist()]


def expected(tables: Mapping[str, pa.Table]) -> dict[str, list[str]]:
    return {name: rows_of(rows) for name, rows in tables.items()}


def test_the_databases_of_a_replaced_unit_are_those_that_were_compared(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under change_one, both sides contain one unit in addition to the crowd, each a different one."""
    changing = replace(policy, neighbours=Neighbours.CHANGE_ONE)
    replay = Replay(changing)
    verdicts = []

    def judged(
        done: object, left: object, right: object, profile: object, parts: tuple[list[object], list[object]]
    ) -> int:
        verdicts.append(parts)
        return 0

    monkeypatch.setattr(replay, "_judge", judged)
    steps = replay.steps(Question("SELECT COUNT(*) AS n FROM visits"))
    for _ in range(4):
        next(steps)
    crowd, first, second = replay.synthetic.crowd, *map(replay.synthetic.unit, PROFILES[:2])
    assert verdicts[:3] == [([crowd], [crowd, first]), ([crowd], [crowd, second]), ([crowd, first], [crowd, second])]


def test_a_finding_is_whole_in_text_json_and_html() -> None:
    question = Question("SELECT COUNT(*) AS n FROM visits", ("dp.max_groups = 2",))
    over_files = Finding(
        question, "L1 distance 2 > claimed 1", SENSITIVITY, ["-- one", "-- both"], ["-- both", "-- two"]
    )
    of_nothing = Finding(None, "laplace: the noise drawn is not laplace", findings.NOISE)
    report = AuditReport(
        "clinic", "row", source=SourceChecked(3, (over_files,), "over files"), other_findings=[of_nothing]
    )
    assert not report.holds
    facts = json.loads(json.dumps(as_json(report)))
    assert [fact["problem"] for fact in facts["findings"]] == [over_files.problem, of_nothing.problem]
    first = facts["findings"][0]
    assert (first["sql"], first["settings"], first["left"], first["rule"]) == (
        question.sql, ["dp.max_groups = 2"], ["-- one", "-- both"], SENSITIVITY.sentence,
    )  # fmt: skip
    page, text = as_html(report), as_text(report)
    assert "what the second database has alone</summary><pre>-- two</pre>" in page
    assert "SET dp.max_groups = 2; SELECT" in page and page.count("Broken is") == 2
    assert "2 findings" in text and "(docs/privacy.md 8)" in text and SENSITIVITY.sentence in text


@pytest.mark.parametrize(("differing", "found"), [(1, False), (9, True)])
def test_what_explain_says_differs_again_and_again_before_it_is_a_finding(
    policy: Policy, monkeypatch: pytest.MonkeyPatch, differing: int, found: bool
) -> None:
    """A machine that pauses for half a minute changes an expected answer once."""
    replay, said = Replay(policy), iter([*([0, 1] * differing), *([0] * 9)])
    monkeypatch.setattr(ObservedSession, "explained", lambda self, question: next(said))
    done = Replayed(Question("SELECT COUNT(*) AS n FROM visits"), "answered")
    replay._compare_explained(done)
    assert bool(done.findings) is found


def test_a_run_that_the_sandbox_gave_up_is_made_once_more(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    session, runs = Replay(policy).nobody, []

    def execute(sql: str, parameters: object) -> object:
        runs.append(sql)
        raise refuse("sandbox_time" if len(runs) == 1 else "sandbox_memory")

    monkeypatch.setattr(session.session, "execute", execute)
    assert "sandbox_memory" in session.observe("SELECT 1").outcome and len(runs) == 2


def test_a_newcomer_is_all_that_one_side_of_a_pair_has_alone(policy: Policy) -> None:
    synthetic = Synthetic(policy.over_memory())
    unit = synthetic.unit(ODD)
    left, right = (
        as_sql(policy, synthetic.database(*parts)) for parts in ((synthetic.crowd,), (synthetic.crowd, unit))
    )
    assert alone(left, right) == [] and len(alone(right, left)) == sum(map(len, unit.values()))
    assert all(str(NEWCOMER) in statement for statement in alone(right, left))


@pytest.mark.parametrize("measure", ["MEDIAN(cost)", "MIN(nights), QUANTILE_CONT(nights, 0.9)"])
def test_error_bars_of_groups_that_one_unit_brings_are_no_finding(policy: Policy, measure: str) -> None:
    """The rows that an end of an error bar adds to a group belong to nobody, in a group that one side alone has as well."""
    bars = Question(f"SELECT diagnosis, {measure} FROM visits GROUP BY diagnosis", settings=("dp.quantile_bars = on",))
    steps = Replay(policy).steps(bars)
    done = [next(steps) for _ in range(8)][-1]
    assert done.outcome == "answered" and done.pairs and done.findings == []
