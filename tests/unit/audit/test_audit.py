"""`dpsql audit`: it finds what is planted, nothing on sound software, and says what it tried."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clinic_folder import Clinic, Outcome, bare_clinic, clinic, dpsql
from support.places import POLICIES

from dpsql.audit import mechanism_laws
from dpsql.audit.lower_bounds import lower_bound, probability_high, probability_low
from dpsql.audit.mechanism_laws import check_law
from dpsql.audit.observation import Measured
from dpsql.audit.questions import Question, questions_of
from dpsql.audit.replay import Replay
from dpsql.audit.report import as_html, as_json, as_text
from dpsql.audit.run import run_audit
from dpsql.audit.synthetic import PROFILES, Synthetic, audited
from dpsql.noise.group_layout import Groups
from dpsql.noise.perturb import Gate
from dpsql.policy import load_policy
from dpsql.privacy.mechanisms import gaussian, laplace
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity

__all__ = ["bare_clinic", "clinic", "dpsql"]
POLICY_NAMES = ("hospital", "hospital_rows", "shop", "tpch")
ONE = Sensitivity(1, 1, 1, 1)
FAR_AWAY = 1e12


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_synthetic_databases_keep_what_is_promised_and_reach_what_is_claimed(name: str) -> None:
    """No question about a corpus policy is refused for its data, and at least half of the claim of each term is reached."""
    replay = Replay(load_policy(POLICIES / f"{name}.yaml"))
    for question in questions_of(replay.policy)[::5]:
        done = replay.replay(question, FAR_AWAY)
        assert "promise_broken" not in done.outcome and not done.findings, (question.sql, done.findings)
        assert done.outcome != "answered" or done.tightness >= 0.5, (question.sql, done.tightness)


def test_the_rows_of_a_unit_depend_on_its_number_and_profile_alone() -> None:
    policy = audited(load_policy(POLICIES / "hospital.yaml"))
    here, there = Synthetic(policy, seed=1), Synthetic(policy, seed=1)
    there.unit(PROFILES[3], 5)
    for profile in PROFILES:
        assert repr(here.unit(profile)) == repr(there.unit(profile))
    left, right = here.database(here.crowd), here.database(here.crowd, here.unit(PROFILES[0]))
    for name, rows in left.items():
        more = list(map(repr, right[name].to_pylist()))
        for row in map(repr, rows.to_pylist()):
            more.remove(row)
        assert len(more) == len(here.unit(PROFILES[0]).get(name, []))


def test_nothing_is_found_on_sound_software_and_the_report_says_what_was_tried() -> None:
    policy = load_policy(POLICIES / "hospital.yaml")
    own = [
        Question("SELECT COUNT(*) AS n FROM visits WHERE cost > 17", (), "the owner's file"),
        Question("SELECT cost FROM visits"),
    ]
    report = run_audit(policy, own, seconds=8)
    assert report.holds and len(report.laws) > 3 and report.false_alarm < 0.001
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
    assert not check_law(noise).problem
    make = laplace.noise_for if noise.mechanism == "laplace" else gaussian.noise_for
    epsilon = Fraction(1, 10) if noise.mechanism == "laplace" else Fraction(1, 100)
    other = make(ONE, epsilon / (wrong if noise.mechanism == "laplace" else wrong**2))

    class OtherNoise(Gate):
        def draw(self, noises: Any, groups: Groups) -> Any:
            return super().draw([other], groups)

    monkeypatch.setattr(mechanism_laws, "Gate", OtherNoise)
    assert "is not" in check_law(noise).problem


def test_noise_that_cells_share_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Repeated(Gate):
        def draw(self, noises: Any, groups: Groups) -> Any:
            (drawn,) = super().draw(noises, groups)
            assert drawn is not None
            return [np.tile(drawn[: drawn.size // 2], 2)]

    noise = laplace.noise_for(ONE, Fraction(1, 10))
    monkeypatch.setattr(mechanism_laws, "Gate", Repeated)
    assert "share their noise" in check_law(noise).problem


def measured(noise: Noise, value: int) -> Measured:
    return Measured([()], True, {"t0": noise}, {"t0": {(): value}})


def test_lower_bounds_refute_a_halved_sensitivity_and_never_a_true_claim() -> None:
    for noise in (laplace.noise_for(ONE, Fraction(1)), laplace.noise_for(ONE, Fraction(2))):
        claimed = float(noise.loss.epsilon or 0)
        tight = [lower_bound([(measured(noise, 5), measured(noise, 6))], 0.0).epsilon for _ in range(30)]
        assert max(tight) <= claimed and min(tight) > 0.4 * claimed
        assert lower_bound([(measured(noise, 5), measured(noise, 7))], 0.0).epsilon > claimed
    session = [(measured(noise, 5), measured(noise, 6))] * 3
    assert claimed < lower_bound(session, 0.0).epsilon <= 3 * claimed


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
    assert facts["questions"][0]["settings"] == ["dp.epsilon = 0.2"] and Path("out/audit.html").read_text().startswith(
        "<!doctype"
    )
    assert "cannot read" in dpsql("audit", "-p", "clinic.yaml", "--queries", "absent.sql").err
    Path("half.sql").write_text("SELECT 'x")
    assert "text_unfinished" in dpsql("audit", "-p", "clinic.yaml", "--queries", "half.sql").err
