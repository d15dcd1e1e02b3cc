"""create_engine("dpsql:///policy.yaml"): reflection from the policy, and queries through SQLAlchemy and pandas."""

import pandas
import pytest
import sqlalchemy
from sqlalchemy import func, select
from sqlalchemy.dialects import registry
from support.served_clinic import GROUPED, Served

from dpsql.errors.exceptions import Refusal

registry.register("dpsql", "dpsql.frontends.python.sqlalchemy_dialect", "DpsqlDialect")


@pytest.fixture
def engine(served: Served, monkeypatch: pytest.MonkeyPatch) -> sqlalchemy.Engine:
    monkeypatch.setenv("DPSQL_STATE", str(served.state))
    return sqlalchemy.create_engine(f"dpsql:///{served.policy}?analyst=clinic")


def test_reflection_comes_from_the_policy(engine: sqlalchemy.Engine) -> None:
    seen = sqlalchemy.inspect(engine)
    assert seen.get_table_names() == ["patients", "labs", "events"]
    assert [str(column["type"]) for column in seen.get_columns("labs")] == ["BIGINT", "TEXT", "DOUBLE", "BIGINT"]
    assert seen.get_foreign_keys("labs")[0]["referred_table"] == "patients"
    comment = seen.get_columns("patients")[2]["comment"]
    assert comment == "years at entry into the cohort; clamped to 18 .. 110"
    with pytest.raises(sqlalchemy.exc.NoSuchTableError):
        seen.get_columns("nope")
    labs = sqlalchemy.Table("labs", sqlalchemy.MetaData(), autoload_with=engine)
    assert [key.column.table.name for key in labs.foreign_keys] == ["patients"]


def test_questions_of_sqlalchemy_and_pandas_are_answered(engine: sqlalchemy.Engine) -> None:
    patients = sqlalchemy.Table("patients", sqlalchemy.MetaData(), autoload_with=engine)
    question = select(patients.c.sex, func.count().label("n"), func.avg(patients.c.bmi)).where(patients.c.age > 44)
    question = question.group_by(patients.c.sex).order_by(patients.c.sex).limit(5)
    with engine.connect() as connection:
        rows = connection.execute(question).fetchall()
        assert [row.sex for row in rows] == ["female", "male"]
        assert connection.execute(question).fetchall() == rows
    frame = pandas.read_sql(sqlalchemy.text(GROUPED), engine)
    assert frame["n"].between(5_000, 12_000).all()


def test_refusals_reach_the_caller(engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection, pytest.raises(sqlalchemy.exc.ProgrammingError) as caught:
        connection.execute(sqlalchemy.text("SELECT * FROM patients"))
    assert isinstance(caught.value.orig, Refusal)


def test_the_address_names_a_project_and_nothing_unknown(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(served.state))
    engine = sqlalchemy.create_engine(f"dpsql:///{served.policy}?analyst=clinic&project=flu")
    with engine.connect() as connection:
        shown = connection.execute(sqlalchemy.text("SHOW dp.budget")).fetchall()
    assert {row[0] for row in shown} == {"dataset", "analyst:clinic", "project:flu"}
    engine.dispose()
    with pytest.raises(sqlalchemy.exc.ArgumentError, match="analist"):
        sqlalchemy.create_engine(f"dpsql:///{served.policy}?analist=clinic").connect()
