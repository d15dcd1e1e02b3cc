"""Python libraries against a served clinic: one line of JSON for each step, {"step": "LIBRARY: STEP", "error": text or null}."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlparse

PLACE = urlparse(os.environ["URL"])
ACCESS = {"host": PLACE.hostname, "port": PLACE.port, "user": PLACE.username, "password": unquote(PLACE.password or "")}
NAME = PLACE.path[1:]
GROUPED = "SELECT sex, COUNT(*) FROM patients WHERE age > {} GROUP BY sex"


def step(name: str, work: Callable[[], object], wanted: object = True) -> None:
    """Do one step and print whether its result is the wanted one."""
    try:
        result = work()
        error = None if result == wanted else repr(result)
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    print(json.dumps({"step": name, "error": error}), flush=True)


def refused(work: Callable[[], object]) -> bool:
    """Return whether work is refused because it asks for rows."""
    try:
        work()
    except Exception as error:
        return "rows" in str(error)
    return False


def django() -> None:
    from django.conf import settings

    database = {"ENGINE": "django.db.backends.postgresql", "NAME": NAME} | {
        key.upper(): value for key, value in ACCESS.items()
    }
    settings.configure(DATABASES={"default": database}, INSTALLED_APPS=[])
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection, models

    class Patient(models.Model):
        sex, age = models.TextField(), models.IntegerField()

        class Meta:
            app_label, db_table, managed = "clinic", "patients", False

    def inspected() -> bool:
        written = io.StringIO()
        call_command("inspectdb", stdout=written)
        text = written.getvalue()
        return "class Labs(" in text and "models.ForeignKey('Patients'" in text and "Unable to inspect" not in text

    def grouped(age: int) -> int:
        return len(Patient.objects.filter(age__gt=age).values("sex").annotate(n=models.Count("*")))

    step("Django: connect", connection.ensure_connection, None)
    step("Django: inspectdb", inspected)
    step("Django: grouped", lambda: grouped(41), 2)
    step("Django: refusal", lambda: refused(lambda: list(Patient.objects.values("sex", "age"))))
    step("Django: question after it", lambda: grouped(42), 2)
    step("Django: exists", lambda: refused(lambda: Patient.objects.filter(age__gt=41).exists()))


def peewee() -> None:
    from peewee import PostgresqlDatabase

    database: Any = PostgresqlDatabase(NAME, **ACCESS)
    grouped = lambda age: len(database.execute_sql(GROUPED.format("%s"), (age,)).fetchall())  # noqa: E731
    step("peewee: connect", database.connect)
    step("peewee: tables", lambda: "labs" in database.get_tables())
    step("peewee: columns", lambda: [column.name for column in database.get_columns("labs")][:2], ["day", "test"])
    step("peewee: keys", lambda: [key.dest_table for key in database.get_foreign_keys("labs")], ["patients"])
    step("peewee: grouped", lambda: grouped(41), 2)
    step("peewee: refusal", lambda: refused(lambda: database.execute_sql("SELECT patient_id FROM patients")))
    step("peewee: question after it", lambda: grouped(42), 2)


def pgcli() -> None:
    from pgcli.pgexecute import PGExecute

    place = PGExecute(NAME, ACCESS["user"], ACCESS["password"], ACCESS["host"], ACCESS["port"])
    step("pgcli: connect", lambda: place.server_version is not None)
    step("pgcli: tables", lambda: ("public", "labs") in list(place.tables()))
    step("pgcli: columns", lambda: any(column[1:3] == ("labs", "value") for column in place.table_columns()))
    step("pgcli: keys", lambda: any(key.childtable == "labs" for key in place.foreignkeys()))
    status = lambda sql: next(place.run(sql))[3]  # noqa: E731
    step("pgcli: grouped", lambda: status(GROUPED.format(41)), "SELECT 2")
    step("pgcli: refusal", lambda: refused(lambda: status("SELECT patient_id FROM patients")))
    step("pgcli: question after it", lambda: status(GROUPED.format(42)), "SELECT 2")


def pg8000() -> None:
    from pg8000.native import Connection

    database = Connection(database=NAME, **ACCESS)
    grouped = lambda age: len(database.run(GROUPED.format(":age"), age=age))  # noqa: E731
    step("pg8000: connect", lambda: database.run("SELECT 1"), [[1]])
    step("pg8000: grouped", lambda: grouped(41), 2)
    step(
        "pg8000: refusal",
        lambda: refused(lambda: database.run("SELECT patient_id FROM patients WHERE age > :age", age=3)),
    )
    step("pg8000: question after it", lambda: grouped(42), 2)
    step(
        "pg8000: exists",
        lambda: refused(lambda: database.run("SELECT 1 FROM patients WHERE age > :age LIMIT 1", age=3)),
    )


for library in (django, peewee, pgcli, pg8000):
    library()
