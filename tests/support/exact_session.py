"""A session at the limit of a huge epsilon, and the comparison of its answers with plain DuckDB's.

Everything runs as for an analyst (plan, price, ledger, engine, remainder, release) except for the draws at the noise gate, which
are replaced by their limits as epsilon grows: noise 0, and private keys that appear from two people on. If each term has a share
of epsilon that makes the Laplace scale t grid steps, real noise differs from 0 with probability 2 / (1 + exp(1 / t)); even the
largest epsilon that an accountant accepts would leave sums noisy.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from dpsql.engine.contract import Engine
from dpsql.engine.duckdb.engine import DuckDBEngine, open_duckdb
from dpsql.ledger import open_ledger
from dpsql.noise.perturb import Gate
from dpsql.policy import Policy, load_policy
from dpsql.release.release import Release
from dpsql.reuse.store import open_releases
from dpsql.session.session import Session
from support.gates import NoiselessGate
from support.places import POLICIES

Row = tuple[Any, ...]


def exact_session(
    policy: Policy | str,
    connection: duckdb.DuckDBPyConnection | None,
    ledger: Path,
    gate: Gate | None = None,
    analyst: str | None = None,
    opened: Callable[..., Engine] = open_duckdb,
) -> Session:
    """Return a session without noise on `connection`. `policy` may be the name of a file in schemas/policies. `opened` opens a
    policy's engine over a connection; without a connection, the session uses the policy's own source."""
    known = load_policy(POLICIES / f"{policy}.yaml") if isinstance(policy, str) else policy
    budget = replace(known.budget, epsilon=Fraction(10**6), delta=Fraction(1, 10**4), accountant="pure")
    per_query = replace(known.per_query, epsilon=Fraction(1000), max_epsilon=None, delta=Fraction(1, 10**9))
    analysts = {name: replace(limit, epsilon=budget.epsilon) for name, limit in known.analysts.items()}
    generous = replace(known, budget=budget, per_query=per_query, ledger=f"sqlite:///{ledger}", analysts=analysts)
    book = open_ledger(generous.ledger_url(), generous.dataset, create=True)
    engine = opened(generous, *(() if connection is None else (connection,)))
    if connection is not None and isinstance(engine, DuckDBEngine):
        settings = engine._sources._settings  # to ask for them again at each question takes a quarter of its time
        settings._owned = not settings._different(connection)
    session = Session(generous, engine, book, open_releases(book), gate=gate or NoiselessGate(2), analyst=analyst)
    session.execute("SET dp.shrinkage = off")  # the noise laws still claim the scale of the policy's epsilon
    return session


def plain(value: Any) -> Any:
    """Return a value independent of its engine's type: numbers become floats, midnight becomes its date."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float, Decimal)):
        return None if math.isnan(value) else float(value)
    if isinstance(value, datetime):
        bare = value.replace(tzinfo=None)
        return bare.date().isoformat() if bare.time() == datetime.min.time() else bare.isoformat()
    return value.isoformat() if isinstance(value, date) else value


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal up to the rounding of the grid (2**-52 of the bounds per row) and of float sums."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-7, abs_tol=1e-7)
    return bool(left == right)


def _equal(left: Row, right: Row) -> bool:
    return len(left) == len(right) and all(map(same, left, right))


def rows_of(release: Release) -> list[Row]:
    """Return the rows of an answer as plain values."""
    columns = [column.to_pylist() for column in release.table.columns]
    return [tuple(plain(value) for value in row) for row in zip(*columns, strict=True)]


def assert_equal(sql: str, release: Release, expected: list[Row]) -> None:
    """Check that every expected row is in the answer once, and that every other row is an empty group of public keys: no expected
    row has its keys, and its counts are 0. Rows must be in the order that the query asks for.
    """
    answer = rows_of(release)
    wanted = [tuple(plain(value) for value in row) for row in expected]
    left = list(answer)
    for row in wanted:
        found = next((at for at, other in enumerate(left) if _equal(row, other)), None)
        assert found is not None, f"{row} is missing from {answer[:5]}"
        del left[found]
    noisy = [column.noisy for column in release.columns]
    keys = {tuple(v for v, n in zip(row, noisy, strict=True) if not n) for row in wanted}
    for row in left:
        key = tuple(v for v, n in zip(row, noisy, strict=True) if not n)
        assert key and key not in keys, f"{row} should not be there"
        whole = [v for v, c in zip(row, release.columns, strict=True) if c.noisy and c.type.value == "integer"]
        assert all(value in (0.0, None) for value in whole), f"{row} should be empty"
    _assert_ordered(sql, release, answer, left, wanted)
    _assert_named(sql, release)


def _assert_ordered(sql: str, release: Release, answer: list[Row], empty: list[Row], wanted: list[Row]) -> None:
    """Check that output columns named by ORDER BY have the same values row by row, empty groups left out."""
    order = sqlglot.parse_one(sql, read="duckdb").args.get("order")
    names = [column.name.lower() for column in release.columns]
    kept = [row for row in answer if row not in empty]
    for ordered in order.expressions if order is not None else ():
        name = ordered.this.name.lower()
        at = int(name) - 1 if name.isdigit() else names.index(name) if name in names else None
        if at is not None and isinstance(ordered.this, (exp.Column, exp.Literal)):
            assert all(same(a[at], b[at]) for a, b in zip(kept, wanted, strict=True)), f"not ordered by {name}"


def _assert_named(sql: str, release: Release) -> None:
    """Check that outputs with an alias carry it."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    for item, column in zip(tree.selects, release.columns, strict=False):
        if isinstance(item, exp.Star):
            return
        if item.alias:
            assert column.name == item.alias
