"""Running a public remainder and computing error bars for its noisy columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.noise.perturb import ReleasedTerm
from dpsql.privacy.mechanisms.registry import series_law
from dpsql.release.error_bars import rowwise
from dpsql.release.error_bars.column_facts import ColumnFacts, Level, RelationFacts, column_facts
from dpsql.release.error_bars.intervals import Interval, ReleasedGroups, intervals, measured_name
from dpsql.release.error_bars.laws import Floats
from dpsql.release.error_bars.replicates import (
    Rerun,
    RerunQuery,
    Unmatched,
    candidates,
    replicated_intervals,
    surely_and_maybe,
)
from dpsql.release.error_bars.rowwise import Branches, Direct, Traced, interval_function, interval_name
from dpsql.release.remainder import ROW, PooledTerm, ReleasedBlock, Remainder, runnable
from dpsql.release.sandbox import Sandbox, numeric, plain
from dpsql.sql.lexer import place
from dpsql.storage.memory import RecentValues
from dpsql.storage.records import dataclass

Extra = dict[str, dict[str, Floats]]
_Rows = tuple[pa.Table, npt.NDArray[np.int64] | None]
_MOST_SHAPES = 512
_MOST_SHAPES_CHARACTERS = 200_000
OF_SQL = "SQL would leave them out"
CHOSEN = (
    "chosen among values, not computed, or with noise of a secret scale; EXPLAIN VERBOSE shows the error of the choice"
)


@dataclass(frozen=True, eq=False)
class Answer:
    """The rows of a remainder. `noisy`: one flag per column. `place`: a number per row that distinguishes rows with equal exact
    columns (row-wise: the number of the row's group; UNION ALL: that of the branch). `of_groups`: positions of columns that
    depend on which groups exist; `chosen`: on chosen numbers; their errors are not known (`column_facts`). `if_all_exist`:
    positions of columns whose bars hold if the data have every group shown. `simultaneous`: widen bars so that they also hold for
    rows selected by noise."""

    remainder: Remainder
    table: pa.Table
    noisy: tuple[bool, ...]
    place: npt.NDArray[np.int64] | None
    confidence: float
    extra: Extra
    of_groups: frozenset[int] = frozenset()
    if_all_exist: frozenset[int] = frozenset()
    chosen: frozenset[int] = frozenset()
    simultaneous: bool = True
    shape: _Shape | None = None


@dataclass(frozen=True)
class Bars:
    """Ends and half widths (doubles; NULL: not computed, unbounded or exact) for each row and column of an answer, and
    remarks. `unknown` is true where the noise leaves no information: the ends are then the bounds of the output, if any.
    `chosen`: the positions of columns without bars because their numbers are chosen (`release.shape` has their errors)."""

    low: pa.Table
    high: pa.Table
    error: pa.Table
    notes: tuple[str, ...]
    unknown: pa.Table
    chosen: tuple[int, ...] = ()


def answer(
    sandbox: Sandbox, remainder: Remainder, confidence: float, rehearsal: bool = False, simultaneous: bool = True
) -> Answer:
    """Run `remainder` and return its rows, with DP_INTERVAL_LOW/HIGH/ERROR at `confidence`.

    A rehearsal (over blocks without rows) refuses what the sandbox would refuse. Without ORDER BY, rows are returned in the
    order of the block's keys (row-wise) or of the exact columns (grouped, joined, set operations other than UNION ALL).
    Raises the refusals of the sandbox and Refusal interval_place.
    """
    run = _Run(sandbox, remainder, confidence)
    table, index = run.directly() or run.in_sandbox(strict=rehearsal)
    if run.pending and not rehearsal:
        by_position, _ = run.replicated(
            table, index, [position for position in run.pending if position not in run.of_groups | run.chosen]
        )
        nothing = Interval.nothing(len(table))
        for position, word in run.pending.items():
            by_position.setdefault(position, nothing)
            table = table.set_column(
                position, table.field(position).with_type(pa.float64()), _nullable(_end(by_position[position], word))
            )
    facts = (run.extra, run.of_groups, run.if_all_exist, run.chosen)
    return Answer(remainder, table, run.noisy, index, confidence, *facts, simultaneous, run.shape)


def bars(sandbox: Sandbox, answered: Answer) -> Bars:
    """Return the error bars of every noisy column; where they cannot be computed, NULL and a remark."""
    run = _Run(sandbox, answered.remainder, answered.confidence, answered.extra, answered.shape)
    table, notes = answered.table, []
    numbers = [
        position for position, noisy in enumerate(answered.noisy) if noisy and numeric(table.column(position).type)
    ]
    chosen: list[int] = []
    barred = [position for position in numbers if position not in answered.of_groups | answered.chosen]
    for position, noisy in enumerate(answered.noisy):
        if position in answered.of_groups and len(table):
            notes.append(f"no error bar for {table.field(position).name}: it depends on which groups exist")
        elif position in answered.chosen and len(table):
            chosen.append(position)
        elif position in run.listed and len(table):
            notes.append(
                f"{table.field(position).name} counts values without rows as 0, and so does its error bar; {OF_SQL}"
            )
        elif noisy and position not in numbers and len(table):
            notes.append(f"no error bar for {table.field(position).name}: it is no number")
    if answered.simultaneous and barred:
        notes += run.widen(len(table))
    by_position = run.rowwise(barred, answered.place) if len(table) else {}
    rest = [position for position in barred if position not in by_position]
    if rest and len(table):
        more, problem = run.replicated(table, answered.place, rest)
        by_position |= more
        without = [position for position in rest if problem and np.isnan(more[position].value).all()]
        notes += [f"no error bar for {table.field(position).name}: {problem}" for position in without]
    nothing = Interval.nothing(len(table))
    ordered = [by_position.get(position, nothing) for position in range(len(answered.noisy))]
    low, high, error = (
        pa.Table.from_arrays([_nullable(_end(interval, end)) for interval in ordered], names=table.column_names)
        for end in ("dp_interval_low", "dp_interval_high", "dp_error")
    )
    unknown = pa.Table.from_arrays([pa.array(interval.unknown) for interval in ordered], names=table.column_names)
    for position, interval in enumerate(ordered):
        if rows := int(interval.unknown.sum()):
            where = "" if len(table) == 1 else f" in {rows} of {len(table)} rows"
            word = f"{table.field(position).name} is unknown{where}"
            notes.append(f"{word}: the noise is so large that the bar is all that its bounds allow")
    notes += _undefined(answered, barred)
    return Bars(low, high, error, tuple(dict.fromkeys(notes)), unknown, tuple(chosen))


@dataclass(frozen=True, eq=False)
class PlainMeasure:
    """A column that shows one measure of a block, also rounded. `rows`: the group of each row of the answer in the block."""

    block: ReleasedBlock
    name: str
    rows: npt.NDArray[np.int64]


def measures_shown(answered: Answer) -> tuple[tuple[PlainMeasure, ...], ...]:
    """Return, for each column of an answer, the measures that it shows: one, several for a list; () for other columns."""
    traced = (answered.shape or shape_of(answered.remainder)).traced
    block = None if traced is None else answered.remainder.block(traced.block)
    if traced is None or block is None or answered.place is None:
        return ((),) * len(answered.noisy)
    measures = {name for name, _, _ in block.formulas}
    trees = [None if tree is None else tree.unnest() for tree in traced.outputs]
    listed = [tree.expressions if isinstance(tree, exp.Array) else [tree] for tree in trees]
    names = [["" if part is None else _plain_name(part) for part in parts] for parts in listed]
    return tuple(
        tuple(PlainMeasure(block, name, answered.place) for name in of_column) if measures.issuperset(of_column) else ()
        for of_column in names
    )


def _plain_name(tree: exp.Expr) -> str:
    while isinstance(tree, (exp.Paren, exp.Round)):
        tree = tree.this
    return tree.name if isinstance(tree, exp.Column) else ""


def likely_rows(sandbox: Sandbox, remainder: Remainder) -> tuple[int, int]:
    """Return how many rows of a remainder appear under all likely noise, and how many under some of it.

    Rows are identified by their exact columns. Raises Unmatched if there are none, and the refusals of the sandbox.
    """
    noisy = column_facts(remainder).noisy
    keys = tuple(column for column, of_noise in enumerate(noisy) if not of_noise)
    if not keys or len(noisy) != len(remainder.names):
        raise Unmatched("the rows have no key")
    again = RerunQuery(remainder, remainder.tree, len(noisy), keys, {})
    return surely_and_maybe(sandbox, Rerun(remainder, again, {}, 0.5))


def _end(interval: Interval, word: str) -> Floats:
    return {"dp_interval_low": interval.low, "dp_interval_high": interval.high}.get(word, interval.error)


def _undefined(answered: Answer, barred: Sequence[int]) -> Iterator[str]:
    """Yield a remark on each column whose value is NULL, infinite or NaN in some rows."""
    table = answered.table
    nulls = {position: count for position in barred if (count := table.column(position).null_count)}
    measured = measures_shown(answered) if nulls else ()
    why = "after noise, or for want of rows, what it divides by is not positive"
    counts = [(position, f"NULL{{}}: {why}", count) for position, count in nulls.items() if measured[position]]
    why = "it has no finite value for these noisy numbers, as a quotient by 0 has none"
    for position in barred:
        if pa.types.is_floating((values := table.column(position)).type):
            finite = pc.sum(pc.is_finite(values)).as_py() or 0
            counts.append((position, f"infinite or NaN{{}}: {why}", len(table) - values.null_count - finite))
    for position, words, count in counts:
        if count:
            where = "" if len(table) == 1 else f" in {count} of {len(table)} rows"
            yield f"{table.field(position).name} is {words.format(where)}"


def _nullable(values: Floats) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)


class _Shape:
    """Properties of a remainder that do not depend on its numbers: noisy columns, traces of its rows, its SQL text."""

    def __init__(self, remainder: Remainder) -> None:
        width = len(remainder.names)
        facts = column_facts(remainder)
        if len(facts.columns) != width:  # a star over JOIN ... USING has fewer columns than its tables
            facts = RelationFacts((ColumnFacts("", max(facts.worst, Level.NOISE)),) * width, facts.rows, facts.settled)
        self.noisy, self.settled = facts.noisy, facts.settled
        self.traced: Traced | None = rowwise.trace(remainder)
        self.branches: Branches | None = rowwise.trace_branches(remainder) if self.traced is None else None
        self.tree = self.traced.tree if self.traced is not None else rowwise.numbered(remainder.tree)
        if self.branches is not None:
            self.tree = self.branches.tree
        self.extents = tuple(column.extent for column in facts.columns)
        self.pending = _pending(self.tree)
        # The value of a DP_ function is an exact number, but the error that it reports may not be known.
        inner = column_facts(remainder, self.tree) if self.pending else RelationFacts((), Level.EXACT)
        self.of_groups = facts.of_groups | (inner.of_groups & self.pending.keys())
        self.if_all_exist = (facts.if_all_exist | (inner.if_all_exist & self.pending.keys())) - self.of_groups
        levels = (Level.NEIGHBOURS, Level.EMPTY)
        self.empty = frozenset(index for index, column in enumerate(facts.columns) if column.level in levels)
        self.chosen = (facts.chosen | (inner.chosen & self.pending.keys())) - self._with_measured_bars(remainder)
        self.hidden: Mapping[str, tuple[str, ...]] = {} if self.traced is None else self.traced.extra
        self.sql = runnable(self.ordered(), remainder, self.hidden)
        self.direct: Direct | None = rowwise.direct(remainder, self.traced)
        self.reruns: dict[tuple[int, tuple[int, ...]], RerunQuery] = {}

    @property
    def parts(self) -> tuple[Traced, ...]:
        """The row-wise queries that form the remainder: itself, or the branches of UNION ALL; empty for other remainders."""
        if self.traced is not None:
            return (self.traced,)
        return () if self.branches is None else self.branches.parts

    def _with_measured_bars(self, remainder: Remainder) -> set[int]:
        """Return the positions of columns with chosen numbers whose error-bar ends were chosen with them."""
        blocks = [(part, block) for part in self.parts if (block := remainder.block(part.block)) is not None]
        barred = [[measured_name(tree, block) is not None for tree in part.outputs] for part, block in blocks]
        positions = enumerate(zip(*barred, strict=True))
        return {position for position, parts in positions if all(parts)} - self.pending.keys()

    def ordered(self) -> exp.Query:
        """Return the tree with an ORDER BY where the query has none and the engine could return any order (see `answer`)."""
        tree = self.tree.copy()
        mixes = any(tree.args.get(part) for part in ("group", "distinct", "joins"))
        mixes = mixes or (isinstance(tree, exp.SetOperation) and not isinstance(tree, exp.Union))
        exact = [position for position, noisy in enumerate(self.noisy, 1) if not noisy]
        if self.traced is None and mixes and exact and tree.args.get("order") is None:
            items = [
                exp.Ordered(this=exp.Literal.number(position)) for position in exact if position - 1 not in self.pending
            ]
            tree.set("order", exp.Order(expressions=items) if items else None)
        return tree


_shapes: RecentValues[_Shape] = RecentValues(_MOST_SHAPES, _MOST_SHAPES_CHARACTERS)


def shape_of(remainder: Remainder) -> _Shape:
    """Return the shape of a remainder, which questions share that differ in their blocks alone; `_MOST_SHAPES` are kept."""
    blocks = tuple(
        (
            block.name,
            block.columns,
            block.formulas,
            block.groups,
            block.estimated,
            frozenset(block.shown_from),
            frozenset(term.name for term in block.terms if term.whole),
        )
        for block in remainder.blocks
    )
    public, text = tuple((name, tuple(table.column_names)) for name, table in remainder.public.items()), remainder.text
    return _shapes.get((text, remainder.names, blocks, public), lambda: _Shape(remainder), len(text))


class _Run:
    """One remainder with its released numbers, traced and ready to run."""

    def __init__(
        self,
        sandbox: Sandbox,
        remainder: Remainder,
        confidence: float,
        extra: Extra | None = None,
        shape: _Shape | None = None,
    ) -> None:
        self.sandbox = sandbox
        self.remainder = remainder
        self.confidence = confidence
        self.shape = shape_of(remainder) if shape is None else shape
        self.noisy, self.traced, self.pending = self.shape.noisy, self.shape.traced, self.shape.pending
        self.listed = self.shape.empty & _of_series(remainder, self.shape.tree) if self.shape.empty else frozenset()
        self.of_groups, self.chosen = self.shape.of_groups - self.listed, self.shape.chosen
        self.if_all_exist = self.shape.if_all_exist - self.listed
        self.extra: Extra = self._extra() if extra is None else extra

    def _extra(self) -> Extra:
        """Return the values of DP_ functions over row-wise expressions, by block and hidden column."""
        if self.traced is None or not self.traced.intervals:
            return {}
        columns: dict[str, Floats] = {}
        for number, (word, tree) in enumerate(self.traced.intervals):  # a function may be an argument of a later one
            (interval,) = self._intervals([tree], None, columns, self.traced)
            columns[interval_name(number)] = _end(interval, word)
        return {self.traced.block: columns}

    def _intervals(
        self, trees: list[exp.Expr], rows: npt.NDArray[np.int64] | None, columns: dict[str, Floats], part: Traced
    ) -> list[Interval]:
        block = self.remainder.block(part.block)
        assert block is not None
        groups = ReleasedGroups(block, columns, rows, self.confidence, self.remainder.seed)
        with ExitStack() as scratches:
            return intervals(lambda: scratches.enter_context(self.sandbox.scratch()), groups, trees)

    def widen(self, row_count: int) -> list[str]:
        """Raise the confidence of bars as needed for rows that noise selected, and return remarks. If R rows are shown of m that
        might have been, intervals of confidence 1 - (1 - c) R / m keep the expected share of misses among the rows shown
        below 1 - c (false coverage rate: Benjamini and Yekutieli 2005, theorem 1)."""
        traced = self.shape.parts
        if not row_count or not any(part.selected for part in traced):
            return []
        most = max(row_count, self._candidates())
        if most == row_count:
            return []
        self.confidence = 1 - (1 - self.confidence) * row_count / most
        return [
            f"noise decides which rows are shown (of about {most} that might be): error bars are wide enough for those it chose; "
            "SET dp.simultaneous = off for bars of rows named beforehand"
        ]

    def _candidates(self) -> int:
        """Return how many rows might have been shown. Return the number of all groups where replicates of the noise cannot tell,
        for example because numbers were chosen."""
        everything = sum(block.rows for block in self.remainder.blocks)
        if any(block.groups.ends for block in self.remainder.blocks):
            return everything
        rerun = self.rerun(len(self.noisy) + 1, ())
        try:
            return min(candidates(self.sandbox, rerun), everything)
        except (Unmatched, Error):
            return everything

    def rowwise(self, positions: list[int], index: npt.NDArray[np.int64] | None) -> dict[int, Interval]:
        """Return, by position, intervals of those columns that are row-wise expressions over the groups shown."""
        parts = self.shape.parts
        traced_positions = [
            position for position in positions if parts and all(part.outputs[position] is not None for part in parts)
        ]
        if not traced_positions:
            return {}
        if self.traced is not None:
            return dict(zip(traced_positions, self._traced(self.traced, traced_positions, index), strict=True))
        assert index is not None
        branch, group = rowwise.place_in_branch(index)
        pieces_by_position: dict[int, list[tuple[npt.NDArray[np.bool_], Interval]]] = {
            position: [] for position in traced_positions
        }
        for number, part in enumerate(parts):
            rows = branch == number
            for position, interval in zip(
                traced_positions, self._traced(part, traced_positions, group[rows]), strict=True
            ):
                pieces_by_position[position].append((rows, interval))
        return {position: Interval.merged(pieces) for position, pieces in pieces_by_position.items()}

    def _traced(self, part: Traced, positions: list[int], rows: npt.NDArray[np.int64] | None) -> list[Interval]:
        trees = [tree for position in positions if (tree := part.outputs[position]) is not None]
        return self._intervals(trees, rows, self.extra.get(part.block, {}), part)

    def directly(self) -> _Rows | None:
        """Return the rows computed without the sandbox; None if that is not possible or there are more rows than it allows."""
        how = self.shape.direct
        block = None if how is None else self.remainder.block(how.block)
        if how is None or block is None or block.rows > self.sandbox.most_rows:
            return None
        return how.run(block, self.remainder.names)

    def in_sandbox(self, strict: bool = False) -> _Rows:
        """Return the rows computed in the sandbox, and their group or branch numbers if the query has such a column. `strict`: as
        in `Scratch.query`."""
        result = self.sandbox.query(self.shape.sql, self.tables(), strict=strict)
        count = len(self.remainder.names)
        index = np.asarray(result.column(count).to_numpy(), dtype=np.int64) if result.num_columns > count else None
        columns = [plain(values) for values in result.columns[:count]]
        return pa.Table.from_arrays(columns, names=list(self.remainder.names)), index

    def tables(self) -> dict[str, pa.Table]:
        blocks = {block.name: block.table(self.extra.get(block.name, {})) for block in self.remainder.blocks}
        return dict(self.remainder.public) | blocks

    def rerun(self, width: int, keys: tuple[int, ...]) -> Rerun:
        """Return a `Rerun` of the remainder. With `keys` by which rows are matched, rows that noise would cut off may stay."""
        again = self.shape.reruns.get((width, keys))
        if again is None:
            tree = self.shape.ordered()
            if keys:
                for part in ("order", "limit", "offset", "qualify", *(["having"] if tree.args.get("group") else [])):
                    tree.set(part, None)
            again = self.shape.reruns[width, keys] = RerunQuery(self.remainder, tree, width, keys, self.shape.hidden)
        return Rerun(self.remainder, again, self.extra, self.confidence, self.shape.extents)

    def replicated(
        self, table: pa.Table, index: npt.NDArray[np.int64] | None, positions: list[int]
    ) -> tuple[dict[int, Interval], str]:
        """Return intervals by position from replicates of the remainder, and ""; else empty intervals and the reason."""
        keys = tuple(
            position for position, noisy in enumerate(self.noisy) if not noisy and position not in self.pending
        )
        if index is not None:
            keys = (table.num_columns,) if self.traced is not None else (*keys, table.num_columns)
            table = table.append_column(ROW, pa.array(index))
        rerun = self.rerun(table.num_columns, keys)
        return replicated_intervals(self.sandbox, rerun, table, positions)


def _of_series(remainder: Remainder, tree: exp.Query) -> frozenset[int]:
    """Return positions of columns that are weighted sums, if every block was measured for running totals of a key or pools such
    a measurement: all values of the key are then present and consecutive, so what is computed over them refers to all of them."""
    if not all(any(map(_is_series, block.terms)) for block in remainder.blocks):
        return frozenset()
    return frozenset(column_facts(remainder, tree).sums)


def _is_series(term: ReleasedTerm) -> bool:
    return isinstance(term, PooledTerm) or series_law(term.noise) is not None


def _pending(tree: exp.Query) -> dict[int, str]:
    """Replace in `tree` DP_ functions that are whole output columns by their arguments, and return position and function name;
    their bars come from replicates. Refuse DP_ functions anywhere else."""
    pending: dict[int, str] = {}
    names: set[str] = set()
    for position, item in enumerate(tree.expressions if isinstance(tree, exp.Select) else ()):
        node = item.unalias()
        word = interval_function(node)
        if word is not None:
            node.replace(node.expressions[0])
            pending[position] = word
            names.add(item.alias_or_name.lower())
    for node in tree.find_all(exp.Anonymous, exp.Column, exp.Ordered):
        word = interval_function(node) or (next(iter(pending.values())) if _refers(node, names, pending) else None)
        if word is not None:
            raise refuse("interval_place", function=word.upper(), position=place(node))
    return pending


def _refers(node: exp.Expr, names: set[str], pending: Mapping[int, str]) -> bool:
    """Return whether a node names a `pending` column, filled in after the query has run (ORDER BY, WHERE, QUALIFY)."""
    if isinstance(node, exp.Column):
        return node.name.lower() in names and not node.table
    return isinstance(node, exp.Ordered) and node.this.is_int and int(node.this.name) - 1 in pending
