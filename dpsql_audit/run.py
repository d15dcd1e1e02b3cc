"""The whole audit: replay of every question, laws of every noise that was priced, lower bounds, and the ledger added up again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.ledger.records import Entry
from dpsql.policy import Policy
from dpsql.pricing.explain import describe_loss
from dpsql.pricing.pricing import Price
from dpsql.privacy.loss import PrivacyLoss
from dpsql_audit.charges import MOST_PAID, added_up, check_charges
from dpsql_audit.distances import measuring
from dpsql_audit.findings import LEDGER, NOISE, SENSITIVITY, Finding
from dpsql_audit.lower_bounds import ALPHA, LowerBound, claim_of, lower_bound
from dpsql_audit.mechanism_laws import ALPHA as LAW_ALPHA
from dpsql_audit.mechanism_laws import TESTS_OF_A_LAW, LawChecked, laws_of
from dpsql_audit.observation import Measured
from dpsql_audit.questions import MEASURED_AS_ONE, Question, questions_of
from dpsql_audit.replay import WATCHED, Replay, Replayed
from dpsql_audit.served import CheckServer, ServedCheck
from dpsql_audit.sources import NOT_CHECKED, SourceChecked, check_sources

if TYPE_CHECKING:
    from dpsql_audit.scratch import ScratchDatabase

SOURCE_SHARE, REPLAY_SHARE, WIRE_SHARE = 0.5, 0.9, 0.3
"""Shares of the given time: the points at which comparisons over files and in memory end (the rest is for samples), and the share
that a server's questions take where one is audited."""
NOT_TRIED = "not tried before the end"
CORE = ("count", "units", "sum", "public keys")
"""Kinds of questions that are compared before all others, of every table: what everything else rests on."""
MOST_LAWS = 30
MOST_OVER_FILES = 40
"""The most questions that are asked over files and in real sessions."""
Progress = Callable[[str], None]
clock = time.monotonic
"""The clock that measures `seconds`."""


@dataclass(frozen=True)
class QuestionReport:
    """The report of one question: the claim of each term, the largest distance found, and the bounds of epsilon."""

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
class Trial:
    """One question under audit: its comparisons, made one at a time, their results so far, and its lower bound."""

    question: Question
    steps: Iterator[Replayed] = field(default_factory=lambda: iter(()))
    done: Replayed | None = None
    ended: bool = False
    bound: LowerBound | None = None

    def advance(self) -> None:
        """Make one more comparison; a finding ends the question."""
        step = next(self.steps, None)
        self.done = self.done if step is None else step
        self.ended = step is None or bool(step.findings)


@dataclass
class AuditReport:
    """The report of an audit: what was tried and what was found.

    `other_findings`: those that do not come from comparing one question (noise laws, charges, the ledger). `interrupted`: the
    audit was ended before its time.
    """

    dataset: str
    unit: str
    seconds: float = 0.0
    questions: list[QuestionReport] = field(default_factory=list)
    laws: list[LawChecked] = field(default_factory=list)
    session: LowerBound | None = None
    session_claim: float = 0.0
    charges: str = "not looked at before the end"
    ledger: str = "not looked at"
    source: SourceChecked = NOT_CHECKED
    wire: ServedCheck | None = None
    other_findings: list[Finding] = field(default_factory=list)
    interrupted: bool = False

    @property
    def findings(self) -> list[Finding]:
        """Return all findings: of the questions in memory, over files and over the wire, and the others."""
        of_questions = [finding for question in self.questions for finding in question.findings]
        of_wire = [] if self.wire is None else self.wire.findings
        return [*of_questions, *self.source.findings, *of_wire, *self.other_findings]

    @property
    def not_tried(self) -> int:
        """Return the number of questions for which no time was left to compare a pair of databases."""
        return sum(q.outcome == NOT_TRIED or (bool(q.price) and not q.pairs) for q in self.questions)

    @property
    def refused(self) -> int:
        """Return the number of questions that were refused."""
        return sum(not q.pairs for q in self.questions) - self.not_tried

    @property
    def holds(self) -> bool:
        """Return whether nothing was found."""
        return not self.findings

    @property
    def false_alarm(self) -> float:
        """Return a bound on the probability that sound software is reported as broken: the sum over all tests of samples."""
        bounds = sum(1 for question in self.questions if question.bound is not None) + (self.session is not None)
        bounds += 0 if self.wire is None else len(self.wire.bounds)
        return min(1.0, TESTS_OF_A_LAW * LAW_ALPHA * len(self.laws) + 2 * ALPHA * bounds)


def run_audit(
    policy: Policy,
    questions: Sequence[Question] = (),
    *,
    seconds: float = 60,
    seed: int = 0,
    entries: Iterable[Entry] | None = None,
    first: bool = False,
    check_server: CheckServer | None = None,
    scratch: ScratchDatabase | None = None,
    progress: Progress = lambda text: None,
) -> AuditReport:
    """Audit the installed dpsql on databases made from `policy`, whose source is not opened.

    `questions`: the owner's own questions, asked before those made from the policy. `entries`: those of the ledger, which are
    added up again. `first`: replay ends at the first finding. `check_server`: asks the questions of a server. `scratch`: an empty
    database for a policy whose data are on PostgreSQL.

    Control-C ends the audit early; the report then covers what was done until that moment.
    """
    begun = clock()
    report = AuditReport(policy.dataset, policy.unit_words)
    trials = [Trial(question) for question in [*questions, *questions_of(policy)]]
    try:
        if entries is not None:
            _check_ledger(report, entries)
        wire_seconds = 0.0 if check_server is None else seconds * WIRE_SHARE
        ends = begun, seconds - wire_seconds
        _find(report, trials, Replay(policy, seed), ends, first, scratch, progress)
        if check_server is not None and not (first and _has_finding(report, trials)):
            progress("questions over the wire")
            report.wire = check_server(policy, _of_a_server(trials), wire_seconds, seed)
        progress("lower bounds of epsilon from samples")
        _sample(report, trials, begun + seconds)
    except KeyboardInterrupt:
        report.interrupted = True
    report.questions = [_reported(trial) for trial in trials]
    report.seconds = clock() - begun
    return report


def _find(
    report: AuditReport,
    trials: Sequence[Trial],
    replay: Replay,
    ends: tuple[float, float],
    first: bool,
    scratch: ScratchDatabase | None,
    progress: Progress,
) -> None:
    """Compare databases question by question while there is time; once some questions have prices, also check the charges of real
    sessions, and files. `ends`: the start time, and the number of seconds.

    Every noise law is checked when a question is first priced with it, but after the first comparisons of the core.
    """
    begun, seconds = ends
    report.other_findings += replay.catalog_findings()
    audited_laws: set[tuple[str, int]] = set()
    prices: list[Price] = []
    for trial in trials:
        trial.steps = replay.steps(trial.question)
    for turn in _in_turn(trials):
        if clock() > begun + seconds * REPLAY_SHARE or (first and _has_finding(report, trials)):
            return
        while prices and (turn is None or turn.question.kind not in CORE):
            _check_laws(report, prices.pop(0), audited_laws)
        if turn is None:
            progress("charges of real sessions, and files of the policy's own kind")
            priced = _priced(trials)
            charged = [question for question, _ in priced]
            report.other_findings += check_charges(replay.policy, charged) if charged else []
            report.charges = f"real sessions paid for {min(MOST_PAID, len(charged))} questions"
            report.source = check_sources(
                replay.original,
                priced,
                lambda: clock() > begun + seconds * SOURCE_SHARE,
                replay.synthetic.seed,
                scratch,
            )
            continue
        progress(f"comparing {' '.join(turn.question.sql.split())[:60]}")
        turn.advance()
        if turn.done is not None and turn.done.price is not None and turn.done.pairs == 1:
            prices.append(turn.done.price)


def _in_turn(trials: Sequence[Trial]) -> Iterator[Trial | None]:
    """Yield every question once, those of the core first, then all unfinished ones in rounds. Yield None when enough of them have
    prices for the other checks."""
    ordered = sorted(trials, key=lambda trial: trial.question.kind not in CORE)
    yield from ordered[:MOST_OVER_FILES]
    yield None
    yield from ordered[MOST_OVER_FILES:]
    while not_ended := [trial for trial in trials if not trial.ended]:
        yield from not_ended


def _priced(trials: Sequence[Trial]) -> list[tuple[Question, Price]]:
    """Return the questions that were answered, with their prices."""
    done = [trial.done for trial in trials if trial.done is not None]
    return [(replayed.question, replayed.price) for replayed in done if replayed.price is not None]


def _of_a_server(trials: Sequence[Trial]) -> list[tuple[Question, Price | None]]:
    """Return the questions with a result, with their prices; a refused question has none."""
    return [
        (trial.question, trial.done.price)
        for trial in trials
        if trial.done is not None and trial.done.outcome != WATCHED and trial.question.kind != MEASURED_AS_ONE
    ]


def _has_finding(report: AuditReport, trials: Sequence[Trial]) -> bool:
    return bool(report.other_findings or report.source.findings) or any(
        trial.done is not None and trial.done.findings for trial in trials
    )


def _check_laws(report: AuditReport, price: Price, audited_laws: set[tuple[str, int]]) -> None:
    """Check each noise law of `price` that is not in `audited_laws`: one per mechanism and step size, at most `MOST_LAWS`."""
    for name, check in laws_of(price).items():
        if name not in audited_laws and len(audited_laws) < MOST_LAWS:
            audited_laws.add(name)
            report.laws.append(check())
            if report.laws[-1].problem:
                words = f"{report.laws[-1].mechanism}: {report.laws[-1].problem}"
                report.other_findings.append(Finding(None, words, NOISE))


def _sample(report: AuditReport, trials: Sequence[Trial], until: float) -> None:
    """Estimate lower bounds for each question, and for a session that asks them all, on the pairs that moved farthest."""
    for trial in trials:
        if clock() > until:
            return
        if trial.done is not None and trial.done.price is not None and trial.done.worst is not None:
            trial.bound = lower_bound(_measured(trial.done), float(claim_of(trial.done.price.loss)[1]))
    _check_session(report, [trial.done for trial in trials if trial.done is not None])


def _reported(trial: Trial) -> QuestionReport:
    done = trial.done
    if done is None:
        return QuestionReport(trial.question, NOT_TRIED)
    if done.price is None:
        return QuestionReport(trial.question, done.outcome, findings=tuple(done.findings))
    claimed = claim_of(done.price.loss)[0]
    findings = list(done.findings)
    if trial.bound is not None and trial.bound.epsilon > claimed:
        bound = f"samples show epsilon of at least {trial.bound.epsilon:.3f} at delta {trial.bound.delta:g}"
        sides = ([], []) if done.worst_databases is None else done.worst_databases()
        findings.append(Finding(trial.question, f"{bound}, claimed is {claimed:.3f}", SENSITIVITY, *sides))
    terms = tuple(
        (f"block {number}, {name}", _claimed_distance(done, number, name), float(share))
        for (number, name), share in done.reached.items()
    )
    price = describe_loss(done.price.loss)
    return QuestionReport(
        trial.question, done.outcome, price, done.pairs, done.tightness, claimed, trial.bound, terms, tuple(findings)
    )


def _measured(replayed: Replayed) -> list[tuple[Measured, Measured]]:
    return [] if replayed.worst is None else list(zip(replayed.worst[0].blocks, replayed.worst[1].blocks, strict=False))


def _claimed_distance(replayed: Replayed, number: int, name: str) -> int:
    assert replayed.price is not None
    noise = next((t.noise for t in measuring(replayed.price)[number].noise.terms if name in (t.name, t.shares)), None)
    return 0 if noise is None else noise.sensitivity.l1


def _check_session(report: AuditReport, replayed: Sequence[Replayed]) -> None:
    """Check all questions together, as one session that asks them all over the same neighbour: losses must compose."""
    loss = PrivacyLoss.nothing()
    pairs: list[tuple[Measured, Measured]] = []
    for question in replayed:
        if question.price is not None and question.worst is not None:
            loss = loss + question.price.loss
            pairs += _measured(question)
    if not pairs:
        return
    claimed, delta = claim_of(loss)
    report.session, report.session_claim = lower_bound(pairs, float(min(delta, Fraction(1, 2)))), claimed
    if report.session.epsilon > claimed:
        sentence = f"samples show epsilon of at least {report.session.epsilon:.3f}, claimed is {claimed:.3f}"
        report.other_findings.append(Finding(None, f"a session with all questions: {sentence}", SENSITIVITY))


def _check_ledger(report: AuditReport, entries: Iterable[Entry]) -> None:
    """Check every charge by composing its recorded events with a program that shares no code with dpsql (`verify_export`)."""
    audit = added_up(entries, None)
    added = f"{audit.last} entries and {len(audit.charges)} charges add up, {len(audit.open)} of them cut short"
    of_accountants = f"; {audit.accountants('dataset')}" if audit.charges else ""
    report.ledger = f"{added}{of_accountants}"
    report.other_findings += [Finding(None, f"ledger: {problem}", LEDGER) for problem in audit.problems]
