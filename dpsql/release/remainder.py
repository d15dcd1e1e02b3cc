"""The public remainder of a query with its released tables: what the sandbox runs, and how its rows are identified.

A released block enters the sandbox as its keys and noisy terms. Its measures are computed there, except estimates, which
enter as values. Every row has a hidden number, so that an answer in which each row is one group of one block (a
*row-wise* remainder: projections, filters, orders and limits) can be traced back to the groups that it shows, whatever
names the analyst chose.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from dpsql.plan.formulas import (
    Formula,
    MeasureFormula,
    Operation,
    Operator,
    estimated,
    greatest,
    plugged_in,
    shrinks,
    whole,
)
from dpsql.plan.intervals import ANY_GROUPS, GroupFacts, Type
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity, TermNoise
from dpsql.release.formulas import Extent, formula_sql, interval, numbers
from dpsql.sql.parser import parse_text

DIALECT = "duckdb"
ROW = "dp#row"
"""Hidden column: the number of a group in its block (0..); "#" distinguishes it from generated names like k0."""

ARROW: dict[Type, pa.DataType] = {
    Type.INTEGER: pa.int64(), Type.REAL: pa.float64(), Type.TEXT: pa.string(), Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(), Type.TIMESTAMP: pa.timestamp("us"), Type.NULL: pa.null(),
}  # fmt: skip


EXAMPLES: dict[Type, tuple[Any, ...]] = {
    Type.INTEGER: (0, 1), Type.REAL: (0.0, 1.0), Type.TEXT: ("no number", "no day"), Type.BOOLEAN: (False, True),
    Type.DATE: (date(2000, 1, 1), date(2000, 1, 2)), Type.TIMESTAMP: (datetime(2000, 1, 1), datetime(2000, 1, 2)),
    Type.NULL: (None, None),
}  # fmt: skip
"""Two values of each type, for rows whose values do not matter; the texts are neither numbers nor days."""


class ReleasedTerm(Protocol):
    """One noisy basis term, with one number per group (see `perturb.NoisyTerm`).

    `values` differ from the exact numbers by integer noise times `noise_unit`, rounded to an integer when `whole`.
    """

    @property
    def name(self) -> str: ...

    @property
    def values(self) -> npt.NDArray[Any]: ...

    @property
    def noise(self) -> Noise: ...

    @property
    def noise_unit(self) -> float: ...

    @property
    def whole(self) -> bool: ...

    def half_width(self, confidence: float) -> float: ...

    def standard_deviation(self) -> float: ...


class NoisyNumbers:
    """The size of the errors of a term, from its law."""

    noise: Noise
    noise_unit: float
    whole: bool

    def half_width(self, confidence: float) -> float:
        """Return h with P(|value - exact value| <= h) >= confidence, in the units of the values."""
        width = self.noise.half_width(confidence) * 2.0**-self.noise.shift * self.noise_unit
        return float(math.floor(width + 0.5)) if self.whole else width

    def standard_deviation(self) -> float:
        """Return the standard deviation of the error, in the units of the values."""
        return self.noise.standard_deviation() * 2.0**-self.noise.shift * self.noise_unit


@dataclass(frozen=True, eq=False)
class ReleasedBlock:
    """The noisy answer of one private block: `keys` (columns k0..) and `terms`, one row for each group in key order.

    `formulas`: each measure as a formula over the terms, including estimates. `shown_from`: for a term by which groups were
    admitted, the least noisy value of a group that is shown. The block is public: it may be pickled and stored.
    """

    name: str
    keys: pa.Table
    terms: tuple[ReleasedTerm, ...]
    formulas: tuple[MeasureFormula, ...]
    rows: int
    groups: GroupFacts = ANY_GROUPS
    shown_from: Mapping[str, float] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        computed = ("estimates", "extents", "measures", "plug_ins")
        return {name: value for name, value in self.__dict__.items() if name not in computed}

    @cached_property
    def plug_ins(self) -> dict[str, Formula]:
        """The plug-in formula of each measure: over exact sums it is the aggregate. Error bars refer to it."""
        return {name: plugged_in(formula) for name, formula, _ in self.formulas}

    @cached_property
    def extents(self) -> dict[str, Extent]:
        """The interval that each measure cannot leave, whatever the noise."""
        return {name: interval(formula) for name, formula in self.plug_ins.items()}

    @cached_property
    def estimates(self) -> dict[str, npt.NDArray[np.float64]]:
        """The values, NaN for NULL, of the measures that are shown as estimates instead of the plug-in formula."""
        deviations = {term.name: term.standard_deviation() for term in self.terms}
        terms = {term.name: np.asarray(term.values, dtype=np.float64) for term in self.terms}
        formulas = {name: estimated(formula, deviations) for name, formula, _ in self.formulas if shrinks(formula)}
        return {name: np.broadcast_to(numbers(formula, terms), self.rows) for name, formula in formulas.items()}

    @cached_property
    def measures(self) -> dict[str, exp.Expr]:
        """Each measure as it is shown, as an expression over the columns of the table."""
        columns = {name: column(_hidden(name)) for name in self.estimates}
        return {name: columns.get(name) or formula_sql(formula) for name, formula in self.plug_ins.items()}

    def as_plugged_in(self) -> ReleasedBlock:
        """Return the block without estimates: AVG is the released sum divided by the released count."""
        return replace(self, formulas=tuple((name, plugged_in(value), type_) for name, value, type_ in self.formulas))

    def with_counts_from_zero(self) -> ReleasedBlock:
        """Return the block with every negative count raised to 0."""
        return replace(
            self,
            formulas=tuple(
                (name, _from_zero(value) if name in self.groups.counts else value, type_)
                for name, value, type_ in self.formulas
            ),
        )

    def table(self, extra: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
        """Return the table of keys, terms, estimates, row numbers and `extra` columns."""
        columns: dict[str, Any] = {name: self.keys.column(name) for name in self.keys.column_names}
        for term in self.terms:
            columns[term.name] = pa.array(np.asarray(term.values, dtype=np.float64))
        columns |= {_hidden(name): pa.array(values, from_pandas=True) for name, values in self.estimates.items()}
        columns[ROW] = pa.array(np.arange(self.rows, dtype=np.int64))
        for name, values in extra.items():
            columns[name] = pa.array(values, pa.float64(), from_pandas=True)
        return pa.table(columns)

    def query(self, extra: Sequence[str] = ()) -> exp.Select:
        """Return the query of keys, measures and hidden columns over the registered table, which is named like the block."""
        items: list[exp.Expr] = [column(name) for name in self.keys.column_names]
        items += [exp.Alias(this=tree.copy(), alias=identifier(name)) for name, tree in self.measures.items()]
        items += [column(name) for name in (ROW, *extra)]
        return exp.Select(expressions=items, from_=exp.From(this=exp.Table(this=identifier(self.name))))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the remainder may name: keys and measures."""
        return (*self.keys.column_names, *(name for name, _, _ in self.formulas))


def _hidden(measure: str) -> str:
    """Return the name of the hidden column with the estimates of a measure."""
    return f"dp#{measure}"


def _from_zero(value: Formula) -> Formula:
    """Return the formula of a count with negative values replaced by 0."""
    if isinstance(value, Operation) and value.operator is Operator.WHOLE:
        return whole(greatest(value.operands[0], 0))
    return greatest(value, 0)


@dataclass(frozen=True, eq=False)
class StandIn(NoisyNumbers):
    """A term that was not measured, with made-up values and the noise that it would have; a chosen number has none."""

    name: str
    values: npt.NDArray[np.float64]
    noise: Noise = field(default_factory=lambda: Constant(Sensitivity(0, 0, 0, 0)))
    noise_unit: float = 1.0
    whole: bool = False

    @classmethod
    def of_law(cls, law: TermNoise, values: npt.NDArray[np.float64]) -> StandIn:
        """Return the term of a planned measurement."""
        return cls(law.name, values, law.noise, 2.0 ** (law.noise.shift - law.grid), law.whole)


def unanswered(
    name: str,
    key_types: Sequence[Type],
    terms: Sequence[str],
    formulas: tuple[MeasureFormula, ...],
    groups: GroupFacts = ANY_GROUPS,
    rows: int = 0,
    laws: Sequence[TermNoise] = (),
) -> ReleasedBlock:
    """Return a block for rehearsing a remainder before anything is charged: without rows, or with the first `rows` values of
    `EXAMPLES`. `laws`: the noise of its terms (others have none)."""
    keys = pa.table(
        {f"k{number}": pa.array(EXAMPLES[type_][:rows], ARROW[type_]) for number, type_ in enumerate(key_types)}
    )
    values, of_term = np.arange(rows, dtype=np.float64), {law.name: law for law in laws}
    numbers = tuple(
        StandIn.of_law(of_term[term], values) if term in of_term else StandIn(term, values) for term in terms
    )
    return ReleasedBlock(name, keys, numbers, formulas, rows, groups)


@dataclass(frozen=True, eq=False)
class Remainder:
    """The public remainder (a tree over tables named like the blocks and the public tables) and all its tables.

    `written` is the text of the tree if it is already known.
    """

    tree: exp.Query
    names: tuple[str, ...]
    blocks: tuple[ReleasedBlock, ...]
    public: Mapping[str, pa.Table]
    written: str = ""

    @property
    def text(self) -> str:
        """The tree as SQL."""
        return self.written or self.tree.sql(dialect=DIALECT)

    def block(self, name: str) -> ReleasedBlock | None:
        """Return the block called `name`, or None."""
        return next((block for block in self.blocks if block.name == name), None)

    @cached_property
    def seed(self) -> str:
        """The seed of the draws for error bars: a function of the released numbers, so that an answer repeated from stored
        releases has the same error bars."""
        digest = hashlib.sha256()
        for block in self.blocks:
            digest.update(f"{block.name}/{block.rows}/".encode())
            for term in block.terms:
                digest.update(np.ascontiguousarray(term.values).tobytes())
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the tree as text, which is shorter and independent of the parser's build."""
        return {**self.__dict__, "tree": self.text, "public": dict(self.public)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "tree": parse_text(state["tree"])})


def runnable(
    tree: exp.Query,
    remainder: Remainder,
    extra: Mapping[str, Sequence[str]],
    adapt: Callable[[exp.Select], exp.Select] = lambda query: query,
) -> str:
    """Return the SQL text of `tree` with every block replaced by its query, modified by `adapt`. `tree` itself is changed.
    `extra`: the names of hidden columns of each block."""
    for table in list(tree.find_all(exp.Table)):
        block = remainder.block(table.name)
        if block is None:
            continue
        alias = table.args.get("alias") or exp.TableAlias(this=identifier(block.name))
        table.replace(exp.Subquery(this=adapt(block.query(extra.get(block.name, ()))), alias=alias))
    return tree.sql(dialect=DIALECT)


def column(name: str, table: str = "") -> exp.Column:
    """Return a quoted column reference."""
    return exp.Column(this=identifier(name), table=identifier(table) if table else None)


def identifier(name: str) -> exp.Identifier:
    """Return a quoted name."""
    return exp.Identifier(this=name, quoted=True)
