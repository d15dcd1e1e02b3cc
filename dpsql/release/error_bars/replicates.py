"""Error bars of remainders that are not row by row: the whole remainder runs again over other numbers in place of the released.

All variants of the numbers run as one lateral join, and rows of the answer are matched by their exact columns. There are two
ways:

*Weighted sums.* Let an output be T(t) = T(0) + sum of w_j t_j over the cells t_j of all released terms, with weights that do not
depend on noise (`column_facts.Form`). Then its error is the sum of w_j e_j with e_j the error of t_j. If all noise is normal, so
is that sum: the bar is the normal quantile of its standard deviation, whatever the covariance of e, without Monte Carlo error.
Otherwise it is the quantile of the same sum of drawn noise (`laws.replicates` has the joint law of all cells of a term). The
variants are unit vectors: w_j = T(j-th unit vector) - T(0). The number shown must equal T(0) + sum of w_j t_j, or the output has
the bar of the second way: this check detects an expression that was wrongly taken to be linear.

*The parametric bootstrap* (Efron and Tibshirani 1993, chapter 6) for all others: noise is drawn again for each replicate. The
last replicate has the numbers shown and must reproduce the answer; if it does not, the engine did not repeat the query, and no
error bar is given. There are several families of replicates (`intervals` has the rule that combines them):

- t - z*, for percentiles.
- u + z* together with u, for errors. u is t with its groups shrunk toward their mean until they vary as much as the exact groups
  are estimated to (Louis 1984). For released numbers vary more than exact ones, and the error of a spread or an extreme over
  groups is what noise adds to the variation of the *exact* groups.
- e + z*, where e has all groups equal to their mean. If the answer is among the results of this family, the data may be such,
  and the bar reaches to T(e) (a test is inverted; this keeps a spread of 0 inside a bar).
- b*, for outputs that aggregate over groups: likely exact groups given t, normal around a mean and with a variance that are drawn
  with the uncertainty that the groups leave (empirical Bayes with a bootstrap of its parameters: Morris 1983, Laird and Louis
  1987). A sum of the groups above a threshold jumps where groups pass it, and u alone is on one side.

A maximum or minimum is selected for its noise, which no replicate can reproduce. So further replicates have all measures at the
lower and at the upper ends of their bars (`extremes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from dpsql.errors.exceptions import Error
from dpsql.noise.perturb import ReleasedTerm
from dpsql.privacy.mechanisms.registry import is_shared, series_law
from dpsql.release.error_bars import laws
from dpsql.release.error_bars.column_facts import Form, column_facts
from dpsql.release.error_bars.extremes import Extreme, bring_near, extremes, rows_below
from dpsql.release.error_bars.intervals import (
    Interval,
    Measures,
    ReleasedGroups,
    hull_of,
    intervals,
    number_of_draws,
    percentiles,
)
from dpsql.release.error_bars.laws import Floats, known_law
from dpsql.release.error_bars.rowwise import Traced
from dpsql.release.formulas import Extent, typed
from dpsql.release.remainder import DIALECT, ConsistentTerm, PooledTerm, ReleasedBlock, Remainder, column, runnable
from dpsql.release.sandbox import Sandbox, Scratch, floats
from dpsql.storage.records import dataclass

_PART_ROWS = 1_000_000
_DRAWS, _DRAW, _ROWS, _AT, _VARIANTS = "dp#draws", "dp#draw", "dp#answer", "dp#at", "dp#variants"


class RerunQuery:
    """A query over the tables of a remainder that is run again, and what is the same for all numbers: `tree` has `width` columns;
    those at the positions `keys` identify a row. `hidden`: hidden columns of the blocks, as for the answer."""

    def __init__(
        self,
        remainder: Remainder,
        tree: exp.Query,
        width: int,
        keys: tuple[int, ...],
        hidden: Mapping[str, Sequence[str]],
    ) -> None:
        self.tree, self.width, self.keys = tree, width, keys
        inner = runnable(tree.copy(), remainder, hidden, _this_draw)
        labels = ", ".join(f'"c{position}"' for position in range(width))
        self._rows = f'AS "{_DRAWS}"("{_DRAW}") CROSS JOIN LATERAL ({inner}) AS q({labels})'
        self.extremes = extremes(tree)
        aggregates = (node.find_ancestor(exp.Window, exp.Query) for node in tree.find_all(exp.AggFunc))
        self.aggregates = any(not isinstance(around, exp.Window) for around in aggregates)
        self._sums: dict[int, Form] | None = None

    def rows(self, variants: range) -> str:
        """Return the rows q of these variants, each with its number, as a FROM item."""
        return f"range({variants.start}, {variants.stop}) {self._rows}"

    def sums(self, remainder: Remainder) -> dict[int, Form]:
        """Return which columns are weighted sums of noisy numbers (`column_facts`)."""
        if self._sums is None:
            self._sums = column_facts(remainder, self.tree).sums
        return self._sums


@dataclass(frozen=True, eq=False)
class Rerun:
    """A remainder to be run again. `extra`: hidden columns of the blocks. `extents`: intervals that columns cannot leave."""

    remainder: Remainder
    query: RerunQuery
    extra: Mapping[str, Mapping[str, Floats]]
    confidence: float
    extents: Sequence[Extent] = ()

    @property
    def groups(self) -> int:
        return sum(block.rows for block in self.remainder.blocks)

    @cached_property
    def families(self) -> int:
        """The number of families: t - z* and u + z*; e + z* with enough groups; b* if the query aggregates over these."""
        if all(block.rows < _LEAST_GROUPS for block in self.remainder.blocks):
            return 2
        return 4 if self.query.aggregates else 3


class Unmatched(Exception):
    """Raised when rows of the answer cannot be matched in its replicates; the text says why."""


@dataclass(frozen=True, eq=False)
class Variants:
    """`count` variants of the terms of a block (`terms` by name, shape (variants, groups)), followed by the variants of measures
    in `appended`. `extra`: hidden columns of the block."""

    block: ReleasedBlock
    extra: Mapping[str, Floats]
    terms: Mapping[str, Floats]
    count: int
    appended: Sequence[Mapping[str, Floats]] = ()

    def table(self, part: range) -> pa.Table:
        """Return keys, measures, hidden columns and variant number for the variants in `part`."""
        rows = self.block.rows
        indexes = pa.array(np.tile(np.arange(rows, dtype=np.int64), len(part)))
        columns = self.block.table(self.extra)
        columns = columns.select([name for name in columns.column_names if name not in self.terms]).take(indexes)
        terms = {name: values[part.start : part.stop] for name, values in self.terms.items()}
        measures = Measures(self.block).values({name for name, _, _ in self.block.formulas}, terms)
        for index, values in enumerate(self.appended):
            if self.count + index in part:
                measures = {name: np.concatenate((above, values[name][None])) for name, above in measures.items()}
        for name, _, type_ in self.block.formulas:
            flat = np.broadcast_to(measures[name], (len(part), rows)).reshape(-1)
            columns = columns.append_column(name, typed(np.where(np.isfinite(flat), flat, np.nan), type_))
        return columns.append_column(_DRAW, pa.array(np.repeat(np.arange(part.start, part.stop), rows)))


def _run_again(
    scratch: Scratch,
    rerun: Rerun,
    answer: pa.Table,
    positions: Sequence[int],
    blocks: Mapping[str, Variants],
    count: int,
) -> tuple[dict[int, Floats], npt.NDArray[np.bool_]]:
    """Return the columns at `positions` in `count` variants, each of shape (variants, rows of the answer), NaN where there is no
    number, and which rows each variant has. Raises Unmatched if two rows of a variant have the same keys."""
    keys = rerun.query.keys
    on = " AND ".join(f'q."c{position}" IS NOT DISTINCT FROM a."c{position}"' for position in keys) or "TRUE"
    picked = "".join(f', q."c{position}"' for position in positions)
    # Registering a table takes as long as a small statement.
    matched = f'"{_ROWS}" AS a' if keys else f'range({len(answer)}) AS a("{_AT}")'
    tables = dict(rerun.remainder.public)
    if keys:
        rows = {f"c{position}": answer.column(position) for position in keys}
        tables[_ROWS] = pa.table({_AT: pa.array(np.arange(len(answer))), **rows})
    present = np.zeros((count, len(answer)), dtype=bool)
    cells = {position: np.full(present.shape, np.nan) for position in positions}
    size = max(1, _PART_ROWS // max(1, rerun.groups + len(answer)))  # as many as the sandbox has scratch for
    for start in range(0, count, size):
        part = range(start, min(start + size, count))
        variants = (
            f'SELECT "{_DRAWS}"."{_DRAW}", a."{_AT}"{picked} FROM {rerun.query.rows(part)} JOIN {matched} ON {on}'
        )
        # Materialise: below the LIMIT that the sandbox adds, DuckDB takes 100 times as long for a block that is read twice.
        sql = f'WITH "{_VARIANTS}" AS MATERIALIZED ({variants}) SELECT * FROM "{_VARIANTS}"'
        tables |= {name: block.table(part) for name, block in blocks.items()}
        result = scratch.query(sql, tables, most_rows=2 * _PART_ROWS + len(part) * len(answer))
        draw, row = (result.column(i).to_numpy().astype(np.int64) for i in (0, 1))
        index = draw * len(answer) + row
        present.flat[index] = True
        if np.count_nonzero(present[part.start : part.stop]) < len(index):
            raise Unmatched("its rows have no key; select the group keys too")
        for number, position in enumerate(positions, 2):
            cells[position].flat[index] = floats(result.column(number))
    return cells, present


def _this_draw(query: exp.Select) -> exp.Select:
    """Return a block's query over its measures, restricted to the current variant of the lateral join."""
    query.set("expressions", [column(item.alias_or_name) for item in query.expressions])
    return query.where(exp.EQ(this=column(_DRAW), expression=column(_DRAW, _DRAWS)), dialect=DIALECT)


# --- weighted sums ----------------------------------------------------------------------------------------------------

MOST_CELLS_OF_SUMS = 2_000
"""Most cells of all terms together, because each cell needs a variant of all groups."""
_SUM_DRAWS = (3_999, 1_999, 999)
_MOST_DRAWN = 2_000_000
"""Numbers of draws, and most drawn cells above which fewer are drawn."""
_SEED = "weighted sums"
_MOST_WEIGHTED = 4_000_000
_CLOSE = 1e-9


def replicated_intervals(
    sandbox: Sandbox, rerun: Rerun, answer: pa.Table, positions: Sequence[int]
) -> tuple[dict[int, Interval], str]:
    """Return the intervals of columns of `answer`, by position, and an empty text; where they cannot be computed, empty intervals
    and the reason. `answer` has the columns of `rerun.query`."""
    by_position: dict[int, Interval] = {}
    try:
        by_position = _linear_intervals(sandbox, rerun, answer, positions)
        rest = [position for position in positions if position not in by_position]
        return by_position | (_bootstrap(sandbox, rerun, answer, rest) if rest else {}), ""
    except (Unmatched, Error) as reason:
        problem = reason.message if isinstance(reason, Error) else str(reason)
    return {position: Interval.nothing(len(answer)) for position in positions} | by_position, problem


def _linear_intervals(
    sandbox: Sandbox, rerun: Rerun, answer: pa.Table, positions: Sequence[int]
) -> dict[int, Interval]:
    """Return the intervals of the columns linear in noise. Raises Unmatched, and the refusals of `Scratch.query`."""
    blocks = rerun.remainder.blocks
    terms = [(block, term) for block in blocks for term in block.terms]
    cells, rows = sum(len(term.values) for _, term in terms), rerun.groups + len(answer)
    few = 0 < cells <= MOST_CELLS_OF_SUMS and cells * rows <= _MOST_WEIGHTED
    if not few or not all(known_law(term) for _, term in terms):
        return {}
    forms = rerun.query.sums(rerun.remainder)
    chosen = [position for position in positions if position in forms]
    if not chosen:
        return {}
    tables, first = {}, 1
    for block in blocks:
        vectors, first = _unit_vectors(block, cells, first)
        tables[block.name] = Variants(block, rerun.extra.get(block.name, {}), vectors, cells + 1)
    with sandbox.scratch() as scratch:
        numbers, _ = _run_again(scratch, rerun, answer, chosen, tables, cells + 1)
    intervals = {}
    for position in chosen:
        value = floats(answer.column(position))
        half = _half_widths(numbers[position], value, terms, rerun.confidence)
        if half is not None:
            half = np.floor(half + 0.5) if forms[position] is Form.WHOLE else half
            low, high = hull_of([(value - half, value + half)], rerun.extents[position])
            bar = Interval.of(value, low, high, rerun.extents[position])
            intervals[position] = Interval(value, bar.low, bar.high, bar.unknown & np.isfinite(value))
    return intervals


def _unit_vectors(block: ReleasedBlock, cells: int, first: int) -> tuple[Mapping[str, Floats], int]:
    """Return the terms of a block in all variants, each with at most one cell that is not 0, and the number of the variant after
    the last one of this block. `first`: the variant of the block's first cell."""
    terms = {}
    for term in block.terms:
        terms[term.name] = np.zeros((cells + 1, block.rows))
        terms[term.name][first + np.arange(block.rows), np.arange(block.rows)] = _unit(term)
        first += block.rows
    return terms, first


def _unit(term: ReleasedTerm) -> float:
    """Return a power of two near a term's standard deviation, whole for whole terms: differences of sums are exact, or nearly."""
    near = 2.0 ** round(math.log2(deviation)) if (deviation := term.standard_deviation()) > 0 else 1.0
    return max(near, 1.0) if term.whole else near


def _half_widths(
    numbers: Floats, value: Floats, terms: Sequence[tuple[ReleasedBlock, ReleasedTerm]], confidence: float
) -> Floats | None:
    """Return the half width of each row, NaN where the row has no value; None if some row is not a weighted sum of the terms."""
    nothing = np.isnan(value)
    if not np.isfinite(numbers[:, ~nothing]).all():
        return None
    constant, above = numbers[0], np.where(nothing, 0.0, numbers[1:] - numbers[0])
    ends = np.cumsum([len(term.values) for _, term in terms])
    weights = [part.T / _unit(term) for part, (_, term) in zip(np.split(above, ends[:-1]), terms, strict=True)]
    total, size = constant.copy(), np.abs(constant)
    for of_term, (_, term) in zip(weights, terms, strict=True):
        released = np.asarray(term.values, dtype=np.float64)
        total, size = total + of_term @ released, size + np.abs(of_term) @ np.abs(released)
    if not (np.abs(total - value) <= _CLOSE * np.maximum(size, 1e-300))[~nothing].all():
        return None
    if all(term.noise.normal and not isinstance(term, ConsistentTerm) for _, term in terms):
        variance = sum(_variances(term, of_term) for of_term, (_, term) in zip(weights, terms, strict=True))
        half = laws.normal_quantile(confidence) * np.sqrt(variance)
    else:
        half = _drawn(weights, terms, confidence)
    return np.where(nothing, np.nan, half)


def _drawn(weights: Sequence[Floats], terms: Sequence[tuple[ReleasedBlock, ReleasedTerm]], confidence: float) -> Floats:
    """Return for each row the quantile of the size of a weighted sum of drawn noise. Noise is drawn twice `draws` times."""
    cells = sum(len(term.values) for _, term in terms)
    draws = next((number for number in _SUM_DRAWS if 2 * number * cells <= _MOST_DRAWN), _SUM_DRAWS[-1])
    noise = [laws.replicates(term, _SEED, block.name, draws).reshape(2 * draws, -1).T for block, term in terms]
    rank = min(math.ceil(confidence * (2 * draws + 1)), 2 * draws) - 1
    rows, half = len(weights[0]), []
    for start in range(0, rows, size := max(1, _MOST_DRAWN // (2 * draws))):
        parts = (of_term[start : start + size] @ drawn for of_term, drawn in zip(weights, noise, strict=True))
        half.append(np.partition(np.abs(sum(parts)), rank, axis=1)[:, rank])
    return np.concatenate([np.empty(0), *half])


def _variances(term: ReleasedTerm, weights: Floats) -> Floats:
    """Return the variances of the errors of weighted sums of the cells of a term; `weights` has shape (sums, cells)."""
    if isinstance(term, PooledTerm):
        return term.variances(weights)
    if (law := series_law(term.noise)) is not None:
        return np.asarray(law.variances(weights) * term.noise_unit**2)
    return np.asarray(laws.deviation_of(term) ** 2 * np.sum(weights**2, axis=1))


# --- the parametric bootstrap -----------------------------------------------------------------------------------------

_MOST_CELLS = 1_000_000
_MOST_REPLICATES = 399
_MOST_ROWS = 200_000
_LEAST_PRESENT = 0.5
_LEAST_GROUPS = 8
"""Least number of groups whose variation is estimated."""
_CANDIDATE_DRAWS = 39
_MORE_NOISE = 1.5
"""Factor of the noise under which rows must stay the same to count as not chosen by noise: a probability of e**-d at this noise
is e**(-1.5 d) at the true noise."""
_BOUNDS = {Extreme.NONE: (), Extreme.INSIDE: (0, 1), Extreme.HIGHEST: (4, 3), Extreme.LOWEST: (2, 5)}
"""The low and the high end between which an extreme lies, by their places in the result of `_ends`."""


def _bootstrap(sandbox: Sandbox, rerun: Rerun, answer: pa.Table, positions: Sequence[int]) -> dict[int, Interval]:
    """Return the interval of each column at `positions`. Raises Unmatched, and the refusals of `Scratch.query`."""
    blocks = rerun.remainder.blocks
    groups = rerun.groups + len(answer)
    _check_drawable(rerun, groups)
    found_at = {position: _extreme_at(sandbox, rerun, position) for position in positions}
    kinds = {position: kind for position, (kind, _) in found_at.items()}
    below = [(kind, rows) for kind, rows in found_at.values() if rows is not None]
    draws = number_of_draws(groups, _MOST_CELLS, _MOST_REPLICATES, rerun.confidence)
    if set(kinds.values()) <= {Extreme.HIGHEST, Extreme.LOWEST}:
        draws = min(draws, _CANDIDATE_DRAWS)  # the ends of bars suffice
    with sandbox.scratch() as scratch:
        last = {
            block.name: [*_ends(scratch, rerun, block, set(kinds.values())), _as_displayed(block)] for block in blocks
        }
        if below:
            bring_near(scratch, rerun.remainder, rerun.confidence, below, last[below[0][1].block])
        ends = max((len(appended) for appended in last.values()), default=1) - 1
        tables = {block.name: _replicates(rerun, block, draws, rerun.families, last[block.name]) for block in blocks}
        count = rerun.families * (draws + 1) + ends + 1
        cells, present = _run_again(scratch, rerun, answer, positions, tables, count)
    return {
        position: _interval(
            floats(answer.column(position)), cells[position], present, rerun, position, ends, kinds[position]
        )
        for position in positions
    }


def _check_drawable(rerun: Rerun, groups: int) -> None:
    if groups > _MOST_ROWS:
        raise Unmatched("the results have too many groups")
    if not all(known_law(term) for block in rerun.remainder.blocks for term in block.terms):
        raise Unmatched("a mechanism has no law of noise to draw from")


def _extreme_at(sandbox: Sandbox, rerun: Rerun, position: int) -> tuple[Extreme, Traced | None]:
    """Return how extremes enter a column and, if it is the extreme of one measure, the trace of the rows that it is taken over.
    An extreme over rows that noise chooses counts as INSIDE.

    Noise does not choose the rows if they are the same in each of a few replicates with `_MORE_NOISE` times the noise.
    """
    roles = rerun.query.extremes
    kind = roles[position] if position < len(roles) else Extreme.INSIDE
    if kind not in (Extreme.HIGHEST, Extreme.LOWEST):
        return kind, None
    below = rows_below(rerun.remainder, rerun.query.tree, position)
    if below is None:
        return Extreme.INSIDE, None
    if not below.selected:
        return kind, below
    width = len(below.outputs) + 1
    again = RerunQuery(rerun.remainder, below.tree, width, (width - 1,), below.extra)
    always, ever = surely_and_maybe(sandbox, Rerun(rerun.remainder, again, {}, rerun.confidence), spread=_MORE_NOISE)
    return (kind, below) if always == ever else (Extreme.INSIDE, None)


def candidates(sandbox: Sandbox, rerun: Rerun) -> int:
    """Return how many different rows might have been shown: those that are in any of a few replicates. Their noise is doubled,
    because the noise of a row that is shown is biased. The last column identifies rows.

    Rows in exactly one replicate tell how likely a row is that no replicate has shown (Good 1953); one standard deviation is
    added to be safe (Esty 1983). Raises the refusals of `Scratch.query`, and Unmatched.
    """
    counts = "SELECT COUNT(*), COUNT(*) FILTER (WHERE n = 1), COUNT(*) FILTER (WHERE n = 2), SUM(n)::BIGINT FROM ({})"
    times = f'SELECT COUNT(*) AS n FROM {{}} GROUP BY q."c{rerun.query.width - 1}"'
    result = _replicated_rows(sandbox, rerun, counts.format(times), 2.0)
    different, singles, pairs, total = (int(column[0].as_py() or 0) for column in result.columns)
    if not singles:
        return different
    coverage = 1 - (singles + math.sqrt(singles + 2 * pairs)) / total
    return math.ceil(different / coverage) if coverage > 0 else rerun.groups


def _replicated_rows(sandbox: Sandbox, rerun: Rerun, sql: str, spread: float) -> pa.Table:
    """Return the result of `sql` over a few replicates t - z*: rows `q` and the number of the replicate."""
    _check_drawable(rerun, rerun.groups)
    part = range(_CANDIDATE_DRAWS + 1)
    tables = dict(rerun.remainder.public)
    for block in rerun.remainder.blocks:
        tables[block.name] = _replicates(rerun, block, _CANDIDATE_DRAWS, 1, spread=spread).table(part)
    return sandbox.query(sql.format(rerun.query.rows(part)), tables)


def surely_and_maybe(sandbox: Sandbox, rerun: Rerun, spread: float = 1.0) -> tuple[int, int]:
    """Return how many rows, identified by their keys, are in all of a few replicates t - z*, and in any of them.
    `spread` multiplies the noise.

    Raises the refusals of `Scratch.query`, and Unmatched.
    """
    keys = ", ".join(f'q."c{index}"' for index in rerun.query.keys)
    rows = f'SELECT COUNT(DISTINCT "{_DRAW}") AS draws FROM {{}} GROUP BY {keys}'
    sql = f"SELECT COUNT(*) FILTER (WHERE draws = {_CANDIDATE_DRAWS + 1}), COUNT(*) FROM ({rows})"
    always, ever = _replicated_rows(sandbox, rerun, sql, spread).to_pylist()[0].values()
    return int(always), int(ever)


def _replicates(
    rerun: Rerun,
    block: ReleasedBlock,
    draws: int,
    families: int,
    appended: Sequence[Mapping[str, Floats]] = (),
    spread: float = 1.0,
) -> Variants:
    """Return variants of the terms of a block in that many `families`: t (as released), t - z* for each draw; u, u + z* for each
    draw; e, e + z* for each draw; t, b* for each draw. `spread` multiplies the noise of t - z*."""
    seed = rerun.remainder.seed
    terms = {term.name: _replicated(seed, block, term, draws, families, spread) for term in block.terms}
    return Variants(block, rerun.extra.get(block.name, {}), terms, families * (draws + 1), appended)


def _replicated(
    seed: str, block: ReleasedBlock, term: ReleasedTerm, draws: int, families: int, spread: float
) -> Floats:
    """Return the variants of one term in the order of `_replicates`, shape (families (draws + 1), groups)."""
    released = np.asarray(term.values, dtype=np.float64)
    key = f"{seed}/{block.name}/{term.name}"
    noise, drawn = laws.replicates(term, seed, block.name, draws)
    least = block.shown_from.get(term.name)
    if least is None:
        again = released - spread * noise
    else:
        uniform = laws.uniforms(key, 2 * draws * len(released)).reshape(2, draws, len(released))
        again = np.empty_like(uniform[0])  # there may be no group
        for group in range(len(released)):
            again[:, group] = laws.values_given_shown(term, released[[group]], least, uniform[0][:, group])[0]
    parts = [released[None], again]
    if families > 1:
        shrunk = _drawn_together(released, term.standard_deviation())
        parts += [shrunk[None], shrunk + drawn]
    if families > 2:
        equal = np.full_like(released, released.mean() if len(released) >= _LEAST_GROUPS else np.nan)
        parts += [equal[None], equal + drawn]
    if families > 3:
        joint = drawn if isinstance(term, (ConsistentTerm, PooledTerm)) or is_shared(term.noise) else None
        parts += [released[None], _likely(released, term.standard_deviation(), f"{key}/likely", draws, joint)]
    return np.concatenate(parts)


def _ends(scratch: Scratch, rerun: Rerun, block: ReleasedBlock, kinds: set[Extreme]) -> list[dict[str, Floats]]:
    """Return, if any column has an extreme, all measures at the low and the high ends of bars that hold for all groups at once,
    then of bars that hold for each group (`extremes`), then the first two again, for `bring_near`. A measure without ends has
    its released value."""
    if kinds <= {Extreme.NONE}:
        return []
    names = [name for name, _, _ in block.formulas]
    terms = {term.name: np.asarray(term.values, dtype=float) for term in block.terms}
    released = Measures(block).values(set(names), terms)
    ends = []
    for confidence in (1 - (1 - rerun.confidence) / max(1, block.rows), rerun.confidence):
        groups = ReleasedGroups(block, {}, None, confidence, rerun.remainder.seed)
        bars = dict(zip(names, intervals(lambda: scratch, groups, [column(name) for name in names]), strict=True))
        for side in ("low", "high"):
            of_side = {name: getattr(bars[name], side) for name in names}
            ends.append({name: np.where(np.isfinite(of_side[name]), of_side[name], released[name]) for name in names})
    return [*ends, *(dict(side) for side in ends[:2])]


def _as_displayed(block: ReleasedBlock) -> dict[str, Floats]:
    """Return the measures that the answer itself was computed from."""
    terms = {term.name: np.asarray(term.values, dtype=float) for term in block.terms}
    return Measures(block).values(set(block.plug_ins), terms) | block.estimates


def _drawn_together(values: Floats, deviation: float) -> Floats:
    """Return the numbers of groups shrunk toward their mean until their variance is that of `values` minus that of the noise."""
    if len(values) < _LEAST_GROUPS or deviation == 0:
        return values
    if (unit := _unit_of(values, deviation)) != 1:
        return unit * _drawn_together(values / unit, deviation / unit)
    variance, mean = float(np.var(values)), float(np.mean(values))
    share = np.sqrt(max(0.0, 1 - deviation**2 / variance)) if variance > 0 else 0.0
    return np.asarray(mean + share * (values - mean))


def _unit_of(values: Floats, deviation: float) -> float:
    """Return a power of two as a unit in which no square of the numbers overflows a double: 1 unless one of them is huge."""
    largest = max(deviation, float(np.max(np.abs(values), initial=0.0)))
    return 2.0**600 if 2.0**500 < largest < math.inf else 1.0


def _likely(values: Floats, deviation: float, key: str, draws: int, joint: Floats | None = None) -> Floats:
    """Return draws of likely exact numbers of groups, shape (draws, groups); NaN for fewer than `_LEAST_GROUPS`.

    `joint`: draws of the noise of all groups together, if it is not independent.

    First draw the variance of the released numbers as for a normal sample (chi-square by Wilson and Hilferty 1931) and subtract
    that of the noise; then draw the mean, then each group between the mean and its released number.
    """
    if (unit := _unit_of(values, deviation)) != 1:
        return unit * _likely(values / unit, deviation / unit, key, draws, None if joint is None else joint / unit)
    groups = len(values)
    if groups < _LEAST_GROUPS or deviation == 0:
        return np.full((draws, groups), np.nan if groups < _LEAST_GROUPS else values)
    normal = _normal(f"{key}/groups", draws * (groups + 2)).reshape(draws, groups + 2)
    freedom = 2 / (9 * (groups - 1))
    chi = np.maximum(1 - freedom + np.sqrt(freedom) * normal[:, :1], 0.05) ** 3
    between = np.maximum(np.var(values) / chi - deviation**2, 0.0)
    whole = between + deviation**2
    mean = np.mean(values) + np.sqrt(whole / groups) * normal[:, 1:2]
    share = between / whole
    noise = deviation * normal[:, 2:] if joint is None else joint
    return np.asarray(mean + share * (values - mean) + np.sqrt(share) * noise)


def _normal(key: str, count: int) -> Floats:
    """Return standard normal numbers from `key` (Box and Muller 1958)."""
    uniform = laws.uniforms(key, 2 * count).reshape(2, count)
    return np.asarray(np.sqrt(-2 * np.log(uniform[0])) * np.cos(2 * np.pi * uniform[1]))


def _interval(
    displayed: Floats,
    cells: Floats,
    present: npt.NDArray[np.bool_],
    rerun: Rerun,
    position: int,
    ends: int,
    extreme: Extreme,
) -> Interval:
    """Return the interval of one column. `cells`, by rows of the answer: replicates in the order of `_replicates`, then `ends`
    variants at ends of bars, then the answer. Rows in fewer than half of the replicates get no ends. Raises Unmatched when the
    last replicate is not the answer."""
    if not np.allclose(cells[-1], displayed, rtol=1e-9, atol=1e-12, equal_nan=True):
        raise Unmatched("the order of its rows decides the result")
    value, last = cells[0], len(cells) - 1 - ends
    bounds, cells, present = cells[last:-1][list(_BOUNDS[extreme])], cells[:last], present[:last]
    shape = (rerun.families, len(cells) // rerun.families, len(value))
    finite = np.where(np.isfinite(cells), cells, np.nan).reshape(shape)
    present_by_family = present.reshape(shape)
    low, high = np.full(len(value), np.nan), np.full(len(value), np.nan)
    seldom = present_by_family[0, 1:].mean(axis=0) < _LEAST_PRESENT
    always = present.all(axis=0)
    # Rows that are in all replicates are computed together, other rows one by one.
    for rows in [np.flatnonzero(always), *np.flatnonzero(~always & ~seldom)[:, None]]:
        if len(rows):
            families = [finite[family][:, rows] for family in range(rerun.families)]
            present_in = [present_by_family[family, 1:, rows[0]] for family in range(rerun.families)]
            drawn = [family[1:][draws].T for family, draws in zip(families, present_in, strict=True)]
            centres = [family[0] for family in families]
            low[rows], high[rows] = _ends_of(value[rows], drawn, centres, bounds[:, rows], rerun, position, extreme)
    interval = Interval.of(value, low, high, rerun.extents[position])
    null = ~np.isfinite(cells).any(axis=0)  # whatever the noise is, such as NULL in a branch of a UNION
    return Interval(value, interval.low, interval.high, interval.unknown & ~seldom & ~null).around_displayed(displayed)


def _ends_of(
    value: Floats,
    drawn: Sequence[Floats],
    centres: Sequence[Floats],
    bounds: Floats,
    rerun: Rerun,
    position: int,
    extreme: Extreme,
) -> tuple[Floats, Floats]:
    """Return the hull of percentiles, of reflected errors, of the answer for equal groups if the groups may be equal, of likely
    answers, and of `bounds`; `bounds` alone where an extreme lies between them.

    `drawn`: outputs for t - z*, u + z*, e + z* and b*, by rows and draws; `centres`: for t, u and e, by rows.
    """
    if extreme in (Extreme.HIGHEST, Extreme.LOWEST) and np.isfinite(bounds).all():
        return hull_of([(bounds[0], bounds[1])], rerun.extents[position])
    ends = [percentiles(drawn[0], rerun.confidence)]
    with np.errstate(invalid="ignore"):
        if drawn[1].size:
            first, last = percentiles(drawn[1], rerun.confidence)
            ends.append((value - last + centres[1], value - first + centres[1]))
        if len(drawn) > 2 and drawn[2].size:
            first, last = percentiles(drawn[2], rerun.confidence)
            equal = np.where((first <= value) & (value <= last), centres[2], np.nan)
            ends.append((equal, equal))
    if len(drawn) == 4 and drawn[3].size:
        first, last = percentiles(drawn[3], rerun.confidence)
        ends.append((np.where(np.isfinite(first), first, np.nan), np.where(np.isfinite(last), last, np.nan)))
    if len(bounds):
        ends.append((np.fmin.reduce(bounds), np.fmax.reduce(bounds)))
    return hull_of(ends, rerun.extents[position])
