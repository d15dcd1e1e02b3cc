"""Bounds, computed before anything is charged, on the rows that a SELECT over results and public tables may have to process.

A product of results takes time and memory after the charge, so it is refused if text and policy allow more rows than the
sandbox has time for. Everything counted here is public: rows that the query writes, rows of public tables, groups of public
keys; private keys, whose number of groups is unknown before the release, are assumed to have `UNLISTED`, and each of them to
tell these groups apart. If a row fixes some columns of a source's key by equality, it is paired with at most as many rows as
the key's other columns have values. Where that is much, the engine counts the rows of public tables that meet the conditions
on them, and how many of those agree on the columns that are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from math import prod

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.key_questions import EVALUATED, PublicValues, Unanswered
from dpsql.functions.row_costs import relation_cost
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Block, Filter, Relation, group_count
from dpsql.sql.binder.result_facts import MOST_UNIQUE, Sources, output, scope_of
from dpsql.sql.binder.scalars import Scalars
from dpsql.sql.binder.scope import Bound, Released, Scope, using, using_name
from dpsql.sql.binder.select_lists import labelled
from dpsql.sql.binder.trees import condition_of, conjuncts, implied, literal_limit
from dpsql.sql.lexer import place
from dpsql.storage.records import dataclass, replace

MOST_COMBINED = 5_000_000
"""Largest total number of rows of all steps of a query's public part: the sandbox sorts as many in about a second."""
MOST_SHOWN = 1_000_000
"""Largest number of rows of an answer: as many as the sandbox returns."""
UNLISTED = 1_000
"""Number of groups that private keys are assumed to have."""
MOST_UNLISTED = 50_000
"""Number of groups that private and public keys together are assumed to have at most: enough people share each of them."""
MOST_COUNTING = 1_000_000_000
"""Nanoseconds that counting in public tables may take by the costs of its conditions: nobody pays for it."""
FEW = 1_000
"""Number of rows up to which nothing is counted in public tables."""
MOST_EXACT = 1 << 24
"""Integers up to this size are exact in floating-point types of any width."""
Position = tuple[int, int]
"""Number of a source and position of one of its columns."""


@dataclass(frozen=True)
class Equality:
    """A column that a condition sets equal to an expression over the columns of some other sources; `text`: to this literal."""

    column: Position
    compared: frozenset[int]
    text: str | None = None


def groups_of(block: Block) -> int:
    """Return the largest number of groups of a block; with private keys, `UNLISTED` groups are assumed for each combination of
    public keys, and `MOST_UNLISTED` in all."""
    groups = group_count([key.values for key in block.keys], block.combinations)
    return min(groups * UNLISTED, MOST_UNLISTED) if any(key.values is None for key in block.keys) else groups


Agreeing = tuple[tuple[frozenset[int], int], ...]
"""Sets of positions with the number of rows that agree on them."""


def combined_rows(
    node: exp.Select, sources: Sources, public_values: PublicValues = EVALUATED, items: Sequence[exp.Expr] = ()
) -> tuple[int, int, Agreeing]:
    """Return bounds on the rows of a SELECT's joined sources, on the total rows of all steps of joining them, and on the rows
    that agree on one of its `items`.

    Refuses (many_combinations) more than `MOST_COMBINED`, at the source with which the number exceeds it.
    """
    joins = node.args.get("joins") or []
    if not joins and (not sources or node.args.get("where") is None):
        return (sources[0][1].most_rows if sources else 1), 0, ()
    if any(join.side in ("RIGHT", "FULL") for join in joins) and any(map(_is_comma, joins)):
        return *_product(sources, joins), ()  # in FROM a, b FULL JOIN c the comma is read last
    steps = _Steps(node, sources, joins, public_values)
    rows, work = steps.joined()
    if rows <= FEW or len(sources) == 1 or not all(map(_is_inner, joins)) or _grouping_sets(node) > 1:
        return rows, work, ()
    positions = {index: steps.position(item.unalias()) for index, item in enumerate(items)}
    agreeing = {each: steps.from_one_value(each) for each in dict.fromkeys(positions.values()) if each is not None}
    return rows, work, tuple((frozenset({n}), agreeing[each]) for n, each in positions.items() if each is not None)


def _counted(node: exp.Select, bound: Released, inner: Sequence[tuple[int, int | None]]) -> Released:
    """Return the result of a SELECT over results, with the numbers of its rows and of the rows of all steps up to it.

    `bound.most_rows`: rows before grouping. `inner`: for each subquery in an expression, its steps for one row, and for all rows
    together (None: assumed to run for each row). Refuses (many_combinations) too many steps.
    """
    rows = bound.most_rows * _grouping_sets(node)
    work = bound.work + (rows if rows > bound.most_rows else 0)
    for steps, together in inner:
        work += steps * bound.most_rows if together is None else min(steps * bound.most_rows, together)
    if work > MOST_COMBINED:
        raise too_many(work, place(node.expressions[0]) or place(node))
    return _limited(node, replace(bound, most_rows=rows, work=work))


def united_rows(node: exp.SetOperation, bound: Released, sides: Sequence[Released]) -> Released:
    """Return the result of a set operation with the numbers of its rows and steps. Refuses (many_combinations) too many steps."""
    rows = sum(side.most_rows for side in sides) if isinstance(node, exp.Union) else sides[0].most_rows
    work = sum(side.work + side.most_rows for side in sides)
    if work > MOST_COMBINED:
        raise too_many(work, place(node))
    branches = tuple(branch for side in sides for branch in side.branches or (side,)) if _is_union_all(node) else ()
    return _limited(node, replace(bound, most_rows=rows, work=work, branches=branches))


def _is_union_all(node: exp.SetOperation) -> bool:
    clauses = ("distinct", "limit", "offset", "by_name")
    return isinstance(node, exp.Union) and not any(node.args.get(clause) for clause in clauses)


def check_shown(query: exp.Expr, bound: Released) -> None:
    """Refuse (many_combinations) an answer that is an unfiltered product of results with more than `MOST_SHOWN` rows."""
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
    """Counter of the steps of subqueries in expressions over results, and of the names that each subquery can resolve."""

    def __init__(self, whole: exp.Expr) -> None:
        """`whole`: the statement."""
        self._unbound = 3 * len(list(whole.find_all(exp.Select))) + 300
        self._steps: list[tuple[int, int | None]] = []
        self._names: set[str] = set()
        self._sources: list[tuple[str, Bound]] = []
        self.rows = 0
        """Rows of the SELECT that was bound last, before grouping."""

    def counted(self, node: exp.Select, bind: Callable[[], Bound]) -> Bound:
        """Return the SELECT that `bind` binds; a result gets its rows and steps. Refuses (many_combinations) too many steps, and
        (too_many_readings) subqueries within subqueries, each of which binds those within it again, once they are too many."""
        self._unbound -= node.args.get("from_") is not None  # listed rows are SELECTs without FROM
        if self._unbound < 0:
            raise refuse("too_many_readings")
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
        """Add a subquery with its steps for one row. `is_alone`: it names no column of the outer query."""
        self._steps.append((steps, steps if is_alone else self._together(query.unnest())))

    def _together(self, query: exp.Expr) -> int | None:
        """Return the steps of a subquery for all rows of the outer query together, None if they are not known.

        They are known if every outer column that it names is set equal to one of its own columns: the engine then joins its
        sources once with the distinct values of the outer columns, one of which each source row matches. If it has several
        sources, it must name outer columns in these equalities alone."""
        if not isinstance(query, exp.Select) or len(list(query.find_all(exp.Query))) > 1:
            return None
        sources = [(alias, source) for alias, source in self._sources if isinstance(source, Released)]
        if len(sources) < len(self._sources) or not sources:
            return None
        columns = _OwnColumns(sources)
        fixed: set[str] = set()
        unrelated = []
        for part in conjuncts(condition_of(query, "where")):
            around = {name for each in implied(part) for name in columns.fixed_outer(each.unnest())}
            fixed |= around
            unrelated += [] if around and not isinstance(part.unnest(), exp.Or) else [part]
        work = sum(source.work for _, source in sources)
        if len(sources) == 1:
            return work + sources[0][1].most_rows if columns.outer_names(query) <= fixed else None
        alone = query.copy()
        alone.set("where", exp.Where(this=exp.and_(*unrelated)) if unrelated else None)
        if columns.outer_names(alone):
            return None
        try:
            return work + sum(combined_rows(alone, sources)[:2])
        except Error:
            return None

    @contextmanager
    def names_inside(self) -> Iterator[Callable[[exp.Expr], bool]]:
        """Yield a function that returns whether a query, once bound, names columns of its own sources alone."""
        outside, self._names = self._names, set()
        try:
            yield self._is_alone
        finally:
            self._names = outside

    def name(self, node: exp.Select, bound: Sequence[tuple[str, Bound]]) -> None:
        """Add the names of a SELECT inside a subquery: its sources, their columns, and its outputs."""
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
    """Columns of a subquery's sources; any other column that the subquery names belongs to the outer query."""

    def __init__(self, sources: Sources) -> None:
        self._aliases = {alias.lower() for alias, _ in sources}
        self._facts: dict[str, Facts | None] = {}
        for alias, source in reversed(sources):
            for label, facts in zip(reversed(source.columns), reversed(source.column_facts), strict=True):
                self._facts |= {label.lower(): facts, f"{alias}.{label}".lower(): facts}

    def outer_names(self, node: exp.Expr) -> set[str]:
        """Return the columns of the outer query that an expression names."""
        return {column.sql().lower() for column in node.find_all(exp.Column) if self._is_outer(column)}

    def fixed_outer(self, condition: exp.Expr) -> set[str]:
        """Return the outer column that a condition sets equal to a column of the subquery; empty for other conditions."""
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
    """Row counts while the sources of one SELECT are joined one after the other."""

    def __init__(
        self, node: exp.Select, sources: Sources, joins: Sequence[exp.Join], public_values: PublicValues
    ) -> None:
        self.node, self.sources, self.joins = node, [source for _, source in sources], joins
        self.named, self.public_values = sources, public_values
        self.aliases = {alias.lower() for alias, _ in sources}
        self.scope = scope_of(sources, *using(joins, [alias for alias, _ in sources]))
        self.inner = list(map(_is_inner, joins))
        pairing = [join.args.get("on") for join in joins]
        conditions = [
            condition_of(node, "where"),
            *(on for on, inner in zip(pairing, self.inner, strict=True) if inner),
        ]
        self.parts = [part for condition in conditions for part in implied(condition)]
        self.everywhere = [equality for condition in conditions for equality in self._equalities(condition)]
        self.of_join = [[*self._equalities(on), *self._merged(number)] for number, on in enumerate(pairing, 1)]
        self._counts: dict[tuple[int, frozenset[Position]], int] = {}
        self._relations: dict[int, Relation | None] = {}
        self.placed: set[int] = set()
        self.rows = self._partners(0)
        self.keys = self._keys(0)
        self.placed.add(0)

    def from_one_value(self, position: Position) -> int:
        """Return a bound on the joined rows that agree on a column. All joins are inner."""
        self.placed, self.keys = set(), self._keys(position[0])
        self.rows = self._partners(position[0], {position})
        self.placed.add(position[0])
        waiting = [number for number in range(len(self.sources)) if number not in self.placed]
        while waiting:
            number = min(waiting, key=self._pairs)
            waiting.remove(number)
            self.rows = self._pairs(number)
            self.placed.add(number)
        return self.rows

    def joined(self) -> tuple[int, int]:
        """Join all sources; return the rows of result and steps. Of inner joins, the source of the fewest pairs comes next."""
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
        """Join one source and return the number of rows of that step."""
        source, join = self.sources[number], self.joins[number - 1]
        each, pairs = self._partners(number), self._pairs(number)
        both = [(key | other, most * more) for key, most in self.keys for other, more in self._keys(number)]
        self.placed.add(number)
        if join.kind in ("SEMI", "ANTI"):
            return pairs
        self.keys = [*(self.keys if each <= 1 and join.side in ("", "LEFT") else []), *both][:MOST_UNIQUE]
        left = self.rows if join.side in ("LEFT", "FULL") else 0
        right = source.most_rows if join.side in ("RIGHT", "FULL") else 0
        self.rows = max(pairs, left) + right if each <= 1 else pairs + left + right
        return self.rows

    def _pairs(self, number: int) -> int:
        """Return a bound on the pairs of a row joined so far and a row of a source."""
        fixed = {
            each.column
            for each in self._conditions(number)
            if each.column[0] in self.placed and each.compared <= {number}
        }
        partners = min([self.rows, *(self._agreeing(key, most, fixed) for key, most in self.keys)])
        every = self._partners(number, set())
        return min(self.rows * (self._partners(number) if every > 1 else every), every * partners)

    def _partners(self, number: int, chosen: Set[Position] | None = None) -> int:
        """Return a bound on the rows of a source that pair with one row joined so far, or agree on the `chosen` columns."""
        fixing = [
            each for each in self._conditions(number) if each.column[0] == number and each.compared <= self.placed
        ]
        fixing = fixing if chosen is None else []
        source, fixed = self.sources[number], {each.column for each in fixing} if chosen is None else chosen
        texts = [(each.column[1], each.text) for each in fixing if each.text is not None]
        most = [source.most_rows, *(self._agreeing(key, rows, fixed) for key, rows in self._keys(number))]
        if source.branches:
            sides = [side for side in source.branches if not any(_excludes(side, *pinned) for pinned in texts)]
            most.append(sum(self._agreeing_branch(number, side, fixed) for side in sides))
        if min(most) > 1 and min(most) * (source.most_rows if chosen is None else self.rows) > FEW:
            most.append(self._counted(number, fixed))
        return min(most)

    def _counted(self, number: int, fixed: Collection[Position]) -> int:
        """Return the number of rows of a source that agree on the fixed columns, counted in its public table."""
        key, source, count = (number, frozenset(fixed)), self.sources[number], self.public_values.agreeing
        if key not in self._counts:
            if number not in self._relations:
                self._relations[number] = self._counted_rows(number)
            relation, rows = self._relations[number], labelled(source)
            self._counts[key] = source.most_rows
            if relation is not None and rows is not None and count is not None:
                names = tuple(rows.columns[position][1].name for _, position in sorted(fixed))
                with suppress(Unanswered):
                    self._counts[key] = count(relation, names)
        return self._counts[key]

    def _counted_rows(self, number: int) -> Relation | None:
        """Return the rows of a source's public table that meet the conditions on it; None if they are not counted. Conditions
        that could take longer than `MOST_COUNTING` over all rows are left out, which makes the number only larger."""
        alias, source = self.named[number]
        rows = labelled(source)
        if rows is None or self.public_values.agreeing is None or not all(self.inner):
            return None
        scalars = Scalars(Scope([(alias, rows)]))
        relation = rows.relation
        for part in self.parts:
            if part.find(exp.Query) is None and self._numbers(part) == frozenset({number}):
                with suppress(Error):
                    narrowed = Filter(relation, scalars.boolean(part))
                    relation = narrowed if _is_counted(narrowed, source.most_rows) else relation
        return relation if _is_counted(relation, source.most_rows) else None

    def _agreeing_branch(self, number: int, side: Released, fixed: Collection[Position]) -> int:
        """Return a bound on the rows of one branch of a UNION ALL that agree on the fixed columns."""
        keys = [*((key, 1) for key in side.unique), *side.agreeing]
        of_keys = (self._agreeing([(number, position) for position in key], most, fixed) for key, most in keys)
        return min([side.most_rows, *of_keys])

    def _agreeing(self, key: Collection[Position], most: int, fixed: Collection[Position]) -> int:
        """Return a bound on the rows that agree on the fixed columns of a key, on whose columns `most` rows agree."""
        return most * prod(
            self._values(number, position) for number, position in key if (number, position) not in fixed
        )

    def _values(self, number: int, position: int) -> int:
        """Return a bound on the values of one column of a key; each is in one row per combination of the key's other columns."""
        source = self.sources[number]
        every = source.most_rows + (not all(self.inner))  # an outer join has one NULL more
        return min(every, values_of(source.column_facts[position], source.null_repeats) or every)

    def _keys(self, number: int) -> list[tuple[frozenset[Position], int]]:
        source = self.sources[number]
        unique = [(key, 1) for key in source.unique | {positions for positions, _, _ in source.declared}]
        return [(frozenset((number, position) for position in key), most) for key, most in (*unique, *source.agreeing)]

    def _conditions(self, number: int) -> list[Equality]:
        """Return the equalities that hold in every pair that includes a row of a source."""
        if number == 0:
            return self.everywhere
        return [*self.of_join[number - 1], *(self.everywhere if self.inner[number - 1] else [])]

    # --- conditions ---------------------------------------------------------------------------------------------------

    def _equalities(self, condition: exp.Expr | None) -> Iterator[Equality]:
        for part in implied(condition):
            bare = part.unnest()
            if isinstance(bare, exp.EQ) and bare.find(exp.Query) is None:
                for side, other in ((bare.this, bare.expression), (bare.expression, bare.this)):
                    column, compared = self.position(_unshifted(side)), self._numbers(other)
                    if column is None or compared is None or column[0] in compared:
                        continue
                    facts, right = self.sources[column[0]].column_facts[column[1]], output(other, self.scope).facts
                    whole = facts is not None and right is not None and facts.type is right.type is Type.INTEGER
                    if facts is None or not (whole or isinstance(side.unnest(), exp.Column)):
                        continue
                    if _stays_apart(facts, right):
                        text = other.name if isinstance(other, exp.Literal) and other.is_string else None
                        yield Equality(column, compared, text)

    def _numbers(self, expression: exp.Expr) -> frozenset[int] | None:
        """Return the numbers of the sources that an expression reads, not counting an outer query's; None if unknown."""
        numbers = set()
        for column in expression.find_all(exp.Column):
            position = self.position(column)
            if position is not None:
                numbers.add(position[0])
            elif not column.table or column.table.lower() in self.aliases:
                return None
        return frozenset(numbers)

    def position(self, node: exp.Expr) -> Position | None:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        try:
            number, _, position = self.scope.resolve(node).name.partition(".")
        except Error:
            return None
        return int(number), int(position)

    def _merged(self, number: int) -> Iterator[Equality]:
        """Yield the equalities that USING or NATURAL implies."""
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


def _excludes(side: Released, position: int, text: str) -> bool:
    """Return whether a column of a branch of a UNION ALL never has a value: branches name themselves ('web' AS channel)."""
    facts = side.column_facts[position]
    return facts is not None and facts.values is not None and facts.type is Type.TEXT and text not in facts.values


def _unshifted(side: exp.Expr) -> exp.Expr:
    """Return an expression without the whole numbers that are added to it: different integers stay different."""
    bare = side.unnest()
    while isinstance(bare, (exp.Add, exp.Sub)) and isinstance(bare.expression, exp.Literal) and bare.expression.is_int:
        bare = bare.this.unnest()
    return bare


def _stays_apart(facts: Facts, other: Facts | None) -> bool:
    """Return whether different values of a column stay different when they are converted for a comparison: large integers may
    become the same floating-point number (of at least 24 bits). Texts are compared with texts alone (`rehearsal`)."""
    if facts.type is not Type.INTEGER or (other is not None and other.type is Type.INTEGER):
        return True
    return facts.bounded and max(abs(int(facts.lower)), abs(int(facts.upper))) <= MOST_EXACT


def values_of(facts: Facts | None, null_repeats: bool) -> int | None:
    """Return the number of values that a column may have, counting NULL; None if it is unknown, or if NULL may be in many rows
    that otherwise agree (`null_repeats`)."""
    size = None if facts is None or (null_repeats and facts.nullable) else facts.size()
    return None if size is None else size + 1


def bounded_by_keys(released: Released) -> int:
    """Return a bound on the rows of a result: at most as many as the columns of one of its keys have combinations of values."""
    bounds = [released.most_rows]
    for key in released.unique:
        sizes = [values_of(released.column_facts[position], released.null_repeats) for position in key]
        bounds += [] if None in sizes else [prod(size or 0 for size in sizes)]
    return min(bounds)


def too_many(rows: int, position: int | None, most: int = MOST_COMBINED) -> Error:
    """Return the refusal of `rows` rows where `most` are allowed."""
    return refuse("many_combinations", rows=f"{rows:,}", most=f"{most:,}", position=position)


def _limited(node: exp.Expr, bound: Released) -> Released:
    """Return a result with `most_rows` reduced to what LIMIT and the values of its keys allow."""
    most = literal_limit(node)
    return replace(bound, most_rows=min(bound.most_rows if most is None else most, bounded_by_keys(bound)))


def _grouping_sets(node: exp.Select) -> int:
    """Return the number of grouping sets of a GROUP BY over results; each of them groups all rows."""
    group = node.args.get("group")
    if group is None:
        return 1
    cubes = (len(cube.expressions) for cube in group.find_all(exp.Cube))
    rollups = (len(part.expressions) + 1 for part in group.find_all(exp.Rollup, exp.GroupingSets))
    return prod(1 << min(keys, 32) for keys in cubes) * prod(rollups)


def _is_counted(relation: Relation, rows: int) -> bool:
    """Return whether the engine counts so many rows of a relation before the question is charged."""
    return relation_cost(relation) * rows <= MOST_COUNTING


def _is_inner(join: exp.Join) -> bool:
    return not join.side and join.kind in ("", "INNER", "CROSS")


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(name) for name in ("side", "kind", "on", "using", "method"))


def _product(sources: Sources, joins: Sequence[exp.Join]) -> tuple[int, int]:
    """Return the number of combinations, with one row of NULLs added to each source, as rows and as steps."""
    rows = 1
    for (_, source), join in zip(sources, [None, *joins], strict=True):
        rows *= source.most_rows + 1
        if rows > MOST_COMBINED:
            raise too_many(rows, None if join is None else place(join.this) or place(join))
    return rows, rows


def _labels(source: Released) -> dict[str, int]:
    """Return the positions of the columns, keyed by their names in lower case."""
    return {label.lower(): position for position, label in reversed(list(enumerate(source.columns)))}
