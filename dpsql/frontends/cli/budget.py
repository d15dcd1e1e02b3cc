"""Commands on the ledger: budget show, history, forecast, verify, export. Data is never touched by them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.errors.exceptions import Error, Exit
from dpsql.frontends.cli.shared import policy_option

if TYPE_CHECKING:
    from dpsql.ledger.ledger import Ledger
    from dpsql.policy import Policy

_format = click.option("-f", "--format", type=click.Choice(("table", "csv", "json")), default="table")


@click.group()
def budget() -> None:
    """Show, check and back up the ledger: what is spent and left, every charge, whether it holds."""


@contextmanager
def _ledger(place: Path) -> Iterator[tuple[Policy, Ledger]]:
    from dpsql.ledger import open_ledger
    from dpsql.policy import load_policy

    policy = load_policy(place)
    url = policy.ledger_url()
    try:
        opened = open_ledger(url, policy.dataset, witness=policy.witness)
    except Error as error:
        if error.slug not in ("ledger_read_only", "ledger_disk_full"):  # a full disk can still be read
            raise
        opened = open_ledger(url, policy.dataset, read_only=True)
    with opened as ledger:
        yield policy, ledger


@budget.command()
@policy_option()
@_format
@click.option(
    "--accountant", multiple=True, metavar="NAME",
    help="What this rule of composition makes of all charges (sequential, advanced, renyi, zcdp, pld, or all).",
)  # fmt: skip
@click.option("--delta", metavar="DELTA", help="With --accountant: at which delta; the budget's own if left out.")
def show(policy: Path, format: str, accountant: tuple[str, ...], delta: str | None) -> None:
    """Spent and left, for the data set and each analyst."""
    from dpsql.frontends.cli.ledger_rows import account_rows, composition_rows
    from dpsql.frontends.rendering.formats import write_rows
    from dpsql.session.budget import windows_in_words

    with _ledger(policy) as (loaded, ledger):
        if accountant:
            names, rows = composition_rows(loaded, ledger, accountant, delta)
        else:
            names, rows = account_rows(loaded, ledger)
    write_rows(names, rows, sys.stdout, format)
    if not accountant and loaded.budget.every is not None:
        click.echo(windows_in_words(loaded.budget), err=True)


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
    """Return how long each account lasts at the rate of the last 7 days."""
    from dpsql.ledger.forecast import forecasts

    with _ledger(policy) as (loaded, ledger):
        for outlook in forecasts(ledger):
            if outlook.scope != "dataset" or loaded.budget.is_limited:
                click.echo(outlook.words())


@budget.command()
@policy_option()
@click.option("--head", metavar="NUMBER DIGEST", help="A head that was printed earlier and kept elsewhere.")
@click.pass_context
def verify(context: click.Context, policy: Path, head: str | None) -> None:
    """Check every entry, every total and the head of the chain; and that a head kept elsewhere is still in it."""
    from dpsql.ledger.backup import compared

    with _ledger(policy) as (_, ledger):
        verdict = ledger.verify()
        if head is not None:
            compared(ledger, head)
    if verdict.sound:
        click.echo(f"the ledger holds: {verdict.entries} entries")
        return
    click.echo(f"the ledger does not hold at entry {verdict.first_bad}: {verdict.problem}", err=True)
    context.exit(Exit.FAULT)


@budget.command()
@policy_option()
@click.option("-f", "--format", type=click.Choice(("json", "csv")), default="json", help="JSON lines, or csv.")
def export(policy: Path, format: str) -> None:
    """Write the whole ledger for an auditor, on standard output."""
    with _ledger(policy) as (_, ledger):
        ledger.export(sys.stdout, format)


@budget.command()
@policy_option()
def head(policy: Path) -> None:
    """Print the last entry's number and digest, to be kept where the ledger's machine cannot change it."""
    from dpsql.ledger.backup import head_text

    with _ledger(policy) as (_, ledger):
        click.echo(head_text(ledger))


@budget.command()
@policy_option()
@click.argument("folder", type=click.Path(path_type=Path))
def backup(policy: Path, folder: Path) -> None:
    """Copy ledger and key into the new FOLDER while others go on asking. Whoever has it has the key: keep it as such."""
    from dpsql.errors.audit_log import audit
    from dpsql.ledger.backup import back_up

    with _ledger(policy) as (loaded, ledger):
        last = back_up(ledger, folder)
    audit("owner", act="backup", dataset=loaded.dataset, entry=last.seq)
    click.echo(f"{last.seq} entries are in {folder}")


@budget.command()
@policy_option()
@click.option(
    "--lost",
    metavar="EPSILON",
    help="Your word for what was spent after the backup at most; all that is left if left out.",
)
@click.argument("folder", type=click.Path(path_type=Path))
def restore(policy: Path, lost: str | None, folder: Path) -> None:
    """Put the backup in FOLDER back, and charge what may have been spent since it was made."""
    from dpsql.errors.audit_log import audit
    from dpsql.frontends.cli.ledger_rows import words
    from dpsql.ledger.backup import restore as put_back
    from dpsql.policy import load_policy
    from dpsql.session.budget import window_of

    loaded = load_policy(policy)
    units = None if lost is None else _units(loaded, lost)
    restored = put_back(folder, loaded.ledger_url(), loaded.dataset, lost=units, window=window_of(loaded))
    audit("owner", act="restore", dataset=loaded.dataset, entry=restored.entry, seen=restored.last_seen, lost=lost)
    click.echo(f"the ledger is that of entry {restored.entry} again")
    if not restored.charged:
        click.echo("it is the entry that was seen last: nothing is lost, nothing was charged")
    for scope, charge in restored.charged.items():
        click.echo(f"charged to {scope} for what may have been lost: {words(charge)}")


@budget.command()
@policy_option()
@click.option("--newest-copy", is_flag=True, help="You know that this ledger is the newest copy there is.")
def adopt(policy: Path, newest_copy: bool) -> None:
    """Go on with a ledger on a machine that has its key and has never seen it. Spent is what the ledger says, so that an
    older copy would forget charges: nobody but you can know. What may be older is put back with `restore` instead."""
    from dpsql.errors.audit_log import audit
    from dpsql.ledger import open_ledger
    from dpsql.policy import load_policy

    if not newest_copy:
        raise click.UsageError("say --newest-copy when you know that it is; else dpsql budget restore")
    loaded = load_policy(policy)
    with open_ledger(loaded.ledger_url(), loaded.dataset, adopt=True, witness=loaded.witness) as ledger:
        entries = ledger.verify().entries
    audit("owner", act="adopt", dataset=loaded.dataset, entry=entries)
    click.echo(f"the ledger with {entries} entries is in use here")


@budget.command()
@policy_option()
@click.option("--replace", metavar="REASON", help="Why the head that is there may be replaced; recorded in the ledger.")
def witness(policy: Path, replace: str | None) -> None:
    """Write the ledger's head to the place that the policy names as `witness`, for the first time or after a restore."""
    from dpsql.errors.audit_log import audit
    from dpsql.ledger import open_ledger
    from dpsql.ledger.off_machine_head import start_second_witness
    from dpsql.policy import load_policy

    loaded = load_policy(policy)
    if loaded.witness is None:
        raise click.UsageError("the policy has no witness: file:///FOLDER or postgresql://... on another machine")
    with open_ledger(loaded.ledger_url(), loaded.dataset) as ledger:
        last = start_second_witness(ledger, loaded.witness, replace)
    audit("owner", act="witness", dataset=loaded.dataset, entry=last.seq, reason=replace)
    click.echo(f"the witness has entry {last.seq} and follows from now on")


def _units(policy: Policy, epsilon: str) -> dict[str, int]:
    """Return the amounts in the ledger's dimensions for a lost epsilon, with the delta of the budget. Raises BadParameter."""
    from fractions import Fraction

    from dpsql.privacy.accounting.registry import make_accountant

    try:
        amount = Fraction(epsilon)
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(f"{epsilon!r} is no number", param_hint="--lost") from None
    if amount <= 0:
        raise click.BadParameter("what was lost is more than 0", param_hint="--lost")
    return dict(make_accountant(policy.budget.accountant, amount, policy.budget.delta).limit_units())


@click.command()
@policy_option()
def migrate(policy: Path) -> None:
    """Bring a ledger that an older version wrote to this version's format; a copy of it is kept beside it."""
    from dpsql.errors.audit_log import audit
    from dpsql.ledger.migrate import migrate as bring
    from dpsql.policy import load_policy

    loaded = load_policy(policy)
    before, after, copy = bring(loaded.ledger_url())
    if before == after:
        click.echo(f"the ledger has format {after} already: nothing to do")
        return
    audit("owner", act="migrate", dataset=loaded.dataset, before=before, after=after)
    click.echo(f"the ledger had format {before} and has format {after} now" + (f"; a copy is {copy}" if copy else ""))
