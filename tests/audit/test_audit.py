"""`dpsql audit` finds planted bugs, finds nothing in sound software, and states what it tried."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from support.clinic_folder import Clinic, Outcome, bare_clinic, clinic, dpsql
from support.effort import NIGHTLY
from support.json_schemas import schemas
from support.places import POLICIES
from support.places import policy as policy_named

from dpsql.engine.emit import bounded_view
from dpsql.errors.exceptions import Exit
from dpsql.noise import samplers
from dpsql.noise.group_layout import Groups
from dpsql.noise.perturb import Gate
from dpsql.plan.plan import TermKind
from dpsql.policy import load_policy
from dpsql.pricing import budget_parts
from dpsql.pricing.sensitivity import sensitivity
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import gaussian, laplace
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice, Lean, leaning_choice
from dpsql.privacy.mechanisms.most_frequent import EndKey, MostFrequent
from dpsql.sql.lexer import split_file
from dpsql.storage.files import state_directory
from dpsql_audit import mechanism_laws, run
from dpsql_audit.charges import check_charges
from dpsql_audit.lower_bounds import lower_bound, probability_high, probability_low
from dpsql_audit.mechanism_laws import check_choice, check_law
from dpsql_audit.observation import Measured
from dpsql_audit.questions import SEEN_ONLY, Question, past_questions, questions_of
from dpsql_audit.replay import Replay, read_statements
from dpsql_audit.report import as_html, as_json, as_text
from dpsql_audit.run import AuditReport, run_audit
from dpsql_audit.sources import SourceReplay

__all__ = ["bare_clinic", "clinic", "dpsql"]
POLICY_NAMES = ("hospital", "hospital_rows", "shop", "tpch")
ONE = Sensitivity(1, 1, 1, 1)
FAR_AWAY = 1e12
SELDOM = 1e-11  # of a false alarm about sound software
LOOSE = (*SEEN_ONLY, "distinct values", "quantiles", "ratio")
"""Kinds for which no rows of one unit need to come near the claim: nothing is counted; there are fewer rows than distinct values;
inner quantiles are searched between fixed outer ones; a column divided by itself is 1 and not its bound."""


EVERY = 7
"""One in this many queries is replayed at night, in addition to the first of each kind."""


@cache
def replayed() -> dict[str, list[Question]]:
    """Return queries over each corpus policy. Each kind runs under one of the policies that have it, in turn."""
    asked = {name: questions_of(policy_named(name)) for name in POLICY_NAMES}
    chosen = {name: questions[::EVERY] if NIGHTLY else [] for name, questions in asked.items()}
    kinds = sorted({question.kind for questions in asked.values() for question in questions})
    for number, kind in enumerate(kinds):
        having = [name for name, questions in asked.items() if any(question.kind == kind for question in questions)]
        name = having[number % len(having)]
        chosen[name].append(next(question for question in asked[name] if question.kind == kind))
    return chosen


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_synthetic_databases_keep_what_is_promised_and_reach_what_is_claimed(name: str) -> None:
    """No query on a corpus policy is refused because of its data, and at least half of each term's claim is reached."""
    replay = Replay(policy_named(name))
    assert len(replayed()[name]) >= 8
    for question in replayed()[name]:
        done = replay.replay(question, FAR_AWAY)
        assert "promise_broken" not in done.outcome and not done.findings, (question.sql, done.findings)
        weak = done.outcome == "answered" and done.tightness < 0.5 and question.kind not in LOOSE
        assert not weak, (question.sql, done.tightness)


def test_nothing_is_found_on_sound_software_and_the_report_says_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = load_policy(POLICIES / "hospital.yaml")
    own = [
        Question("SELECT COUNT(*) AS n FROM visits WHERE cost > 17", (), "the owner's file"),
        Question("SELECT cost FROM visits"),
    ]
    monkeypatch.setattr(run, "questions_of", lambda policy: questions_of(policy)[:4])
    monkeypatch.setattr("dpsql_audit.replay.MOST_SHARPENED", 6)
    report = run_audit(policy, own, seconds=FAR_AWAY)
    assert report.holds and not report.not_tried and len(report.laws) > 3 and report.false_alarm < 0.001
    asked, refused = report.questions[:2]
    assert asked.pairs >= 2 and asked.price and asked.bound is not None and asked.bound.epsilon <= asked.claimed_epsilon
    assert refused.pairs == 0 and "raw_rows" in refused.outcome
    facts = json.loads(json.dumps(as_json(report)))
    assert facts["holds"] is True and facts["questions"][0]["sql"] == own[0].sql
    page = as_html(report)
    assert "cost &gt; 17" in page and "Nothing was found" in page and "http" not in page
    assert "nothing was found" in as_text(report)


@pytest.mark.parametrize("wrong", [Fraction(9, 10), Fraction(11, 10), Fraction(7, 10), Fraction(13, 10)])
@pytest.mark.parametrize("noise", [laplace.noise_for(ONE, Fraction(1, 10)), gaussian.noise_for(ONE, Fraction(1, 100))])
def test_noise_of_another_scale_is_noticed(noise: Noise, wrong: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not check_law(noise, alpha=SELDOM).problem
    make = laplace.noise_for if noise.mechanism == "laplace" else gaussian.noise_for
    epsilon = Fraction(1, 10) if noise.mechanism == "laplace" else Fraction(1, 100)
    other = make(ONE, epsilon / (wrong if noise.mechanism == "laplace" else wrong**2))

    class OtherNoise(Gate):
        def draw(self, noises: Any, groups: Groups) -> Any:
            return super().draw([other] * len(noises), groups)

    monkeypatch.setattr(mechanism_laws, "Gate", OtherNoise)
    assert "is not" in check_law(noise).problem


@pytest.mark.parametrize("wrong", [Fraction(9, 10), Fraction(11, 10), Fraction(7, 10), Fraction(13, 10)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1)])
def test_most_frequent_values_of_another_epsilon_are_noticed(
    epsilon: Fraction, wrong: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = MostFrequent(ONE, epsilon)
    assert not check_choice(law, alpha=SELDOM).problem

    class OtherEpsilon(Gate):
        def release_numbers(self, name: str, histograms: Any, law: Any, groups: Groups) -> Any:
            return super().release_numbers(name, histograms, replace(law, epsilon_0=law.epsilon_0 * wrong), groups)

    monkeypatch.setattr(mechanism_laws, "Gate", OtherEpsilon)
    assert "another law" in check_choice(law).problem


@pytest.mark.parametrize("keys", [1, 2, 11])
@pytest.mark.parametrize("rows", [10, 300])
def test_keys_of_rows_at_an_end_have_the_law_of_the_definition_and_those_of_another_epsilon_are_noticed(
    keys: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = EndKey(ONE, Fraction(1, 2), keys, rows, True)
    assert not check_choice(law, alpha=SELDOM).problem

    class OtherEpsilon(Gate):
        def release_numbers(self, name: str, histograms: Any, law: Any, groups: Groups) -> Any:
            return super().release_numbers(name, histograms, replace(law, epsilon_0=law.epsilon_0 * 2), groups)

    monkeypatch.setattr(mechanism_laws, "Gate", OtherEpsilon)
    assert keys == 1 or "another law" in check_choice(law).problem


@pytest.mark.parametrize("spent", [PrivacyLoss.pure(Fraction(1, 4)), PrivacyLoss.concentrated(Fraction(1, 20))])
@pytest.mark.parametrize("groups", [1, 3])
def test_leaning_choices_have_the_law_of_the_definition_and_those_of_another_epsilon_or_lean_are_noticed(
    groups: int, spent: PrivacyLoss, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = leaning_choice(ONE, Lean(groups, Fraction(1, 3)), spent)
    assert not check_choice(law, alpha=SELDOM).problem
    for wrong in (
        replace(law, epsilon_0=law.epsilon_0 * Fraction(13, 10)),
        replace(law, epsilon_0=law.epsilon_0 * Fraction(7, 10)),
        replace(law, lean=law.lean // 2),
    ):

        class OtherLaw(Gate):
            def release_numbers(
                self, name: str, histograms: Any, law: Any, groups: Groups, wrong: Choice = wrong
            ) -> Any:
                return super().release_numbers(name, histograms, wrong, groups)

        with monkeypatch.context() as patch:
            patch.setattr(mechanism_laws, "Gate", OtherLaw)
            assert "another law" in check_choice(law).problem


def test_noise_that_two_runs_share_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Seeded:
        def read(self, size: int) -> bytes:
            return random.Random(size).randbytes(size)

    noise = laplace.noise_for(ONE, Fraction(1, 10))
    monkeypatch.setattr(mechanism_laws, "Gate", lambda: Gate(Seeded()))
    assert check_law(noise).problem


def test_noise_that_two_small_runs_share_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few cells take their bytes from another generator than many cells."""
    monkeypatch.setattr(samplers.os, "urandom", lambda size: random.Random(size).randbytes(size))
    assert check_law(laplace.noise_for(ONE, Fraction(1, 10))).problem


def test_the_order_of_rows_must_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bounded view that takes rows as they come keeps other rows of the same database when it is read in another order."""
    policy = load_policy(POLICIES / "hospital.yaml")
    question = next(q for q in questions_of(policy) if q.kind == "sum" and "visits" in q.sql)
    assert not Replay(policy).replay(question, FAR_AWAY).findings
    as_they_come = "row_number() OVER (PARTITION BY {} ORDER BY 1)"
    monkeypatch.setattr(
        bounded_view.BoundedView, "bounded", lambda view, key, hidden, part: view.part(part, key, hidden)
    )
    monkeypatch.setattr(bounded_view, "_row_number", lambda partition, order: as_they_come.format(partition[0]))
    (finding,) = Replay(policy).replay(question, FAR_AWAY).findings
    assert "the same rows in another order" in finding.problem and finding.section == "2"


def test_terms_that_share_a_row_have_the_entries_of_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each term alone has no more entries than claimed for it, but the set, whose noise is charged once, has."""
    policy = load_policy(POLICIES / "hospital.yaml")
    policy = replace(policy, budget=replace(policy.budget, accountant="zcdp"))
    question = Question("SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits")
    done = Replay(policy).replay(question, FAR_AWAY)
    assert done.outcome == "answered" and not done.findings and done.tightness == 1
    monkeypatch.setattr(
        budget_parts, "_moved", lambda term, block, neighbours: sensitivity(term, block.caps, neighbours)
    )
    (finding,) = Replay(policy).replay(question, FAR_AWAY).findings
    assert "L0 distance 2 of terms that share a row > claimed 1" in finding.problem


def test_rows_that_are_read_in_place_stand_in_two_orders(tmp_path: Path) -> None:
    """Nothing differs in sound software, but a number that depended on the order would."""
    replay = SourceReplay(load_policy(POLICIES / "hospital.yaml"), tmp_path)
    try:
        refused = Question("SELECT * FROM visits"), Question("SELECT AVG(day) FROM visits")
        assert not any(replay._in_two_orders(refused))
        asked = Question("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
        texts = [side.observe(asked).engine_sql for side in replay._orders]
        assert texts[0] == texts[1]
        assert '"#bounded"."visits ' in texts[0][0]
        named = "SELECT view_name FROM duckdb_views() WHERE schema_name = '#bounded' AND view_name LIKE 'visits %'"
        firsts = []
        for side in replay._orders:
            (view,) = side.session.engine.exact_rows(named).to_pylist()
            first = f'SELECT visit_id FROM memory."#bounded"."{view["view_name"]}" LIMIT 1'
            firsts.append(side.session.engine.exact_rows(first).to_pylist())
        assert firsts[0] != firsts[1]
    finally:
        replay.close()


def test_noise_that_cells_share_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Repeated(Gate):
        def draw(self, noises: Any, groups: Groups) -> Any:
            drawn = super().draw(noises, groups)
            return [None if part is None else np.tile(part[: part.size // 2], 2) for part in drawn]

    noise = laplace.noise_for(ONE, Fraction(1, 10))
    monkeypatch.setattr(mechanism_laws, "Gate", Repeated)
    assert "share their noise" in check_law(noise).problem


def measured(noise: Noise, value: int) -> Measured:
    return Measured([()], True, {"t0": noise}, {"t0": {(): value}})


def test_lower_bounds_refute_a_halved_sensitivity_and_never_a_true_claim() -> None:
    for noise in (laplace.noise_for(ONE, Fraction(1)), laplace.noise_for(ONE, Fraction(2))):
        claimed = float(noise.loss.epsilon or 0)
        pair = [(measured(noise, 5), measured(noise, 6))]
        tight = [lower_bound(pair, 0.0, alpha=SELDOM).epsilon for _ in range(30)]
        assert max(tight) <= claimed and min(tight) > 0.4 * claimed
        assert lower_bound([(measured(noise, 5), measured(noise, 7))], 0.0).epsilon > claimed
    session = [(measured(noise, 5), measured(noise, 6))] * 3
    assert claimed < lower_bound(session, 0.0, alpha=SELDOM).epsilon <= 3 * claimed


def test_probabilities_are_bounded_on_both_sides() -> None:
    for k, n in ((0, 100), (3, 100), (50, 100), (100, 100)):
        low, high = probability_low(k, n, 1e-6), probability_high(k, n, 1e-6)
        assert 0 <= low <= k / n <= high <= 1
    assert probability_high(0, 100, 1e-6) == pytest.approx(1 - 1e-6**0.01)


def test_the_command_reports_refuses_and_adds_up_the_ledger(clinic: Clinic, dpsql: Callable[..., Outcome]) -> None:
    dpsql("query", "-p", "clinic.yaml", "SELECT COUNT(*) AS n FROM patients")
    Path("mine.sql").write_text("SET dp.epsilon = 0.2;\nSELECT region, AVG(age) FROM patients GROUP BY region;")
    (clinic.folder / "clinic.duckdb").unlink()  # the data are not opened
    done = dpsql("audit", "-p", "clinic.yaml", "--queries", "mine.sql", "--seconds", "3", "--report", "out")
    assert done.status == 0, done.out + done.err
    assert "nothing was found" in done.out and "1 charges add up" in done.out
    facts = json.loads(Path("out/audit.json").read_text())
    jsonschema.validate(facts, schemas()["audit"], jsonschema.Draft202012Validator)
    assert facts["questions"][0]["settings"] == ["dp.epsilon = 0.2"] and Path("out/audit.html").read_text().startswith(
        "<!doctype"
    )
    assert "cannot read" in dpsql("audit", "-p", "clinic.yaml", "--queries", "absent.sql").err
    Path("file").touch()
    refused = dpsql("audit", "-p", "clinic.yaml", "--seconds", "600", "--report", "file/report")
    assert refused.status == Exit.FAULT and "cannot write file/report" in refused.err and "pairs" not in refused.out
    Path("half.sql").write_text("SELECT 'x")
    assert "text_unfinished" in dpsql("audit", "-p", "clinic.yaml", "--queries", "half.sql").err


def test_control_c_leaves_a_report_of_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "check_charges", interrupted)
    monkeypatch.setattr(run, "questions_of", lambda policy: questions_of(policy)[:3])
    report = run_audit(load_policy(POLICIES / "hospital.yaml"), seconds=FAR_AWAY)
    assert report.interrupted and [question.pairs for question in report.questions] == [1, 1, 1]
    assert "interrupted before its end" in as_text(report) and "not looked at" in report.charges


def test_a_file_is_read_with_the_options_that_hold_at_each_question() -> None:
    text = """
        -- what a dashboard asks
        SET dp.epsilon = 0.2; SET dp.max_total TO auto; SELECT 1; SET dp.epsilon = 0.3;
        SELECT 2; RESET dp.max_total; SHOW dp.epsilon; SELECT 3; EXPLAIN SELECT 3; RESET ALL; SELECT 4; SELEC 5;
    """
    questions = read_statements([piece.sql for piece in split_file(text)])
    assert [(question.sql, question.settings) for question in questions] == [
        ("SELECT 1", ("dp.epsilon = 0.2", "dp.max_total = 'auto'")),
        ("SELECT 2", ("dp.max_total = 'auto'", "dp.epsilon = 0.3")),
        ("SELECT 3", ("dp.epsilon = 0.3",)),
        ("EXPLAIN SELECT 3", ("dp.epsilon = 0.3",)),
        ("SELECT 4", ()),
        ("SELEC 5", ()),
    ]


def test_questions_that_were_asked_before_come_from_the_audit_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    assert past_questions(log) == []
    texts = ["SELECT 1;", "SELECT 2", "x" * 2_000, "SELECT 1;", "  "]
    events = [json.dumps({"event": "charge", "sql": text}) for text in texts]
    log.write_text("\n".join([*events, "no event", "[1]", json.dumps({"event": "login"})]))
    assert [(question.sql, question.origin) for question in past_questions(log)] == [
        ("SELECT 1", "asked before"),
        ("SELECT 2", "asked before"),
    ]


def test_the_command_asks_what_was_asked_over_the_wire_where_the_policy_keeps_it(
    clinic: Clinic, dpsql: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def noted(policy: Any, questions: Any, **options: Any) -> AuditReport:
        asked.extend(question.sql for question in questions)
        return AuditReport("clinic", "row")

    monkeypatch.setattr(run, "run_audit", noted)
    (state_directory() / "audit.log").write_text(
        json.dumps({"event": "charge", "sql": "SELECT COUNT(*) FROM patients"})
    )
    dpsql("audit", "-p", "clinic.yaml")
    assert asked == []
    policy = clinic.folder / "clinic.yaml"
    policy.write_text(policy.read_text() + "log_sql: true\n")
    dpsql("audit", "-p", "clinic.yaml")
    assert asked == ["SELECT COUNT(*) FROM patients"]


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_charges_of_sound_sessions_hold_under_every_accountant(kind: str) -> None:
    policy = load_policy(POLICIES / "hospital.yaml")
    policy = replace(policy, budget=replace(policy.budget, accountant=kind))
    joined = "SELECT COUNT(*) AS n FROM patients AS a JOIN regions AS b ON a.region = b.region"
    assert check_charges(policy, [Question("SELECT COUNT(*) AS n FROM patients"), Question(joined)]) == []


@pytest.mark.parametrize("fault", ["a cap", "a count", "a sum"])
def test_faults_of_the_core_are_found_by_the_first_questions(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """One row above max_rows, and half of the sensitivity of counts or of sums, are found by the first comparison of each core
    question, before any law of noise is drawn."""
    if fault == "a cap":
        for name in ("_within", "counting", "within_thresholds", "row_counts"):
            right_text = getattr(bounded_view.BoundedView, name)
            monkeypatch.setattr(
                bounded_view.BoundedView, name,
                lambda view, *given, text=right_text: text(replace(view, most=view.most + 1), *given),
            )  # fmt: skip
    else:
        moved = budget_parts._moved
        kind = TermKind.COUNT if fault == "a count" else TermKind.SUM

        def halved(term: Any, *given: Any) -> Sensitivity:
            right = moved(term, *given)
            halves = Sensitivity(
                right.l0, max(1, right.l1 // 2), max(1, right.l2_squared // 4), max(1, right.linf // 2)
            )
            return halves if term.kind is kind else right

        monkeypatch.setattr(budget_parts, "_moved", halved)
    compared: list[str] = []
    report = run_audit(load_policy(POLICIES / "hospital.yaml"), seconds=300, first=True, progress=compared.append)
    assert not report.holds and len(compared) <= 24 and not report.laws, compared
