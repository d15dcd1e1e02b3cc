"""The files that put a server into service do what their documentation says, as far as a machine without containers shows."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from support.places import ROOT
from support.raw_client import rows_of
from support.served_clinic import PASSWORD, logged_in

from dpsql.frontends.cli.serve import serve
from dpsql.frontends.demo import build_demo
from dpsql.frontends.pgwire.logins import open_logins
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy
from dpsql.session.session import open_session

DEPLOY = ROOT / "deploy"


def instructions(file: Path) -> list[tuple[str, str]]:
    """Instructions of a container file with their arguments, continued lines joined."""
    lines = [line for line in file.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word.upper(), rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def argument(file: Path, instruction: str) -> str:
    return [rest for word, rest in instructions(file) if word == instruction][-1]


def options_of(command: list[str]) -> dict[str, Any]:
    """What `dpsql serve` makes of a command line. Fails for an option that does not exist."""
    assert command[0] == "serve"
    return serve.make_context("serve", command[1:]).params


def test_every_instruction_of_the_container_files_exists() -> None:
    known = {
        "FROM", "RUN", "COPY", "ENV", "VOLUME", "WORKDIR", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    for file in DEPLOY.rglob("*Dockerfile"):
        assert {word for word, _ in instructions(file)} <= known, file
        for word, rest in instructions(file):
            if word == "FROM":
                assert re.fullmatch(r"[\w./-]+:[\w.-]*\d[\w.-]*( AS \w+)?", rest), "images have a version"


def test_the_container_runs_the_server_without_privileges_and_asks_for_its_health() -> None:
    file = DEPLOY / "Dockerfile"
    user = argument(file, "USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user) and f"--uid {user.split(':')[0]} " in file.read_text()
    assert json.loads(argument(file, "ENTRYPOINT")) == ["dpsql"]
    options = options_of(json.loads(argument(file, "CMD")))
    health = json.loads(argument(file, "HEALTHCHECK").partition("CMD ")[2])
    assert health[0] == "python" and f"http://{options['status']}/readyz" in health[2]
    compile(health[2], "health", "exec")
    assert (
        options["tls_self_signed"]
        and not options["allow_plain"]
        and options["listen"].endswith(argument(file, "EXPOSE"))
    )
    environment = dict(pair.split("=") for pair in argument(file, "ENV").split())
    assert all(environment[name].startswith(argument(file, "VOLUME")) for name in ("DPSQL_STATE", "DPSQL_CACHE"))


def test_the_wheel_in_the_container_is_built_from_what_is_copied() -> None:
    copied = {
        name for word, rest in instructions(DEPLOY / "Dockerfile") if word == "COPY" for name in rest.split()[:-1]
    }
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert ignored[0] == "*" and {name[1:] for name in ignored if name.startswith("!")} == copied
    assert all((ROOT / name).exists() for name in copied)
    extras = re.search(r"dpsql\[([\w,]+)\] @", (DEPLOY / "Dockerfile").read_text())
    assert extras is not None and {"postgres", "metrics"} <= set(extras[1].split(","))


@pytest.fixture(params=["dpsql.service", "dpsql-backup.service", "dpsql-run.service"])
def unit(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The systemd unit with commands that exist on this machine."""
    text = (DEPLOY / request.param).read_text()
    place = tmp_path / request.param
    place.write_text(text.replace("/opt/dpsql/bin/dpsql", shutil.which("true") or "/bin/true"))
    return place


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_the_unit_and_finds_it_little_exposed(unit: Path) -> None:
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and not checked.stderr, checked.stderr
    rated = ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", str(unit)]
    security = subprocess.run(rated, capture_output=True, text=True, check=False)
    assert security.returncode == 0, security.stdout[-300:]


def test_the_unit_starts_the_server_with_options_that_exist_and_gives_it_time_to_end() -> None:
    lines = dict(
        line.split("=", 1)
        for line in (DEPLOY / "dpsql.service").read_text().splitlines()
        if "=" in line and line[0] != "#"
    )
    options = options_of(shlex.split(lines["ExecStart"])[1:])
    assert options["tls_cert"] is not None and not options["allow_plain"]
    assert int(lines["TimeoutStopSec"]) > options["drain_seconds"] + 13
    assert "-HUP" in lines["ExecReload"] and lines["User"] != "root" and lines["CapabilityBoundingSet"] == ""


def walk(unit: str, policy: Path, folder: Path) -> None:
    """Run the commands of a unit, with `folder` instead of the folders of a server."""
    for line in (DEPLOY / f"{unit}.service").read_text().splitlines():
        if line.startswith("ExecStart="):
            command = line.removeprefix("ExecStart=").replace("%%", "%").replace("/etc/dpsql/policy.yaml", str(policy))
            command = command.replace("/opt/dpsql/bin/dpsql", f"{sys.executable} -m dpsql")
            command = command.replace("/var/lib", str(folder)).replace("/etc/dpsql", str(folder / "etc"))
            subprocess.run(shlex.split(command), check=True, capture_output=True)
    assert "Unit=" not in (timer := (DEPLOY / f"{unit}.timer").read_text()) and "OnCalendar=" in timer


def test_the_nightly_backup_and_the_nightly_answers_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "dpsql" / "state"))
    policy = build_demo("nafld", tmp_path)
    open_session(policy, create_ledger=True).close()
    for name in ("dpsql/backups", "dpsql/reports", "etc/reports"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "etc" / "reports" / "sexes.sql").write_text("SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex;")
    walk("dpsql-run", policy, tmp_path)
    (answer,) = (tmp_path / "dpsql" / "reports").glob("sexes*.csv")
    written = answer.read_text()
    walk("dpsql-run", policy, tmp_path)
    assert answer.read_text() == written and written.count("\n") == 3, "the second night is free"
    walk("dpsql-backup", policy, tmp_path)
    (backup,) = (tmp_path / "dpsql" / "backups").iterdir()
    assert {file.name for file in backup.iterdir()} >= {"ledger.db", "key", "backup.json"}


def test_the_compose_file_is_closed_where_it_can_be() -> None:
    compose = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
    assert set(compose) == {"services", "networks", "volumes"}
    services = compose["services"]
    for name, service in services.items():
        assert not service.get("privileged") and set(service["networks"]) <= set(compose["networks"]), name
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (source.startswith("./") and volume.endswith(":ro")), volume
        for value in service.get("environment", {}).values():
            assert not re.search("(?i)password|secret|key", str(value)) or ":?" in value, "no secret has a default"
    server = services["dpsql"]
    assert server["read_only"] and server["cap_drop"] == ["ALL"] and "no-new-privileges:true" in server["security_opt"]
    assert "ports" not in server and "ports" not in services["ledger"]
    assert compose["networks"]["ledger"]["internal"] and "ledger" not in services["superset"]["networks"]
    build = (DEPLOY / "compose" / server["build"]["context"]).resolve()
    assert (build / server["build"]["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    assert int(server["stop_grace_period"].rstrip("s")) > 43


def test_the_superset_of_the_compose_example_is_the_one_that_is_tested() -> None:
    tested = (ROOT / "tests" / "clients" / "sources" / "superset.txt").read_text().split()[0].partition("==")[2]
    assert argument(DEPLOY / "compose" / "superset.Dockerfile", "FROM") == f"apache/superset:{tested}"


def test_the_policy_of_the_compose_example_is_one() -> None:
    policy = load_policy(DEPLOY / "compose" / "policy" / "policy.yaml")
    assert (
        policy.ledger_url().startswith("postgresql://dpsql@ledger/") and policy.source_path() == "/data/clinic.parquet"
    )


def test_the_compose_example_uses_commands_that_exist() -> None:
    from dpsql.frontends.cli import cli

    text = (DEPLOY / "compose" / "README.md").read_text()
    commands = [shlex.split(line) for line in re.findall(r"compose run --rm dpsql (.*)", text)]
    assert len(commands) == 2
    for words in commands:
        group: Any = cli
        while isinstance(group, click.Group):
            group = group.get_command(click.Context(group), words.pop(0))
        group.make_context(group.name, words, resilient_parsing=False)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder on disk: in the container /dev/shm is another one."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        yield Path(place)


@pytest.fixture
def confined(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """`dpsql serve` on a read-only root without capabilities, as in the container; only the state can be written."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    monkeypatch.setenv("DPSQL_STATE", str(state))
    policy = build_demo("nafld", folder)
    policy.write_text(re.sub(r"sqlite:///", "sqlite:///state/", policy.read_text()))
    open_session(policy, create_ledger=True).close()
    loaded = load_policy(policy)
    with open_ledger(loaded.ledger_url(), loaded.dataset) as ledger:
        open_logins(ledger, loaded).add("research", PASSWORD)
    words = json.loads(argument(DEPLOY / "Dockerfile", "CMD"))
    words[words.index("--policy") + 1] = str(policy)
    words[words.index("--listen") + 1] = words[words.index("--status") + 1] = "127.0.0.1:0"
    place = shlex.quote(str(state))
    inside = (
        f"mount --make-rprivate / && mount --bind {place} {place} && mount -o remount,ro,bind / && "
        "mount -t tmpfs -o size=64m tmpfs /dev/shm && "
        "exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "
        f"{shlex.join([sys.executable, '-m', 'dpsql', *words])}"
    )
    environment = {**os.environ, "DPSQL_LOG": "stderr", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nowhere"}
    command = ["unshare", "--mount", "sh", "-c", inside]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield process, state
    finally:
        process.kill()
        process.wait()


def _may_unshare() -> bool:
    tried = "mount --make-rprivate / && mount -o remount,ro,bind / && setpriv --bounding-set=-all --inh-caps=-all true"
    return (
        shutil.which("setpriv") is not None
        and not subprocess.run(["unshare", "--mount", "sh", "-c", tried], capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(not _may_unshare(), reason="this user may not make mount namespaces")
def test_the_server_needs_no_more_than_its_state_on_a_read_only_root(
    confined: tuple[subprocess.Popen[str], Path],
) -> None:
    process, state = confined
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("serving nafld on 127.0.0.1:"), line + process.stderr.read()
    port = int(line.split("127.0.0.1:")[1].split()[0])
    client = logged_in(port)
    assert len(rows_of(client.query("SELECT sex, COUNT(*) AS n, AVG(age) FROM patients GROUP BY sex"))) == 2
    assert rows_of(client.query("SELECT relname FROM pg_class WHERE relname = 'patients'")) == [[b"patients"]]
    process.terminate()
    written = process.stderr.read()
    assert process.wait(240) == 0
    events = [
        json.loads(line)["event"] for line in written.splitlines() if line.startswith('{"time"') and "event" in line
    ]
    assert {"login", "charge"} <= set(events) and not (state / "audit.log").exists()
