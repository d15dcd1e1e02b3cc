"""`dpsql prepare`: the contribution index of a policy's protected tables."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dpsql.frontends.cli.shared import policy_option


@click.command()
@policy_option()
@click.option("--copy", is_flag=True, help="Write the rows even where none is dropped: equal work for every question.")
@click.option("--memory", metavar="SIZE", help="How much memory may be used, e.g. 4GB; the rest goes to disk.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Threads at work.")
def prepare(policy: Path, copy: bool, memory: str | None, jobs: int | None) -> None:
    """Keep the bounded rows of each person, so that questions cost about what they cost without privacy.

    Once for each version of the data; answers stay the same. Safe to stop and to run again. Where each row is somebody
    else (privacy_unit: row), a copy with bounded columns as integers is written.
    """
    from rich.console import Console
    from rich.progress import Progress

    from dpsql.engine.contribution_index import ContributionIndex
    from dpsql.engine.registry import open_engine
    from dpsql.ledger import open_ledger
    from dpsql.policy import load_policy

    loaded = load_policy(policy)
    engine = open_engine(loaded)
    try:
        with (
            open_ledger(loaded.ledger_url(), loaded.dataset) as ledger,
            Progress(console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bars,
        ):
            tasks = {name: bars.add_task(name, total=1.0) for name in loaded.tables if loaded.is_protected(name)}

            def told(table: str, what: str, share: float) -> None:
                bars.update(tasks[table], description=f"{table}: {what}", completed=share)

            index = ContributionIndex(loaded, engine, lambda: ledger.witness.key)
            for one in index.prepare(copy=copy, memory=memory, jobs=jobs, progress=told):
                click.echo(f"{one.table}: {one.state}{f', {one.why}' if one.why else ''}", err=True)
    finally:
        engine.close()
