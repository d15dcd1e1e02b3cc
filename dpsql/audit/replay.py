"""Deterministic replay at the noise gate: one question on many pairs of neighbouring databases.

With the gate's outputs frozen, nothing that an analyst sees may differ between neighbours, and what came to the gate may
differ by no more than was claimed and charged (docs/privacy.md 4 to 7). A difference is a certain violation: no chance is
involved. No difference proves nothing by itself, so the largest share of each claim that any pair reached is reported.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from dpsql.audit.distances import Verdict, compare
from dpsql.audit.observation import Observed, ObservedSession
from dpsql.audit.questions import Question
from dpsql.audit.synthetic import PROFILES, Data, Profile, Synthetic, as_sql, audited, load, sharpened
from dpsql.engine.registry import open_engine
from dpsql.plan.plan import results_read
from dpsql.policy import Policy
from dpsql.pricing.pricing import Price

MOST_SHARPENED = 60
LEAST_PAIRS = 4
"""What every question is tried on, whatever time is left."""


@dataclass
class Finding:
    """What broke: the question, what differed, which line of docs/privacy.md it breaks, and the two databases as SQL."""

    question: Question
    problem: str
    section: str
    left: list[str] = field(default_factory=list)
    right: list[str] = field(default_factory=list)


@dataclass
class Replayed:
    """One question after its replay. `reached`: for each block and term the largest share of its claimed L1 distance;
    `worst`: the two runs that reached most; `outcome`: "answered" or the refusal."""

    question: Question
    outcome: str
    price: Price | None = None
    pairs: int = 0
    reached: dict[tuple[int, str], Fraction] = field(default_factory=dict)
    worst: tuple[Observed, Observed] | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def tightness(self) -> float:
        """The smallest share over all terms: how near the pairs came to every claim."""
        return float(min(self.reached.values(), default=Fraction(1)))


class Replay:
    """Databases of one policy, loaded once each: nobody, the crowd, and the crowd with one unit more."""

    def __init__(self, policy: Policy, seed: int = 0) -> None:
        """`policy`: the owner's; its source is not opened."""
        self.policy = audited(policy)
        self.synthetic = Synthetic(self.policy, seed)
        self._connections: dict[ObservedSession, duckdb.DuckDBPyConnection] = {}
        self.nobody = self._session()
        self.crowd = self._session(self.synthetic.crowd)
        self.scratch = self._session()
        self._loaded: dict[tuple[str, bool], ObservedSession] = {}

    def _session(self, *parts: Data) -> ObservedSession:
        connection = duckdb.connect(config={"threads": 1})
        load(connection, self.synthetic.database(*parts))
        planner = self.nobody.session.planner if hasattr(self, "nobody") else None
        session = ObservedSession(self.policy, open_engine(self.policy, connection), planner=planner)
        self._connections[session] = connection
        return session

    def with_unit(self, profile: Profile, crowded: bool) -> ObservedSession:
        """The crowd, or nobody, with one unit of a fixed profile more."""
        key = (profile.name, crowded)
        if key not in self._loaded:
            unit = self.synthetic.unit(profile)
            self._loaded[key] = self._session(*((self.synthetic.crowd, unit) if crowded else (unit,)))
        return self._loaded[key]

    def replay(self, question: Question, until: float) -> Replayed:
        """All fixed pairs, then units made for this question, until `time.monotonic()` is `until`."""
        crowd = self._observe(question, self.crowd)
        done = Replayed(question, crowd.outcome)
        if crowd.outcome != "answered":
            nobody = self._observe(question, self.nobody)
            if nobody.outcome != crowd.outcome:
                done.findings.append(Finding(question, f"refused as {crowd.outcome!r} and {nobody.outcome!r}", "7"))
            return done
        done.price = self._price(question)
        nobody = self._observe(question, self.nobody)
        best: tuple[Fraction, Profile] = (Fraction(-1), PROFILES[0])
        for profile in PROFILES:
            for crowded, before in ((True, crowd), (False, nobody)):
                if time.monotonic() > until and done.pairs >= LEAST_PAIRS:
                    return done
                reached = self._judge(
                    done, before, self._observe(question, self.with_unit(profile, crowded)), profile, crowded
                )
                best = max(best, (reached, profile), key=lambda found: found[0])
        self._sharpen(done, crowd, best, until)
        return done

    def _sharpen(self, done: Replayed, crowd: Observed, best: tuple[Fraction, Profile], until: float) -> None:
        """Change one thing of the best unit at a time, and keep what moves the question further."""
        share, profile = best
        for changed in list(sharpened(profile, self._candidates(done.question)))[:MOST_SHARPENED]:
            if done.findings or done.tightness >= 1 or time.monotonic() > until:
                return
            merged = replace(changed, values={**profile.values, **changed.values})
            tables = self.synthetic.database(self.synthetic.crowd, self.synthetic.unit(merged))
            load(self._connections[self.scratch], tables)
            reached = self._judge(done, crowd, self._observe(done.question, self.scratch), merged, True)
            if reached > share:
                share, profile = reached, merged

    def _candidates(self, question: Question) -> dict[str, list[Any]]:
        """For each column that the question names: values around those it is compared with, and its bounds."""
        tree = sqlglot.parse_one(question.sql, read="duckdb")
        named = {column.name.lower() for column in tree.find_all(exp.Column)}
        numbers = [float(one.this) for one in tree.find_all(exp.Literal) if not one.is_string]
        texts = [str(one.this) for one in tree.find_all(exp.Literal) if one.is_string]
        found: dict[str, list[Any]] = {}
        for name in self.synthetic.protected:
            for column in self.policy.tables[name].columns.values():
                if column.name.lower() not in named or column.name in self.policy.tables[name].foreign_keys:
                    continue
                values: list[Any] = []
                if column.type in ("integer", "real"):
                    kind = int if column.type == "integer" else float
                    ends = [end for end in (column.lower, column.upper) if end is not None]
                    values = [kind(v) for end in ends for v in (end,)]  # type: ignore[arg-type]
                    values += [kind(n + step) for n in numbers if abs(n) < 2**53 for step in (-1, 0, 1)]
                elif column.type == "text":
                    values = [*texts, *(v for v in column.domain or () if v is not None)]
                elif column.type == "boolean":
                    values = [True, False]
                found[f"{name}.{column.name}"] = values[:8]
        return found

    def _observe(self, question: Question, session: ObservedSession) -> Observed:
        with session.options(question.settings):
            return session.observe(question.sql)

    def _price(self, question: Question) -> Price:
        session = self.nobody.session
        with self.nobody.options(question.settings):
            return session.planner.plan(session.planner.parse(question.sql, None), session.options, True).price

    def _judge(self, done: Replayed, left: Observed, right: Observed, profile: Profile, crowded: bool) -> Fraction:
        """Everything that must hold of one pair; the smallest share of a claim that it reached."""
        assert done.price is not None
        done.pairs += 1
        left, right = same_stages(done.price, left, right)
        verdict = same_outcome(left, right)
        if not verdict.problems:
            compared = compare(done.price, left.blocks, right.blocks)
            verdict.problems += compared.problems
            before = sum(done.reached.values())
            for term, share in compared.reached.items():
                done.reached[term] = max(share, done.reached.get(term, Fraction(0)))
            if done.worst is None or sum(done.reached.values()) > before:
                done.worst = (left, right)
            verdict.reached = compared.reached
        if verdict.problems and not done.findings:
            parts = [self.synthetic.crowd] if crowded else []
            sides = (self.synthetic.database(*parts), self.synthetic.database(*parts, self.synthetic.unit(profile)))
            texts = [as_sql(self.policy, side) for side in sides]
            problem = f"{profile.name}: {'; '.join(verdict.problems)}"
            done.findings.append(Finding(done.question, problem, section_of(verdict.problems[0]), *texts))
        return min(verdict.reached.values(), default=Fraction(0))


def section_of(problem: str) -> str:
    """The section of docs/privacy.md that a problem breaks."""
    if "charge" in problem or "outcome" in problem or "engine SQL" in problem:
        return "7"
    return "5" if "key" in problem or "selection" in problem or "delta" in problem else "4"


def same_stages(price: Price, left: Observed, right: Observed) -> tuple[Observed, Observed]:
    """The two runs up to the stage from which on they measure different things.

    Later stages are compared for equal releases of the earlier ones. The gate answers equal numbers for equal groups, so
    only private keys that one side lacks are released differently; that this is rare enough is what their delta says.
    """
    blocks = zip(price.blocks, left.blocks, right.blocks, strict=False)
    differ = [number for number, (_, here, there) in enumerate(blocks) if here.keys != there.keys]
    reading = [number for number, priced in enumerate(price.blocks) if results_read(priced.block)]
    later = [number for number in reading if differ and number > differ[0]]
    if not later:
        return left, right
    cut = [
        replace(side, blocks=side.blocks[: later[0]], engine_sql=side.engine_sql[: later[0]]) for side in (left, right)
    ]
    return cut[0], cut[1]


def same_outcome(left: Observed, right: Observed) -> Verdict:
    """What an analyst sees besides noisy numbers must be the same on both sides."""
    verdict = Verdict()
    verdict.expect(left.outcome == right.outcome == "answered", f"outcome {left.outcome!r} / {right.outcome!r}")
    verdict.expect(left.columns == right.columns, "columns differ")
    verdict.expect(left.engine_sql == right.engine_sql, "engine SQL differs")
    verdict.expect(left.charges == right.charges, f"charges {left.charges} / {right.charges}")
    verdict.expect(len(left.blocks) == len(right.blocks), "number of blocks differs")
    public = True
    for here, there in zip(left.blocks, right.blocks, strict=False):
        same_noise = here.noises == there.noises and list(here.noises) == list(there.noises) and here.laws == there.laws
        verdict.expect(same_noise, "noise differs")
        verdict.expect(here.selection == there.selection, "partition selection differs")
        verdict.expect(here.public == there.public == (here.selection is None), "public keys and their list")
        public &= here.public
        if here.public:
            verdict.expect(here.keys == there.keys, "public keys differ")
        else:
            common = set(here.keys) & set(there.keys)
            orders = [[key for key in side.keys if key in common] for side in (here, there)]
            verdict.expect(orders[0] == orders[1], "order of private keys differs")
    if public:
        verdict.expect(left.answer == right.answer, "answers differ for equal noisy numbers")
    return verdict


def read_statements(texts: Sequence[str]) -> list[Question]:
    """Questions of an owner's file, each with the SET statements before it."""
    settings: list[str] = []
    questions = []
    for text in texts:
        if text.strip().upper().startswith("SET "):
            settings.append(text.strip()[4:].rstrip(";"))
        elif text.strip():
            questions.append(Question(text.strip().rstrip(";"), tuple(settings), "the owner's file"))
    return questions
