"""The extent of the tests: a subset by default, everything in a nightly run, where DPSQL_NIGHTLY is set.

A test or case that is too slow for every change is marked `nightly`; `pytest -m nightly` runs these.
"""

import os
from collections.abc import Container, Sequence
from typing import Any, TypeVar

import pytest

NIGHTLY = os.environ.get("DPSQL_NIGHTLY") == "1"
Case = TypeVar("Case")


def by_day(chosen: Container[Case], cases: Sequence[Case]) -> list[Any]:
    """Return cases for `parametrize`; those that are not `chosen` run only at night."""
    return [case if case in chosen else night(case) for case in cases]


def slow(*values: Any) -> Any:
    """Return a case for `parametrize` that runs with the slow tests alone."""
    return pytest.param(*values, marks=pytest.mark.slow)


def night(*values: Any) -> Any:
    """Return a case for `parametrize` that runs only at night."""
    return pytest.param(*values, marks=pytest.mark.nightly)
