"""Sequences of queries: answers from stored releases equal noiseless measurements, prices equal EXPLAIN's, and every outcome is
an answer or a refusal."""

import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from fuzz.conftest import examples
from support.gates import NoiselessGate

from dpsql.engine.duckdb.engine import open_duckdb
from dpsql.errors.exceptions import REGISTER, Error, Refusal
from dpsql.ledger import open_ledger
from dpsql.noise.perturb import NoisyAnswer
from dpsql.policy import load_policy
from dpsql.pricing.pricing import PricedBlock
from dpsql.reuse.derive import derive
from dpsql.reuse.disjoint_sums import DisjointSums
from dpsql.reuse.lookup import StoredReleases
from dpsql.reuse.record import Stored, description, opened, packed
from dpsql.reuse.store import ReleaseNote, StoredRelease, open_releases
from dpsql.session.session import Session

TYPES = {
    "pid": pa.int64(), "kind": pa.string(), "word": pa.string(), "x": pa.int64(), "w": pa.int64(), "y": pa.float64(),
    "z": pa.float64(), "flag": pa.bool_(), "day": pa.date32(), "seen": pa.timestamp("us"),
}  # fmt: skip
KINDS, WORDS = ("p", "q", "r"), ("a", "b", "")
ODD = (0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, 5e-324)
DAYS = [date(2024, 1, 1) + timedelta(days=number) for number in range(12)]


class RandomTable:
    """A table `events` of a few people, its policy, and the public table `kinds`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"table {seed}")
        self.by_rows = self.random.random() < 0.4
        self.columns = self._columns()
        people = self.random.choice((0, 8, 20, 20))
        self.rows = [self._row(person) for person in range(people) for _ in range(self.random.randint(0, 6))]

    def policy(self, seed: int) -> dict[str, Any]:
        """Return the policy as the owner's file would state it."""
        bounds: dict[str, Any] = {"max_rows": 1 if self.by_rows else 6}
        if not self.by_rows:
            for name in self.random.sample(
                ("max_groups", "max_rows_per_group", "max_values"), self.random.choice((0, 0, 1))
            ):
                bounds[name] = self.random.choice((1, 2))
        kinds = {"kind": {"type": "text"}, "weight": {"type": "integer", "lower": 0, "upper": 9}}
        return {
            "dataset": f"sessions{seed}", "source": "duckdb:///none.duckdb", "data_version": "first",
            "privacy_unit": "row" if self.by_rows else {"table": "events", "column": "pid"},
            "budget": {"epsilon": 10000, "delta": "0.0001", "accountant": self.random.choice(("pure", "zcdp"))},
            "per_query": {"epsilon": 1, "delta": "0.0000001"}, "ledger": "sqlite:///ledger.db",
            "tables": {
                "events": {**bounds, "columns": self.columns},
                "kinds": {"public": True, "unique": [["kind"]], "columns": kinds},
            },
        }  # fmt: skip

    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return a database with both tables."""
        connection = duckdb.connect(config={"threads": 1})
        rows = pa.Table.from_pylist(self.rows, pa.schema(list(TYPES.items())))
        connection.register("given", rows)
        connection.execute("CREATE TABLE events AS SELECT * FROM given")
        connection.execute(
            "CREATE TABLE kinds AS SELECT * FROM (VALUES ('p', 1), ('q', NULL), (NULL, 7)) AS t(kind, weight)"
        )
        return connection

    def _columns(self) -> dict[str, dict[str, Any]]:
        bounds: dict[str, tuple[Any, Any]] = {"x": (0, 9), "w": (-4, 12), "y": (-5, 5), "z": (0, 100)}
        columns: dict[str, dict[str, Any]] = {"pid": {"type": "integer", "nullable": False}}
        for name, type_ in (("x", "integer"), ("w", "integer"), ("y", "real"), ("z", "real")):
            columns[name] = {"type": type_}
            if self.random.random() < 0.8:
                columns[name] |= dict(zip(("lower", "upper"), bounds[name], strict=True))
        columns |= {
            "kind": {"type": "text", "domain": list(KINDS)},
            "word": {"type": "text"},
            "flag": {"type": "boolean"},
        }
        columns["day"] = {"type": "date", "lower": "2024-01-01", "upper": "2024-01-12"}
        columns["seen"] = {"type": "timestamp", "lower": "2024-01-01 00:00:00", "upper": "2024-01-03 00:00:00"}
        for name in columns:
            columns[name].setdefault("nullable", self.random.random() < 0.5)
        return columns

    def _row(self, person: int) -> dict[str, Any]:
        values: dict[str, Any] = {
            "pid": person, "kind": self.random.choice(KINDS), "word": self.random.choice(WORDS), "x": self.random.randint(-1, 12),
            "w": self.random.randint(-6, 14), "flag": self.random.random() < 0.5, "day": self.random.choice(DAYS),
            "seen": datetime(2024, 1, 1) + timedelta(hours=self.random.randint(0, 60)),
            **{name: self.random.choice((*ODD, *range(-6, 12), 2.5, 99.75)) for name in ("y", "z")},
        }  # fmt: skip
        missing = [name for name, column in self.columns.items() if column["nullable"] and self.random.random() < 0.15]
        return values | dict.fromkeys(missing)


class SessionQuestions:
    """A generator of queries over few keys, conditions and aggregates, so that stored releases often answer later queries."""

    def __init__(self, source: random.Random, columns: dict[str, dict[str, Any]]) -> None:
        self.random = source
        self.columns = columns
        self.source = self._choice("events", "events", "events JOIN kinds USING (kind)")
        keys = ("kind", "flag", "day", "word", "x > 4", "coalesce(kind, 'none')", "date_trunc('day', seen)")
        self.keys = self.random.sample(keys, 3)
        self.conditions = [
            *self.random.sample(CONDITIONS, 4), f"{self.keys[0]} IS NOT NULL", "kind = 'p'", "kind IN ('p', 'q')",
        ]  # fmt: skip
        self.values = [self._value() for _ in range(3)]
        self.aggregates = ["COUNT(*)", *(self._aggregate() for _ in range(8))]

    def question(self) -> str:
        """Return a query with many aggregates and several keys, or one with fewer of both."""
        rich = self.random.random() < 0.4
        keys = self.random.sample(self.keys, self._choice(1, 2, 3) if rich else self._choice(0, 1, 1))
        aggregates = self.random.sample(self.aggregates, self._choice(3, 5) if rich else 1)
        if not rich and "[" not in aggregates[0] and self.random.random() < 0.2:
            aggregates = [f"{aggregates[0]} FILTER (WHERE {self.random.choice(self.conditions)})"]
        conditions = self.random.sample(self.conditions, self._choice(0, 0, 0, 1) if rich else self._choice(0, 0, 1, 2))
        items = [f"{text} AS c{number}" for number, text in enumerate([*keys, *aggregates])]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {', '.join(items)} FROM {self.source}{where}{f' GROUP BY {chr(44).join(keys)}' if keys else ''}"

    def setting(self) -> str:
        """Return a statement that changes an option."""
        name, values = self.random.choice(SETTINGS)
        return f"SET dp.{name} = '{self.random.choice(values)}'"

    def _choice(self, *of: Any) -> Any:
        return self.random.choice(of)

    def _value(self) -> str:
        column = self._choice("x", "w", "y", "z")
        low, high = self._choice((0, 5), (-2, 3), (1, 9))
        bare = "lower" in self.columns[column] and self.random.random() < 0.7
        return column if bare else f"clamp({column}, {low}, {high})"

    def _aggregate(self) -> str:
        value, other = self.random.choice(self.values), self.random.choice(self.values)
        column = self.random.choice(list(self.columns))
        pair = self._choice("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_COUNT", "REGR_AVGX")
        return str(self._choice(
            f"COUNT({value})", f"COUNT({column})", f"SUM({value})", f"AVG({value})", f"VAR_POP({value})", f"STDDEV_SAMP({value})",
            f"{pair}({value}, {other})", f"{pair}({value}, {other})", f"COUNT(DISTINCT {column})", f"SUM(DISTINCT {value})",
            f"MEDIAN({value})", f"MAX({value})", "MODE(kind)", f"QUANTILE_CONT({value}, [0.25, 0.5])",
        ))  # fmt: skip


CONDITIONS: Sequence[str] = (
    "x > 3", "w IS NOT NULL", "y <= 2.5", "flag", "day >= DATE '2024-01-05'", "word <> ''", "z > 1 OR x = 2", "x IS NULL",
)  # fmt: skip
SETTINGS: Sequence[tuple[str, Sequence[str]]] = (
    ("mechanism", ("auto", "laplace", "gaussian")), ("max_groups", ("none", "1", "2")), ("max_rows_per_group", ("none", "1")),
    ("max_total", ("none", "6")), ("max_count", ("none", "2")), ("max_values", ("none", "1", "2")), ("epsilon", ("1", "0.5")),
    ("workload", ("off", "on", "running")), ("quantile_bars", ("off", "on")), ("target_error", ("none", "none", "40")),
)  # fmt: skip


QUESTIONS, STATEMENTS = 40, 30
Numbers = dict[str, list[Any]]
"""The numbers of each term, in the order of the groups."""


@contextmanager
def session_over(table: RandomTable, seed: int, folder: Path) -> Iterator[Session]:
    """Yield a noiseless session in which keys of a single privacy unit appear."""
    path = folder / f"sessions{seed}.yaml"
    path.write_text(json.dumps(table.policy(seed)))
    policy = load_policy(path)
    policy = replace(policy, ledger=f"sqlite:///{folder}/sessions{seed}.db")
    ledger = open_ledger(policy.ledger_url(), policy.dataset, create=True)
    session = Session(
        policy, open_duckdb(policy, table.connection()), ledger, open_releases(ledger), gate=NoiselessGate(1)
    )
    with session:
        yield session


class Measurements:
    """All blocks that sessions measured, and the sums from which derived answers are computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blocks: list[tuple[str, str, PricedBlock, NoisyAnswer]] = []
        self.sums: list[DisjointSums] = []
        self.sql = ""
        keep, released = StoredReleases.keep, DisjointSums.released

        def noted_keep(releases: Any, planned: Any, index: int, noisy: NoisyAnswer, **facts: Any) -> Any:
            family = releases._names(planned, index, facts["version"]).family
            self.blocks.append((self.sql, family, planned.price.blocks[index], noisy))
            return keep(releases, planned, index, noisy, **facts)

        def noted_released(sums: DisjointSums, confidence: float) -> Any:
            self.sums.append(sums)
            return released(sums, confidence)

        monkeypatch.setattr(StoredReleases, "keep", noted_keep)
        monkeypatch.setattr(DisjointSums, "released", noted_released)

    def derived(self, priced: PricedBlock, stored: Stored) -> Numbers | None:
        """Return the numbers of a block as derived from a stored release, or None if it cannot answer the block."""
        if derive(priced, stored, 0.95) is None:
            return None
        sums = self.sums[-1]
        numbers = {name: _weighted(parts) for name, parts in sums.sums.items()}
        return numbers | {number.name: np.asarray(number.values).tolist() for number in sums.numbers}


def _weighted(parts: list[tuple[Fraction, Any]]) -> list[float]:
    return list(sum(float(weight) * np.asarray(term.values, dtype=float) for weight, term in parts))


def measured(noisy: NoisyAnswer) -> Numbers:
    """Return the numbers of a measured block."""
    return {term.name: np.asarray(term.values).tolist() for term in noisy.terms}


def as_stored(priced: PricedBlock, noisy: NoisyAnswer) -> Stored:
    """Return a measured block in the form in which the store returns it."""
    facts = {"receipt": "r", "loss": "", "analyst": "owner", **description(priced)}
    stored = opened(StoredRelease(ReleaseNote("key", "", "", json.loads(json.dumps(facts))), packed(noisy)))
    assert stored is not None
    return stored


def agree(wanted: list[Any], numbers: list[Any], chosen: bool) -> bool:
    """Return whether numbers equal the measured ones: choices exactly, sums up to the grids on which reals are rounded."""
    if chosen or len(wanted) != len(numbers):
        return wanted == numbers
    return bool(np.allclose(np.asarray(numbers, dtype=float), np.asarray(wanted, dtype=float), rtol=3e-4, atol=3e-4))


def test_what_follows_from_a_stored_release_is_what_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block of a session is derived from every one of its releases that can answer it."""
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    answered = 0
    for seed, (name, source) in enumerate(examples("sessions/derived", 4)):
        measurements, table = Measurements(monkeypatch), RandomTable(source.randrange(2**32))
        with session_over(table, seed, tmp_path) as session:
            _measure(session, SessionQuestions(source, table.columns), measurements)
        stored = [as_stored(priced, noisy) for _, _, priced, noisy in measurements.blocks]
        for sql, family, priced, noisy in measurements.blocks:
            wanted = measured(noisy)
            counted = {term.name for term in priced.block.terms}
            for release, (other, its_family, _, _) in zip(stored, measurements.blocks, strict=True):
                numbers = measurements.derived(priced, release) if its_family == family else None
                for term, values in (numbers or {}).items():
                    if term in wanted:  # quantile ends derived from counts of each value differ
                        assert agree(wanted[term], values, term not in counted), (name, other, sql, term)
                answered += numbers is not None and other != sql
        monkeypatch.undo()
        monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    assert answered > 20


def _measure(session: Session, questions: SessionQuestions, measurements: Measurements) -> None:
    session.execute("SET dp.reuse = off")
    for _ in range(QUESTIONS):
        measurements.sql = questions.setting() if questions.random.random() < 0.15 else questions.question()
        try:
            session.execute(measurements.sql)
        except Refusal as refusal:
            assert not refusal.charged, refusal.text()


def test_sessions_end_in_answers_and_refusals_at_the_price_of_explain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    seen: Counter[str] = Counter()
    for seed, (name, source) in enumerate(examples("sessions/prices", 4)):
        table = RandomTable(source.randrange(2**32))
        with session_over(table, seed, tmp_path) as session:
            session.execute("SET dp.reuse = derive")
            questions = SessionQuestions(source, table.columns)
            for _ in range(STATEMENTS):
                seen[_asked(session, questions, source, name)] += 1
    assert min(seen["measured"], seen["from the store"]) > 5, seen


def _asked(session: Session, questions: SessionQuestions, source: random.Random, name: str) -> str:
    """Run one query or set one option, check the outcome, and return it."""
    if source.random() < 0.2:
        _set(session, questions)
        return "set"
    sql = questions.question()
    before = spent(session)
    try:
        plan = session.explain(sql)
    except Error as refusal:
        with pytest.raises(Refusal) as again:
            session.execute(sql)
        assert again.value.slug == refusal.slug in REGISTER and spent(session) == before, (name, sql, refusal.text())
        return "refused"
    release = session.execute(sql)
    charged = {key: amount - before.get(key, 0) for key, amount in spent(session).items()}
    assert release.receipt.loss == plan.charged, (name, sql)
    assert {key: amount for key, amount in charged.items() if amount} == {
        key: amount for key, amount in session.planner.accountant.units(plan.charged).items() if amount
    }, (name, sql)
    assert [(column.name, column.type.value) for column in release.columns] == list(plan.columns), (name, sql)
    return "from the store" if release.reused else "measured"


def _set(session: Session, questions: SessionQuestions) -> None:
    try:
        session.execute(questions.setting())
    except Refusal as refusal:
        assert refusal.slug in ("clip_rows", "values_rows"), refusal.text()


def spent(session: Session) -> dict[str, int]:
    """Return what the dataset's account has spent, in ledger units."""
    account = session.ledger.accounts().get("dataset")
    return {} if account is None else dict(account.spent)
