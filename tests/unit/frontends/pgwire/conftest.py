"""A clinic that the tests of a file serve in their own process, under its state folder."""

from collections.abc import Iterator

import pytest
from support.served_clinic import Served, build_clinic


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = build_clinic(tmp_path_factory.mktemp("clinic"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSQL_STATE", str(found.state))
        yield found
