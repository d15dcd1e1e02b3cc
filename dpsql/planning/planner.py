"""Complete planning of one question before data is touched: bound, priced, written as engine SQL, rehearsed.

Everything here is a function of the text, its parameters, the policy and the options, so plans are cached and used again when the
same question returns (a dashboard asks the same twelve all day).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cached_property, partial
from math import log, sqrt
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from sqlglot import exp

from dpsql.engine.contract import Engine
from dpsql.engine.emit.emitter import Emitter
from dpsql.errors.custodian_log import TRACES
from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.canonical_conditions import has_no_rows, leave_no_value
from dpsql.functions.canonical_measures import with_counts
from dpsql.functions.kept_rows import named_rows
from dpsql.functions.key_questions import MOST_ASKED, Candidates, PublicValues, Rows, Unanswered, ValueQuestion
from dpsql.functions.row_costs import MOST_OF_A_QUESTION, block_cost
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.expression_text import column_texts, expression_text
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Block, BoundedBlock, Call, Plan, Relation, columns_read, group_count, parts_of, results_read
from dpsql.plan.stability import marks_read, scans, tables
from dpsql.planning.expected_bars import widest_bar
from dpsql.planning.total_cuts import with_cuts, with_places
from dpsql.policy import Policy, PolicyColumn, Table
from dpsql.policy.types import UNBOUNDED, ContributionBounds
from dpsql.pricing.bounding import bounded
from dpsql.pricing.budget_parts import noise_law
from dpsql.pricing.explain import describe_loss
from dpsql.pricing.local_sensitivity import requested
from dpsql.pricing.options import Options
from dpsql.pricing.plan_check import check_plan, require_public
from dpsql.pricing.pricing import ARROW, Price, PricedBlock, price
from dpsql.pricing.running_totals import RunningTable, is_better, lengths, levels, mean_variances, running_error
from dpsql.pricing.sample_values import MeanRequest
from dpsql.pricing.workloads import ADDING_UP, Objective, variance
from dpsql.privacy.accounting import Accountant, make_accountant
from dpsql.privacy.loss import PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.most_frequent import MOST_FREQUENT
from dpsql.privacy.mechanisms.registry import ANNEX_OF
from dpsql.privacy.mechanisms.square_root import SQUARE_ROOT
from dpsql.release.release import OutputColumn
from dpsql.release.sandbox import DIALECT, Sandbox, shared_sandbox
from dpsql.sql.binder.equal_keys import check_row_filters, no_such_table, row_filters
from dpsql.sql.binder.function_hints import unlisted
from dpsql.sql.binder.query import bind
from dpsql.sql.lexer import Piece, SqlText, as_piece, place
from dpsql.sql.parse import Parameters, Statement, dialect, parse, values_text
from dpsql.sql.rewrites.bigquery import option_place
from dpsql.sql.rewrites.dialects import in_dialect
from dpsql.storage.memory import RecentValues
from dpsql.storage.records import dataclass, field, replace

QUARTILES = ("0.25", "0.5", "0.75")
_LABELS = ("column_name", "column_type", "count", "missing", "mean", "q25", "median", "q75", "most_frequent")


def summary_query(policy: Policy, path: Sequence[str]) -> str:
    """Return the query for a table that the asker calls `path`: one row for each column that they can name.

    All numbers come from one aggregation, so that they share one price: the rows with a value and without; mean and quartiles of
    bounded numbers; the share of true; and the most frequent value of a domain. Raises no_such_table (unknown_table).
    """
    table = policy.table_at(*path)
    if table is None:
        raise no_such_table(policy, list(path), None)
    measures = ["COUNT(*) AS n"]
    rows: list[str] = []
    for index, column in enumerate(table.columns.values()):
        named = _measures(column, policy)
        measures += [f"{call} AS {label}{index}" for label, call in named.items()]
        cells = [f"{label}{index}" if label in named else "NULL" for label in ("mean", "q25", "q50", "q75", "most")]
        text = "'" + column.name.replace("'", "''") + "'"
        values = (text, f"'{column.type}'", f"present{index}", f"n - present{index}", *cells)
        named_cells = zip(values, _LABELS, strict=True)
        rows.append(
            ", ".join(f'{value} AS "{label}"' for value, label in named_cells) if not rows else ", ".join(values)
        )
    selects = " UNION ALL ".join(f"SELECT {row} FROM profile" for row in rows)
    name = ".".join(f'"{part}"' for part in path)
    return f"WITH profile AS MATERIALIZED (SELECT {', '.join(measures)} FROM {name}) {selects}"


def _measures(column: PolicyColumn, policy: Policy) -> dict[str, str]:
    """Return the aggregates of a column by their labels, of the mechanisms that the policy allows."""
    name = f'"{column.name}"'
    measures = {"present": f"COUNT({name})"}
    if column.type in ("integer", "real") and column.lower is not None:
        measures["mean"] = f"AVG({name})"
        measures |= {f"q{share[2:]:0<2}": f"QUANTILE_CONT({name}, {share})" for share in QUARTILES}
    elif column.type == "boolean":
        measures["mean"] = f"AVG(CASE WHEN {name} THEN 1 WHEN NOT {name} THEN 0 END)"
    if column.domain is not None and column.type == "text" and ANNEX_OF[MOST_FREQUENT] in policy.mechanisms:
        measures["most"] = f"MODE({name})"
    return measures


# --- public values ----------------------------------------------------------------------------------------------------

# Values of expressions over public candidates, computed by DuckDB in the sandbox (`functions.key_questions`).
# The sandbox gets the emitter's own total texts, never the text of a question, so that a value here is the value that the
# engine of the source computes.

MOST_ANSWERS = 256
MOST_WEIGHT = 5_000_000
"""Largest number of combinations of candidates in all questions whose answers are kept."""
SHARED = frozenset((
    "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "in", "not_distinct", "is_null", "is_true", "is_false", "case",
    "coalesce", "nullif", "least", "greatest", "add", "sub", "mul", "neg", "abs", "sign", "intdiv", "mod", "floor", "clamp",
    "date_trunc", "date_part", "length", "to_integer", "to_date", "to_timestamp", "to_real", "to_text", "concat", "concat_ws",
    "left", "right", "width_bucket", "like", "ilike", "lower", "upper", "starts_with", "ends_with", "contains", "strpos",
    "substr", "replace", "trim", "ltrim", "rtrim", "split_part", "translate", "strlen", "strftime", "last_day",
))  # fmt: skip
"""Functions that have the same values on PostgreSQL and Spark for every argument, as their tests compare; those of the case of
letters for ASCII."""


class AskedValues:
    """Questions answered by a sandbox. Answers are kept by question."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._answers: RecentValues[Rows] = RecentValues(MOST_ANSWERS, MOST_WEIGHT)

    def for_engine(self, engine: str) -> PublicValues:
        return PublicValues(self.rows, None if engine == DIALECT.name else SHARED)

    def rows(self, question: ValueQuestion) -> Rows:
        """Return the combinations of the keys' values. Raises Unanswered."""
        return self._answers.get(question, partial(self._computed, question), min(question.size, MOST_ASKED))

    def _computed(self, question: ValueQuestion) -> Rows:
        types = {
            column.name: column.facts.type
            for part in (*question.keys, *question.conditions)
            for column in columns_read(part)
        }
        try:
            tables = {f"t{number}": _table(table, types) for number, table in enumerate(question.tables)}
            with self._sandbox.scratch() as scratch:
                answer = scratch.query(_text(question), tables, MOST_ASKED, strict=True)
            columns = [column.to_pylist() for column in answer.columns]
            return tuple(zip(*columns, strict=True))
        except (Error, pa.ArrowException, OverflowError, ValueError):
            raise Unanswered from None


def _table(table: Candidates, types: dict[str, Type]) -> pa.Table:
    columns = list(zip(*table.rows, strict=True)) if table.rows else [()] * len(table.names)
    arrays = [
        pa.array(values, ARROW[types[name]]) if name in types else pa.nulls(len(values))
        for name, values in zip(table.names, columns, strict=True)
    ]
    return pa.table(arrays, list(table.names))


def _text(question: ValueQuestion) -> str:
    """Return the question as SQL over the tables t0, t1, ..."""
    keys = [f"{DIALECT.expression(key)} AS k{number}" for number, key in enumerate(question.keys)]
    sources = [_source(f"t{number}", table) for number, table in enumerate(question.tables)]
    conditions = [f"({DIALECT.condition(condition)})" for condition in question.conditions]
    text = f"SELECT DISTINCT {', '.join(keys)}" if keys else "SELECT true AS k0"
    text += f" FROM {', '.join(sources)}" if sources else ""
    text += f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return text if keys else f"{text} LIMIT 1"


def _source(name: str, table: Candidates) -> str:
    """Return a table with the values of its span, which the engine lists by itself."""
    if table.span is None:
        return name
    column, first, last = DIALECT.identifier(table.names[0]), table.span.first, table.span.last
    if isinstance(first, date):
        start = f"DATE '{first.isoformat()}'"
        listed = f"{start} + CAST(range AS INTEGER) AS {column} FROM range({len(table.span)})"
    else:
        listed = f"CAST(range AS {DIALECT.types[Type.INTEGER]}) AS {column} FROM range({first}, {last + 1})"
    both = f"SELECT {listed}" if not table.rows else f"SELECT {listed} UNION ALL SELECT {column} FROM {name}"
    return f"({both}) AS {DIALECT.identifier(name + ' all')}"


# --- running totals and ranges ----------------------------------------------------------------------------------------

# Comparison of prices of a question that asks for running totals: with further tables by ranges of its last keys, with noise
# by the square root of their matrix (`pricing.running_totals`), and without either.


def compared_with(ranges: Price, alone: Price, count: int) -> Price | None:
    """Return the price by ranges of a key, in which each workload also records the noise of its sums `alone` (`apart`); None
    unless all `count` workloads make running totals more exact."""
    if len(ranges.workloads) < count:
        return None
    noises = {
        (priced.block.name, term.name): term
        for price in (alone, ranges)
        for priced in price.blocks
        for term in priced.noise.terms
    }
    workloads = []
    for workload in ranges.workloads:
        finest = workload.tiles[0]
        terms = next(priced.noise.terms for priced in alone.blocks if priced.block.name == finest.block)
        by_itself = tuple(term.noise for term in terms if term.name in finest.terms)
        measured = [noises[tile.block, tile.terms[0]] for tile in workload.tiles]
        variances = [variance(term.noise, term.whole) for term in measured]
        if not is_better(workload, variances, variance(by_itself[0], measured[0].whole)):
            return None
        workloads.append(replace(workload, apart=(by_itself,)))
    return replace(ranges, workloads=tuple(workloads))


def least_error(alone: Price, rooted: Price, ranges: Price, lengths: Mapping[str, int]) -> tuple[RunningTable, ...]:
    """Return the sums and their errors of running totals under noise by the square root of their matrix. Empty unless that noise
    is better than `ranges` (or than `alone`, where no ranges are measured), in the geometric mean over all sums of the blocks in
    `lengths`."""
    tables = _running_tables(rooted.blocks, alone.blocks, lengths)
    if all(table.error >= table.alone for table in tables):
        return ()
    by_ranges = _errors_by_ranges(ranges)
    errors = [by_ranges.get((table.block, table.term)) for table in tables]
    if ranges.workloads:
        # A sum without a workload has a smaller part of the budget in `ranges`, so that its error is larger than alone.
        compared = [table.alone if error is None else error for table, error in zip(tables, errors, strict=True)]
        if sum(log(table.error / error) for table, error in zip(tables, compared, strict=True)) >= 0:
            return ()
    return tuple(replace(table, ranges=error) for table, error in zip(tables, errors, strict=True))


def _running_tables(
    priced: Sequence[PricedBlock], alone: Sequence[PricedBlock], of_blocks: Mapping[str, int]
) -> tuple[RunningTable, ...]:
    """Return the errors of running totals for each sum that adds up in the blocks of `of_blocks` (see `lengths`). `priced` has
    the noise for running totals, `alone` the noise that the same blocks have without `dp.workload`."""
    tables = []
    for block, plain in zip(priced, alone, strict=True):
        length = of_blocks.get(block.block.name)
        if length is None:
            continue
        kinds = {term.name: term.kind for term in block.block.terms}
        for noise, plain_noise in zip(block.noise.terms, plain.noise.terms, strict=True):
            error = running_error(plain_noise.noise, length, plain_noise.whole)
            if error > 0 and kinds[noise.name] in ADDING_UP and noise.shares in ("", noise.name):
                now = running_error(noise.noise, length, noise.whole)
                tables.append(RunningTable(block.block.name, noise.name, length, now, error))
    return tuple(tables)


def _errors_by_ranges(ranges: Price) -> dict[tuple[str, str], float]:
    """Return the root mean square error of running totals for each sum measured by ranges, by block and term (row grid)."""
    noises = {(priced.block.name, term.name): term for priced in ranges.blocks for term in priced.noise.terms}
    errors = {}
    for workload in ranges.workloads:
        measured = [noises[tile.block, tile.terms[0]] for tile in workload.tiles]
        variances = [variance(term.noise, term.whole) for term in measured]
        errors[workload.tiles[0].block, workload.tiles[0].terms[0]] = sqrt(mean_variances(workload, variances)[0])
    return errors


# --- planner ----------------------------------------------------------------------------------------------------------

MOST_KEPT = 512
_MOST_KEPT_CHARACTERS = 200_000
"""Length in all of the texts of which statements and plans are remembered; they take up to 2 kB for each character."""
MOST_DOMAIN = 2_000
"""Columns of public tables with more values than this are grouped by like private keys."""
MOST_COUNTED = 100_000_000
"""Rows of public tables that may be read to count what can match in one statement, before it is charged."""
MOST_ROWS = 10_000
"""Public tables with more rows than this are not read row by row."""
Value = TypeVar("Value")

_CONDITIONS = (exp.Predicate, exp.Connector, exp.Not)
_MOST_SHOWN = 60
"""Longest condition, in characters, that a notice quotes."""


class QuestionToken:
    """Identity of one planned question, for caches with weak keys."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, eq=False)
class Planned:
    """A priced question. `keys` names each block's release (without the version of the data), in block order.

    A block that reads unreleased results (`waiting`) gets its final name when they are released, because what it measures depends
    on them (`stages`).

    `token` is the same for a question before and after its later blocks are filled in.
    """

    statement: Statement
    options: Options
    plan: Plan
    price: Price
    keys: tuple[str, ...]
    token: QuestionToken = field(default_factory=QuestionToken)

    def derived(self, name: object, compute: Callable[[], Any]) -> Any:
        """Return a value that readers of the question derive from it and its policy alone, for as long as it lives."""
        values: dict[object, Any] = self.__dict__.setdefault("#derived", {})
        if name not in values:
            values[name] = compute()
        return values[name]

    @cached_property
    def text(self) -> str:
        return self.plan.remainder.sql(dialect())

    @property
    def own_blocks(self) -> tuple[PricedBlock, ...]:
        """The blocks that results and the remainder read; the others belong to questions measured with this one (`together`)."""
        blocks = self.price.blocks
        if len(blocks) == len(self.plan.blocks):
            return blocks
        names = {block.name for block in self.plan.blocks}
        return tuple(priced for priced in blocks if priced.block.name in names)

    def without_blocks(self) -> Planned:
        """Return the question with nothing to measure."""
        plan, price = replace(self.plan, blocks=(), results=(), cuts=()), Price((), PrivacyLoss.nothing())
        return replace(self, plan=plan, price=price, keys=())

    @cached_property
    def about_nothing(self) -> tuple[str, ...]:
        """Return an entry for each own block that measures nothing, whatever the data are: "" where no row passes its conditions,
        its keys in words where these leave no combination of public values for a group."""
        nothing = []
        for priced in self.own_blocks:
            block = priced.block
            values = [key.values for key in block.keys]
            if has_no_rows(priced.named.source):
                nothing.append("")
            elif None not in values and (
                not group_count(values, block.combinations)
                or (self.plan.results and leave_no_value(block.source, block.keys))
            ):
                columns = column_texts(block.source)
                nothing.append(", ".join(expression_text(key.expression, columns) for key in block.keys))
        return tuple(nothing)

    def require_rows(self) -> None:
        """Refuse (no_rows, no_groups) a question about nothing by its text, the policy and public rows alone; not one whose text
        says outright that it asks for no rows (LIMIT 0), by which tools learn the columns of an answer."""
        nothing, query = self.about_nothing, self.statement.query
        if not nothing or len(nothing) < len(self.own_blocks) or self.plan.empty or query is None:
            return
        without_rows = not nothing[0] and all(has_no_rows(named_rows(priced.rows_read)) for priced in self.own_blocks)
        nodes = [where.this for where in query.find_all(exp.Where)]
        if not nothing[0] and not without_rows:  # an aggregate reads nothing
            aggregates = query.find_all(exp.AggFunc)
            nodes = [
                each.parent.expression.this if isinstance(each.parent, exp.Filter) else each for each in aggregates
            ]
        error = refuse("no_groups", keys=nothing[0]) if nothing[0] else refuse("no_rows")
        raise error.placed_in(self.statement.sql, place(nodes[0]) if len(nodes) == 1 else None)

    @cached_property
    def unlisted(self) -> tuple[str, ...]:
        """Return notices on literals that are compared with a column for which the policy lists other values."""
        notices: dict[str, None] = {}

        for part in parts_of(self.plan.blocks):
            for text, listed in unlisted(part.function, part.arguments) if isinstance(part, Call) else ():
                notices[
                    f"{text} is none of the values that the policy lists ({listed}): no row equals it, unless the data has "
                    "values that the policy lacks"
                ] = None
        return tuple(notices)

    @cached_property
    def counted_conditions(self) -> tuple[str, ...]:
        """Return a notice on each COUNT of a condition, because that also counts the rows where the condition is false."""
        query = self.statement.query
        if query is None or not self.statement.has(exp.Count):
            return ()
        counted = [count.this for count in query.find_all(exp.Count) if isinstance(count.this, _CONDITIONS)]
        texts = dict.fromkeys(condition.sql(dialect()) for condition in counted)
        return tuple(
            f"COUNT({text}) counts every row where {text} is true or false; COUNT_IF({text}) counts those where it is true"
            for text in (text if len(text) <= _MOST_SHOWN else "condition" for text in texts)
        )

    @cached_property
    def columns_read(self) -> tuple[str, ...]:
        """The columns of base tables that the question reads, as TABLE.COLUMN."""
        read = (scan for priced in self.price.blocks for scan in scans(priced.rows_read))
        return tuple(sorted({f"{scan.table}.{column.name}" for scan in read for column in scan.columns}))

    def waiting(self, index: int) -> tuple[str, ...]:
        """Return the names of the unreleased results that block number `index` reads."""
        return results_read(self.price.blocks[index].block) if self.plan.results else ()


def release_key(priced: PricedBlock, policy: Policy) -> str:
    """Return the key of a block's release: a fingerprint of what is measured, over which rows, and with which noise. Only what
    the block reads of the policy has a part in it."""
    plan, source = priced.noise, priced.rows_read
    measured = (plan.terms, plan.selection, *plan.measurements)
    return fingerprint((priced.named, *measured, tuple(marks_read(source, policy).items())))


def _planned_keys(plan: Plan, priced: Price, policy: Policy) -> tuple[str, ...]:
    """Return the names of releases as far as they are known before any release. In the name of a block that waits for results,
    the queries of these results and the names of the blocks that they read stand for the rows."""
    keys: dict[str, str] = {}
    results = {result.name: result.query for result in plan.results}
    for priced_block in priced.blocks:
        key = release_key(priced_block, policy)
        for name in results_read(priced_block.block) if results else ():
            made_of = sorted(keys[t.name] for t in results[name].find_all(exp.Table) if t.name in keys)
            key = fingerprint((key, results[name].sql(dialect=DIALECT.name), tuple(made_of)))
        keys[priced_block.block.name] = key
    return tuple(keys.values())


def _has_total(bounds: ContributionBounds) -> bool:
    return bounds.max_total is not None or bounds.max_count is not None


class Planner:
    """Plans statements for one policy; remembers the last `MOST_KEPT` of them. Thread-safe."""

    def __init__(self, policy: Policy, engine: Engine) -> None:
        """Prepare planning for `policy`. Raises policy_invalid for a row filter that is not a condition over rows."""
        check_row_filters(policy)
        self.policy = policy
        self.row_filters = row_filters(policy)
        self._engine = engine
        self._public_values = AskedValues(shared_sandbox()).for_engine(engine.dialect.name)
        self._counts: RecentValues[int] = RecentValues(MOST_ANSWERS, MOST_WEIGHT)
        self._public = tuple(name for name, table in policy.tables.items() if table.public)
        self._widened: tuple[str, Policy] | None = None
        budget = policy.budget
        self.accountant: Accountant = make_accountant(budget.accountant, budget.epsilon, budget.delta)
        self._statements: RecentValues[Statement] = RecentValues(MOST_KEPT, _MOST_KEPT_CHARACTERS)
        self._plans: RecentValues[Planned] = RecentValues(MOST_KEPT, _MOST_KEPT_CHARACTERS)
        self.rehearsals: RecentValues[tuple[OutputColumn, ...]] = RecentValues(MOST_KEPT, _MOST_KEPT_CHARACTERS)
        self.columns: WeakKeyDictionary[QuestionToken, tuple[OutputColumn, ...]] = WeakKeyDictionary()
        """Columns of questions whose remainder has been rehearsed."""

    def parse(self, text: SqlText, parameters: Parameters) -> Statement:
        """Return the parsed statement of a text, from the cache if its parameters are plain values."""
        with TRACES.span("parse"):
            values = values_text(parameters)
            if values is None or not isinstance(text, (str, Piece)):
                return self._completed(parse(text, parameters))
            sql = as_piece(text).sql
            return self._statements.get(
                (sql, values), lambda: self._completed(parse(text, parameters or None)), len(sql + values)
            )

    def _completed(self, statement: Statement) -> Statement:
        """Return a statement with the tree of the query that it stands for. Raises unknown_table."""
        if statement.query is not None or statement.kind not in ("query", "explain"):
            return statement
        path = statement.value.split(".")
        try:
            tree = parse(summary_query(self.policy, path))
        except Error as error:
            raise error.placed_in(statement.sql, statement.sql.find(path[0]) + 1) from None
        return replace(statement, query=tree.query, kinds=tree.kinds)

    def plan(self, statement: Statement, options: Options, cacheable: bool) -> Planned:
        """Return the priced plan of a query (or of an explained query). Raises only refusals."""
        for name, value in statement.options:
            if name == "group_selection_strategy" and value.upper() in _STRATEGIES:
                continue
            try:
                options = options.with_value(_BIGQUERY.get(name, name), value, self.policy)
            except Error as error:
                raise error.placed_in(statement.sql, option_place(statement.sql, name)) from None
        policy, version = self.bound_policy(statement)
        if not cacheable or statement.reads_the_clock:
            return self._plan(statement, options, policy)
        key = (statement.sql, statement.values, options, version)
        size = len(statement.sql + statement.values)
        return self._plans.get(key, lambda: self._plan(statement, options, policy), size)

    def bound_policy(self, statement: Statement) -> tuple[Policy, str]:
        """Return the policy that names refer to, and the version of its public data. Where a public table is read, columns of
        public tables have the values found in them as domain.

        Public tables are public: grouping by their columns needs no partition selection, whatever unit the rows belong to.
        """
        assert statement.query is not None
        read = {table.name.lower() for table in statement.query.find_all(exp.Table)}
        if not any(name.lower() in read for name in self._public):
            return self.policy, ""
        version = self._engine.data_version(self._public)
        if self._widened is None or self._widened[0] != version:
            tables = dict(self.policy.tables)
            for name in self._public:
                widened = _with_domains(tables[name], self._engine.public_domains(name, MOST_DOMAIN))
                rows = self._engine.public_rows(name, MOST_ROWS)
                tables[name] = replace(
                    widened, rows=rows, row_count=self._row_count(name) if rows is None else len(rows[1])
                )
            self._widened = (version, replace(self.policy, tables=tables))
        return self._widened[1], version

    def _row_count(self, name: str) -> int:
        """Return the number of rows of a public table that is not read row by row."""
        counted = self._engine.public_table(f"SELECT count(*) AS n FROM {self._engine.source(name).sql}")
        return int(counted.column(0)[0].as_py())

    def _values_of(self, policy: Policy) -> PublicValues:
        """Return what answers questions about public values while one statement is bound."""
        return replace(self._public_values, agreeing=partial(self._agreeing, policy, [MOST_COUNTED]))

    def _agreeing(self, policy: Policy, left: list[int], relation: Relation, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows of a relation over public tables that agree on the columns. `left`: one number, the
        rows that may still be read for the statement, counted before too. Raises Unanswered if they are fewer."""
        for scan in scans(relation):
            require_public(scan, self.policy)
            left[0] -= policy.tables[scan.table].row_count or 0
        if left[0] < 0:
            raise Unanswered
        rows = Emitter(self.policy, self._engine.dialect, self._engine.source).relation(relation)
        key = f"{self._engine.data_version(self._public)} {columns} {rows}"
        return self._counts.get(key, lambda: self._counted(rows, columns), 1)

    def _counted(self, rows: str, columns: Sequence[str]) -> int:
        names = ", ".join(map(self._engine.dialect.identifier, columns))
        groups = f" GROUP BY {names}" if columns else ""
        text = f"SELECT max(n) AS n FROM (SELECT count(*) AS n FROM ({rows}) AS r{groups}) AS g"
        return int(self._engine.public_table(text).column(0)[0].as_py() or 0)

    def _plan(self, statement: Statement, options: Options, policy: Policy) -> Planned:
        if options.min_units is not None and requested(options) is not None:
            raise refuse("min_units", reason=f"noise of {options.mechanism} is added to medians and means alone")
        with TRACES.span("plan"):
            plan = bind(
                in_dialect(statement, options.dialect, options.confidence),
                policy,
                options.min_units,
                self._values_of(policy),
            )
            if not options.cut_totals and not _has_total(options.bounds):
                plan = replace(plan, blocks=tuple(self._with_counts(block) for block in plan.blocks))
        with TRACES.span("price"):
            return self.priced(statement, plan, options)

    def _with_counts(self, block: Block) -> Block:
        """Return a block with sums of ones as counts, unless a limit of one of its tables bounds the one and not the other."""
        bounds = [self.policy.tables[name].bounds for name in tables(block.source)]
        return block if any(map(_has_total, bounds)) else with_counts(block)

    def without_min_units(self, planned: Planned) -> Plan:
        """Return a bound question without its count of units, for comparisons: their threshold excludes small groups already."""
        statement = in_dialect(planned.statement, planned.options.dialect, planned.options.confidence)
        policy, _ = self.bound_policy(statement)
        return bind(statement, policy, public_values=self._values_of(policy))

    def priced(self, statement: Statement, plan: Plan, options: Options) -> Planned:
        """Return a bound question with its mechanisms, its price, and the names of its releases. Raises InternalError for a plan
        that reads what it must not."""
        policy = self.bound_policy(statement)[0]
        check_plan(plan, policy)
        bound_blocks = plan.blocks
        chooses = options.cut_totals or options.cut_counts or options.choose_values
        if chooses and not plan.cuts and requested(options) is None:
            plan = self._with_cuts(plan, options, policy)
        blocks = self.bounded_blocks(plan, options, policy)
        if any(block_cost(block) > MOST_OF_A_QUESTION for block in bound_blocks):
            advice = "ask with fewer or shorter patterns at once, on parts of texts, as in left(x, 100)"
            raise refuse("slow_expression", way=advice)
        widest = partial(self._widest, plan, options)
        priced = price(blocks, options, self.policy, self.accountant, widest)
        if options.workload is Objective.RUNNING and options.target_error is None and not plan.results:
            plan, priced = self._for_running_totals(plan, blocks, priced, options, policy)
        return Planned(statement, options, plan, priced, _planned_keys(plan, priced, self.policy))

    def bounded_blocks(self, plan: Plan, options: Options, policy: Policy) -> tuple[BoundedBlock, ...]:
        """Return a bound question's blocks with contribution bounds and basis sums. `policy`: of its names (`bound_policy`)."""
        local = requested(options)
        bars = options.confidence if options.quantile_bars or local is not None else None
        means = MeanRequest(options.confidence, options.mechanism)
        law = noise_law(options, self.accountant)
        choosing = {cut.block for cut in plan.cuts}

        def of_block(block: Block) -> BoundedBlock:
            if block.name in choosing:
                return bounded(block, policy, UNBOUNDED, row_filters=self.row_filters)
            cuts = {(cut.value, cut.filter, cut.places): cut for cut in plan.cuts if block.name in cut.readers}
            return bounded(block, policy, options.bounds, bars, local, means, cuts, law, self.row_filters)

        return tuple(map(of_block, plan.blocks))

    def _with_cuts(self, plan: Plan, options: Options, policy: Policy) -> Plan:
        """Return the plan with added blocks that choose the bounds to which a unit's sums are scaled down, or how many values it
        brings.

        Raises Refusal target_error."""
        extended = with_places(plan, policy) if options.choose_values else plan
        gaussian = self.accountant.request(options.epsilon).rho is not None and options.mechanism != "laplace"
        extended = with_cuts(extended, policy, gaussian, options.cut_totals, options.cut_counts)
        if extended.cuts and options.target_error is not None:
            option = extended.cuts[0].option
            aggregates = {"max_total": "SUM", "max_count": "COUNT", "max_values": "COUNT(DISTINCT)"}
            chosen = f"a bound that is chosen when it is asked (dp.{option} = auto)"
            reason = f"the noise of a {aggregates[option]} follows from {chosen}"
            raise refuse("target_error", reason=reason, way=f"SET dp.epsilon instead, or dp.{option} = a number")
        return extended

    def _for_running_totals(
        self, plan: Plan, blocks: tuple[BoundedBlock, ...], alone: Price, options: Options, policy: Policy
    ) -> tuple[Plan, Price]:
        """Return the plan and price with noise for running totals, or with further blocks by ranges of its last keys, whichever
        makes running totals most exact; unchanged if neither helps.

        All choices have the same budget. The comparison uses noise laws only, so it depends on text, policy and options.
        """
        of_blocks = lengths(blocks) if ANNEX_OF[SQUARE_ROOT] in policy.mechanisms else {}
        rooted = price(blocks, options, self.policy, self.accountant, lengths=of_blocks) if of_blocks else alone
        extended, ranges = self._by_ranges(plan, blocks, alone, options, policy)
        tables = least_error(alone, rooted, ranges, of_blocks)
        return (plan, replace(rooted, running=tables)) if tables else (extended, ranges)

    def _by_ranges(
        self, plan: Plan, blocks: tuple[BoundedBlock, ...], alone: Price, options: Options, policy: Policy
    ) -> tuple[Plan, Price]:
        """Return the plan and price with further blocks by ranges of its last keys if that is more exact; otherwise unchanged."""
        power = 2 if self.accountant.request(options.epsilon).rho is None else 1
        further, ranges = levels(plan.blocks, blocks, power)
        if not ranges:
            return plan, alone
        extended = replace(plan, blocks=(*plan.blocks, *further))
        law = noise_law(options, self.accountant)  # the tiles of one table have equal terms
        filters = self.row_filters
        tiles = (bounded(block, policy, options.bounds, law=law, row_filters=filters) for block in further)
        every = (*blocks, *tiles)
        priced = price(every, options, self.policy, self.accountant, ranges=tuple(ranges))
        return (extended, compared) if (compared := compared_with(priced, alone, len(ranges))) else (plan, alone)

    @staticmethod
    def _widest(plan: Plan, options: Options, priced: Price) -> float:
        return widest_bar(plan, priced, options, shared_sandbox())

    def require_least(self, loss: PrivacyLoss) -> None:
        """Raise option_floor for a measurement below the least epsilon that is only a part of a question (the rest is stored):
        its time reveals as much as that of any other measurement. Allows for a part of the requested epsilon that is lost to
        rounding."""
        least = self.policy.per_query.min_epsilon
        floor = self.accountant.units(self.accountant.request(least)) if least else {}
        spent = self.accountant.units(loss)
        if any(2 * spent.get(name, 0) < amount for name, amount in floor.items()):
            limit = f"epsilon {plain_decimal(least)}"
            raise refuse("option_floor", name="what is measured", value=describe_loss(loss), limit=limit)


_STRATEGIES = ("LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD", "PUBLIC_GROUPS")
"""How GoogleSQL may choose groups. Here the policy does: declared and public values are groups, others by a threshold."""
_BIGQUERY = {
    "kappa": "max_groups",
    "k_threshold": "min_units",
    "max_groups_contributed": "max_groups",
    "max_rows_contributed": "max_rows_per_group",
    "min_privacy_units_per_group": "min_units",
}


def _with_domains(table: Table, domains: Mapping[str, tuple[Any, ...]]) -> Table:
    columns = {
        name: replace(column, domain=tuple(v for v in values if v is not None), nullable=None in values)
        for name, column in table.columns.items()
        if column.domain is None and (values := domains.get(name)) is not None
    }
    return replace(table, columns={**table.columns, **columns})


def read_tables(planned: Planned, blocks: Sequence[int] | None = None) -> tuple[str, ...]:
    """Return the tables that the public part and the given blocks of a question read (None: all of its blocks)."""
    chosen = range(len(planned.price.blocks)) if blocks is None else blocks
    read = {table for index in chosen for table in tables(planned.price.blocks[index].block.source)}
    return tuple(sorted(read | {entry.scan.table for entry in planned.plan.public_inputs}))
