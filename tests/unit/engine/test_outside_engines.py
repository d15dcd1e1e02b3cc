"""An engine of another distribution: found by its entry point, loaded only for a policy that names it, and held to the contract."""

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Error
from dpsql.frontends.admin.check import check_policy_file
from dpsql.policy import policy_problems
from dpsql.policy.source_kinds import outside_engine, source_kind
from dpsql.session.session import open_session
from dpsql.testing import EngineContract, Loaded, contract_policy
from unit.engine.test_contract import BROKEN, SLOW, fill

POLICY = """\
dataset: tiny
source: tiny://data.duckdb
privacy_unit: {table: people, column: id}
budget: {epsilon: 10, delta: 1e-6, accountant: pure}
per_query: {epsilon: 10}
ledger: sqlite:///tiny-ledger.db
tables:
  people: {max_rows: 1, columns: {id: {type: integer, nullable: false}, height: {type: real, lower: 0, upper: 3}}}
"""


def install(folder: Path, name: str, entry: str) -> None:
    """Write what an installed distribution leaves beside its modules."""
    metadata = folder / f"{name.replace('-', '_')}-1.5.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (metadata / "entry_points.txt").write_text(f"[dpsql.engines]\ntiny = {entry}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder of installed distributions; `tiny_engine` is the one beside this file."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "tiny"))
    outside_engine.cache_clear()
    yield folder
    outside_engine.cache_clear()
    sys.modules.pop("tiny_engine", None)


@pytest.fixture
def place(site: Path, tmp_path: Path) -> Path:
    install(site, "dpsql-tiny", "tiny_engine:ENGINE")
    with duckdb.connect(str(tmp_path / "data.duckdb")) as connection:
        fill(connection)
    (tmp_path / "tiny.yaml").write_text(POLICY)
    return tmp_path / "tiny.yaml"


class TestTiny(EngineContract):
    """What `dpsql.testing` asks of every engine."""

    @pytest.fixture
    def source(self, place: Path) -> Iterator[Loaded]:
        policy = contract_policy(place.parent, source="tiny://data.duckdb")
        path = place.parent / "data.duckdb"
        engine = open_engine(policy)

        def execute(statement: str) -> None:
            new = path.with_suffix(".new")
            with duckdb.connect(str(new)) as connection:
                fill(connection)
                connection.execute(statement)
            new.rename(path)

        yield Loaded(policy, engine, SLOW, BROKEN, execute)
        engine.close()


def test_it_is_loaded_for_a_policy_that_names_it_alone(place: Path) -> None:
    assert policy_problems(POLICY.replace("tiny://", "duckdb:///")) == [] and "tiny_engine" not in sys.modules
    assert policy_problems(POLICY) == [] and "tiny_engine" in sys.modules
    kind = source_kind("tiny://data.duckdb")
    assert (kind.scheme, kind.outside, kind.is_server) == ("tiny", True, True)


def test_it_answers_and_check_names_its_distribution(place: Path) -> None:
    findings = check_policy_file(place, create_ledger=True)
    assert (findings.problems, findings.status) == ([], 0)
    assert any("the engine of dpsql-tiny 1.5, which is trusted code" in note for note in findings.notes)
    with open_session(place) as session:
        (count,) = session.execute("SELECT COUNT(*) AS n FROM people").table.column("n").to_pylist()
    assert abs(count - 3) < 20


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (("no_such_module:ENGINE",), "loading it failed"),
        (("tiny_engine:Tiny",), "is no OutsideEngine of tiny://"),
        (("tiny_engine:ENGINE", "tiny_engine:ENGINE"), "more than one provides it"),
    ],
)
def test_what_is_no_engine_is_refused(site: Path, entries: tuple[str, ...], problem: str) -> None:
    for number, entry in enumerate(entries):
        install(site, f"dpsql-tiny-{number}", entry)
    with pytest.raises(Error) as refused:
        policy_problems(POLICY)
    assert refused.value.slug == "engine_outside" and problem in refused.value.message
    assert "dpsql-tiny-0 1.5" in refused.value.message


def test_a_scheme_of_dpsql_is_never_given_away(site: Path) -> None:
    metadata = site / "thief-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: thief\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[dpsql.engines]\nduckdb = tiny_engine:ENGINE\n")
    assert outside_engine("duckdb") is None and "tiny_engine" not in sys.modules
