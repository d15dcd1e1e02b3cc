"""`dpsql plot`: a picture of an answer, or of how its error falls with epsilon."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.frontends.cli.options import FILE, option, session_options
from dpsql.frontends.cli.shared import SessionOptions
from dpsql.frontends.files import require_replaceable
from dpsql.frontends.rendering.terminal import say

if TYPE_CHECKING:
    from dpsql.disclosure.plain_answer import Exact
    from dpsql.session.session import Session

WARNING = "The picture has exact numbers, which are not private: it is for the data's owner alone, do not pass it on."


@click.command()
@session_options
@option("-o --out", "The picture: a .svg, .png, .html or .json file.", FILE, required=True)
@option("--errors", "Draw the expected error against epsilon; nothing is charged.")
@option("--exact", "Also draw the exact numbers, which are not private: for the owner of the data only.")
@click.argument("sql")
def plot(*, chosen: SessionOptions, out: Path, errors: bool, exact: bool, sql: str) -> None:
    """Draw the answer to a question with its error bars (charged as the question is; needs the extra `plot`).

    The answer has up to two columns of keys: the first is the axis, the second the colours. With --errors, draw how the error
    of each number falls with epsilon, for free. With --exact, also draw what the database itself answers to the same text,
    without bounds and noise.
    """
    from dpsql.frontends.interruptible import ask
    from dpsql.frontends.rendering.formats import fitting, price_lines
    from dpsql.frontends.rendering.plots import (
        check_plot,
        draw_release,
        error_chart,
        release_chart,
        require_drawable,
        write_owners_plot,
        write_plot,
    )

    text = sys.stdin.read() if sql == "-" else sql
    if exact and (errors or chosen.analyst):
        raise click.UsageError("--exact is for the data's owner: it goes neither with --analyst nor with --errors")
    check_plot(out)
    if exact:
        require_replaceable(out)
    with chosen.open() as session:
        if errors:
            title = "noise of each measured number against epsilon (as EXPLAIN says, 95 %)"
            write_plot(error_chart(expected_errors(session, text), title), out)
            return
        require_drawable(session, text)
        exact_rows = _exact_rows(session, chosen.policy, text) if exact else None
        release = ask(session, text)
        for line in fitting(price_lines(session, release)):
            say(line, err=True)
        if exact_rows is None:
            draw_release(release, out)
            return
    write_owners_plot(release_chart(release, exact=exact_rows), out, charged=release.receipt.is_paid)
    say(WARNING, err=True)


def _exact_rows(session: Session, policy: Path, sql: str) -> Exact:
    """Return the exact answer of the database to a question, by the values of its keys; it is read before anything is charged."""
    from dpsql.disclosure import plain_answer
    from dpsql.engine.registry import open_engine
    from dpsql.policy import load_policy

    loaded = load_policy(policy)
    keys = [position for position, column in enumerate(session.describe(sql)) if not column.noisy]
    engine = open_engine(loaded)
    try:
        return plain_answer(loaded, engine, sql, keys)
    finally:
        engine.close()


def expected_errors(session: Session, sql: str) -> list[tuple[float, str, float]]:
    """Return (epsilon, output, error) of a question, at epsilons up to the most that the policy allows for one question."""
    from dpsql.frontends.rendering.plots import epsilons

    limits = session.policy.per_query
    most = float(limits.max_epsilon or min(session.policy.budget.epsilon, Fraction(10)))
    points = []
    for epsilon in epsilons(max(float(limits.min_epsilon), most / 1000), most):
        session.set_option("epsilon", f"{epsilon:.10f}")
        for output in session.explain(sql).outputs:
            if output.error_95:
                name = f"{output.output}: {output.aggregate}" if output.output else output.aggregate
                points.append((epsilon, name, output.error_95))
    return points
