"""Libraries over drivers (ORMs, query builders, DBI, PDO) and a pool in front: connect, tables, columns, keys, a grouped question with
a parameter, a refusal, a good question after it, and exists(), which asks for a row.

Each program of `sources/` prints the steps of its libraries.
"""

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from socket import create_connection, socket

import asyncpg
import psycopg
import pytest
from support.served_clinic import GROUPED, PASSWORD, Served
from support.server_folder import server_folder

from clients.matrix import add, tries
from clients.programs import needs
from clients.steps import CLIENTS, run_steps

HIBERNATE = "/usr/share/java/hibernate-core.jar"
_JARS = ("hibernate-core", "hibernate-commons-annotations", "dom4j", "geronimo-jta-1.2-spec", "antlr", "commons-collections3",
         "slf4j-api", "slf4j-nop", "geronimo-jpa_2.0_spec-1.1", "postgresql")  # fmt: skip
CLASSES = {"CLASSPATH": ":".join(f"/usr/share/java/{name}.jar" for name in _JARS)}
PROGRAMS: dict[str, tuple[str, dict[str, str], pytest.MarkDecorator]] = {
    "orms.js": ("node", {
        "Sequelize": "connect tables columns keys exists model", "TypeORM": "connect tables columns keys exists model",
        "Knex": "connect tables columns exists", "MassiveJS": "connect tables", "Drizzle": "connect exists",
        "Prisma": "connect tables exists model", "Postgres.js": "connect columns exists", "pg-promise": "connect exists",
        "Kysely": "connect tables columns exists", "Objection": "connect columns exists model", "Slonik": "connect exists",
        "MikroORM": "connect tables exists model",
    }, needs("node", "npm")),
    "orms.py": (sys.executable, {
        "Django": "connect inspectdb exists", "peewee": "connect tables columns keys", "pgcli": "connect tables columns keys",
        "pg8000": "connect exists", "Pony": "connect exists model", "Tortoise": "connect exists",
        "Piccolo": "connect tables exists", "ConnectorX": "connect pieces",
    }, needs("py:django", "py:peewee", "py:pgcli", "py:pg8000", "py:pony", "py:tortoise", "py:piccolo", "py:connectorx")),
    "orms.rb": ("ruby", {
        "ActiveRecord": "connect tables columns keys exists find", "Sequel": "connect tables columns keys exists model",
    }, needs("ruby:active_record", "ruby:pg", "ruby:sequel")),
    "Hibernate.java": ("java", {"Hibernate 3": "connect exists find"}, needs("java", HIBERNATE)),
    "dbd.pl": ("perl", {"DBD::Pg": "connect tables columns keys exists"}, needs("perl:DBD::Pg")),
    "pdo.php": ("php", {"PDO": "connect columns exists"}, needs("php")),
}  # fmt: skip
"""Each program, with the command that runs it and the steps of its libraries beside the three that all of them take."""
_COLUMNS = {
    "connect": "connects",
    "exists": "errors and notices",
    "find": "errors and notices",
    "model": "asks",
    "pieces": "in pieces",
}
for _, _libraries, _ in PROGRAMS.values():
    for _library, _steps in _libraries.items():
        add(_library, "asks", ["parameters"])
        add(_library, "errors and notices", ["refusal"])
        for _step in _steps.split():
            add(_library, _COLUMNS.get(_step, "looks around"), [_step])


@pytest.fixture(scope="module")
def running(own_clinic: Served) -> Iterator[Served]:
    yield own_clinic.start()
    own_clinic.stop()


@pytest.mark.parametrize("program", [pytest.param(name, marks=PROGRAMS[name][2]) for name in PROGRAMS])
def test_every_library_passes_each_step(running: Served, request: pytest.FixtureRequest, program: str) -> None:
    command, libraries, _ = PROGRAMS[program]
    of_node = program.endswith(".js")
    folder = request.getfixturevalue("node_folder") if of_node else CLIENTS
    place = {"PGUSER": "research", "PGPASSWORD": PASSWORD, "PLACE": f"host=127.0.0.1;port={running.port};dbname=nafld"}
    place["URL"] = f"postgresql://{running.url}" + "?sslmode=no-verify" * of_node
    steps = run_steps([command, str(folder / program)], {**os.environ, **CLASSES, **place})
    assert {step: error for step, error in steps.items() if error is not None} == {}
    always = ("grouped", "refusal", "question after it")
    assert {f"{library}: {step}" for library, named in libraries.items() for step in (*named.split(), *always)} == set(
        steps
    )


@pytest.fixture
def pool(running: Served) -> Iterator[str]:
    """Yield the URL of pgbouncer in front of the clinic. It does not run as root."""
    with closing(socket()) as free, server_folder() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        users, settings = folder / "users.txt", folder / "pgbouncer.ini"
        users.write_text(f'"research" "{PASSWORD}"\n')
        settings.write_text(
            f"[databases]\nnafld = host=127.0.0.1 port={running.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"unix_socket_dir =\nauth_type = trust\nauth_file = {users}\npool_mode = transaction\nserver_tls_sslmode = prefer\n"
        )
        owner = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()
        for path in (folder, users, settings):
            shutil.chown(path, owner)
        process = subprocess.Popen(["pgbouncer", "-q", str(settings)], stderr=subprocess.DEVNULL, user=owner)
        try:
            _wait_for(port)
            yield f"postgresql://research@127.0.0.1:{port}/nafld"
        finally:
            process.terminate()
            process.wait(60)


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("pgbouncer does not listen")


@needs("pgbouncer")
@tries("pgbouncer 1, then asyncpg and psycopg", connects="pool", asks="parameters", errors_and_notices="refusal")
def test_a_pool_in_front_serves_several_drivers(pool: str) -> None:
    async def ask() -> None:
        connection = await asyncpg.connect(pool, statement_cache_size=0)
        with pytest.raises(asyncpg.PostgresError):
            await connection.fetch("SELECT patient_id FROM patients WHERE age > $1", 41)
        counted = "SELECT sex, COUNT(*) AS n FROM patients WHERE age > $1 GROUP BY sex"
        assert len(await connection.fetch(counted, 41)) == 2
        await connection.close()

    asyncio.run(ask())
    with psycopg.connect(pool, prepare_threshold=None) as other:
        assert len(other.execute(GROUPED).fetchall()) == 2
