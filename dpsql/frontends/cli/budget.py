"""Commands on the ledger: budget show, history, forecast, verify, export. Data is never touched by them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.errors.exceptions import Exit
from dpsql.frontends.cli.shared import policy_option

if TYPE_CHECKING:
    from dpsql.ledger.ledger import Ledger
    from dpsql.policy import Policy

_format = click.option("-f", "--format", type=click.Choice(("table", "csv", "json")), default="table")


@click.group()
def budget() -> None:
    """The ledger: what is spent and left, every charge, whether it holds."""


@contextmanager
def _ledger(place: Path) -> Iterator[tuple[Policy, Ledger]]:
    from dpsql.ledger import open_ledger
    from dpsql.policy import load_policy

    policy = load_policy(place)
    with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
        yield policy, ledger


@budget.command()
@policy_option()
@_format
def show(policy: Path, format: str) -> None:
    """Spent and left, for the data set and each analyst."""
    from dpsql.frontends.cli.ledger_rows import account_rows
    from dpsql.frontends.rendering.formats import write_rows

    with _ledger(policy) as (loaded, ledger):
        names, rows = account_rows(loaded, ledger)
    write_rows(names, rows, sys.stdout, format)


@budget.command()
@policy_option()
@_format
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N charges.")
def history(policy: Path, format: str, last: int | None) -> None:
    """Every charge, oldest first."""
    from dpsql.frontends.cli.ledger_rows import charge_rows
    from dpsql.frontends.rendering.formats import write_rows

    with _ledger(policy) as (_, ledger):
        names, rows = charge_rows(ledger)
    write_rows(names, rows if last is None else rows[-last:], sys.stdout, format)


@budget.command()
@policy_option()
def forecast(policy: Path) -> None:
    """How long each account lasts at the rate of the last 7 days."""
    from dpsql.ledger.forecast import forecasts

    with _ledger(policy) as (_, ledger):
        for one in forecasts(ledger):
            click.echo(one.words())


@budget.command()
@policy_option()
@click.pass_context
def verify(context: click.Context, policy: Path) -> None:
    """Check every entry, every total and the head of the chain."""
    with _ledger(policy) as (_, ledger):
        verdict = ledger.verify()
    if verdict.sound:
        click.echo(f"the ledger holds: {verdict.entries} entries")
        return
    click.echo(f"the ledger does not hold at entry {verdict.first_bad}: {verdict.problem}", err=True)
    context.exit(Exit.FAULT)


@budget.command()
@policy_option()
@click.option("-f", "--format", type=click.Choice(("json", "csv")), default="json", help="JSON lines, or csv.")
def export(policy: Path, format: str) -> None:
    """The whole ledger for an auditor, on standard output."""
    with _ledger(policy) as (_, ledger):
        ledger.export(sys.stdout, format)
