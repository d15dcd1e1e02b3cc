"""Accounts and charges of the ledger as rows, for its owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from dpsql.errors.exceptions import did_you_mean
from dpsql.ledger import decimal_text
from dpsql.ledger.records import from_text, request_of
from dpsql.ledger.windows import of_present, parts
from dpsql.policy.values import OWNER
from dpsql.privacy.accounting import make_accountant
from dpsql.privacy.ledger_units import spent_amount
from dpsql.privacy.loss import exact_number
from dpsql.reuse.questions import ANSWERED, FREE
from dpsql.session.budget import budget_of_everybody, question_price

if TYPE_CHECKING:
    from dpsql.ledger.accounts import Account
    from dpsql.ledger.ledger import Ledger
    from dpsql.policy import Policy
    from dpsql.reuse.questions import QuestionText

DELTA = Fraction(1, 10**6)
"""The delta at which rules of composition are compared if the budget has none."""
LACKS = {
    "analyst_unknown": "an analyst",
    "budget_exceeded": "budget",
    "many_combinations": "a key of a public table (primary_key, unique)",
    "no_max_rows": "max_rows of a table",
    "not_listed": "a domain of a column",
    "project_member": "a member of a project",
    "project_unknown": "a project",
    "unbounded": "bounds of a column (lower, upper)",
    "unknown_column": "a column with this name",
    "unknown_table": "a table with this name",
}
"""What an owner can add to the policy so that a refused question is answered, by the refusal's slug."""
Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]


def question_rows(policy: Policy, ledger: Ledger) -> Rows:
    """Return names and a row for each account that the policy limits: questions left at its price, and those allowed in all."""
    counts = budget_of_everybody(policy, ledger.accounts()).questions(question_price(policy))
    return ("account", "questions left", "in all"), [(count.scope.label, count.left, count.in_all) for count in counts]


def account_rows(policy: Policy, ledger: Ledger) -> Rows:
    """Return column names and one row for each account except those of closed windows: scope, accountant, epsilon spent and its
    limit (both None for a scope that the policy no longer names; the limit None for a data set without one), and the exact
    amounts spent and left."""
    names = ("scope", "accountant", "epsilon_spent", "epsilon_limit", "spent", "left")
    rows = []
    accounts = of_present(ledger.accounts())
    for scope, account in sorted(accounts.items(), key=lambda item: (item[0] != "dataset", item[0])):
        exact = (words(account.spent), words(account.remaining))
        rows.append((scope, account.accountant, *_epsilon(policy, account), *exact))
    return names, rows


def charge_rows(ledger: Ledger, price: Mapping[str, int] | None = None) -> Rows:
    """Return column names and one row for each charge, oldest first: exact, or with a `price` in questions at it.

    A charge without an outcome was interrupted (or answered by another process less than a second ago), and counts as
    spent.
    """
    names = ("entry", "time", "analyst", "scopes", "charge" if price is None else "questions", "outcome", "receipt")
    charges: dict[int, list[Any]] = {}
    for entry in ledger.history():
        if entry.kind == "charge":
            facts = entry.facts
            scopes, charge = ", ".join(facts["scopes"]), from_text(facts["charge"])
            if price is not None:  # of a window, the accounts are shown by their names alone
                scopes = ", ".join(dict.fromkeys(parts(scope)[1] for scope in facts["scopes"]))
            times = max((charge.get(name, 0) / amount for name, amount in (price or {}).items() if amount), default=0)
            named = (
                facts["time"],
                facts["analyst"],
                scopes,
                f"{times:.3g}" if price else words(charge),
                "cut short",
                request_of(facts["id"]),
            )
            charges[entry.seq] = [entry.seq, *named]
        elif entry.resolves in charges:
            charges[entry.resolves][5] = "answered" if entry.kind == "committed" else "failed"
    return names, [tuple(row) for row in charges.values()]


def chosen_rows(
    ledger: Ledger, written: Sequence[QuestionText], since: str, price: Mapping[str, int] | None, *, all: bool,
    analyst: str | None, project: str | None, column: str | None, claimed_user: str | None,
) -> Rows:  # fmt: skip
    """Return the charges with the texts of their questions, and with `all` (or for a column, of which free answers tell as well)
    the questions that were free or refused. `answer_age`: how many days ago a free answer was measured; `claimed_user`: for whom
    the client said that it asks; `price`: as of `charge_rows`."""
    names, charges = charge_rows(ledger, price)
    charged = [question for question in written if question.receipt and question.outcome != FREE]
    texts = {question.receipt: question for question in sorted(charged, key=lambda other: other.outcome == ANSWERED)}
    # The process may have been killed after its answer and before it noted that: the text is written first.
    answered = {question.receipt for question in written if question.outcome in (ANSWERED, FREE)}
    measured = {row[6]: row[1] for row in charges}
    rows = []
    for row in charges:
        question = texts.get(row[6])
        written_of = ("", "", ()) if question is None else (question.claimed_user, question.question, question.columns)
        outcome = "answered" if row[5] == "cut short" and row[6] in answered else row[5]
        rows.append((*row[:5], outcome, row[6], "", *written_of))
    for question in written if all or column else ():
        if question.outcome == FREE or not question.receipt:
            scopes = f"project:{question.project}" if question.project else ""
            age = "" if question.outcome != FREE else _days_between(measured.get(question.receipt), question.time)
            rows.append((
                None, question.time, question.analyst, scopes, "", question.outcome, question.receipt, age,
                question.claimed_user, question.question, question.columns,
            ))  # fmt: skip
    rows = [
        row for row in sorted(rows, key=lambda row: row[1])
        if row[1] >= since and analyst in (None, row[2]) and column in (None, *row[-1])
        and claimed_user in (None, row[-3])
        and (project is None or f"project:{project}" in [parts(scope)[1] for scope in row[3].split(", ")])
    ]  # fmt: skip
    if price is not None:
        rows = [(*row[:-2], _in_short(*row[-2:]), ()) if row[2] == OWNER else row for row in rows]
    return (*names, "answer_age", "claimed_user", "question"), [row[:-1] for row in rows]


def _in_short(question: str, columns: Sequence[str]) -> str:
    """Return the text of a question for a table; of the long one of `dpsql fit` the tables and columns that it reads."""
    from dpsql.tuning.policy_fit import SELECTED, name_in_policy

    if not question.startswith(SELECTED.format(0)):
        return question
    named: dict[str, list[str]] = {}
    for table, _, column in (name.rpartition(".") for name in sorted(set(map(name_in_policy, columns)))):
        named.setdefault(table, []).append(column)
    return "dpsql fit of " + "; ".join(f"{table}: {', '.join(read)}" for table, read in named.items())


def refusal_rows(written: Sequence[QuestionText], since: str, fields: Mapping[str, str]) -> Rows:
    """Return the refusals by their slug and what the policy lacks, the most frequent first, with the newest text of each.
    `fields`: those of questions, such as their analyst, with the only value that counts."""
    counts: dict[str, list[QuestionText]] = {}
    for question in written:
        is_chosen = question.time >= since and all(getattr(question, name) == value for name, value in fields.items())
        if is_chosen and question.outcome not in (ANSWERED, FREE):
            counts.setdefault(question.outcome, []).append(question)
    rows = [
        (len(same), slug, LACKS.get(slug, ""), len({question.analyst for question in same}), same[-1].question)
        for slug, same in sorted(counts.items(), key=lambda item: -len(item[1]))
    ]
    return ("count", "refusal", "the policy lacks", "analysts", "question"), rows


def _days_between(before: str | None, after: str) -> str:
    if before is None:
        return ""
    seconds = (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
    return f"{max(0.0, seconds) / 86400:.1f}"


def composition_rows(policy: Policy, ledger: Ledger, accountants: tuple[str, ...], delta: str | None) -> Rows:
    """Return column names and one row for each rule of composition: its bound on all charges of the data set at `delta`.

    Raises UsageError for an unknown rule or an invalid delta.
    """
    from dpsql.privacy.accounting import RULES, compared

    chosen = set(RULES) if "all" in accountants else set(accountants)
    if unknown := sorted(chosen - set(RULES)):
        raise click.BadParameter(f"no such rule: {', '.join(unknown)}{did_you_mean(unknown[0], RULES)}")
    try:
        at_delta = exact_number(delta) if delta is not None else policy.budget.delta or DELTA
    except ValueError:
        at_delta = Fraction(0)
    if not 0 < at_delta < 1:
        raise click.BadParameter(f"{delta!r} is not between 0 and 1", param_hint="--delta")
    names = ("accountant", "charges", "epsilon", "delta", "may gate", "why")
    charges = dataset_charges(ledger)
    bounds = compared(charges, at_delta, chosen)
    rows = []
    for bound in bounds:
        epsilon = None if bound.epsilon is None else float(f"{bound.epsilon:.6g}")
        rows.append((bound.accountant, len(charges), epsilon, bound.delta, "yes" if bound.gates else "no", bound.why))
    return names, rows


def dataset_charges(ledger: Ledger) -> list[dict[str, Fraction]]:
    """Return every charge of the data set, by dimension. What its account holds beside them (a restored backup) is one more."""
    entries = [entry.facts for entry in ledger.history() if entry.kind == "charge"]
    charges = [from_text(facts["charge"]) for facts in entries if "dataset" in facts["scopes"]]
    spent = ledger.accounts()["dataset"].spent
    rest = {name: amount - sum(charge.get(name, 0) for charge in charges) for name, amount in spent.items()}
    if any(amount > 0 for amount in rest.values()):
        charges.append(rest)
    return [{name: spent_amount(charge, name) for name in charge} for charge in charges]


def words(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {decimal_text(name, amount)}" for name, amount in amounts.items())


def _epsilon(policy: Policy, account: Account) -> tuple[float | None, float | None]:
    """Return the epsilon spent of a scope and its limit: both None if the policy does not name the scope, and only the limit None
    for a data set without one."""
    budget = policy.budget
    start, of_scope = parts(account.scope)
    kind, _, name = of_scope.partition(":")
    in_all = budget if start is not None or budget.lifetime is None else budget.lifetime
    login, _, person = name.partition("/")
    analyst = policy.analysts.get(login)
    limit: Any = analyst if analyst is None or not person else analyst.people.get(person)
    limit = {"dataset": in_all, "session": policy.session, "project": policy.projects.get(name)}.get(kind, limit)
    if limit is None or (start is not None and budget.every is None):
        return None, None
    delta = budget.delta if limit.delta is None else limit.delta
    accountant = make_accountant(account.accountant, limit.epsilon, delta)
    spent = float(f"{accountant.epsilon_of(account.spent):.6g}")
    return spent, None if account.scope == "dataset" and not budget.is_limited else float(limit.epsilon)
