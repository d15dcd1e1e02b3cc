"""Dataclasses whose methods are written at their first use: a command loads 300 classes, and calls the methods of few of them.

`dataclasses.dataclass` compiles up to six methods of each class when its module is loaded: a fifth of the processor time of
`dpsql query`. Here a class has its fields at once, and each method is written when it is first called. Whatever `dataclasses`
offers for its own classes (fields, replace, subclasses) holds for these too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

__all__ = ["MISSING", "asdict", "dataclass", "field", "fields", "hashed_once", "is_dataclass", "replace"]

Kind = TypeVar("Kind", bound=type)
_FIELDS, _PARAMETERS, _MATCHED = "__dataclass_fields__", "__dataclass_params__", "__match_args__"
_HASHED = """
def __hash__(self):
 parts = self.__dict__
 if '#hash' not in parts:
  parts['#hash'] = hash(({}))
 return parts['#hash']
"""


def _record(cls: type, frozen: bool, eq: bool, repr: bool) -> type:
    """Give a class its fields, and methods that are written at their first use. A class keeps the methods that it defines."""
    defined = dict(vars(cls))
    declared = cls.__annotations__
    twin = _twin(cls, declared, {name: defined[name] for name in declared if name in defined})
    for name in declared:
        if isinstance(defined.get(name), dataclasses.Field):
            if hasattr(twin, name):
                setattr(cls, name, getattr(twin, name))
            else:
                delattr(cls, name)
    parts = [getattr(base, _FIELDS, {}) for base in (*cls.__mro__[:0:-1], twin)]
    setattr(cls, _FIELDS, {name: entry for part in parts for name, entry in part.items()})
    parameters = getattr(twin, _PARAMETERS)
    parameters.init, parameters.frozen, parameters.eq, parameters.repr = True, frozen, eq, repr
    if hasattr(parameters, "match_args"):  # from Python 3.12 on
        parameters.match_args = True
    setattr(cls, _PARAMETERS, parameters)
    setattr(cls, _MATCHED, tuple(entry.name for entry in fields(cls) if entry.init and not entry.kw_only))
    methods = {name: _later(cls, name) for name in ("__init__", *["__repr__"] * repr, *["__eq__"] * eq)}
    if frozen:
        methods |= {"__setattr__": _assigned, "__delattr__": _deleted}
    for name in methods.keys() - defined.keys():
        setattr(cls, name, methods[name])
    if eq and (defined.get("__hash__") is None and ("__hash__" not in defined or "__eq__" in defined)):
        cls.__hash__ = _later(cls, "__hash__") if frozen else None  # type: ignore[assignment]
    return cls


def _twin(cls: type, declared: Mapping[str, Any], space: Mapping[str, Any], **methods: bool) -> type:
    """Return a class of the standard library with these fields and methods, and without bases."""
    words = {"__annotations__": dict(declared), "__module__": cls.__module__, "__doc__": cls.__doc__ or cls.__name__}
    twin = type(cls.__name__, (), {**space, **words})
    return dataclasses.dataclass(**{"init": False, "repr": False, "eq": False, "match_args": False, **methods})(twin)


def _later(cls: type, name: str) -> Callable[..., Any]:
    """Return a method that replaces itself by the written one when it is called."""

    def first(self: Any, *arguments: Any, **named: Any) -> Any:
        method = _initial(cls) if name == "__init__" else _of_twin(cls, name)
        method.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, method)
        return method(self, *arguments, **named)

    first.__name__, first.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return first


def _of_twin(cls: type, name: str) -> Any:
    entries = {entry.name: entry for entry in fields(cls)}
    methods = {"repr": name == "__repr__", "eq": name == "__eq__", "unsafe_hash": name == "__hash__"}
    return vars(_twin(cls, {name: entry.type for name, entry in entries.items()}, entries, **methods))[name]


def _initial(cls: type) -> Any:
    """Return `__init__` in one piece: `dataclasses` compiles three functions to give a frozen class this one."""
    space: dict[str, Any] = {"_set": object.__setattr__, "_absent": MISSING}
    words, by_name, lines = ["self"], ["*"], list[str]()
    for entry in fields(cls):
        name, fresh = entry.name, entry.default_factory is not MISSING
        space |= {f"_default_{name}": entry.default, f"_make_{name}": entry.default_factory}
        if entry.init:
            default = "=_absent" if fresh else "" if entry.default is MISSING else f"=_default_{name}"
            (by_name if entry.kw_only else words).append(name + default)
        if entry.init or fresh:
            value = f"_make_{name}()" if fresh else name
            value += f" if {name} is _absent else {name}" if fresh and entry.init else ""
            is_frozen = getattr(cls, _PARAMETERS).frozen
            lines.append(f"_set(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    lines += ["self.__post_init__()"] * hasattr(cls, "__post_init__")
    words += by_name if len(by_name) > 1 else []
    exec(f"def __init__({', '.join(words)}):\n " + "\n ".join(lines or ["pass"]), space)
    return space["__init__"]


def hashed_once(cls: Kind) -> Kind:
    """Let each value of a frozen class keep its hash: deep values serve as keys again and again. What a value keeps beside its
    fields (`#`) is not pickled, because texts have another hash in another process."""
    space: dict[str, Any] = {}
    exec(_HASHED.format("".join(f"self.{entry.name}, " for entry in fields(cls) if entry.compare)), space)
    for name, method in (("__hash__", space["__hash__"]), ("__getstate__", _fields_of)):
        setattr(cls, name, method)
    return cls


def _fields_of(self: Any) -> dict[str, Any]:
    return {name: part for name, part in vars(self).items() if name[0] != "#"}


def _assigned(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _deleted(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


@cache
def _copied(kind: Any) -> frozenset[str]:
    """Return the fields by which values of a class are copied; none unless its constructor, written here, only sets them."""
    is_plain = kind.__init__.__module__ in (__name__, None) and not hasattr(kind, "__post_init__")
    is_plain = is_plain and kind.__setattr__ in (object.__setattr__, _assigned)
    return frozenset(entry.name for entry in fields(kind) if all(each.init for each in fields(kind)) and is_plain)


if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:

    def replace(value, /, **changes):
        """Return a copy with other fields, as `dataclasses.replace` does, in half of its time: a question makes 60 copies."""
        names = _copied(type(value))
        if not names or not changes.keys() <= names:
            return dataclasses.replace(value, **changes)
        copy, parts = object.__new__(type(value)), value.__dict__
        # By one update, so that its fields are then read fast.
        copy.__dict__.update((parts if len(parts) == len(names) else {name: parts[name] for name in names}) | changes)
        return copy

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, **further):
        """Return the class with fields, as `dataclasses.dataclass` does, which makes those with further options (order, slots). A
        frozen class refuses every assignment."""
        if further:
            return dataclasses.dataclass(cls, frozen=frozen, eq=eq, repr=repr, **further)
        return (lambda cls: _record(cls, frozen, eq, repr)) if cls is None else _record(cls, frozen, eq, repr)
