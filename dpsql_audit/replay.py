"""Deterministic replay at the noise gate: one question on many pairs of neighbouring databases.

With the gate's outputs frozen, nothing that an analyst sees may differ between neighbours, and what came to the gate may
differ by no more than was claimed and charged (docs/privacy.md 4 to 7). A difference is a certain violation: no chance is
involved. No difference proves nothing by itself, so the largest share of each claim that any pair reached is reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import duckdb
from sqlglot import exp

from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Error
from dpsql.plan.plan import results_read
from dpsql.planning.planner import Planner
from dpsql.policy import Policy
from dpsql.pricing.pricing import Price
from dpsql.privacy.loss import Neighbours
from dpsql.sql.lexer import DIALECT, as_piece
from dpsql.sql.parse import parse
from dpsql.sql.parser import parse_tokens
from dpsql_audit.distances import Verdict, compare, covers
from dpsql_audit.findings import CHARGES, KEPT_ROWS, PROMISE, Finding, rule_of
from dpsql_audit.observation import NOTICES, Observed, ObservedSession
from dpsql_audit.questions import Question
from dpsql_audit.synthetic import PROFILES, Data, Profile, Synthetic, as_sql, load, sharpened

MOST_SHARPENED = 60
WATCHED = "not replayed: it is compared with a threshold, and a run of comparisons holds a secret from one to the next"
ORDERS = ("", "another")
"""Orders in which the rows of one database are stored."""
ORDERS_AFTER = 3
"""Number of profiles after which the two orders of rows are compared."""
TIMES = 3
"""Number of times EXPLAIN is repeated before a difference counts as a finding."""
SHARPEST = {"max_total": "turn spread"} | dict.fromkeys(("count", "units", "sum", "public keys"), "beyond")
"""The profile to try first, by kind of question: a bound on a total is hardest to respect where values have both signs, and the
core of all questions where one unit has too many rows with values beyond the bounds."""
ODD = next(profile for profile in PROFILES if profile.default == "odd")


Pair = tuple[list[str], list[str]]
"""SQL statements that create the two databases of a pair."""


@dataclass
class Replayed:
    """One question after its replay.

    `reached`: the largest share of the claimed L1 distance that any pair reached, by block and term. `worst`: the two runs that
    reached the most; `worst_databases` returns their databases as SQL. `outcome`: "answered", or the slug of the refusal.
    """

    question: Question
    outcome: str
    price: Price | None = None
    pairs: int = 0
    reached: dict[tuple[int, str], Fraction] = field(default_factory=dict)
    worst: tuple[Observed, Observed] | None = None
    worst_databases: Callable[[], Pair] | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def tightness(self) -> float:
        """Return the smallest share over all terms: every claim was approached at least this closely."""
        return float(min(self.reached.values(), default=Fraction(1)))


class Replay:
    """Databases of one policy, each loaded once: without any unit, with the crowd, and with the crowd and one more unit.

    Three of them plan separately (no unit, the crowd, the crowd with odd values), so that a plan that depends on data would
    differ between them; the others share the plans of the crowd.
    """

    def __init__(self, policy: Policy, seed: int = 0) -> None:
        """`policy`: the owner's policy; its source is not opened."""
        self.original, self.policy = policy, policy.over_memory()
        self.synthetic = Synthetic(self.policy, seed)
        self._connections: dict[ObservedSession, duckdb.DuckDBPyConnection] = {}
        self.nobody = self._session()
        self.crowd = self._session(self.synthetic.crowd)
        self.scratch = self._session(planner=self.crowd.session.planner)
        self.many = (self.synthetic.crowd, self.synthetic.many())
        self.orders = [self._session(*self.many, planner=self.crowd.session.planner, order=order) for order in ORDERS]
        self._loaded = {
            (ODD.name, True): self._session(self.synthetic.crowd, self.synthetic.unit(ODD)),
        }

    def _session(self, *parts: Data, planner: Planner | None = None, order: str = "") -> ObservedSession:
        connection = duckdb.connect(config={"threads": 1})
        load(connection, self.synthetic.database(*parts, order=order))
        session = ObservedSession(self.policy, open_engine(self.policy, connection), planner=planner)
        self._connections[session] = connection
        return session

    def with_unit(self, profile: Profile, crowded: bool) -> ObservedSession:
        """Return a session over the crowd (or, without `crowded`, over no other unit) and one unit of a fixed profile."""
        key = (profile.name, crowded)
        if key not in self._loaded:
            unit = self.synthetic.unit(profile)
            parts = (self.synthetic.crowd, unit) if crowded else (unit,)
            self._loaded[key] = self._session(*parts, planner=self.crowd.session.planner)
        return self._loaded[key]

    def replay(self, question: Question, until: float) -> Replayed:
        """Run the comparisons of `steps` until `time.monotonic()` reaches `until`, and return the result."""
        steps = self.steps(question)
        done = next(steps)
        while time.monotonic() < until and next(steps, None) is not None:
            pass
        return done

    def steps(self, question: Question) -> Iterator[Replayed]:
        """Yield the result for a question after each further comparison, always as the same object.

        The comparisons are, in this order: refusals and EXPLAIN over different data, pairs with units of the fixed profiles, and
        pairs with units adapted to this question.
        """
        if self._is_watched(question):
            yield Replayed(question, WATCHED)
            return
        crowd, nobody = self._observe(question, self.crowd), self._observe(question, self.nobody)
        done = Replayed(question, crowd.outcome)
        if crowd.outcome != "answered" or nobody.outcome != "answered":
            self._compare_refusals(done, crowd, nobody)
            yield done
            return
        done.price = self._price(question)
        self._compare_explained(done)
        best: tuple[Fraction, Profile] = (Fraction(-1), PROFILES[0])
        before: tuple[Observed, Profile] | None = None
        profiles = sorted(PROFILES, key=lambda profile: profile.default != SHARPEST.get(done.question.kind))
        for crowded, base in ((True, crowd), (False, nobody)):
            for number, profile in enumerate(profiles):
                if crowded and number == ORDERS_AFTER:
                    self._compare_orders(done)
                    yield done
                after = self._observe(question, self.with_unit(profile, crowded))
                share = self._judge(
                    done, base, after, profile, (self._parts(None, crowded), self._parts(profile, crowded))
                )
                best = max(best, (share, profile), key=lambda pair: pair[0])
                yield done
                if crowded and before is not None and self.policy.neighbours is Neighbours.CHANGE_ONE:
                    parts = self._parts(before[1], crowded), self._parts(profile, crowded)
                    self._judge(done, before[0], after, profile, parts)
                    yield done
                before = (after, profile) if crowded else None
        yield from self._sharpen(done, crowd, best)

    def _parts(self, profile: Profile | None, crowded: bool) -> list[Data]:
        """Return the rows of the crowd (if `crowded`) and those of one unit of a profile (None: no such unit)."""
        unit = [] if profile is None else [self.synthetic.unit(profile)]
        return [self.synthetic.crowd, *unit] if crowded else unit

    def _as_sql(self, *sides: Sequence[Data]) -> Pair:
        """Return the SQL statements that create two databases from these parts."""
        left, right = (as_sql(self.policy, self.synthetic.database(*parts)) for parts in sides)
        return left, right

    def catalog_findings(self) -> list[Finding]:
        """Check that catalog, options and budget are answered from policy and ledger alone, equally over any data."""
        findings = []
        for sql in (
            "SHOW TABLES",
            *(f'DESCRIBE "{name}"' for name in self.policy.tables),
            "SHOW dp.budget",
            "SHOW dp.all",
        ):
            runs = [session.observe(sql) for session in (self.nobody, self.crowd, self.with_unit(ODD, True))]
            if (
                any(run.engine_sql or run.charges for run in runs)
                or len({(run.outcome, run.answer) for run in runs}) > 1
            ):
                sides = self._as_sql([], self._parts(ODD, True))
                findings.append(Finding(Question(sql), f"what {sql} says depends on the data", PROMISE, *sides))
        return findings

    def _compare_refusals(self, done: Replayed, crowd: Observed, nobody: Observed) -> None:
        """Check that a refusal depends on the question alone and so is the same over any data."""
        odd = self._observe(done.question, self.with_unit(ODD, True)).outcome
        if crowd.outcome.startswith("XX000"):
            databases = as_sql(self.policy, self.synthetic.database(self.synthetic.crowd))
            problem = f"dpsql contradicts itself: {crowd.outcome}"
            rule = CHARGES if "price_disagrees" in crowd.outcome else PROMISE
            done.findings.append(Finding(done.question, problem, rule, databases))
        elif len({crowd.outcome, nobody.outcome, odd}) > 1:
            other = (nobody.outcome, []) if crowd.outcome != nobody.outcome else (odd, self._parts(ODD, True))
            words = " and ".join(map(repr, sorted({crowd.outcome, other[0]})))
            sides = self._as_sql(self._parts(None, True), other[1])
            done.findings.append(Finding(done.question, f"outcomes differ with the data: {words}", PROMISE, *sides))

    def _compare_explained(self, done: Replayed) -> None:
        """Check that EXPLAIN depends on the question alone.

        A difference counts only if it recurs: one caused by data does, while one caused by a machine that stalled, so that
        the computation of an expected error bar timed out, does not.
        """
        for _ in range(TIMES):
            said = set()
            for session in (self.nobody, self.with_unit(ODD, True)):
                with session.options(done.question.settings):
                    said.add(repr(session.explained(done.question)))
            if len(said) == 1:
                return
        sides = self._as_sql([], self._parts(ODD, True))
        done.findings.append(Finding(done.question, "what EXPLAIN says differs with the data", PROMISE, *sides))

    def _compare_orders(self, done: Replayed) -> None:
        """Compare runs over the same rows in two orders. A table is a set of rows, so both are the same database, and nothing
        may differ at the gate."""
        left, right = (self._observe(done.question, session) for session in self.orders)
        verdict = same_outcome(left, right)
        verdict.expect(left.blocks == right.blocks, "exact numbers differ")
        if verdict.problems:
            problem = f"the same rows in another order: {'; '.join(verdict.problems)}"
            texts = (as_sql(self.policy, self.synthetic.database(*self.many, order=order)) for order in ORDERS)
            done.findings.append(Finding(done.question, problem, KEPT_ROWS, *texts))

    def _sharpen(self, done: Replayed, crowd: Observed, best: tuple[Fraction, Profile]) -> Iterator[Replayed]:
        """Change one property of the best unit at a time, and keep each change that moves the answer further."""
        share, profile = best
        for changed in list(sharpened(profile, self._candidates(done.question)))[:MOST_SHARPENED]:
            if done.findings or done.tightness >= 1:
                return
            merged = replace(changed, values={**profile.values, **changed.values})
            tables = self.synthetic.database(self.synthetic.crowd, self.synthetic.unit(merged))
            load(self._connections[self.scratch], tables)
            parts = self._parts(None, True), self._parts(merged, True)
            reached = self._judge(done, crowd, self._observe(done.question, self.scratch), merged, parts)
            if reached > share:
                share, profile = reached, merged
            yield done

    def _candidates(self, question: Question) -> dict[str, list[Any]]:
        """Return, for each column named in the question, its bounds and values around those that it is compared with."""
        trees = [
            tree
            for tree in parse_tokens(as_piece(question.sql).tokens(DIALECT), question.sql, DIALECT)
            if tree is not None
        ]
        named = {column.name.lower() for tree in trees for column in tree.find_all(exp.Column)}
        literals = [literal for tree in trees for literal in tree.find_all(exp.Literal)]
        numbers = [float(literal.this) for literal in literals if not literal.is_string]
        texts = [str(literal.this) for literal in literals if literal.is_string]
        candidates: dict[str, list[Any]] = {}
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
                candidates[f"{name}.{column.name}"] = list(dict.fromkeys(values))[:12]
        return candidates

    def _is_watched(self, question: Question) -> bool:
        try:
            with self.nobody.options(question.settings):
                return self.nobody.session.options.threshold is not None
        except Error:  # a setting was refused, which is checked like any other refusal
            return False

    def _observe(self, question: Question, session: ObservedSession) -> Observed:
        try:
            with session.options(question.settings):
                return session.ask(question)
        except Error as error:  # a setting was refused
            return Observed(error.text(), error.charged, [], (), b"", [], [], [])

    def _price(self, question: Question) -> Price:
        with self.nobody.options(question.settings):
            return self.nobody.planned(question).price

    def _judge(
        self, done: Replayed, left: Observed, right: Observed, profile: Profile, parts: tuple[list[Data], list[Data]]
    ) -> Fraction:
        """Check everything that must hold of one pair of databases, and return the smallest share of a claim that it reached."""
        assert done.price is not None
        done.pairs += 1
        left, right = same_stages(done.price, left, right)
        verdict = same_outcome(left, right)
        charge = {name: sum(part.get(name, 0) for part in right.charges) for part in right.charges for name in part}
        verdict.expect(not right.engine_sql or covers(charge, done.price), f"charge {charge} is below the price")
        if not verdict.problems:
            compared = compare(done.price, left.blocks, right.blocks)
            verdict.problems += compared.problems
            before = sum(done.reached.values())
            for term, share in compared.reached.items():
                done.reached[term] = max(share, done.reached.get(term, Fraction(0)))
            if done.worst is None or sum(done.reached.values()) > before:
                done.worst, done.worst_databases = (left, right), partial(self._as_sql, *parts)
            verdict.reached = compared.reached
        if verdict.problems and not done.findings:
            problem = f"{profile.name}: {'; '.join(verdict.problems)}"
            done.findings.append(Finding(done.question, problem, rule_of(verdict.problems[0]), *self._as_sql(*parts)))
        return min(verdict.reached.values(), default=Fraction(0))


def same_stages(price: Price, left: Observed, right: Observed) -> tuple[Observed, Observed]:
    """Return the two runs up to the first stage in which they measure different groups or terms.

    Later stages are compared for equal releases of the earlier ones. The gate answers equal numbers for equal groups, so
    only private keys that one side lacks are released differently; that this is rare enough is what their delta says.
    """
    blocks = zip(price.blocks, left.blocks, right.blocks, strict=False)
    differ = [
        number for number, (_, left_block, right_block) in enumerate(blocks) if left_block.keys != right_block.keys
    ]
    if not differ:
        return left, right
    later = [number for number, priced in enumerate(price.blocks) if number > differ[0] and results_read(priced.block)]
    if not later:
        return left, right
    chosen_bound = [
        replace(
            side,
            blocks=side.blocks[: later[0]],
            engine_sql=side.engine_sql[: later[0]],
            said=tuple(part for number, part in enumerate(side.said) if number != NOTICES),  # some count released rows
        )
        for side in (left, right)
    ]
    return chosen_bound[0], chosen_bound[1]


def same_outcome(left: Observed, right: Observed) -> Verdict:
    """Check that what an analyst sees besides noisy numbers is the same on both sides."""
    verdict = Verdict()
    verdict.expect(left.outcome == right.outcome == "answered", f"outcome {left.outcome!r} / {right.outcome!r}")
    verdict.expect(left.columns == right.columns, "columns differ")
    verdict.expect(left.said == right.said, f"notices and receipts differ: {left.said} / {right.said}")
    verdict.expect(left.engine_sql == right.engine_sql, "engine SQL differs")
    verdict.expect(left.charges == right.charges, f"charges {left.charges} / {right.charges}")
    verdict.expect(len(left.blocks) == len(right.blocks), "number of blocks differs")
    public = True
    for left_block, right_block in zip(left.blocks, right.blocks, strict=False):
        same_noise = (
            left_block.noises == right_block.noises
            and list(left_block.noises) == list(right_block.noises)
            and left_block.laws == right_block.laws
        )
        verdict.expect(same_noise, "noise differs")
        verdict.expect(left_block.selection == right_block.selection, "partition selection differs")
        verdict.expect(
            left_block.public == right_block.public == (left_block.selection is None), "public keys and their list"
        )
        public &= left_block.public
        if left_block.public:
            verdict.expect(left_block.keys == right_block.keys, "public keys differ")
        else:
            common = set(left_block.keys) & set(right_block.keys)
            orders = [[key for key in side.keys if key in common] for side in (left_block, right_block)]
            verdict.expect(orders[0] == orders[1], "order of private keys differs")
    if public:
        verdict.expect(left.answer == right.answer, "answers differ for equal noisy numbers")
    return verdict


def read_statements(texts: Sequence[str]) -> list[Question]:
    """Return the questions of an owner's file, each with the SET statements before it that no RESET has undone. Statements that
    ask nothing (SHOW, BEGIN and the like) are skipped; a text that cannot be parsed is refused when it is asked."""
    settings: dict[str, str] = {}
    questions = []
    for text in filter(None, (text.strip().rstrip(";").rstrip() for text in texts)):
        try:
            statement = parse(text)
        except Error:
            questions.append(Question(text, tuple(settings.values()), "the owner's file"))
            continue
        name = statement.name.lower().removeprefix("dp.")
        if statement.kind == "set":
            settings.pop(name, None)
            settings[name] = f"{statement.name} = {_quoted(statement.value)}"
        elif statement.kind == "reset":
            settings = {} if name == "all" else {other: setting for other, setting in settings.items() if other != name}
        elif statement.query is not None:
            questions.append(Question(text, tuple(settings.values()), "the owner's file"))
    return questions


def _quoted(value: str) -> str:
    """Return the value of an option, quoted for SET."""
    return value if value.replace(".", "", 1).isdecimal() else "'" + value.replace("'", "''") + "'"
