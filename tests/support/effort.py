"""How much the tests do: a night's work where DPSQL_NIGHTLY is set, otherwise what a change has time for.

A test that a change has no time for at all, or a case of it, is marked with `nightly`; `pytest -m nightly` runs these.
"""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from typing import Any, TypeVar

import pytest

NIGHTLY = os.environ.get("DPSQL_NIGHTLY") == "1"
Case = TypeVar("Case")


def by_day(chosen: Container[Case], cases: Sequence[Case]) -> list[Any]:
    """Return cases for `parametrize`, of which those that are not `chosen` run at night alone."""
    return [case if case in chosen else night(case) for case in cases]


def night(*values: Any) -> Any:
    """Return a case for `parametrize` that runs at night alone."""
    return pytest.param(*values, marks=pytest.mark.nightly)
