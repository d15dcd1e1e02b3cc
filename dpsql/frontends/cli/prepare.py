"""`dpsql prepare`: the contribution index of a policy's protected tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.frontends.cli.options import option, policy_option
from dpsql.frontends.rendering.terminal import say
from dpsql.policy import is_file

if TYPE_CHECKING:
    from dpsql.engine.contribution_index import ContributionIndex
    from dpsql.ledger.ledger import Ledger
    from dpsql.policy import Policy


@contextmanager
def _index(policy: Path) -> Iterator[tuple[Policy, Ledger, ContributionIndex]]:
    from dpsql.engine.contribution_index import ContributionIndex
    from dpsql.engine.registry import open_engine
    from dpsql.ledger import open_ledger
    from dpsql.policy import load_policy

    loaded = load_policy(policy)
    engine = open_engine(loaded)
    try:
        with open_ledger(loaded.ledger_url(), loaded.dataset, witness=loaded.witness) as ledger:
            yield loaded, ledger, ContributionIndex(loaded, engine, lambda: ledger.witness.key)
    finally:
        engine.close()


@click.command()
@policy_option()
@option("--copy", "Write the rows even where none is dropped, so that every question takes equal work.")
@option("--memory", "The most memory to use, e.g. 4GB; the rest goes to disk.", "SIZE")
@option("--jobs", "The number of threads.", click.IntRange(1, 256), metavar="N")
def prepare(policy: Path, copy: bool, memory: str | None, jobs: int | None) -> None:
    """Prepare the bounded rows of each person, so that queries take about as long as without privacy.

    Run it once for each version of the data; answers stay the same. Safe to stop and to run again. If each row is a
    different person (privacy_unit: row), a copy with bounded columns as integers is written.
    """
    from rich.console import Console
    from rich.progress import Progress

    with (
        _index(policy) as (loaded, _, index),
        Progress(console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bars,
    ):
        tasks = {name: bars.add_task(name, total=1.0) for name in loaded.tables if loaded.is_protected(name)}

        def report(table: str, activity: str, share: float) -> None:
            bars.update(tasks[table], description=f"{table}: {activity}", completed=share)

        for prepared in index.prepare(copy=copy, memory=memory, jobs=jobs, progress=report):
            say(f"{prepared.table}: {prepared.state}{f', {prepared.why}' if prepared.why else ''}", err=True)
        if count := index.copies_of_other_policies():
            say(
                f"{count} other prepared copies of this data set stay: other policies may read them, or earlier forms of "
                "this one wrote them; `dpsql erased` removes all that are not of this policy",
                err=True,
            )


@click.command()
@policy_option()
def erased(policy: Path) -> None:
    """Remove and rewrite copies that may still contain rows of a person who was erased from the source; run this after
    the erasure. It also lists what remains."""
    from dpsql.errors.audit_log import audit
    from dpsql.reuse.store import open_releases

    with _index(policy) as (loaded, ledger, index):
        removed = index.remove_outdated()
        if removed:
            index.prepare()
        releases = open_releases(ledger)
        stored = len(releases.notes())
        releases.close()
    audit("owner", act="erased", dataset=loaded.dataset, copies=removed, releases=stored)
    say(f"{removed} prepared copies of other versions of the data were removed{', and written again' * bool(removed)}")
    say(
        f"{stored} stored releases stay: each is differentially private and was charged, with or without any one person; "
        "those of the earlier data answer no new question unless the policy sets data_version"
    )
    if loaded.source_path() is not None and not is_file(loaded.source or ""):
        say(
            "a DuckDB file keeps erased rows in free blocks until it is written anew: COPY FROM DATABASE into a new file"
        )
    say("not looked at: backups of the source, the custodian's log, exports, files that analysts have")
