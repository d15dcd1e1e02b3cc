"""Functions and operators of JSON and JSONB."""

from __future__ import annotations

import json
import re
from typing import Any

from dpsql.frontends.pgwire.constants import bounds, conversions
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.resolve import function
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said
from dpsql.frontends.pgwire.constants.types import Json


class Raw(str):
    """A JSON text as it stands in a json value."""


_SCAN = json.JSONDecoder()


def _blank(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\n\r":
        position += 1
    return position


def items(text: str) -> list[tuple[str | None, Raw]]:
    """Return the members of a JSON object or array with the texts of their values, as they stand; keys of an array are None."""
    position = _blank(text, 0)
    opening = text[position]
    gathered, position = list[tuple[str | None, Raw]](), _blank(text, position + 1)
    while text[position] not in "]}":
        key = None
        if opening == "{":
            key, position = _SCAN.raw_decode(text, position)
            position = _blank(text, _blank(text, position) + 1)
        _, end = _SCAN.raw_decode(text, position)
        gathered.append((key, Raw(text[position:end])))
        position = _blank(text, end)
        if text[position] == ",":
            position = _blank(text, position + 1)
    return gathered


def kind(text: str) -> str:
    """Return the kind of a JSON text's value."""
    first = text.strip()[:1]
    return {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}.get(
        first, "number"
    )


def as_text(value: Any) -> str | None:
    """Return a JSON value as text, which `->>` has: a string without its quotes, null as NULL."""
    if isinstance(value, Json):
        inner = value.value
        return inner if isinstance(inner, str) else None if inner is None else t.json_text(inner)
    if value is None or kind(value) == "null":
        return None
    return str(json.loads(value)) if kind(value) == "string" else str(value)


def _member(value: Any, key: Any) -> Any:
    """Return the member of a JSON value by its key or index; None if there is none."""
    if isinstance(value, Json):
        inner = value.value
        if isinstance(inner, dict) and isinstance(key, str):
            return Json(inner[key]) if key in inner else None
        if isinstance(inner, list) and isinstance(key, int) and -len(inner) <= key < len(inner):
            return Json(inner[key])
        return None
    if kind(value) == "object" and isinstance(key, str):
        return next((member for name, member in reversed(items(value)) if name == key), None)
    if kind(value) == "array" and isinstance(key, int):
        members = items(value)
        return members[key][1] if -len(members) <= key < len(members) else None
    return None


def _path(value: Any, path: list[Any]) -> Any:
    for key in path:
        if value is None or key is None:
            return None
        is_list = isinstance(value.value, list) if isinstance(value, Json) else kind(value) == "array"
        if is_list and not re.fullmatch(r"[+-]?\d{1,9}", key):
            return None
        value = _member(value, int(key) if is_list else key)
    return value


def _pair(key: str, value: Any, type_: str) -> t.Record:
    return t.Record((key, value), ("text", type_), ("key", "value"))


for _type in ("json", "jsonb"):
    for _key in ("text", "int4"):
        function(f"->({_type}, {_key}) {_type}")(_member)
        function(f"->>({_type}, {_key}) text")(lambda v, key: as_text(_member(v, key)))
    function(f"#>({_type}, _text) {_type}")(_path)
    function(f"#>>({_type}, _text) text")(lambda v, path: as_text(_path(v, path)))
    function(f"{_type}_extract_path({_type}, *text) {_type}")(lambda v, *path: _path(v, list(path)))
    function(f"{_type}_extract_path_text({_type}, *text) text")(lambda v, *path: as_text(_path(v, list(path))))
    function(f"{_type}_typeof({_type}) text")(
        lambda v: conversions.json_kind(v.value) if isinstance(v, Json) else kind(v)
    )
    function(f"{_type}_array_length({_type}) int4")(lambda v: len(_elements(v, "get array length of")))
    function(f"{_type}_array_elements({_type}) *{_type}")(lambda v: _elements(v, "json_array_elements"))
    function(f"{_type}_array_elements_text({_type}) *text")(
        lambda v: [as_text(item) for item in _elements(v, "json_array_elements_text")]
    )
    function(f"{_type}_object_keys({_type}) *text")(
        lambda v, name=_type: [key for key, _ in _members(v, f"{name}_object_keys")]
    )
    function(f"{_type}_each({_type}) *record", shape=(("key", "text"), ("value", _type)))(
        lambda v, name=_type: [_pair(*member, name) for member in _members(v, f"{name}_each")]
    )
    function(f"{_type}_each_text({_type}) *record", shape=(("key", "text"), ("value", "text")))(
        lambda v, name=_type: [_pair(key, as_text(member), "text") for key, member in _members(v, f"{name}_each_text")]
    )
    function(f"{_type}_strip_nulls({_type}) {_type}")(
        lambda v: Json(_without_nulls(v.value)) if isinstance(v, Json) else _strip(v)
    )
function("array_to_json(anyarray, bool?) json; row_to_json(record, bool?) json", typed=True)(
    lambda c, types, v, lines=False: (
        None if v is None or lines is None else to_json(c, v, types[0], ",\n " if lines else ",")
    )
)
function("to_json(anyelement) json", typed=True)(lambda c, types, v: None if v is None else to_json(c, v, types[0]))
function("to_jsonb(anyelement) jsonb", typed=True)(
    lambda c, types, v: None if v is None else Json(t.read_json(to_json(c, v, types[0])))
)


def _elements(value: Any, words: str) -> list[Any]:
    gathered = conversions.json_kind(value.value) if isinstance(value, Json) else kind(value)
    if gathered != "array":
        if isinstance(value, Json) and "elements" in words:
            raise said("22023", f"cannot extract elements from {'an object' if gathered == 'object' else 'a scalar'}")
        words = words if " " in words else f"call {words} on"
        kind_ = "non-array" if gathered == "object" or isinstance(value, Json) else "scalar"
        raise said("22023", f"cannot {words} a {kind_}")
    return [Json(item) for item in value.value] if isinstance(value, Json) else [member for _, member in items(value)]


def _members(value: Any, name: str) -> list[tuple[str, Any]]:
    gathered = conversions.json_kind(value.value) if isinstance(value, Json) else kind(value)
    if gathered != "object":
        label = "an array" if gathered == "array" else "a scalar"
        raise said(
            "22023", f"cannot call {name} on {label}" if "keys" in name else f"cannot call {name} on a non-object"
        )
    if isinstance(value, Json):
        return [(key, Json(value.value[key])) for key in sorted(value.value, key=_key_order)]
    return [(str(key), member) for key, member in items(value)]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _strip(text: str) -> str:
    if kind(text) == "object":
        return (
            "{"
            + ",".join(
                f"{t.quoted_json(str(key))}:{_strip(member)}" for key, member in items(text) if kind(member) != "null"
            )
            + "}"
        )
    return "[" + ",".join(_strip(member) for _, member in items(text)) + "]" if kind(text) == "array" else text.strip()


def record_values(value: Any, columns: list[tuple[str, str]], many: bool, context: t.Context) -> list[tuple[Any, ...]]:
    """Return the members of a JSON object, or of each of an array, as values of these columns."""
    if value is None:
        return []
    rows = list[tuple[Any, ...]]()
    for part in _elements(value, "call json_to_recordset on") if many else [value]:
        members = dict(_members(part, "json_to_record"))
        texts = [(as_text(members[name]) if name in members else None, type_) for name, type_ in columns]
        rows.append(tuple(None if text is None else _of_type(text, type_, context) for text, type_ in texts))
    return rows


def _of_type(text: str, type_: str, context: t.Context, depth: int = 1) -> Any:
    """Return the text of a member as a value of a type; the elements of an array are values of its type."""
    if not type_.startswith("_"):
        return t.read(text, type_, context)
    if depth > 6 or kind(text) != "array":
        raise Elsewhere
    inner = [item for _, item in items(text)]
    element = type_ if inner and kind(inner[0]) == "array" else type_[1:]
    values = [
        None if (item := as_text(each)) is None else _of_type(item, element, context, depth + 1) for each in inner
    ]
    if element == type_ and len({len(value or ()) for value in values}) > 1:
        raise Elsewhere
    return values


@function("is:json(text, text, bool) bool; is:json(json, text, bool) bool; is:json(jsonb, text, bool) bool")
def _is_json(value: Any, expected: str, is_unique: bool) -> bool:
    """Return whether a text is JSON of a kind, if expected with no key twice in an object."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if is_unique and len(dict(pairs)) < len(pairs):
            raise KeyError
        return dict(pairs)

    text = t.json_text(value.value) if isinstance(value, Json) else value
    try:
        t.read_json(text)
        json.loads(text, object_pairs_hook=members)
    except (ValueError, KeyError, t.BadJson):
        return False
    actual = kind(text)
    return expected in ("value", actual) or (expected == "scalar" and actual not in ("object", "array"))


# --- building ---------------------------------------------------------------------------------------------------------


def to_json(context: t.Context, value: Any, type_: str, between: str = ",") -> str:
    """Return a value as a JSON text. `between`: what stands between the members of an array or a row."""
    if value is None:
        return "null"
    if isinstance(value, list):
        element = type_.removeprefix("_")
        return (
            "["
            + between.join(to_json(context, item, type_ if isinstance(item, list) else element) for item in value)
            + "]"
        )
    if isinstance(value, t.Record):
        pairs = (
            f"{t.quoted_json(value.names[k] if value.names else f'f{k + 1}')}:{to_json(context, v, ty)}"
            for k, (v, ty) in enumerate(zip(value.values, value.types, strict=True))
        )
        return "{" + between.join(pairs) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = t.write(value, type_, context)
    if type_ in ("json", "jsonb") or (type_ in t.NUMBERS and text not in ("NaN", "Infinity", "-Infinity")):
        return text
    if type_ in ("timestamp", "timestamptz"):
        text = text.replace(" ", "T", 1)
        text += ":00" if type_ == "timestamptz" and re.search(r"[+-]\d\d$", text) else ""
    return t.quoted_json(text)


@function("json_array:(bool, bool) json; json_array:(bool, bool, *any) json", typed=True, strict=False)
def _array_of(context: t.Context, types: tuple[str, ...], absent: bool, unique: bool, *values: Any) -> str:
    parts = [
        to_json(context, v, type_) for v, type_ in zip(values, types[2:], strict=True) if v is not None or not absent
    ]
    return f"[{', '.join(parts)}]"


@function("json_object:(bool, bool) json; json_object:(bool, bool, *any) json", typed=True, strict=False)
def _object_of(context: t.Context, types: tuple[str, ...], absent: bool, unique: bool, *values: Any) -> str:
    """Return a JSON object of keys and values by turns."""
    if None in values[::2]:
        raise said("22004", "null value not allowed for object key")
    members = zip(values[::2], types[2::2], values[1::2], types[3::2], strict=True)
    pairs = [
        (t.quoted_json(t.write(key, key_type, context)), to_json(context, value, type_))
        for key, key_type, value, type_ in members
        if value is not None or not absent
    ]
    if unique and len(dict(pairs)) < len(pairs):
        raise said("22030", "duplicate JSON object key value")
    return "{" + ", ".join(f"{key} : {value}" for key, value in pairs) + "}"


def _built(prefix: str) -> None:
    def wrapped(text: str) -> Any:
        return Json(t.read_json(text)) if prefix == "jsonb" else text

    @function(f"{prefix}_build_array(*any) {prefix}", typed=True)
    def array(context: t.Context, types: tuple[str, ...], *values: Any) -> Any:
        return wrapped(
            "[" + ", ".join(to_json(context, v, type_) for v, type_ in zip(values, types, strict=True)) + "]"
        )

    @function(f"{prefix}_build_object(*any) {prefix}", typed=True)
    def objects(context: t.Context, types: tuple[str, ...], *values: Any) -> Any:
        if len(values) % 2:
            raise said("22023", "argument list must have even number of elements", None,
                       f"The arguments of {prefix}_build_object() must consist of alternating keys and values.")  # fmt: skip
        pairs = []
        for k in range(0, len(values), 2):
            if values[k] is None:
                raise said(
                    "22023" if prefix == "jsonb" else "22004",
                    f"argument {k + 1}: key must not be null"
                    if prefix == "jsonb"
                    else "null value not allowed for object key",
                )
            key = t.quoted_json(conversions.converter(types[k], "text", context)(values[k]))
            pairs.append(f"{key} : {to_json(context, values[k + 1], types[k + 1])}")
        return wrapped("{" + ", ".join(pairs) + "}")

    function(f"{prefix}_build_array() {prefix}", typed=True)(array)
    function(f"{prefix}_build_object() {prefix}", typed=True)(objects)

    @function(f"{prefix}_object(_text) {prefix}; {prefix}_object(_text, _text) {prefix}")
    def paired(keys: list[Any], values: list[Any] | None = None) -> Any:
        if keys and isinstance(keys[0], list):
            keys = [item for row in keys for item in row]
        if values is None:
            if len(keys) % 2:
                raise said("2202E", "array must have even number of elements")
            keys, values = keys[::2], keys[1::2]
        if len(keys) != len(values):
            raise said("2202E", "mismatched array dimensions")
        if None in keys:
            raise said("22004", "null value not allowed for object key")
        return wrapped(
            "{"
            + ", ".join(
                f"{t.quoted_json(k)} : {'null' if v is None else t.quoted_json(v)}"
                for k, v in zip(keys, values, strict=True)
            )
            + "}"
        )


_built("json")
_built("jsonb")

# --- jsonb ------------------------------------------------------------------------------------------------------------


def _contains(outer: Any, inner: Any, top: bool = True) -> bool:
    bounds.step()
    if isinstance(outer, dict) and isinstance(inner, dict):
        return all(key in outer and _contains(outer[key], value, False) for key, value in inner.items())
    if isinstance(outer, list) and isinstance(inner, list):
        return all(any(_contains(item, expected, False) for item in outer) for expected in inner)
    if top and isinstance(outer, list) and not isinstance(inner, (dict, list)):
        return any(_same(item, inner) for item in outer)
    return _same(outer, inner)


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and type(a) is type(b) and bool(a == b)


def _has(value: Json, key: str) -> bool:
    return (isinstance(value.value, (dict, list)) and key in value.value) or value.value == key


function("@>(jsonb, jsonb) bool")(lambda a, b: _contains(a.value, b.value))
function("<@(jsonb, jsonb) bool")(lambda a, b: _contains(b.value, a.value))
function("?(jsonb, text) bool; jsonb_exists(jsonb, text) bool")(_has)
function("?|(jsonb, _text) bool")(lambda v, keys: any(_has(v, key) for key in keys if key is not None))
function("?&(jsonb, _text) bool")(lambda v, keys: all(_has(v, key) for key in keys if key is not None))
function("=(jsonb, jsonb) bool")(lambda a, b: a.value == b.value)
function("<>(jsonb, jsonb) bool")(lambda a, b: a.value != b.value)
for _sign, _test in (
    ("<", lambda n: n < 0),
    ("<=", lambda n: n <= 0),
    (">", lambda n: n > 0),
    (">=", lambda n: n >= 0),
):
    function(f"{_sign}(jsonb, jsonb) bool")(lambda a, b, test=_test: test(_order(a.value, b.value)))


def _key_order(key: str) -> tuple[int, bytes]:
    """Return by what the keys of an object are in order."""
    return len(key.encode()), key.encode()


def _order(a: Any, b: Any) -> int:
    """Return the order of two values: object, array, boolean, number, string, null."""
    bounds.step()
    ranks = ("null", "string", "number", "boolean", "array", "object")
    first, second = ranks.index(conversions.json_kind(a)), ranks.index(conversions.json_kind(b))
    if first != second:
        return first - second
    if a == b:
        return 0
    if isinstance(a, (list, dict)):
        if len(a) != len(b):
            return len(a) - len(b)
        if isinstance(a, dict):
            first_keys, second_keys = sorted(a, key=_key_order), sorted(b, key=_key_order)
            pairs = zip(first_keys, second_keys, strict=True)
            return next((n for x, y in pairs if (n := (x > y) - (x < y) or _order(a[x], b[y]))), 0)
        return next((n for x, y in zip(a, b, strict=True) if (n := _order(x, y))), 0)
    return 0 if a is None else (a > b) - (a < b)


@function("||(jsonb, jsonb) jsonb")
def _joined(a: Json, b: Json) -> Json:
    first, second = a.value, b.value
    if isinstance(first, dict) and isinstance(second, dict):
        return Json(first | second)
    return Json((first if isinstance(first, list) else [first]) + (second if isinstance(second, list) else [second]))


@function("-(jsonb, text) jsonb; -(jsonb, int4) jsonb; -(jsonb, _text) jsonb")
def _removed(value: Json, key: Any) -> Json:
    inner, keys = value.value, key if isinstance(key, list) else [key]
    if not isinstance(inner, (dict, list)):
        raise said("22023", "cannot delete from scalar")
    if isinstance(key, int):
        if isinstance(inner, dict):
            raise said("22023", "cannot delete from object using integer index")
        index = key if key >= 0 else len(inner) + key
        return Json([item for k, item in enumerate(inner) if k != index])
    if isinstance(inner, dict):
        return Json({name: item for name, item in inner.items() if name not in keys})
    return Json([item for item in inner if item not in keys or not isinstance(item, str)])


def _require_container(value: Json, words: str) -> None:
    if not isinstance(value.value, (dict, list)):
        raise said("22023", f"cannot {words} scalar")


def _changed(value: Any, path: list[str], change: Any) -> Any:
    """Return a value in which `change`, called with the container and key at the end of a path, was applied."""
    if not isinstance(value, (dict, list)) or not path:
        return value
    key: Any = path[0]
    if isinstance(value, list):
        if not re.fullmatch(r"[+-]?\d{1,9}", key):
            raise said("22P02", f'path element at position 1 is not an integer: "{key}"')
        key = int(key)
    if len(path) == 1:
        return change(value, key)
    if isinstance(value, dict):
        return value | {key: _changed(value[key], path[1:], change)} if key in value else value
    index = key if key >= 0 else len(value) + key
    return [_changed(item, path[1:], change) if k == index else item for k, item in enumerate(value)]


@function("#-(jsonb, _text) jsonb; jsonb_delete_path(jsonb, _text) jsonb")
def _without_path(value: Json, path: list[str]) -> Json:
    _require_container(value, "delete path in")
    return Json(_changed(value.value, path, lambda container, key: _removed(Json(container), key).value))


@function("jsonb_set(jsonb, _text, jsonb, create_if_missing bool?) jsonb")
def _set(value: Json, path: list[str], new: Json, create: bool = True) -> Json:
    _require_container(value, "set path in")

    def change(container: Any, key: Any) -> Any:
        if isinstance(container, dict):
            return container | {key: new.value} if create or key in container else container
        index = key if key >= 0 else len(container) + key
        if 0 <= index < len(container):
            return [new.value if k == index else item for k, item in enumerate(container)]
        return container if not create else [new.value, *container] if index < 0 else [*container, new.value]

    return Json(_changed(value.value, path, change))


@function("jsonb_set_lax(jsonb, _text, jsonb, create_if_missing bool?, null_value_treatment text?) jsonb", strict=False)
def _set_lax(
    value: Json | None, path: Any, new: Json | None, create: bool | None = True, treatment: str | None = "use_json_null"
) -> Json | None:
    if value is None or path is None or create is None:
        return None
    if new is None and treatment not in ("raise_exception", "use_json_null", "delete_key", "return_target"):
        words = '"delete_key", "return_target", "use_json_null", or "raise_exception"'
        raise said("22023", f"null_value_treatment must be {words}")
    if new is not None or treatment == "use_json_null":
        changed: Json = _set(value, path, new or Json(None), create)
        return changed
    if treatment == "raise_exception":
        hint = "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed."
        raise said("22004", "JSON value must not be null", None, hint)
    return value if treatment == "return_target" else _without_path(value, path)


@function("jsonb_insert(jsonb, _text, jsonb, insert_after bool?) jsonb")
def _insert(value: Json, path: list[str], new: Json, after: bool = False) -> Json:
    _require_container(value, "set path in")

    def change(container: Any, key: Any) -> Any:
        if isinstance(container, dict):
            if key in container:
                raise said(
                    "22023",
                    "cannot replace existing key",
                    None,
                    "Try using the function jsonb_set to replace key value.",
                )
            return container | {key: new.value}
        index = min(max(key if key >= 0 else len(container) + key, 0) + after, len(container))
        return [*container[:index], new.value, *container[index:]]

    return Json(_changed(value.value, path, change))


@function("jsonb_pretty(jsonb) text")
def _pretty(value: Json) -> str:
    def lines(inner: Any, depth: int) -> str:
        indent = "    " * (depth + 1)
        if isinstance(inner, dict):
            keys = sorted(inner, key=_key_order)
            body = ",\n".join(f"{indent}{t.quoted_json(key)}: {lines(inner[key], depth + 1)}" for key in keys)
            return "{\n" + body + ("\n" if body else "") + "    " * depth + "}"
        if isinstance(inner, list):
            body = ",\n".join(indent + lines(item, depth + 1) for item in inner)
            return "[\n" + body + ("\n" if body else "") + "    " * depth + "]"
        return t.json_text(inner)

    return lines(value.value, 0)
