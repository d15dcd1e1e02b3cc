"""The public remainder run over empty tables: what it would refuse is refused before anything is charged."""

from __future__ import annotations

import pyarrow as pa

from dpsql.errors.exceptions import Error
from dpsql.plan.plan import Scan
from dpsql.planning.planner import Planned, Planner
from dpsql.release import release
from dpsql.release.release import OutputColumn
from dpsql.release.remainder import ARROW, DIALECT, Remainder, unanswered
from dpsql.release.sandbox import Sandbox


def rehearse(planner: Planner, sandbox: Sandbox, planned: Planned) -> tuple[OutputColumn, ...]:
    """Return the columns of the answer. Depends on SQL, policy and public tables only; raises what the sandbox refuses.

    The outcome is kept with the question, and by what the remainder reads: many questions differ inside their private
    blocks only (a literal in WHERE), and share a remainder.
    """
    columns = planner.columns.get(planned.token)
    if columns is not None:
        return columns
    shapes = tuple(
        (
            priced.block.name,
            tuple(key.expression.facts.type for key in priced.block.keys),
            priced.noise.numbers,
            priced.block.formulas,
            priced.block.groups,
        )
        for priced in planned.price.blocks
    )
    scans = tuple((public.name, public.scan) for public in planned.plan.public_inputs)
    confidence = float(planned.options.confidence)
    remainder, results = planned.plan.remainder, planned.plan.results
    names = planned.plan.output_names

    def run() -> tuple[OutputColumn, ...]:
        public = {name: _empty(scan) for name, scan in scans}
        blocks = tuple(unanswered(*shape) for shape in shapes)
        for result in results:
            labels = tuple(column.name for column in result.columns)
            release.rehearse(sandbox, Remainder(result.query, labels, blocks, public), confidence)
        return release.rehearse(sandbox, Remainder(remainder, names, blocks, public), confidence)

    try:
        texts = (planned.text, *(result.query.sql(dialect=DIALECT) for result in results))
        columns = planner.rehearsals.get((texts, names, shapes, scans, confidence), run)
    except Error as error:
        raise error.at(planned.statement.sql) from None
    planner.columns[planned.token] = columns
    return columns


def _empty(scan: Scan) -> pa.Table:
    return pa.table({column.name: pa.array([], ARROW[column.facts.type]) for column in scan.columns})
