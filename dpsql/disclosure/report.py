"""Exact figures of disclosure risk: how many persons share a combination of values, and what their group reveals about them.

A *class* is the set of persons with the same values of the chosen columns (quasi-identifiers); NULL is a value like any other. A
person with several rows is in several classes and counted by the smallest: whoever finds one row has found the person.
k-anonymity: Samarati and Sweeney 1998 (k is the size of the smallest class). l-diversity: Machanavajjhala et al. 2007 (distinct:
fewest different sensitive values in a class; entropy: exp of the least Shannon entropy of a class). t-closeness: Li, Li and
Venkatasubramanian 2007, with equal distances between values (half the L1 distance between the distribution in the class and that
of all persons). Risks of being found: prosecutor model of El Emam (1 / size of the person's class).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import combinations, product
from typing import Any, Self

import duckdb
import numpy as np
from sqlglot import exp

from dpsql.engine.contract import Engine
from dpsql.engine.emit.bounded_view import bounded_view
from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.media.text import sql_name
from dpsql.plan.plan import UNIT
from dpsql.policy import Policy, PolicyColumn, Table
from dpsql.sql.lexer import DIALECT
from dpsql.sql.parser import parse_text
from dpsql.storage.records import dataclass

Exact = Mapping[tuple[Any, ...], Sequence[Any]]
"""The columns of a row, by the values of its keys."""


def plain_answer(policy: Policy, engine: Engine, sql: str, keys: Sequence[int]) -> Exact:
    """Return the rows of a question over all rows of its tables, by the values of their columns at the positions `keys`.

    Tables have the columns of the policy, in its types. Raises Refusal plot_exact for engines other than DuckDB, for a text that
    plain SQL does not answer, and for rows that have the same keys.
    """
    if engine.dialect.title != "DuckDB":
        raise refuse("plot_exact", problem=f"its tables are in {engine.dialect.title}")
    text = _over_all_rows(policy, engine, sql)
    try:
        rows = engine.exact_rows(text)
    except Error:
        raise refuse("plot_exact", problem="the database does not answer its text") from None
    columns = [[_plain(value) for value in column.to_pylist()] for column in rows.columns]
    answer = {tuple(columns[key][row] for key in keys): [column[row] for column in columns] for row in range(len(rows))}
    if len(answer) < len(rows):
        raise refuse("plot_exact", problem="several of its rows have the same keys")
    return answer


def _plain(value: Any) -> Any:
    """Return a value in the types of released numbers: DuckDB returns sums of integers as decimals."""
    return (
        value if not isinstance(value, Decimal) else int(value) if value == value.to_integral_value() else float(value)
    )


def _over_all_rows(policy: Policy, engine: Engine, sql: str) -> str:
    """Return the text of a question with every table of the policy replaced by all of its rows."""
    tree = parse_text(sql)
    common = {entry.alias.lower() for entry in tree.find_all(exp.CTE)}
    views: dict[str, str] = {}
    for node in list(tree.find_all(exp.Table)):
        table = policy.table(node.name)
        if table is None or node.name.lower() in common:
            continue
        name = views.setdefault(table.name, f"#{len(views)}")
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
        node.replace(exp.Table(this=exp.to_identifier(name, quoted=True), alias=alias.copy()))
    entries = ", ".join(f'"{name}" AS ({_all_rows(policy, engine, table)})' for table, name in views.items())
    return f"{f'WITH {entries} ' if entries else ''}SELECT * FROM ({tree.sql(dialect=DIALECT)}) AS answer"


def _all_rows(policy: Policy, engine: Engine, table: str) -> str:
    """Return a query for every row of a table of the policy, in the policy's columns."""
    text = engine.dialect
    if policy.tables[table].public:
        columns = ", ".join(text.identifier(name) for name in policy.tables[table].columns)
        return f"SELECT {columns} FROM {engine.source(table).sql}"
    view = bounded_view(text, policy, engine.source, table)
    return f"SELECT {', '.join(view.names)} FROM {text.derived(view.every)}"


# --- rows -------------------------------------------------------------------------------------------------------------

# The rows of one protected table as a local table: a person's number, and the chosen columns, in SQL types.

PERSON = "#person"
"""Column of the local table: a number for each privacy unit, which is each row if the unit is the row."""
ROWS = "#rows"
"""Column of the local table: the number of source rows that agree in everything else."""


class PersonRows:
    """Distinct rows of a table by person, in memory. Close it, or use it as a context manager.

    `columns`: the columns of the policy that were read, by name; `rows`, `persons`: their numbers; `ownerless`: the number of
    rows that belong to no person, which are left out, as in questions.
    """

    def __init__(self, policy: Policy, engine: Engine, table: str, columns: tuple[str, ...]) -> None:
        """Read the table. Raises Refusal for names that the policy does not contain, and Fault if the source fails."""
        declared = _protected(policy, table)
        self.table = declared.name
        self.columns: dict[str, PolicyColumn] = {}
        for name in columns:
            column = declared.column(name)
            if column is None:
                raise refuse(
                    "risk_no_column", column=name, table=declared.name, hint=suggestion(name, declared.columns)
                )
            self.columns[column.name] = column
        text, alone = engine.dialect, policy.privacy_unit is None
        names = [text.identifier(name) for name in self.columns]
        unit = [] if alone else [text.identifier(UNIT)]
        view = bounded_view(text, policy, engine.source, declared.name)
        listed = ", ".join([*names, *unit])
        fetched = engine.exact_rows(
            f"SELECT {listed}, COUNT(*) AS {text.identifier(ROWS)} FROM {text.derived(view.every)} GROUP BY {listed}"
        )
        self._local = duckdb.connect(":memory:")
        self._local.register("fetched", fetched)
        self._number_persons(alone)
        self.rows, self.persons = self._first_row(f'SELECT SUM("{ROWS}")::BIGINT, COUNT(DISTINCT "{PERSON}") FROM rows')
        self.rows = self.rows or 0
        nobodys = f'SELECT SUM("{ROWS}") FILTER (WHERE "{UNIT}" IS NULL)::BIGINT FROM fetched'
        self.ownerless = 0 if alone else self._first_row(nobodys)[0] or 0
        self._local.unregister("fetched")
        most = self._first_row(f'SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM rows GROUP BY "{PERSON}")')[0]
        self.one_row_each = (most or 1) == 1

    def _number_persons(self, alone: bool) -> None:
        names = ", ".join(sql_name(name) for name in self.columns)
        if alone:  # each row is a person
            number = f'unnest(range("{ROWS}")) AS copy'
            source = f'SELECT {names}, 1 AS "{ROWS}" FROM (SELECT {names}, {number}, "{ROWS}" FROM fetched)'
            self._local.execute(f'CREATE TABLE rows AS SELECT *, row_number() OVER () AS "{PERSON}" FROM ({source})')
            return
        person = f'dense_rank() OVER (ORDER BY "{UNIT}") AS "{PERSON}"'
        self._local.execute(
            f'CREATE TABLE rows AS SELECT {names}, "{ROWS}", {person} FROM fetched WHERE "{UNIT}" IS NOT NULL'
        )

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Return rows of a query over the local table `rows`."""
        return self._local.execute(sql).fetchall()

    def _first_row(self, sql: str) -> tuple[Any, ...]:
        return self.fetch(sql)[0]

    def close(self) -> None:
        self._local.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def _protected(policy: Policy, name: str) -> Table:
    table = policy.table(name)
    if table is None:
        raise refuse("risk_no_table", table=name, hint=suggestion(name, policy.tables))
    if table.public:
        raise refuse("risk_public_table", table=table.name)
    return table


# --- report -----------------------------------------------------------------------------------------------------------

MOST_COLUMNS = 12
LARGEST_SUBSET = 3
"""Largest number of columns in a combination whose uniqueness is listed."""
SIZES = ((1, 1), (2, 4), (5, 9), (10, 19), (20, 99), (100, None))
"""Ranges of class sizes that the report distinguishes; None: without upper end."""


@dataclass(frozen=True)
class ClassSizes:
    """Numbers of persons by the size of their smallest class. `classes`: number of different combinations of values.

    Without persons, `smallest` is 0 and every share is 0.
    """

    persons_by_size: tuple[tuple[int, int], ...]
    classes: int

    @property
    def persons(self) -> int:
        return sum(persons for _, persons in self.persons_by_size)

    @property
    def smallest(self) -> int:
        """The k of k-anonymity."""
        return min((size for size, _ in self.persons_by_size), default=0)

    @property
    def average_risk(self) -> float:
        """The mean over persons of 1 / size: the expected share of persons found by someone who knows everybody's columns."""
        return sum(persons / size for size, persons in self.persons_by_size) / max(self.persons, 1)

    def below(self, k: int) -> int:
        """Return the number of persons in a class of fewer than `k`."""
        return sum(persons for size, persons in self.persons_by_size if size < k)

    def between(self, low: int, high: int | None) -> int:
        """Return the number of persons whose smallest class has from `low` to `high` persons."""
        return sum(persons for size, persons in self.persons_by_size if low <= size and (high is None or size <= high))


@dataclass(frozen=True)
class Diversity:
    """What classes reveal about one sensitive column.

    `distinct`, `entropy`: l of distinct and of entropy l-diversity; `closeness`: t of t-closeness, from 0 to 1; `disclosed`:
    number of persons in a class where everybody has the same value.
    """

    column: str
    distinct: int
    entropy: float
    closeness: float
    disclosed: int


@dataclass(frozen=True)
class Uniqueness:
    """The number of persons who are the only ones with their values of some columns."""

    columns: tuple[str, ...]
    persons: int


@dataclass(frozen=True)
class RiskReport:
    """The figures of one table; `uniqueness` begins with the combination that singles out the most persons."""

    table: str
    columns: tuple[str, ...]
    rows: int
    persons: int
    ownerless: int
    sizes: ClassSizes
    diversity: tuple[Diversity, ...]
    uniqueness: tuple[Uniqueness, ...]


def measure_risk(rows: PersonRows, columns: tuple[str, ...], sensitive: tuple[str, ...] = ()) -> RiskReport:
    """Return the report on `columns` (quasi-identifiers) and `sensitive` columns, all read by `rows`. Raises risk_columns."""
    if not 1 <= len(columns) <= MOST_COLUMNS:
        raise refuse("risk_columns", most=MOST_COLUMNS)
    names = {name: sql_name(name) for name in columns}
    subsets = [subset for size in range(1, LARGEST_SUBSET + 1) for subset in combinations(columns, size)]
    unique = [
        Uniqueness(subset, class_sizes(rows, {name: names[name] for name in subset}).below(2)) for subset in subsets
    ]
    return RiskReport(
        rows.table,
        columns,
        rows.rows,
        rows.persons,
        rows.ownerless,
        class_sizes(rows, names),
        tuple(_diversity(rows, names, column) for column in sensitive),
        tuple(sorted(unique, key=lambda entry: (-entry.persons, len(entry.columns)))),
    )


def class_sizes(rows: PersonRows, values: dict[str, str]) -> ClassSizes:
    """Return the numbers of persons by the size of their smallest class; `values`: name -> SQL over the local table `rows`."""
    items = ", ".join(f"{sql} AS {sql_name(name)}" for name, sql in values.items())
    names = ", ".join(sql_name(name) for name in values)
    if rows.one_row_each:
        counted = rows.fetch(
            f"SELECT size, SUM(size)::BIGINT, COUNT(*) FROM (SELECT COUNT(*) AS size FROM (SELECT {items} FROM rows) "
            f"GROUP BY {names}) GROUP BY size ORDER BY size"
        )
        return ClassSizes(
            tuple((size, persons) for size, persons, _ in counted), sum(classes for *_, classes in counted)
        )
    pairs = f'SELECT DISTINCT {items}, "{PERSON}" FROM rows'
    sized = f"SELECT *, COUNT(*) OVER (PARTITION BY {names}) AS size FROM ({pairs})"
    smallest = f'SELECT MIN(size) AS size FROM ({sized}) GROUP BY "{PERSON}"'
    persons = rows.fetch(f"SELECT size, COUNT(*) FROM ({smallest}) GROUP BY size ORDER BY size")
    classes = rows.fetch(f"SELECT COUNT(*) FROM (SELECT DISTINCT {items} FROM rows)")[0][0]
    return ClassSizes(tuple((size, number) for size, number in persons), classes)


def _diversity(rows: PersonRows, names: dict[str, str], column: str) -> Diversity:
    """Return the figures of a sensitive column. Shares are of pairs (person, value): one with two values counts for each."""
    keys, value = ", ".join(names.values()), sql_name(column)
    pairs = f'SELECT DISTINCT {keys}, {value} AS "#value", "{PERSON}" FROM rows'
    counted = f'SELECT {keys}, "#value", COUNT(*) AS n FROM ({pairs}) GROUP BY {keys}, "#value"'
    shared = f"SELECT *, n / SUM(n) OVER (PARTITION BY {keys}) AS share FROM ({counted})"
    everybody = f'SELECT "#value" AS v, SUM(n) / SUM(SUM(n)) OVER () AS p FROM ({counted}) GROUP BY "#value"'
    # Half of the L1 distance: values missing in a class add their whole share, which is 1 minus the shares of those present.
    apart = "0.5 * (SUM(abs(share - p)) + 1 - SUM(p))"
    joined = f'({shared}) AS c JOIN ({everybody}) AS e ON c."#value" IS NOT DISTINCT FROM e.v'
    entropy = "exp(-SUM(share * ln(share)))"
    by_class = (
        f"SELECT COUNT(*) AS kinds, {entropy} AS entropy, {apart} AS apart, SUM(n) AS n FROM {joined} GROUP BY {keys}"
    )
    distinct, least, farthest = rows.fetch(f"SELECT MIN(kinds), MIN(entropy), MAX(apart) FROM ({by_class})")[0]
    same = f"SELECT {keys} FROM ({counted}) GROUP BY {keys} HAVING COUNT(*) = 1"
    matched = " AND ".join(f"r.{name} IS NOT DISTINCT FROM s.{name}" for name in names.values())
    disclosed = rows.fetch(f'SELECT COUNT(DISTINCT r."{PERSON}") FROM rows AS r JOIN ({same}) AS s ON {matched}')[0][0]
    return Diversity(column, distinct or 0, least or 0.0, min(max(farthest or 0.0, 0.0), 1.0), disclosed)


# --- generalisation ---------------------------------------------------------------------------------------------------

# Generalisations of columns that make every class large enough, and how much information they keep.
# Each column has a ladder of ever coarser levels. A combination of levels is good if at most a given share of the persons is
# in classes below k (they would have to be left out). Making any level coarser only merges classes, so any combination
# coarser than a good one is good, and any combination finer than a bad one is bad: the lattice is searched by halving
# (Samarati 2001; OLA, El Emam et al. 2009), and only the finest good combinations are returned.

MOST_COMBINATIONS = 20_000
MOST_LEVELS = 6
LEAST_MERGE = 1.3
"""Factor by which a coarser level must have fewer values than the level before it to become a rung of the ladder."""
PERIODS = {
    "date": ("month", "quarter", "year", "decade"),
    "timestamp": ("hour", "day", "month", "quarter", "year", "decade"),
}


@dataclass(frozen=True)
class CoarserValue:
    """One rung of a column's ladder. `sql`: the coarser value, over the column; `entropy`: Shannon entropy of persons' values, in
    nats."""

    words: str
    sql: str
    values: int
    entropy: float


@dataclass(frozen=True)
class Generalisation:
    """Levels that reach a wanted k. `information`: mean share of the columns' entropy that is kept, from 0 to 1 (non-uniform
    entropy, Gionis and Tassa 2009); `left_out`: persons in classes that stay below k; `classes`: number of different combinations
    of values."""

    levels: tuple[tuple[str, str], ...]
    sql: tuple[tuple[str, str], ...]
    information: float
    left_out: int
    classes: int


def generalisations(
    rows: PersonRows, columns: tuple[str, ...], k: int, suppressed: float = 0.0
) -> tuple[Generalisation, ...]:
    """Return the finest generalisations with at most the share `suppressed` of persons in classes below `k`, beginning with the
    one that keeps the most; none if even a single class of all persons is below k. Raises Refusal risk_combinations if the
    ladders have too many combinations."""
    ladders = [ladder(rows, name) for name in columns]
    if math.prod(map(len, ladders)) > MOST_COMBINATIONS:
        raise refuse("risk_combinations", most=MOST_COMBINATIONS)

    def result(combination: tuple[int, ...]) -> Generalisation:
        levels = [steps[step] for steps, step in zip(ladders, combination, strict=True)]
        values = dict(zip(columns, (level.sql for level in levels), strict=True))
        sizes = class_sizes(rows, values)
        shares = [
            level.entropy / steps[0].entropy if steps[0].entropy else 1.0
            for level, steps in zip(levels, ladders, strict=True)
        ]
        words = tuple(zip(columns, (level.words for level in levels), strict=True))
        return Generalisation(words, tuple(values.items()), sum(shares) / len(shares), sizes.below(k), sizes.classes)

    reached: dict[tuple[int, ...], Generalisation] = {}

    def good(combination: tuple[int, ...]) -> bool:
        reached[combination] = result(combination)
        return bool(reached[combination].left_out <= suppressed * rows.persons)

    finest = finest_good([len(steps) for steps in ladders], good)
    return tuple(
        sorted((reached[combination] for combination in finest), key=lambda entry: (-entry.information, entry.levels))
    )


def finest_good(heights: list[int], good: Callable[[tuple[int, ...]], bool]) -> list[tuple[int, ...]]:
    """Return the minimal tuples below `heights` for which `good` holds; `good` must be monotone, and is called for few tuples."""
    nodes = np.array(list(product(*map(range, heights))), dtype=np.int16)
    undecided, height = np.ones(len(nodes), dtype=bool), nodes.sum(axis=1)
    fitting: list[np.ndarray] = []
    while undecided.any():
        waiting = np.flatnonzero(undecided)
        middle = nodes[waiting[np.argsort(height[waiting], kind="stable")[len(waiting) // 2]]]
        if good(tuple(int(step) for step in middle)):
            fitting.append(middle)
            undecided &= ~(nodes >= middle).all(axis=1)
        else:
            undecided &= ~(nodes <= middle).all(axis=1)
    # Every good tuple is above one for which `good` was called, so the minimal ones are among those.
    finest = (node for node in fitting if sum(bool((other <= node).all()) for other in fitting) == 1)
    return [tuple(int(step) for step in node) for node in finest]


def ladder(rows: PersonRows, column: str) -> list[CoarserValue]:
    """Return at most `MOST_LEVELS` levels of a column, its own values first, one for all last, each merging `LEAST_MERGE`."""
    steps: list[CoarserValue] = []
    for words, sql in _candidates(rows, column):
        values, entropy = _spread(rows, sql)
        if not steps or values * LEAST_MERGE <= steps[-1].values:
            steps.append(CoarserValue(words, sql, values, entropy))
    if len(steps) > MOST_LEVELS - 1:  # keep the finest, the coarsest and some between
        chosen = {round(step) for step in np.linspace(0, len(steps) - 1, MOST_LEVELS - 1)}
        steps = [level for number, level in enumerate(steps) if number in chosen]
    return [*steps, CoarserValue("not shown", "NULL", 1, 0.0)] if steps[-1].values > 1 else steps


def _spread(rows: PersonRows, sql: str) -> tuple[int, float]:
    counted = f'SELECT COUNT(*) AS n FROM (SELECT DISTINCT {sql} AS v, "{PERSON}" FROM rows) GROUP BY v'
    values, entropy = rows.fetch(
        f"SELECT COUNT(*), -SUM(s * ln(s)) FROM (SELECT n / SUM(n) OVER () AS s FROM ({counted}))"
    )[0]
    return max(values, 1), max(entropy or 0.0, 0.0)


def _candidates(rows: PersonRows, column: str) -> Iterator[tuple[str, str]]:
    name, type_ = sql_name(column), rows.columns[column].type
    yield "as it is", name
    if type_ in ("integer", "real"):
        low, high = rows.fetch(f"SELECT MIN({name}), MAX({name}) FROM rows WHERE isfinite({name}::DOUBLE)")[0]
        for smallest, times in _widths(float(low or 0), float(high or 0), whole=type_ == "integer"):
            steps = f"floor(floor({name} / {smallest!r}) / {times})"
            yield f"steps of {smallest * times:g}", f"{steps} * {smallest * times!r}"
    elif type_ == "text":
        longest = rows.fetch(f"SELECT MAX(length({name})) FROM rows")[0][0] or 0
        for length in range(min(longest - 1, 20), 0, -1):
            yield f"first {length} character{'s' * (length > 1)}", f"left({name}, {length})"
    for period in PERIODS.get(type_, ()):
        yield period, f"date_trunc('{period}', {name})"


def _widths(low: float, high: float, whole: bool) -> Iterator[tuple[float, int]]:
    """Yield the widths of nested steps, each a multiple of the one before, from a thousandth of the range to half of it: each as
    the smallest width, and its multiple (1, 5, 10, 50, ...)."""
    if high <= low:
        return
    smallest = 10.0 ** (math.floor(math.log10(high - low)) - 3)
    if whole:
        smallest = max(smallest, 1.0)
    times = 1
    while smallest * times <= (high - low) / 2:
        if not (whole and smallest * times == 1):  # that is the value itself
            yield smallest, times
        times *= 5 if math.log10(times).is_integer() else 2
