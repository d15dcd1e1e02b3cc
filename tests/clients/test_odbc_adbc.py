"""ODBC (psqlODBC in its three fetch modes) and ADBC against the served clinic."""

import adbc_driver_postgresql.dbapi as adbc
import pytest
from support.served_clinic import GROUPED, PASSWORD, Served

from clients.matrix import tries
from clients.programs import needs


@needs("lib:odbc", "/etc/odbcinst.ini")
@tries(
    "psqlODBC 13", connects="TLS", looks_around="tables, columns, primary and foreign keys, types",
    asks="with and without server-side prepare, parameters", in_pieces="UseDeclareFetch", errors_and_notices="SQLSTATE",
)  # fmt: skip
@pytest.mark.parametrize("options", ["", "UseServerSidePrepare=0;", "UseDeclareFetch=1;Fetch=2;"])
def test_odbc_reads_tables_and_asks(served: Served, options: str) -> None:
    import pyodbc  # needs unixODBC's library to be imported

    place = (
        f"Driver={{PostgreSQL Unicode}};Server=127.0.0.1;Port={served.port};Database=nafld;Uid=research;Pwd={PASSWORD};"
    )
    connection = pyodbc.connect(f"{place}SSLmode=require;{options}", autocommit=True)
    cursor = connection.cursor()
    assert [row.table_name for row in cursor.tables(schema="public")] == ["events", "labs", "patients"]
    assert [(row.column_name, row.type_name) for row in cursor.columns(table="labs")] == [
        ("day", "int8"), ("test", "text"), ("value", "float8"), ("patient_id", "int8"),
    ]  # fmt: skip
    assert [row.column_name for row in cursor.primaryKeys("patients")] == ["patient_id"]
    assert {row.fktable_name for row in cursor.foreignKeys("patients")} == {"labs", "events"}
    assert len(cursor.getTypeInfo().fetchall()) > 10
    assert [row.sex for row in cursor.execute(GROUPED).fetchall()] == ["female", "male"]
    assert cursor.execute("SELECT COUNT(*) FROM patients WHERE sex = ?", "male").fetchone()[0] > 5000
    with pytest.raises(pyodbc.Error) as caught:
        cursor.execute("SELECT nope FROM patients")
    assert caught.value.args[0] == "42703"
    assert cursor.execute("SELECT 1").fetchone()[0] == 1
    connection.close()


@tries("ADBC 1", connects="URL", looks_around="objects, table schema", asks="parameters", COPY="binary (its default)")
def test_adbc_reads_objects_and_asks(served: Served) -> None:
    with adbc.connect(f"postgresql://{served.url}") as connection, connection.cursor() as cursor:
        cursor.execute(GROUPED)
        assert cursor.fetch_arrow_table().column("sex").to_pylist() == ["female", "male"]
        cursor.execute("SELECT COUNT(*) FROM patients WHERE sex = $1", ("male",))
        assert cursor.fetchone()[0] > 5000
        (catalog,) = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        assert catalog["catalog_name"] == "nafld"
        tables = catalog["catalog_db_schemas"][0]["db_schema_tables"]
        assert {table["table_name"]: len(table["table_columns"]) for table in tables} == {
            "patients": 9, "labs": 4, "events": 3,
        }  # fmt: skip
        assert connection.adbc_get_table_schema("labs").names == ["day", "test", "value", "patient_id"]
