"""What a question costs when much has accumulated: length of its text, stored answers, charges, analysts; in processor time.

`python -m benchmarks.accumulated [--most 100000]` prints a table for each. Nothing is answered from the store, so each question
is planned, charged and stored. Stored answers of other questions are copies of one row under other names; charges are real.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import click
import duckdb

from benchmarks.data import build, write_policy
from dpsql.ledger.records import ChargeRequest
from dpsql.policy import load_policy
from dpsql.session.session import Session, open_session

ROWS, ASKED = 1_000, 9
QUESTION = "SELECT region, avg(amount) AS mean FROM purchases WHERE items < {literal} GROUP BY region"
Row = tuple[int, tuple[float, ...]]
_literals = count(100)


def _milliseconds(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return (time.process_time() - before) * 1000


def _question(session: Session) -> float:
    """Return the milliseconds of a new question with its error bars, in the middle of `ASKED`."""

    def ask() -> object:
        return session.execute(QUESTION.format(literal=next(_literals))).error

    return statistics.median(_milliseconds(ask) for _ in range(ASKED))


def _conditions(number: int) -> str:
    start = next(_literals)
    terms = " OR ".join(f"(items = {index % 19} AND amount > {start + index / 8})" for index in range(number))
    return f"SELECT count(*) FROM purchases WHERE {terms}"


def _columns(number: int) -> str:
    start = next(_literals)
    return (
        f"SELECT {', '.join(f'count(*) * {start + index / 8} AS c{index}' for index in range(number))} FROM purchases"
    )


def _characters(number: int) -> str:
    return f"SELECT count(*) /* {'x' * number} */ FROM purchases WHERE items < {next(_literals)}"


TEXTS = {
    "conditions joined by OR": (_conditions, (10, 100, 1_000)),
    "columns": (_columns, (5, 50, 500)),
    "characters of a comment": (_characters, (100, 10_000, 100_000)),
}


def texts(session: Session, database: Path, make: Callable[[int], str], numbers: tuple[int, ...]) -> Iterator[Row]:
    """Yield the cost of an answer, of EXPLAIN and of plain DuckDB by the length of the text."""
    session.execute(make(numbers[0]))
    with duckdb.connect(str(database), read_only=True) as plain:
        for number in numbers:
            asks = (session.execute, session.explain, lambda text: plain.execute(text).fetchall())
            yield number, tuple(_milliseconds(partial(ask, make(number))) for ask in asks)


def stored(policy: Path, numbers: list[int]) -> Iterator[Row]:
    """Yield the cost of a new question by the number of stored answers to other questions."""
    with open_session(policy, create_ledger=True) as session:
        _question(session)
    (file,) = policy.parent.glob("*.releases")
    for before, number in zip([0, *numbers], numbers, strict=False):
        with sqlite3.connect(file) as store:
            store.execute("PRAGMA synchronous = OFF")
            row = "hex(randomblob(32)), hex(randomblob(32)), created, metadata, payload, mac, 'other', size"
            copies = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {number - before})"
            one = "(SELECT * FROM dpsql_answers WHERE payload <> x'' LIMIT 1)"
            if number > before:
                store.execute(f"{copies} INSERT INTO dpsql_answers SELECT {row} FROM n, {one}")
        store.close()
        with open_session(policy) as session:
            yield number, (_question(session),)


def charges(policy: Path, numbers: list[int]) -> Iterator[Row]:
    """Yield the cost of opening a ledger and of a new question by the number of charges."""
    requests: list[ChargeRequest] = []
    with open_session(policy, create_ledger=True) as session:
        reserve = session.context.ledger.reserve
        session.context.ledger.reserve = lambda request: requests.append(request) or reserve(request)  # type: ignore[method-assign,func-returns-value]
        _question(session)
    for before, number in zip([0, *numbers], numbers, strict=False):
        with open_session(policy) as session:
            for _ in range(number - before):
                charge = {name: min(1, amount) for name, amount in requests[0].charge.items()}
                session.context.ledger.reserve(replace(requests[0], id=secrets.token_hex(), charge=charge)).commit()
        opened: list[Session] = []
        opening = _milliseconds(partial(_opened, policy, opened))
        with opened[0] as session:
            yield number, (opening, _question(session))


def _opened(policy: Path, opened: list[Session]) -> None:
    opened.append(open_session(policy))


def analysts(policy: Path, numbers: list[int]) -> Iterator[Row]:
    """Yield the cost of reading a policy and of a new question by the number of analysts."""
    text = policy.read_text(encoding="utf-8")
    for number in numbers:
        names = ", ".join(f"analyst{index}: {{epsilon: 500}}" for index in range(max(1, number)))
        policy.write_text(f"{text}analysts: {{{names}}}\n", encoding="utf-8")
        with open_session(policy, analyst="analyst0", create_ledger=True) as session:
            yield number, (_milliseconds(partial(load_policy, policy)), _question(session))


def _table(title: str, columns: tuple[str, ...], rows: Iterator[Row]) -> None:
    click.echo(f"\n| {title} | {' | '.join(columns)} |\n| --- {'| --- ' * len(columns)}|")
    for number, values in rows:
        click.echo(f"| {number:,} | {' | '.join(f'{value:,.1f}' for value in values)} |")


@click.command()
@click.option("--most", default=100_000, show_default=True, type=click.IntRange(min=10), help="Most of each kind.")
def main(most: int) -> None:
    """Print processor milliseconds by what has accumulated."""
    numbers = [0, *(most // step for step in (100, 10, 1) if most >= step)]
    with tempfile.TemporaryDirectory() as name:
        os.environ["DPSQL_STATE"] = str(Path(name) / "state")

        def policy(kind: str) -> Path:
            folder = Path(name) / kind
            folder.mkdir()
            return write_policy(folder, build(folder, ROWS), "row")

        with open_session(policy("texts"), create_ledger=True) as session:
            for title, (make, lengths) in TEXTS.items():
                rows = texts(session, build(Path(name) / "texts", ROWS), make, lengths)
                _table(title, ("answer", "EXPLAIN", "plain DuckDB"), rows)
        _table("stored answers", ("a question",), stored(policy("stored"), numbers))
        _table("charges", ("opening", "a question"), charges(policy("charges"), numbers))
        _table("analysts", ("reading the policy", "a question"), analysts(policy("analysts"), numbers[:-1]))


if __name__ == "__main__":
    main()
