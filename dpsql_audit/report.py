"""The report of an audit: JSON for programs, one self-contained HTML page for people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NotRequired, TypedDict

from dpsql.media.text import Markup, joined, markup, source_markup
from dpsql_audit.findings import Finding
from dpsql_audit.pictures import bounds_picture, tightness_picture
from dpsql_audit.questions import SEEN_ONLY, Question
from dpsql_audit.run import AuditReport, QuestionReport
from dpsql_audit.served import ServedBound, ServedCheck

STYLE = source_markup("""body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd;
vertical-align:top}td.n,td.bars{white-space:nowrap}td.n{text-align:right;font-variant-numeric:tabular-nums}code{font-size:.85em;white-space:pre-wrap}
.ok{color:#176117}.bad{color:#a11212}.bar{background:#eee;width:6rem;margin-right:.4rem;height:.7rem;display:inline-block}
.bar i{display:block;height:100%;background:#3b6ea5}figure{display:inline-block;margin:1rem 1rem 1rem 0;max-width:100%}
svg{max-width:100%;height:auto;font:11px system-ui,sans-serif;fill:#555}figcaption{font-size:.85em}.lead{font-size:1.1em}
pre{background:#f6f6f6;padding:.6rem;overflow:auto;font-size:.8em}""")


class FindingObject(TypedDict):
    """What broke: the `rule` of docs/privacy.md and its `section`, the question if it is about one, and statements that make the
    two databases (`left`, `right`)."""

    sql: NotRequired[str]
    settings: NotRequired[list[str]]
    problem: str
    section: str
    rule: str
    left: list[str]
    right: list[str]


class QuestionObject(TypedDict):
    """One question: what was compared, how near the largest distance came to the claim (`tightness`), and what samples show."""

    sql: str
    settings: list[str]
    origin: str
    outcome: str
    price: str
    pairs: int
    tightness: float
    claimed_epsilon: float
    lower_bound: dict[str, Any] | None
    terms: list[dict[str, Any]]
    findings: list[FindingObject]


class WireObject(TypedDict):
    """The audit of a server: questions whose messages were compared, and bounds from its answers."""

    compared: int
    words: str
    bounds: list[dict[str, Any]]
    findings: list[FindingObject]


class AuditObject(TypedDict):
    """Everything that the report says (`audit.json`). `holds`: nothing was found; `false_alarm`: the most probable that sound
    software is reported as broken; `limits`: what an audit cannot see."""

    dataset: str
    unit: str
    holds: bool
    interrupted: bool
    not_tried: int
    seconds: float
    false_alarm: float
    questions: list[QuestionObject]
    laws: list[dict[str, Any]]
    session: dict[str, Any] | None
    source: dict[str, Any]
    wire: WireObject | None
    charges: str
    ledger: str
    findings: list[FindingObject]
    limits: list[str]


def as_json(report: AuditReport) -> AuditObject:
    """Everything that the report says, as plain values."""
    return {
        "dataset": report.dataset,
        "unit": report.unit,
        "holds": report.holds,
        "interrupted": report.interrupted,
        "not_tried": report.not_tried,
        "seconds": round(report.seconds, 1),
        "false_alarm": report.false_alarm,
        "questions": [_question(question) for question in report.questions],
        "laws": [asdict(law) for law in report.laws],
        "session": None
        if report.session is None
        else {**asdict(report.session), "claimed_epsilon": report.session_claim},
        "source": {"comparisons": report.source.comparisons, "words": report.source.words},
        "wire": None if report.wire is None else _wire(report.wire),
        "charges": report.charges,
        "ledger": report.ledger,
        "findings": list(map(_finding_facts, report.findings)),
        "limits": list(LIMITS),
    }


def _wire(check: ServedCheck) -> WireObject:
    bounds = [
        {"sql": b.question.sql, "settings": list(b.question.settings), "claimed_epsilon": b.claimed, **asdict(b.bound)}
        for b in check.bounds
    ]
    return {
        "compared": check.compared,
        "words": check.words,
        "bounds": bounds,
        "findings": list(map(_finding_facts, check.findings)),
    }


def _finding_facts(finding: Finding) -> FindingObject:
    broken = FindingObject(
        problem=finding.problem, section=finding.section, rule=finding.rule.sentence, left=finding.left, right=finding.right
    )  # fmt: skip
    if finding.question is not None:
        broken["sql"], broken["settings"] = finding.question.sql, list(finding.question.settings)
    return broken


def _question(question: QuestionReport) -> QuestionObject:
    return {
        "sql": question.question.sql,
        "settings": list(question.question.settings),
        "origin": question.question.origin,
        "outcome": question.outcome,
        "price": question.price,
        "pairs": question.pairs,
        "tightness": question.tightness,
        "claimed_epsilon": question.claimed_epsilon,
        "lower_bound": None if question.bound is None else asdict(question.bound),
        "terms": [{"term": name, "claimed_l1": claim, "share_reached": share} for name, claim, share in question.terms],
        "findings": list(map(_finding_facts, question.findings)),
    }


LIMITS = (
    "The proof is the argument in docs/privacy.md; the audit checks that the installed software does what the argument says. "
    "It finds violations, it cannot show that there are none.",
    "It sees the questions and the pairs of databases that are listed, and no others. A tightness far below 1 says that no pair "
    "came near the claim, so that less was tested there.",
    "Samples refute an epsilon, they never confirm one; a delta below about 0.001 is out of their reach and is checked by "
    "computation.",
    "Time and memory are not looked at, and how the tables of a PostgreSQL server are read only in a database that --scratch "
    "names. Comparisons with a threshold (dp.threshold) are not replayed. Neither is it looked at whether the policy is right: "
    "the privacy unit, the bounds that are meant as knowledge about the world, and who holds which password.",
)


def as_text(report: AuditReport) -> str:
    """Return a summary for a terminal."""
    answered = [question for question in report.questions if question.pairs]
    lines = [f"{report.dataset}: {_verdict(report)}"]
    for finding in report.findings:
        lines.append(f"finding: {finding.words}")
        lines += [] if finding.question is None else [f"  {' '.join(finding.question.sql.split())}"]
        lines.append(f'  broken is: "{finding.rule.sentence}"')
    pairs = sum(question.pairs for question in answered)
    loose = [q for q in answered if q.tightness < 0.5 and q.question.kind not in SEEN_ONLY]
    lines.append(
        f"{len(answered)} questions on {pairs} pairs of neighbouring databases, {len(report.laws)} laws of noise, "
        f"{report.seconds:.0f} s; {report.refused} questions were refused"
    )
    if report.not_tried:
        lines.append(f"{report.not_tried} questions were not tried before the end (--seconds)")
    lines += [f"pairs too weak (tightness {q.tightness:.2f}): {' '.join(q.question.sql.split())}" for q in loose]
    if report.session is not None:
        lines.append(
            f"a session with all of them: epsilon at least {report.session.epsilon:.2f} by samples, "
            f"claimed {report.session_claim:.2f}"
        )
    lines += [] if report.wire is None else [f"wire: {report.wire.words}", *map(_bound_words, report.wire.bounds)]
    lines += [f"source: {report.source.words}", f"charges: {report.charges}", f"ledger: {report.ledger}"]
    lines.append(f"a false alarm has a probability of at most {report.false_alarm:.0e}")
    return "\n".join(lines) + "\n"


def _bound_words(served: ServedBound) -> str:
    """Return one line about a lower bound from a server's answers."""
    question = (
        f"{' '.join(served.question.sql.split())}{''.join(f' ({setting})' for setting in served.question.settings)}"
    )
    return (
        f"  epsilon at least {served.bound.epsilon:.2f} by a server's answers, claimed {served.claimed:.2f}: {question}"
    )


def _verdict(report: AuditReport) -> str:
    count = len(report.findings)
    words = "nothing was found" if report.holds else f"{count} finding{'' if count == 1 else 's'}"
    return f"{words}, interrupted before its end" if report.interrupted else words


def as_html(report: AuditReport) -> Markup:
    """Return one page of HTML without anything from elsewhere."""
    laws = joined(
        markup(
            "<tr><td>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td><td>{}</td></tr>",
            law.mechanism, f"{law.scale:.6g}", f"{law.distance:.5f}", f"{law.allowed:.5f}", law.problem or "as requested",
        )
        for law in report.laws
    )  # fmt: skip
    return markup(
        _PAGE,
        dataset=report.dataset,
        style=STYLE,
        lead=_in_plain_words(report),
        kind="ok" if report.holds else "bad",
        verdict=_verdict(report).capitalize(),
        how=_how(report),
        once_in=_once_in(report.false_alarm),
        findings=joined(map(_finding, report.findings)),
        pictures=_pictures(report),
        legend=LEGEND,
        session=_session(report),
        rows=joined(map(_row, report.questions)),
        laws=laws,
        source=report.source.words,
        served=_served(report),
        charges=report.charges.capitalize(),
        ledger=report.ledger,
        limits=joined(markup("<li>{}</li>", limit) for limit in LIMITS),
        seconds=f"{report.seconds:.0f}",
    )


_PAGE = """<!doctype html><html lang=en><meta charset=utf-8><title>Audit of {dataset}</title>
<style>{style}</style>
<h1>Audit of {dataset}</h1>
<p class=lead>{lead}</p><p class="{kind}"><strong>{verdict}.</strong></p>
<p>{how}</p>
<p>If the software is sound, this audit says otherwise by chance at most once in {once_in} audits.</p>
{findings}{pictures}
<h2>Questions</h2>{legend}{session}
<table><tr><th>question</th><th>outcome</th><th>pairs</th><th>tightness</th><th>claimed epsilon</th>
<th>at least, by samples</th></tr>
{rows}</table>
<h2>Noise</h2><p>The installed noise was drawn at exact zero and compared with the law of the requested scale.</p>
<table><tr><th>mechanism</th><th>scale</th><th>distance</th><th>allowed</th><th>result</th></tr>{laws}</table>
<h2>Source</h2><p>{source}.</p>
{served}<h2>Charges</h2><p>{charges}.</p>
<h2>Ledger</h2><p>{ledger}.</p>
<h2>What this cannot see</h2><ul>{limits}</ul>
<p>It took {seconds} seconds.</p></html>
"""


def _session(report: AuditReport) -> Markup:
    if report.session is None:
        return joined(())
    return markup(
        "<p>A session that asks all of these questions: samples show an epsilon of at least {}; claimed is {} at delta {}.</p>",
        f"{report.session.epsilon:.2f}", f"{report.session_claim:.2f}", f"{report.session.delta:.2g}",
    )  # fmt: skip


def _served(report: AuditReport) -> Markup:
    if report.wire is None:
        return joined(())
    bounds = joined(markup("<li>{}</li>", _bound_words(bound).strip()) for bound in report.wire.bounds)
    return markup("<h2>Server</h2><p>{}.</p><ul>{}</ul>\n", report.wire.words.capitalize(), bounds)


def _pictures(report: AuditReport) -> Markup:
    counted = [question for question in report.questions if question.pairs and question.question.kind not in SEEN_ONLY]
    bounds = [
        (question.claimed_epsilon, question.bound.epsilon, " ".join(question.question.sql.split())[:90])
        for question in counted
        if question.bound is not None
    ]
    tightness = [tightness_picture([question.tightness for question in counted])] if counted else []
    return joined([*tightness, *([bounds_picture(bounds)] if bounds else [])])


def _in_plain_words(report: AuditReport) -> str:
    """Return the result for somebody who answers for the data and knows no formula."""
    promised = f"dpsql promises that its answers hardly depend on whether {_unit(report)} is in the data."
    if not report.holds:
        return (
            f"{promised} This audit shows that the promise is broken: what is found below tells more about {_unit(report)} than "
            "was promised or paid for. Let nobody ask questions until it is mended (SECURITY.md says where to report it)."
        )
    compared = [question for question in report.questions if question.pairs]
    if not compared:
        return f"{promised} This audit ended before it tried that: it says nothing."
    pairs = sum(question.pairs for question in compared)
    return (
        f"{promised} This audit looked for an answer that breaks the promise and found none, in {len(compared)} questions on "
        f"{pairs:,} pairs of databases. That is a test and no proof: {_left_out(report)}what it cannot see is at the end."
    )


def _once_in(chance: float) -> str:
    """Return the number of audits of which one may err by chance, to one digit, rounded down."""
    count = math.floor(1 / chance) if chance > 0 else 10**9
    place = 10 ** (len(str(count)) - 1)
    return f"{count // place * place:,}"


def _left_out(report: AuditReport) -> str:
    """Return how many questions there was no time for, with a comma behind."""
    return f"for {report.not_tried} further questions the time was too short, and " if report.not_tried else ""


def _unit(report: AuditReport) -> str:
    return "one row" if report.unit.startswith("row") else f"one person ({report.unit.split(',')[0]})"


def _how(report: AuditReport) -> str:
    """Return what was done."""
    return (
        f"The databases were made from the policy file; the protected data were not opened. The two of a pair differ in "
        f"{_unit(report)} alone. Of every question it was measured how far its exact numbers lie apart on the two, and all else "
        "that an analyst sees was compared. The noise was compared with what was ordered, and what was paid was added up."
    )


LEGEND = markup(
    "<p>An epsilon says how much answers may tell: whatever somebody thought likely about one person, after the answer the odds "
    "are at most e<sup>epsilon</sup> times as high or as low (at 1: 2.7 times). <em>Claimed</em> is the epsilon for which the "
    "question was charged. <em>Tightness</em> is how near the pairs of databases came to what was claimed: 1 is all of it, above "
    "1 would be a finding, and far below 1 less was tested. <em>At least, by samples</em> is the epsilon that the noisy answers "
    "show by themselves; above the claim it would be a finding.</p>"
)


def _row(question: QuestionReport) -> Markup:
    sql = markup("<code>{}</code>", _statement(question.question))
    if not question.pairs:
        return markup("<tr><td>{}</td><td colspan=5>{}</td></tr>", sql, question.outcome.splitlines()[0])
    return markup(
        "<tr><td>{sql}</td><td>{mark}</td><td class=n>{pairs}</td>"
        '<td class=bars><span class=bar><i style="width:{width}%"></i></span> {tightness}</td>'
        "<td class=n>{claimed}</td><td class=n>{bound}</td></tr>",
        sql=sql,
        mark=markup("<span class=bad>finding</span>" if question.findings else "<span class=ok>holds</span>"),
        pairs=question.pairs,
        width=f"{100 * min(1.0, question.tightness):.0f}",
        tightness=f"{question.tightness:.2f}",
        claimed=f"{question.claimed_epsilon:.3f}",
        bound="" if question.bound is None else f"{question.bound.epsilon:.2f}",
    )


def _finding(finding: Finding) -> Markup:
    """Return a finding, the rule that it breaks, its question, and its databases: what one of them has alone first."""
    parts = (
        ("what the first database has alone", alone(finding.left, finding.right) if finding.right else []),
        ("what the second database has alone", alone(finding.right, finding.left) if finding.left else []),
        ("the whole first database" if finding.right else "the database", finding.left),
        ("the whole second database", finding.right),
    )
    sides = joined(
        markup("<details><summary>{}</summary><pre>{}</pre></details>", name, "\n".join(side))
        for name, side in parts
        if side
    )
    question = "" if finding.question is None else markup("<pre>{}</pre>", _statement(finding.question))
    rule = markup("<p>Broken is: \u201c{}\u201d (docs/privacy.md {})</p>", finding.rule.sentence, finding.section)
    return markup("<p class=bad>{}</p>{}{}{}", finding.problem, rule, question, sides)


def alone(statements: Sequence[str], of_neighbour: Sequence[str]) -> list[str]:
    """Return the statements that `of_neighbour` lacks, as often as it lacks them."""
    left = Counter(of_neighbour)
    missing = []
    for statement in statements:
        left[statement] -= 1
        if left[statement] < 0:
            missing.append(statement)
    return missing


def _statement(question: Question) -> str:
    """Return the question behind the settings that are made before it."""
    return f"{''.join(f'SET {setting}; ' for setting in question.settings)}{question.sql}"
