"""Information about one person's secret bit in the time of an answer, at the least epsilon of a query.

The attack of docs/privacy.md, section 10: a condition that costs nothing for everyone else, and as much as is accepted for one
person if their bit is set. The attacker calibrates a threshold on people whose bits are known, and guesses the others'.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from dpsql.errors.exceptions import Error
from dpsql.session.session import Session, open_session

PEOPLE = 1_000
PADDED, CONSTANT = "padded", "{constant_seconds: 0.4}"
TIMINGS = ("plain", PADDED, CONSTANT)
ROWS_OF_ONE = (1, 20)
CALLS = 4
"""Calls in a condition, the most expensive one that is accepted (`dpsql.functions.row_costs`)."""
_POLICY = """
dataset: timing
source: duckdb:///timing.duckdb
privacy_unit: {{table: people, column: person}}
budget: {{epsilon: 1000, accountant: pure}}
per_query: {{min_epsilon: 0.001}}
ledger: sqlite:///timing-ledger.db
timing: {timing}
tables:
  people:
    max_rows: {rows}
    columns: {{person: {{type: integer}}, bit: {{type: boolean}}, words: {{type: text}}}}
"""


@dataclass(frozen=True)
class Leak:
    """`right` of `guesses` guesses were right; `bits` is the information of one guess, 1 - H(error); `milliseconds`: the median
    delay of an answer if the bit is set."""

    timing: str
    rows_of_one: int
    guesses: int
    right: int
    bits: float
    milliseconds: float


def timing(folder: Path, questions: int, say: Callable[[str], None]) -> list[Leak]:
    """Measure the leak under each timing, each with `questions` queries; one half calibrates, the other half is guessed."""
    return [_leak(folder, one, rows, questions, say) for one in TIMINGS for rows in ROWS_OF_ONE]


def _leak(folder: Path, kind: str, rows: int, questions: int, say: Callable[[str], None]) -> Leak:
    place = folder / f"timing-{TIMINGS.index(kind)}-{rows}"
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    bits = _build(place, rows)
    (place / "timing.yaml").write_text(_POLICY.format(timing=kind, rows=rows))
    with open_session(place / "timing.yaml", create_ledger=True) as session:
        session.execute("SET dp.epsilon = 0.001")
        for person in range(3):
            _seconds(session, person)
        seen = [(_seconds(session, person), bits[person]) for person in range(3, 3 + questions)]
    half = len(seen) // 2
    threshold = _best(seen[:half])
    right = sum((seconds > threshold) == bit for seconds, bit in seen[half:])
    guesses = len(seen) - half
    apart = _median(seen, True) - _median(seen, False)
    found = Leak(kind, rows, guesses, right, _bits(right / guesses), 1e3 * apart if math.isfinite(apart) else apart)
    say(f"{kind}, {rows} rows: {right} of {guesses} right, {found.bits:.3f} bits, {found.milliseconds:.2f} ms apart")
    return found


def _build(place: Path, rows: int) -> list[bool]:
    random_ = random.Random(rows)
    bits = [random_.random() < 0.5 for _ in range(PEOPLE)]
    with duckdb.connect(str(place / "timing.duckdb")) as connection:
        connection.execute("CREATE TABLE people (person BIGINT, bit BOOLEAN, words VARCHAR)")
        connection.executemany("INSERT INTO people VALUES (?, ?, '')", [[at, bit] for at, bit in enumerate(bits)])
        connection.execute(
            f"CREATE OR REPLACE TABLE people AS SELECT person, bit, repeat('ab' || person || range, 250) AS words "
            f"FROM people, range({rows}) ORDER BY person"
        )
    return bits


def _seconds(session: Session, person: int) -> float:
    """Return how long the answer took, or infinity if it did not arrive in time."""
    dear = " AND ".join(f"length(replace(words, '{chr(97 + at % 2)}', '{'c' * 18}')) <> {at}" for at in range(CALLS))
    sql = f"SELECT COUNT(*) FROM people WHERE CASE WHEN person = {person} AND bit THEN {dear} ELSE FALSE END"
    started = time.perf_counter()
    try:
        session.execute(sql)
    except Error as error:
        if error.slug != "answer_late":
            raise
        return math.inf
    return time.perf_counter() - started


def _best(seen: list[tuple[float, bool]]) -> float:
    """Return the threshold that best separates the calibration answers."""
    return max((seconds for seconds, _ in seen), key=lambda cut: sum((seconds > cut) == bit for seconds, bit in seen))


def _bits(share: float) -> float:
    """Return 1 - H(error) of a guess that is right with this share; 0 if it is no better than a coin."""
    error = min(1 - share, 0.5)
    return 1.0 if error == 0 else 1 + error * math.log2(error) + (1 - error) * math.log2(1 - error)


def _median(seen: list[tuple[float, bool]], bit: bool) -> float:
    found = sorted(seconds for seconds, known in seen if known is bit)
    return found[len(found) // 2] if found else math.nan
