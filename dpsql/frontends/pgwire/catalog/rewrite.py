"""PostgreSQL's SQL over its catalogs, turned into DuckDB's SQL over the catalog tables here: one pass over the tree, leaves
first.

The pass handles names, casts, operators and functions that differ; everything else goes through sqlglot's DuckDB writer. The
result reads only catalog tables, empty tables of the policy, VALUES, and the functions in FROM that `_table` knows: any other
source of rows is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.allow_list import PLAIN_FUNCTIONS, check_nodes
from dpsql.frontends.pgwire.catalog.formats import JOINED, joined_format, whole_quotient
from dpsql.frontends.pgwire.catalog.macros import MACROS, PREFIX
from dpsql.frontends.pgwire.catalog.naming import name_outputs, output_names
from dpsql.frontends.pgwire.catalog.shape import PG_CATALOG, SCHEMAS, relations, type_names
from dpsql.frontends.pgwire.settings import Settings, setting_key

_SESSION: dict[type[exp.Expr], str] = {
    exp.CurrentUser: "user", exp.SessionUser: "user", exp.CurrentDatabase: "database", exp.CurrentCatalog: "database",
    exp.CurrentSchema: "schema", exp.CurrentVersion: "version",
}  # fmt: skip
_SESSION_NAMES = {
    "getpgusername": "user", "current_role": "user", "current_user": "user", "session_user": "user",
    "version": "version",
    "current_database": "database", "current_catalog": "database", "current_schema": "schema",
}  # fmt: skip
_REGPROC = {
    "typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze", "typsubscript",
    "amhandler",
}  # fmt: skip
VECTOR_COLUMNS = ("indkey", "indoption", "indclass", "indcollation")
_OID_TYPES = {"oid", "xid", "regproc", "regprocedure", "regrole"}
_TEXT_TYPES = {
    "name",
    "char",
    "text",
    "varchar",
    "bpchar",
    "character varying",
    "cstring",
    "information_schema.sql_identifier",
}


@dataclass(frozen=True)
class CatalogContext:
    """The asker and the connection, for functions such as current_user."""

    user: str
    database: str
    settings: Settings
    process: int
    oids: dict[str, int]
    tables: Mapping[str, str]
    """The schema of each table, both in lower case."""
    options: Callable[[], Mapping[str, str]] = dict
    """The present options of the session, by their names with `dp.`."""

    @property
    def path(self) -> list[str]:
        """The schemas of `search_path` that exist, in its order."""
        named = [part.strip().strip('"') for part in self.settings.get("search_path").split(",")]
        return [name for name in named if name.lower() in {"public", *self.tables.values()}]

    def value(self, function: str) -> str:
        """Return the value of a session function."""
        version = f"PostgreSQL {self.settings.get('server_version')} (dpsql: private answers)"
        schema = next(iter(self.path), "public")
        return {"user": self.user, "database": self.database, "schema": schema, "version": version}[function]


def tables_of(tree: exp.Expr) -> list[exp.Table]:
    """Return the named relations that a tree reads, except its own CTEs."""
    ctes = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    return [
        table for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and not (table.name.lower() in ctes and not table.db)
    ]  # fmt: skip


def catalog_schema(table: exp.Table) -> str | None:
    """Return the catalog schema of a relation, None if it is no catalog relation."""
    schema, name = table.db.lower(), table.name.lower()
    if schema in SCHEMAS:
        return schema
    return PG_CATALOG if not schema and (PG_CATALOG, name) in relations() else None


def to_duckdb(tree: exp.Expr, place: CatalogContext) -> str:
    """Return DuckDB's SQL for a SELECT over the catalogs (or without FROM). Raises refusals with PostgreSQL's
    SQLSTATEs."""
    if not isinstance(tree, exp.Query):
        raise refuse("catalog_statement")
    check_nodes(tree, _RULES)
    names = output_names(tree)
    tree = normalize_identifiers(tree.copy(), dialect="postgres")
    name_outputs(tree, names)
    named = {id(table) for table in tables_of(tree)}
    for table in tree.find_all(exp.Table):
        table.meta["cte"] = isinstance(table.this, exp.Identifier) and id(table) not in named
    _outer_regclass(tree)
    for node in reversed(list(tree.bfs())):
        rule = _RULES.get(type(node))
        if rule is not None:
            translated = rule(node, place)
            if translated is not node and node.parent is not None:
                node.replace(translated)
    return tree.sql(dialect="duckdb", comments=False)


def _outer_regclass(tree: exp.Query) -> None:
    """Replace regclass in the outputs by names: PostgreSQL shows an OID of type regclass as a name."""
    for node in list(tree.selects):
        inner = node.this if isinstance(node, exp.Alias) else node
        if (
            isinstance(inner, exp.Cast)
            and _type_word(inner.to) == "regclass"
            and not isinstance(inner.this, exp.Literal)
        ):
            inner.replace(exp.cast(inner.copy(), "text"))


# --- rules ------------------------------------------------------------------------------------------------------------


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=PREFIX + name, expressions=list(arguments))


def _table(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    assert isinstance(node, exp.Table)
    if not isinstance(node.this, exp.Identifier):
        if isinstance(node.this, (exp.Explode, exp.ExplodingGenerateSeries, exp.GenerateSeries)):
            node.set("db", None)
            alias = node.args.get("alias")
            if alias is not None and not alias.args.get("columns"):
                alias.set("columns", [alias.this.copy()])  # in PostgreSQL the alias names the only column, too
            return node
        if isinstance(node.this, exp.Anonymous) and node.this.name == f"{PREFIX}pg_partition_ancestors":
            # No table has parents: the one row is the table itself.
            rows = exp.select(node.this.copy(), exp.Literal.number(1)).subquery()
            rows.set("alias", node.args.get("alias"))
            return rows
        if isinstance(node.this, exp.Anonymous) and node.this.name == f"{PREFIX}string_to_array" and node.alias:
            # A function in FROM is one row, whose column is named after the alias.
            rows = exp.select(exp.alias_(node.this.copy(), node.alias, quoted=True)).subquery()
            rows.set("alias", node.args.get("alias"))
            return rows
        raise refuse("catalog_source", name=node.this.name or node.this.sql("postgres")[:60])
    schema = catalog_schema(node)
    if schema is None:
        in_schema = place.tables.get(node.name.lower())
        if in_schema is not None and node.db.lower() in ("", in_schema):
            node.set("db", exp.to_identifier("public"))  # in the private DuckDB it has the empty tables of all schemas
            return node
        if node.meta.get("cte"):
            return node
        raise refuse("unknown_table", name=f"{node.db}.{node.name}" if node.db else node.name)
    if (schema, node.name) not in relations():
        raise refuse("unknown_table", name=f"{node.db}.{node.name}" if node.db else node.name)
    node.set("catalog", None)
    node.set("db", exp.to_identifier(SCHEMAS[schema]))
    node.this.set("quoted", True)
    return node


def _column(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    assert isinstance(node, exp.Column)
    if not node.table and not node.this.quoted and node.name in ("user", "current_role"):
        return exp.Literal.string(place.user)
    if node.db and node.db.lower() == place.tables.get(node.table.lower()):
        node.set("db", exp.to_identifier("public"))
    if node.text("db") in SCHEMAS:
        node.set("db", exp.to_identifier(SCHEMAS[node.text("db")]))
        node.set("catalog", None)
    return node


def _dot(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    """Return pg_catalog.f(x) as f(x): functions have no schema in DuckDB."""
    return node.expression if isinstance(node.this, exp.Identifier) and node.this.name in SCHEMAS else node


def _type_word(to: exp.Expr) -> str:
    if isinstance(to, exp.ObjectIdentifier):
        return str(to.this).lower()
    kind = to.args.get("kind")
    text = kind.sql("postgres") if isinstance(kind, exp.Expr) else to.sql("postgres")
    return text.lower().replace('"', "").removeprefix("pg_catalog.")


def _cast(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    assert isinstance(node, exp.Cast)
    word, value = _type_word(node.to), node.this
    if word == "regclass":
        return _regclass(value, place)
    if word == "regtype":
        return _regtype(value)
    if word == "regnamespace":
        return exp.Cast(this=value, to=exp.DataType.build("uint"), safe=False) if _number(value) else value
    if word.endswith("[]"):
        return _array_cast(node, word[:-2])
    if word in _TEXT_TYPES:
        return _text_cast(node)
    if word == "regproc" and isinstance(value, exp.Literal):
        return exp.Literal.string(value.name.removeprefix("pg_catalog."))
    if word in _OID_TYPES:
        return exp.cast(value, exp.DataType.build("uint", dialect="duckdb"))
    if word in ("json", "jsonb"):
        return exp.cast(value, "text")
    return node


def _text_cast(node: exp.Cast) -> exp.Expr:
    """Return a cast to text. A reg* value as text is a name; an int2vector is numbers separated by blanks."""
    value = node.this
    original = node.meta.get("reg") or value.meta.get("reg")
    if original == "regclass":
        return _call("regclass_name", value)
    if original == "regtype":
        return _call("format_type", value, exp.Null())
    if isinstance(value, exp.Column) and value.name in VECTOR_COLUMNS:
        return _call("array_to_string", value, exp.Literal.string(" "))
    node.set("to", exp.DataType.build("text"))
    return node


def _number(value: exp.Expr) -> bool:
    return isinstance(value, exp.Literal) and value.name.isdecimal()


def _regclass(value: exp.Expr, place: CatalogContext) -> exp.Expr:
    if isinstance(value, exp.Literal) and not _number(value):
        path = [part.strip('"') for part in value.name.split(".")]
        oids = {name: relation.oid for (_, name), relation in relations().items()} | place.oids
        if path[-1] not in oids:
            raise refuse("unknown_table", name=value.name)
        value = exp.Literal.number(oids[path[-1]])
    number = exp.cast(value, exp.DataType.build("uint", dialect="duckdb")) if _number(value) else value
    if isinstance(number, exp.Func) and number.name.startswith((PREFIX + "pg_get_serial", JOINED)):
        number = _call("to_regclass", number)
    number.meta["reg"] = "regclass"
    return number


def _regtype(value: exp.Expr) -> exp.Expr:
    if isinstance(value, exp.Literal) and not _number(value):
        name = value.name.lower().removeprefix("pg_catalog.")
        base = name.removesuffix("[]")
        oid = type_names().get(base if base == name else f"_{base}")
        if oid is None:
            raise refuse("catalog_type", name=value.name)
        value = exp.Literal.number(oid)
    value.meta["reg"] = "regtype"
    return value


def _array_cast(node: exp.Cast, element: str) -> exp.Expr:
    """Return a cast to an array, such as '{a,b}'::text[], as a list."""
    if isinstance(node.this, exp.Literal):
        return _list_literal(node.this.name)
    inner = "uint" if element in (*_OID_TYPES, "regtype", "regclass") else "text" if element in _TEXT_TYPES else element
    return exp.cast(node.this, exp.DataType.build(f"{inner}[]", dialect="duckdb"))


def _list_literal(text: str) -> exp.Expr:
    items = [item.strip().strip('"') for item in text.strip().removeprefix("{").removesuffix("}").split(",")]
    return exp.Array(expressions=[_item(item) for item in items if item])


def _item(text: str) -> exp.Expr:
    number = len(text) <= 20 and text.lstrip("-").isdecimal()  # of more digits Python makes no number
    return exp.Literal.number(int(text)) if number else exp.Literal.string(text)


def _any(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    """Return x = ANY('{a,b}') with the literal as a list, which DuckDB 1.4 requires in brackets."""
    inner = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
    if isinstance(inner, exp.Literal) and inner.name.startswith("{"):
        inner = _list_literal(inner.name)
    if isinstance(inner, exp.Array):
        node.set("this", exp.Paren(this=inner))
    return node


def _comparison(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    """Return a comparison for DuckDB: '{...}' becomes a list, and 0, compared with a column of functions, becomes "-" (no
    function)."""
    assert isinstance(node, exp.Binary)
    left, right = node.left, node.right
    for side, other in ((left, right), (right, left)):
        if isinstance(side, exp.Literal) and side.is_string and side.name.startswith("{") and side.name.endswith("}"):
            side.replace(_list_literal(side.name))
        elif isinstance(other, exp.Column) and other.name in _REGPROC and side.name == "0" and not side.is_string:
            side.replace(exp.Literal.string("-"))
    return node


def _bracket(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    """Return an index into a vector for DuckDB: int2vector and oidvector count from 0, lists from 1."""
    if isinstance(node.this, exp.Column) and node.this.name in VECTOR_COLUMNS:
        for index in list(node.expressions):
            index.replace(exp.Add(this=exp.Paren(this=index.copy()), expression=exp.Literal.number(1)))
    return node


def _operator(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    """Return a OPERATOR(pg_catalog.~) b as a plain operator."""
    word = str(node.args.get("operator")).rpartition(".")[2]
    shapes: dict[str, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
        "~": lambda a, b: _matches(a, b, ""), "!~": lambda a, b: exp.Not(this=_matches(a, b, "")),
        "~*": lambda a, b: _matches(a, b, "i"), "!~*": lambda a, b: exp.Not(this=_matches(a, b, "i")),
        "~~": lambda a, b: exp.Like(this=a, expression=b), "!~~": lambda a, b: exp.Not(this=exp.Like(this=a,
        expression=b)),
        "=": lambda a, b: exp.EQ(this=a, expression=b), "<>": lambda a, b: exp.NEQ(this=a, expression=b),
    }  # fmt: skip
    if word not in shapes:
        raise refuse("catalog_function", name=f"operator {word}")
    return exp.Paren(this=shapes[word](node.this, node.expression))


def _matches(value: exp.Expr, pattern: exp.Expr, flags: str) -> exp.Expr:
    options = [exp.Literal.string(flags)] if flags else []
    return exp.Anonymous(this="regexp_matches", expressions=[value, pattern, *options])


def _regexp(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    return _matches(node.this, node.expression, "i" if isinstance(node, exp.RegexpILike) else "")


def _collate(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    inner: exp.Expr = node.this
    return inner


def _session(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    return exp.Literal.string(place.value(_SESSION[type(node)]))


def _function(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    """Return a function by its name: one of the macros, a function of the session, or refused as unknown."""
    name, arguments = str(node.name).lower(), list(node.expressions)
    if name in ("current_setting", "set_config") and arguments:
        return _setting(name, arguments, place)
    if name == "pg_backend_pid":
        return exp.Literal.number(place.process)
    if name == "current_schemas":
        return _schemas(node, place)
    if name in _SESSION_NAMES:
        return exp.Literal.string(place.value(_SESSION_NAMES[name]))
    if name in ("now", "clock_timestamp", "transaction_timestamp", "statement_timestamp"):
        return exp.Anonymous(this="now", expressions=[])
    if name in MACROS:
        return _call(name, *arguments)
    if name in PLAIN_FUNCTIONS:
        return node
    raise refuse("unknown_function", name=name)


def _schemas(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    """Return current_schemas(...) as a list: pg_catalog and the schemas of search_path."""
    return exp.Array(expressions=[exp.Literal.string(name) for name in ("pg_catalog", *place.path)])


def _setting(name: str, arguments: list[exp.Expr], place: CatalogContext) -> exp.Expr:
    """Return the value of current_setting('x'[, missing_ok]), or of set_config('x', value, local), which is not stored.

    Refuses set_config of an option (option_function): its answer would name a value that is not in force.
    """
    if name == "set_config":
        _refuse_option(arguments)
        return exp.cast(arguments[1], "text") if len(arguments) > 1 else exp.Null()
    first = arguments[0].this if isinstance(arguments[0], exp.Cast) else arguments[0]
    if not isinstance(first, exp.Literal):
        raise refuse("unknown_function", name=name)
    values = {**place.settings.all(), **place.options()}
    key = setting_key(first.name)
    if key in values:
        return exp.Literal.string(values[key])
    return exp.Null() if len(arguments) > 1 else exp.Literal.string(place.settings.get(first.name))


def _refuse_option(arguments: list[exp.Expr]) -> None:
    """Refuse set_config(...) of an option; its name may also be put together from parts."""
    for literal in arguments[0].find_all(exp.Literal):
        if literal.name.lower().startswith("dp."):
            value = arguments[1].name if len(arguments) > 1 and isinstance(arguments[1], exp.Literal) else "..."
            raise refuse("option_function", function="set_config", way=f"SET {literal.name.lower()} = {value}")


def _class_macro(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    """Translate a function for which sqlglot has a class into a call of the macro."""
    return _call(_CLASSES[type(node)], *(part for part in node.iter_expressions()))


def _clock(node: exp.Expr, place: CatalogContext) -> exp.Expr:
    """Return the time as a call: a bare CURRENT_DATE would be read as the output of that name."""
    moment: exp.Expr = exp.Anonymous(this="now", expressions=[])
    for name in _CLOCKS[type(node)]:
        moment = exp.cast(moment, name)
    return moment


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
    **dict.fromkeys(_SESSION, _session),
    **dict.fromkeys(_CLASSES, _class_macro),
    **dict.fromkeys(_CLOCKS, _clock),
    exp.CurrentSchemas: _schemas,
    **dict.fromkeys((exp.EQ, exp.NEQ), _comparison),
    **dict.fromkeys((exp.RegexpLike, exp.RegexpILike), _regexp),
    exp.Table: _table,
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Cast: _cast,
    exp.Any: _any,
    exp.Bracket: _bracket,
    exp.Operator: _operator,
    exp.Format: lambda node, place: joined_format(node),
    exp.Div: lambda node, place: whole_quotient(node),
    exp.Collate: _collate,
    exp.Anonymous: _function,
}
