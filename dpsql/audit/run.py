"""The whole audit: replay of every question, laws of every noise that was priced, lower bounds, and the ledger added up again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.audit.lower_bounds import ALPHA, LowerBound, lower_bound
from dpsql.audit.mechanism_laws import ALPHA as LAW_ALPHA
from dpsql.audit.mechanism_laws import LawChecked, check_law
from dpsql.audit.observation import Measured
from dpsql.audit.questions import Question, questions_of
from dpsql.audit.replay import Finding, Replay, Replayed
from dpsql.audit.verify_export import Audit
from dpsql.ledger.records import Entry
from dpsql.policy import Policy
from dpsql.pricing.explain import describe_loss
from dpsql.privacy.accounting.conversions import rho_to_epsilon
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise

LEAST_SECONDS = 0.3
"""The time that every question gets, whatever is left."""
DELTA = Fraction(1, 100)
"""Of lower bounds under rho: claimed is what rho converts to at this delta. Smaller ones are out of reach of samples."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class QuestionReport:
    """One question as it is reported: the claim of each term, the largest distance found, and the bounds of epsilon."""

    question: Question
    outcome: str
    price: str = ""
    pairs: int = 0
    tightness: float = 1.0
    claimed_epsilon: float = 0.0
    bound: LowerBound | None = None
    terms: tuple[tuple[str, int, float], ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass
class AuditReport:
    """What was tried and found. `problems`: sentences about what is no question (noise laws, the ledger)."""

    dataset: str
    unit: str
    seconds: float = 0.0
    questions: list[QuestionReport] = field(default_factory=list)
    laws: list[LawChecked] = field(default_factory=list)
    session: LowerBound | None = None
    session_claim: float = 0.0
    ledger: str = "not looked at"
    problems: list[str] = field(default_factory=list)

    @property
    def findings(self) -> list[Finding]:
        """Findings of all questions."""
        return [finding for question in self.questions for finding in question.findings]

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.findings and not self.problems

    @property
    def false_alarm(self) -> float:
        """The probability that sound software is reported as broken by chance: the sum over all tests that use samples."""
        bounds = sum(1 for question in self.questions if question.bound is not None) + (self.session is not None)
        return min(1.0, 2 * LAW_ALPHA * len(self.laws) + 2 * ALPHA * bounds)


def run_audit(
    policy: Policy,
    questions: Sequence[Question] = (),
    *,
    seconds: float = 60,
    seed: int = 0,
    entries: Iterable[Entry] | None = None,
    first: bool = False,
    progress: Progress = lambda text: None,
) -> AuditReport:
    """Audit the installed dpsql on databases made from `policy`, whose source is not opened.

    `questions`: the owner's own, asked before those made from the policy. `entries`: the ledger's, which are added up again.
    `first`: replay ends at the first finding.
    """
    begun = time.monotonic()
    report = AuditReport(policy.dataset, policy.unit_words)
    replay = Replay(policy, seed)
    asked = [*questions, *questions_of(policy)]
    until = begun + seconds * 0.8
    replayed: list[Replayed] = []
    for number, question in enumerate(asked):
        progress(f"{number + 1} of {len(asked)}: {' '.join(question.sql.split())[:70]}")
        left = max(LEAST_SECONDS, (until - time.monotonic()) / (len(asked) - number))
        replayed.append(replay.replay(question, time.monotonic() + left))
        if first and replayed[-1].findings:
            break
    progress("laws of the noise, and lower bounds of epsilon")
    report.laws = [check_law(noise) for noise in _noises(replayed)]
    report.problems += [f"{law.mechanism}: {law.problem}" for law in report.laws if law.problem]
    report.questions = [_reported(one) for one in replayed]
    _check_session(report, replayed)
    if entries is not None:
        _check_ledger(report, entries)
    report.seconds = time.monotonic() - begun
    return report


def _noises(replayed: Sequence[Replayed]) -> list[Noise]:
    """Every law that was priced, at most twenty: one of each mechanism and size of step first."""
    noises: dict[tuple[str, int], Noise] = {}
    for one in replayed:
        for priced in one.price.blocks if one.price is not None else ():
            for term in priced.noise.terms:
                size = round(math.log2(float(term.noise.noise_scale))) if term.noise.noise_scale else 0
                noises.setdefault((term.noise.mechanism, size), term.noise)
    return list(noises.values())[:20]


def _reported(one: Replayed) -> QuestionReport:
    if one.price is None:
        return QuestionReport(one.question, one.outcome, findings=tuple(one.findings))
    claimed, delta = _claim(one.price.loss)
    bound = lower_bound(_measured(one), float(delta)) if one.worst is not None else None
    findings = list(one.findings)
    if bound is not None and bound.epsilon > claimed:
        problem = (
            f"samples show epsilon of at least {bound.epsilon:.3f} at delta {bound.delta:g}, claimed is {claimed:.3f}"
        )
        findings.append(Finding(one.question, problem, "4"))
    terms = tuple(
        (f"block {number}, {name}", _claimed_distance(one, number, name), float(share))
        for (number, name), share in one.reached.items()
    )
    price = describe_loss(one.price.loss)
    return QuestionReport(
        one.question, one.outcome, price, one.pairs, one.tightness, claimed, bound, terms, tuple(findings)
    )


def _claim(loss: PrivacyLoss) -> tuple[float, Fraction]:
    """The epsilon that is claimed, and the delta at which it holds: that of the price, or `DELTA` where rho is converted."""
    if loss.epsilon is not None:
        return float(loss.epsilon), loss.delta
    assert loss.rho is not None
    return float(rho_to_epsilon(loss.rho, DELTA)), DELTA + loss.delta


def _measured(one: Replayed) -> list[tuple[Measured, Measured]]:
    return [] if one.worst is None else list(zip(one.worst[0].blocks, one.worst[1].blocks, strict=False))


def _claimed_distance(one: Replayed, number: int, name: str) -> int:
    assert one.price is not None
    measuring = [b for b in one.price.blocks if b.noise.terms or b.noise.selection is not None or b.noise.measurements]
    noise = next((t.noise for t in measuring[number].noise.terms if name in (t.name, t.shares)), None)
    return 0 if noise is None else noise.sensitivity.l1


def _check_session(report: AuditReport, replayed: Sequence[Replayed]) -> None:
    """All questions together, as one session that asks every one of them over the same neighbour: losses must add up."""
    loss = PrivacyLoss.nothing()
    pairs: list[tuple[Measured, Measured]] = []
    for one in replayed:
        if one.price is not None and one.worst is not None:
            loss = loss + one.price.loss
            pairs += _measured(one)
    if not pairs:
        return
    claimed, delta = _claim(loss)
    report.session, report.session_claim = lower_bound(pairs, float(min(delta, Fraction(1, 2)))), claimed
    if report.session.epsilon > claimed:
        shown = f"samples show epsilon of at least {report.session.epsilon:.3f}, claimed is {claimed:.3f}"
        report.problems.append(f"a session with all questions: {shown}")


def _check_ledger(report: AuditReport, entries: Iterable[Entry]) -> None:
    """Every charge added up again from its recorded events, by a program that knows nothing of dpsql (`verify_export`)."""
    audit = Audit(None)
    for entry in entries:
        facts = dict(entry.facts)
        for name in ("charge", "limits"):
            if name in facts:
                facts[name] = {dimension: int(amount) for dimension, amount in facts[name].items()}
        audit.add(facts, "", entry.digest)
    report.ledger = f"{audit.last} entries and {len(audit.charges)} charges add up, {len(audit.open)} of them cut short"
    report.problems += [f"ledger: {problem}" for problem in audit.problems]
