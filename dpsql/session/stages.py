"""Blocks that read released results: the order of stages, and results as tables of later blocks (privacy.md 6).

A question with results is answered in stages: the blocks that read no result are measured, what was released is turned
into the results in the sandbox, and so on, each stage a function of policy, question and earlier *released* numbers.

Why that is private: which measurement a later stage makes is chosen from released numbers, as an analyst could have
chosen it who asked one question after the other. Its mechanisms, and with them its parameters, are fixed before
anything is measured: stability, bounds and prices follow from types, intervals and keys in the text and the policy
(`bind.results`), never from what was released. So the losses of all blocks add up under adaptive composition with
fixed parameters: epsilon and delta by theorem B.1 of Dwork and Roth, The Algorithmic Foundations of Differential
Privacy (2014), rho by lemma 2.3 of Bun and Steinke 2016 (arXiv 1605.02065). That sum is what `session` reserves, for
all stages together, before the first one runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Literal, ReleasedRows, ReleasedValue, Result, Scan, filled
from dpsql.planning.planner import Planned, release_key
from dpsql.policy import Policy
from dpsql.release.error_bars import answer
from dpsql.release.remainder import ARROW, ReleasedBlock, Remainder
from dpsql.release.sandbox import Sandbox
from dpsql.reuse.lookup import Found

Public = Callable[[Scan], pa.Table]


class Stages:
    """The results of one question while it is answered. `public`: reads a public table."""

    def __init__(self, policy: Policy, sandbox: Sandbox, public: Public) -> None:
        self._policy = policy
        self._sandbox = sandbox
        self._public = public
        self._tables: dict[str, pa.Table] = {}

    def fill(self, planned: Planned, index: int, found: Sequence[Found | None]) -> Planned:
        """`planned` with the results that block number `at` reads; as it is when some of them are not released yet.

        Mechanisms and price stay as they are. What the block's release is called changes: the rows it reads are part of
        what it measures, so it is found again when these very rows are read, and never for others.
        """
        known = {one.block.name: one.block for one in found if one is not None}
        missing = {one.block.name for one in planned.price.blocks} - known.keys()
        results = [result for result in planned.plan.results if result.name in planned.waiting(index)]
        if any(missing & tables_read(result.query) for result in results):
            return planned
        for result in results:
            self._tables[result.name] = self._rows(planned, result, known)
        priced, keys = list(planned.price.blocks), list(planned.keys)
        priced[index] = replace(priced[index], block=filled(priced[index].block, self._known))
        keys[index] = release_key(priced[index], self._policy)
        return replace(planned, price=replace(planned.price, blocks=tuple(priced)), keys=tuple(keys))

    def given(self, query: EngineQuery) -> EngineQuery:
        """An engine query with the results that it may read."""
        return replace(query, released=dict(self._tables)) if self._tables else query

    def _rows(self, planned: Planned, result: Result, known: dict[str, ReleasedBlock]) -> pa.Table:
        """The rows of a result, in the types of the plan. Raises the refusals of the sandbox."""
        read = tables_read(result.query)
        blocks = tuple(block for name, block in known.items() if name in read)
        public = {one.name: self._public(one.scan) for one in planned.plan.public_inputs if one.name in read}
        names = tuple(column.name for column in result.columns)
        remainder = Remainder(result.query, names, blocks, public)
        found = answer(self._sandbox, remainder, float(planned.options.confidence)).table
        columns = [_typed(found.column(column.name), column.facts.type) for column in result.columns]
        table = pa.table(dict(zip(names, columns, strict=True)))
        for unique in result.unique:
            _check_unique(table, unique)
        return table

    def _known(self, part: Any) -> Any:
        """A part of a plan with a released result in its place."""
        if isinstance(part, ReleasedRows) and part.name in self._tables:
            return replace(part, content=digest(self._tables[part.name]))
        if isinstance(part, ReleasedValue) and part.name in self._tables:
            (column,) = self._tables[part.name].columns
            return Literal(_constant(column[0].as_py()) if len(column) else None, part.facts)
        return part


def notes(planned: Planned) -> tuple[str, ...]:
    """What EXPLAIN says of the order of blocks, and of the errors of the later ones."""
    results = {one.name: one for one in planned.plan.results}
    names = [priced.block.name for priced in planned.price.blocks]
    found = []
    for index, name in enumerate(names):
        read = {table for result in planned.waiting(index) for table in tables_read(results[result].query)}
        earlier = [other for other in names if other in read]
        if earlier:
            told = f"{name} is measured after {', '.join(earlier)}, over what is released there"
            found.append(f"{told}: its error is that of the answer for these released rows")
    return tuple(found)


def tables_read(query: exp.Query) -> set[str]:
    """Names of the blocks and public tables that a query over them reads (and of its own WITH)."""
    return {table.name for table in query.find_all(exp.Table)}


def digest(table: pa.Table) -> str:
    """Names the rows of a table, in whatever order they stand."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    types = ", ".join(str(field.type) for field in table.schema)
    return hashlib.sha256("\n".join([types, *sorted(map(repr, rows))]).encode()).hexdigest()


def _typed(values: pa.ChunkedArray, type_: Type) -> pa.ChunkedArray:
    """A column in the type of the plan: one zero, and no date that Python (and our row functions) cannot hold."""
    values = values.cast(ARROW[type_])
    if type_ is Type.REAL:
        return pc.add(values, 0.0)
    if type_.temporal:
        first, last = (date.min, date.max) if type_ is Type.DATE else (datetime.min, datetime.max)
        low, high = pa.scalar(first, ARROW[type_]), pa.scalar(last, ARROW[type_])
        inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        return pc.if_else(inside, values, pa.scalar(None, ARROW[type_]))
    return values


def _constant(value: Any) -> Any:
    """A released value as literals of a question are held: finite reals as fractions."""
    return Fraction(value) if isinstance(value, float) and isfinite(value) else value


def _check_unique(table: pa.Table, names: tuple[str, ...]) -> None:
    """What stability was computed from, looked at once more in the rows (they are public)."""
    if not names:
        rows, different = table.num_rows, 1
    else:
        listed = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        known = [row for row in listed if None not in row]
        rows, different = len(known), len(set(known))
    if rows > different:
        raise refuse("internal", what="a released key is not unique")
