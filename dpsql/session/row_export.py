"""Export of a table of randomised rows, in the order of `charged`. The output file is opened before the charge."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

from dpsql.engine.emit.emitter import exported_rows
from dpsql.errors.custodian_log import registering
from dpsql.errors.exceptions import refuse
from dpsql.exports.rows_file import NewFile, describe, rows_table
from dpsql.noise.perturb import randomise
from dpsql.plan.canonical_text import fingerprint
from dpsql.pricing.explain import describe_loss
from dpsql.pricing.row_export import ExportPlan, plan_export
from dpsql.privacy.loss import PrivacyLoss, plain_decimal
from dpsql.session.background_work import Pace, Work
from dpsql.session.budget import Remaining
from dpsql.session.charged import charged, in_background, work_for
from dpsql.session.context import SessionContext
from dpsql.session.session import Session, naming_nothing_hidden
from dpsql.storage.records import dataclass


@dataclass(frozen=True)
class ExportReceipt:
    """The charge for a written table, and its number of rows."""

    id: str
    charged: str
    rows: int
    remaining: Remaining


class RowExport:
    """A planned export of one table. Nothing is charged and no data is touched before `write`."""

    @registering()
    def __init__(
        self,
        session: Session,
        table: str,
        columns: Sequence[str],
        epsilon: Fraction,
        count_epsilon: Fraction | None = None,
    ) -> None:
        """`epsilon` is the epsilon of one row. Raises refusals if the table cannot be randomised or if the export costs more
        than the policy allows for one question."""
        self._session = session
        self._context: SessionContext = session.context
        with naming_nothing_hidden(session.policy):
            self.plan: ExportPlan = plan_export(
                session.policy, table, columns, epsilon, count_epsilon, session.planner.row_filters
            )
        self._require_allowed(self.plan.loss)

    @property
    def price(self) -> str:
        return describe_loss(self.plan.loss)

    def _require_allowed(self, loss: PrivacyLoss) -> None:
        """Raise option_limit or option_floor, in the same way as for a question of this price."""
        policy, planner = self._context.policy, self._context.planner
        planner.require_least(loss)
        most = policy.per_query.max_epsilon
        if most is None:
            return
        limit, charge = planner.accountant.units(planner.accountant.request(most)), planner.accountant.units(loss)
        if any(charge[dimension] > amount for dimension, amount in limit.items() if dimension != "delta"):
            value = describe_loss(loss)
            raise refuse(
                "option_limit", name="what the export costs", value=value, limit=f"epsilon {plain_decimal(most)}"
            )

    @registering()
    def write(self, path: Path) -> ExportReceipt:
        """Charge the export and write it to `path`. Raises refusals and faults; `charged` says whether the charge stays."""
        context = self._context
        with naming_nothing_hidden(context.policy):
            file = NewFile(path, describe(self.plan, context.policy.dataset))
            try:
                receipt = self._measured(file, work_for(context, Pace(context.policy), str))
                # Not earlier: the time at which the file appears would reveal how long the work took.
                with registering(charged=True):
                    file.publish()
                return receipt
            except BaseException:
                file.discard()
                raise

    def _measured(self, file: NewFile, work: Work[ExportReceipt]) -> ExportReceipt:
        """Write the rows, and return the receipt at the response time. Raises `stopped` on Ctrl-C."""
        try:
            return in_background(self._context, work, partial(self._written, file, work))
        except KeyboardInterrupt:
            work.leave()
            work.result()  # raises what has stopped the work, or that nothing was charged
            raise refuse("stopped", charge="; its charge stays", charged=True) from None

    def _written(self, file: NewFile, work: Work[ExportReceipt]) -> ExportReceipt:
        """Charge the export and write its rows to `file`, which is not published yet."""
        context, plan, options = self._context, self.plan, self._session.options
        with charged(context, work) as charge:
            charge.look_at((plan.table,), plan.promises)
            query = exported_rows(context.emitter(context.index.views()), plan)
            context.engine.rehearse(query)
            receipt_id, names = uuid.uuid4().hex, tuple(column.name for column in plan.columns)
            question = fingerprint(("rows", plan.table, names, context.policy.meaning))
            reservation = charge.reserve(receipt_id, plan.loss, options, question)
            charge.check_promises(plan.promises)
            rows = rows_table(plan, randomise(charge.run(query), plan, context.gate))
            file.write(rows)
        budget = context.accounts.budget(options, reservation.accounts)
        return ExportReceipt(receipt_id, self.price, rows.num_rows, Remaining(budget))
