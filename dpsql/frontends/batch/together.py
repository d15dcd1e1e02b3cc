"""Joint measurement plans of the questions of files: what is measured together, with which errors and at what price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsql.frontends.batch.statements import AskedQuestion
from dpsql.frontends.interruptible import charge_text
from dpsql.planning.planner import Planned
from dpsql.planning.together import NO_COMMON_TABLE, Goal, JointPlan, alone_because
from dpsql.pricing.explain import PLUS_MINUS, tile_rows
from dpsql.pricing.workloads import Objective, objective_of
from dpsql.privacy.loss import PrivacyLoss
from dpsql.session.session import Session

OBJECTIVES = {"worst": Objective.RELATIVE, "mean": Objective.ABSOLUTE}
"""What a plan minimises: the largest error relative to the mean of a table's cells, or the mean error of a cell."""
_WORDS = {objective: word for word, objective in OBJECTIVES.items()}
_WHY_WIDER = {
    Objective.RELATIVE: "which makes the largest relative error small (--objective mean: the mean error of a cell)",
    Objective.ABSOLUTE: "which makes the mean error of a cell small",
}
_LEAST_WIDER = 1.005
"""Ratio of error bars below which two of them look the same with three digits."""


@dataclass(frozen=True, eq=False)
class _Gain:
    """The errors of the tables of one sum, as ratios to those when each question is asked separately: the largest relative error,
    and the mean error."""

    sums: str
    tables: int
    worst: float
    mean: float


class QuestionPlans:
    """The joint measurement plans of some questions; nothing is charged for them, and data is not touched."""

    def __init__(self, session: Session, questions: Sequence[AskedQuestion], objective: Objective) -> None:
        weights = {place: question.weight for place, question in enumerate(questions)}
        self._session, self._questions, self._objective = session, questions, objective
        self._plans = session.plan_together([question.planned for question in questions], Goal(objective, weights))
        self._views = {
            questions[place].name: view
            for plan in self._plans
            for place, view in zip(plan.places, plan.questions, strict=True)
        }

    def view(self, name: str) -> Planned | None:
        """Return the question whose result has a name, with the blocks of its whole plan; None if it is in none."""
        return self._views.get(name)

    def why_alone(self, question: AskedQuestion) -> str:
        """Return why a question is in no plan, "" if it is in one."""
        if question.name in self._views:
            return ""
        return alone_because(question.planned) or NO_COMMON_TABLE

    def lines(self) -> list[str]:
        """Return the plans as lines of text."""
        lines = [line for plan in self._plans for line in self._plan_lines(plan)]
        for question in self._questions:
            if reason := self.why_alone(question):
                lines.append(f"{question.place}  {question.name}: asked by itself, as ever: {reason}")
        return lines

    def objects(self) -> dict[str, Any]:
        """Return the plans as an object for JSON."""
        return {
            "objective": _WORDS[self._objective],
            "plans": [self._plan_object(plan) for plan in self._plans],
            "alone": [
                {"place": question.place, "name": question.name, "reason": reason}
                for question in self._questions
                if (reason := self.why_alone(question))
            ],
        }

    # --- one plan -----------------------------------------------------------------------------------------------------

    def _plan_lines(self, plan: JointPlan) -> list[str]:
        count = len(plan.places)
        questions = "1 question is" if count == 1 else f"{count} questions are"
        apart, together = self._price(self._apart(plan)), self._price(plan.price.loss)
        lines = [
            f"{questions} measured as one ({_WORDS[self._objective]}): {together} in one charge; one by one: {apart}"
        ]
        tables = self._tables(plan)
        for table in tables:
            errors = ", ".join(
                f"{each['sum']} {PLUS_MINUS} {each['error']:.3g} (one by one {PLUS_MINUS} {each['error_one_by_one']:.3g}"
                f"{', wider' if _wider(each) else ''})"
                for each in table["sums"]
            )
            lines.append(f"  {table['table']}: {errors}; price {table['price']}; read by {', '.join(table['read_by'])}")
        for gain in _gains(plan):
            lines.append(
                f"  {gain.sums} in {gain.tables} tables: the largest relative error is {gain.worst:.3g} times, the mean error "
                f"{gain.mean:.3g} times that one by one"
            )
        wider = sum(any(map(_wider, table["sums"])) for table in tables)
        if wider:
            has = "has" if wider == 1 else "have"
            lines.append(
                f"  {wider} of {len(tables)} tables {has} wider error bars than one by one, for the sake of the others, "
                f"{_WHY_WIDER[self._objective]}; '-- weight: 3' before a statement makes the errors of its tables count more"
            )
        return lines

    def _plan_object(self, plan: JointPlan) -> dict[str, Any]:
        confidence = plan.questions[0].options.confidence
        return {
            "questions": [self._questions[place].name for place in plan.places],
            "price": self._price(plan.price.loss),
            "price_one_by_one": self._price(self._apart(plan)),
            "confidence": float(confidence),
            "tables": self._tables(plan),
            "gains": [vars(gain) for gain in _gains(plan)],
        }

    def _tables(self, plan: JointPlan) -> list[dict[str, Any]]:
        """Return the measured tables of a plan: half widths at the confidence of its first question, the price of everything
        measured in the groups of a table, and the table's share as a ratio to the part of the budget that it would have alone."""
        losses = {priced.block.name: priced.loss for priced in plan.price.blocks}
        tables: dict[str, dict[str, Any]] = {}
        for row in tile_rows(plan.price, plan.questions[0].options.confidence):
            table = tables.setdefault(
                row.block,
                {
                    "table": row.table,
                    "sums": [],
                    "price": self._price(losses[row.block]),
                    "read_by": [self._questions[place].name for place in plan.read_by[row.block]],
                },
            )
            table["sums"] += [
                {"sum": sum_text, "error_one_by_one": alone, "error": now, "share": float(row.share)}
                for sum_text, alone, now in row.sums
            ]
        return list(tables.values())

    def _apart(self, plan: JointPlan) -> PrivacyLoss:
        """Return the price of the questions when asked one after the other, with nothing stored before."""
        losses: Mapping[str, PrivacyLoss] = {
            key: priced.loss
            for place in plan.places
            for key, priced in zip(
                self._questions[place].planned.keys, self._questions[place].planned.price.blocks, strict=True
            )
        }
        return sum(losses.values(), PrivacyLoss.nothing())

    def _price(self, loss: PrivacyLoss) -> str:
        return charge_text(self._session.planner.accountant.units(loss))


def _wider(sum_in_table: Mapping[str, Any]) -> bool:
    """Return whether the error bars of a sum of a table are wider in the plan than if its question is asked separately."""
    return bool(sum_in_table["error"] > _LEAST_WIDER * sum_in_table["error_one_by_one"])


def _gains(plan: JointPlan) -> list[_Gain]:
    """Return, for each workload of a plan, its errors as ratios to those of separate questions, computed from the laws of
    noise."""
    after, gains = plan.price.laws_after, []
    rows = {row.block: row for row in tile_rows(plan.price, plan.questions[0].options.confidence)}
    for workload in plan.price.workloads:
        alone = np.array([laws[0].standard_deviation() ** 2 for laws in workload.apart])
        now = np.array([after[tile.block, tile.terms[0]].standard_deviation() ** 2 for tile in workload.tiles])
        ratios = [
            objective_of(workload.marginals, now, objective) / objective_of(workload.marginals, alone, objective)
            for objective in (Objective.RELATIVE, Objective.ABSOLUTE)
        ]
        sums = ", ".join(sum_text for sum_text, _, _ in rows[workload.tiles[0].block].sums)
        gains.append(_Gain(sums, len(workload.tiles), *ratios))
    return gains
