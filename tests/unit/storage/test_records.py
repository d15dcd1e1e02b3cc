"""Records equal the dataclasses of the standard library in everything but the time at which their methods are written."""

import copy
import dataclasses
import functools
import inspect
import itertools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from dpsql.storage.records import dataclass as record
from dpsql.storage.records import hashed_once, replace

OPTIONS = [
    {"frozen": frozen, "eq": eq, "repr": shown} for frozen, eq, shown in itertools.product((True, False), repeat=3)
]
KINDS: dict[str, Callable[[], Any]] = {
    "plain": lambda: None,
    "default": lambda: dataclasses.field(default=7),
    "not compared": lambda: dataclasses.field(default=7, compare=False, repr=False),
    "made": lambda: dataclasses.field(default_factory=lambda: (1, 2)),
    "made inside": lambda: dataclasses.field(init=False, default_factory=lambda: 3),
    "by name": lambda: dataclasses.field(kw_only=True),
    "by name, default": lambda: dataclasses.field(default=5, kw_only=True),
}
LISTS = st.lists(st.sampled_from(sorted(KINDS)), max_size=5).map(
    lambda kinds: sorted(kinds, key=lambda kind: kind != "plain")
)


def _class(decorate: Any, kinds: list[str], base: type, options: dict[str, bool], start: int, post: bool) -> Any:
    names = [f"f{start + number}" for number in range(len(kinds))]
    space: dict[str, Any] = {"__annotations__": dict.fromkeys(names, "int"), "__module__": __name__}
    space |= {name: field for name, kind in zip(names, kinds, strict=True) if (field := KINDS[kind]()) is not None}
    if post:
        space["__post_init__"] = lambda self: object.__setattr__(self, "after", len(self.__dict__))
    return decorate(**options)(type("Example", (base,), space))


def _told(work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What happens: the outcome, or the error and its words."""
    try:
        return work(*arguments, **named)
    except (TypeError, AttributeError, ValueError) as error:
        return type(error), str(error)


def _copies(copied: Any, one: Any, changes: list[dict[str, Any]]) -> list[Any]:
    return [_told(lambda each: (vars(copied(one, **each)), type(copied(one, **each))), each) for each in changes]


def _seen(cls: Any, fields: list[str]) -> list[Any]:
    """Everything that a class and its objects show, in an order in which each method is once the first."""
    values = [*range(1, len(fields) + 1)]
    wanted = [field for field in dataclasses.fields(cls) if field.init]
    by_name = {field.name: value for field, value in zip(wanted, values, strict=False)}
    places = sum(not field.kw_only for field in wanted)
    named = {field.name: 9 for field in wanted if field.kw_only}
    build = functools.partial(cls, **by_name)
    seen: list[Any] = [_told(lambda *values: vars(cls(*values, **named)), *range(count)) for count in range(places + 2)]
    seen += [
        _told(lambda *values: repr(cls(*values, **named)).split(" at 0x")[0], *range(count))
        for count in range(places + 1)
    ]
    one, other = build(), build()
    seen += [one == other, one != other, _told(lambda: hash(one) == hash(other)), one == 1, one.__eq__(1)]
    different = [_told(dataclasses.replace, one, **{field.name: 50}) for field in wanted]
    seen += [vars(each) for each in different] + [one == each for each in different]
    one.__dict__["kept"] = 1  # what a value keeps besides its fields is not copied
    changes: list[dict[str, Any]] = [{}, {"other": 1}, *({field.name: 50} for field in dataclasses.fields(cls))]
    assert _copies(replace, one, changes) == _copies(dataclasses.replace, one, changes)
    del one.__dict__["kept"]
    seen += [_told(lambda each: hash(one) == hash(each), each) for each in different]
    seen += [vars(copy.copy(one)), copy.copy(one) == one, dataclasses.asdict(one), cls.__match_args__]
    seen += [_told(lambda: setattr(one, fields[0], 5)) if fields else "", vars(one)]
    seen += [_told(lambda: delattr(one, fields[0])) if fields else "", vars(one)]
    seen += [(field.name, field.type, field.init, field.compare, field.kw_only) for field in dataclasses.fields(cls)]
    seen += [[name for name in fields if name in vars(cls)], cls.__hash__ is None, str(cls.__dataclass_params__)]
    parameters = [(each.name, each.kind) for each in inspect.signature(cls.__init__).parameters.values()]
    return [*seen, vars(cls)["__init__"].__qualname__, parameters]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@given(own=LISTS, inherited=LISTS, post=st.booleans())
def test_records_are_dataclasses(options: dict[str, bool], own: list[str], inherited: list[str], post: bool) -> None:
    sides = []
    for decorate in (record, dataclasses.dataclass):
        start = _class(decorate, inherited, object, options, 0, post)
        kinds = [kind for kind in own if kind != "plain" or set(inherited) <= {"plain", "by name"}]
        cls = _class(decorate, kinds, start, options, len(inherited), False)
        names = [f"f{number}" for number in range(len(inherited) + len(kinds))]
        sides.append([*_seen(cls, names), *_seen(start, names[: len(inherited)])])
    assert sides[0] == sides[1]


@record(frozen=True)
class Kept:
    """Frozen, with a method of its own, and a value computed once."""

    name: str
    size: int = 1

    def __hash__(self) -> int:
        return 5

    @functools.cached_property
    def double(self) -> int:
        return self.size * 2


def test_a_class_keeps_its_own_methods_and_cached_values() -> None:
    kept = Kept("a", size=3)
    assert (hash(kept), kept.double, kept.double, Kept.__doc__) == (5, 6, 6, Kept.__doc__)


def test_objects_that_no_constructor_made_are_compared_by_their_fields() -> None:
    """Pickles and copies call no constructor: comparison must not depend on whether one was called before."""

    @record(frozen=True)
    class Local:
        first: int

    bare = [Local.__new__(Local), Local.__new__(Local)]
    for each in bare:
        each.__dict__["first"] = 1
    assert bare[0] == bare[1] and len(set(bare)) == 1
    assert pickle.loads(pickle.dumps(Kept("a"))) == Kept("a")


def test_values_with_a_constructor_of_their_own_are_copied_by_it() -> None:
    @record
    class Doubling:
        first: int

        def __init__(self, first: int) -> None:
            self.first, self.double = first, 2 * first

    assert replace(Doubling(1), first=2).double == 4


@hashed_once
@record(frozen=True)
class Hashed:
    """A value of which one field is not compared."""

    name: str
    parts: tuple[Any, ...] = ()
    note: str = dataclasses.field(default="", compare=False)


def test_a_value_is_hashed_once_and_travels_without_its_hash() -> None:
    class Part:
        hashed = 0

        def __hash__(self) -> int:
            self.hashed += 1
            return 5

    part = Part()
    first = Hashed("a", (part,), "first")
    assert [hash(first) for _ in range(3)] == [hash(Hashed("a", (part,), "second"))] * 3 and part.hashed == 2
    plain = Hashed("a", (1,))
    assert hash(plain) != hash(replace(plain, name="b")) and hash(dataclasses.replace(plain, name="b")) != hash(plain)
    sent = pickle.loads(pickle.dumps(plain))
    assert vars(sent) == {"name": "a", "parts": (1,), "note": ""} == vars(copy.copy(plain)) != vars(plain)
    assert sent == plain and hash(sent) == hash(plain)


def test_the_standard_library_extends_records() -> None:
    @dataclasses.dataclass(frozen=True)
    class Wider(Kept):
        more: int = 2

    assert Wider("a", 1, 3) == Wider("a", more=3) != Kept("a")
    with pytest.raises(dataclasses.FrozenInstanceError, match="more"):
        Wider("a").more = 4  # type: ignore[misc]


def test_the_standard_library_makes_classes_with_further_options() -> None:
    @record(frozen=True, order=True, slots=True)
    class Place:
        x: int

    assert Place(1) < Place(2) and not hasattr(Place(1), "__dict__")


def test_threads_that_use_a_class_first_agree() -> None:
    for _ in range(20):
        cls = _class(record, ["plain", "default"], object, {"frozen": True}, 0, False)
        start, made = threading.Barrier(4), list[Any]()

        def use(cls: Any = cls, start: threading.Barrier = start, made: list[Any] = made) -> None:
            start.wait()
            made.append(cls(1))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 4 and len(set(made)) == 1
