"""Blocks that read released results: the order of stages, and results as tables of later blocks (privacy.md 6).

A question with results is answered in stages: the blocks that read no result are measured, the sandbox computes results
from what was released, and so on. Each stage is a function of policy, question and earlier *released* numbers.

Why that is private: the measurement of a later stage is chosen from released numbers, as an analyst who asked one
question after another could have chosen it. Its mechanisms, including their parameters, are fixed before anything is
measured: stability, bounds and prices follow from types, intervals and keys in the text and the policy
(`bind.results`), never from released numbers. So the losses of all blocks add up under adaptive composition with
fixed parameters: epsilon and delta by theorem B.1 of Dwork and Roth, The Algorithmic Foundations of Differential
Privacy (2014), rho by lemma 2.3 of Bun and Steinke 2016 (arXiv 1605.02065). `session` reserves that sum for all stages
together, before the first one runs.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from fractions import Fraction
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import refuse
from dpsql.plan.formulas import MeasureFormula, settled
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Literal, ReleasedRows, ReleasedValue, Result, Scan, TotalCut, filled
from dpsql.planning.planner import Planned, release_key
from dpsql.policy import Policy
from dpsql.pricing.pricing import ARROW
from dpsql.release.error_bars import answer
from dpsql.release.remainder import ReleasedBlock, Remainder
from dpsql.release.sandbox import Sandbox
from dpsql.reuse.lookup import PaidBlock
from dpsql.storage.records import replace

Public = Callable[[Scan], pa.Table]


class Stages:
    """The results of one question while it is being answered. `public` reads a public table."""

    def __init__(self, policy: Policy, sandbox: Sandbox, public: Public) -> None:
        self._policy = policy
        self._sandbox = sandbox
        self._public = public
        self._tables: dict[str, pa.Table] = {}

    def fill(self, planned: Planned, index: int, stored: Sequence[PaidBlock | None]) -> Planned:
        """Return `planned` with the results that block number `index` reads, or unchanged if some of them are not
        released yet.

        Mechanisms and price stay the same. The key of the block's release changes: it includes the rows that the block
        reads, so the release is reused only for these rows.
        """
        released = {part.block.name: part.block for part in stored if part is not None}
        missing = {block.block.name for block in planned.price.blocks} - released.keys()
        results = [result for result in planned.plan.results if result.name in planned.waiting(index)]
        for result in planned.plan.results:
            if index == 0 and result.value_at is not None and result not in results:
                self._rows(planned, result, {})
        if not results:
            return planned
        for result in results:
            if not missing & tables_read(
                result.query
            ):  # one of public tables alone may have to be refused before the charge
                self._tables[result.name] = self._rows(planned, result, released)
        if not self._tables.keys() >= {result.name for result in results}:
            return planned
        priced, keys = list(planned.price.blocks), list(planned.keys)
        block = filled(priced[index].block, self._with_released)
        if planned.plan.cuts:
            block = replace(block, formulas=self._settled(block.formulas, planned.plan.cuts))
        priced[index] = replace(priced[index], block=block)
        keys[index] = release_key(priced[index], self._policy)
        return replace(planned, price=replace(planned.price, blocks=tuple(priced)), keys=tuple(keys))

    def with_results(self, query: EngineQuery, waiting: Sequence[Result] = ()) -> EngineQuery:
        """Return an engine query with the released results that it reads, and an empty table for each that is `waiting`."""
        empty = {result.name: _empty(result) for result in waiting}
        tables_beside = empty | self._tables
        return replace(query, released=tables_beside) if tables_beside else query

    def _settled(self, formulas: tuple[MeasureFormula, ...], cuts: Sequence[TotalCut]) -> tuple[MeasureFormula, ...]:
        """Return formulas that contain the released bounds on totals."""
        names = [cut.result for cut in cuts if cut.result in self._tables]
        released = {name: float(self._tables[name].column(0)[0].as_py()) for name in names}
        return tuple((name, settled(formula, released), type_) for name, formula, type_ in formulas)

    def _rows(self, planned: Planned, result: Result, released: dict[str, ReleasedBlock]) -> pa.Table:
        """Return the rows of a result, in the types of the plan. Raises the refusals of the sandbox."""
        read = tables_read(result.query)
        blocks = tuple(block for name, block in released.items() if name in read)
        if not planned.options.shrinkage:
            blocks = tuple(block.as_plugged_in() for block in blocks)
        public = {entry.name: self._public(entry.scan) for entry in planned.plan.public_inputs if entry.name in read}
        names = tuple(column.name for column in result.columns)
        remainder = Remainder(result.query, names, blocks, public)
        result_rows = answer(self._sandbox, remainder, float(planned.options.confidence)).table
        columns = [_typed(result_rows.column(column.name), column.facts.type) for column in result.columns]
        table = pa.table(dict(zip(names, columns, strict=True)))
        for key, of_table, named in result.promised:
            if _rows_together(table, key) > 1:
                raise refuse("promise_broken", table=of_table, columns=named, most=1)
        if result.value_at is not None and table.num_rows > 1:
            raise refuse("several_rows", position=result.value_at).placed_in(planned.plan.sql)
        return table

    def _with_released(self, part: Any) -> Any:
        """Return a part of a plan with its placeholder replaced by the released result."""
        if isinstance(part, ReleasedRows) and part.name in self._tables:
            _check_released(part, self._tables[part.name])
            return replace(part, content=digest(self._tables[part.name]))
        if isinstance(part, ReleasedValue) and part.name in self._tables:
            (column,) = self._tables[part.name].columns
            if column.type != ARROW[part.facts.type]:
                raise refuse("internal", what="a released value of another type")
            return Literal(_constant(column[0].as_py()) if len(column) else None, part.facts)
        return part


def _empty(result: Result) -> pa.Table:
    return pa.schema([(column.name, ARROW[column.facts.type]) for column in result.columns]).empty_table()


def tables_read(query: exp.Query) -> set[str]:
    """Return the names of the blocks and public tables that a query reads, and the names that its own WITH defines."""
    return {table.name for table in query.find_all(exp.Table)}


def digest(table: pa.Table) -> str:
    """Return a digest of the rows of a table that does not depend on their order."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    types = ", ".join(str(field.type) for field in table.schema)
    return hashlib.sha256("\n".join([types, *sorted(map(repr, rows))]).encode()).hexdigest()


def _typed(values: pa.ChunkedArray, type_: Type) -> pa.ChunkedArray:
    """Return a column in the type of the plan, with -0.0 replaced by 0.0 and dates outside Python's range by NULL."""
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
    """Convert a released value to the form of literals in a plan: finite reals are fractions."""
    return Fraction(value) if isinstance(value, float) and isfinite(value) else value


def _check_released(part: ReleasedRows, table: pa.Table) -> None:
    """Raise InternalError unless a released table has a plan's columns, and rows with equal keys as claimed (stability)."""
    for column in part.columns:
        place = table.schema.get_field_index(column.name)
        if place < 0 or table.schema.field(place).type != ARROW[column.facts.type]:
            raise refuse("internal", what="a column of a released result that it does not have")
    for key, most in (*((unique, 1) for unique in part.unique), *part.repeats):
        if _rows_together(table, key) > most:
            raise refuse("internal", what="more rows of a released result than promised have the same key")


def _rows_together(table: pa.Table, names: tuple[str, ...]) -> int:
    """Return the most released (public) rows that agree on the columns `names`, ignoring NULLs: stability relies on it."""
    if not names:
        return int(table.num_rows)
    listed = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    return max(Counter(row for row in listed if None not in row).values(), default=0)
