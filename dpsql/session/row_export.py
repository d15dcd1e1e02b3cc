"""Export of a table of randomised rows, in the order of every answer (`pipeline`): price, reserve, read, randomise, write.

The output file is opened and the engine's query is planned before the charge; a reservation is never refunded.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dpsql.engine.emit.exported_rows import exported_rows
from dpsql.engine.faults import CUSTODIAN_LOG
from dpsql.errors.exceptions import Error, refuse
from dpsql.exports.description import describe
from dpsql.exports.rows_file import NewFile, rows_table
from dpsql.ledger import ChargeRequest
from dpsql.ledger.records import charge_id
from dpsql.ledger.reservation import Reservation
from dpsql.noise.perturb import randomise
from dpsql.plan.canonical_text import fingerprint
from dpsql.pricing.explain import describe_loss
from dpsql.pricing.row_export import ExportPlan, plan_export
from dpsql.privacy.loss import PrivacyLoss, plain_decimal
from dpsql.reuse.lookup import OWNER
from dpsql.session.budget import Remaining
from dpsql.session.context import SessionContext
from dpsql.session.hidden_names import naming_nothing_hidden
from dpsql.session.pipeline import check_promises
from dpsql.session.response_times import Pace
from dpsql.session.session import Session


@dataclass(frozen=True)
class ExportReceipt:
    """The charge for a written table, and its number of rows."""

    id: str
    charged: str
    rows: int
    remaining: Remaining


class RowExport:
    """A planned export of one table. Nothing is charged and no data is touched before `write`."""

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
            self.plan: ExportPlan = plan_export(session.policy, table, columns, epsilon, count_epsilon)
        self._require_allowed(self.plan.loss)

    @property
    def price(self) -> str:
        """The price of the export as text."""
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

    def write(self, place: Path) -> ExportReceipt:
        """Charge the export and write it to `place`. Raises refusals and faults; `charged` says whether the charge stays."""
        with naming_nothing_hidden(self._context.policy):
            return self._write(place)

    def _write(self, place: Path) -> ExportReceipt:
        context, plan = self._context, self.plan
        pace = Pace(context.policy)
        file = NewFile(place, describe(plan, context.policy.dataset))
        try:
            tables = (plan.table,)
            context.engine.check_readable(tables)
            context.index.require_prepared(tables)
            context.room.breaker.require_open({plan.table: context.engine.data_version(tables)})
            query = exported_rows(context.emitter(context.index.views()), plan)
            context.engine.rehearse(query)
            receipt_id = uuid.uuid4().hex
            reservation = context.accounts.in_present_window(lambda: self._reserve(receipt_id))
            try:
                check_promises(context, plan.source)
                exact = context.engine.run(query, pace.left(context.policy.per_query.timeout_seconds))
                rows = rows_table(plan, randomise(exact, plan, context.gate))
                file.write(rows)
                reservation.commit()
            except BaseException as error:
                reservation.fail(getattr(error, "slug", type(error).__name__))
                if isinstance(error, Error):
                    error.charged = True
                    raise
                raise _fault(error) from error
        except BaseException:
            file.discard()
            pace.hold()
            raise
        try:
            pace.hold()
            file.publish()  # not earlier: the time at which the file appears would reveal how long the work took
        except BaseException as error:
            file.discard()
            raise error if isinstance(error, Error) else _fault(error) from error
        budget = context.accounts.budget(self._session.options.project, reservation.accounts)
        return ExportReceipt(receipt_id, self.price, rows.num_rows, Remaining(budget))

    def _reserve(self, receipt_id: str) -> Reservation:
        context = self._context
        names = tuple(column.name for column in self.plan.columns)
        return context.ledger.reserve(
            ChargeRequest(
                id=charge_id(context.analyst, receipt_id),
                analyst=context.analyst or OWNER,
                session=context.id,
                scopes=tuple(scope.name for scope in context.accounts.scopes(self._session.options.project)),
                charge=context.planner.accountant.units(self.plan.loss),
                what=fingerprint(("rows", self.plan.table, names, context.policy.meaning)),
                policy_version=context.policy.version,
            )
        )


def _fault(error: BaseException) -> Error:
    """Return a fault that says that the charge stays, in place of a foreign error such as a lack of memory or Ctrl-C."""
    if isinstance(error, KeyboardInterrupt):
        return refuse("stopped", charge="; its charge stays, as rows may have been read", charged=True)
    CUSTODIAN_LOG.error("export failed", exc_info=error)
    return refuse("internal", what="rows of an export", charged=True)
