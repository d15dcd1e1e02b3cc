"""`dpsql plan`: how the questions of SQL files are best measured together."""

from __future__ import annotations

from pathlib import Path

import click

from dpsql.errors.exceptions import Error, Exit
from dpsql.frontends.cli.ask import sql_files
from dpsql.frontends.cli.options import PATH, objective_option, option, session_options
from dpsql.frontends.cli.shared import SessionOptions
from dpsql.frontends.files import read_text
from dpsql.frontends.rendering.terminal import say, say_json


@click.command()
@session_options
@objective_option
@option("--json as_json", "Write the plan as JSON.")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.pass_context
def plan(
    context: click.Context, *, chosen: SessionOptions, objective: str, as_json: bool, files: tuple[Path, ...]
) -> None:
    """Plan the questions of SQL files together: errors and price one by one and together. Free; no data are read.

    `dpsql run --workload` then answers them in this way. `-- weight: 3` before a statement makes its errors count three times.
    """
    from dpsql.frontends.batch.statements import asked_questions
    from dpsql.frontends.batch.together import OBJECTIVES, QuestionPlans

    scripts = [(file, read_text(file)) for file in sql_files(files)]
    count = 0

    def refused(place: str, sql: str, error: Error) -> None:
        nonlocal count
        count += 1
        say(f"{place}: {error.text()}", err=True)

    def left_out(path: Path, line: int) -> None:
        say(f"{path}: what follows is not planned, as it may depend on line {line}", err=True)

    with chosen.open() as session:
        questions = asked_questions(session, scripts, refused, left_out)
        plans = QuestionPlans(session, questions, OBJECTIVES[objective])
        if as_json:
            say_json(plans.objects(), indent=1)
        else:
            for line in plans.lines():
                say(line)
    context.exit(Exit.REFUSAL if count else Exit.DONE)
