"""Properties (laws) that must hold for any input, and the sessions on which they are checked.

`Trial.check` sends one text to sessions over a database, its neighbour and the empty database, and to a noiseless session whose
answer is compared with plain DuckDB's. `Broken` reports a violated law.
"""

import io
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
from sqlglot import exp
from support.gates import NoiselessGate

from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.errors.exceptions import REGISTER, Error, Fault, InternalError, Refusal
from dpsql.frontends.admin.expected_errors import OpenLedger
from dpsql.frontends.pgwire.questions import OIDS
from dpsql.frontends.pgwire.rows import CopyOptions, ResultField, Rows, copy_messages, described
from dpsql.frontends.rendering.formats import BINARY_FORMATS, TEXT_FORMATS, write_binary, write_text
from dpsql.noise.perturb import Gate
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Block
from dpsql.policy import Policy
from dpsql.release.release import Release
from dpsql.reuse.store import ReleaseNote, StoredRelease
from dpsql.session.session import Session
from dpsql.sql.parse import parse
from dpsql_audit.observation import RecordedEngine, RecordingGate
from fuzz.databases import UNITS, connect, database

Row = tuple[Any, ...]
ENGINE_WORDS = re.compile(
    r"duckdb|sqlglot|pyarrow|traceback|\b(binder|catalog|parser|conversion|out of range|invalid input|internal) error|\x1b\[|"
    r"0x[0-9a-f]{8}|recursionerror|object at |<class",
    re.IGNORECASE,
)
OUR_FAULTS = {"unexpected", "engine_failed", "sandbox_broken", "sandbox_time", "noise_plan", "noise_answer"}
"""Errors that no text from an analyst may cause."""


class Broken(AssertionError):
    """A law was violated."""


class _Forgetful:
    """A store of releases that never finds one."""

    is_local, has_earlier = True, False

    def get(self, key: str) -> None:
        return None

    def nearest(self, key: str, block: str) -> tuple[None, list[StoredRelease]]:
        return None, []

    def of_block(self, family: str, start: bool = False) -> list[StoredRelease]:
        return []

    def put(self, key: str, payload: bytes, facts: dict[str, Any], **more: Any) -> StoredRelease:
        return StoredRelease(ReleaseNote(key, "", "", facts), payload)


@dataclass
class Seen:
    """Everything that one run shows except its numbers: the refusal's text or the columns, the charges, the engine's SQL."""

    outcome: str
    columns: tuple[tuple[str, bool], ...]
    charges: list[dict[str, int]]
    asked: list[str]
    error: Error | None = None
    release: Release | None = None
    private: bool = False


class Place:
    """One session over one database; its ledger accepts and records every charge."""

    def __init__(self, policy: Policy, connection: duckdb.DuckDBPyConnection, gate: Gate) -> None:
        self.connection = connection
        self.engine: Any = RecordedEngine(DuckDBEngine(connection, policy, "fuzz", owned=True))
        self.ledger: Any = OpenLedger()
        self.gate = gate
        store: Any = _Forgetful()
        self.session = Session(policy, self.engine, self.ledger, store, gate=gate)
        self.options = self.session.options = self.session.options.with_value("reuse", "off", policy)

    def ask(self, sql: str, parameters: Any = None) -> Seen:
        """Execute a text and return everything observable. Exceptions other than dpsql's own propagate."""
        self.engine.queries, self.ledger.charges = [], []
        if isinstance(self.gate, RecordingGate):
            self.gate.blocks = []
        try:
            release = self.session.execute(sql, parameters)
        except Error as error:
            return Seen(error.text(), (), self.ledger.charges, self.engine.queries, error, private=self._private)
        columns = tuple((column.name, column.noisy) for column in release.columns)
        return Seen(
            "answered", columns, self.ledger.charges, self.engine.queries, release=release, private=self._private
        )

    @property
    def _private(self) -> bool:
        return isinstance(self.gate, RecordingGate) and any(not block.public for block in self.gate.blocks)


def generous(policy: Policy, most_public_groups: int) -> Policy:
    """Return `policy` with a budget that is never used up, time limits that no busy machine reaches, and at most
    `most_public_groups` groups in its grids of public keys."""
    budget = replace(policy.budget, epsilon=Fraction(10**6), delta=Fraction(1, 10**3), accountant="pure")
    per_query = replace(
        policy.per_query, epsilon=Fraction(100), max_epsilon=None, delta=Fraction(1, 10**9), timeout_seconds=600,
        max_public_groups=most_public_groups,
    )  # fmt: skip
    return replace(policy, budget=budget, per_query=per_query, session=None)


class Trial:
    """Sessions of one policy: over a database, over it without one privacy unit, and over the empty one; and a noiseless one
    without grids of public keys, so that its groups are those of plain GROUP BY."""

    def __init__(self, policy: Policy) -> None:
        self.policy = generous(policy, 2_000)
        here = connect(database(policy))
        others = [connect(database(policy, UNITS[:-1])), connect(database(policy, ()))]
        self.places = [Place(self.policy, connection, RecordingGate()) for connection in (here, *others)]
        self.exact = Place(generous(policy, 1), here, NoiselessGate(1))
        self.exact.options = self.exact.options.with_value("shrinkage", "off", policy)  # it draws no noise
        self.compared = 0

    def check(self, sql: str, parameters: Any = None, settings: Iterable[str] = ()) -> Seen:
        """Check every law on one text, and return what the first session showed. Raises Broken."""
        seen = []
        for place in self.places:
            place.session.options = place.options
            for setting in settings:
                settled = place.ask(setting)
                law_of_outcome(setting, settled)
            seen.append(place.ask(sql, parameters))
        first = seen[0]
        law_of_outcome(sql, first)
        law_of_neighbours(sql, seen)
        law_of_doors(self.places[0].session, sql, parameters, first)
        if first.release is not None:
            law_of_showing(first.release)
        if first.release is not None and first.charges and not settings:
            self.exact.session.options = self.exact.options
            told = self.exact.ask(sql, parameters)
            law_of_outcome(sql, told)
            if told.release is not None and parameters is None:
                self.compared += law_of_values(sql, self.exact, told.release)
        return first

    def look(self, sql: str) -> str:
        """Send one text once, and return the slug of its refusal, or "answered"."""
        seen = self.places[0].ask(sql)
        law_of_outcome(sql, seen)
        return "answered" if seen.error is None else seen.error.slug


def law_of_outcome(sql: object, seen: Seen) -> None:
    """Check that a refusal is registered, states correctly whether anything was charged, and has a position inside the text."""
    error = seen.error
    if error is None:
        return
    _hold(error.slug in REGISTER, f"slug {error.slug} is not in the register", sql)
    _hold(error.slug not in OUR_FAULTS and not isinstance(error, InternalError), error.text(), sql)
    _hold(isinstance(error, (Refusal, Fault)) or not error.charged, error.text(), sql)
    text = error.text()
    _hold(bool(error.charged) == bool(seen.charges), f"charged {seen.charges}, but {text}", sql)
    _hold(error.charged or text.endswith("\nnothing was charged"), text, sql)
    _hold(error.charged or not seen.asked, "data was touched", sql)
    own = f"{error.message}\n{error.hint}"
    quoted = str(sql).lower()
    found = ENGINE_WORDS.search(own)
    _hold(found is None or found[0].lower() in quoted, f"engine words: {own}", sql)
    _hold(all(c.isprintable() or c == "\n" for c in own), f"control characters: {own!r}", sql)
    _hold(len(text) < 4_000, f"a refusal of {len(text)} characters", sql)
    if error.position is not None:
        _hold(isinstance(sql, str) and 1 <= error.position <= len(sql) + 1, f"caret at {error.position}", sql)
    text.encode("utf-8")


def law_of_neighbours(sql: str, seen: list[Seen]) -> None:
    """Check that only released numbers distinguish a database, its neighbour and the empty database."""
    shown = []
    for one in seen:
        # After the charge the remainder works on released numbers only, so its output may differ.
        outcome = "charged" if one.charges else one.outcome
        # A later stage reads released results: private keys, which the gate of these sessions releases exactly.
        asked = one.asked[:1] if one.private else one.asked
        shown.append((outcome, one.columns if outcome == "answered" else (), one.charges, asked))
    _hold(shown[0] == shown[1] == shown[2], f"told apart: {shown}", sql)


def law_of_doors(session: Session, sql: str, parameters: Any, seen: Seen) -> None:
    """Check that `explain` and `describe` agree with the execution: the same refusal, price and columns."""
    told: list[str] = []
    for look in (session.describe, session.explain):
        try:
            found: Any = look(sql, parameters)
        except Error as error:
            law_of_outcome(sql, Seen(error.text(), (), [], [], error))
            if not (look == session.explain and error.slug == "not_a_query"):
                told.append(error.text())
            continue
        if look == session.describe and seen.release is not None:
            names = tuple(column.name for column in found)
            _hold(names == tuple(name for name, _ in seen.columns), f"described as {names}", sql)
        if look == session.explain:
            assert found.rows() is not None and "\n".join(found.lines).encode()
        if look == session.explain and seen.charges:
            rehearsed = {d: a for d, a in session.planner.accountant.units(found.charged).items() if a}
            _hold(rehearsed == {d: a for d, a in seen.charges[0].items() if a}, f"price {rehearsed}", sql)
    looked_at = (
        not isinstance(sql, str) or _SETTING.match(sql) is None
    )  # options are inspected only where they stand alone
    if seen.error is not None and not seen.error.charged and seen.error.slug not in _LATER and looked_at:
        _hold(seen.outcome in told, f"executed: {seen.outcome}; looked at: {told}", sql)
    if seen.error is None and seen.charges:
        _hold(not told, f"answered, and refused by EXPLAIN or DESCRIBE: {told}", sql)


def law_of_showing(release: Release) -> None:
    """Check that every door can show an answer in each of its formats: an exception here would come after the charge."""
    for form in TEXT_FORMATS:
        write_text(release, io.StringIO(), form, bars=True)
    for form in BINARY_FORMATS:
        write_binary(release.to_arrow(bars=True), io.BytesIO(), form)
    assert repr(release) and release._repr_html_().encode()
    release.to_pandas(), release.to_polars()
    if not release.columns:
        return
    fields = [ResultField(column.name, OIDS[column.type]) for column in release.columns]
    for wire_format in (0, 1):
        formats = (wire_format,) * len(fields)
        sent = [described(fields, formats), *Rows(tuple(fields), release.table).messages(None, formats)]
        assert all(isinstance(piece, bytes) for piece in sent)
    for options in (CopyOptions(), CopyOptions("csv", ",", "", header=True), CopyOptions("binary")):
        assert all(isinstance(piece, bytes) for piece in copy_messages(Rows(tuple(fields), release.table), options))


_SETTING = re.compile(r"\s*(RE)?SET\b", re.IGNORECASE)
_LATER = {
    "option_unknown", "option_value", "option_limit", "unknown_table", "sandbox_value", "sandbox_rows",
}  # fmt: skip
"""Refusals of SET, SHOW and DESCRIBE, and of values in public tables, which occur only in execution."""


# --- values -----------------------------------------------------------------------------------------------------------


def law_of_values(sql: str, place: Place, release: Release) -> int:
    """Check that the rows equal plain DuckDB's as multisets if DuckDB answers the same text. Return 1 if they were compared,
    otherwise 0.

    Aggregates of no rows differ (a noisy sum of nothing is a number), so the reference replaces their NULL by a number, and an
    answer that depends on the choice of this number is not compared.
    """
    statement = parse(sql)
    tree = statement.query
    if tree is None or statement.options or any(map(_ambiguous, tree.walk())):
        return 0
    planned = place.session.plan(statement)
    if any(key.values is not None for one in planned.price.blocks for key in one.block.keys):
        return 0
    if not all(map(_is_exact, planned.plan.blocks)):
        return 0
    try:
        found = [
            place.connection.execute(text).fetchall() for text in (sql, _nothing_is(tree, 0), _nothing_is(tree, 1))
        ]
    except (duckdb.Error, RuntimeError):
        return 0
    if any(isinstance(value, (tuple, list, dict)) for row in found[0] for value in row):
        return 0
    theirs, first, second = ([tuple(map(plain, row)) for row in rows] for rows in found)
    if _differ(theirs, first) or _differ(first, second):
        return 0
    missing, left = _unmatched([tuple(map(plain, row)) for row in release.rows()], theirs)
    if any(join.side for join in tree.find_all(exp.Join)):
        # Keys are private here, so groups of public rows without any unit are not shown.
        missing = [
            row for row in missing if any(value != 0 for value in row if isinstance(value, (int, float, Decimal)))
        ]
    _hold(not missing and not left, f"ours {left[:5]} of {len(release)}, DuckDB's {missing[:5]} of {len(theirs)}", sql)
    return 1


def _is_exact(block: Block) -> bool:
    """Return whether the noiseless session chooses the engine's value: integers and booleans, of which each is a cell, and no
    quantile that interpolates between two values (tests/answers/test_quantiles compares those)."""
    chosen = [measure for measure in block.measures if measure.aggregate in _CHOSEN]
    return all(
        measure.aggregate == "quantile_disc" and measure.arguments[0].facts.type in (Type.INTEGER, Type.BOOLEAN)
        for measure in chosen
    )


_CHOSEN = {"quantile_cont", "quantile_disc", "mode", "arg_max", "arg_min"}


def _unmatched(ours: list[Row], theirs: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of `theirs` without a match in `ours`, and the unmatched rows of `ours`."""
    left, missing = list(ours), []
    for row in theirs:
        at = next((at for at, other in enumerate(left) if _equal(other, row)), None)
        if at is None:
            missing.append(row)
        else:
            del left[at]
    return missing, left


def _differ(one: list[Row], other: list[Row]) -> bool:
    return any(_unmatched(one, other))


def _nothing_is(tree: exp.Query, which: int) -> str:
    """Return the query with each NULL result of an aggregate replaced by a value; `which` selects one of two."""
    tree = tree.copy()
    for node in list(tree.find_all(exp.AggFunc)):
        inner = node.parent if isinstance(node.parent, exp.Filter) else node
        if isinstance(node, _EMPTY) and not isinstance(inner.parent, (exp.Window, exp.WithinGroup, exp.IgnoreNulls)):
            logical = isinstance(node, (exp.LogicalAnd, exp.LogicalOr))
            value = exp.Boolean(this=bool(which)) if logical else exp.Literal.number((-777, 123456)[which])
            inner.replace(exp.Coalesce(this=inner.copy(), expressions=[value]))
    return tree.sql("duckdb")


_EMPTY = (
    exp.Min, exp.Max, exp.Quantile, exp.PercentileDisc, exp.Sum, exp.Avg, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.CovarPop, exp.CovarSamp,
    exp.Corr, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2, exp.RegrAvgx, exp.RegrAvgy, exp.CountIf, exp.LogicalAnd, exp.LogicalOr,
)  # fmt: skip
_NOT_COMPARED = (
    exp.Limit, exp.Offset, exp.Fetch, exp.Placeholder, exp.Parameter, exp.CurrentDate, exp.CurrentTimestamp, exp.RowNumber, exp.Lag,
    exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Ntile, exp.First, exp.Last, exp.AnyValue, exp.ArgMax,
    exp.ArgMin, exp.Mode, exp.ApproxQuantile, exp.WithinGroup, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist,
)  # fmt: skip
"""Nodes that depend on the clock or on parameters, or that have several correct results if rows tie."""


def _ambiguous(node: exp.Expr) -> bool:
    """Return whether the node has several correct results, or another meaning in the engine, such as infinity for a division by
    zero."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower().startswith("dp_")
    if isinstance(node, exp.WindowSpec):
        return node.text("kind").upper() == "ROWS"
    if isinstance(node, exp.Div):
        by = node.expression.unnest()
        return not (isinstance(by, exp.Nullif) or (isinstance(by, exp.Literal) and float(by.name) != 0))
    if isinstance(node, exp.Literal) and not node.is_string:
        return abs(float(node.name)) >= 1e9  # the grid of such wide numbers is coarser than the comparison
    if isinstance(node, (exp.Ln, exp.Log, exp.Sqrt)):
        return not isinstance(node.this, exp.Greatest)
    return isinstance(node, _NOT_COMPARED)


def plain(value: Any) -> Any:
    """Return numbers as floats, non-finite ones as None, NULL and booleans unchanged, and any other value as text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float, Decimal)):
        number = float(value)
        return number if math.isfinite(number) else None
    return str(value).removesuffix(" 00:00:00")


def _equal(ours: Row, theirs: Row) -> bool:
    """Return whether the rows are equal up to rounding."""
    for mine, its in zip(ours, theirs, strict=True):
        if isinstance(mine, float) and isinstance(its, float):
            if not math.isclose(mine, its, rel_tol=1e-6, abs_tol=1e-6):
                return False
        elif mine != its:
            return False
    return True


def _hold(law: bool, what: str, sql: object) -> None:
    if not law:
        raise Broken(f"{what}\n--- of: {sql!r:.2000}")
