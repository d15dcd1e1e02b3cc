"""Names in scope while a query is bound, the two kinds of sources of a FROM clause, and the binder as its parts see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Protocol

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.functions.key_questions import PublicValues
from dpsql.plan.intervals import Facts
from dpsql.plan.plan import Block, Column, Expr, PublicInput, Relation
from dpsql.policy import Policy
from dpsql.sql.binder.sql_words import slot_word, sql_word
from dpsql.sql.binder.unpaired_rows import UnpairedRows
from dpsql.sql.lexer import OWN_NAMES, place

HIDDEN = OWN_NAMES
"""Prefix of source aliases and columns that no query has written: SELECT * and hints do not show them."""


class Kind(IntEnum):
    """Dependence of an expression on the unit's key. OTHER: none, or through a value that many units share. MIXED: computed
    from the key, with nothing proven. IMAGE: an injective function of the key. KEY: the key itself."""

    OTHER = 0
    MIXED = 1
    IMAGE = 2
    KEY = 3


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
    the empty set is that on all rows. `assumed`: sets like those of `unique` with one of several private keys each, `branches`:
    the sides of a UNION ALL; only the number of combined rows relies on them.
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
    assumed: frozenset[frozenset[int]] = frozenset()
    branches: tuple[Released, ...] = ()

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
        name = node.name.lower()
        columns = [column for source in candidates for column in source.by_label.get(name, ())]
        if not columns or (len(columns) > 1 and name not in self.merged):
            return None
        return None if any(name in source.untyped for source in candidates) else columns[0]

    def star(self, qualifier: str, node: exp.Expr) -> list[tuple[str, Column]]:
        """Return the columns of SELECT * or alias.*. A column that USING merges appears once, at its position in the first
        source."""
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


def only(node: exp.Expr, *names: str) -> None:
    """Refuse a node with any argument other than `names`: sqlglot parses more than dpsql has proofs for."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, [], ""):
            clause = value if isinstance(value, exp.Expr) else node
            raise refuse(
                "clause", what=f"{sql_word(node)} with {slot_word(name, value)}", position=place(clause) or place(node)
            )


def lacks_argument(node: exp.Expr) -> Error:
    """Return the refusal of a function that lacks an argument, at the nearest known position in the text."""
    nearest: exp.Expr | None = node
    while nearest is not None and place(nearest) is None:
        nearest = nearest.parent
    return refuse("wrong_arguments", function=sql_word(node), reason="lacks an argument", position=place(nearest))


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
