"""The stored form of a released block: its noisy numbers, a description of what they measure, and their noise laws.

The description makes a stored release usable without the question that made it: expressions are named by their
fingerprints, noise laws are written out, and the keys say which groups exist. Nothing exact is ever written.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from fractions import Fraction
from math import isqrt
from typing import Any

import pyarrow as pa

from dpsql.aggregates.moments import can_be_missing
from dpsql.errors.exceptions import refuse
from dpsql.functions.public_domains import domain_of
from dpsql.noise.perturb import NoisyAnswer
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.expression_text import expression_text
from dpsql.plan.intervals import Type
from dpsql.plan.origins import UnknownOrigin, branches
from dpsql.plan.plan import (
    BoundedBlock,
    Call,
    Column,
    Expr,
    Filter,
    Key,
    Literal,
    Relation,
    ReleasedValue,
    Term,
    TermKind,
    columns_read,
)
from dpsql.policy.types import ContributionBounds
from dpsql.pricing.joint_sums import factors_of
from dpsql.pricing.pricing import PricedBlock, shown_half_of_the_time
from dpsql.privacy.mechanisms import registry
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.reuse.measurements import StoredNumber, read, written
from dpsql.reuse.store import StoredRelease
from dpsql.storage.records import dataclass, field, replace

SELECTION = "selection"
"""Kind of a hidden count that was used only to admit keys."""
COMPRESSED_FROM = 1 << 16
"""Size in bytes from which an answer is compressed in the store."""


@dataclass(frozen=True)
class StoredKey:
    """A group key: fingerprint and text of its expression; `public`: its groups follow from the policy alone.

    `complete`: no value lies outside the groups, provided that the policy's lists hold; `nulls`: no NULL does either.
    """

    name: str
    expression: str
    text: str
    public: bool
    complete: bool
    nulls: bool


@dataclass(frozen=True)
class StoredFactor:
    """One number of a pair whose products are summed: the name of its value (`value_mark`), the width of its bounds on the
    grid of its integers, and the lower bound."""

    value: str
    width: Fraction
    lower: Fraction


@dataclass(frozen=True)
class StoredTerm:
    """A noisy sum: `measure` names what is summed, `conditions` the conjuncts of its FILTER, `centre` is subtracted
    from every row's value before it is summed (with `absent`, from 0 for a row without a value). `shares` names a set of
    terms that share each row; `everything`: its sums have a part of every row. `width`: the width of the values whose squares
    are shared. `factors`: the factors of a product, of whose parts this term is the one at `place`."""

    name: str
    kind: str
    measure: str
    conditions: frozenset[str]
    centre: Fraction
    noise: Noise
    grid: int
    whole: bool
    shares: str = ""
    absent: bool = False
    everything: bool = False
    width: Fraction | None = None
    factors: tuple[StoredFactor, ...] = ()
    place: int = 0


@dataclass(frozen=True, eq=False)
class Stored:
    """A stored release, read back. `conditions`: the conjuncts of WHERE above the relation that all releases of one
    family share (`base_of`). `gaps`: groups that have rows are left out. `reads`: the tables and columns that it read, with
    their marks (`policy.versions`)."""

    key: str
    created: str
    receipt: str
    loss: str
    conditions: frozenset[str]
    bounds: ContributionBounds
    selection: tuple[Any, ...]
    keys: tuple[StoredKey, ...]
    terms: tuple[StoredTerm, ...]
    table: pa.Table
    numbers: tuple[StoredNumber, ...] = ()
    gaps: bool = False
    reads: Mapping[str, str] = field(default_factory=dict)


# --- what a block measures ------------------------------------------------------------------------------------------


def base_of(relation: Relation) -> tuple[Relation, dict[str, Expr]]:
    """Return the relation below the filters on top, and their conjuncts by fingerprint."""
    conditions: dict[str, Expr] = {}
    while isinstance(relation, Filter):
        conditions |= conjuncts(relation.predicate)
        relation = relation.source
    return relation, conditions


def conjuncts(condition: Expr | None) -> dict[str, Expr]:
    """Return the operands of an AND, of nested ones too, by fingerprint."""
    if condition is None:
        return {}
    if isinstance(condition, Call) and condition.function == "and":
        return {mark: part for argument in condition.arguments for mark, part in conjuncts(argument).items()}
    return {fingerprint(condition): condition}


def measure_of(term: Term) -> str:
    """Return the name of a term's measure, which does not depend on its name, condition, centre and grid of integers.

    Clipped sums differ from unclipped ones and, by their clipping, from each other; a count that shares each row with
    sums is in steps of these sums. A product has the same name with its factors in either order: the numbers are the same.
    """
    term = _in_one_order(term)
    clip = () if term.clip is None else (term.clip, term.grid)
    step: tuple[float | str, ...] = (term.magnitude, term.grid) if term.shares and term.kind is TermKind.COUNT else ()
    if term.kind is TermKind.SQUARE_PART:
        step = (term.place, term.grid)
    if term.kind in (TermKind.PRODUCT_PART, TermKind.PAIR_PART):
        bounds = (float(end) for factor in factors_of(term) for end in (factor.lower, factor.upper))
        step = (term.place, term.grid, *bounds)
    if term.places is not None:
        step = (fingerprint(term.places), term.magnitude)
    if term.kind is TermKind.DISTINCT_SUM:
        step = (float(term.centre), term.grid)  # a count of rows cannot move it to another centre
    return fingerprint((term.kind, term.value, float(term.lower), float(term.upper), *clip, *step))


def _in_one_order(term: Term) -> Term:
    """Return a sum of products with its factors ordered by their fingerprints, and with the place that the part then has."""
    value = term.value
    if not isinstance(value, Call) or value.function != "mul":
        return term
    first, second = value.arguments
    if fingerprint(first) <= fingerprint(second):
        return term
    powers = {TermKind.PRODUCT_PART: 2, TermKind.PAIR_PART: 3}.get(term.kind, 1)
    index = term.place % powers * powers + term.place // powers
    return replace(term, value=replace(value, arguments=(second, first)), place=index)


def complete(key: Key, source: Relation) -> bool:
    """Return whether every row of `source` has one of the values of the key, provided that the policy's lists hold.

    Bounds are not a list: they clamp what is summed and promise nothing about the data.
    """
    # Values that the question's conditions exclude have no rows in it.
    listed = key.values is not None and key.whole and _complete(key.expression, set(domain_of(key.expression) or ()))
    return listed and (not key.drops or _reads_lists(key.expression, source))


def _reads_lists(expression: Expr, source: Relation) -> bool:
    """Return whether all base columns of an expression have lists, or neither bounds nor NaN: other values belong to no group."""
    try:
        read = [column.facts for branch in branches(source) for column in columns_read(branch.written(expression))]
    except UnknownOrigin:
        return False
    return all(facts.values is not None or not (facts.bounded or facts.type is Type.REAL) for facts in read)


def _complete(expression: Expr, values: set[Any]) -> bool:
    if expression.facts.type is Type.BOOLEAN:
        return True
    if isinstance(expression, (Column, ReleasedValue)):
        return expression.facts.values is not None
    if isinstance(expression, Literal):
        return expression.value in values
    if expression.function in ("case", "coalesce"):
        case = expression.function == "case"
        results = (*expression.arguments[1:-1:2], expression.arguments[-1]) if case else expression.arguments
        if all(isinstance(result, Literal) and result.value in values for result in results):
            return True
    return all(isinstance(argument, Literal) or _complete(argument, values) for argument in expression.arguments)


# --- writing --------------------------------------------------------------------------------------------------------


def description(priced: PricedBlock) -> dict[str, Any]:
    """Return, as plain JSON, what a release of this block measures and with which noise."""
    block = priced.block
    named = {term.name: term for term in block.terms}
    gaps = {"gaps": True} if block.combinations is not None and not block.combinations.whole else {}
    return gaps | {
        "conditions": sorted(base_of(block.source)[1]),
        "caps": [block.caps.bounds.max_groups, block.caps.bounds.max_rows_per_group],
        "selection": list(selection_of(priced)),
        "keys": [
            {
                "name": key.name, "expression": fingerprint(key.expression), "text": expression_text(key.expression),
                "public": key.values is not None, "complete": complete(key, block.source),
                "nulls": key.values is not None and key.whole,
            }
            for key in block.keys
        ],
        "terms": [
            {
                "name": term.name, **_measured(named.get(term.name)), "noise": registry.to_json(term.noise),
                "grid": term.grid, "whole": term.whole,
            }
            for term in priced.noise.terms
        ],
        **written(block.measurements, priced.noise.measurements),
    }  # fmt: skip


def shape_of(block: BoundedBlock) -> str:
    """Return a name for the keys and for the conditions of each sum's rows (from FILTER or WHERE alike), regardless of order.
    Chosen numbers, and keys alone, are those of all rows."""
    rows = set(base_of(block.source)[1])
    sums = sorted(tuple(sorted(rows | conjuncts(term.filter).keys())) for term in block.terms)
    if block.measurements or not sums:
        sums.append(tuple(sorted(rows)))
    return fingerprint((tuple(sorted(fingerprint(key.expression) for key in block.keys)), tuple(sums)))


def selection_of(priced: PricedBlock) -> tuple[Any, ...]:
    """Return the rule that admits private keys: its kind, its fingerprint, and the group size shown half of the time."""
    rule = priced.noise.selection
    if rule is None:
        return ()
    size, counted = shown_half_of_the_time(priced)
    return (rule.kind if counted == "units" else f"{rule.kind}_of_rows", fingerprint(rule), size)


def _measured(term: Term | None) -> dict[str, Any]:
    if term is None:
        return {"kind": SELECTION, "measure": "", "conditions": [], "centre": "0"}
    conditions = sorted(conjuncts(term.filter))
    centre = str(Fraction(term.centre))
    entry: dict[str, Any] = {
        "kind": term.kind.value,
        "measure": measure_of(term),
        "conditions": conditions,
        "centre": centre,
    }
    if term.shares:
        everything = term.value is not None and (term.absent or not can_be_missing(term.value))
        entry |= {"shares": term.shares, "absent": term.absent, "everything": everything}
    if term.kind is TermKind.SQUARE_PART:
        entry["width"] = str(Fraction(isqrt(term.magnitude)) / Fraction(2) ** (term.grid // 2))
    if term.kind in (TermKind.PRODUCT_PART, TermKind.PAIR_PART):
        entry |= {"place": term.place, "factors": [_factor(factor) for factor in factors_of(term)]}
    return entry


def value_mark(value: Expr) -> str:
    """Return a name for a value together with the bounds to which it is clamped."""
    return fingerprint((value, float(value.facts.lower), float(value.facts.upper)))


def _factor(factor: Term) -> dict[str, str]:
    assert factor.value is not None
    width = Fraction(factor.magnitude) / Fraction(2) ** factor.grid
    return {"value": value_mark(factor.value), "width": str(width), "lower": str(Fraction(factor.lower))}


def packed(noisy: NoisyAnswer) -> bytes:
    """Return keys and noisy terms as an Arrow stream; nothing else of an answer is ever stored.

    Long answers are compressed (to a fifth of their size, in less time than writing the rest would take).
    """
    columns = {name: noisy.keys.column(name) for name in noisy.keys.column_names}
    for term in noisy.terms:
        columns[term.name] = pa.array(term.values)
    columns["#row"] = pa.nulls(noisy.row_count)  # takes no space; keeps the number of rows if no column does
    table = pa.table(columns)
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd" if table.nbytes >= COMPRESSED_FROM else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


# --- reading --------------------------------------------------------------------------------------------------------


def opened(release: StoredRelease) -> Stored | None:
    """Return a stored release with its description; None for entries that are not releases (see `lookup`).

    Raises Fault release_unknown for a release that this version cannot read: an unknown noise law is never read as another.
    """
    if "terms" not in release.note.metadata:
        return None
    try:
        return _read(release, release.note.metadata)
    except (KeyError, TypeError, ValueError) as error:
        raise refuse("release_unknown", receipt=str(release.note.metadata.get("receipt", ""))) from error


def _read(release: StoredRelease, facts: Mapping[str, Any]) -> Stored:
    with pa.ipc.open_stream(release.payload) as reader:
        table = reader.read_all()
    return Stored(
        release.note.key,
        release.note.created,
        facts["receipt"],
        facts["loss"],
        frozenset(facts["conditions"]),
        _bounds(*facts["caps"]),
        tuple(facts["selection"]),
        tuple(StoredKey(**key) for key in facts["keys"]),
        tuple(_term(term) for term in facts["terms"]),
        table,
        read(facts),
        facts.get("gaps", False),
        facts.get("reads", {}),
    )


def _bounds(max_groups: int | None, max_rows_per_group: int | None) -> ContributionBounds:
    return ContributionBounds(max_groups=max_groups, max_rows_per_group=max_rows_per_group)


def _term(facts: Mapping[str, Any]) -> StoredTerm:
    read: dict[str, Any] = {
        "conditions": frozenset(facts["conditions"]), "centre": Fraction(facts["centre"]),
        "noise": registry.from_json(facts["noise"]),
    }  # fmt: skip
    if "width" in facts:
        read["width"] = Fraction(facts["width"])
    if "factors" in facts:
        read["factors"] = tuple(
            StoredFactor(factor["value"], Fraction(factor["width"]), Fraction(factor["lower"]))
            for factor in facts["factors"]
        )
    return StoredTerm(**{**facts, **read})


ADDITIVE = tuple(
    kind.value
    for kind in (TermKind.COUNT, TermKind.SUM, TermKind.SQUARE_PART, TermKind.PRODUCT_PART, TermKind.PAIR_PART)
)
"""Kinds whose sums over disjoint groups add up to the sum over the union; counts of distinct units or values do not."""
NO_VALUE = frozenset(measure_of(Term("", kind, None, None, 1)) for kind in (TermKind.COUNT, TermKind.UNITS))
"""Measures that read no value of a row, so that without a condition they do not affect the ranking of rows."""


def ranked_by(terms: tuple[Term, ...]) -> set[tuple[str, Fraction, int, frozenset[str]]]:
    """Return the sums (measure, centre, grid, conditions) by which `max_rows_per_group` ranks the rows of a group."""
    ranking = {(measure_of(t), Fraction(t.centre), t.grid, frozenset(conjuncts(t.filter))) for t in terms}
    return {entry for entry in ranking if entry[0] not in NO_VALUE or entry[3]}
