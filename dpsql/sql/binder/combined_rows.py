"""How many rows of results and public tables a SELECT over them may have to look at, before anything is charged.

A product of results takes time and memory after the charge, so it is refused where text and policy allow more rows than the
sandbox has time for. Everything counted here is public: rows that the question writes, rows of public tables, groups of public
keys; of private keys, whose number nobody knows before, `UNLISTED` are assumed. A row meets few rows of a source whose columns
it fixes by equality: at most as many as the other columns of a key have values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.combinations import group_count
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Block
from dpsql.sql.binder.result_facts import MOST_UNIQUE, Sources, output, scope_of
from dpsql.sql.binder.scope import Bound, Released, using, using_name
from dpsql.sql.binder.trees import condition_of, conjuncts
from dpsql.sql.parse import place

MOST_COMBINED = 5_000_000
"""Rows that all steps of a question's public part may have together: the sandbox sorts as many in about a second."""
MOST_SHOWN = 1_000_000
"""Rows that an answer may have: as many as the sandbox returns."""
UNLISTED = 1_000
"""Groups that private keys are taken to have."""
MOST_EXACT = 1 << 24
"""Integers up to this size are numbers with a fraction of any width, too."""
Position = tuple[int, int]
"""Number of a source and position of one of its columns."""


@dataclass(frozen=True)
class Equality:
    """A column that a condition sets equal to an expression over the columns of some other sources."""

    column: Position
    compared: frozenset[int]


def groups_of(block: Block) -> int:
    """Return how many groups a block has at most, as far as that is public: for each combination of public keys `UNLISTED` of
    private ones."""
    is_private = any(key.values is None for key in block.keys)
    return group_count([key.values for key in block.keys], block.combinations) * (UNLISTED if is_private else 1)


def combined_rows(node: exp.Select, sources: Sources) -> tuple[int, int]:
    """Return how many rows the sources of a SELECT have together at most, and how many rows all steps of joining them have.

    Refuses (many_combinations) more than `MOST_COMBINED`, at the source that makes them so many.
    """
    joins = node.args.get("joins") or []
    if not joins and (not sources or node.args.get("where") is None):
        return (sources[0][1].most_rows if sources else 1), 0
    if any(_side(join) in ("RIGHT", "FULL") for join in joins) and any(map(_is_comma, joins)):
        return _product(sources, joins)  # in FROM a, b FULL JOIN c the comma is read last
    return _Steps(node, sources, joins).joined()


def _counted(node: exp.Select, bound: Released, inner: Sequence[tuple[int, int | None]]) -> Released:
    """Return what a SELECT over results returns with the number of its rows, and with the rows of all steps up to it.

    `bound.most_rows`: rows before they are grouped. `inner`: the steps of each subquery in an expression for one row, and for all
    rows together (None: it is taken to run for each). Refuses (many_combinations) too many steps.
    """
    rows = bound.most_rows * _grouping_sets(node)
    work = bound.work + (rows if rows > bound.most_rows else 0)
    for steps, together in inner:
        work += steps * bound.most_rows if together is None else min(steps * bound.most_rows, together)
    if work > MOST_COMBINED:
        raise too_many(work, place(node.expressions[0]) or place(node))
    return _limited(node, replace(bound, most_rows=rows, work=work))


def united_rows(node: exp.SetOperation, bound: Released, sides: Sequence[Released]) -> Released:
    """Return what a set operation returns with the number of its rows and steps. Refuses (many_combinations) too many."""
    rows = sum(side.most_rows for side in sides) if isinstance(node, exp.Union) else sides[0].most_rows
    work = sum(side.work + side.most_rows for side in sides)
    if work > MOST_COMBINED:
        raise too_many(work, place(node))
    return _limited(node, replace(bound, most_rows=rows, work=work))


def check_shown(query: exp.Expr, bound: Released) -> None:
    """Refuse (many_combinations) an answer that shows a product of results as it is, and is longer than an answer may be."""
    bare = query.unnest()
    filters = ("where", "group", "having", "qualify", "distinct", "limit")
    joins = bare.args.get("joins") or []
    if (
        bound.most_rows > MOST_SHOWN
        and isinstance(bare, exp.Select)
        and joins
        and not any(bare.args.get(clause) for clause in filters)
        and not any(join.args.get("on") or join.args.get("using") or join.args.get("method") for join in joins)
    ):
        raise too_many(bound.most_rows, place(joins[-1].this) or place(bare), MOST_SHOWN)


class InnerQueries:
    """Subqueries in expressions over results: how many steps each has, and which names stand in them."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, int | None]] = []
        self._names: set[str] = set()
        self._sources: list[tuple[str, Bound]] = []
        self.rows = 0
        """Rows of the SELECT that was bound last, before they are grouped."""

    def counted(self, node: exp.Select, bind: Callable[[], Bound]) -> Bound:
        """Return what `bind` returns for a SELECT, a result with its numbers of rows and steps. Refuses (many_combinations) too
        many."""
        outside, self._steps = self._steps, []
        try:
            bound = bind()
            if not isinstance(bound, Released):
                return bound
            self.rows = bound.most_rows
            return _counted(node, bound, self._steps)
        finally:
            self._steps = outside

    def add(self, query: exp.Expr, steps: int, is_alone: bool) -> None:
        """Enter a subquery, with its steps for one row. `is_alone`: it names no column of the query around it."""
        self._steps.append((steps, steps if is_alone else self._together(query.unnest())))

    def _together(self, query: exp.Expr) -> int | None:
        """Return how many steps a subquery has for all rows around it, where each column that it names of the query around it is
        equal to a column of its own: then the engine joins its sources once with the different values of those columns, of which
        each of their rows meets one. Where it has several sources, nothing else of it may name a column around it. None for any
        other subquery."""
        if not isinstance(query, exp.Select) or len(list(query.find_all(exp.Query))) > 1:
            return None
        sources = [(alias, source) for alias, source in self._sources if isinstance(source, Released)]
        if len(sources) < len(self._sources) or not sources:
            return None
        columns = _OwnColumns(sources)
        fixed: set[str] = set()
        unrelated = []
        for part in conjuncts(condition_of(query, "where")):
            around = columns.fixed_outer(part.unnest())
            fixed |= around
            unrelated += [] if around else [part]
        work = sum(source.work for _, source in sources)
        if len(sources) == 1:
            return work + sources[0][1].most_rows if columns.outer_names(query) <= fixed else None
        alone = query.copy()
        alone.set("where", exp.Where(this=exp.and_(*unrelated)) if unrelated else None)
        if columns.outer_names(alone):
            return None
        try:
            return work + sum(combined_rows(alone, sources))
        except Error:
            return None

    @contextmanager
    def names_inside(self) -> Iterator[Callable[[exp.Expr], bool]]:
        """Yield a function that tells whether a query, once it is bound, names columns of its own sources alone."""
        outside, self._names = self._names, set()
        try:
            yield self._is_alone
        finally:
            self._names = outside

    def name(self, node: exp.Select, bound: Sequence[tuple[str, Bound]]) -> None:
        """Enter the sources of a SELECT inside a subquery, their columns, and its own outputs."""
        self._sources = list(bound)
        self._names |= {item.alias.lower() for item in node.expressions if item.alias}
        for alias, source in bound:
            labels = source.columns if isinstance(source, Released) else [label for label, _ in source.columns]
            self._names |= {f"{alias.lower()}.", *map(str.lower, labels)}

    def _is_alone(self, query: exp.Expr) -> bool:
        named = (
            f"{column.table.lower()}." if column.table else column.name.lower() for column in query.find_all(exp.Column)
        )
        return all(name in self._names for name in named)


class _OwnColumns:
    """The columns of the sources of a subquery; all others that it names are of the query around it."""

    def __init__(self, sources: Sources) -> None:
        self._aliases = {alias.lower() for alias, _ in sources}
        self._facts: dict[str, Facts | None] = {}
        for alias, source in reversed(sources):
            for label, facts in zip(reversed(source.columns), reversed(source.column_facts), strict=True):
                self._facts |= {label.lower(): facts, f"{alias}.{label}".lower(): facts}

    def outer_names(self, node: exp.Expr) -> set[str]:
        """Return the columns around a subquery that an expression names."""
        return {column.sql().lower() for column in node.find_all(exp.Column) if self._is_outer(column)}

    def fixed_outer(self, condition: exp.Expr) -> set[str]:
        """Return the column around the subquery that a condition sets equal to one of its own; none for other conditions."""
        sides = [condition.this.unnest(), condition.expression.unnest()] if isinstance(condition, exp.EQ) else []
        if not sides or not all(isinstance(side, exp.Column) for side in sides):
            return set()
        for inside, outer in (sides, sides[::-1]):
            name = f"{inside.table}.{inside.name}" if inside.table else inside.name
            facts = None if self._is_outer(inside) else self._facts.get(name.lower())
            if self._is_outer(outer) and facts is not None and facts.type is not Type.REAL:
                return {outer.sql().lower()}
        return set()

    def _is_outer(self, column: exp.Column) -> bool:
        return column.table.lower() not in self._aliases if column.table else column.name.lower() not in self._facts


class _Steps:
    """The sources of one SELECT joined one after the other."""

    def __init__(self, node: exp.Select, sources: Sources, joins: Sequence[exp.Join]) -> None:
        self.node, self.sources, self.joins = node, [source for _, source in sources], joins
        self.aliases = {alias.lower() for alias, _ in sources}
        self.scope = scope_of(sources, *using(joins, [alias for alias, _ in sources]))
        self.inner = [not _side(join) and _kind(join) in ("", "INNER", "CROSS") for join in joins]
        pairing = [join.args.get("on") for join in joins]
        conditions = [
            condition_of(node, "where"),
            *(on for on, inner in zip(pairing, self.inner, strict=True) if inner),
        ]
        self.everywhere = [equality for condition in conditions for equality in self._equalities(condition)]
        self.of_join = [[*self._equalities(on), *self._merged(number)] for number, on in enumerate(pairing, 1)]
        self.placed: set[int] = set()
        self.rows = self._partners(0)
        self.keys = self._keys(0)
        self.placed.add(0)

    def joined(self) -> tuple[int, int]:
        """Join all of them. Where every join is an inner one, that source comes next which adds the fewest rows."""
        steps, waiting = 0, list(range(1, len(self.sources)))
        while waiting:
            number = min(waiting, key=self._pairs) if all(self.inner) else waiting[0]
            waiting.remove(number)
            steps += self._join(number)
            if steps > MOST_COMBINED:
                join = self.joins[number - 1]
                raise too_many(steps, place(join.this) or place(join) or place(self.node))
        return self.rows, steps

    def _join(self, number: int) -> int:
        """Join one source, and return how many rows that step has."""
        source, join = self.sources[number], self.joins[number - 1]
        each, pairs = self._partners(number), self._pairs(number)
        both = [key | other for key in self.keys for other in self._keys(number)]
        self.placed.add(number)
        if _kind(join) in ("SEMI", "ANTI"):
            return pairs
        self.keys = [*(self.keys if each <= 1 and _side(join) in ("", "LEFT") else []), *both][:MOST_UNIQUE]
        left = self.rows if _side(join) in ("LEFT", "FULL") else 0
        right = source.most_rows if _side(join) in ("RIGHT", "FULL") else 0
        self.rows = max(pairs, left) + right if each <= 1 else pairs + left + right
        return self.rows

    def _pairs(self, number: int) -> int:
        """Return how many pairs there are of rows so far and rows of a source."""
        fixed = {
            each.column
            for each in self._conditions(number)
            if each.column[0] in self.placed and each.compared <= {number}
        }
        partners = min([self.rows, *(self._agreeing(key, fixed) for key in self.keys)])
        return min(self.rows * self._partners(number), self.sources[number].most_rows * partners)

    def _partners(self, number: int) -> int:
        """Return how many rows of a source one row so far meets at most."""
        fixed = {
            each.column
            for each in self._conditions(number)
            if each.column[0] == number and each.compared <= self.placed
        }
        return min([self.sources[number].most_rows, *(self._agreeing(key, fixed) for key in self._keys(number))])

    def _agreeing(self, key: Collection[Position], fixed: Collection[Position]) -> int:
        """Return how many rows agree on the columns of a key that are fixed."""
        return prod(self._values(number, position) for number, position in key if (number, position) not in fixed)

    def _values(self, number: int, position: int) -> int:
        """Return how many values a column of a key has at most, each of them in one row for each value of the others."""
        source = self.sources[number]
        every = source.most_rows + (not all(self.inner))  # an outer join has one NULL more
        return min(every, values_of(source.column_facts[position], source.null_repeats) or every)

    def _keys(self, number: int) -> list[frozenset[Position]]:
        keys = self.sources[number].unique | {positions for positions, _, _ in self.sources[number].declared}
        return [frozenset((number, position) for position in key) for key in keys]

    def _conditions(self, number: int) -> list[Equality]:
        """Return the equalities that hold for every pair with a row of a source."""
        if number == 0:
            return self.everywhere
        return [*self.of_join[number - 1], *(self.everywhere if self.inner[number - 1] else [])]

    # --- conditions ---------------------------------------------------------------------------------------------------

    def _equalities(self, condition: exp.Expr | None) -> Iterator[Equality]:
        for part in conjuncts(condition):
            bare = part.unnest()
            if isinstance(bare, exp.EQ) and bare.find(exp.Query) is None:
                for side, other in ((bare.this, bare.expression), (bare.expression, bare.this)):
                    column, compared = self._position(side.unnest()), self._numbers(other)
                    if column is None or compared is None or column[0] in compared:
                        continue
                    facts = self.sources[column[0]].column_facts[column[1]]
                    if facts is not None and _stays_apart(facts, output(other, self.scope).facts):
                        yield Equality(column, compared)

    def _numbers(self, expression: exp.Expr) -> frozenset[int] | None:
        """Return the sources that an expression reads, besides those of a query around it; None where that is not known."""
        numbers = set()
        for column in expression.find_all(exp.Column):
            position = self._position(column)
            if position is not None:
                numbers.add(position[0])
            elif not column.table or column.table.lower() in self.aliases:
                return None
        return frozenset(numbers)

    def _position(self, node: exp.Expr) -> Position | None:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        try:
            number, _, position = self.scope.resolve(node).name.partition(".")
        except Error:
            return None
        return int(number), int(position)

    def _merged(self, number: int) -> Iterator[Equality]:
        """Yield the equalities of USING, and of NATURAL."""
        join, labels = self.joins[number - 1], _labels(self.sources[number])
        before = [_labels(source) for source in self.sources[:number]]
        names = [using_name(name).lower() for name in join.args.get("using") or ()]
        if join.args.get("method"):
            names = [label for label in labels if any(label in earlier for earlier in before)]
        for name in names:
            other = next((index for index, earlier in enumerate(before) if name in earlier), None)
            if other is None or name not in labels:
                continue
            yield Equality((number, labels[name]), frozenset({other}))
            if all(self.inner):
                yield Equality((other, before[other][name]), frozenset({number}))


def _stays_apart(facts: Facts, other: Facts | None) -> bool:
    """Return whether different values of a column are still different when they are converted to be compared: large integers
    may become one number with a fraction (of 24 bits at least). Texts are compared with texts alone (`rehearsal`)."""
    if facts.type is not Type.INTEGER or (other is not None and other.type is Type.INTEGER):
        return True
    return facts.bounded and max(abs(int(facts.lower)), abs(int(facts.upper))) <= MOST_EXACT


def values_of(facts: Facts | None, null_repeats: bool) -> int | None:
    """Return how many values a column may have, NULL among them; None where that is not known, or where NULL may stand in many
    rows that otherwise agree (`null_repeats`)."""
    size = None if facts is None or (null_repeats and facts.nullable) else facts.size()
    return None if size is None else size + 1


def bounded_by_keys(released: Released) -> int:
    """Return how many rows a result has at most: no more than the columns of one of its keys have combinations of values."""
    bounds = [released.most_rows]
    for key in released.unique:
        sizes = [values_of(released.column_facts[position], released.null_repeats) for position in key]
        bounds += [] if None in sizes else [prod(size or 0 for size in sizes)]
    return min(bounds)


def too_many(rows: int, position: int | None, most: int = MOST_COMBINED) -> Error:
    """Return the refusal of so many rows."""
    return refuse("many_combinations", rows=f"{rows:,}", most=f"{most:,}", position=position)


def _limited(node: exp.Expr, bound: Released) -> Released:
    """Return a result with no more rows than LIMIT and the values of its keys allow."""
    limit = node.args.get("limit")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    written = isinstance(number, exp.Literal) and not number.is_string and number.name.isdecimal()
    most = int(number.name) if number is not None and written else bound.most_rows
    return replace(bound, most_rows=min(most, bounded_by_keys(bound)))


def _grouping_sets(node: exp.Select) -> int:
    """Return how many sets of keys GROUP BY over results has: each groups all rows."""
    group = node.args.get("group")
    if group is None:
        return 1
    cubes = (len(cube.expressions) for cube in group.find_all(exp.Cube))
    rollups = (len(part.expressions) + 1 for part in group.find_all(exp.Rollup, exp.GroupingSets))
    return prod(1 << min(keys, 32) for keys in cubes) * prod(rollups)


def _side(join: exp.Join) -> str:
    return str(join.args.get("side") or "").upper()


def _kind(join: exp.Join) -> str:
    return str(join.args.get("kind") or "").upper()


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(name) for name in ("side", "kind", "on", "using", "method"))


def _product(sources: Sources, joins: Sequence[exp.Join]) -> tuple[int, int]:
    """Return the rows of all combinations, with a row of NULLs beside those of each source."""
    rows = 1
    for (_, source), join in zip(sources, [None, *joins], strict=True):
        rows *= source.most_rows + 1
        if rows > MOST_COMBINED:
            raise too_many(rows, None if join is None else place(join.this) or place(join))
    return rows, rows


def _labels(source: Released) -> dict[str, int]:
    """Return the positions of the columns by their names in lower case."""
    return {label.lower(): position for position, label in reversed(list(enumerate(source.columns)))}
