"""A real PostgreSQL database with the tables, keys, comments and rights that a policy shows, to compare catalogs with."""

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus

from dpsql.frontends.pgwire.catalog.policy_rows import TYPES
from dpsql.frontends.rendering.tables import column_comment, table_comment
from dpsql.policy import Policy

ANALYST = "ann"
Answer = tuple[str, Any]
"""("rows", (names, rows)) with every value as text, ("error", SQLSTATE) or ("tag", command tag)."""


def definitions(policy: Policy) -> Iterator[str]:
    """Yield the statements that create the tables of a policy, parents before their children."""
    later = []
    for table in policy.visible.values():
        columns = [f'"{c.name}" {TYPES[c.type][3]}' + " NOT NULL" * (not c.nullable) for c in table.columns.values()]
        keys = [("PRIMARY KEY", table.primary_key)] * bool(table.primary_key) + [
            ("UNIQUE", key) for key in table.unique
        ]
        columns += [f"{word} ({', '.join(key)})" for word, key in keys]
        yield f'CREATE TABLE "{table.name}" ({", ".join(columns)})'
        for column, (parent, parent_column) in table.foreign_keys.items():
            later.append(
                f'ALTER TABLE "{table.name}" ADD FOREIGN KEY ("{column}") REFERENCES "{parent}" ("{parent_column}")'
            )
        later.append(f'COMMENT ON TABLE "{table.name}" IS {_literal(table_comment(policy, table))}')
        comments = {column.name: column_comment(policy, table, column) for column in table.columns.values()}
        later += [
            f'COMMENT ON COLUMN "{table.name}"."{name}" IS {_literal(comment)}' for name, comment in comments.items() if comment
        ]  # fmt: skip
    yield from later
    yield f"CREATE ROLE {ANALYST} LOGIN"
    yield f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {ANALYST}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def answers(connection: psycopg.Connection[Any], sql: str) -> list[Answer]:
    """Return what a server answers to one message, in texts, as libpq receives it."""
    low, found = connection.pgconn, list[Answer]()
    low.send_query(sql.encode())
    while (result := low.get_result()) is not None:
        if result.status == ExecStatus.TUPLES_OK:
            names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
            rows = [
                [None if (value := result.get_value(row, column)) is None else value.decode() for column in range(result.nfields)]
                for row in range(result.ntuples)
            ]  # fmt: skip
            found.append(("rows", (names, rows)))
        elif result.status == ExecStatus.FATAL_ERROR:
            found.append(("error", (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()))
        elif result.status == ExecStatus.COPY_OUT:
            data = bytearray()
            while (part := low.get_copy_data(0))[0] > 0:
                data += part[1]
            found.append(("copy", data.decode()))
        else:
            found.append(("tag", (result.command_status or b"").decode()))
    return found


def objects(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Return the names of tables and constraints by the texts of their OIDs, which differ between servers."""
    named = "SELECT oid::text, relname::text FROM pg_class WHERE oid >= 16384 UNION ALL SELECT oid::text, conname::text FROM pg_constraint"
    return dict(connection.execute(f"{named} WHERE oid >= 16384").fetchall())


def comparable(found: list[Answer], names: dict[str, str], database: str, ordered: bool) -> list[Answer]:
    """Return answers with OIDs as names and without the name of the database; rows in no order are sorted."""
    compared = list[Answer]()
    for kind, facts in found:
        if kind == "rows":
            rows = [
                [value if value is None else names.get(value, value.replace(database, "<db>")) for value in row]
                for row in facts[1]
            ]
            compared.append((kind, (facts[0], rows if ordered else sorted(rows, key=str))))
        else:
            compared.append((kind, facts))
    return compared
