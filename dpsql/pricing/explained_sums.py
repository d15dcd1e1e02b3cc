"""Sums in EXPLAIN: their text as short SQL, and the measures that they stand for."""

from __future__ import annotations

from dpsql.aggregates.contract import SharedPart
from dpsql.aggregates.distances import distance
from dpsql.aggregates.registry import aggregate_of
from dpsql.functions.numeric import call, clamped, constant
from dpsql.plan.expression_text import column_texts, expression_text
from dpsql.plan.formulas import terms_of
from dpsql.plan.plan import Block, Call, Expr, Measure, Plan, Relation, Term, TermKind, TotalCut
from dpsql.pricing.pricing import PricedBlock

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"


def cut_text(cut: TotalCut, plan: Plan) -> str:
    """Describe a sum whose bound is chosen privately, as SQL-like text."""
    source = next(block.source for block in plan.blocks if block.name in cut.readers)
    return term_text("distinct" if cut.places else "sum", cut.value, cut.filter, False, source)


def term_text(
    kind: str, value: Expr | None, condition: Expr | None, centred: bool, source: Relation | None = None
) -> str:
    """Describe a term as SQL-like text; `source`: the summed relation, whose columns may have no names in the question."""
    columns = {} if source is None else column_texts(source)
    inside = "*" if value is None else expression_text(value, columns)
    text = {
        "count": f"count({inside})", "sum": f"{'centred ' if centred else ''}sum({inside})",
        "units": "count(distinct unit)", "distinct": f"count(distinct {inside})", "distinct share": f"count(distinct {inside})",
        "distinct sum": f"{'centred ' if centred else ''}sum(distinct {inside})",
    }[kind]  # fmt: skip
    return text if condition is None else f"{text} filter (where {expression_text(condition, columns)})"


def reading(name: str, block: Block, priced: PricedBlock) -> list[Measure]:
    """Return the measures whose formula reads the released number `name`."""
    formulas = zip(block.measures, priced.block.formulas, strict=True)
    return [measure for measure, (_, formula, _) in formulas if name in terms_of(formula)]


def made_of(term: Term, block: Block, priced: PricedBlock) -> list[Measure]:
    """Return the measures that read a term; for terms that share each row, the measures that the term represents
    (`term_errors`)."""
    measures = reading(term.name, block, priced)
    if not term.shares:
        return measures
    if term.kind in _OF_PAIRS:
        counting = [measure for measure in measures if _shared(measure) == SharedPart.COUNT]
        return counting or measures if not term.place else [m for m in measures if m not in counting]
    if term.kind is TermKind.SQUARE_PART or term.place:
        return _made_of_squares(term, measures, priced)
    summing = term.kind is TermKind.SUM and term.centre == term.lower
    chosen = [measure for measure in measures if (_shared(measure) == SharedPart.COUNT) is not summing]
    last = next(
        (other for other in priced.block.terms if other.shares == term.shares and other.kind is TermKind.COUNT), None
    )
    if term.kind is TermKind.SUM and last is not None and not summing:
        rows = {measure.name for measure in made_of(last, block, priced)}
        chosen = [measure for measure in chosen if measure.name not in rows]
    return chosen or [measure for measure in measures if _shared(measure) == SharedPart.SUM | SharedPart.COUNT]


def _made_of_squares(term: Term, measures: list[Measure], priced: PricedBlock) -> list[Measure]:
    """Return the measures that a term of shared squares represents, by its place: count of values, SUM, readers of squares,
    COUNT(*)."""
    stands_for = (SharedPart.COUNT, SharedPart.SUM, None, SharedPart.COUNT)[term.place]
    if stands_for is None:
        return [measure for measure in measures if SharedPart.SQUARES in (_shared(measure) or SharedPart(0))]
    chosen = [measure for measure in measures if _shared(measure) == stands_for]
    last = next((t.name for t in priced.block.terms if t.shares == term.shares and t.place == 3), None)
    if term.place == 0 and last is not None:
        rows = {name for name, formula, _ in priced.block.formulas if last in terms_of(formula)}
        chosen = [measure for measure in chosen if measure.name not in rows]
    return chosen or [
        measure for measure in measures if SharedPart.SUM | SharedPart.COUNT in (_shared(measure) or SharedPart(0))
    ]


def _shared(measure: Measure) -> SharedPart | None:
    return aggregate_of(measure.aggregate).shared


def text_of(term: Term, priced: PricedBlock) -> str:
    """Describe a term as SQL-like text."""
    if priced.block.unit_weights and term.name == priced.block.selection_term:
        return "units, one weight each shared among its keys"
    if not term.shares:
        return term_text(term.kind.value, term.value, term.filter, bool(term.centre))
    if term.kind in _OF_PAIRS:
        return _text_of_product(term) if term.kind is TermKind.PRODUCT_PART else _text_of_pair(term)
    summed = (TermKind.SUM, TermKind.SQUARE_PART)
    low = next(other for other in priced.block.terms if other.shares == term.shares and other.kind in summed)
    if term.kind is TermKind.SQUARE_PART and term.place:
        assert term.value is not None
        d = distance(clamped(term.value), term.lower)
        value = term.value if term.place == 1 else call("mul", d, d)
        return term_text("sum", value, term.filter, False)
    if term.kind is TermKind.SUM and term.centre == term.lower:
        return term_text("sum", term.value, term.filter, False)
    everything = term.kind is TermKind.COUNT or term.absent
    return term_text("count", None if everything else low.value, low.filter, False)


_OF_PAIRS = (TermKind.PRODUCT_PART, TermKind.PAIR_PART)


def _text_of_pair(term: Term) -> str:
    if term.place == 0:
        return term_text("count", None, term.filter, False)
    assert isinstance(term.value, Call)
    factors: list[Expr] = []
    for place, value in zip((term.place // 3, term.place % 3), term.value.arguments, strict=True):
        inside = clamped(value)
        above, below = distance(inside, value.facts.lower), call("sub", constant(value.facts.upper, value), inside)
        factors.append(call("mul", below if place < 2 else above, above if place else below))
    return term_text("sum", call("mul", *factors), term.filter, False)


def _text_of_product(term: Term) -> str:
    if term.place == 0:
        return term_text("count", None, term.filter, False)
    assert isinstance(term.value, Call)
    factors = []
    for bit, value in zip((1, 2), term.value.arguments, strict=True):
        inside = clamped(value)
        above, below = distance(inside, value.facts.lower), call("sub", constant(value.facts.upper, value), inside)
        factors.append(above if term.place & bit else below)
    return term_text("sum", call("mul", *factors), term.filter, False)
