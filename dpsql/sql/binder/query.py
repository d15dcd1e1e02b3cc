"""Cut of a query at its lowest aggregations over protected relations (privacy.md 6).

`QueryBinder.query` walks down to the tables. On the way up, each SELECT is one of three: it keeps protected rows
(`Protected`: filter and projection of the plan), it aggregates them (a private block; the result is `Released`), or it
reads released and public tables only (`Released`: the text of the public remainder).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.key_questions import EVALUATED, PublicValues
from dpsql.functions.public_domains import domain_of
from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    Block,
    Column,
    Distinct,
    Expr,
    Filter,
    Plan,
    Project,
    PublicInput,
    Relation,
    ReleasedRows,
    ReleasedValue,
    Result,
    UnitAggregate,
    base_scan,
    results_read,
)
from dpsql.plan.stability import parts, rows_per_unit
from dpsql.policy import Policy
from dpsql.policy.types import DEFAULT_SCHEMAS
from dpsql.sql.binder import correlated_subqueries as correlated
from dpsql.sql.binder import (
    function_calls,  # noqa: F401 (enters its handlers)
    joins,
    semijoins,
)
from dpsql.sql.binder import private_block as blocks
from dpsql.sql.binder import result_facts as results
from dpsql.sql.binder.aggregates import aggregates, mark_whole, measures
from dpsql.sql.binder.combined_rows import InnerQueries, check_shown, combined_rows, united_rows
from dpsql.sql.binder.correlated_subqueries import without_laterals
from dpsql.sql.binder.equal_keys import base_table, named_table, naming_unit, project
from dpsql.sql.binder.joined_filters import canonical_block
from dpsql.sql.binder.per_unit_aggregation import WindowScalars, protected_sets
from dpsql.sql.binder.scope import (
    HIDDEN,
    Bound,
    Common,
    Environment,
    Kind,
    Protected,
    Released,
    Scope,
    check_unread,
    labels_of,
    only,
    sql_word,
)
from dpsql.sql.binder.select_lists import (
    between_commas,
    bound_star,
    check_public_groups,
    check_select,
    check_where,
    check_written,
    is_changed,
    public_rows,
    where_written_out,
    written_out,
)
from dpsql.sql.binder.trees import (
    SQL_TYPES,
    aliased,
    as_operand,
    as_query,
    asks_no_rows,
    check_names,
    condition_of,
    conjuncts,
    is_constantly_false,
    is_shown,
    literal_limit,
    mark_shown,
    no_rows,
    order_by_all,
    output_name,
    outputs_by_alias,
    put_in_front,
    rebuild,
    rename,
    stands_for_value,
    united_queries,
    with_names,
)
from dpsql.sql.binder.written_rows import column_names, in_from, with_facts, written_rows
from dpsql.sql.lexer import place
from dpsql.sql.parse import Statement, dialect
from dpsql.sql.rewrites.pivots import listed_values, with_declared_labels, without_pivots
from dpsql.storage.records import replace

MOST_BLOCKS = 50
MOST_SCANS = 200
_SELECT = (
    "expressions",
    "from_",
    "where",
    "group",
    "having",
    "qualify",
    "order",
    "limit",
    "offset",
    "distinct",
    "with_",
    "joins",
    "windows",
)


_MISTAKES = (
    "alias_count", "ambiguous_column", "bad_date", "group_position", "not_boolean", "unknown_column", "unknown_table",
    "wrong_arguments",
)  # fmt: skip


def _scans(relation: Relation) -> int:
    """Return the number of table scans of a relation, counting repeated ones."""
    return sum(map(_scans, parts(relation))) or 1


class QueryBinder:
    """Binder of one statement: collects its private blocks, the public tables that it reads, and the hoisted CTEs."""

    def __init__(
        self, policy: Policy, whole: exp.Query, min_units: int | None = None, public_values: PublicValues = EVALUATED
    ) -> None:
        self.policy = policy
        self.public_values = public_values
        self.min_units = min_units
        self.whole = whole.unnest()  # the whole statement; `query` is called for its parts
        self.blocks: dict[str, Block] = {}
        self._texts: dict[str, str] = {}
        self.public: dict[str, PublicInput] = {}
        self.common: list[tuple[str, exp.Expr]] = []
        self.results: dict[str, Result] = {}
        self._entries: dict[int, Common] = {}
        self._inside = 0  # nesting depth of subqueries in expressions, which may name columns of the outer query
        self._inner = InnerQueries(whole)

    def query(self, tree: exp.Expr, environment: Environment) -> Bound:
        """Bind a SELECT, a set operation or a bracketed query.

        A WITH entry that is used twice appears twice in the relation. Its size is limited: no later step walks 2**30 tables.
        """
        bound = self._query(tree, environment)
        if isinstance(bound, Protected) and _scans(bound.relation) > MOST_SCANS:
            raise refuse("clause", what=f"a relation over more than {MOST_SCANS} tables", position=place(tree))
        return bound

    def _query(self, tree: exp.Expr, environment: Environment) -> Bound:
        if isinstance(tree, exp.Subquery):
            if any(value for name, value in tree.args.items() if name not in ("this", "alias")):
                return self._wrapped(tree, environment)
            return self.query(tree.this, environment)
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, environment)
        if isinstance(tree, exp.Select):
            return self._inner.counted(tree, partial(self._select, tree, environment))
        raise refuse("clause", what=sql_word(tree), position=place(tree))

    def _wrapped(self, tree: exp.Subquery, environment: Environment) -> Bound:
        """Bind (query) ORDER BY ... LIMIT ... as SELECT * FROM (query) ORDER BY ... LIMIT ..."""
        outer = exp.Select(expressions=[exp.Star()])
        for name, value in tree.args.items():
            if name not in ("this", "alias"):
                outer.set(name, value)
        alias = exp.TableAlias(this=exp.to_identifier("q"))
        outer.set("from_", exp.From(this=exp.Subquery(this=tree.this, alias=alias)))
        return self.query(outer, environment)

    def add_block(self, block: Block) -> str:
        """Add a private block and return its name; equal blocks are one release."""
        block = canonical_block(block, self.policy)
        if len(self.blocks) == 1:  # the text of a query's first block is needed from the second on
            self._texts = {
                canonical_text(replace(block_before, name="")): name for name, block_before in self.blocks.items()
            }
        text = canonical_text(replace(block, name="")) if self.blocks else ""
        entered = self._texts.get(text)
        if entered is not None:
            return entered
        if len(self.blocks) >= MOST_BLOCKS:
            raise refuse("many_blocks", most=MOST_BLOCKS)
        name = f"dp_{len(self.blocks)}"
        self.blocks[name] = replace(block, name=name)
        if text:
            self._texts[text] = name
        return name

    # --- WITH ---------------------------------------------------------------------------------------------------------

    def environment(self, tree: exp.Query, outer: Environment) -> Environment:
        """Return the environment with the WITH entries of `tree`, which stay unbound until they are used."""
        clause = tree.args.get("with_")
        if clause is None:
            return outer
        only(clause, "expressions")
        visible = outer
        for entry in clause.expressions:
            only(entry, "this", "alias")
            name = entry.alias
            if name.lower() in visible.entries and visible is not outer:
                raise refuse("duplicate_name", name=name, position=place(entry))
            columns = tuple(column.name for column in entry.args["alias"].args.get("columns") or ())
            common = Common(name, entry.this, visible, columns)
            self._entries.setdefault(id(entry), common)
            visible = Environment({name.lower(): common}, visible)
        return visible

    def common_table(self, common: Common, node: exp.Expr) -> Bound:
        """Return a WITH entry, bound on first use. A released entry is hoisted in front of the remainder."""
        if common.binding:
            raise refuse("clause", what="recursive WITH", position=place(node))
        if common.bound is None:
            common.binding = True
            bound = rename(self.query(common.tree, common.environment), common.column_names, node)
            if isinstance(bound, Released):
                name = f"dp_cte_{len(self.common)}"
                self.common.append((name, with_names(bound, common.column_names)))
                bound = replace(bound, tree=named_table(name))
            common.bound, common.binding = bound, False
        return common.bound

    def check_unused(self) -> None:
        """Refuse the mistakes in WITH entries that nothing reads: names and positions that do not exist, and wrong arguments."""
        used = {id(entry.tree) for entry in self._entries.values() if entry.bound is not None}
        for common in self._entries.values():
            if id(common.tree) not in used:
                try:
                    apart = QueryBinder(self.policy, exp.Select(), self.min_units, self.public_values)
                    apart._inner = self._inner
                    rename(apart.query(common.tree, common.environment), common.column_names, common.tree)
                except Error as error:
                    if error.slug in _MISTAKES:
                        raise

    # --- FROM ---------------------------------------------------------------------------------------------------------

    def source(self, node: exp.Expr, environment: Environment, rows: bool = False) -> tuple[str, Bound]:
        """Return the alias of one item of FROM, and its bound source. `rows`: the SELECT above aggregates it alone, so
        SELECT DISTINCT yields protected rows; one of several sources is a result to join with."""
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.GenerateSeries):
            only(node, "this", "alias", "db", "catalog")
            alias = node.alias or node.name
            common = None if node.args.get("db") else environment.find(node.name)
            bound = self.common_table(common, node) if common else base_table(self.policy, node, self.public)
        elif isinstance(node, exp.Subquery):
            alias = node.alias
            bare = exp.Subquery(this=node.this)
            only(node, "this", "alias")
            bound = (self._distinct_rows(node.this, environment) if rows else None) or self.query(bare, environment)
        elif (written := written_rows(node)) is not None:
            alias, released = node.alias or node.name, self.query(written[0], environment)
            assert isinstance(released, Released)
            bound = with_facts(released, written[1])
            return alias, replace(bound, tree=with_names(bound, names := column_names(node, written[1])), columns=names)
        else:
            raise refuse("clause", what=f"{sql_word(node)} in FROM", position=place(node))
        columns = node.args["alias"].args.get("columns") if node.args.get("alias") else None
        names = tuple(column.name for column in columns or ())
        bound = rename(bound, names, node)
        if names and isinstance(bound, Released):
            bound = replace(bound, tree=with_names(bound, names))
        return alias, bound

    # --- results that a later block reads -----------------------------------------------------------------------------

    def alone(self, node: exp.Expr, environment: Environment, around: Scope) -> Bound:
        """Bind a subquery in an expression over protected rows. Refuses names of columns of the outer query (`correlated`)."""
        inside, self._inside = self._inside, 0
        try:
            return self.query(node, environment)
        except Error as error:
            raise correlated.named_around(node, around, error) from None
        finally:
            self._inside = inside

    def rows(self, bound: Released, node: exp.Expr, null_safe: Collection[int] = ()) -> Protected:
        """Return a result as a relation of the plan, which the block that reads it treats as a public table. `null_safe`: the
        columns, by position, that are compared with NULL as a value (`result_facts.null_safe_columns`)."""
        result = self._result(bound, node, null_safe)
        columns = tuple(
            (bound.columns[int(c.name.removeprefix("c"))], c) for c in result.columns if c.name[1:].isdecimal()
        )
        names = frozenset(label.lower() for label in bound.columns) - {label.lower() for label, _ in columns}
        labels = tuple(label for label, _ in columns)
        released = ReleasedRows(result.name, result.columns, result.unique, result.name, result.repeats, labels)
        return Protected(released, columns, untyped=names)

    def value(self, node: exp.Expr, environment: Environment, around: Scope) -> Expr:
        """Return the single value of a scalar subquery (or EXISTS) in an expression over protected rows."""
        subquery = node.this if isinstance(node, exp.Exists) else node
        bound = self.alone(subquery, environment, around)
        if isinstance(bound, Protected):
            raise refuse("subquery_in_rows", position=place(node))
        if isinstance(node, exp.Exists):
            counted = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
            tree = exp.Select(expressions=[counted], from_=exp.From(this=aliased(as_query(bound), "q")))
            bound = Released(tree, ("exists",), (Facts(Type.BOOLEAN, nullable=False),), results.ONE_ROW)
        if len(bound.columns) != 1:
            reason = "the subquery returns several columns"
            raise refuse("semi_join", reason=reason, way="select one", position=place(node))
        promised = {positions for positions, _, _ in bound.declared}
        result = self._result(bound, node)
        if not bound.unique | promised >= results.ONE_ROW:
            self._value_at(bound, node)
        return ReleasedValue(result.name, replace(result.columns[0].facts, values=None, nullable=True))

    def _value_at(self, bound: Released, node: exp.Expr) -> None:
        """Have public rows that stand for one value looked at before the charge. Refuses (several_rows) results with several."""
        if bound.unique >= results.ONE_ROW:
            return
        if self._reads_blocks(bound.tree):
            raise refuse("several_rows", position=place(node))
        if any(bound.column_facts):
            result = replace(self._result(bound, node), value_at=place(node) or 1)
            self.results[result.query.sql(dialect())] = result

    def _reads_blocks(self, tree: exp.Expr) -> bool:
        read = {table.name for table in tree.find_all(exp.Table)}
        commons = (common for name, common in self.common if name in read)
        return not read.isdisjoint(self.blocks) or any(map(self._reads_blocks, commons))

    def _result(self, bound: Released, node: exp.Expr, null_safe: Collection[int] = ()) -> Result:
        """Return the entry of a result, one for equal ones. Values that do not fit their column's type become NULL."""
        typed = [(index, facts) for index, facts in enumerate(bound.column_facts) if facts is not None]
        null_safe = [index for index, facts in typed if index in null_safe and facts.type in results.STAND_IN]
        if not typed:
            raise refuse("untyped_column", name=bound.columns[0] if bound.columns else "*", position=place(node))
        names = [exp.to_identifier(f"c{index}") for index in range(len(bound.columns))]
        alias = exp.TableAlias(this=exp.to_identifier("q"), columns=names)
        items = [
            exp.alias_(
                exp.TryCast(this=exp.column(f"c{index}"), to=exp.DataType.build(SQL_TYPES[facts.type])), f"c{index}"
            )
            for index, facts in typed
        ]
        for index in null_safe:
            items += results.null_safe_items(index, dict(typed)[index].type)
        inner = exp.Subquery(this=as_query(bound).copy(), alias=alias)
        query = exp.Select(expressions=items, from_=exp.From(this=inner))
        put_in_front(query, self.common)
        columns = [Column(f"c{index}", facts) for index, facts in typed]
        for index in null_safe:
            columns += results.null_safe_columns(Column(f"c{index}", dict(typed)[index]))
        text = query.sql(dialect())
        if text not in self.results:
            if len(self.results) >= MOST_BLOCKS:
                raise refuse("many_blocks", most=MOST_BLOCKS)
            rows = results.rows_of(bound, {index for index, _ in typed}, null_safe)
            self.results[text] = Result(f"dp_result_{len(self.results)}", query, tuple(columns), *rows)
        return self.results[text]

    def _distinct_rows(self, node: exp.Expr, environment: Environment) -> Protected | None:
        """Return the distinct rows of SELECT DISTINCT a, b FROM rows below an aggregate, or of UNIONs of such; None for any other
        query.

        With the unit's key among the columns, or an order's, it is an aggregation by unit, whose rows still belong to a unit:
        None as well.
        """
        clauses = ("group", "having", "qualify", "order", "limit", "offset", "with_", "by_name")
        if isinstance(node, exp.Union) and node.args.get("distinct") and not any(map(node.args.get, clauses)):
            sides = [self._distinct_rows(q, environment) or self.query(q, environment) for q in united_queries(node)]
            rows = [side for side in sides if isinstance(side, Protected)]
            return protected_sets(node, rows) if len(rows) == len(sides) else None
        if not isinstance(node, exp.Select) or not isinstance(node.args.get("distinct"), exp.Distinct):
            return None
        if any(node.args.get(clause) is not None for clause in clauses) or node.args["distinct"].args.get("on"):
            return None
        plain = exp.Select(**{name: value for name, value in node.args.items() if name != "distinct"})
        if aggregates(plain):
            return None
        bound = self.query(plain, environment)
        if not isinstance(bound, Protected) or max(bound.units.values(), default=Kind.OTHER) >= Kind.IMAGE:
            return None
        if naming_unit(bound.relation, [column for _, column in bound.columns], self.policy):
            return None
        columns = tuple((label, Column(c.name, replace(c.facts, max_total=None))) for label, c in bound.columns)
        return Protected(Distinct(bound.relation), columns)

    # --- SELECT -------------------------------------------------------------------------------------------------------

    def _select(self, node: exp.Select, outer: Environment) -> Bound:
        only(node, *_SELECT)
        check_select(node)
        if not any(item.is_star for item in node.expressions):
            order_by_all(node, len(node.expressions))
        environment = self.environment(node, outer)
        rewritten = without_laterals(self, node, environment) if node.args.get("from_") is not None else in_from(node)
        node = self._rewritten(node, rewritten)
        items = [] if node.args.get("from_") is None else [node.args["from_"].this]
        items += [join.this for join in node.args.get("joins") or ()]
        bound = [self.source(item, environment, not items[1:] and measures(node)) for item in items]
        check_where(node, lambda: [(name.lower(), label.lower()) for name, each in bound for label in labels_of(each)])
        if windows := node.args.get("windows"):  # of which nothing is used
            names = [(alias, tuple(labels_of(source))) for alias, source in bound]
            check_names(exp.Select(expressions=[window.copy() for window in windows]), names)
        if self._inside:
            self._inner.name(node, bound)
        node = with_declared_labels(node, (label for _, source in bound for label in labels_of(source)))
        if node.args.get("joins"):
            node = self._rewritten(node, between_commas(node, bound))
        node, bound = correlated.joined(self, node, bound, environment)
        if not any(isinstance(source, Protected) for _, source in bound):
            return self._released(node, bound, environment)
        if node.args.get("joins"):
            node = self._rewritten(node, joins.in_any_order(node, bound))
        bound = [self._pinned(node, alias, source, environment) for alias, source in bound]
        scope, relation = joins.joined(self, node, bound)
        scope.subquery = lambda inner: self.value(inner, environment, scope)
        where = where_written_out(node, scope)
        if where is not None:
            relation = semijoins.filtered(self, where, scope, relation, environment)
        if aggregates(node):
            return blocks.bound_block(self, node, scope, relation, environment)
        rows = Protected(relation, (), scope.unit_names(), unit_kinds=scope.units)
        if asks_no_rows(node):
            bare = exp.Select(expressions=node.expressions)
            return no_rows(self._rows(bare, scope, rows))
        check_unread(relation, scope.unpaired)
        return self._rows(node, scope, rows)

    def _rewritten(self, node: exp.Select, rewritten: exp.Select) -> exp.Select:
        self.whole = rewritten if node is self.whole else self.whole
        rewritten.meta.update(node.meta)
        return rewritten

    def _pinned(self, node: exp.Select, alias: str, source: Bound, environment: Environment) -> tuple[str, Bound]:
        """Return a result that is joined with rows, with the rows alone that have the literals which WHERE or ON ask for in
        columns of its key (`WHERE latest.number = 1`), so that the other columns are a key."""
        if not isinstance(source, Released) or source.rows is not None or not source.unique:
            return alias, source
        parts = results.literal_parts(
            node, alias, {source.columns[position] for key in source.unique for position in key}
        )
        if not parts:
            return alias, source
        rows = exp.select("*").from_(named_table(alias)).where(*parts)
        return alias, self._released(rows, [(alias, source)], environment)

    def _rows(self, node: exp.Select, scope: Scope, below: Protected) -> Protected:
        """Bind a SELECT without aggregates over protected rows as a projection. Refuses clauses that read rows of other units."""
        for clause in ("limit", "offset", "having"):
            if node.args.get(clause) is not None:
                word = clause.upper()
                raise refuse("rows_clause", what=word, position=place(node.args[clause]) or place(node))
        scalars = WindowScalars(scope, rows_per_unit(below.relation, self.policy), outputs_by_alias(node))
        bound: list[tuple[str, Expr]] = []
        for ordered in node.args["order"].expressions if node.args.get("order") is not None else ():
            # Without LIMIT the order of a set of rows has no meaning and is left out; the names in it must exist all the same.
            if not isinstance(ordered.this, exp.Literal) and ordered.this.name not in node.named_selects:
                scalars.bind(ordered.this)
        for item in node.expressions:
            star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
            if isinstance(star, exp.Star):
                only(star, "except_", "replace", "rename")
                qualifier = item.table if isinstance(item, exp.Column) else ""
                bound += bound_star(star, scope.star(qualifier, item), scalars.bind)
                continue
            bound.append((output_name(item), scalars.bind(item.unalias())))
        qualify = node.args.get("qualify")
        condition = None if qualify is None else scalars.boolean(qualify.this)
        relation = scalars.relation(below.relation)
        if condition is not None:
            relation = Filter(relation, condition)
        return project(replace(below, relation=relation), bound)

    # --- released -----------------------------------------------------------------------------------------------------

    def _released(self, node: exp.Select, bound: list[tuple[str, Bound]], environment: Environment) -> Released:
        """Bind a SELECT over released and public tables: return its text over the sandbox's tables."""
        sources = [(alias, source) for alias, source in bound if isinstance(source, Released)]
        if not self._inside:
            for check in (check_names, check_public_groups):
                check(node, [(alias, source.columns) for alias, source in sources])
        trees = iter([aliased(source.tree, alias) for alias, source in sources])
        scope = results.scope_over(node, sources)
        copy = exp.Select()
        for name, value in node.args.items():
            if name in ("with_", "windows") or value is None:
                continue
            if name == "from_":
                copy.set("from_", exp.From(this=next(trees)))
            elif name == "joins":
                copy.set("joins", [self._released_join(join, next(trees), environment, scope) for join in value])
            else:
                copy.set(name, self.released_part(value, environment, scope))
        check_written(node, sources)
        written = [
            part for item in node.expressions for part in written_out(item, sources, node.args.get("joins") or ())
        ]
        merging = any(join.args.get("using") or join.args.get("method") for join in node.args.get("joins") or ())
        hidden = any(alias.startswith(HIDDEN) for alias, _ in sources)
        if merging or hidden or any(map(is_changed, node.expressions)):
            copy.set("expressions", [self.released_part(item, environment, scope) for item in written])
        decides = is_shown(node, self.whole) and any(self._reads_blocks(source.tree) for _, source in sources)
        facts = results.over_results(node, sources, written, decides)
        columns = tuple(output_name(item) for item in written)
        order_by_all(copy, len(columns))
        most_rows, work, agreeing = combined_rows(node, sources, self.public_values, written)
        work += sum(source.work for _, source in sources)
        return replace(
            facts, tree=copy, columns=columns, rows=public_rows(node, bound), most_rows=most_rows, work=work,
            agreeing=(*facts.agreeing, *agreeing),
        )  # fmt: skip

    def _released_join(self, join: exp.Join, tree: exp.Expr, environment: Environment, scope: Scope) -> exp.Join:
        only(join, "this", "side", "kind", "on", "using", "method")
        copy = exp.Join(this=tree)
        for name in ("side", "kind", "on", "using", "method"):
            if join.args.get(name) is not None:
                copy.set(name, self.released_part(join.args[name], environment, scope))
        return copy

    def released_part(self, value: object, environment: Environment, scope: Scope | None = None) -> object:
        """Return a part of the remainder: only nodes on the allow-list, with each subquery bound as a query. `scope`: of it."""

        def special(node: exp.Expr) -> exp.Expr | None:
            if scope is not None and isinstance(node, exp.Div):
                return results.whole_quotient(node, scope, special)
            return self.subquery(node, environment)

        return rebuild(value, special)

    def subquery(self, node: exp.Expr, environment: Environment) -> exp.Expr | None:
        """Return the released form of a subquery inside an expression, None for any other node."""
        if not isinstance(node, (exp.Subquery, exp.Select, exp.SetOperation)):
            return None
        self._inside += 1
        with self._inner.names_inside() as is_alone:
            try:
                bound = self.query(node, environment)
            except Error as error:
                self._inside -= 1
                raise correlated.of_people(self, node, environment, error) from None
            if isinstance(bound, Released):
                self._inner.add(node, bound.work + self._inner.rows, alone := is_alone(node))
                if alone and stands_for_value(node) and len(bound.columns) == 1:
                    self._value_at(bound, node)
        self._inside -= 1
        if isinstance(bound, Protected):
            raise refuse("raw_rows", position=place(node), hint=correlated.COUNTED)
        query = as_query(bound)
        return exp.Subquery(this=query) if isinstance(node, exp.Subquery) else query

    def _set_operation(self, node: exp.SetOperation, outer: Environment) -> Bound:
        only(node, "this", "expression", "distinct", "with_", "order", "limit", "offset", "by_name")
        environment = self.environment(node, outer)
        operands = united_queries(node)
        bound = [self.query(operand, environment) for operand in operands]
        rows = [side for side in bound if isinstance(side, Protected)]
        if rows and (distinct := self._distinct_rows(node, outer)) is not None:
            return distinct
        if len(rows) == len(bound):
            return protected_sets(node, rows)
        return self._released_sets(node, dict(zip(map(id, operands), bound, strict=True)), environment)

    def _released_sets(self, node: exp.SetOperation, bound: Mapping[int, Bound], environment: Environment) -> Released:
        """Return a set operation of results, two at a time. `bound`: its operands, by the identity of their trees."""
        trees = (node.this, node.expression)
        sides = [bound.get(id(tree)) or self._released_sets(tree.unnest(), bound, environment) for tree in trees]
        if not node.args.get("by_name") and len({len(side.columns) for side in sides}) > 1:
            raise refuse("catalog_union", position=place(node.expression))
        copy = type(node)()
        for name, side, original in zip(("this", "expression"), sides, trees, strict=True):
            if isinstance(side, Protected):
                reason, hint = "rows of people stand beside public rows or a result", "aggregate this side first"
                raise refuse("set_of_rows", reason=reason, way=hint, position=place(original))
            copy.set(name, as_operand(as_query(side), node, name))
        for name in ("distinct", "by_name", "order", "limit", "offset"):
            copy.set(name, self.released_part(node.args.get(name), environment))
        released = [side for side in sides if isinstance(side, Released)]
        order_by_all(copy, len(columns := results.united_columns(node, released)))
        return united_rows(node, replace(results.united(node, released), tree=copy, columns=columns), released)


# --- binding of a parsed statement to the policy ----------------------------------------------------------------------
# Private blocks and the public remainder, with types (privacy.md 6).


def bind(
    statement: Statement, policy: Policy, min_units: int | None = None, public_values: PublicValues = EVALUATED
) -> Plan:
    """Bind one query or explained query to the policy and return its plan. `min_units`: groups with fewer counted units are not
    shown (None: all are). `public_values`: how the values of public keys are found. Refusals carry the position in the text."""
    assert statement.query is not None
    query = statement.query
    try:
        if exp.Pivot in statement.kinds:
            query = without_pivots(query.copy(), partial(_listed, policy, query))
        _unqualified(query, policy)
        mark_shown(query)
        mark_whole(query)
        binder = QueryBinder(policy, query, min_units, public_values)
        bound = binder.query(query, Environment())
        if isinstance(bound, Protected):
            raise refuse("unit_key" if _per_unit(bound.relation) else "raw_rows", position=place(query))
        check_shown(query, bound)
        binder.check_unused()
        remainder = as_query(bound)
        put_in_front(remainder, binder.common)
        blocks, results, read = _read(binder, remainder)
        public = tuple(entry for entry in binder.public.values() if entry.name in read)
        return Plan(
            statement.sql, blocks, public, remainder, tuple(bound.columns), results, empty=_shows_no_rows(query)
        )
    except Error as error:
        raise error.placed_in(statement.sql) from None
    except RecursionError:
        raise refuse("too_deep", most=150).placed_in(statement.sql) from None


def _listed(policy: Policy, query: exp.Query, source: exp.Expr, key: exp.Column) -> list[exp.Expr]:
    """Return the values that the policy lists for a column of a table, or of a SELECT of its columns. Refuses (pivot) others."""
    column: exp.Expr = key
    while (
        isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select) and not source.this.args.get("joins")
    ):
        label = column.name.lower()
        named = [item.unalias() for item in source.this.expressions if item.alias_or_name.lower() == label]
        if len(named) != 1 or not isinstance(named[0], exp.Column) or source.this.args.get("from_") is None:
            break
        column, source = named[0], source.this.args["from_"].this
    written = {common.alias.lower() for common in query.find_all(exp.CTE)}
    plain = isinstance(source, exp.Table) and source.name.lower() not in written
    table = policy.table_at(*(part.name for part in source.parts)) if plain and isinstance(source, exp.Table) else None
    columns = () if table is None else base_scan(table).columns
    values = [domain_of(each) for each in columns if each.name.lower() == column.name.lower()]
    return listed_values(values[0] if values else None, key)


def _shows_no_rows(query: exp.Query) -> bool:
    """Return whether an answer has no rows because its query says so outright: LIMIT 0, HAVING FALSE, or WHERE FALSE unless a
    total over all rows has a row of its own."""
    if not isinstance(query, exp.Select):
        return literal_limit(query) == 0
    if literal_limit(query) == 0 or any(map(is_constantly_false, conjuncts(condition_of(query, "having")))):
        return True
    group = query.args.get("group")
    if group is None:
        inner = query.args["from_"].this.unnest() if query.args.get("from_") else exp.Select()
        return not measures(query) and (asks_no_rows(query) or (is_shown(inner, query) and _shows_no_rows(inner)))
    plain = group.expressions and not any(value for name, value in group.args.items() if name != "expressions")
    sets = (exp.Cube, exp.GroupingSets, exp.Rollup, exp.Tuple)
    return bool(plain) and not any(isinstance(key, sets) for key in group.expressions) and asks_no_rows(query)


def _read(binder: QueryBinder, query: exp.Query) -> tuple[tuple[Block, ...], tuple[Result, ...], set[str]]:
    """Return the blocks, results and names of tables that the remainder reads, directly or through others, and results that are
    only looked at. Only these are measured."""
    named = {result.name: result for result in binder.results.values()}
    read = {table.name for table in query.find_all(exp.Table)}
    for result in named.values():
        if result.value_at is not None:
            read |= {result.name} | {table.name for table in result.query.find_all(exp.Table)}
    for block in reversed(binder.blocks.values()):  # a block reads only results of earlier blocks
        for name in results_read(block) if named and block.name in read else ():
            read |= {name} | {table.name for table in named[name].query.find_all(exp.Table)}
    blocks = tuple(block for block in binder.blocks.values() if block.name in read)
    return blocks, tuple(entry for entry in named.values() if entry.name in read), read


def _unqualified(query: exp.Query, policy: Policy) -> None:
    """Remove the schema from columns written [dataset.]schema.table.column, as BI tools write them.

    Any other schema stays and is refused later with its position. Before an alias, which is not a table of the policy, a default
    schema is accepted.
    """
    for column in query.find_all(exp.Column):
        table = policy.table(column.table) if column.db else None
        in_schema = column.db.lower() in DEFAULT_SCHEMAS if table is None else table.is_in(column.db)
        if column.db and in_schema and column.catalog.lower() in ("", policy.dataset.lower()):
            column.set("db", None)
            column.set("catalog", None)


def _per_unit(relation: Relation) -> bool:
    """Return whether each row is the result of an aggregation over one privacy unit."""
    while isinstance(relation, (Filter, Project)):
        relation = relation.source
    return isinstance(relation, UnitAggregate)
