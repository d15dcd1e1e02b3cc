"""PostgreSQL's SQL over its catalogs, turned into DuckDB's SQL over the catalog tables here: one pass over the tree, leaves
first.

The pass handles names, casts, operators and functions that differ; everything else goes through sqlglot's DuckDB writer. The
result reads only catalog tables, empty tables of the policy, VALUES, and functions in FROM as `sources` knows them: any other
source of rows is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire.catalog.coercion import coerce
from dpsql.frontends.pgwire.catalog.kinds import KINDS, VECTORS, ObjectNames, check_listed, physical
from dpsql.frontends.pgwire.catalog.macros import MACROS, PREFIX
from dpsql.frontends.pgwire.catalog.reading import (
    PLAIN_FUNCTIONS,
    absent_call,
    check_nodes,
    joined_format,
    pattern_test,
    unknown_call,
)
from dpsql.frontends.pgwire.catalog.shape import (
    PG_CATALOG,
    SCHEMAS,
    called,
    column_types,
    denied,
    is_of,
    name_outputs,
    output_name,
    output_names,
    quoted,
    relations,
    type_names,
)
from dpsql.frontends.pgwire.catalog.sources import (
    RECORDS,
    call,
    catalog_schema,
    function_rows,
    list_literal,
    lists_of,
    plain_laterals,
    replace_system_columns,
    tables_of,
    unnested,
)
from dpsql.frontends.pgwire.settings import Settings, setting_key
from dpsql.sql.lexer import place as position_of

_SESSION: dict[type[exp.Expr], str] = {
    exp.CurrentUser: "user", exp.SessionUser: "user", exp.CurrentDatabase: "database", exp.CurrentCatalog: "database",
    exp.CurrentSchema: "schema", exp.CurrentVersion: "version",
}  # fmt: skip
_SESSION_NAMES = {
    "getpgusername": "user", "current_role": "user", "current_user": "user", "session_user": "user",
    "version": "version",
    "current_database": "database", "current_catalog": "database", "current_schema": "schema",
}  # fmt: skip
_OIDS = {"oid", "xid", "cid"}
_TEXTS = {"name", "char", "text", "varchar", "bpchar", "cstring", "sql_identifier", "character_data", "yes_or_no"}
_NUMBERS = {"oid", "xid", "cid", "int2", "int4", "int8", "cardinal_number"}
_TEXT_NAMES = {"character varying": "varchar", "character": "bpchar"}
_OF_KIND: dict[str, tuple[int, str]] = {
    **dict.fromkeys(("has_table_privilege", "has_any_column_privilege", "has_sequence_privilege"), (-2, "regclass")),
    **dict.fromkeys(("has_schema_privilege",), (-2, "regnamespace")), "has_column_privilege": (-3, "regclass"),
    "has_function_privilege": (-2, "regprocedure"), "has_type_privilege": (-2, "regtype"),
    **dict.fromkeys((
        "pg_relation_size", "pg_total_relation_size", "pg_table_size", "pg_indexes_size",
        "pg_relation_is_publishable", "pg_partition_ancestors", "pg_partition_tree",
        "pg_relation_filenode", "pg_partition_root", "row_security_active", "obj_description",
        "col_description", "pg_get_viewdef",
    ), (0, "regclass")),
}  # fmt: skip
"""Arguments of functions that name an object: their index, and of what kind."""


_KEEPING = {
    "min", "max", "nullif", "coalesce", "greatest", "least", "any_value", "unnest", "case", "array", "list_value",
    "array_agg", "array_cat", "array_append", "array_prepend", "array_remove", "pg_typeof", "to_regclass", "to_regtype",
    "to_regnamespace", "to_regproc", "current_schemas", "string_to_array", "pg_partition_root", "lag", "lead", "first_value",
    "last_value", "row", "to_regrole",
}  # fmt: skip
"""Functions whose results may be arrays or names of objects, which have a text of their own."""


@dataclass(frozen=True)
class CatalogContext:
    """The asker and the connection, for functions such as current_user."""

    user: str
    database: str
    settings: Settings
    process: int
    names: ObjectNames
    tables: Mapping[str, str]
    """The schema of each table, both in lower case."""
    options: Callable[[], Mapping[str, str]] = dict
    """The present options of the session, by their names with `dp.`."""

    @property
    def path(self) -> list[str]:
        """The schemas of `search_path` that exist, in its order."""
        listed = [part.strip().strip('"') for part in self.settings.get("search_path").split(",")]
        return [name for name in listed if name.lower() in {"public", *SCHEMAS, *self.tables.values()}]

    def value(self, function: str) -> str:
        """Return the value of a session function."""
        version = f"PostgreSQL {self.settings.get('server_version')} (dpsql: private answers)"
        schema = next(iter(self.path), "public")
        return {"user": self.user, "database": self.database, "schema": schema, "version": version}[function]


def to_duckdb(tree: exp.Expr, context: CatalogContext) -> str:
    """Return DuckDB's SQL for a SELECT over the catalogs (or without FROM). Raises refusals with PostgreSQL's
    SQLSTATEs."""
    if not isinstance(tree, exp.Query):
        raise refuse("catalog_statement")
    check_nodes(tree, _RULES)
    names = output_names(tree)
    tree = normalize_identifiers(tree.copy(), dialect="postgres")
    name_outputs(tree, names)
    for inner in tree.find_all(exp.Subquery, exp.CTE):
        if isinstance(inner.parent, (exp.From, exp.Join, exp.With)) and isinstance(inner.this, exp.Query):
            name_outputs(inner.this, output_names(inner.this))
    named = {id(table) for table in tables_of(tree)}
    for table in tree.find_all(exp.Table, exp.Unnest):
        table.meta["cte"] = isinstance(table.this, exp.Identifier) and id(table) not in named
        if isinstance(table, exp.Unnest) or not isinstance(table.this, exp.Identifier):
            table.meta["function"] = "unnest" if isinstance(table, exp.Unnest) else output_name(table.this)
    for select in tree.find_all(exp.Select):
        if not select.expressions:
            select.set("expressions", [exp.Literal.number(1)])  # SELECT FROM t, in EXISTS
    coerce(tree)
    plain_laterals(tree)
    replace_system_columns(tree)
    for node in reversed(list(tree.bfs())):
        rule = _RULES.get(type(node))
        if rule is not None:
            translated = rule(node, context)
            if translated is not node and node.parent is not None:
                node.replace(translated)
            elif translated is not node:
                tree = translated
    return tree.sql(dialect="duckdb", comments=False)


# --- sources and columns ----------------------------------------------------------------------------------------------


def _table(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    assert isinstance(node, exp.Table)
    if not isinstance(node.this, exp.Identifier):
        label = str(node.meta["function"])
        if label == "pg_get_keywords" or (PG_CATALOG, label) in relations():
            listed = ("keywords", "pgx") if label == "pg_get_keywords" else (label, SCHEMAS[PG_CATALOG])
            alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(label))
            return exp.Table(this=exp.to_identifier(listed[0]), db=exp.to_identifier(listed[1]), alias=alias)
        if node.db and node.db not in SCHEMAS:
            raise refuse("catalog_schema", name=node.db)
        if label == "generate_series" and not node.args.get("ordinality") and node.this.find(exp.Column) is None:
            return _counted(node)
        return function_rows(node)
    schema = catalog_schema(node)
    if schema is None:
        in_schema = context.tables.get(node.name.lower())
        if in_schema is not None and node.db.lower() in ("", in_schema):
            node.set("db", exp.to_identifier("public"))  # in the private DuckDB it has the empty tables of all schemas
            return node
        if node.meta.get("cte"):
            return node
    if schema is None or (schema, node.name) not in relations():
        name = f"{node.db}.{node.name}" if node.db else node.name
        raise refuse("unknown_table", name=name, position=position_of(node))
    if node.name in denied():
        kind = "table" if relations()[schema, node.name].kind == "r" else "view"
        raise refuse("catalog_denied", name=f"{kind} {node.name}", position=position_of(node))
    node.set("catalog", None)
    node.set("db", exp.to_identifier(SCHEMAS[schema]))
    node.this.set("quoted", True)
    return node


def _counted(node: exp.Table) -> exp.Table:
    """Return generate_series(1, 3) AS i as it is: rows are made as they are read, so that many of them take no memory."""
    node.set("db", None)
    alias = node.args.get("alias")
    if alias is not None and not alias.args.get("columns"):
        alias.set("columns", [alias.this.copy()])  # in PostgreSQL the alias names the only column, too
    return node


def _column(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    assert isinstance(node, exp.Column)
    if not node.table and not node.this.quoted and node.name in ("user", "current_role"):
        user = exp.Literal.string(context.user)
        return exp.alias_(user, node.name, quoted=True) if isinstance(node.parent, exp.Select) else user
    if node.db and node.db.lower() == context.tables.get(node.table.lower()):
        node.set("db", exp.to_identifier("public"))
    if node.text("db") in SCHEMAS:
        node.set("db", exp.to_identifier(SCHEMAS[node.text("db")]))
        node.set("catalog", None)
    return node


def _dot(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return pg_catalog.f(x) as f(x): functions have no schema in DuckDB."""
    return node.expression if isinstance(node.this, exp.Identifier) and node.this.name in SCHEMAS else node


# --- casts ------------------------------------------------------------------------------------------------------------


def type_word(to: exp.Expr) -> str:
    """Return a type's name without its schema, quotes and sizes; "char" in quotes is `char`, without them `bpchar`."""
    if isinstance(to, exp.ObjectIdentifier):
        return str(to.this).lower()
    kind = to.args.get("kind")
    text = ((kind if isinstance(kind, exp.Expr) else to).sql("postgres", comments=False)).lower()
    base, _, behind = text.partition("(")
    dimensions = "[]" * text.count("[")
    if text.startswith("time"):
        base += behind.partition(")")[2]
    base = base.replace("[]", "").strip()
    word = "bpchar" if base == "char" else base.rpartition(".")[2].replace('"', "")
    if word.startswith("_"):
        word, dimensions = word[1:], "[]"
    return _TEXT_NAMES.get(word, word) + dimensions


def _cast(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    assert isinstance(node, exp.Cast)
    word, value = type_word(node.to), node.this
    base = word.removesuffix("[]")
    if (
        base not in KINDS
        and base not in type_names()
        and base not in _TEXTS | _NUMBERS
        and not base.startswith("interval")
    ):
        raise refuse("catalog_type", name=base, position=position_of(node.to))
    if word in KINDS:
        return _of_kind(value, word, context)
    if word in VECTORS:
        return exp.cast(list_literal(value.name), _built(VECTORS[word])) if _is_text(value) else value
    if word.endswith("[]"):
        return _array_cast(node, base, context)
    if word in _TEXTS:
        return _text_cast(node, word, context)
    if word in _OIDS:
        return exp.cast(value, exp.DataType.build("uint", dialect="duckdb"))
    if word in ("numeric", "decimal"):
        return _numeric_cast(node)
    if word in ("bool", "boolean") and _is_text(value) and value.name.strip().lower() in ("on", "off"):
        return exp.convert(value.name.strip().lower() == "on")
    if word in ("json", "jsonb"):
        return call("spaced", exp.cast(value, "json")) if word == "jsonb" else exp.cast(value, "json")
    return node


def _built(type_: str) -> exp.DataType:
    return exp.DataType.build(type_, dialect="duckdb")


_PHYSICAL = {physical(kind) for kind in KINDS}


def _is_text(value: exp.Expr) -> bool:
    return isinstance(value, exp.Literal) and value.is_string


def _of_kind(value: exp.Expr, kind: str, context: CatalogContext) -> exp.Expr:
    """Return a value as the name of an object: a literal is looked up here, and what is a text only when it is computed by a
    macro."""
    type_ = physical(kind)
    assert type_ is not None
    if _is_text(value):
        value = exp.Literal.number(context.names.oid(kind, value.name, context.path))
    elif not isinstance(value, (exp.Literal, exp.Null)) and not _is_number(value):
        slug = {"regclass": "unknown_table", "regnamespace": "catalog_schema", "regtype": "catalog_type"}.get(
            kind, "catalog_function"
        )
        visible = isinstance(value.unnest(), (exp.DPipe, exp.Concat)) or is_of(value, _TEXTS)
        value = call("oid_of_text" if visible else "to_oid", value, exp.Literal.string(type_), exp.Literal.string(slug))
    return exp.cast(value, _built(type_))


def _is_number(value: exp.Expr) -> bool:
    """Return whether a value is visibly a number: a column, or a translated cast to an integer or the name of an object."""
    value = value.unnest()
    if isinstance(value, exp.Cast):
        return value.to.is_type(*exp.DataType.NUMERIC_TYPES)
    return is_of(value, _NUMBERS)


def _text_cast(node: exp.Cast, word: str, context: CatalogContext) -> exp.Expr:
    """Return a cast to text. What may be an array or the name of an object is written by a macro as PostgreSQL writes it."""
    value = node.this
    if isinstance(value, (exp.Literal, exp.Null)) or is_of(value, _TEXTS | _NUMBERS):
        text: exp.Expr = exp.cast(value, "text")
    elif isinstance(value, (exp.Func, exp.DPipe)) and called(value) not in _KEEPING and not isinstance(value, exp.Cast):
        text = exp.cast(value, "text")
    elif isinstance(value, exp.Cast) and (width := value.to.sql("duckdb").replace(" ", "")) in _PHYSICAL:
        text = call("kind_text", value, exp.Literal.string(width), _schemas(context.path))
    else:
        text = call("text", value, _schemas(context.path))
    sizes = node.to.args.get("expressions") or []
    if word == "char" or (word in ("varchar", "bpchar") and (sizes or word == "bpchar")):
        size = exp.Literal.number(sizes[0].name) if sizes else exp.Literal.number(1)
        text = exp.Anonymous(this="left", expressions=[text, size])
        if word == "bpchar":
            text = exp.Anonymous(this="rpad", expressions=[text, size.copy(), exp.Literal.string(" ")])
    return text


def _numeric_cast(node: exp.Cast) -> exp.Expr:
    """Return a cast to numeric. Without sizes it keeps the places of a literal; a width of 19 is not that of names of objects."""
    value, sizes = node.this, node.to.args.get("expressions") or []
    if sizes:
        width, places = int(sizes[0].name), int(sizes[1].name) if len(sizes) > 1 else 0
        return exp.cast(value, _built(f"DECIMAL({max(width, 19) if places == 0 else width}, {places})"))
    digits = value.name.removeprefix("-").replace(".", "", 1) if isinstance(value, exp.Literal) else ""
    if digits.isdecimal() and len(digits) < 30:
        return exp.cast(exp.Literal.string(value.name), _built(f"DECIMAL(38, {len(value.name.partition('.')[2])})"))
    return exp.cast(value, _built("DECIMAL(38, 10)"))


def _array_cast(node: exp.Cast, element: str, context: CatalogContext) -> exp.Expr:
    """Return a cast to an array, such as '{a,b}'::text[], as a list."""
    value, inner = node.this, physical(element)
    if _is_text(value):
        value = list_literal(value.name)
        if element in KINDS:
            items = [
                exp.Literal.number(context.names.oid(element, item.name, context.path)) for item in value.expressions
            ]
            value = exp.Array(expressions=items)
    elif element in _TEXTS and not (isinstance(value, exp.Array) or is_of(value, {"_text", "_name"})):
        return call("texts", value, _schemas(context.path))
    if inner is None:
        inner = "uint" if element in _OIDS else "text" if element in _TEXTS else node.to.sql("duckdb").partition("[")[0]
    brackets, part = "[]", value
    while isinstance(part, exp.Array) and part.expressions and isinstance(part.expressions[0], exp.Array):
        brackets, part = brackets + "[]", part.expressions[0]
    return exp.cast(value, _built(inner + brackets))


# --- operators --------------------------------------------------------------------------------------------------------


def _joined(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return a || b, where one side is an array and the other a literal, as the longer array."""
    assert isinstance(node, exp.Binary)
    if isinstance(node.left, exp.Array) and isinstance(node.right, exp.Literal):
        return exp.Anonymous(this="list_append", expressions=[node.left.copy(), node.right.copy()])
    if isinstance(node.right, exp.Array) and isinstance(node.left, exp.Literal):
        return exp.Anonymous(this="list_prepend", expressions=[node.left.copy(), node.right.copy()])
    if any(isinstance(side, exp.Array) for side in (node.left, node.right)):
        return exp.Anonymous(this="list_concat", expressions=[node.left.copy(), node.right.copy()])  # NULL adds nothing
    return node


def _any(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return x = ANY('{a,b}') with the literal as a list, which DuckDB 1.4 requires in brackets."""
    inner = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
    if isinstance(inner, exp.Literal) and inner.name.startswith("{"):
        inner = list_literal(inner.name)
    if isinstance(inner, exp.Array):
        node.set("this", exp.Paren(this=inner))
    return node


def _comparison(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return a comparison for DuckDB: '{...}' becomes a list, and a text beside the name of an object is one, too."""
    assert isinstance(node, exp.Binary)
    left, right = node.left, node.right
    for side, other in ((left, right), (right, left)):
        if _is_text(side) and side.name.startswith("{") and side.name.endswith("}"):
            side.replace(list_literal(side.name))
        elif _is_text(side) and isinstance(other, exp.Cast):
            kind = next(
                (kind for kind in KINDS if other.to.sql("duckdb") == _built(physical(kind) or "").sql("duckdb")), None
            )
            if kind is not None:
                side.replace(_of_kind(side, kind, context))
    return node


def _all(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return x <> ALL (list); `all` is read as a function."""
    inner = node.expressions[0].unnest()
    listed = list_literal(inner.name) if _is_text(inner) else inner
    return exp.All(this=exp.select(unnested(listed.copy())).subquery())


def _bracket(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return an index for DuckDB: int2vector and oidvector, and nothing else, count from 0."""
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice) or node.this.unnest().find(exp.Array):
        return node
    array = node.this.unnest()
    types = column_types().get(array.name, {""}) if isinstance(array, exp.Column) else {""}
    if types == {"name"}:
        letter = exp.Add(this=exp.Paren(this=node.expressions[0].copy()), expression=exp.Literal.number(1))
        return exp.Anonymous(this="substr", expressions=[array.copy(), letter, exp.Literal.number(1)])
    if isinstance(array, exp.Func) and not isinstance(array, exp.Cast):
        return node
    if types <= set(VECTORS) or types.isdisjoint({*VECTORS, ""}):
        # A column of the catalogs, or an output of its name, which has the same type.
        if types <= set(VECTORS):
            index = node.expressions[0]
            index.replace(exp.Add(this=exp.Paren(this=index.copy()), expression=exp.Literal.number(1)))
        return node
    return call("element", array, node.expressions[0])


def _function(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return a function by its name: of the session, one that names objects, a set, a macro; or refused as unknown."""
    name, arguments = called(node), list(node.expressions)
    if name in _NAMED:
        return _NAMED[name](node, context)
    if name in _SESSION_NAMES:
        return _session(_SESSION_NAMES[name], context)
    if len(arguments) > 1 and _is_text(arguments[-2]):
        check_listed(name, arguments[-2].name, context.database, position_of(arguments[-2]))
    if name in _OF_KIND and arguments:
        arguments = _with_objects(name, arguments, context)
    lists = lists_of(name, arguments)
    if lists is not None:
        if isinstance(node.parent, exp.Table):
            node.parent.meta["lists"] = lists
            return node
        return unnested(call(RECORDS[name], *arguments) if name in RECORDS else lists[0][1])
    if name in MACROS:
        return call(name, *arguments)
    if name in PLAIN_FUNCTIONS or (isinstance(node.parent, exp.Table) and (PG_CATALOG, name) in relations()):
        return node
    if name in type_names() and len(arguments) == 1:
        return _cast(exp.Cast(this=arguments[0], to=exp.DataType.build(name, dialect="postgres", udt=True)), context)
    raise absent_call(node, name)


def _session(function: str, context: CatalogContext) -> exp.Expr:
    """Return the value of a session function; there is no current schema where none is searched."""
    if function == "schema" and not context.path:
        return exp.cast(exp.Null(), "text")
    return exp.Literal.string(context.value(function))


def _with_objects(name: str, arguments: list[exp.Expr], context: CatalogContext) -> list[exp.Expr]:
    """Return the arguments of a function with the one that names an object as its OID; the role before it must exist."""
    index, kind = _OF_KIND[name]
    index += len(arguments) if index < 0 else 0
    if 0 <= index < len(arguments):
        if index == 1 and name.startswith("has_"):
            _check_role(arguments[0], context)
        arguments[index] = _of_kind(arguments[index], kind, context)
    return arguments


def _typeof(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return pg_typeof(x): a literal in quotes has no type yet."""
    if len(node.expressions) != 1:
        raise unknown_call(node, called(node))
    (value,) = node.expressions
    if _is_text(value) or isinstance(value, exp.Null):
        return exp.cast(exp.Literal.number(705), _built(physical("regtype") or ""))
    return call("pg_typeof", value)


def _visible(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return pg_table_is_visible(x): whether the schema of a relation is searched."""
    if len(node.expressions) != 1:
        raise unknown_call(node, called(node))
    return call("pg_table_is_visible", _of_kind(node.expressions[0], "regclass", context), _schemas(context.path))


def _to_kind(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return to_regclass(x) and the like, which know every spelling of a literal."""
    if len(node.expressions) != 1:
        raise unknown_call(node, called(node))
    (name,) = node.expressions
    return _looked_up(name, called(node).removeprefix("to_"), context) if _is_text(name) else call(called(node), name)


def _check_role(role: exp.Expr, context: CatalogContext) -> None:
    """Raise PostgreSQL's refusal of a role, given as a literal, that does not exist."""
    if _is_text(role) and role.name != "public":
        context.names.oid("regrole", quoted(role.name), context.path)


def _has_role(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return pg_has_role([user, ]role, right): a role that is not the user's own is another's."""
    user = [exp.Literal.string(context.user)] if len(node.expressions) == 2 else []
    arguments = [*user, *node.expressions]
    if len(arguments) != 3:
        raise unknown_call(node, called(node))
    for role in arguments[:2]:
        _check_role(role, context)
    return call("has_role", *arguments[:2])


def _looked_up(text: exp.Expr, kind: str, context: CatalogContext) -> exp.Expr:
    """Return what a literal names, or NULL."""
    try:
        return _of_kind(text, kind, context)
    except Error:
        return exp.cast(exp.Null(), _built(physical(kind) or ""))


def _searched(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return current_schemas(...) as a list: the schemas of search_path, with TRUE also those that are searched anyway."""
    implicit = node.this if isinstance(node, exp.CurrentSchemas) else next(iter(node.expressions), None)
    first = [] if isinstance(implicit, exp.Boolean) and not implicit.this else [PG_CATALOG]
    return _schemas([*(name for name in first if name not in context.path), *context.path])


def _schemas(names: Sequence[str]) -> exp.Expr:
    return exp.cast(exp.Array(expressions=[exp.Literal.string(name) for name in names]), _built("text[]"))


def _setting(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return the value of current_setting('x'[, missing_ok]), or of set_config('x', value, local), which the connection stores.

    Refuses set_config of an option (option_function): its answer would name a value that is not in force.
    """
    name, arguments = called(node), list(node.expressions)
    if not arguments:
        raise unknown_call(node, name)
    if name == "set_config":
        _refuse_option(arguments)
        return exp.cast(arguments[1], "text") if len(arguments) > 1 else exp.Null()
    first = arguments[0].this if isinstance(arguments[0], exp.Cast) else arguments[0]
    values = {**context.settings.all(), **context.options()}
    if not isinstance(first, exp.Literal):
        chosen = exp.Case(this=exp.func("lower", first.copy()))
        for setting, value in values.items():
            chosen = chosen.when(exp.Literal.string(setting.lower()), exp.Literal.string(value))
        return chosen
    key = setting_key(first.name)
    if key in values:
        return exp.Literal.string(values[key])
    return exp.Null() if len(arguments) > 1 else exp.Literal.string(context.settings.get(first.name))


def _refuse_option(arguments: list[exp.Expr]) -> None:
    """Refuse set_config(...) of an option; its name may also be put together from parts."""
    for literal in arguments[0].find_all(exp.Literal):
        if literal.name.lower().startswith("dp."):
            value = arguments[1].name if len(arguments) > 1 and isinstance(arguments[1], exp.Literal) else "..."
            raise refuse("option_function", function="set_config", way=f"SET {literal.name.lower()} = {value}")


def _class_macro(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Translate a function for which sqlglot has a class, which several words may mean, into a call of the macro."""
    if node.meta.get("word") and called(node) not in MACROS:
        raise unknown_call(node, called(node))
    return call(_CLASSES[type(node)], *(part for part in node.iter_expressions()))


def _series(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return generate_series(...) as rows, or in FROM as the list of its values."""
    arguments = [node.args[key] for key in ("start", "end", "step") if node.args.get(key) is not None]
    lists = lists_of("generate_series", arguments)
    assert lists is not None
    if isinstance(node.parent, exp.Table):
        node.parent.meta["lists"] = lists
        return node
    return unnested(lists[0][1])


def _escaped(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return x SIMILAR TO y ESCAPE z with its escape as an argument; that of LIKE stays."""
    if isinstance(node.this, exp.Anonymous):
        node.this.append("expressions", node.expression)
        return node.this
    return node


def _at_path(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return x #> '{a,1}' and x #>> '{a,1}' with a path of DuckDB."""
    if not _is_text(node.expression):
        return node
    steps = [item.name for item in list_literal(node.expression.name).expressions]
    path = "$" + "".join(f"[{step}]" if step.isdecimal() else f'."{step}"' for step in steps)
    name = "json_extract_string" if isinstance(node, exp.JSONBExtractScalar) else "json_extract"
    return exp.Anonymous(this=name, expressions=[node.this.copy(), exp.Literal.string(path)])


def _contains(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return a @> b of two values of jsonb, that are seen in the text, as a test of JSON."""
    if isinstance(node.this, exp.Anonymous) and node.this.name == f"{PREFIX}spaced":
        return exp.Anonymous(this="json_contains", expressions=[node.this.copy(), node.expression.copy()])
    return node


def _json_list(kind: str, *values: exp.Expr) -> exp.Expr:
    """Return json_agg(x ORDER BY y): the order belongs to the list inside."""
    return call(f"{kind}_joined", exp.Anonymous(this="list", expressions=[v.copy() for v in values]))


def _string(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return $$text$$ or U&'text' as an ordinary literal."""
    text = str(node.this)
    if isinstance(node, exp.UnicodeString):
        text = _ESCAPED.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
    return exp.Literal.string(text)


_ESCAPED = re.compile(r"\\(?:([0-9A-Fa-f]{4})|\+([0-9A-Fa-f]{6}))")


def _clock(node: exp.Expr, context: CatalogContext) -> exp.Expr:
    """Return the time as a call: a bare CURRENT_DATE would be read as the output of that name."""
    moment: exp.Expr = exp.Anonymous(this="now", expressions=[])
    for name in _CLOCKS[type(node)]:
        moment = exp.cast(moment, name)
    return moment


_NAMED: dict[str, Callable[[exp.Expr, CatalogContext], exp.Expr]] = {
    **dict.fromkeys(("current_setting", "set_config"), _setting),
    **dict.fromkeys(("all", "some"), _all),
    **dict.fromkeys(
        ("now", "clock_timestamp", "transaction_timestamp", "statement_timestamp"),
        lambda node, context: exp.Anonymous(this="now", expressions=[]),
    ),
    "format": lambda node, context: joined_format(node),
    "jsonb_agg": lambda node, context: _json_list("jsonb", *node.expressions[:1]),
    "pg_backend_pid": lambda node, context: exp.Literal.number(context.process),
    "current_schemas": _searched,
    "pg_typeof": _typeof,
    "pg_has_role": _has_role,
    "pg_table_is_visible": _visible,
    **{f"to_{kind}": _to_kind for kind in KINDS},
}
"""Functions without a macro."""

_CLOCKS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.CurrentTimestamp: (),
    exp.CurrentDate: ("DATE",),
    exp.CurrentTime: ("TIMESTAMP", "TIME"),
    exp.Localtimestamp: ("TIMESTAMP",),
}

_CLASSES: dict[type[exp.Expr], str] = {
    class_: name
    for name in MACROS
    if (class_ := exp.FUNCTION_BY_NAME.get(name.upper())) is not None and class_ is not exp.GroupConcat
}

_RULES: dict[type[exp.Expr], Callable[[exp.Expr, CatalogContext], exp.Expr]] = {
    **dict.fromkeys(_SESSION, lambda node, context: _session(_SESSION[type(node)], context)),
    **dict.fromkeys(_CLASSES, _class_macro),
    **dict.fromkeys(_CLOCKS, _clock),
    exp.CurrentSchemas: _searched,
    **dict.fromkeys((exp.EQ, exp.NEQ), _comparison),
    **dict.fromkeys((exp.RegexpLike, exp.RegexpILike, exp.Like, exp.ILike), lambda node, context: pattern_test(node)),
    exp.Table: _table,
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Cast: _cast,
    exp.Any: _any,
    exp.Bracket: _bracket,
    exp.Format: lambda node, context: joined_format(node),
    exp.Unnest: lambda node, context: function_rows(node),
    exp.RawString: _string,
    exp.UnicodeString: _string,
    exp.ArrayPrepend: lambda node, context: call("array_prepend", node.expression, node.this),
    exp.DPipe: _joined,
    exp.JSONObjectAgg: lambda node, context: call("json_object_agg", *node.iter_expressions()),
    exp.JSONBObjectAgg: lambda node, context: call("jsonb_object_agg", *node.iter_expressions()),
    exp.JSONArrayAgg: lambda node, context: _json_list("json", node.this),
    exp.JSONBContainsTopKey: lambda node, context: call("jsonb_exists", node.this, node.expression),
    exp.SimilarTo: lambda node, context: call("similar_to", node.this, node.expression),
    exp.Escape: _escaped,
    exp.Hex: lambda node, context: call("to_hex", node.this),
    exp.SHA2Digest: lambda node, context: call("sha256", node.this),
    **dict.fromkeys((exp.JSONBExtract, exp.JSONBExtractScalar), _at_path),
    exp.ArrayContainsAll: _contains,
    exp.ArrayContainedBy: lambda node, context: call("array_contained_by", node.this, node.expression),
    exp.ExplodingGenerateSeries: _series,
    exp.GenerateSeries: _series,
    exp.Collate: lambda node, context: node.this,
    exp.Anonymous: _function,
}
