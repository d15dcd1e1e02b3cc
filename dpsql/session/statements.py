"""Statements that read no data: EXPLAIN, SET, RESET, SHOW, SHOW TABLES, DESCRIBE, BEGIN and the like.

Their answers come from the policy, the options and the ledger; nothing is charged and data is not touched.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Sequence
from functools import cache
from math import isfinite
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from dpsql.errors.exceptions import refuse, suggestion
from dpsql.planning.planner import Planned
from dpsql.policy import Policy, Table
from dpsql.pricing.explain import COLUMNS, PlannedOutput
from dpsql.pricing.options import Options
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.error_bars import Answer
from dpsql.release.release import OutputColumn, Receipt, Release
from dpsql.release.remainder import Remainder
from dpsql.release.sandbox import Sandbox
from dpsql.session.budget import Budget, question_price
from dpsql.session.explanation import PrivacyPlan
from dpsql.sql.binder.equal_keys import no_such_table
from dpsql.sql.parse import Parameters, Statement

_TEXT = pa.string()
_ALL = ("dp.all", "all")
_LINK = re.compile(r"`|\[([^]]*)\]\([^)]*\)")
_SCHEMAS: dict[str, pa.Schema] = {
    "show_tables": pa.schema([("table", _TEXT), ("kind", _TEXT), ("max_rows", pa.int64()), ("description", _TEXT)]),
    "describe": pa.schema([
        ("column", _TEXT), ("type", _TEXT), ("nullable", pa.bool_()), ("lower", _TEXT), ("upper", _TEXT),
        ("domain", _TEXT), ("outside", _TEXT), ("keys", _TEXT), ("description", _TEXT),
    ]),
    "show": pa.schema([("name", _TEXT), ("value", _TEXT)]),
    "show_all": pa.schema([("name", _TEXT), ("value", _TEXT), ("description", _TEXT)]),
    "budget": pa.schema([
        ("scope", _TEXT), ("dimension", _TEXT), ("spent", _TEXT), ("remaining", _TEXT),
        ("epsilon_spent", pa.float64()), ("epsilon_limit", pa.float64()), ("questions_left", pa.int64()),
    ]),
    "none": pa.schema([]),
}  # fmt: skip
_ARROW = {"str": _TEXT, "int": pa.int64(), "float": pa.float64(), "float | None": pa.float64()}
_SCHEMAS["explain"] = pa.schema([("privacy_plan", _TEXT)])
_SCHEMAS["explain_verbose"] = pa.schema(
    [(name, _ARROW[str(PlannedOutput.__annotations__.get(name, "str"))]) for name in COLUMNS]
)


class StatementContext(Protocol):
    """The part of a session that statements other than queries may read and change."""

    options: Options

    @property
    def policy(self) -> Policy: ...

    @property
    def first_options(self) -> Options: ...

    @property
    def sandbox(self) -> Sandbox: ...

    def set_option(self, name: str, value: str) -> None:
        """Set an option of `SHOW dp.all`. Raises option_unknown, option_value, option_limit."""

    def budget(self) -> Budget:
        """Return the spent and the remaining budget."""

    def plan(self, statement: Statement, parameters: Parameters = None) -> Planned:
        """Return the priced plan of a query."""

    def explain_planned(self, planned: Planned) -> PrivacyPlan:
        """Return the privacy plan of a planned question."""


def answer_statement(session: StatementContext, statement: Statement) -> Release:
    """Answer one statement that is not a query; SET and RESET change the session's options."""
    kind, notices = statement.kind, []
    rows: Sequence[tuple[Any, ...]] = ()
    if kind == "set":
        _set(session, statement)
    elif kind == "reset":
        if statement.name == "all" or statement.name.startswith("dp."):
            session.options = session.options.reset(statement.name, session.first_options)
    elif kind == "transaction":
        if statement.name in ("ROLLBACK", "ABORT"):
            notices.append("a rollback gives no budget back")
    elif kind == "show":
        rows = _show(session, statement.name)
    elif kind == "show_tables":
        rows = [_table_row(table) for table in session.policy.visible.values()]
    elif kind == "describe":
        rows = _describe(session.policy, statement)
    else:
        rows, notices = _explain(session, statement)
    schema = _SCHEMAS[_schema_of(statement)]
    columns = [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(schema)]
    return _plain(session, pa.Table.from_arrays(columns, schema=schema), tuple(notices))


def statement_columns(session: StatementContext, statement: Statement) -> tuple[OutputColumn, ...]:
    schema = _SCHEMAS[_schema_of(statement)]
    return _plain(session, schema.empty_table(), ()).columns


def _schema_of(statement: Statement) -> str:
    if statement.kind == "show" and statement.name == "dp.budget":
        return "budget"
    if statement.kind == "show" and statement.name in _ALL:
        return "show_all"
    if statement.kind == "explain" and statement.name:
        return "explain_verbose"
    return statement.kind if statement.kind in _SCHEMAS else "none"


def _plain(session: StatementContext, table: pa.Table, notices: tuple[str, ...]) -> Release:
    """Return a table without noise as a free release."""
    receipt = Receipt("", PrivacyLoss.nothing(), {}, "nothing", False, notices)
    return plain_release(table, receipt, session.sandbox, session.options)


def plain_release(table: pa.Table, receipt: Receipt, sandbox: Sandbox, options: Options) -> Release:
    """Return, as a release, a table whose values are shown without error bars."""
    names = tuple(table.column_names)
    remainder = Remainder(exp.Select(expressions=[exp.Literal.number(1)]), names, (), {})
    return Release(
        Answer(remainder, table, (False,) * len(names), None, float(options.confidence), {}), receipt, sandbox
    )


def _set(session: StatementContext, statement: Statement) -> None:
    if not statement.name.startswith("dp."):
        raise refuse(
            "option_unknown", name=statement.name, hint="options start with dp., SHOW dp.all lists them"
        ).placed_in(statement.sql, 1)
    value = statement.value
    if value.lower() == "default":
        session.options = session.options.reset(statement.name, session.first_options)
    else:
        session.set_option(statement.name, value)


def _show(session: StatementContext, name: str) -> list[tuple[Any, ...]]:
    options = session.options.show()
    if name == "dp.budget":
        budget = session.budget()
        left = {count.scope.name: count.left for count in budget.questions(question_price(session.policy))}
        return [
            (
                scope, dimension, amount, budget.remaining[scope][dimension], epsilon,
                limit if isfinite(limit) else None, left.get(scope),
            )
            for scope, amounts in budget.spent.items()
            for epsilon, limit in [budget.epsilon[scope]]
            for dimension, amount in amounts.items()
        ]  # fmt: skip
    if name in _ALL:
        return [(option, value, _meanings().get(option)) for option, value in options.items()]
    if name not in options:
        raise refuse("option_unknown", name=name, hint=suggestion(name, [*options, "dp.budget", "dp.all"]))
    return [(name, options[name])]


@cache
def _meanings() -> dict[str, str]:
    """Return what each option means, in the words with which its row of docs/options.md begins."""
    page = (pkgutil.get_data(__package__, "options.md") or b"").decode()
    rows = re.findall(r"^\| (`dp\..*?) \| (.*?)(?:; .*|\. .*)? \|$", page, re.M)
    return {option: _LINK.sub(r"\1", words) for names, words in rows for option in re.findall(r"dp\.\w+", names)}


def _table_row(table: Table) -> tuple[Any, ...]:
    return (table.qualified_name, "public" if table.public else "protected", table.bounds.max_rows, table.description)


def _describe(policy: Policy, statement: Statement) -> list[tuple[Any, ...]]:
    path = statement.name.split(".")
    table = policy.table_at(*path)
    if table is None:
        raise no_such_table(policy, path, None).placed_in(statement.sql, statement.sql.find(path[0]) + 1)
    unit = None if policy.unit_joins(table.name) else policy.unit_column(table.name)
    rows = []
    for column in table.columns.values():
        domain = None if column.domain is None else ", ".join("null" if v is None else str(v) for v in column.domain)
        keys = ["privacy unit"] if column.name == unit else []
        keys += ["primary key"] if column.name in table.primary_key else []
        if column.name in table.foreign_keys:
            keys.append("references " + ".".join(table.foreign_keys[column.name]))
        if column.name in (table.unprotected or ()):
            keys.append("people who are not protected")
        low, high, label = (
            None if value is None else str(value) for value in (column.lower, column.upper, column.outside)
        )
        typed = (column.name, column.type, column.nullable)
        rows.append((*typed, low, high, domain, label, ", ".join(keys), column.remark))
    return rows


def _explain(session: StatementContext, statement: Statement) -> tuple[list[tuple[Any, ...]], list[str]]:
    plan = session.explain_planned(session.plan(statement))
    if not statement.name:
        return [(line,) for line in plan.lines], []
    notices = [f"price: {plan.price}"]
    if plan.stored:
        notices.append(f"stored releases answer {', '.join(plan.stored)} for free")
    notices += plan.notes
    notices += [f"remaining ({scope}): {left}" for scope, left in plan.remaining]
    notices += [f"engine SQL of {block}: {sql}" for block, sql in plan.engine_sql]
    return plan.rows(), notices
