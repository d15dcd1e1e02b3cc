"""Names in scope while a query is bound, the two kinds of sources of a FROM clause, and the binder as its parts see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Protocol

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.functions.key_columns import labelled
from dpsql.functions.key_narrowing import image, may_hold
from dpsql.functions.key_questions import PublicValues
from dpsql.plan.intervals import Facts
from dpsql.plan.origins import Branch, UnknownOrigin, branches
from dpsql.plan.plan import Block, Column, Expr, Literal, Measure, Project, PublicInput, Relation, Union_, filled
from dpsql.policy import Policy
from dpsql.sql.lexer import OWN_NAMES, place
from dpsql.sql.parse import dialect
from dpsql.sql.parser import WRITTEN_NAME
from dpsql.storage.records import dataclass, field, replace

# --- public rows that an outer join keeps although no protected row pairs with them -----------------------------------
# Regions LEFT JOIN patients.
#
# Such a row belongs to no unit, and its presence depends on all units: adding a unit may add pairs and remove the row.
# So no block reads these rows. Only the pairs, an inner join, are measured, and a row without a partner must add
# nothing to any aggregate: COUNT(x), SUM(x) and the like, where x is NULL as the protected side's columns are (for SUM
# also 0), COUNT(DISTINCT unit), or any aggregate with a condition that excludes such rows. Then the answer is the same
# with and without these rows, and so are price and noise. COUNT(*) counts them and is refused.
#
# They do add groups: a region without patients has a count of 0. Public keys are listed from the text, the policy and
# public tables; the rows without a partner are used for that, and for nothing else.

_ONE_VALUE = frozenset({
    "count", "count_distinct", "sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "bool_and", "bool_or",
    "quantile_cont", "quantile_disc", "listed_quantile_cont", "listed_quantile_disc", "mode",
})  # fmt: skip
"""Aggregates that skip a row whose first argument is NULL."""
_PAIRS = frozenset({
    "covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_avgx", "regr_avgy", "regr_count",
})  # fmt: skip
"""Aggregates that skip a row in which either argument is NULL."""

_NULL = frozenset((None,))


@dataclass(frozen=True)
class UnpairedRows:
    """Rows of an outer join by whether they have a partner. `pairs`: joined rows with both sides, as in the plan. `alone`: public
    rows, each of which may be without a partner, with the same columns; `public`: these, with the public side's own columns.
    `position`: that of the join in the text. `names`: of columns of `pairs`, with those in `public`; None if `pairs` is a join of
    which `public` is the right side."""

    pairs: Relation
    alone: Relation
    public: Relation
    position: int | None
    names: Mapping[str, str] | None = None


def unpaired_rows(
    pairs: Relation, public: Relation, position: int | None, names: Mapping[str, str] | None = None
) -> UnpairedRows | None:
    """Return the rows of `public` as unpaired rows (`UnpairedRows`); None if the origin of columns is unknown."""
    try:
        columns = branches(pairs)[0].columns
        offered = branches(public)[0].columns
    except UnknownOrigin:
        return None
    items: list[tuple[str, Expr]] = []
    for name, value in columns.items():
        column = names.get(name) if names is not None else name[2:] if name.startswith("b.") else None
        if column is not None:
            items.append((name, Column(column, offered[column].facts)))
        else:
            items.append((name, Literal(None, replace(value.facts, nullable=True, values=None))))
    return UnpairedRows(pairs, Project(public, tuple(items)), public, position, names)


def also_missing(labels: Mapping[str, Expr], columns: Iterable[Column]) -> dict[str, Expr]:
    """Return what stands in keys for computed columns (`labelled`), NULL where unpaired rows have no value in the column."""
    nullable = {column.name for column in columns if column.facts.nullable}
    return {
        name: replace(value, facts=replace(value.facts, nullable=True)) if name in nullable else value
        for name, value in labels.items()
    }


def with_labels(
    source: Relation, unpaired: UnpairedRows | None, names: Iterable[str]
) -> tuple[Relation, UnpairedRows | None]:
    """Return the rows of `source` with further columns, which stand in keys for `names` (`labelled`), and the unpaired rows with
    the same columns: like all columns of the protected side, NULL."""
    relation, _, pairs = labelled(source, names, None if unpaired is None else unpaired.pairs)
    if unpaired is None or pairs is None or pairs is unpaired.pairs:
        return relation, unpaired
    return relation, unpaired_rows(pairs, unpaired.public, unpaired.position, unpaired.names)


def with_unpaired_rows(source: Relation, unpaired: UnpairedRows | None) -> Relation:
    """Return the rows of `source` including those without a partner; public keys are listed for these rows."""
    if unpaired is None:
        return source
    both = Union_((unpaired.pairs, unpaired.alone))
    whole: Relation = filled(source, lambda part: both if part is unpaired.pairs else part)
    return whole


def check_unread(source: Relation, unpaired: UnpairedRows | None) -> None:
    """Refuse (join) a SELECT that returns rows, unless a condition excludes those without a partner."""
    hint = "count partners and keep the rows with few: SELECT key, COUNT(its_key) ... GROUP BY key HAVING COUNT(its_key) < 10"
    reason = "which public rows no protected row meets depends on single people"
    check_ignored(source, unpaired, (Measure("", "count", (), False, None),), (reason, hint))


_COUNTED = (
    "an aggregate may count rows of the public side that no protected row meets",
    "aggregate a column of the protected table, as COUNT(its_key) for COUNT(*), or use an inner join",
)


def check_ignored(
    source: Relation, unpaired: UnpairedRows | None, measures: Sequence[Measure], words: tuple[str, str] = _COUNTED
) -> None:
    """Refuse (join) a measure of `source` that rows without a partner may change. `words`: the reason and another way."""
    if unpaired is None or not measures:
        return
    try:
        alone = branches(filled(source, lambda part: unpaired.alone if part is unpaired.pairs else part))
        left = [branch for branch in alone if all(map(may_hold, branch.conditions))]
        counted = any(not _ignores(measure, branch) for branch in left for measure in measures)
    except UnknownOrigin:
        counted = True
    if counted:
        raise refuse("join", reason=words[0], way=words[1], position=unpaired.position)


def _ignores(measure: Measure, branch: Branch) -> bool:
    """Return whether a row of the branch adds nothing to a measure."""
    if measure.filter is not None and not may_hold(branch.written(measure.filter)):
        return True
    if measure.aggregate == "count_units":
        return True  # the row belongs to no unit
    values = [image(branch.written(argument)) for argument in measure.arguments]
    if measure.aggregate in _PAIRS:
        return any(value == _NULL for value in values)
    if measure.aggregate not in _ONE_VALUE or not values:
        return False
    return values[0] == _NULL or (measure.aggregate == "sum" and values[0] is not None and values[0] <= {None, 0})


# --- names of the parts of a text in refusals -------------------------------------------------------------------------
# As SQL writes them, never the parser's names.

_WORDS: dict[type[exp.Expr], str] = {
    exp.Tuple: "a list in brackets", exp.Star: "*", exp.Placeholder: "a parameter", exp.Parameter: "a parameter",
    exp.SessionParameter: "a parameter", exp.Lambda: "x -> ...", exp.Kwarg: "name => value", exp.PropertyEQ: "name := value",
    exp.Bracket: "a subscript [...]", exp.Slice: "a slice [a:b]", exp.Dot: "a field of a value", exp.Struct: "a struct",
    exp.Array: "a list [...]", exp.Table: "a table", exp.Subquery: "a subquery", exp.Select: "SELECT", exp.Order: "ORDER BY",
    exp.Ordered: "ORDER BY", exp.Group: "GROUP BY", exp.Sort: "SORT BY", exp.Cluster: "CLUSTER BY",
    exp.Distribute: "DISTRIBUTE BY", exp.TableSample: "TABLESAMPLE", exp.WindowSpec: "a frame", exp.TableAlias: "an alias",
    exp.Alias: "an alias", exp.Identifier: "a name", exp.Column: "a column", exp.Literal: "a literal", exp.Paren: "brackets",
    exp.IgnoreNulls: "IGNORE NULLS", exp.RespectNulls: "RESPECT NULLS", exp.WithinGroup: "WITHIN GROUP",
    exp.AtTimeZone: "AT TIME ZONE", exp.HexString: "a hexadecimal literal", exp.BitString: "a bit string",
    exp.ByteString: "a string with escapes", exp.National: "a national string", exp.RawString: "a string in dollars",
    exp.Heredoc: "a string in dollars", exp.UnicodeString: "a string with escapes",
    exp.PositionalColumn: "#n", exp.DataType: "a type", exp.Cast: "CAST", exp.TryCast: "TRY_CAST", exp.Var: "a word",
    exp.CTE: "WITH", exp.HavingMax: "HAVING MAX", exp.SetOperation: "a set operation", exp.Escape: "ESCAPE",
    exp.Command: "a command", exp.Case: "CASE", exp.If: "CASE", exp.PivotAlias: "an alias", exp.Columns: "COLUMNS(...)",
    exp.LimitOptions: "LIMIT in percent", exp.ArrayContainsAll: "@>", exp.ArrayContainedBy: "<@", exp.ArrayOverlaps: "&&",
    exp.Collate: "COLLATE", exp.Is: "IS", exp.In: "IN", exp.Between: "BETWEEN",
}  # fmt: skip
_SLOTS = {
    "expression": "a second argument", "count": "a second argument", "expressions": "more arguments", "pivots": "PIVOT",
    "sample": "TABLESAMPLE", "laterals": "LATERAL", "order": "ORDER BY", "sort": "SORT BY", "with": "WITH", "when": "a time",
    "except": "EXCLUDE", "replace": "REPLACE", "rename": "RENAME", "only": "ONLY", "ordinality": "ORDINALITY",
    "operation_modifiers": "such words", "into": "INTO", "locks": "FOR UPDATE", "connect": "CONNECT BY", "match": "MATCH",
    "alias": "an alias", "unit": "a unit", "recursive": "RECURSIVE", "changes": "CHANGES", "version": "a version",
    "kind": "such words", "materialized": "MATERIALIZED", "over": "OVER", "spec": "a frame", "exclude": "EXCLUDE",
    "nulls_first": "NULLS FIRST", "db": "a schema before its name", "catalog": "a database before its name",
    "method": "NATURAL and the like", "fill": "WITH FILL", "having": "HAVING", "group": "GROUP BY", "where": "WHERE",
}  # fmt: skip
"""Descriptions of the slots of nodes whose names are not words of SQL."""

FUNCTION_WORDS: dict[type[exp.Expr], str] = {
    exp.Explode: "UNNEST", exp.GroupConcat: "STRING_AGG", exp.RegexpLike: "REGEXP_MATCHES", exp.TimeToUnix: "EPOCH",
    exp.ArraySize: "ARRAY_LENGTH", exp.ArrayContains: "LIST_CONTAINS", exp.BitwiseAndAgg: "BIT_AND",
    exp.BitwiseOrAgg: "BIT_OR", exp.BitwiseXorAgg: "BIT_XOR", exp.LogicalAnd: "BOOL_AND", exp.LogicalOr: "BOOL_OR",
    exp.UnixToTime: "TO_TIMESTAMP", exp.StrToTime: "STRPTIME", exp.Transform: "LIST_TRANSFORM", exp.SHA2: "SHA256",
    exp.Rand: "RANDOM", exp.CurrentVersion: "VERSION", exp.DateFromParts: "MAKE_DATE", exp.JSONObject: "JSON_OBJECT",
    exp.ApproxDistinct: "APPROX_COUNT_DISTINCT", exp.IsNan: "ISNAN", exp.DateBin: "TIME_BUCKET",
    exp.Getbit: "GET_BIT", exp.Array: "LIST_VALUE", exp.Struct: "STRUCT_PACK", exp.ArrayContainsAll: "LIST_HAS_ALL",
    exp.IsInf: "ISINF", exp.JarowinklerSimilarity: "JARO_WINKLER_SIMILARITY", exp.ParseJSON: "JSON",
    exp.JSONArray: "JSON_ARRAY", exp.JSONExtract: "JSON_EXTRACT", exp.JSONExtractScalar: "JSON_EXTRACT_STRING",
    exp.JSONBExtract: "JSONB_EXTRACT_PATH", exp.JSONBExtractScalar: "JSONB_EXTRACT_PATH_TEXT",
    exp.JSONObjectAgg: "JSON_OBJECT_AGG", exp.JSONBObjectAgg: "JSONB_OBJECT_AGG", exp.CosineDistance: "LIST_COSINE_DISTANCE",
    exp.EuclideanDistance: "LIST_DISTANCE", exp.ArrayOverlaps: "LIST_HAS_ANY", exp.ArrayMax: "LIST_MAX", exp.ArrayMin: "LIST_MIN",
    exp.TimeFromParts: "MAKE_TIME", exp.TimestampFromParts: "MAKE_TIMESTAMP", exp.SHA: "SHA1", exp.StPoint: "ST_POINT",
    exp.RegexpSplit: "STRING_SPLIT_REGEX", exp.ExplodingGenerateSeries: "GENERATE_SERIES",
    exp.FarmFingerprint: "FARMFINGERPRINT64",
    exp.YearOfWeek: "YEAROFWEEK", exp.YearOfWeekIso: "YEAROFWEEKISO", exp.TimestampTzFromParts: "TIMESTAMPTZFROMPARTS",
    exp.TimestampLtzFromParts: "TIMESTAMPLTZFROMPARTS",
}  # fmt: skip
"""SQL names of the functions whose names in the parser exist neither in DuckDB nor in PostgreSQL."""

WRITTEN = "written"
"""Key of a node's `meta` under which stands the analyst's own expression that the node takes the place of."""


def sql_text(node: exp.Expr) -> str:
    """Return the text of an expression for a message, with what the analyst wrote in place of what the binder put there."""
    return str(node.transform(lambda part: part.meta_get(WRITTEN, part)).sql("duckdb"))


def function_word(node: exp.Func) -> str:
    """Return the SQL name of a function: the written one if it is known, or one of several."""
    if (written := node.meta_get(WRITTEN_NAME)) is not None:
        return str(written)
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    if isinstance(node, exp.Pad):
        return "LPAD" if node.args.get("is_left") else "RPAD"
    return FUNCTION_WORDS.get(type(node), node.sql_name())


def sql_word(node: exp.Expr) -> str:
    """Return the word or sign of `node` in SQL, such as BETWEEN, LOG or &, or a description such as "a list in brackets"."""
    if isinstance(node, exp.LimitOptions) and node.args.get("with_ties"):
        return "WITH TIES"
    named = next((_WORDS[kind] for kind in type(node).__mro__ if kind in _WORDS), None)
    if named is not None:
        return named
    if isinstance(node, exp.Func):
        return function_word(node)
    sign = _sign(node) if isinstance(node, (exp.Binary, exp.Unary)) else ""
    return sign or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def _sign(node: exp.Expr) -> str:
    """Return the sign of an operator, as written between or before its operands; empty if the dialect has none."""
    operands = {"this": exp.column("a")} | ({"expression": exp.column("b")} if isinstance(node, exp.Binary) else {})
    try:
        text = type(node)(**operands).sql(dialect())
    except (SqlglotError, ValueError):
        return ""
    return " ".join(word for word in text.split() if word not in ("a", "b")).rstrip("a")


def slot_word(name: str, value: object) -> str:
    """Return the SQL word or a description of the content of the slot `name` of a node."""
    name = name.strip("_")
    if name in _SLOTS:
        return _SLOTS[name]
    clause = isinstance(value, exp.Expr) and not isinstance(value, (exp.Condition, exp.Identifier))
    return sql_word(value) if clause and isinstance(value, exp.Expr) else name.upper().replace("_", " ")


HIDDEN = OWN_NAMES
"""Prefix of source aliases and columns that no query has written: SELECT * and hints do not show them."""


class Kind(IntEnum):
    """Dependence of an expression on the unit's key. OTHER: none, or through a value that many units share. MIXED: computed
    from the key, with nothing proven. PARTIAL: an injective function of the key, or NULL. IMAGE: such a function. KEY: the key
    itself."""

    OTHER = 0
    MIXED = 1
    PARTIAL = 2
    IMAGE = 3
    KEY = 4


@dataclass(frozen=True)
class Protected:
    """A relation over protected rows: visible output names and the row expressions they stand for.

    `unit_names`: the relation's columns that hold the privacy unit's key (none under row privacy, nor above DISTINCT).
    `unit_kinds`: the columns that are computed from that key. `columns` keeps the order of SELECT *.
    `untyped`: columns of a result, in lower case, whose types are not known; they cannot be used.
    """

    relation: Relation
    columns: tuple[tuple[str, Column], ...]
    unit_names: frozenset[str] = frozenset()
    untyped: frozenset[str] = frozenset()
    unit_kinds: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def units(self) -> Mapping[str, Kind]:
        """Return how each column depends on the unit's key, without the columns that do not."""
        return {**self.unit_kinds, **dict.fromkeys(self.unit_names, Kind.KEY)}

    @cached_property
    def by_label(self) -> Mapping[str, tuple[Column, ...]]:
        """Return the columns, keyed by output name in lower case; a repeated name has several."""
        columns: dict[str, tuple[Column, ...]] = {}
        for label, column in self.columns:
            folded = label.lower()
            columns[folded] = (*columns.get(folded, ()), column)
        return columns


@dataclass(frozen=True)
class Released:
    """A query over released and public tables only; `tree` is what the sandbox will run.

    `facts`: of each column, as far as they follow from the text (`result_facts`). `unique`: sets of column positions; no two
    rows have the same values (except NULL) in all columns of a set; an empty set means at most one row. `rows`: the relation
    with these columns, for a public table or a plain SELECT from one. `most_rows`: a bound on its rows; `work`: a bound on the
    rows of all steps up to it (`combined_rows`). `null_repeats`: rows may agree on a set of `unique` if one of its values is
    NULL. `declared`: sets of positions that the policy declares unique in a public table, with the names of table and columns;
    bounds on rows rely on them without a check; joins with a result rely on them too, and the result checks them.
    `repeats`: sets of positions with a bound on the rows that agree on them (except NULL), as the query writes them; the bound of
    the empty set is that on all rows. `exact`: positions of keys, columns of public tables, constants, and what is computed from
    them alone. `agreeing`: sets of positions with the number of rows that agree on them, as it is counted
    in public rows, or assumed of private keys, `branches`: the sides of a UNION ALL; only the number of combined rows relies on
    them.
    """

    tree: exp.Expr
    columns: tuple[str, ...]
    facts: tuple[Facts | None, ...] = ()
    unique: frozenset[frozenset[int]] = frozenset()
    rows: Protected | None = None
    most_rows: int = 1
    work: int = 0
    null_repeats: bool = False
    declared: frozenset[tuple[frozenset[int], str, str]] = frozenset()
    repeats: tuple[tuple[frozenset[int], int], ...] = ()
    agreeing: tuple[tuple[frozenset[int], int], ...] = ()
    branches: tuple[Released, ...] = ()
    exact: frozenset[int] = frozenset()

    @property
    def column_facts(self) -> tuple[Facts | None, ...]:
        """Return one entry for each column; None for a column without known facts."""
        return self.facts if len(self.facts) == len(self.columns) else (None,) * len(self.columns)


Bound = Protected | Released


def labels_of(source: Bound) -> list[str]:
    """Return the names of a source's columns as they are written where they were made, also of those without a known type."""
    if isinstance(source, Protected):
        return [*(label for label, _ in source.columns), *source.untyped]
    return [str(label) for label in source.columns]


@dataclass
class Common:
    """One WITH entry. It is bound once, on first use, so that a CTE that is used twice is one release."""

    name: str
    tree: exp.Query
    environment: Environment
    column_names: tuple[str, ...] = ()
    bound: Bound | None = None
    binding: bool = False


@dataclass(frozen=True)
class Environment:
    """WITH entries that are visible in a query, inner ones first."""

    entries: dict[str, Common] = field(default_factory=dict)
    outer: Environment | None = None

    def find(self, name: str) -> Common | None:
        """Return the entry named `name` (names fold to lower case), or None."""
        entry = self.entries.get(name.lower())
        if entry is not None or self.outer is None:
            return entry
        return self.outer.find(name)


class Scope:
    """Columns that an expression over one relation can name."""

    def __init__(
        self,
        sources: Iterable[tuple[str, Protected]],
        merged: frozenset[str] = frozenset(),
        preserved: Mapping[str, str] | None = None,
    ) -> None:
        """Take the sources by alias. `merged`: lower-case names that USING merges into one column. Unqualified, such a name means
        the first source's column, or that of the source whose lower-case alias `preserved` gives: in a RIGHT JOIN only that one
        has a value in every row."""
        self.sources = list(sources)
        self.merged = merged
        self.preserved = preserved or {}
        self.unpaired: UnpairedRows | None = None
        """Public rows without a partner that an outer join keeps in addition to the relation's rows; None if there are none."""
        self.labels: Mapping[str, Expr] = {}
        """What stands in keys for columns that subqueries compute from columns with labels (policy key `outside`)."""
        self.subquery: Callable[[exp.Expr], Expr] | None = None
        """Function that binds a scalar subquery; None where no subquery is allowed."""
        self.estimates: frozenset[str] = frozenset()
        """Columns of results that are no integers in a quotient: noisy numbers, and what is computed from them."""

    def resolve(self, node: exp.Column) -> Column:
        """Return the column that a name denotes. Refuses unknown and ambiguous names."""
        candidates = self._sources(node)
        if not candidates and node.table:
            aliases = shown_names(alias for alias, _ in self.sources)
            raise refuse("unknown_table", name=node.table, position=place(node), hint=suggestion(node.table, aliases))
        column = self._unambiguous(node, candidates)
        if column is not None:
            return column
        name = node.name
        if self.is_untyped(node):
            raise refuse("untyped_column", name=name, position=place(node))
        labels = shown_names(label for source in candidates for label, _ in source.columns)
        if name.lower() not in map(str.lower, labels):
            if not node.table and name.lower() in (alias.lower() for alias, _ in self.sources):
                raise refuse("whole_row", name=name, position=place(node))
            text = "; a text stands in single quotes: '...'" if node.this.args.get("quoted") and not node.table else ""
            hint = suggestion(name, labels) + text
            raise refuse("unknown_column", name=name, position=place(node), hint=hint.removeprefix("; "))
        raise refuse("ambiguous_column", name=name, position=place(node))

    def has(self, node: exp.Column) -> bool:
        """Return whether `resolve` finds this column."""
        return self._unambiguous(node, self._sources(node)) is not None

    def is_untyped(self, node: exp.Column) -> bool:
        """Return whether a column of this name exists whose type is not known."""
        return any(node.name.lower() in source.untyped for source in self._sources(node))

    def _sources(self, node: exp.Column) -> list[Protected]:
        only = node.table.lower() or self.preserved.get(node.name.lower())
        return [source for alias, source in self.sources if only is None or alias.lower() == only]

    def _unambiguous(self, node: exp.Column, candidates: list[Protected]) -> Column | None:
        """Return the column of `candidates` that a name denotes; None if it denotes none, several, or one of unknown type."""
        name, columns = node.name.lower(), list[Column]()
        for source in candidates:
            if name in source.untyped:
                return None
            columns += source.by_label.get(name, ())
        return columns[0] if len(columns) == 1 or (columns and name in self.merged) else None

    def star(self, qualifier: str, node: exp.Expr) -> list[tuple[str, Column]]:
        """Return the columns of SELECT * or alias.*. One that USING merges appears once, at its place in the first source."""
        visible = [(alias, source) for alias, source in self.sources if not alias.startswith(HIDDEN)]
        column_lists = [s.columns for alias, s in visible if not qualifier or alias.lower() == qualifier.lower()]
        if any(source.untyped for alias, source in visible if not qualifier or alias.lower() == qualifier.lower()):
            raise refuse("untyped_column", name="*", position=place(node))
        if not column_lists:
            raise refuse("unknown_table", name=qualifier, position=place(node), hint=suggestion(qualifier, []))
        if qualifier or not self.merged:
            return [pair for columns in column_lists for pair in columns]
        shown_once: dict[str, tuple[str, Column]] = {}
        for number, (label, column) in enumerate(pair for columns in column_lists for pair in columns):
            name = label.lower()
            if name in self.merged:
                shown_once.setdefault(name, (label, self.resolve(exp.column(label, quoted=True))))
            else:
                shown_once[f"{number} {name}"] = (label, column)
        return list(shown_once.values())

    def unit_names(self) -> frozenset[str]:
        """Return the names of relation columns that hold the privacy unit's key."""
        return frozenset(name for _, source in self.sources for name in source.unit_names)

    @property
    def units(self) -> Mapping[str, Kind]:
        """Return how each column depends on the unit's key, without the columns that do not."""
        return {name: kind for _, source in self.sources for name, kind in source.units.items()}


def shown_names(names: Iterable[str]) -> list[str]:
    """Return the names that hints may list: those from the query or the policy."""
    return [name for name in names if not name.startswith(HIDDEN)]


def using_name(name: exp.Expr | str) -> str:
    """Return the name of an entry of USING."""
    return name.name if isinstance(name, exp.Expr) else str(name)


def using(joins: Sequence[exp.Join], aliases: Sequence[str]) -> tuple[frozenset[str], dict[str, str]]:
    """Return `merged` and `preserved` of a Scope over the sources `aliases`, which `joins` connect.

    A column that FULL JOIN merges is that of neither side: its name stays ambiguous, so that nothing is claimed about it.
    """
    shared = [
        (using_name(name).lower(), str(join.args.get("side") or "").upper(), alias.lower())
        for join, alias in zip(joins, aliases[1:], strict=True)
        for name in join.args.get("using") or ()
    ]
    merged = {name for name, _, _ in shared} - {name for name, side, _ in shared if side == "FULL"}
    return frozenset(merged), {name: alias for name, side, alias in shared if side == "RIGHT" and name in merged}


_WAYS = {
    "field": "the values of IN stand in brackets: x IN ('a', 'b')",
    "on": "in a subquery in FROM it keeps one row of each unit, by ORDER BY",
    "recursive": "a series stands in FROM: generate_series(DATE '2024-01-01', DATE '2024-12-01', INTERVAL '1 month') AS t(month)",
    "sample": "leave it out: a sample costs as much as all rows, and has larger errors",
}  # fmt: skip


def wrong_call(call: exp.Expr | str, reason: str, *nodes: exp.Expr | None, hint: str | None = None) -> Error:
    """Return the refusal of a call, or of the function of a name, at the first of `nodes` (or the call) with a position."""
    position = next(filter(None, map(place, nodes or (None if isinstance(call, str) else call,))), None)
    function = call if isinstance(call, str) else sql_word(call)
    return refuse("wrong_arguments", function=function, reason=reason, position=position, hint=hint)


def only(node: exp.Expr, *names: str) -> None:
    """Refuse a node with any argument other than `names`: sqlglot parses more than dpsql has proofs for."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, [], ""):
            if name == "locks":
                words = (("KEY SHARE", "SHARE"), ("NO KEY UPDATE", "UPDATE"))[bool(value[0].args["update"])]
                raise refuse(
                    "read_only", word=f"SELECT FOR {words[not value[0].args.get('key')]}", position=place(value[0])
                )
            clause = value if isinstance(value, exp.Expr) else node
            on = isinstance(node, exp.Distinct)
            word = "DISTINCT ON over protected rows" if on else f"{sql_word(node)} with {slot_word(name, value)}"
            raise refuse("clause", what=word, position=place(clause) or place(node), hint=_WAYS.get(name))


def lacks_argument(node: exp.Expr) -> Error:
    """Return the refusal of a function that lacks an argument, at the nearest known position in the text."""
    nearest: exp.Expr | None = node
    while nearest is not None and place(nearest) is None:
        nearest = nearest.parent
    return wrong_call(node, "lacks an argument", nearest)


def same_unit(expression: Expr, unit_names: frozenset[str]) -> bool:
    """Return whether an expression is the privacy unit's key itself."""
    return isinstance(expression, Column) and expression.name in unit_names


# --- interface through which parts of the binder use the binder of the whole statement --------------------------------


class BindingContext(Protocol):
    """One statement while it is bound: its policy, what has been collected from it, and methods that bind its parts.

    `blocks`: the private blocks so far, by name. `whole`: the statement itself. `public`: the public tables read so far, by the
    table's name. `min_units`: groups with fewer counted units are not shown (None: all are). `public_values`: how the values of
    public keys are found. The methods raise only refusals.
    """

    policy: Policy
    blocks: dict[str, Block]
    whole: exp.Expr
    public: dict[str, PublicInput]
    min_units: int | None
    public_values: PublicValues

    def add_block(self, block: Block) -> str:
        """Add a private block and return its name; equal blocks are one release."""

    def environment(self, tree: exp.Query, outer: Environment) -> Environment:
        """Return the environment with the WITH entries of `tree`."""

    def source(self, node: exp.Expr, environment: Environment, rows: bool = False) -> tuple[str, Bound]:
        """Return the alias of one item of FROM, and its bound source. `rows`: the SELECT above aggregates."""

    def alone(self, node: exp.Expr, environment: Environment, around: Scope) -> Bound:
        """Bind a subquery of an expression that must not name columns of the outer query."""

    def rows(self, bound: Released, node: exp.Expr, null_safe: Collection[int] = ()) -> Protected:
        """Return a result as a relation that a later block reads. `null_safe`: columns that are compared with NULL as a value."""

    def value(self, node: exp.Expr, environment: Environment, around: Scope) -> Expr:
        """Return the single value of a subquery over results as an expression over protected rows."""

    def subquery(self, node: exp.Expr, environment: Environment) -> exp.Expr | None:
        """Return the released form of a subquery inside an expression, None for any other node."""

    def released_part(self, value: object, environment: Environment) -> object:
        """Return a part of the public remainder with its subqueries bound."""
