"""Rehearsal of the public remainder over empty tables: whatever it would refuse is refused before anything is charged. Error bars
and what else follows from released numbers are computed once over stand-ins with the planned noise.

The sandbox detects impossible conversions between types (a list and a number, a day and a number), and of texts that are
not numbers, only if there is a row to convert. So remainders that may contain a conversion are also run over example
rows. A text becomes a number only by CAST, which is NULL if the text is not a number: a comparison or addition of the two
without CAST is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.formulas import MeasureFormula, settled
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.plan.plan import Scan
from dpsql.planning.planner import Planned, Planner
from dpsql.pricing.options import Options, Unknown
from dpsql.privacy.mechanisms.contract import TermNoise
from dpsql.release import release
from dpsql.release.release import OutputColumn, Presentation
from dpsql.release.remainder import ARROW, DIALECT, EXAMPLES, ReleasedBlock, Remainder, unanswered
from dpsql.release.sandbox import CONVERSION, LITERAL_CONVERSION, Sandbox

_ROWS = 2
_CONVERTING = (exp.Array, exp.SetOperation, exp.Cast, exp.TryCast)
_COMPARING = (exp.Binary, exp.Unary, exp.Predicate, exp.Func, exp.Join)
_CONNECTING = (exp.And, exp.Or, exp.Not, exp.Paren)
_NO_HASH = 20_010_101
"""A number that is not the hash of a truth value (the hash of false is 0)."""


def presentation(options: Options) -> Presentation:
    """Return the presentation options of an answer."""
    hidden = options.unknown is Unknown.NULL
    return Presentation(float(options.confidence), options.nonnegative, hidden, options.simultaneous, options.shrinkage)


def rehearse(planner: Planner, sandbox: Sandbox, planned: Planned) -> tuple[OutputColumn, ...]:
    """Return the columns of the answer. They depend only on SQL, policy and public tables. Raises the sandbox's refusals.

    The outcome is cached with the question and under the columns that the remainder reads: many questions differ only
    inside their private blocks (a literal in WHERE) and share a remainder.
    """
    columns = planner.columns.get(planned.token)
    if columns is not None:
        return columns
    shapes = _shapes(planned)
    columns_of = (public.scan.columns for public in planned.plan.public_inputs)
    types = {column.facts.type for columns in columns_of for column in columns}
    types |= {type_ for _, keys, _, formulas, _ in shapes for type_ in (*keys, *(type_ for *_, type_ in formulas))}
    scans = tuple((public.name, public.scan) for public in planned.plan.public_inputs)
    display = presentation(planned.options)
    confidence = display.confidence
    remainder, results = planned.plan.remainder, planned.plan.results
    names = planned.plan.output_names
    laws = {} if planned.plan.empty else {each.block.name: each.noise.terms for each in planned.own_blocks}
    kinds = frozenset((type(law.noise), law.whole) for terms in laws.values() for law in terms)

    def remainders(rows: int) -> list[Remainder]:
        public, blocks = {name: _table(scan, rows) for name, scan in scans}, _blocks(shapes, rows)
        trees = [(result.query, tuple(column.name for column in result.columns)) for result in results]
        return [Remainder(tree, labels, blocks, public) for tree, labels in (*trees, (remainder, names))]

    def run() -> tuple[OutputColumn, ...]:
        columns = [release.rehearse(sandbox, each, confidence) for each in remainders(0)][-1]
        if any(_converts(tree, Type.TEXT in types) for tree in (remainder, *(result.query for result in results))):
            for each in remainders(_ROWS):
                _check_conversions(sandbox, each, confidence)
        if laws:
            public = {name: _table(scan, _ROWS) for name, scan in scans}
            stand_ins = Remainder(remainder, names, _blocks(shapes, _ROWS, laws), public)
            release.rehearse_numbers(sandbox, stand_ins, display)
        return columns

    try:
        texts = (planned.text, *(result.query.sql(dialect=DIALECT) for result in results))
        columns = planner.rehearsals.get((texts, names, shapes, scans, display, kinds), run, sum(map(len, texts)))
    except Error as error:
        raise error.placed_in(planned.statement.sql) from None
    planner.columns[planned.token] = columns
    return columns


_Shape = tuple[str, tuple[Type, ...], tuple[str, ...], tuple[MeasureFormula, ...], GroupFacts]
"""Name, types of keys, terms, formulas and facts of a block that the remainder reads."""


def _shapes(planned: Planned) -> tuple[_Shape, ...]:
    assumed = {cut.result: float(cut.most) for cut in planned.plan.cuts}
    return tuple(
        (
            priced.block.name,
            tuple(key.expression.facts.type for key in priced.block.keys),
            priced.noise.numbers,
            tuple((name, settled(formula, assumed), type_) for name, formula, type_ in priced.block.formulas),
            priced.block.groups,
        )
        for priced in planned.own_blocks
    )


def blocks_without_rows(planned: Planned) -> tuple[ReleasedBlock, ...]:
    """Return the blocks of a question without groups: from no measurement follows only what an answer without rows shows."""
    return _blocks(_shapes(planned), 0)


def _blocks(
    shapes: Sequence[_Shape], rows: int, laws: Mapping[str, tuple[TermNoise, ...]] = {}
) -> tuple[ReleasedBlock, ...]:
    return tuple(
        unanswered(name, keys, terms, formulas, groups, rows, laws.get(name, ()))
        for name, keys, terms, formulas, groups in shapes
    )


def _converts(tree: exp.Expr, texts: bool) -> bool:
    """Return whether a remainder may contain a conversion, such as from a text, quoted or in a column (`texts`), to a number."""
    if texts and tree.find(*_COMPARING):
        return True
    return any(node.is_string or not isinstance(node, exp.Literal) for node in tree.find_all(exp.Literal, *_CONVERTING))


def _table(scan: Scan, rows: int) -> pa.Table:
    return pa.table(
        {column.name: pa.array(EXAMPLES[column.facts.type][:rows], ARROW[column.facts.type]) for column in scan.columns}
    )


def _check_conversions(sandbox: Sandbox, remainder: Remainder, confidence: float) -> None:
    """Refuse conversions that are impossible for every value. Conditions may exclude every example row, so a second run
    excludes none. A conversion that fails only for values of the examples may succeed for values of the answer."""
    of_all = remainder.tree.copy()
    conditions = [
        part for part in of_all.find_all(exp.Where, exp.Having, exp.Qualify) if isinstance(part.this, exp.Expr)
    ]
    for condition in conditions:
        condition.set("this", _held_by_all(condition.this))
    for tree in [remainder.tree, of_all] if conditions else [remainder.tree]:
        category = _failure(sandbox, replace(remainder, tree=tree, written=""), confidence)
        if LITERAL_CONVERSION in category:
            raise refuse("sandbox_text", text="a text of the question")
        if CONVERSION in category:
            _check_implicit(sandbox, replace(remainder, tree=tree.copy(), written=""), confidence)


def _check_implicit(sandbox: Sandbox, remainder: Remainder, confidence: float) -> None:
    """Refuse a conversion that fails even if every CAST returns NULL instead of failing."""
    for cast in list(remainder.tree.find_all(exp.Cast)):
        cast.replace(exp.TryCast(this=cast.this.copy(), to=cast.to.copy()))
    if CONVERSION in _failure(sandbox, remainder, confidence):
        raise refuse("sandbox_text", text="a released text")


def _failure(sandbox: Sandbox, remainder: Remainder, confidence: float) -> str:
    """Return why `remainder` fails for its values, or "" if it does not. Raises errors that occur for all values."""
    try:
        release.rehearse(sandbox, remainder, confidence)
    except Error as error:
        if error.slug == "sandbox_query":
            raise
        return error.message
    return ""


def _held_by_all(condition: exp.Expr) -> exp.Expr:
    """Return a condition that every row satisfies, and that computes each part of `condition` for every row."""
    parts = [condition]
    while any(isinstance(part, _CONNECTING) for part in parts):
        parts = [
            inner for part in parts for inner in (part.iter_expressions() if isinstance(part, _CONNECTING) else (part,))
        ]
    hashed = exp.Anonymous(this="hash", expressions=[part.copy() for part in parts])
    return exp.NEQ(this=hashed, expression=exp.Literal.number(_NO_HASH))
