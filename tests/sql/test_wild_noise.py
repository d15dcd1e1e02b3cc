"""Whatever numbers are released, everything that is shown of an answer can be computed: nothing fails after the charge."""

import pickle
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from support.corpus_traits import SPREAD
from support.exact_session import exact_session
from support.gates import NoiselessGate
from support.neighbouring_hospitals import SCHEMAS, crowd, together
from support.places import policy

from dpsql.noise.group_layout import Groups, Int128
from dpsql.noise.rank_histograms import Histograms
from dpsql.privacy.mechanisms.contract import Constant, Law, Noise, Selection
from dpsql.session.session import Session
from sql.corpus import ACCEPTED, Case

QUICK = 64
"""Every such query is tried by default, every query with noise of one sign among the slow tests, and at night with both."""
FAR = 10_000
"""Deviations of noise that no sampler reaches."""


class WildGate(NoiselessGate):
    """A gate that adds noise of `size` deviations to every number, shows all or no private keys, and chooses the last cell or the
    first."""

    def __init__(self, size: int) -> None:
        super().__init__(1)
        self.size = size

    def select(self, name: str, counts: Int128, selection: Selection, groups: Groups) -> NDArray[np.bool_]:
        return np.full(groups.count, self.size > 0)

    def release_numbers(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        return np.full(groups.count, histograms.cells - 1 if self.size > 0 else 0, dtype=np.int64)

    def _draw(self, noise: Noise, count: int) -> NDArray[np.int64] | None:
        if isinstance(noise, Constant):
            return None
        return np.full(count, int(np.clip(self.size * noise.standard_deviation(), -(2.0**60), 2.0**60)), np.int64)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool, int], Session]:
    """Return a function that opens a session, where rows are privacy units if its first argument is true, with noise of a size."""

    @lru_cache(maxsize=4)
    def opened(rows: bool, size: int) -> Session:
        connection = duckdb.connect(config={"threads": 1})
        for table, schema in SCHEMAS.items():
            connection.register("rows", pa.Table.from_pylist(together(crowd(), {}).get(table, []), schema))
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM rows")
        ledger = tmp_path_factory.mktemp("ledger") / f"{uuid4().hex}.db"
        return exact_session(policy("hospital_rows" if rows else "hospital"), connection, ledger, WildGate(size))

    return opened


def cases() -> list[Any]:
    def marks(number: int, case: Case, size: int) -> Any:
        by_day = pytest.mark.slow if case in SPREAD and (size > 0) == (number % 2 == 0) else pytest.mark.nightly
        return () if number % QUICK == 0 else by_day

    return [
        pytest.param(case, size, id=f"{case.id}-{size}", marks=marks(number, case, size))
        for number, case in enumerate(ACCEPTED)
        for size in (FAR, -FAR)
    ]


@pytest.mark.parametrize(("case", "size"), cases())
def test_everything_shown_can_be_computed(case: Case, size: int, sessions: Callable[[bool, int], Session]) -> None:
    session = sessions(case.mark("policy") == "rows", size)
    session.execute("RESET ALL")
    for line in [*case.marks.get("set", []), "dp.unknown = null"]:
        session.execute(line if line.upper().startswith("SET") else f"SET {line}")
    release = session.execute(case.sql, case.parameters)
    assert release.to_arrow(bars=True).num_rows == len(release) == len(list(release.rows()))
    assert len(release.described) == len(release.columns) and list(release.measured) is not None
    assert repr(release) and release._repr_html_() and list(release.facts) is not None
    assert pickle.loads(pickle.dumps(release)).remarks == release.remarks
