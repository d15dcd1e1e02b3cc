"""SQL text of a bounded block: the single aggregation that an engine runs, written from few node types.

Protected tables are read through their bounded view: the one that the contribution index has prepared, else the window
that computes it (`dpsql.engine.emit.bounded_view`). Both contain the same rows.
"""

from __future__ import annotations

from functools import cache, partial
from math import prod

from dpsql.aggregates.moments import presence
from dpsql.engine.dialect import Dialect, parametrised
from dpsql.engine.emit.bounded_view import ROWS_OF_UNIT, rank
from dpsql.engine.emit.clipping import Grouped, RowTerm, clipped_total, shared_sum, shares
from dpsql.engine.emit.columns import RowsOf, in_groups, sent_key, strict
from dpsql.engine.emit.group_caps import within_limits
from dpsql.engine.emit.quantization import (
    both_there,
    companion_sum,
    distinct_sum,
    kept_integer,
    lower_part,
    moments,
    pair_part,
    power_of_moments,
    power_sum,
    row_integer,
    value_text,
)
from dpsql.engine.emit.relations import RelationText
from dpsql.engine.query import UNIT_ID, UNIT_SETS, EngineQuery, RowsRead, View
from dpsql.functions.key_columns import within_domains
from dpsql.plan.intervals import Type
from dpsql.plan.plan import (
    UNIT,
    BoundedBlock,
    Call,
    Expr,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Term,
    TermKind,
)
from dpsql.plan.stability import narrowed, tables
from dpsql.pricing.bounding import SELECTION
from dpsql.pricing.joint_sums import factors_of
from dpsql.pricing.row_export import ExportPlan
from dpsql.storage.records import dataclass, replace

# SQL text that chooses the distinct values, at most l (`max_values`), that each unit contributes (privacy.md 4).
# A unit's distinct pairs of a group and a value are ordered by a keyed hash of the unit and the pair, and numbered from 1:
# the pair's *place*. Only rows that have a value, pass the condition and belong to a group count; rows with equal pairs have
# equal places, so that repetitions do not use up places. A term counts the values that some unit has at one of its first l
# places.
#
# A unit's places depend only on its own rows and the key. So adding a unit keeps all values that were counted before, and
# adds at most l, each in one group: the l pairs at its own first places. Removing a unit removes at most l. Places by rows
# instead of pairs would let a unit that repeats one value lose all others, and places within each group would let it
# contribute l values to every group.


def place_name(term: Term) -> str:
    """Return the name of the column of a row's place for a term."""
    return f'"place.{term.name}"'


def with_places(
    rows: str, placed: tuple[RowTerm, ...], keys: tuple[str, ...], inside: str, key: str, dialect: Dialect
) -> str:
    """Return a SELECT of `rows` with each row's place for every term of `placed`. `inside`: the condition for rows that belong
    to a group ("": all do); `key`: the secret of keyed orders. The place of a row that does not count is meaningless."""
    unit = dialect.identifier(UNIT)
    columns = []
    for part in placed:
        counted = " AND ".join(filter(None, (_present(part, dialect), part.condition, inside)))
        partition = [unit, f"CASE WHEN {counted} THEN 1 ELSE 0 END"]
        index = rank(dialect, key, partition, (*keys, _value(part, dialect)), "dense_rank")
        columns.append(f"{index} AS {place_name(part.term)}")
    return f"SELECT *, {', '.join(columns)} FROM {dialect.derived(rows)}"


def _is_real(part: RowTerm) -> bool:
    return part.term.value is not None and part.term.value.facts.type is Type.REAL


def _present(part: RowTerm, dialect: Dialect) -> str:
    not_null = f"{part.row} IS NOT NULL"
    return f"{not_null} AND NOT {dialect.is_nan(part.row)}" if _is_real(part) else not_null


def _value(part: RowTerm, dialect: Dialect) -> str:
    """Return the text of the value to hash: values that are equal in SQL, such as the two zeros, become equal in every bit."""
    return dialect.real_key(part.row) if _is_real(part) else part.row


# --- SQL text of a bounded block: the single aggregation that an engine runs, written from few node types ---


_APART = (TermKind.DISTINCT, TermKind.DISTINCT_SUM, TermKind.DISTINCT_SHARE)
"""Terms over distinct values, which do not belong to single units."""
_MOST_FEW = 50_000
"""Most combinations of groups and values of one side of a pair by which rows are grouped first."""
_OF_PAIRS = (TermKind.PRODUCT_PART, TermKind.PAIR_PART)
"""Terms that are computed from the integers of two values of a row."""


@dataclass(frozen=True)
class Emitter(RelationText):
    """Writer of one engine's SQL text for bounded blocks."""

    # --- blocks -------------------------------------------------------------------------------------------------------

    def measurement(self, block: BoundedBlock) -> EngineQuery:
        """Return the query of a block; constants that rows are compared with are parameters, if the engine takes any."""
        if not self.dialect.takes_parameters:
            return self.block(block)
        split = parametrised(block, self.dialect)
        return replace(self.block(split.block), parameters=split.values)

    def block(self, block: BoundedBlock) -> EngineQuery:
        """Return the query for the exact integer sums of a block: one row per group, term columns never NULL. Raises Refusal
        engine_function."""
        block = self._of_groups(block)
        if _clips(block):
            self.dialect.require_clipping()
        if (counted := self._counted_by_unit(block)) is not None:
            return counted
        if (difference := self._by_difference(block)) is not None:
            return difference
        rows, values = self._rows(block)
        keys = [key.name for key in block.keys]
        names = [term.name for term in block.terms]
        if block.selection_term == SELECTION:
            names.append(SELECTION)
        written = self._weighed if block.unit_weights else self._clipped if _clips(block) else self._plain
        statement = written(block, rows, values)
        if any(key.values is None for key in block.keys):
            # Rows are released in key order (`cells` ensures it); the engine's cores sort a million of them faster.
            statement += f" ORDER BY {', '.join(f'{key} NULLS LAST' for key in keys)}"
        return EngineQuery(statement, tuple(keys), tuple(names), self.unchanged(block.source))

    def _counted_by_unit(self, block: BoundedBlock) -> EngineQuery | None:
        """Return the query that counts rows and units of a whole bounded view that is not prepared, or None for other blocks.

        The rows are read once and none is chosen, so that no window, threshold or second reading is needed.
        """
        source = block.source
        while isinstance(source, Project):
            source = source.source
        sums = {TermKind.COUNT: f"coalesce({self.dialect.exact_sum(ROWS_OF_UNIT)}, 0)", TermKind.UNITS: "count(*)"}
        whole = all(
            term.kind in sums and term == Term(term.name, term.kind, None, None, term.magnitude) for term in block.terms
        )
        if not whole or not block.terms or block.keys or block.caps.bounds.drops_rows_by_group:
            return None
        if not isinstance(source, Scan) or not self._has_unit_column(source) or self.view(source.table).prepared:
            return None
        counts = self.dialect.derived(self._bounded_view(source.table).row_counts())
        statement = _grouped([], [f"{sums[term.kind]} AS {term.name}" for term in block.terms], counts)
        return EngineQuery(statement, (), tuple(term.name for term in block.terms))

    def _by_difference(self, block: BoundedBlock) -> EngineQuery | None:
        """Return the query for sums over a bounded view that is not prepared: those over all rows that have a unit minus those
        over the rows that the view leaves out; None for other blocks.

        Each row of the table adds to the sums by itself, and both readings see the same rows, so the difference is exactly what
        the rows of the view add. Rows of units with few rows are then read without a look at the limits, and only rows of the
        others are hashed: 160 ms instead of 330 for a SUM over 10 million rows, of which 5 % belong to units with too many.
        Beside another table it is not done: nothing says that a public table, such as a view, is the same in both readings, and
        a row that is left out must be subtracted with the very partners with which it was added. Nor is it done over CSV files,
        where a second reading takes longer than all else.
        """
        source = block.source
        while isinstance(source, (Filter, Project, Join, SemiJoin)):
            if isinstance(source, (Join, SemiJoin)) and tables(source.right):
                return None
            source = source.left if isinstance(source, (Join, SemiJoin)) else source.source
        if not isinstance(source, Scan) or not self._has_unit_column(source) or not _adds_up(block):
            return None
        view, is_csv = self.view(source.table), self.policy.tables[source.table].csv is not None
        if is_csv or view.prepared or not (view.identity or self._bounded_view(source.table).is_snapshot):
            return None
        keys, names = [key.name for key in block.keys], [self._name(term.name) for term in block.terms]
        parts = []
        for part, sign in ((RowsRead.ALL, ""), (RowsRead.LEFT_OUT, "-")):
            reader = replace(self, view=cache(partial(self._part_of, part)))
            sums = reader.dialect.derived(reader._plain(block, *reader._rows(block)))
            parts.append(f"SELECT {', '.join([*keys, *(f'{sign}{name} AS {name}' for name in names)])} FROM {sums}")
        total = [f"{self._added_up(term)} AS {self._name(term.name)}" for term in block.terms]
        statement = _grouped(keys, total, self.dialect.derived(" UNION ALL ".join(parts)))
        return EngineQuery(
            statement, tuple(keys), tuple(term.name for term in block.terms), self.unchanged(block.source)
        )

    def _added_up(self, term: Term) -> str:
        """Return the sum of a term over parts of its rows; a number of rows stays an integer of 64 bits."""
        is_number = term.kind is TermKind.COUNT and not term.shares and not term.finer
        total = self.dialect.exact_sum(self._name(term.name))
        return f"CAST({total} AS {self.dialect.types[Type.INTEGER]})" if is_number else total

    def _part_of(self, part: RowsRead, table: str) -> View:
        return replace(self.view(table), part=part)

    def _of_groups(self, block: BoundedBlock) -> BoundedBlock:
        """Return the block over the columns that it reads, without rows of which a public key reads a value outside a domain."""
        return narrowed(replace(block, source=within_domains(block.source, block.keys, self.policy)))

    def rows_of(self, block: BoundedBlock) -> tuple[RowsOf, tuple[tuple[str, str, str], ...]]:
        """Return the rows that the terms of a block read, and the tables that must not change meanwhile."""
        block = self._of_groups(block)
        rows, texts = self._rows(block)
        sums = {term.name: term for term in block.terms if term.kind is TermKind.SUM}
        values = {
            name: self._integer(sums[name], block, value) if name in sums else value
            for name, (value, _) in texts.items()
        }
        conditions = {name: condition for name, (_, condition) in texts.items()}
        inside = "" if self._strictly_inside(block) else in_groups(block, self.dialect)
        unit = self._name(UNIT) if self._has_unit_column(block.source) else ""
        return RowsOf(rows, inside, values, conditions, unit, self._order_key(block.source)), self.unchanged(
            block.source
        )

    def _plain(self, block: BoundedBlock, rows: str, values: dict[str, tuple[str, str]]) -> str:
        """Return the query that sums every term over the rows of each group."""
        units = self._unit_sets(block)
        powers: dict[str, str] = {}
        few = self._few_valued(block, values)
        terms = {term.name: self._term(term, block, values, units, powers, few) for term in block.terms}
        if block.selection_term == SELECTION:
            terms[SELECTION] = self._selection_count(block)
        if few is not None:
            rows = _grouped(
                [*(key.name for key in block.keys), few[0]], moments(few[1], self.dialect), self.dialect.derived(rows)
            )
        return self._summed(block, terms or {"present": "count(*)"}, powers, self.dialect.derived(rows))

    def _few_valued(self, block: BoundedBlock, values: dict[str, tuple[str, str]]) -> tuple[str, str] | None:
        """Return both integers of the pair from which all terms of a block are computed, that with fewer values first; None for
        other blocks.

        Its rows are then grouped by these values, which are few whatever the data, and nine sums of products are finished on a
        row for each: sums of the same integers, in at most as many digits.
        """
        only_pairs = all(term.kind is TermKind.PAIR_PART for term in block.terms) and block.selection_term != SELECTION
        if (
            not self.dialect.groups_by_few_values
            or not block.terms
            or not only_pairs
            or not all(map(strict, block.keys))
        ):
            return None
        pairs = {(values[f"{term.name}.0"][0], values[f"{term.name}.1"][0]) for term in block.terms}
        widths = [factor.magnitude for factor in factors_of(block.terms[0])]
        if len(pairs) > 1 or (min(widths) + 1) * prod(len(key.values or ()) for key in block.keys) > _MOST_FEW:
            return None
        ((first, second),) = pairs
        return (first, second) if widths[0] <= widths[1] else (second, first)

    def _clipped(self, block: BoundedBlock, rows: str, values: dict[str, tuple[str, str]]) -> str:
        """Return the query that sums every term over the same rows: clipped terms by each unit's share, others whole."""
        if not block.keys:
            return self._clipped_total(block, rows, values)
        keys, unit = [key.name for key in block.keys], self._hidden(block.source)[-1]
        counted = {term.name: self._counted(term, block, values) for term in block.terms if term.clip is not None}
        units = self._unit_sets(block)
        powers: dict[str, str] = {}
        terms = {
            name: shared_sum(counted[name], self.dialect)
            if name in counted
            else self._term(term, block, values, units, powers)
            for term in block.terms
            for name in (term.name,)
        }
        if block.selection_term == SELECTION:
            terms[SELECTION] = self._selection_count(block)
        # Exclude rows outside the public domain from the norm: they belong to no released group and must not use up a
        # unit's clipping bound.
        inside = in_groups(block, self.dialect)
        rows_in_groups = '"#rows"'
        if inside and not self._strictly_inside(block):
            rows_in_groups = self.dialect.derived(f'SELECT * FROM "#rows" WHERE {inside}', "#inside")
        unit_shares, every = shares(Grouped(rows_in_groups, tuple(keys), unit), tuple(counted.values()), self.dialect)
        materialized = "NOT MATERIALIZED" if self._read_again(block) else "MATERIALIZED"
        joined = f'"#rows" {"" if every else "LEFT "}JOIN "#shares" USING ({unit})'
        sums = self._summed(block, terms, powers, joined)
        sums = self.dialect.derived(sums)
        return f'WITH "#rows" AS {materialized} ({rows}), "#shares" AS ({unit_shares}) SELECT * FROM {sums}'

    def _summed(self, block: BoundedBlock, terms: dict[str, str], powers: dict[str, str], source: str) -> str:
        """Return the query for the terms of each group of `source`. Parts of pairs are computed from `powers`, each summed
        once."""
        keys, quoted = [key.name for key in block.keys], {name: self._name(name) for name in terms}
        if not powers:
            return _grouped(keys, [f"{text} AS {quoted[name]}" for name, text in terms.items()], source)
        parts = {term.name for term in block.terms if term.kind in _OF_PAIRS}
        added_up = [f"{text} AS {quoted[name]}" for name, text in terms.items() if name not in parts]
        added_up += [f"{text} AS {name}" for name, text in powers.items()]
        sums = self.dialect.derived(_grouped(keys, added_up, source), "#sums")
        computed = [f"{text} AS {quoted[name]}" if name in parts else quoted[name] for name, text in terms.items()]
        return f"SELECT {', '.join([*keys, *computed])} FROM {sums}"

    def _clipped_total(self, block: BoundedBlock, rows: str, values: dict[str, tuple[str, str]]) -> str:
        """Return the query without keys that adds up the (clipped) sums of the units; counts of distinct values, which do not
        belong to single units, are computed beside them."""
        apart = [term for term in block.terms if term.kind in _APART]
        sums = []
        for term in block.terms:
            if term.kind not in _APART:
                counted = replace(term, kind=TermKind.COUNT) if term.kind is TermKind.UNITS else term
                sums.append((term, self._term(counted, block, values, "")))
        source = 'SELECT * FROM "#rows"' if apart else rows
        clipped = clipped_total(Grouped(source, (), self._hidden(block.source)[-1]), tuple(sums), self.dialect)
        if not apart:
            return clipped
        counts = [f"{self._term(term, block, values, '')} AS {term.name}" for term in apart]
        unclipped = _grouped([], counts, '"#rows"')
        return f'WITH "#rows" AS MATERIALIZED ({rows}) SELECT * FROM ({clipped}) AS a, ({unclipped}) AS b'

    def _counted(self, term: Term, block: BoundedBlock, values: dict[str, tuple[str, str]]) -> RowTerm:
        """Return a clipped term with the text of a row's part in it."""
        value, condition = values[term.name]
        if term.kind is TermKind.SUM:
            return RowTerm(term, self._integer(term, block, value), condition)
        summed_too = _summed_too(term, block)
        if summed_too is not None:
            return RowTerm(term, self._integer(summed_too, block, value), condition)
        if term.value is not None and term.value.facts.type is Type.REAL:
            condition = f"NOT {self.dialect.is_nan(value)}{f' AND {condition}' if condition else ''}"
        return RowTerm(term, value, condition)

    def _read_again(self, block: BoundedBlock) -> bool:
        """Return whether reading the rows twice is as cheap as storing them: this holds for a copy, without joins and caps.

        Both readings see one snapshot of the file, or a source that must not have changed meanwhile.
        """
        node = block.source
        while isinstance(node, (Filter, Project)):
            node = node.source
        view = self._prepared(node) if isinstance(node, Scan) else None
        return view is not None and view.prepared and not block.caps.bounds.drops_rows_by_group

    def unchanged(self, source: Relation) -> tuple[tuple[str, str, str], ...]:
        """Return the tables that must not change while the query runs, with their identities and views: the tables whose view
        reads the source itself. Tables without an identity are read as of one moment."""
        if self.policy.privacy_unit is None:
            return ()
        protected = [table for table in sorted(tables(source)) if self.policy.is_protected(table)]
        views = ((table, self.view(table)) for table in protected)
        return tuple(
            (table, view.identity, view.sql or "")
            for table, view in views
            if view.identity or (view.sql is None and self._bounded_view(table).is_snapshot)
        )

    def _unit_sets(self, block: BoundedBlock) -> str:
        """Return the beginning of a call of the index's function that counts the units of a group, or "" if COUNT(DISTINCT)
        has to count them.

        It may keep a bit for each unit and group, so groups must be few whatever the data: public keys only, and only
        rows inside their domains (`_capped` ensures that). Measured at 10 million rows, 100,000 units and 50 groups:
        0.05 s; COUNT(DISTINCT) took 0.3 s, and a subquery with DISTINCT was no faster than that.
        """
        sets = [term.kind for term in block.terms].count(TermKind.UNITS)
        prepared = self._prepared(block.source)
        if prepared is None or not sets or not all(strict(key) for key in block.keys):
            return ""
        sets *= prod(len(key.values or ()) for key in block.keys)
        forms = [form for form, (most, _) in enumerate(UNIT_SETS) if sets <= most]
        return f"{prepared.count_units}({'0, ' * forms[-1]}" if forms and prepared.count_units else ""

    def _selection_count(self, block: BoundedBlock) -> str:
        """Return the text of the count for partition selection, which one unit changes by at most 1 in each group.

        Under row privacy a join may have turned one row into up to c rows: n rows count as ceil(n / c), and adding up to
        c rows to n adds at most 1 to that.
        """
        if self._has_unit_column(block.source):
            return f"count(DISTINCT {self._hidden(block.source)[-1]})"
        most = block.caps.rows_per_unit
        return "count(*)" if most == 1 else self.dialect.whole_quotient(f"(count(*) + {most - 1})", str(most))

    def _rows(self, block: BoundedBlock) -> tuple[str, dict[str, tuple[str, str]]]:
        """Return the query for the rows after caps, with each row expression computed once: keys k0.., values v0.. and
        conditions f0..; and for each term the names of its value and of its condition ("" if it has none)."""
        items: dict[str, str] = {}
        for key in block.keys:
            items[key.name] = sent_key(key.expression, self.dialect)
        values: dict[str, tuple[str, str]] = {}
        for term in block.terms:
            row_term = lower_part(term, block) or _summed_too(term, block) or term
            passed = row_term.filter if term.shares else term.filter
            passed = _beyond_presence(term) if term.kind in _OF_PAIRS else passed
            alone = row_term.value is None or term.kind in _OF_PAIRS
            value = "" if alone else _shared(items, "v", self._value(row_term, block))
            condition = "" if passed is None else _shared(items, "f", self.dialect.condition(passed))
            values[term.name] = (value, condition)
        numbers = {term.name: self._pair(term, block, items) for term in block.terms if term.kind in _OF_PAIRS}
        columns = [f"{expression} AS {name}" for name, expression in items.items()]
        columns += self._hidden(block.source)
        if not columns:
            columns = ["1 AS one"]
        rows = f"SELECT {', '.join(columns)} FROM {self._rows_of(block.source)}"
        capped = self._placed(block, self._capped(block, rows, list(items)), values)
        return self._with_pairs(capped, numbers, values), values

    def _placed(self, block: BoundedBlock, rows: str, values: dict[str, tuple[str, str]]) -> str:
        """Return `rows` with the place of each value among its unit's values, for terms that count so many of each unit's
        values."""
        placed = tuple(RowTerm(term, *values[term.name]) for term in block.terms if term.places is not None)
        if not placed:
            return rows
        inside = "" if self._strictly_inside(block) else in_groups(block, self.dialect)
        keys = tuple(key.name for key in block.keys)
        return with_places(rows, placed, keys, inside, self._order_key(block.source), self.dialect)

    def _pair(self, term: Term, block: BoundedBlock, items: dict[str, str]) -> tuple[str, str]:
        """Return the names of the two integers of a row that a term multiplies."""
        texts = (self._integer(factor, block, self._value(factor, block)) for factor in factors_of(term))
        first, second = (_shared(items, "v", f"CAST({text} AS BIGINT)") for text in texts)
        return first, second

    def _with_pairs(self, rows: str, numbers: dict[str, tuple[str, str]], values: dict[str, tuple[str, str]]) -> str:
        """Return `rows` with both integers of each pair, NULL unless both are present, and enter their names in `values` as the
        names of a term's factors."""
        columns: dict[str, str] = {}
        for name, pair in numbers.items():
            for index, text in enumerate(both_there(pair, values[name][1])):
                values[f"{name}.{index}"] = (_shared(columns, "b", text), "")
        if not columns:
            return rows
        added = ", ".join(f"{text} AS {name}" for name, text in columns.items())
        return f"SELECT *, {added} FROM {self.dialect.derived(rows)}"

    def _value(self, term: Term, block: BoundedBlock) -> str:
        """Return the text from which a term's integer is computed, before the clamp; or the integer itself if it is stored."""
        column = self._stored_column(term, block)
        return value_text(term, self.dialect) if column is None else self._name(column)

    def _integer(self, term: Term, block: BoundedBlock, value: str) -> str:
        return row_integer(term, value, self.dialect) if self._stored_column(term, block) is None else value

    def _stored_column(self, term: Term, block: BoundedBlock) -> str | None:
        """Return the column of a prepared view that holds the row's integer, or None. With caps the values are computed as
        without a prepared view: caps rank rows by them, and the same rows must stay."""
        if term.kind is not TermKind.SUM or block.caps.bounds.drops_rows_by_group:
            return None
        return kept_integer(self.policy, block.source, term, lambda table: self.view(table).sql is not None)

    def _capped(self, block: BoundedBlock, rows: str, names: list[str]) -> str:
        """Keep max_groups groups of each unit, then at most max_rows_per_group of its rows in each. The other order would keep
        the same rows, because no group loses all of its rows, but would sort those of groups that are left out.

        Both ranks are over the rows of one unit only, in the order of a keyed hash of the unit and the content, with the
        content as tie-breaker: the rows that one unit keeps do not depend on other units, and units keep different groups.
        Rows that tie have the same keys, values and conditions. Measured at 10 million rows and 100,000 units against
        partial sums of each (unit, group) that are ranked and summed again: 1.5 s against 1.5 s for rows in 10,000
        groups, 1.1 s against 0.9 s for groups; windows keep whole rows, which COUNT(DISTINCT x) needs.
        """
        bounds, keys = block.caps.bounds, [key.name for key in block.keys]
        if self._strictly_inside(block):
            inside = in_groups(block, self.dialect)
            rows = f"SELECT * FROM {self.dialect.derived(rows)} WHERE {inside}" if inside else rows
        if not bounds.drops_rows_by_group:
            return rows
        unit, order, view = self._name(UNIT), self._order_key(block.source), self._prepared(block.source)
        owner = self._name(UNIT_ID) if view is not None and view.prepared else unit
        if bounds.max_groups is not None:
            group = rank(self.dialect, order, [owner], tuple(keys), "dense_rank")
            ranked = f'SELECT *, {group} AS "#group" FROM {self.dialect.derived(rows)}'
            limited = within_limits(rows, owner, block.keys, bounds.max_groups, order, self.dialect)
            rows = limited or f'SELECT * FROM {self.dialect.derived(ranked)} WHERE "#group" <= {bounds.max_groups}'
        if bounds.max_rows_per_group is not None:
            row = rank(self.dialect, order, [owner, *keys], tuple(names) or (unit,))
            ranked = f'SELECT *, {row} AS "#row" FROM {self.dialect.derived(rows)}'
            rows = f'SELECT * FROM {self.dialect.derived(ranked)} WHERE "#row" <= {bounds.max_rows_per_group}'
        return rows

    def _weighed(self, block: BoundedBlock, rows: str, values: dict[str, tuple[str, str]]) -> str:
        """Return the query for every term and, for selection, the sum of the weights of a group's units; a unit's weight depends
        on the number of its groups. Both are grouped separately and combined by grouping again, because keys may be NULL.

        Measured at 1 million rows and 50,000 units against count(DISTINCT unit): 1.03 times its time with 10,000 groups, 1.3
        with 50; windows over the rows took 2.6 and 6.6 times as long.
        """
        keys, unit = [key.name for key in block.keys], self._hidden(block.source)[-1]
        names = [term.name for term in block.terms]
        cases = " ".join(f"WHEN count(*) <= {most} THEN {weight}" for most, weight in block.unit_weights)
        weights = f'SELECT {unit}, CASE {cases} ELSE 0 END AS "#weight" FROM "#pairs" GROUP BY {unit}'
        sums = _grouped(keys, [f'sum("#weight") AS {SELECTION}'], f'"#pairs" JOIN "#weights" USING ({unit})')
        columns = ", ".join([*keys, unit])
        pairs = f'SELECT {columns} FROM "#held" GROUP BY {columns}'
        head = f'WITH "#held" AS ({rows}), "#pairs" AS ({pairs}), "#weights" AS ({weights})'
        if not names:
            return f"{head} {sums}"
        alone = replace(block, selection_term=None, unit_weights=())
        terms = (self._clipped if _clips(block) else self._plain)(alone, 'SELECT * FROM "#held"', values)
        nothing = ", ".join(f"NULL AS {name}" for name in names)
        both = (
            f"SELECT {', '.join([*keys, *names])}, NULL AS {SELECTION} FROM {self.dialect.derived(terms)} UNION ALL "
            f"SELECT {', '.join(keys)}, {nothing}, {SELECTION} FROM {self.dialect.derived(sums)}"
        )
        largest = [f"max({name}) AS {name}" for name in [*names, SELECTION]]
        return f"{head} {_grouped(keys, largest, self.dialect.derived(both))}"

    def _strictly_inside(self, block: BoundedBlock) -> bool:
        """Return whether rows outside the domains of public keys are excluded from everything that is read."""
        return block.caps.bounds.drops_rows_by_group or bool(self._unit_sets(block))

    def _term(
        self,
        term: Term,
        block: BoundedBlock,
        values: dict[str, tuple[str, str]],
        units: str,
        powers: dict[str, str] | None = None,
        few: tuple[str, str] | None = None,
    ) -> str:
        """Return the text of a term's sum over a group. With `powers`, the power sums of a pair are entered there and read by
        name. `few`: as of `_few_valued`, if rows are grouped by its first."""
        value, condition = values[term.name]
        if (low := lower_part(term, block)) is not None:
            return companion_sum(term, low, self._integer(low, block, value), condition, self.dialect)
        if term.kind in _OF_PAIRS:
            return self._product(term, values, powers, few)
        if term.kind is TermKind.SUM:
            row = self._integer(term, block, value)
            filtered = f" FILTER (WHERE {condition})" if condition else ""
            total = self.dialect.exact_sum(row, filtered, term.magnitude >> term.finer)
            return self._finer(term, f"coalesce({total}, 0)")
        if term.kind is TermKind.UNITS and units:
            unit = self._name(UNIT_ID)
            return f"coalesce({units}{f'CASE WHEN {condition} THEN {unit} END' if condition else unit}), 0)"
        summed_too = _summed_too(term, block)
        conditions = [condition] if condition else []
        if summed_too is None and term.value is not None and term.value.facts.type is Type.REAL:
            conditions.append(f"NOT {self.dialect.is_nan(value)}")
        if term.places is not None:
            conditions.append(f"{place_name(term)} <= {self.dialect.expression(term.places)}")
        filtered = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
        if term.kind is TermKind.DISTINCT_SUM:
            return f"coalesce({distinct_sum(term, value, filtered, self.dialect)}, 0)"
        if term.kind is TermKind.COUNT:
            counted = value if summed_too is None else self._integer(summed_too, block, value)
            return self._finer(term, f"count({counted or '*'}){filtered}")
        counted_values = self._name(UNIT) if term.kind is TermKind.UNITS else value
        counted = f"count(DISTINCT {counted_values}){filtered}"
        if term.kind is TermKind.DISTINCT_SHARE and term.places is not None:
            share = self.dialect.whole_quotient(str(term.magnitude), self.dialect.expression(term.places))
            return f"({self.dialect.wide(counted)} * ({share}))"
        return counted

    def _product(
        self,
        term: Term,
        values: dict[str, tuple[str, str]],
        powers: dict[str, str] | None,
        few: tuple[str, str] | None,
    ) -> str:
        factors = factors_of(term)
        rows, widths = (
            (values[f"{term.name}.0"][0], values[f"{term.name}.1"][0]),
            (factors[0].magnitude, factors[1].magnitude),
        )

        def summed(exponents: tuple[int, int]) -> str:
            text = power_sum(exponents, widths, rows, self.dialect)
            if few is not None:
                text = power_of_moments(*(exponents if rows[0] == few[0] else exponents[::-1]), few[0])
            return text if powers is None else _shared(powers, "p", text)

        return pair_part(term, factors, summed)

    def _finer(self, term: Term, total: str) -> str:
        """Return a count or a sum in steps of the term's grid, which is finer than the grid of the rows if it may be clipped."""
        return f"({self.dialect.wide(total)} * {1 << term.finer})" if term.finer else total


def _beyond_presence(term: Term) -> Expr | None:
    """Return the filter of a pair without the conditions that both values are present: the integers of rows for which these do
    not hold are NULL."""
    condition = term.filter
    implied = [presence(value) for value in term.value.arguments] if isinstance(term.value, Call) else []
    while isinstance(condition, Call) and condition.function == "and" and condition.arguments[1] in implied:
        condition = condition.arguments[0]
    return None if condition in implied else condition


def _adds_up(block: BoundedBlock) -> bool:
    """Return whether all terms of a block are sums of what each row adds, over groups that do not depend on the rows."""
    sums = {TermKind.COUNT, TermKind.SUM, TermKind.SQUARE_PART, *_OF_PAIRS}
    capped = block.caps.bounds.drops_rows_by_group or _clips(block) or any(term.places for term in block.terms)
    is_public = all(key.values is not None for key in block.keys) and block.selection_term is None
    return bool(block.terms) and is_public and not capped and all(term.kind in sums for term in block.terms)


def _clips(block: BoundedBlock) -> bool:
    return any(term.clip is not None for term in block.terms)


def _grouped(keys: list[str], columns: list[str], source: str) -> str:
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, *columns])} FROM {source}{group}"


def _summed_too(term: Term, block: BoundedBlock) -> Term | None:
    """Return the SUM over the real value that `term` counts, if any: the integer of the SUM is NULL exactly for NULL and NaN,
    so it is counted instead of the value, and computed once for both."""
    if term.kind is not TermKind.COUNT or term.value is None or term.value.facts.type is not Type.REAL:
        return None
    return next((other for other in block.terms if other.kind is TermKind.SUM and other.value == term.value), None)


def _shared(items: dict[str, str], prefix: str, expression: str) -> str:
    """Return the name under which an expression is computed once for each row; add it to `items` if it is new."""
    for name, present in items.items():
        if present == expression:
            return name
    name = f"{prefix}{len(items)}"
    items[name] = expression
    return name


# --- exported rows ----------------------------------------------------------------------------------------------------


# SQL text of the rows of one table for an export: combinations of its exported columns, and the number of rows of each.
# A number is read as the integer of its SUM term (clamped, counted from its lower bound), a category as the key that a GROUP
# BY of its column has. The rows come from the bounded view, so that a unit has at most `max_rows` of them.


ROWS = "n"
"""The result column with the number of rows of a combination."""
_GROUPED_COMBINATIONS = 1 << 16
"""The most combinations for which the engine counts the rows of each, which is cheaper than returning the rows."""


def exported_rows(emitter: Emitter, plan: ExportPlan) -> EngineQuery:
    """Return the query; its keys are k0, k1, ... in the order of the plan's columns. Raises Refusal engine_function."""
    dialect = emitter.dialect
    values, keys = [], []
    for number, column in enumerate(plan.columns):
        name = f"k{number}"
        if column.term is None:
            values.append(f"{sent_key(column.expression, dialect)} AS {name}")
            keys.append(name)
        else:
            values.append(f"{value_text(column.term, dialect)} AS {name}")
            keys.append(f"{row_integer(column.term, name, dialect)} AS {name}")
    below = dialect.derived(f"SELECT {', '.join(values)} FROM {dialect.derived(emitter.relation(plan.source))}")
    rows = dialect.derived(f"SELECT {', '.join(keys)} FROM {below}")
    names = tuple(f"k{number}" for number in range(len(plan.columns)))
    listed = ", ".join(names)
    if plan.combinations <= _GROUPED_COMBINATIONS or all(column.term is None for column in plan.columns):
        text = f"SELECT {listed}, count(*) AS {ROWS} FROM {rows} GROUP BY {listed}"
    else:  # combinations that contain numbers with many values rarely repeat
        text = f"SELECT {listed}, {dialect.constant(1)} AS {ROWS} FROM {rows}"
    return EngineQuery(text, names, (ROWS,), emitter.unchanged(plan.source))
