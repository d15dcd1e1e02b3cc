"""`dpsql audit --wire`: nothing is found on a sound server, and errors that only a server can make are found."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from support.clinic_folder import Clinic, Outcome, bare_clinic, clinic, dpsql
from support.places import POLICIES

from dpsql.errors.exceptions import Exit, refuse
from dpsql.frontends.pgwire import backend, questions, server
from dpsql.noise.perturb import Gate
from dpsql.policy import Policy, load_policy
from dpsql.pricing.pricing import Price
from dpsql.release.release import Release
from dpsql_audit import server_check
from dpsql_audit.lower_bounds import bound_of_samples
from dpsql_audit.questions import Question
from dpsql_audit.replay import Replay
from dpsql_audit.served import TRIALS, PackedTrials, packable
from dpsql_audit.server_check import check_server

__all__ = ["bare_clinic", "clinic", "dpsql"]
FAR_AWAY = 1e9
Asked = list[tuple[Question, Price | None]]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(POLICIES / "hospital.yaml")


@pytest.fixture(scope="module")
def asked(policy: Policy) -> Asked:
    """Return a count, means and sums, a query with an option, a refused query, and one that probes columns."""
    replay = Replay(policy)
    texts = (
        Question("SELECT COUNT(*) AS n FROM visits"),
        Question("SELECT SUM(cost) AS s, AVG(cost) AS m FROM visits"),
        Question("SELECT COUNT(*) AS n FROM visits", ("dp.max_count = 2",)),
        Question("SELECT * FROM visits"),
        Question("SELECT COUNT(*) AS n FROM visits WHERE 1 / cost > 0"),
    )
    return [(question, next(replay.steps(question)).price) for question in texts]


def without_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_check, "_sample", lambda *arguments: None)


def test_nothing_is_found_on_a_sound_server(policy: Policy, asked: Asked) -> None:
    """The bound comes near the claim: with 4,000 trials per side, at most 0.6 of an epsilon of 1 is lost to chance."""
    done = check_server(policy, asked, FAR_AWAY)
    assert not done.findings
    assert done.compared == len(asked) + len(server_check.CATALOG)
    laplace = [served for served in done.bounds if not served.question.settings]
    assert len(laplace) == 2 and all(0.4 < served.bound.epsilon <= served.claimed == 1 for served in laplace)
    assert all(served.bound.trials == TRIALS * server_check.ASKED for served in done.bounds)


def test_a_notice_that_depends_on_the_data_is_found(
    policy: Policy, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaking(self: questions.Questions, release: Release) -> tuple[tuple[str, str], ...]:
        engine: Any = self.session.context.engine
        rows = engine.exact_rows('SELECT count(*) AS n FROM "visits"').to_pylist()[0]["n"]
        return ((f"{rows} rows were read", ""),)

    without_samples(monkeypatch)
    monkeypatch.setattr(questions.Questions, "_notices", leaking)
    (first, *_) = check_server(policy, asked[:1], FAR_AWAY).findings
    assert "over the wire: messages differ with the data" in first.problem and "rows were read" in first.problem
    assert first.left and first.right and first.left != first.right


def test_a_charge_for_a_description_is_found(policy: Policy, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def running(self: backend.Backend, message: Any) -> Iterator[bytes]:
        with self._memory.statement(1 << 20, "rows") as held:
            self._questions.run(self._statement(message.name), (), held)
        yield from described(self, message)

    described = backend.Backend._describe
    without_samples(monkeypatch)
    monkeypatch.setattr(backend.Backend, "_describe", running)
    findings = check_server(policy, asked[:1], FAR_AWAY).findings
    assert any("for a description" in finding.problem and finding.section == "7" for finding in findings)


def test_an_answer_below_its_price_is_found(policy: Policy, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose sessions repeat an earlier answer although `dp.reuse` is off is charged too little."""
    releases: dict[str, Any] = {}

    def kept(self: questions.Questions, prepared: Any, values: Any, held: Any) -> Any:
        text = prepared.piece.sql
        if text not in releases:
            releases[text] = run(self, prepared, values, held)
        return releases[text]

    run = questions.Questions.run
    without_samples(monkeypatch)
    monkeypatch.setattr(questions.Questions, "run", kept)
    findings = check_server(policy, [asked[0], asked[0]], FAR_AWAY).findings
    assert any("is below the price" in finding.problem for finding in findings)


class QuietGate(Gate):
    """A gate with a third of the requested noise."""

    def draw(self, noises: Sequence[Any], groups: Any) -> Any:
        return [None if drawn is None else drawn // 3 for drawn in super().draw(noises, groups)]


class KeptGate(Gate):
    """A gate that adds the same noise to every answer of a shape."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[Any, ...], Any] = {}

    def draw(self, noises: Sequence[Any], groups: Any) -> Any:
        key = (*noises, groups.draws)
        if key not in self.kept:
            self.kept[key] = super().draw(noises, groups)
        return [None if drawn is None else drawn.copy() for drawn in self.kept[key]]


def gated(monkeypatch: pytest.MonkeyPatch, gate: Gate) -> None:
    """Make servers use another gate unless one is given."""
    session = server.Session
    monkeypatch.setattr(
        server, "Session", lambda *parts, **more: session(*parts, **{**more, "gate": more["gate"] or gate})
    )


def test_too_little_noise_in_answers_is_found(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    gated(monkeypatch, QuietGate())
    done = check_server(policy, [], 0)
    assert any("answers of the server show epsilon of at least" in finding.problem for finding in done.findings)


def test_noise_that_is_drawn_once_is_found(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    gated(monkeypatch, KeptGate())
    assert any("the same noise" in finding.problem for finding in check_server(policy, [], 0).findings)


def test_a_server_that_fails_is_a_finding(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: questions.Questions, *arguments: Any) -> Any:
        raise refuse("internal", what="planted")

    monkeypatch.setattr(server.Server, "start", failing)
    findings = check_server(policy, [], 0).findings
    assert len(findings) == 1 and "nobody caused" in findings[0].problem


def test_a_server_that_is_too_late_is_no_finding(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(self: questions.Questions, *arguments: Any) -> Any:
        raise TimeoutError

    monkeypatch.setattr(server.Server, "start", late)
    done = check_server(policy, [], 0)
    assert not done.findings and "did not answer in time" in done.words


def test_trials_hold_one_unit_each(policy: Policy) -> None:
    table = packable(policy.over_memory())
    assert table is not None
    packed = PackedTrials(policy.over_memory(), table)
    _, profile = next(packed.questions())
    rows = packed.database(profile)[table.name].to_pylist()
    unit = packed.policy.unit_column(table.name)
    assert unit is not None and len({(row["audit trial"], row[unit]) for row in rows}) == TRIALS
    assert {row["audit trial"] for row in rows} == set(range(TRIALS))
    assert not packed.database(None)[table.name].num_rows


def test_bounds_of_samples_hold_and_are_sharp() -> None:
    """Laplace noise of epsilon 1: the bound is below 1, and above 1 if the noise is half as large."""
    chance = np.random.default_rng(17)
    noise = [chance.laplace(0, 1, 4_000).tolist() for _ in range(2)]
    moved = [number + 1 for number in noise[1]]
    assert 0.4 < bound_of_samples(moved, noise[0], 0).epsilon < 1
    halved = [[number / 2 for number in noise[0]], [number / 2 + 1 for number in noise[1]]]
    assert bound_of_samples(halved[1], halved[0], 0).epsilon > 1.2
    assert bound_of_samples(halved[0], halved[1], 0).epsilon > 1.2


def test_the_command_asks_a_server(clinic: Clinic, dpsql: Callable[..., Outcome]) -> None:
    outcome = dpsql("audit", "-p", "clinic.yaml", "--seconds", "6", "--wire", "--no-ledger")
    assert outcome.status == Exit.DONE, outcome
    assert "wire: messages of" in outcome.out and "epsilon at least" in outcome.out
