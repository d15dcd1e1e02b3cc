"""A command makes its classes in less time, and they behave as those that Python makes."""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import pytest

from dpsql.frontends.cli import QUICK_METHODS


def _empty() -> tuple[Any, Any, Any]:
    @dataclasses.dataclass(frozen=True)
    class Example:
        pass

    return Example(), Example(), Example()


def _one() -> tuple[Any, Any, Any]:
    @dataclasses.dataclass(frozen=True)
    class Example:
        first: Any

    return Example("a"), Example("a"), Example(1)


def _several() -> tuple[Any, Any, Any]:
    @dataclasses.dataclass(frozen=True)
    class Base:
        first: Any
        hidden: int = dataclasses.field(default=3, repr=False, compare=False)

    @dataclasses.dataclass(frozen=True)
    class Example(Base):
        inner: Any = None

    return Example("a", 4, Example("b")), Example("a", 5, Example("b")), Example("a", 5, (1, 2))


def _behaviour(make: Callable[[], tuple[Any, Any, Any]]) -> list[object]:
    value, equal, other = make()
    seen: list[object] = [repr(value), repr(other), value == equal, value == other, hash(value) == hash(equal)]
    seen += [hash(value), {value: 1}.get(equal), len({value, equal, other})]
    for name in ("first", "inner", "further"):
        for change in (lambda name=name: setattr(value, name, 1), lambda name=name: delattr(value, name)):
            with pytest.raises(dataclasses.FrozenInstanceError) as error:
                change()
            seen.append(str(error.value))
    return seen


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="later versions of Python are faster by themselves")
@pytest.mark.parametrize("make", [_empty, _one, _several])
def test_classes_that_are_made_quickly_behave_as_usual(
    make: Callable[[], tuple[Any, Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = _behaviour(make)
    for name, quick in QUICK_METHODS.items():
        monkeypatch.setattr(dataclasses, name, quick)
    assert _behaviour(make) == usual
