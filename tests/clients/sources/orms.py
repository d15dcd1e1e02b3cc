"""Python libraries against a served clinic: one line of JSON for each step, {"step": "LIBRARY: STEP", "error": text or null}."""

import asyncio
import io
import json
import os
import sys
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


def pony() -> None:
    from pony.orm import Database, PrimaryKey, Required, count, db_session, select

    database = Database()

    class Patients(database.Entity):  # type: ignore[name-defined, misc]
        patient_id, sex, age = PrimaryKey(int), Required(str), Required(int)

    def connect() -> None:
        database.bind(provider="postgres", database=NAME, **ACCESS)
        database.generate_mapping(create_tables=False, check_tables=True)

    older = lambda age: select(patient for patient in Patients if patient.age > age)  # noqa: E731

    def grouped(age: int) -> int:
        return len(list(select((patient.sex, count()) for patient in Patients if patient.age > age)))

    step("Pony: connect", connect, None)
    for name, work, wanted in (
        ("grouped", lambda: grouped(41), 2),
        ("refusal", lambda: refused(lambda: list(older(43))), True),
        ("question after it", lambda: grouped(42), 2),
        ("exists", lambda: refused(lambda: older(43).exists()), True),
        ("model", lambda: older(41).count() > 100, True),
    ):
        with db_session:
            step(f"Pony: {name}", work, wanted)


def tortoise() -> None:
    from tortoise import Tortoise, fields
    from tortoise.functions import Count
    from tortoise.models import Model

    class Patient(Model):
        patient_id, sex, age = fields.IntField(primary_key=True), fields.TextField(), fields.IntField()

        class Meta:
            table = "patients"

    sys.modules[__name__].Patient = Patient  # type: ignore[attr-defined]
    run = asyncio.new_event_loop().run_until_complete
    place = os.environ["URL"].replace("postgresql:", "asyncpg:")

    def grouped(age: int) -> int:
        return len(run(Patient.filter(age__gt=age).annotate(n=Count("patient_id")).group_by("sex").values("sex", "n")))

    opened = Tortoise.init(db_url=place, modules={"clinic": [__name__]}, _enable_global_fallback=True)
    step("Tortoise: connect", lambda: run(opened) is not None)
    step("Tortoise: grouped", lambda: grouped(41), 2)
    step("Tortoise: refusal", lambda: refused(lambda: run(Patient.filter(age__gt=43))))
    step("Tortoise: question after it", lambda: grouped(42), 2)
    step("Tortoise: exists", lambda: refused(lambda: run(Patient.filter(age__gt=43).exists())))


def piccolo() -> None:
    from piccolo.apps.schema.commands.generate import get_output_schema
    from piccolo.columns import Integer, Text
    from piccolo.engine.postgres import PostgresEngine
    from piccolo.query.functions.aggregate import Count
    from piccolo.table import Table

    engine = PostgresEngine({**ACCESS, "database": NAME})

    class Patients(Table, db=engine, tablename="patients"):  # type: ignore[call-arg]
        patient_id, sex, age = Integer(primary_key=True), Text(), Integer()

    run = asyncio.new_event_loop().run_until_complete

    def grouped(age: int) -> int:
        return len(run(Patients.select(Patients.sex, Count()).where(Patients.age > age).group_by(Patients.sex).run()))

    def tables() -> list[str]:
        return sorted(table.__name__ for table in run(get_output_schema(engine=engine)).tables)

    step("Piccolo: connect", lambda: run(Patients.table_exists().run()))
    step("Piccolo: tables", tables, ["Events", "Labs", "Patients"])
    step("Piccolo: grouped", lambda: grouped(41), 2)
    step("Piccolo: refusal", lambda: refused(lambda: run(Patients.select().run())))
    step("Piccolo: question after it", lambda: grouped(42), 2)
    step("Piccolo: exists", lambda: refused(lambda: run(Patients.exists().where(Patients.age > 43).run())))


def connectorx() -> None:
    import connectorx

    read = lambda sql, **how: connectorx.read_sql(os.environ["URL"], sql, return_type="arrow", **how)  # noqa: E731
    step("ConnectorX: connect", lambda: read("SELECT 1 AS one").num_rows, 1)
    step("ConnectorX: grouped", lambda: read(GROUPED.format(41), protocol="cursor").num_rows, 2)
    step("ConnectorX: refusal", lambda: refused(lambda: read("SELECT patient_id FROM patients")))
    step("ConnectorX: question after it", lambda: read(GROUPED.format(42), protocol="csv").num_rows, 2)
    ages = "SELECT age, COUNT(*) AS n FROM patients WHERE age BETWEEN 20 AND 80 GROUP BY age"
    step("ConnectorX: pieces", lambda: read(ages, partition_on="age", partition_num=2).num_rows, 61)


for library in (django, peewee, pgcli, pg8000, pony, tortoise, piccolo, connectorx):
    library()
