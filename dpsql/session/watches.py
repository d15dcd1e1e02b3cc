"""Watches: sums compared with a threshold instead of released, in runs of `privacy.mechanisms.above_threshold`.

A run is reserved durably, at its full price, before its first comparison. Its noisy threshold then exists only in the memory of
this process, until the first answer "above". During a comparison the watch has no run: it gets the run back with the answer
"below". So anything that stops a comparison (a kill, a fault, a late answer) ends the run: the reserved amount is spent, and
neither a threshold nor a question gets new noise unless another run is reserved. The ledger counts the runs of a watch, whose
numbers are idempotency keys: there are at most `dp.hits` runs, however often a watch is stopped and begun.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dpsql.engine.emit.measurements import SUMS
from dpsql.errors.exceptions import Error, refuse
from dpsql.ledger.ledger import Reservation
from dpsql.ledger.records import charge_id
from dpsql.noise.perturb import compare, noisy_threshold
from dpsql.plan.canonical_text import fingerprint
from dpsql.planning.planner import Planned
from dpsql.pricing.above_threshold import ComparedSum, comparable, compared_sum, require_units, run_law
from dpsql.pricing.explain import describe_loss, planned_outputs
from dpsql.pricing.options import Options
from dpsql.pricing.workloads import Objective
from dpsql.privacy.loss import PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.above_threshold import AboveThreshold
from dpsql.release.release import OutputColumn, Receipt, Release
from dpsql.session.background_work import Pace, Work
from dpsql.session.budget import Remaining
from dpsql.session.charged import Charge, charged, in_background, work_for
from dpsql.session.context import NamedWatch, SessionContext, ThresholdRun
from dpsql.session.explanation import PrivacyPlan, engine_sql, price_line
from dpsql.session.pipeline import MissingBlocks, Request
from dpsql.session.statements import plain_release
from dpsql.storage.records import dataclass, replace

SCHEMA = pa.schema([
    ("above", pa.bool_()), ("value", pa.float64()), ("error", pa.float64()),
    ("under_way", pa.bool_()), ("runs_left", pa.int64()),
])  # fmt: skip
"""The answer, one row: whether the noisy sum is above the noisy threshold; if so, the noisy sum and the half width of its
error bar; whether the run continues; the number of runs that the watch may still begin."""
_NO_RECEIPT = Receipt("", PrivacyLoss.nothing(), {})
_COUNTS_ON = "the comparison goes on and counts; asking again is another one"


@dataclass(frozen=True)
class WatchedQuestion:
    """A question that can be compared: its block priced for Laplace noise, and the sum of that block."""

    planned: Planned
    compared: ComparedSum


def watched(context: SessionContext, planned: Planned) -> WatchedQuestion:
    """Check that a question is one sum and nothing else. Raises Refusal watch_question, watch_option, watch_units."""
    options = planned.options
    if options.mechanism not in ("auto", "laplace"):
        raise refuse("watch_option", name="dp.mechanism", value=options.mechanism)
    if options.target_error is not None:
        raise refuse("watch_option", name="dp.target_error", value=options.show()["dp.target_error"])
    if cuts := planned.plan.cuts:
        name = f"dp.{cuts[0].option}"
        raise refuse("watch_option", name=name, value=options.show()[name])
    plan = planned.plan if options.min_units is None else context.planner.without_min_units(planned)
    if (
        len(plan.blocks) != 1
        or plan.results
        or plan.public_inputs
        or not _is_plain(plan.remainder, plan.blocks[0].name)
    ):
        raise refuse("watch_question")
    options = replace(options, mechanism="laplace", quantile_bars=False, workload=Objective.OFF)
    priced = context.planner.priced(planned.statement, plan, options)
    compared = compared_sum(priced.price.blocks[0], context.policy)
    if options.min_units is not None and options.threshold is not None:
        require_units(compared, options.threshold, options.min_units, context.policy)
    return WatchedQuestion(priced, compared)


def _is_plain(remainder: exp.Query, block: str) -> bool:
    """Return whether a remainder is just SELECT of one measure FROM the block."""
    filled = {name for name, part in remainder.args.items() if part}
    if not isinstance(remainder, exp.Select) or not filled <= {"expressions", "from_", "from"}:
        return False
    tables = [part.this for part in remainder.find_all(exp.From)]
    (*further, column) = remainder.expressions
    is_measure = not further and isinstance(column.unalias(), exp.Column)
    return is_measure and len(tables) == 1 and isinstance(tables[0], exp.Table) and tables[0].name == block


def planned_law(
    context: SessionContext, question: WatchedQuestion, expected: Sequence[ComparedSum] = ()
) -> AboveThreshold:
    """Return the law of a run that begins with this question. Raises watch_grids, option_floor."""
    law = run_law([question.compared, *expected], context.planner.accountant, question.planned.options.epsilon)
    context.planner.require_least(law.loss)
    return law


def expect(context: SessionContext, planned: Sequence[Planned], options: Options) -> None:
    """Record the sums that the next run of a watch has to compare. Raises the same refusals as `planned_law`."""
    questions = [watched(context, question) for question in planned]
    sums = tuple(question.compared for question in questions)
    for question in questions[:1]:
        planned_law(context, question, sums)
    watch_of(context, options).expected = sums


def columns(context: SessionContext, planned: Planned) -> tuple[OutputColumn, ...]:
    """Return the columns of the answer. Raises the refusals of `answer` that follow from text, options and policy."""
    question = watched(context, planned)
    planned_law(context, question)
    return plain_release(SCHEMA.empty_table(), _NO_RECEIPT, context.sandbox, question.planned.options).columns


def explain(context: SessionContext, planned: Planned) -> PrivacyPlan:
    """Return the plan of a comparison: the price of a run, due unless one is in progress. Charges nothing; raises watch_law."""
    question = watched(context, planned)
    options, watch = question.planned.options, watch_of(context, question.planned.options)
    run = watch.run
    _require_comparable(question, run)
    law = planned_law(context, question, watch.expected) if run is None else run.law
    (block,) = question.planned.price.blocks
    (output,) = planned_outputs(question.planned.plan, (block,), options.confidence, {})
    grid = question.compared.term.grid
    noise = replace(
        output, mechanism=law.mechanism, noise_scale=float(law.noise.noise_scale) * 2.0 ** (law.noise.shift - grid),
        error_95=law.gap_half_width(float(options.confidence), 1) * 2.0**-grid,
        epsilon=None if law.loss.epsilon is None else float(law.loss.epsilon),
        rho=None if law.loss.rho is None else float(law.loss.rho),
    )  # fmt: skip
    budget = context.accounts.budget(options)
    charged = law.loss if run is None else PrivacyLoss.nothing()
    price = budget.price(context.planner.accountant.units(charged))
    left = _most_comparisons(context, law.loss)
    most = "any number of comparisons" if left is None else f"at most {left:,} comparisons"
    notes = (
        f"compared with {plain_decimal(options.threshold or Fraction(0))}: a run of {most} is paid for when it "
        "begins and ends with the first that is above",
        f"watch {options.watch} has begun {_runs_reserved(context, options)} of {options.hits} runs",
    )
    return PrivacyPlan(
        outputs=(noise,),
        loss=law.loss,
        charged=charged,
        remaining=tuple(Remaining(budget).items()),
        stored=(),
        engine_sql=engine_sql(context, question.planned) if context.analyst is None else (),
        confidence=float(options.confidence),
        columns=tuple((column.name, column.type.value) for column in columns(context, planned)),
        notes=notes,
        further=(
            f"{noise.output}: above or below; a value above within +/- {noise.error_95:.4g} "
            f"in {float(options.confidence):.0%} of cases",
            price_line(price, stored=False),
            *notes,
        ),
    )


def answer(context: SessionContext, planned: Planned, pace: Pace) -> Release:
    """Compare one question with its threshold. Raises refusals (nothing charged) and faults, like `pipeline.answer`."""
    question = watched(context, planned)
    work: Work[Release] = work_for(context, pace, lambda: _COUNTS_ON)
    return in_background(context, work, partial(_in_turn, context, question, work))


def watch_of(context: SessionContext, options: Options) -> NamedWatch:
    """Return the watch that options name for this asker, project and policy, and for this session if sessions have a budget."""
    session = None if context.policy.session is None else context.id
    return context.watches.named(context.analyst, _accounts(options), options.watch, context.policy.version, session)


def _in_turn(context: SessionContext, question: WatchedQuestion, work: Work[Release]) -> Release:
    watch = watch_of(context, question.planned.options)
    with watch.turn(work.check), charged(context, work) as charge:
        measurement = MissingBlocks(context, question.planned, [None], Request(None, context.stages()), [0], "", charge)
        run, receipt = _begun(context, question, watch, charge)
        return _compared(context, question, watch, run, measurement, charge, receipt)


def _require_comparable(question: WatchedQuestion, run: ThresholdRun | None) -> None:
    """Raise Refusal watch_law if the run in progress has no noise for this question."""
    if run is not None and not comparable(question.compared, run.law, run.grid, run.direction):
        raise refuse("watch_law", name=question.planned.options.watch)


def _begun(
    context: SessionContext, question: WatchedQuestion, watch: NamedWatch, charge: Charge
) -> tuple[ThresholdRun, Receipt]:
    """Take the run in progress from the watch, or reserve another one; return it with the receipt of what was paid. Between the
    charge and the creation of the run there is no step that may fail."""
    options, run = question.planned.options, watch.run
    if run is not None:
        _require_comparable(question, run)
        remaining = Remaining(context.accounts.budget(options))
        charge.resume(run.reservation)
        watch.run = None
        return run, Receipt(_receipt(options, run.number), PrivacyLoss.nothing(), remaining, "nothing", price="nothing")
    law = planned_law(context, question, watch.expected)
    left = _most_comparisons(context, law.loss)
    secret = noisy_threshold(law, context.gate)
    number, reservation = _reserve(context, question.planned, law.loss, charge)
    run = ThresholdRun(law, secret, question.compared.term.grid, question.compared.direction, left, number, reservation)
    budget = context.accounts.budget(options, reservation.accounts)
    price = budget.price(context.planner.accountant.units(law.loss))
    part = "nothing" if price is None else price.after()
    receipt_id, paid = _receipt(options, number), describe_loss(law.loss)
    return run, Receipt(receipt_id, law.loss, Remaining(budget), paid, price=part)


def _compared(
    context: SessionContext,
    question: WatchedQuestion,
    watch: NamedWatch,
    run: ThresholdRun,
    measurement: MissingBlocks,
    charge: Charge,
    receipt: Receipt,
) -> Release:
    """Touch the data and compare; give the run back to the watch if the answer is "below" and comparisons remain."""
    options, compared = question.planned.options, question.compared
    assert options.threshold is not None
    threshold = compared.steps(options.threshold, run.law.noise.shift)
    charge.check_promises(question.planned.price.blocks[0].block.promises)
    exact = measurement.exact(0, charge)[SUMS]
    gap = compare(exact, compared.term.name, threshold, run.law, run.secret, context.gate)
    charge.work.require_open()
    charge.commit()
    run.comparisons += 1
    run.left = None if run.left is None else run.left - 1
    value = error = None
    if gap is not None:
        value = (threshold + gap) * 2.0 ** (run.law.noise.shift - run.grid)
        error = run.law.gap_half_width(float(options.confidence), run.comparisons) * 2.0**-run.grid
    elif run.left != 0:
        watch.run = run
    left = max(0, options.hits - run.number)
    row = dict(zip(SCHEMA.names, (gap is not None, value, error, watch.run is run, left), strict=True))
    receipt = replace(receipt, notices=(_notice(run, options, left, ended=watch.run is None, above=gap is not None),))
    return plain_release(pa.Table.from_pylist([row], SCHEMA), receipt, context.sandbox, options)


def _notice(run: ThresholdRun, options: Options, left: int, *, ended: bool, above: bool) -> str:
    if not ended:
        more = "any number of" if run.left is None else f"{run.left:,}"
        return f"run {run.number} of {options.hits} goes on: {more} further comparisons cost nothing until one is above"
    why = "one was above" if above else "it has made all its comparisons"
    further = f"{left} may still begin, each costs {describe_loss(run.law.loss)}" if left else "no other may begin"
    return f"run {run.number} of {options.hits} has ended: {why}; {further}"


def _most_comparisons(context: SessionContext, loss: PrivacyLoss) -> int | None:
    """Return how many scans the price of a run pays for at the least price of a scan (privacy.md 10); None for any number."""
    least = context.policy.per_query.min_epsilon
    if not least:
        return None
    accountant = context.planner.accountant
    floor, spent = accountant.units(accountant.request(least)), accountant.units(loss)
    return max(1, min(spent[name] // amount for name, amount in floor.items() if amount))


# --- the numbers of runs in the ledger --------------------------------------------------------------------------------


def _accounts(options: Options) -> str:
    """Return a word for the accounts that options name: each of them has runs of its own."""
    names = [name for name in (options.project, options.on_behalf_of) if name is not None]
    return "" if not names else hashlib.sha256("/".join(names).encode()).hexdigest()[:12] + "-"


def _receipt(options: Options, number: int) -> str:
    return f"watch-{_accounts(options)}{options.watch}-{number}"


def _is_reserved(context: SessionContext, options: Options, number: int) -> bool:
    return context.ledger.find(charge_id(context.analyst, _receipt(options, number))) is not None


def _runs_reserved(context: SessionContext, options: Options) -> int:
    """Return how many runs of a watch the ledger holds. Numbers are given in order, so a binary search finds the last one."""
    above = 1
    while _is_reserved(context, options, above):
        above *= 2
    low, high = above // 2, above
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_reserved(context, options, middle) else (low, middle)
    return low


def _reserve(context: SessionContext, planned: Planned, loss: PrivacyLoss, charge: Charge) -> tuple[int, Reservation]:
    """Reserve the next run and return its number and reservation. Raises watch_over if all runs are reserved.

    A number that another process took meanwhile is skipped.
    """
    options = planned.options
    number = _runs_reserved(context, options) + 1
    while number <= options.hits:
        try:
            receipt_id = _receipt(options, number)
            return number, charge.reserve(receipt_id, loss, options, fingerprint(tuple(planned.keys)))
        except Error as error:
            if error.slug != "request_repeated":
                raise
        number += 1
    raise refuse("watch_over", name=options.watch, hits=options.hits)
