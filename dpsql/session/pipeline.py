"""The answer to every question: stored releases, or a measurement in the order of `charged`, with noise, and the remainder.

Measurements are stored before they are shown.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from operator import is_
from typing import Any, TypeVar, overload

import pyarrow as pa
from sqlglot import exp

from dpsql.engine.contract import ExactAnswer
from dpsql.engine.emit.measurements import SUMS, queries
from dpsql.errors.custodian_log import TRACES
from dpsql.errors.exceptions import Error, refuse
from dpsql.ledger.accounts import Account
from dpsql.noise.perturb import perturb, unmoved
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.formulas import MeasureFormula, settled
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.plan.plan import Block, Measure, Plan, Scan
from dpsql.plan.stability import tables
from dpsql.planning.planner import Planned, Planner, read_tables
from dpsql.policy import Policy
from dpsql.pricing.explain import describe_loss, planned_outputs, reading
from dpsql.pricing.measurements import PARTS
from dpsql.pricing.options import Options, Unknown
from dpsql.pricing.pricing import ARROW, PricedBlock, is_charged
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import TermNoise
from dpsql.release import release
from dpsql.release.release import OutputColumn, Presentation, Receipt, Release, make_release
from dpsql.release.remainder import DIALECT, EXAMPLES, ReleasedBlock, Remainder, consistent_blocks, unanswered
from dpsql.release.sandbox import CONVERSION, LITERAL_CONVERSION, Sandbox
from dpsql.release.shape import MeasureFacts, RankError, RowLimit
from dpsql.reuse.lookup import MOST_KEPT_BYTES, Lookup, PaidBlock, shown_term_errors
from dpsql.session.background_work import Pace, Work
from dpsql.session.budget import Remaining
from dpsql.session.charged import Charge, charged, in_background, work_for
from dpsql.session.clamp_notices import Clamps
from dpsql.session.context import SessionContext
from dpsql.session.notices import NoticedQuestion, Shown, notices, rows_of, unit_word
from dpsql.session.stages import Stages, tables_read
from dpsql.storage.records import dataclass, replace

# --- rehearsal of the public remainder over empty tables --------------------------------------------------------------
# Whatever it would refuse is refused before anything is charged. Error bars and what else follows from released numbers
# are computed once over stand-ins with the planned noise.
#
# The sandbox detects impossible conversions between types (a list and a number, a day and a number), and of texts that
# are not numbers, only if there is a row to convert. So remainders that may contain a conversion are also run over
# example rows. A text becomes a number only by CAST, which is NULL if the text is not a number: a comparison or
# addition of the two without CAST is refused.

_ROWS = 2
_CONVERTING = (exp.Array, exp.SetOperation, exp.Cast, exp.TryCast)
_COMPARING = (exp.Binary, exp.Unary, exp.Predicate, exp.Func, exp.Join)
_CONNECTING = (exp.And, exp.Or, exp.Not, exp.Paren)
_NO_HASH = 20_010_101
"""A number that is not the hash of a truth value (the hash of false is 0)."""


def presentation(options: Options) -> Presentation:
    hidden = options.unknown is Unknown.NULL
    return Presentation(float(options.confidence), options.nonnegative, hidden, options.simultaneous, options.shrinkage)


def rehearse(planner: Planner, sandbox: Sandbox, planned: Planned) -> tuple[OutputColumn, ...]:
    """Return the columns of the answer. They depend only on SQL, policy and public tables. Raises the sandbox's refusals.

    The outcome is cached with the question and under the columns that the remainder reads: many questions differ only
    inside their private blocks (a literal in WHERE) and share a remainder.
    """
    columns = planner.columns.get(planned.token)
    if columns is not None:
        return columns
    shapes = _shapes(planned)
    columns_of = (public.scan.columns for public in planned.plan.public_inputs)
    types = {column.facts.type for columns in columns_of for column in columns}
    types |= {type_ for _, keys, _, formulas, _ in shapes for type_ in (*keys, *(type_ for *_, type_ in formulas))}
    scans = tuple((public.name, public.scan) for public in planned.plan.public_inputs)
    display = presentation(planned.options)
    confidence = display.confidence
    remainder, results = planned.plan.remainder, planned.plan.results
    names = planned.plan.output_names
    laws = {} if planned.plan.empty else {each.block.name: each.noise.terms for each in planned.own_blocks}
    kinds = frozenset((type(law.noise), law.whole) for terms in laws.values() for law in terms)

    def remainders(rows: int) -> list[Remainder]:
        public, blocks = {name: _table(scan, rows) for name, scan in scans}, _blocks(shapes, rows)
        trees = [(result.query, tuple(column.name for column in result.columns)) for result in results]
        return [Remainder(tree, labels, blocks, public) for tree, labels in (*trees, (remainder, names))]

    def run() -> tuple[OutputColumn, ...]:
        columns = [release.rehearse(sandbox, each, confidence) for each in remainders(0)][-1]
        if any(_converts(tree, Type.TEXT in types) for tree in (remainder, *(result.query for result in results))):
            for each in remainders(_ROWS):
                _check_conversions(sandbox, each, confidence)
        if laws:
            public = {name: _table(scan, _ROWS) for name, scan in scans}
            stand_ins = Remainder(remainder, names, _blocks(shapes, _ROWS, laws), public)
            release.rehearse_numbers(sandbox, stand_ins, display)
        return columns

    try:
        texts = (planned.text, *(result.query.sql(dialect=DIALECT) for result in results))
        columns = planner.rehearsals.get((texts, names, shapes, scans, display, kinds), run, sum(map(len, texts)))
    except Error as error:
        raise error.placed_in(planned.statement.sql) from None
    planner.columns[planned.token] = columns
    return columns


_Shape = tuple[str, tuple[Type, ...], tuple[str, ...], tuple[MeasureFormula, ...], GroupFacts]
"""Name, types of keys, terms, formulas and facts of a block that the remainder reads."""


def _shapes(planned: Planned) -> tuple[_Shape, ...]:
    assumed = {cut.result: float(cut.most) for cut in planned.plan.cuts}
    return tuple(
        (
            priced.block.name,
            tuple(key.expression.facts.type for key in priced.block.keys),
            priced.noise.numbers,
            tuple((name, settled(formula, assumed), type_) for name, formula, type_ in priced.block.formulas),
            priced.block.groups,
        )
        for priced in planned.own_blocks
    )


def blocks_without_rows(planned: Planned) -> tuple[ReleasedBlock, ...]:
    """Return the blocks of a question without groups: from no measurement follows only what an answer without rows shows."""
    return _blocks(_shapes(planned), 0)


def _blocks(
    shapes: Sequence[_Shape], rows: int, laws: Mapping[str, tuple[TermNoise, ...]] = {}
) -> tuple[ReleasedBlock, ...]:
    return tuple(
        unanswered(name, keys, terms, formulas, groups, rows, laws.get(name, ()))
        for name, keys, terms, formulas, groups in shapes
    )


def _converts(tree: exp.Expr, texts: bool) -> bool:
    """Return whether a remainder may contain a conversion, such as from a text, quoted or in a column (`texts`), to a number."""
    if texts and tree.find(*_COMPARING):
        return True
    return any(node.is_string or not isinstance(node, exp.Literal) for node in tree.find_all(exp.Literal, *_CONVERTING))


def _table(scan: Scan, rows: int) -> pa.Table:
    return pa.table(
        {column.name: pa.array(EXAMPLES[column.facts.type][:rows], ARROW[column.facts.type]) for column in scan.columns}
    )


def _check_conversions(sandbox: Sandbox, remainder: Remainder, confidence: float) -> None:
    """Refuse conversions that are impossible for every value. Conditions may exclude every example row, and choose none of the
    results of CASE, so a second run excludes none and computes all. A conversion that fails only for values of the examples
    may succeed for values of the answer."""
    of_all = remainder.tree.copy()
    conditions = [
        part for part in of_all.find_all(exp.Where, exp.Having, exp.Qualify) if isinstance(part.this, exp.Expr)
    ]
    for condition in conditions:
        condition.set("this", _held_by_all(condition.this))
    for tree in [remainder.tree, of_all] if _computes_all(of_all) or conditions else [remainder.tree]:
        category = _failure(sandbox, replace(remainder, tree=tree, written=""), confidence)
        if LITERAL_CONVERSION in category:
            raise refuse("sandbox_text", text="a text of the question")
        if CONVERSION in category:
            _check_implicit(sandbox, replace(remainder, tree=tree.copy(), written=""), confidence)


def _computes_all(tree: exp.Expr) -> bool:
    """Let a tree compute all results of each CASE, IF and COALESCE with texts among others; return whether it has any."""
    has_texts = False
    for choice in reversed(list(tree.find_all(exp.Case, exp.If, exp.Coalesce))):
        if choice.arg_key == "ifs":
            continue
        branches = [branch.args["true"] for branch in choice.args.get("ifs") or ()]
        first = [choice.this, *choice.expressions] if isinstance(choice, exp.Coalesce) else [choice.args.get("true")]
        results = [
            result for result in [*first, *branches, choice.args.get("default"), choice.args.get("false")] if result
        ]
        texts = [isinstance(result, exp.Literal) and result.is_string for result in results]
        if any(texts) and not all(texts):
            every = exp.Array(expressions=[result.copy() for result in results])
            choice.replace(exp.Anonymous(this="list_extract", expressions=[every, exp.Literal.number(1)]))
            has_texts = True
    return has_texts


def _check_implicit(sandbox: Sandbox, remainder: Remainder, confidence: float) -> None:
    """Refuse a conversion that fails even if every CAST returns NULL instead of failing."""
    for cast in list(remainder.tree.find_all(exp.Cast)):
        cast.replace(exp.TryCast(this=cast.this.copy(), to=cast.to.copy()))
    if CONVERSION in _failure(sandbox, remainder, confidence):
        raise refuse("sandbox_text", text="a released text")


def _failure(sandbox: Sandbox, remainder: Remainder, confidence: float) -> str:
    """Return why `remainder` fails for its values, or "" if it does not. Raises errors that occur for all values."""
    try:
        release.rehearse(sandbox, remainder, confidence)
    except Error as error:
        if error.slug == "sandbox_query":
            raise
        return error.message
    return ""


def _held_by_all(condition: exp.Expr) -> exp.Expr:
    """Return a condition that every row satisfies, and that computes each part of `condition` for every row."""
    parts = [condition]
    while any(isinstance(part, _CONNECTING) for part in parts):
        parts = [
            inner for part in parts for inner in (part.iter_expressions() if isinstance(part, _CONNECTING) else (part,))
        ]
    hashed = exp.Anonymous(this="hash", expressions=[part.copy() for part in parts])
    return exp.NEQ(this=hashed, expression=exp.Literal.number(_NO_HASH))


# --- the answer to every question -------------------------------------------------------------------------------------

# What the numbers of each measure are, besides noise (`release.shape.MeasureFacts`): from policy, text and options alone.


def measure_facts(
    plan: Plan,
    priced: Sequence[PricedBlock],
    policy: Policy,
    clamped: Clamps,
    confidence: float,
    elsewhere: Collection[str],
) -> tuple[MeasureFacts, ...]:
    """Return the facts of each measure. `elsewhere`: blocks whose numbers come from another measurement than the planned one, so
    that their rank errors are not those of the plan."""
    blocks = {block.name: block for block in plan.blocks}
    choosing = {cut.block for cut in plan.cuts}
    facts = []
    for priced_block in priced:
        block = blocks[priced_block.block.name]
        ranks = {} if block.name in elsewhere else _ranks(block, priced_block, confidence)
        for measure in block.measures if block.name not in choosing else ():
            clamps = clamped[block.name, measure.name]
            rank = ranks.get(measure.name)
            limit, units = _limit(measure, block, priced_block.block.caps.rows_per_unit, policy)
            if limit is not None:
                facts.append(MeasureFacts(block.name, measure.name, measure.aggregate, count=units, limit=limit))
            elif clamps or rank is not None:
                counting = _counting(measure, block)
                facts.append(MeasureFacts(block.name, measure.name, measure.aggregate, clamps, rank, counting))
    return tuple(facts)


def _limit(measure: Measure, block: Block, rows: int, policy: Policy) -> tuple[RowLimit | None, str]:
    """Return the limit of a unit's rows in a count of the rows of one table, and the measure that counts their units; (None, "")
    unless that number is released as well. `rows`: rows of a unit in the block."""
    protected = [name for name in tables(block.source) if policy.is_protected(name)]
    limits = {policy.tables[name].bounds.max_rows for name in protected}
    units = next(
        (other.name for other in block.measures if other.aggregate == "count_units" and other.filter == measure.filter),
        "",
    )
    counting = measure.aggregate == "count" and not measure.arguments and not measure.distinct
    if not units or not counting or len(protected) != 1 or limits != {rows} or rows == 1:
        return None, ""
    return RowLimit(rows, f"{rows_of(rows, protected[0])} for each {unit_word(policy)}"), units


def _ranks(block: Block, priced: PricedBlock, confidence: float) -> dict[str, RankError]:
    """Return the rank errors of the measures that are one chosen number."""
    ranks: dict[str, RankError] = {}
    for measurement, plan in zip(priced.block.measurements, priced.noise.measurements, strict=True):
        part = PARTS.of(measurement.word)
        for name, _ in plan.laws:
            aim = part.explained(measurement, plan, name, confidence).aim
            rows = part.worst_error(measurement, plan, name, confidence) if aim else math.inf
            if math.isfinite(rows):
                ranks |= {measure.name: RankError(aim, rows) for measure in reading(name, block, priced)}
    return ranks


def _counting(measure: Measure, block: Block) -> str:
    """Return the measure of a block that counts the rows of another one, "" if none does."""
    return next(
        (
            other.name
            for other in block.measures
            if other.aggregate == "count" and not other.distinct and other.filter == measure.filter
            and other.per_group is None and (not other.arguments or other.arguments == measure.arguments[:1])
        ),
        "",
    )  # fmt: skip


# --- Facts of a release that are computed when somebody reads them ---

Entry = TypeVar("Entry")


class Lazily(Sequence[Entry]):
    """The entries that `compute` returns, computed at the first use because few readers of answers use them."""

    def __init__(self, compute: Callable[[], tuple[Entry, ...]]) -> None:
        """`compute` must not refer to a `Planned`: cached answers live as long as that does (`reuse.answer_cache`)."""
        self._compute = compute

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        return self._compute()

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the entries instead of what they are computed from."""
        return tuple, (self._entries,)


_BARS_TIMES = 4
"""Memory of an answer with its error bars, as a multiple of that of its rows."""


@dataclass(frozen=True)
class Request:
    """One question in the pipeline: `id` is the idempotency key that the asker chose."""

    id: str | None
    stages: Stages


def answer(context: SessionContext, planned: Planned, request_id: str | None, pace: Pace) -> Release:
    """Answer from the store; otherwise measure in a thread that continues if the asker stops waiting (`background_work`).

    An answer without rows (`Plan.empty`) is free. Raises refusals (nothing charged) and faults (`charged` says whether the charge
    stays).
    """
    if planned.plan.empty:
        return stored_answer(context, planned, (), request_id)
    request = Request(request_id, context.stages())
    lookup = context.stored_releases.find(planned, request.stages.fill, request_id)
    if (stored := lookup.complete) is not None:
        return stored_answer(context, lookup.planned, stored, request_id)
    lookup.planned.require_rows()
    work: Work[Release] = work_for(context, pace, partial(context.goes_on, planned.options))
    return in_background(context, work, partial(_in_turn, context, planned, lookup, request, work))


def _in_turn(
    context: SessionContext, planned: Planned, lookup: Lookup, request: Request, work: Work[Release]
) -> Release:
    """Measure equal questions one at a time, so that the second one finds the stored release of the first.

    The store is read again only if another session may have stored an answer since the first lookup.
    """
    most_seconds = context.policy.per_query.timeout_seconds
    with (
        charged(context, work) as charge,
        context.stored_releases.measuring_lock(lookup, most_seconds, work.check) as is_current,
    ):
        if not is_current:
            lookup = context.stored_releases.find(planned, request.stages.fill, request.id)
            if (stored := lookup.complete) is not None:
                return stored_answer(context, lookup.planned, stored, request.id)
        return _measured(context, lookup.planned, lookup.blocks, request, charge)


def _measured(
    context: SessionContext, planned: Planned, stored: list[PaidBlock | None], request: Request, charge: Charge
) -> Release:
    """Return the answer, after charging and measuring the blocks that `stored` lacks, one stage after the other.

    One reservation before the first stage pays for all missing blocks of all stages, because the parameters of later
    stages are already fixed (`stages` explains why their losses add up).
    """
    blocks = planned.price.blocks
    missing = [index for index, part in enumerate(stored) if part is None]
    loss = sum((blocks[index].loss for index in missing), PrivacyLoss.nothing())
    if any(is_charged(blocks[index]) for index in missing):
        context.planner.require_least(loss)
    receipt_id = request.id or uuid.uuid4().hex
    measurement = MissingBlocks(context, planned, stored, request, missing, receipt_id, charge)
    standing = _standing(context, planned)  # what fails here must cost nothing
    reservation = charge.reserve(receipt_id, loss, planned.options, fingerprint(tuple(planned.keys)))
    planned = measurement.run(charge)
    charge.commit()
    released = tuple(part for part in stored if part is not None)
    with TRACES.span("answer"):
        return _release(context, planned, released, loss, receipt_id, standing, accounts=reservation.accounts)


class MissingBlocks:
    """The missing blocks of one question, which are measured, perturbed and stored under one charge."""

    def __init__(
        self,
        context: SessionContext,
        planned: Planned,
        stored: list[PaidBlock | None],
        request: Request,
        missing: Sequence[int],
        receipt_id: str,
        charge: Charge,
    ) -> None:
        """Look at the sources and write the engine's queries before a charge; unreleased results appear in them as named
        placeholders."""
        self._context, self._planned, self._stored, self._request = context, planned, stored, request
        self._missing, self._receipt_id = missing, receipt_id
        blocks = planned.price.blocks
        # Before the look: what arrives afterwards is in no text, and then the answer is of another version and not stored.
        self._versions = {index: context.stored_releases.version(blocks[index]) for index in missing}
        promises = (blocks[index].block.promises for index in missing)
        charge.look_at(read_tables(planned, missing), frozenset().union(*promises))
        self._emitter = context.emitter(context.index.views())
        self._queries = {index: queries(self._emitter, blocks[index].block) for index in missing}
        for index in missing:
            if is_charged(blocks[index]):
                waiting = [result for result in planned.plan.results if result.name in planned.waiting(index)]
                for query in self._queries[index].values():
                    context.engine.rehearse(request.stages.with_results(query, waiting))

    def run(self, charge: Charge) -> Planned:
        """Measure and store the missing blocks, and return the question with the results of its stages."""
        if self._request.id is not None:
            self._context.stored_releases.keep_for_request(self._planned, self._stored, self._request.id)
        for index in self._missing:
            charge.check_promises(self._planned.price.blocks[index].block.promises)
        for index in self._missing:
            self._measure(index, charge)
        return self._planned

    def exact(self, index: int, charge: Charge) -> dict[str, ExactAnswer]:
        """Run the engine's queries of one block over the data and return the sealed exact answers by name."""
        return {
            name: charge.run(self._request.stages.with_results(query)) for name, query in self._queries[index].items()
        }

    def _measure(self, index: int, charge: Charge) -> None:
        """Measure one block, add noise and store the result."""
        context = self._context
        if self._planned.waiting(index):
            self._planned = self._request.stages.fill(self._planned, index, self._stored)
            if self._planned.waiting(index):
                raise refuse("internal", what="a result that no stage has released")
            self._queries[index] = queries(self._emitter, self._planned.price.blocks[index].block)
        priced = self._planned.price.blocks[index]
        # A measurement that no unit can change has the same result on every database, so it is free, and no data is
        # read for it.
        exact = self.exact(index, charge) if is_charged(priced) else {}
        sums = exact[SUMS] if SUMS in exact else unmoved(priced.noise)
        with TRACES.span("noise"):
            noisy = perturb(sums, priced.noise, context.gate, exact)
        charge.work.require_open()
        with TRACES.span("store"):
            self._stored[index] = context.stored_releases.keep(
                self._planned,
                index,
                noisy,
                receipt=self._receipt_id,
                version=self._versions[index],
                request_id=self._request.id,
            )


def stored_answer(
    context: SessionContext, planned: Planned, stored: tuple[PaidBlock, ...], request_id: str | None = None
) -> Release:
    """Return the free answer to a question whose blocks are all stored, or that has none."""
    receipt_id = stored[0].receipt if stored else request_id or uuid.uuid4().hex
    with TRACES.span("answer"):
        return _release(context, planned, stored, PrivacyLoss.nothing(), receipt_id, reused=bool(stored))


def _release(
    context: SessionContext,
    planned: Planned,
    stored: tuple[PaidBlock, ...],
    loss: PrivacyLoss,
    receipt_id: str,
    standing: tuple[str, ...] = (),
    *,
    reused: bool = False,
    accounts: Mapping[str, Account] | None = None,
) -> Release:
    """Return the answer. Its receipt is the receipt of its charge or, if nothing was charged, of the first charge.

    `standing`: its notices that stand for many answers, if they are known. `accounts`: the ledger's state after the charge.
    """
    budget = context.accounts.budget(planned.options, accounts)
    empty = planned.plan.empty
    blocks = blocks_without_rows(planned) if empty else tuple(part.block for part in stored)
    question = NoticedQuestion(context, planned, stored=stored)
    price = budget.price(context.planner.accountant.units(loss))
    sources, previous = context.caches.answers.get(planned) or ((), None)
    if previous is not None and not (len(sources) == len(blocks) and all(map(is_, sources, blocks))):
        previous = None
    receipt = Receipt(
        receipt_id, loss, Remaining(budget), describe_loss(loss), reused, notices(question, Shown.ANSWER),
        "nothing" if price is None else price.after(), standing or _standing(context, planned),
    )  # fmt: skip
    if previous is not None:
        receipt = _with_columns(receipt, context, planned, previous)
        return replace(previous, receipt=receipt, sandbox=context.sandbox)
    consistent = blocks if empty else consistent_blocks(planned.price.workloads, blocks)
    own_names = {priced.block.name for priced in planned.own_blocks}
    inputs = planned.plan.public_inputs
    read_blocks = tuple(block for block in consistent if block.name in own_names)
    if planned.plan.results:
        names = tables_read(planned.plan.remainder)
        inputs = tuple(public for public in inputs if public.name in names)
        read_blocks = tuple(block for block in blocks if block.name in names)
    public = {entry.name: context.public_table(entry.scan) for entry in inputs}
    remainder = Remainder(planned.plan.remainder, planned.plan.output_names, read_blocks, public, planned.text)
    elsewhere = frozenset(part.block.name for part in stored if part.how)
    confidence = planned.options.confidence
    named = planned.plan, planned.own_blocks, context.policy, question.clamps
    compute = partial(measure_facts, *named, float(confidence), elsewhere)
    facts = planned.derived(elsewhere, lambda: Lazily(compute))
    release = make_release(context.sandbox, remainder, presentation(planned.options), receipt, facts)
    errors = {part.block.name: part.errors for part in stored}
    if consistent != blocks:
        errors = {block.name: shown_term_errors(block, float(planned.options.confidence)) for block in consistent}
    measured = Lazily(partial(planned_outputs, planned.plan, planned.own_blocks, confidence, errors))
    release = replace(release, measured=measured, receipt=_with_columns(receipt, context, planned, release))
    if reused and not public and release.table.nbytes <= MOST_KEPT_BYTES:
        context.caches.answers.keep(planned, blocks, release, size=_BARS_TIMES * release.table.get_total_buffer_size())
    return release


def _standing(context: SessionContext, planned: Planned) -> tuple[str, ...]:
    """Return the notices of a question that stand for many answers."""
    question = NoticedQuestion(context, planned)
    texts: tuple[str, ...] = planned.derived(Shown.STANDING, lambda: notices(question, Shown.STANDING))
    return texts


def _with_columns(receipt: Receipt, context: SessionContext, planned: Planned, release: Release) -> Receipt:
    """Return the receipt with the added notices that follow from the columns of the answer."""
    added = notices(NoticedQuestion(context, planned, release.columns), Shown.COLUMNS)
    return replace(receipt, notices=(*receipt.notices, *added))
