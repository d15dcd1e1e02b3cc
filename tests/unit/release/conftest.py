"""One sandbox for all tests of this folder, as in a running process."""

from collections.abc import Iterator

import pytest

from dpsql.release.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    found = Sandbox()
    yield found
    found.close()
