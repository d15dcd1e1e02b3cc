"""A SELECT that aggregates protected rows, cut into its private block and the SELECT over that block."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlglot import exp

from dpsql.aggregates.quantile import LISTED
from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.canonical_conditions import NO_VALUE, in_canonical_form, needed
from dpsql.functions.canonical_measures import canonical_measure
from dpsql.functions.key_columns import labelled
from dpsql.functions.key_narrowing import PublicRows, RemainingKeys, leaves_out, may_hold, remaining
from dpsql.functions.key_questions import is_result
from dpsql.functions.public_domains import domain_of
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.intervals import Type
from dpsql.plan.origins import UnknownOrigin, branches
from dpsql.plan.plan import (
    Block,
    Call,
    Combinations,
    Expr,
    Key,
    Literal,
    Measure,
    Relation,
    columns_read,
    combinations,
    group_count,
    literal,
    names_read,
)
from dpsql.policy import Policy
from dpsql.sql.binder import result_facts as results
from dpsql.sql.binder.aggregates import (
    WHOLE,
    bind_measure,
    has_aggregate,
    in_aggregate,
    in_seconds,
    is_aggregate,
    of_units,
    with_unit_count,
)
from dpsql.sql.binder.allow_list import check_node
from dpsql.sql.binder.combined_rows import UNLISTED, groups_of
from dpsql.sql.binder.correlated_subqueries import only_with_rows, over_groups
from dpsql.sql.binder.equal_keys import kind, named_table, naming_unit
from dpsql.sql.binder.per_unit_aggregation import per_unit, stacked
from dpsql.sql.binder.quantiles import single_quantiles
from dpsql.sql.binder.scalars import KeyScalars, Scalars
from dpsql.sql.binder.scope import (
    HIDDEN,
    BindingContext,
    Bound,
    Environment,
    Kind,
    Scope,
    also_missing,
    check_ignored,
    check_unread,
    only,
    sql_text,
    sql_word,
    with_labels,
    with_unpaired_rows,
    wrong_call,
)
from dpsql.sql.binder.select_lists import keys_of_all
from dpsql.sql.binder.trees import (
    SQL_TYPES,
    as_interval,
    columns_of_sets,
    condition_of,
    conjuncts,
    grouping_call,
    grouping_number,
    grouping_sets,
    is_shown,
    no_position,
    output_name,
    outputs_by_alias,
    over_set,
    over_union,
    rebuild,
    united,
)
from dpsql.sql.lexer import place
from dpsql.sql.rewrites.spellings import MOST_SHARES
from dpsql.storage.records import dataclass, replace

# --- public keys of a block -------------------------------------------------------------------------------------------
# The values that conditions leave, the rows that lists leave out, and keys treated as private ones.


@dataclass(frozen=True)
class BlockKeys:
    """The keys of one block, and the combinations of their values that are groups (None: all). `within`: the keys with all values
    that rows of the block may have, also those that HAVING leaves out."""

    keys: tuple[Key, ...]
    combinations: Combinations | None = None
    within: tuple[Key, ...] = ()


def narrowed(source: Relation, keys: Sequence[Key], conditions: Sequence[Expr], context: BindingContext) -> BlockKeys:
    """Return the keys with only the values that rows under the relation's conditions and `conditions` on groups can have."""
    if not keys:
        return BlockKeys(())
    rows, listed = public_rows(context.policy), [(key.expression, key.values) for key in keys]
    within = remaining(source, listed, (), rows, context.public_values)
    left = remaining(source, listed, conditions, rows, context.public_values) if conditions else within
    narrowed_keys, whole = [], []
    for key, inside, values in zip(keys, within.values, left.values, strict=True):
        whole.append(replace(key, values=inside))
        new = values is not None and values != key.values
        mark = fingerprint(values) if new else key.left
        narrowed_keys.append(replace(key, values=values, left=mark, whole=values == inside) if new else key)
    if left.numbers is None or any(key.values is None for key in narrowed_keys):
        return BlockKeys(tuple(narrowed_keys), None, tuple(whole))
    return BlockKeys(tuple(narrowed_keys), combinations(left.numbers, _count(left) == _count(within)), tuple(whole))


def _count(narrowed: RemainingKeys) -> int:
    return group_count(narrowed.values, None) if narrowed.numbers is None else len(narrowed.numbers)


def noted(
    source: Relation, keys: Sequence[Key], named: Mapping[str, tuple[str, ...]], context: BindingContext
) -> dict[str, tuple[str, ...]]:
    """Return, for each key whose groups may not cover all rows, the columns it is computed from. `keys`: with all values that
    rows may have by the policy; `named`: the columns of each key."""
    rows, public = public_rows(context.policy), [key for key in keys if key.values is not None]
    return {
        key.name: _base_columns(source, key.expression, context.policy) or named[key.name]
        for key in public
        if leaves_out(source, key.expression, rows, context.public_values)
    }


def _base_columns(source: Relation, key: Expr, policy: Policy) -> tuple[str, ...]:
    """Return the names in the policy of the columns a key is computed from; none unless all of them are known."""
    try:
        origins = [(branch.written(key), dict(branch.tables)) for branch in branches(source)]
    except UnknownOrigin:
        return ()
    names = {}
    for column, tables in ((column, tables) for written, tables in origins for column in columns_read(written)):
        path, dot, name = column.name.rpartition(".")
        table = tables.get(path + dot)
        names[name] = table is not None and name in policy.tables[table].columns
    return tuple(names) if all(names.values()) else ()


def shortened(block_keys: BlockKeys, most: int, selecting: bool) -> BlockKeys:
    """Return the keys. If there are more than `most` groups and partition selection is available (`selecting`), the keys with the
    most values are treated as private keys until the rest has at most `most` combinations."""
    keys = list(block_keys.keys)
    if not selecting or group_count([key.values for key in keys], block_keys.combinations) <= most:
        return block_keys
    while group_count([key.values or None for key in keys], None) > most:
        widest = max(keys, key=lambda key: len(key.values or ()))
        keys[keys.index(widest)] = replace(widest, values=None)
    return replace(block_keys, keys=tuple(keys), combinations=None)


def public_rows(policy: Policy) -> PublicRows:
    """Return the rows of the public tables that are small enough to be held in memory."""
    return {name: table.rows for name, table in policy.tables.items() if table.rows is not None}


# --- the block and the SELECT over it ----------------------------------------------------------------------------------

MOST_MEASURES = 100
MOST_KEYS = 20
MOST_WRITTEN = 20_000
"""Largest number of nodes written in place of outputs that are named by alias: a + a AS b, b + b AS c, ... doubles each time."""


def bound_block(
    context: BindingContext, node: exp.Select, scope: Scope, source: Relation, environment: Environment
) -> Bound:
    """Enter the private block of `node` and return the SELECT over it. A result grouped by unit stays protected."""
    work = _BlockRewriter(context, node, scope, environment)
    columns = [column for _, rows in scope.sources for _, column in rows.columns]
    _, scope.labels, _ = labelled(source, {column.name for column in columns})
    if scope.unpaired is not None:
        scope.labels = also_missing(scope.labels, columns)
    work.find_keys()
    if scope.labels:
        read = {name for key in work.keys for name in names_read(key.expression)}
        labels = {name for name, column in scope.labels.items() if names_read(column) <= read}
        source, scope.unpaired = with_labels(source, scope.unpaired, labels)
    units, group_keys = _by_unit(work, node)
    within = bool(units) or _within_units(work, source)
    if within and scope.unpaired is not None:
        check_unread(source, scope.unpaired)
    if within:
        sides = [
            per_unit(context.policy, part, scope, source, keys, units, node is context.whole)
            for part, keys in work.unit_sets(units, group_keys)
        ]
        return sides[0] if len(sides) == 1 else stacked(node, sides)
    work.narrow(with_unpaired_rows(source, scope.unpaired))
    copy = exp.Select(expressions=[work.output(item) for item in node.expressions])
    for clause, target in (("having", "where"), ("qualify", "qualify")):
        if node.args.get(clause) is not None:
            part = work.part(node.args[clause])
            copy.set(target, exp.Where(this=part.this) if clause == "having" else part)
    if len(work.sets) == 1:
        only_with_rows(copy, node, work.key_of, work.part)
    order = None if node.args.get("order") is None else work.order(node.args["order"])
    tree = _over_blocks(context, work, source, copy, order)
    for clause in ("limit", "offset"):
        if node.args.get(clause) is not None:
            tree.set(clause, context.released_part(node.args[clause], environment))
    if node.args.get("distinct") is not None and work.grouped:
        tree.set("distinct", context.released_part(node.args["distinct"], environment))
    names = tuple(str(item.alias) for item in copy.expressions)
    groups = sum(groups_of(context.blocks[t.name]) for t in tree.find_all(exp.Table) if t.name in context.blocks)
    facts = results.over_block(
        copy, node, scope, work.keys, work.measures, len(work.sets), max(1, groups // UNLISTED),
        is_shown(node, context.whole),
    )  # fmt: skip
    return results.limited(node, replace(facts, tree=tree, columns=names, most_rows=groups))


def _by_unit(work: _BlockRewriter, node: exp.Select) -> tuple[list[Expr], list[Expr]]:
    """Return the keys that have a different value for each unit, and the other keys. Refuses keys that may be either."""
    kinds = [kind(key.expression, work.scope) for key in work.keys]
    position = place(node.args.get("group")) or place(node)
    units = [key.expression for key, unit_kind in zip(work.keys, kinds, strict=True) if unit_kind >= Kind.IMAGE]
    names = {key.name for key in work.keys if key.expression in units}
    if any(not names <= chosen for chosen in work.sets):
        raise refuse("unit_sets", position=position)
    for key, unit_kind in zip(work.keys, kinds, strict=True):
        if unit_kind in (Kind.MIXED, Kind.PARTIAL) and key.values is None and not units:
            raise refuse("unit_expression", position=position)
    return units, [key.expression for key in work.keys if key.expression not in units]


def _within_units(work: _BlockRewriter, source: Relation) -> bool:
    """Return whether the groups are those of single units though no key is the unit's own: the number of an order names its
    customer. A whole statement whose keys all have public values is released as it is. Refuses (one_unit_groups) others, and
    such grouping sets: no group could pass its threshold."""
    several = len(work.sets) != 1
    whole = several or work.node is work.context.whole or bool(work.node.meta_get(WHOLE))
    for chosen in work.sets:
        keys = [key for key in work.keys if key.name in chosen]
        listed = whole and all(key.values is not None for key in keys)
        naming = () if listed else naming_unit(source, [key.expression for key in keys], work.context.policy)
        if naming and whole:
            position = place(work.node.args.get("group")) or place(work.node)
            raise refuse("one_unit_groups", names=", ".join(naming), position=position)
        if naming:
            return True
    return False


def _over_blocks(
    context: BindingContext, work: _BlockRewriter, source: Relation, copy: exp.Select, order: exp.Expr | None
) -> exp.Query:
    """Enter the block of every grouping set and return the SELECT over it (over the union, if there are several)."""
    measures = tuple(work.measures)
    check_ignored(source, work.scope.unpaired, work.measures)
    if context.min_units is not None:
        measures = with_unit_count(copy, source, measures, context.min_units, context.policy, place(work.node))
    if len(work.sets) == 1:
        block = Block("", source, tuple(work.keys), measures, work.block_keys.combinations)
        name = context.add_block(of_units(block, context.policy, place(work.node)))
        copy.set("from_", exp.From(this=named_table(name)))
        if order is not None:
            copy.set("order", order)
        return copy
    windows = copy.find(exp.Window) is not None or (order is not None and order.find(exp.Window) is not None)
    of_set = columns_of_sets(copy, order, work.keys, measures) if windows else copy
    selects = []
    for chosen, block_keys in work.sets_shown(with_unpaired_rows(source, work.scope.unpaired)):
        keys = [key for key in work.keys if key.name in chosen]
        block = Block("", source, block_keys.keys, measures, block_keys.combinations)
        block = of_units(block, context.policy, place(work.node))
        selects.append(over_set(of_set, context.add_block(block), work.keys, keys))
    return over_union(copy, selects, order) if windows else united(selects, work.node, order)


def _over(expression: Expr, keys: list[Expr]) -> bool:
    """Return whether an expression is made of keys and constants alone."""
    if expression in keys:
        return True
    if isinstance(expression, Call):
        return all(_over(argument, keys) for argument in expression.arguments)
    return isinstance(expression, Literal)


_OF_ANY_ROW = (exp.AnyValue, exp.First, exp.Last, exp.Min, exp.Max, exp.IgnoreNulls)
"""Aggregates that give the value of a key, which all rows of a group have."""
_AS_THEY_ARE = (exp.Order, exp.Ordered, exp.Having, exp.Qualify, exp.Literal)
"""Nodes that are never a key or an aggregate, whatever they contain."""


def _is_grouping(node: exp.Expr) -> bool:
    return isinstance(node, exp.Grouping) or (isinstance(node, exp.Anonymous) and str(node.this).lower() == "grouping")


class _BlockRewriter:
    """Rewriter of the parts of one SELECT: keys become columns k0, k1, ... and aggregates columns m0, m1, ... of the block."""

    def __init__(self, context: BindingContext, node: exp.Select, scope: Scope, environment: Environment) -> None:
        self.context = context
        self.node = node
        self.scope = scope
        self.environment = environment
        self.scalars = Scalars(scope, outputs_by_alias(node))
        self.key_scalars = KeyScalars(scope)
        self.keys: list[Key] = []
        self.always_null: list[exp.Expr] = []
        self.block_keys = BlockKeys(())
        self.all_values: dict[str, Key] = {}
        self.measures: list[Measure] = []
        self.sets: list[set[str]] = []
        self.named: dict[str, tuple[str, ...]] = {}
        self.results: dict[str, Expr] = {}
        self.outputs: dict[int, str] = {}
        """Keys of outputs that GROUP BY names by alias or position: equal ones are one key each, as sets may have one alone."""
        self.grouped = True
        self._expanding: set[str] = set()
        self._written = 0
        self.aliases = {item.alias.lower() for item in node.expressions if item.alias}

    # --- keys ---------------------------------------------------------------------------------------------------------

    def find_keys(self) -> None:
        """Add the keys of GROUP BY (columns, aliases, positions, ALL); SELECT DISTINCT without aggregates groups by its items."""
        group, distinct = self.node.args.get("group"), self.node.args.get("distinct")
        sets: list[tuple[exp.Expr, ...]] = [()]
        if group is not None:
            only(group, "expressions", "all", "rollup", "cube", "grouping_sets")
            items = [*group.expressions]
            for name in ("rollup", "cube", "grouping_sets"):
                items += [part for part in group.args.get(name) or () if isinstance(part, exp.Expr)]
            if group.args.get("all"):
                items += keys_of_all(self.node, self.scope)
            sets = grouping_sets(items)
        elif distinct is not None and not any(has_aggregate(item) for item in self.node.expressions):
            only(distinct)
            self.grouped = False
            sets = [tuple(self._not_star(item.unalias()) for item in self.node.expressions)]
        self.key_scalars.as_written = len(sets) > 1  # what only means the same is computed from NULL in other sets
        self.sets += [{self._key_of_item(item, len(sets) > 1) for item in items_of_set} for items_of_set in sets]
        if self.keys and len(self.always_null) == len(self.keys) and self.node is self.context.whole:
            raise refuse("null_key", position=place(self.always_null[0]))
        if len(sets) == 1 and group is not None:
            self._add_determined()

    def _add_determined(self) -> None:
        """Add the columns outside of aggregates that the keys determine, because they hold the primary key of their table."""
        order = self.node.args.get("order")
        parts = [*self.node.expressions, self.node.args.get("having"), *(order.expressions if order else ())]
        columns = [column for part in parts if part is not None for column in part.find_all(exp.Column)]
        for column in columns:
            if not in_aggregate(column, self.node) and self.scope.has(column) and self.key_of(column) is None:
                identifying = self._identifying(column)
                if identifying and all(map(self.key_of, identifying)):
                    self.sets[0].add(self._add_key(column))

    def _identifying(self, column: exp.Column) -> list[exp.Expr]:
        """Return the columns of the primary key of the table that has a column; none where it is not known."""
        aliases = {alias.lower() for alias, rows in self.scope.sources if column.name.lower() in rows.by_label}
        aliases &= {column.table.lower()} if column.table else aliases
        for item in (self.node.args["from_"].this, *(join.this for join in self.node.args.get("joins") or ())):
            named = isinstance(item, exp.Table) and (item.args.get("db") or self.environment.find(item.name) is None)
            table = self.context.policy.table(item.name) if named and aliases == {item.alias_or_name.lower()} else None
            if table is not None:
                return [exp.column(name, table=item.alias_or_name, quoted=True) for name in table.primary_key]
        return []

    def narrow(self, source: Relation) -> None:
        """Remove the public key values that the query's conditions exclude, before the number of groups is checked."""
        limits = self.context.policy.per_query
        conditions = self.conditions_on_keys(None) if len(self.sets) == 1 else []
        self.all_values = {key.name: key for key in self.keys}
        source = in_canonical_form(source) if self.keys else source
        block_keys = narrowed(source, self.keys, conditions, self.context)
        drops = noted(source, block_keys.within, self.named, self.context)
        self.block_keys = shortened(block_keys, limits.max_public_groups, bool(limits.delta))
        self.keys = [replace(key, drops=drops.get(key.name, ())) for key in self.block_keys.keys]

    def sets_shown(self, source: Relation) -> list[tuple[set[str], BlockKeys]]:
        """Return the grouping sets, each with its keys, except those for which HAVING is never true (all if it never is)."""
        conditions = [self.conditions_on_keys(chosen) for chosen in self.sets]
        satisfiable = [all(map(may_hold, having)) for having in conditions]
        return [
            (chosen, self._keys_of_set(source, chosen, having))
            for chosen, having, may_hold in zip(self.sets, conditions, satisfiable, strict=True)
            if may_hold or not any(satisfiable)
        ]

    def _keys_of_set(self, source: Relation, chosen: set[str], conditions: list[Expr]) -> BlockKeys:
        """Return the keys of one of several grouping sets, named as in a separate block."""
        keys_of_set = list({key.expression: key for key in self.keys if key.name in chosen}.values())
        whole = [replace(self.all_values[key.name], drops=key.drops) for key in keys_of_set]
        block_keys = narrowed(in_canonical_form(source), whole, conditions, self.context)
        named = [
            replace(key, name=f"k{number}", values=None if key_of_block.values is None else key.values)
            for number, (key, key_of_block) in enumerate(zip(block_keys.keys, keys_of_set, strict=True))
        ]
        private = any(key.values is None for key in named)
        return replace(block_keys, keys=tuple(named), combinations=None if private else block_keys.combinations)

    def conditions_on_keys(self, chosen: set[str] | None) -> list[Expr]:
        """Return the conjuncts of HAVING that depend on keys alone; groups that fail one are not shown. `chosen`: the keys of one
        of several grouping sets, in which the other keys are NULL."""
        conditions: list[Expr] = []
        if len({key.expression for key in self.keys}) < len(self.keys):
            return conditions  # of equal keys, sets may leave out one
        for part in conjuncts(condition_of(self.node, "having")):
            if has_aggregate(part):
                continue
            try:
                condition = self.key_scalars.boolean(self._of_set(self._named(part), chosen))
            except Error:
                continue
            if _over(condition, [key.expression for key in self.keys]):
                conditions.append(condition)
        return conditions

    def unit_sets(self, units: list[Expr], group_keys: list[Expr]) -> list[tuple[exp.Select, list[Expr]]]:
        """Return for each grouping set (all of them contain the unit's key) its SELECT and its other keys."""
        if len(self.sets) == 1:
            return [(self.node, group_keys)]
        selects = []
        for chosen in self.sets:
            part = self.node.copy()
            items = [
                exp.alias_(self._output_of_set(index, chosen), output_name(item), quoted=True)
                for index, item in enumerate(self.node.expressions)
            ]
            part.set("expressions", items)
            if (having := self.node.args.get("having")) is not None:
                part.set("having", exp.Having(this=self._of_set(having.this, chosen)))
            keys = (key.expression for key in self.keys if key.name in chosen and key.expression not in units)
            selects.append((part, list(dict.fromkeys(keys))))
        return selects

    def _output_of_set(self, index: int, chosen: set[str]) -> exp.Expr:
        """Return the value of an output as it reads in one grouping set."""
        value, key = self.node.expressions[index].unalias(), self.outputs.get(index)
        if key is None:
            return self._of_set(value, chosen)
        return value.copy() if key in chosen else self._missing(key)

    def _of_set(self, part: exp.Expr, chosen: set[str] | None) -> exp.Expr:
        """Return an expression as it reads in one grouping set: the other keys are NULL, except inside aggregates."""
        if chosen is None:
            return part

        def over(node: exp.Expr) -> exp.Expr:
            if is_aggregate(node):
                return node.copy()
            if _is_grouping(node):
                return grouping_number(self._keys_of_grouping(node), chosen)
            key = self.key_of(node) if isinstance(node, exp.Condition) else None
            if key is None:
                return node
            if key in chosen:  # a new node, into which `transform` does not go: a key may contain one that is NULL
                return node.copy()
            return self._missing(key)

        return part.copy().transform(over)

    def _missing(self, name: str) -> exp.Expr:
        """Return the NULL of a key in the sets without it."""
        key = next(key for key in self.keys if key.name == name)
        type_ = self.results.get(name, key.expression).facts.type
        return exp.cast(exp.Null(), SQL_TYPES[type_], dialect="duckdb")

    def _named(self, part: exp.Expr) -> exp.Expr:
        """Return a condition of HAVING with outputs named by alias written out; source columns take precedence."""
        outputs = outputs_by_alias(self.node)

        def written_out(column: exp.Expr) -> exp.Expr:
            if not isinstance(column, exp.Column) or column.table or self.scope.has(column):
                return column
            return exp.Paren(this=outputs[name].copy()) if (name := column.name.lower()) in outputs else column

        return part.copy().transform(written_out)

    def _not_star(self, item: exp.Expr) -> exp.Expr:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            raise refuse("raw_rows", position=place(item))
        return item

    def _key_of_item(self, item: exp.Expr, several: bool) -> str:
        """Return the key of a GROUP BY item; `several`: of one of several grouping sets, in which the key of an output that is
        named by alias or position is its own, as in DuckDB."""
        index = self._output_of(item)
        if index is None:
            return self._add_key(item, self.outputs.values() if several else ())
        if index not in self.outputs:
            taken = [key.name for key in self.keys] if several else ()
            self.outputs[index] = self._add_key(self._not_star(self.node.expressions[index].unalias()), taken)
        return self.outputs[index]

    def _output_of(self, item: exp.Expr) -> int | None:
        """Return the output that a GROUP BY item names by position or alias (source columns take precedence), if any."""
        if isinstance(item, exp.Literal) and not item.is_string:
            number = int(item.name) if item.name.isdecimal() else 0
            if not 1 <= number <= len(self.node.expressions):
                raise no_position("GROUP BY", item, len(self.node.expressions))
            return number - 1
        if isinstance(item, exp.Column) and not item.table and not self.scope.has(item):
            aliases = [output.alias.lower() for output in self.node.expressions]
            return aliases.index(item.name.lower()) if item.name.lower() in aliases else None
        return None

    def _add_key(self, item: exp.Expr, taken: Collection[str] = ()) -> str:
        """Return the key of an expression, entering it if it is new, or if its keys are among those `taken`."""
        if has_aggregate(item):
            raise refuse("nested_aggregate", function="GROUP BY", position=place(item))
        expression = self.key_scalars.bind(item)
        name = self._known_key(expression, taken)
        if name is not None:
            return name
        if len(self.keys) >= MOST_KEYS:
            raise refuse("many_keys", most=MOST_KEYS, position=place(item))
        if expression.facts.type is Type.NULL:
            raise refuse("null_key", position=place(item))
        if isinstance(expression, Call) and NO_VALUE in needed(expression):
            self.always_null.append(item)
        name = f"k{len(self.keys)}"
        if is_result(expression):  # every row has the same value, which is shown once it is released
            self.results[name] = expression
            expression = literal(f"result {len(self.results)}")
        self.keys.append(Key(name, expression, domain_of(expression)))
        columns = dict.fromkeys(c.name for c in item.find_all(exp.Column) if not c.name.startswith(HIDDEN))
        self.named[name] = tuple(columns) or (sql_text(item),)
        return name

    # --- outputs ------------------------------------------------------------------------------------------------------

    def output(self, item: exp.Expr) -> exp.Expr:
        """Return one item of the select list over the block, under its output name."""
        self._not_star(item)
        return exp.Alias(this=self._value(item), alias=exp.to_identifier(output_name(item), quoted=True))

    def _value(self, item: exp.Expr) -> exp.Expr:
        """Return the value of an output over the block: the key of its own, or its expression."""
        value = item.unalias()
        index = next(index for index, output in enumerate(self.node.expressions) if output is item)
        key = self.key_of(value) if isinstance(value, exp.Literal) else self.outputs.get(index)
        return self.part(value) if key is None or key in self.results else exp.column(key, quoted=True)

    def order(self, value: exp.Expr) -> exp.Expr | None:
        """Return ORDER BY over the block. Over a union (several grouping sets), outputs are named by their position. An alias of
        a constant, which would read as a position, orders nothing."""
        pairs = zip(value.expressions, self.part(value).expressions, strict=True)
        order = exp.Order(expressions=[o for v, o in pairs if o.find(exp.Column, exp.Query) or not v.find(exp.Column)])
        if len(self.sets) > 1:
            outputs = [self._value(item).unnest() for item in self.node.expressions]
            for ordered in order.expressions:
                value = ordered.this.unnest()
                if value in outputs and not isinstance(ordered.this, exp.Literal):
                    ordered.set("this", exp.Literal.number(outputs.index(value) + 1))
        return order if order.expressions else None

    def part(self, value: exp.Expr) -> exp.Expr:
        """Return a part of the SELECT, rewritten over the block."""
        result = rebuild(value, self._special)
        assert isinstance(result, exp.Expr)
        return result

    def _special(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, _AS_THEY_ARE):
            return None
        if isinstance(node, exp.Column):
            key = self.key_of(node)
            return self._alias(node) if key is None else exp.column(key, quoted=True)
        if isinstance(node, (exp.Subquery, exp.Exists)):
            over = over_groups(self.context, node, self.scope, self.environment, self.key_of)
            if over is not node:
                part = self.context.released_part(over, self.environment)
                assert isinstance(part, exp.Expr)
                return part
        key = self.key_of(node) if self.results else None
        if key in self.results:
            released = rebuild(node, lambda part: self.context.subquery(part, self.environment))
            assert isinstance(released, exp.Expr)
            present = exp.Not(this=exp.Is(this=exp.column(key, quoted=True), expression=exp.Null()))
            return exp.Paren(this=exp.Case(ifs=[exp.If(this=present, true=released)]))
        subquery = self.context.subquery(node, self.environment)
        if subquery is not None:
            return subquery
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, _OF_ANY_ROW) and (key := self._key_of_rows(node)) is not None:
            return exp.column(key, quoted=True)
        if is_aggregate(node):
            return self._aggregate(node)
        if _is_grouping(node):
            keys = self._keys_of_grouping(node)
            return exp.Literal.number(0) if len(self.sets) == 1 else grouping_call(keys)
        key = self.key_of(node)
        if key is None and isinstance(node, exp.Div):
            return results.whole_quotient(node, self.scope, self._special)
        return None if key is None else exp.column(key, quoted=True)

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        if (seconds := in_seconds(node, self.scalars)) is not None:
            return as_interval(exp.column(self._measure(seconds), quoted=True))
        listed = single_quantiles(node)
        if listed is None:
            return exp.column(self._measure(node), quoted=True)
        return exp.Array(expressions=[exp.column(self._measure(call, listed=True), quoted=True) for call in listed])

    def _key_of_rows(self, node: exp.Expr) -> str | None:
        """Return the key whose value MAX(key), ANY_VALUE(key) and the like give."""
        inner = node.this if isinstance(node, exp.IgnoreNulls) else node  # DuckDB's parser writes it around ANY_VALUE
        plain = isinstance(inner, _OF_ANY_ROW) and not inner.expressions and len(self.sets) == 1
        if not plain or isinstance(node.find_ancestor(exp.Filter, exp.Query), exp.Filter):
            return None
        return self.key_of(inner.this)

    def _alias(self, node: exp.Column) -> exp.Expr:
        """Return the expression of an output that is named by alias, so that the alias cannot resolve to an internal name."""
        name = node.name.lower()
        if not node.table and name in self.aliases and name not in self._expanding:
            self._expanding.add(name)
            item = next(item for item in self.node.expressions if item.alias.lower() == name)
            self._written += sum(1 for _ in item.walk())
            if self._written > MOST_WRITTEN:
                raise refuse("heavy_expression", position=place(node))
            expanded = self._value(item)
            self._expanding.discard(name)
            return exp.Paren(this=expanded)
        self.scope.resolve(node)
        raise refuse("not_grouped", name=node.name, position=place(node))

    def _window(self, node: exp.Window) -> exp.Expr:
        """Return a window function over groups, with its arguments rewritten over the block."""
        inner = node.this
        if isinstance(inner, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
            raise refuse("clause", what=f"{sql_word(inner)} in a window", position=place(node))
        function = type(inner)(**{name: rebuild(part, self._special) for name, part in inner.args.items()})
        check_node(inner)
        parts = {name: rebuild(part, self._special) for name, part in node.args.items() if name != "this"}
        return exp.Window(this=function, **parts)

    def _keys_of_grouping(self, node: exp.Expr) -> list[str]:
        """Return the keys that GROUPING names, by their expressions or by the aliases that GROUP BY names."""
        outputs = [self._output_of(part) if isinstance(part, exp.Column) else None for part in node.expressions]
        keys = [
            self.key_of(part) if index is None else self.outputs.get(index)
            for part, index in zip(node.expressions, outputs, strict=True)
        ]
        if not keys or None in keys:
            raise wrong_call("GROUPING", "takes keys of GROUP BY", node)
        return [key for key in keys if key is not None]

    def _measure(self, node: exp.Expr, listed: bool = False) -> str:
        """Return the block's column for an aggregate, entering it if it is new. `listed`: one item of a list of quantiles."""
        measure = canonical_measure(bind_measure("", node, self.scalars))
        if listed:
            measure = replace(measure, aggregate=LISTED + measure.aggregate)
        for entered in self.measures:
            if replace(measure, name=entered.name) == entered:
                return entered.name
        if len(self.measures) >= MOST_MEASURES + listed * MOST_SHARES:
            raise refuse("many_measures", most=MOST_MEASURES, position=place(node))
        name = f"m{len(self.measures)}"
        self.measures.append(replace(measure, name=name))
        return name

    def key_of(self, node: exp.Expr) -> str | None:
        """Return the key that `node` as a whole equals; a constant only among several sets, some of which leave it out."""
        types = {self.results.get(key.name, key.expression).facts.type for key in self.keys}
        other = isinstance(node, exp.Connector) and Type.BOOLEAN not in types
        other = other or (len(self.sets) == 1 and node.find(exp.Column) is None)
        if not types or (not self.scope.has(node) if isinstance(node, exp.Column) else other or has_aggregate(node)):
            return None
        try:
            return self._known_key(self.key_scalars.bind(node))
        except Error:
            return None

    def _known_key(self, expression: Expr, taken: Collection[str] = ()) -> str | None:
        """Return the last key that is an expression, as DuckDB takes it where several are, except those `taken`."""
        keys = (key.name for key in reversed(self.keys) if self.results.get(key.name, key.expression) == expression)
        return next((name for name in keys if name not in taken), None)
