"""SQL/JSON paths: how PostgreSQL reads and writes them, and what they find in a jsonb value."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.constants import bounds, conversions
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.resolve import REGISTER, choose, function
from dpsql.frontends.pgwire.constants.tokens import NO_SEARCH, Elsewhere, Large, said
from dpsql.frontends.pgwire.constants.types import Json

_LAST = 1 << 32
"""The level of **{last}, which no value reaches."""
_MOST_DEPTH = 40
_TOKENS = re.compile(
    r"""(?P<blank>\s+|/\*.*?\*/)|(?P<string>"(?:[^"\\]|\\.)*+")|(?P<variable>\$(?:[^\W\d]\w*|"(?:[^"\\]|\\.)*+"))"""
    r"""|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<word>[^\W\d]\w*)|(?P<sign>\*\*|&&|\|\||==|!=|<>|<=|>=|[^\w\s"\\])""",
    re.DOTALL,
)
_METHODS = ("type", "size", "abs", "floor", "ceiling", "double", "keyvalue", "datetime")
_COMPARISONS = {"==": "==", "=": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_PRIORITY = {"||": 0, "&&": 1, **dict.fromkeys(_COMPARISONS.values(), 2), "starts with": 2, "+": 3, "-": 3, "*": 4, "/": 4,
             "%": 4, "unary": 5}  # fmt: skip


@dataclass(slots=True)
class PathStep:
    """A piece of a path: its kind, a name or value, and what is inside; `next`: what is applied to its results."""

    kind: str
    value: Any = None
    items: list[Any] = field(default_factory=list)
    next: PathStep | None = None

    @property
    def priority(self) -> int:
        return _PRIORITY.get(str(self.value) if self.kind == "operator" else self.kind, 6)


@dataclass(frozen=True)
class Path:
    """A path as it is read. `lax`: structural errors are no errors, and arrays are unwrapped."""

    step: PathStep
    lax: bool

    def __str__(self) -> str:
        return ("" if self.lax else "strict ") + _text(self.step, brackets=True)


# --- reading and writing ----------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, text: str, position: int | None) -> None:
        self.position, self.depth = position, 0
        self.tokens, index = list[tuple[str, str]](), 0
        while index < len(text):
            match = _TOKENS.match(text, index)
            if match is None:
                raise self.wrong(text[index])
            if match.lastgroup != "blank":
                self.tokens.append((str(match.lastgroup), match[0]))
            index = match.end()
        self.index = 0

    def wrong(self, near: str = "") -> Error:
        where = f'at or near "{near}" of jsonpath input' if near else "at end of jsonpath input"
        return said("42601", f"syntax error {where}", self.position)

    @property
    def token(self) -> tuple[str, str]:
        return self.tokens[self.index] if self.index < len(self.tokens) else ("end", "")

    def take(self, *words: str) -> bool:
        hits = [text for kind, text in self.tokens[self.index : self.index + len(words)] if kind in ("word", "sign")]
        if hits != list(words) and [text.lower() for text in hits] != list(words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            raise self.wrong(self.token[1])

    def path(self) -> Path:
        lax = not self.take("strict")
        if lax:
            self.take("lax")
        step = self.expression()
        if self.token[0] != "end":
            raise self.wrong(self.token[1])
        return Path(step, lax)

    def expression(self, least: int = 0) -> PathStep:
        """Read an expression or a condition whose operators bind at least as strongly as `least`."""
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise Elsewhere
        left = self.prefixed()
        while True:
            sign = _COMPARISONS.get(self.token[1], self.token[1])
            if self.token[0] == "word" and least <= 2 and self.take("starts", "with"):
                left = PathStep("operator", "starts with", [left, self.primary()])
            elif self.token[0] == "word" and least <= 2 and self.take("like_regex"):
                left = PathStep("like_regex", self.pattern(), [left])
            elif self.token[0] == "sign" and _PRIORITY.get(sign, -1) >= least:
                self.index += 1
                left = PathStep("operator", sign, [left, self.expression(_PRIORITY[sign] + 1)])
            else:
                break
        self.depth -= 1
        return left

    def pattern(self) -> tuple[str, str]:
        pattern, flags = self.string(), ""
        if self.take("flag"):
            flags = self.string()
        if wrong := re.search("[^ismxq]", flags):
            raise said("42601", "invalid input syntax for type jsonpath", self.position,
                       f'Unrecognized flag character "{wrong[0]}" in LIKE_REGEX predicate.')  # fmt: skip
        return pattern, flags

    def string(self) -> str:
        kind, text = self.token
        if kind != "string":
            raise self.wrong(text)
        self.index += 1
        return str(t.read_json(text))

    def prefixed(self) -> PathStep:
        if self.take("!"):
            self.expect("(")
            inner = PathStep("not", None, [self.expression()])
            self.expect(")")
            return inner
        if self.token[1] in ("+", "-"):
            sign = self.token[1]
            self.index += 1
            return PathStep("unary", sign, [self.expression(5)])
        return self.accessors(self.primary())

    def primary(self) -> PathStep:
        kind, text = self.token
        self.index += 1
        if kind == "string":
            return PathStep("constant", t.read_json(text))
        if kind == "number":
            return PathStep("constant", t.read_numeric(text))
        if kind == "variable":
            return PathStep("variable", t.read_json(text[1:]) if text[1] == '"' else text[1:])
        if text in ("null", "true", "false"):
            return PathStep("constant", {"null": None, "true": True, "false": False}[text])
        if text in ("$", "@", "last"):
            return PathStep(text)
        if text.lower() == "exists" and self.take("("):
            inner = PathStep("exists", None, [self.expression()])
            self.expect(")")
            return inner
        if text == "(":
            inner = self.expression()
            self.expect(")")
            if self.take("is", "unknown"):
                return PathStep("is_unknown", None, [inner])
            return PathStep("bracket", None, [inner]) if self.token[1] in (".", "[", "?") else inner
        self.index -= 1
        raise self.wrong(text)

    def accessors(self, first: PathStep) -> PathStep:
        last = first
        while (step := self.accessor()) is not None:
            last.next = step
            last = step
        return first

    def accessor(self) -> PathStep | None:
        if self.take("?"):
            self.expect("(")
            step = PathStep("filter", None, [self.expression()])
            self.expect(")")
            return step
        if self.take("["):
            return self.subscripts()
        if not self.take("."):
            return None
        if self.take("*"):
            return PathStep("members")
        if self.take("**"):
            return self.levels()
        kind, text = self.token
        if kind not in ("word", "string", "variable"):
            raise self.wrong(text)
        self.index += 1
        if kind == "word" and text in _METHODS and self.take("("):
            template = self.string() if text == "datetime" and self.token[0] == "string" else None
            self.expect(")")
            return PathStep("method", text, [template])
        return PathStep("member", str(t.read_json(text)) if kind == "string" else text)

    def subscripts(self) -> PathStep:
        if self.take("*", "]"):
            return PathStep("elements")
        items = list[Any]()
        while True:
            low = self.expression(3)
            items.append((low, self.expression(3) if self.take("to") else None))
            if not self.take(","):
                break
        self.expect("]")
        return PathStep("subscript", None, items)

    def levels(self) -> PathStep:
        if not self.take("{"):
            return PathStep("levels", (0, _LAST))
        low = self.level()
        high = self.level() if self.take("to") else low
        self.expect("}")
        return PathStep("levels", (low, high))

    def level(self) -> int:
        kind, text = self.token
        self.index += 1
        if text == "last":
            return _LAST
        if kind != "number" or not text.isdecimal():
            raise self.wrong(text)
        return int(text[:9])


def read_path(text: str, position: int | None = None) -> Path:
    """Return the path that a text means. Raises what PostgreSQL says of texts that are none."""
    if not text.strip():
        raise said("22P02", f'invalid input syntax for type jsonpath: "{text}"', position)
    path = _Reader(text, position).path()
    _checked(path.step, in_filter=False, in_brackets=False, position=position)
    return path


def _checked(step: PathStep, in_filter: bool, in_brackets: bool, position: int | None) -> None:
    if step.kind == "@" and not in_filter:
        raise said("42601", "@ is not allowed in root expressions", position)
    if step.kind == "last" and not in_brackets:
        raise said("42601", "LAST is allowed only in array subscripts", position)
    parts = [
        part
        for item in step.items
        for part in (item if isinstance(item, tuple) else (item,))
        if isinstance(part, PathStep)
    ]
    for part in parts:
        _checked(part, in_filter or step.kind == "filter", in_brackets or step.kind == "subscript", position)
    if step.next is not None:
        _checked(step.next, in_filter, in_brackets, position)


def _text(step: PathStep | None, brackets: bool, in_key: bool = False) -> str:
    """Return a step and what follows it, as PostgreSQL writes them."""
    if step is None:
        return ""
    form = _FORMS.get(step.kind)
    if form is not None:
        text = form(step)
    elif step.kind in ("operator", "unary", "like_regex"):
        inner = [_text(item, item.priority <= step.priority) for item in step.items]
        if step.kind == "like_regex":
            pattern, flags = step.value
            text = f"{inner[0]} like_regex {t.quoted_json(pattern)}" + f' flag "{flags}"' * bool(flags)
        else:
            text = f" {step.value} ".join(inner) if step.kind == "operator" else f"{step.value}{inner[0]}"
        text = f"({text})" if brackets else text
    elif step.kind == "bracket":
        text = _text(step.items[0], brackets=True)
    else:
        text = step.kind
    return text + _text(step.next, brackets=True, in_key=True)


def _levels_text(step: PathStep) -> str:
    low, high = ("last" if level == _LAST else str(level) for level in step.value)
    return ".**" + ("" if step.value == (0, _LAST) else f"{{{low}}}" if low == high else f"{{{low} to {high}}}")


def _subscript_text(step: PathStep) -> str:
    pairs = (_text(low, False) + ("" if high is None else f" to {_text(high, False)}") for low, high in step.items)
    return f"[{','.join(pairs)}]"


_FORMS: dict[str, Callable[[PathStep], str]] = {
    "constant": lambda step: t.json_text(step.value), "variable": lambda step: f"${t.quoted_json(step.value)}",
    "member": lambda step: f".{t.quoted_json(step.value)}", "members": lambda step: ".*", "elements": lambda step: "[*]",
    "subscript": _subscript_text, "levels": _levels_text, "filter": lambda step: f"?({_text(step.items[0], False)})",
    "not": lambda step: f"!({_text(step.items[0], False)})", "exists": lambda step: f"exists ({_text(step.items[0], False)})",
    "is_unknown": lambda step: f"({_text(step.items[0], False)}) is unknown",
    "method": lambda step: f".{step.value}({'' if step.items[0] is None else t.quoted_json(step.items[0])})",
}  # fmt: skip


# --- finding ----------------------------------------------------------------------------------------------------------


class _Moment(NamedTuple):
    """A date or time that .datetime() made: its type, value and text."""

    type: str
    value: Any
    text: str


class _Structural(Exception):
    """An error of structure or value, which a predicate makes unknown and a silent question ignores."""

    def __init__(self, state: str, words: str, hint: str = "") -> None:
        self.error = said(state, words, None, hint)


class _Search:
    """One search in a value; `steps` yields what a step finds for an item."""

    def __init__(self, path: Path, root: Any, variables: Any, context: t.Context) -> None:
        self.path, self.lax, self.root, self.variables, self.context = path, path.lax, root, variables, context
        self.ignores = path.lax
        self.current: Any = root
        self.innermost: list[Any] = []

    def all_results(self) -> Iterator[Any]:
        return self.steps(self.path.step, self.root, self.lax)

    def steps(self, step: PathStep, item: Any, unwraps: bool) -> Iterator[Any]:
        bounds.step()
        if unwraps and isinstance(item, list) and (
            step.kind in ("member", "members", "filter") or (step.kind == "method" and step.value not in ("type", "size"))
        ):  # fmt: skip
            for element in item:
                yield from self.steps(step, element, False)
            return
        for result in self.results(step, item):
            if step.next is None:
                yield result
            else:
                yield from self.steps(step.next, result, self.lax)

    def results(self, step: PathStep, item: Any) -> Iterator[Any]:
        handler = getattr(self, f"_{step.kind}", None)
        if handler is not None:
            return iter(handler(step, item))
        if step.kind in ("$", "@"):
            return iter([self.root if step.kind == "$" else self.current])
        if step.kind == "last":
            return iter([Decimal(len(self.innermost[-1]) - 1)])
        return iter([self.test(step, item)])

    def wrong(self, state: str, words: str) -> list[Any]:
        """Return nothing for an error of structure where these are ignored."""
        if self.ignores:
            return []
        raise _Structural(state, words)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _constant(self, step: PathStep, item: Any) -> list[Any]:
        return [step.value]

    def _variable(self, step: PathStep, item: Any) -> list[Any]:
        if step.value not in self.variables:
            raise said("42704", f'could not find jsonpath variable "{step.value}"')
        return [self.variables[step.value]]

    def _bracket(self, step: PathStep, item: Any) -> Iterator[Any]:
        return self.steps(step.items[0], item, self.lax)

    def _member(self, step: PathStep, item: Any) -> list[Any]:
        if not isinstance(item, dict):
            return self.wrong("2203A", "jsonpath member accessor can only be applied to an object")
        if step.value not in item:
            return self.wrong("2203A", f'JSON object does not contain key "{step.value}"')
        return [item[step.value]]

    def _members(self, step: PathStep, item: Any) -> list[Any]:
        if not isinstance(item, dict):
            return self.wrong("2203C", "jsonpath wildcard member accessor can only be applied to an object")
        return _values(item)

    def _elements(self, step: PathStep, item: Any) -> list[Any]:
        if isinstance(item, list):
            return item
        return (
            [item]
            if self.lax
            else self.wrong("22039", "jsonpath wildcard array accessor can only be applied to an array")
        )

    def _subscript(self, step: PathStep, item: Any) -> Iterator[Any]:
        if not isinstance(item, list):
            if not self.lax:
                yield from self.wrong("22039", "jsonpath array accessor can only be applied to an array")
                return
            item = [item]
        self.innermost.append(item)
        indexes = [(self.index_of(low, item), self.index_of(high or low, item)) for low, high in step.items]
        self.innermost.pop()
        for low, high in indexes:
            if not self.ignores and (low < 0 or low > high or high >= len(item)):
                raise _Structural("22033", "jsonpath array subscript is out of bounds")
            yield from item[max(low, 0) : max(high + 1, 0)]

    def index_of(self, step: PathStep, item: Any) -> int:
        hits = list(self.steps(step, item, self.lax))
        if len(hits) != 1 or not isinstance(hits[0], Decimal):
            raise _Structural("22033", "jsonpath array subscript is not a single numeric value")
        return int(hits[0])

    def _levels(self, step: PathStep, item: Any) -> Iterator[Any]:
        low, high = step.value
        ignored, self.ignores = self.ignores, True
        if low == 0:
            yield item
        yield from self.below(item, 1, low, high)
        self.ignores = ignored

    def below(self, item: Any, level: int, low: int, high: int) -> Iterator[Any]:
        for inner in item if isinstance(item, list) else _values(item) if isinstance(item, dict) else ():
            bounds.step()
            if low <= level <= high or (low == high == _LAST and not isinstance(inner, (list, dict))):
                yield inner
            if level < high:
                yield from self.below(inner, level + 1, low, high)

    def _filter(self, step: PathStep, item: Any) -> list[Any]:
        before, self.current = self.current, item
        is_true = self.test(step.items[0], item) is True
        self.current = before
        return [item] * is_true

    def _method(self, step: PathStep, item: Any) -> list[Any]:
        name = step.value
        if name == "type":
            kinds = {"timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone",
                     "timetz": "time with time zone", "time": "time without time zone"}  # fmt: skip
            return [kinds.get(item.type, item.type) if isinstance(item, _Moment) else conversions.json_kind(item)]
        if name == "size":
            if not isinstance(item, list) and not self.lax:
                return self.wrong("22039", "jsonpath item method .size() can only be applied to an array")
            return [Decimal(len(item) if isinstance(item, list) else 1)]
        if name == "keyvalue":
            return self.pairs(item)
        if name == "datetime":
            return [self.moment(item, step.items[0])]
        if name == "double":
            return [self.double(item)]
        if not isinstance(item, Decimal):
            raise _Structural("22036", f"jsonpath item method .{name}() can only be applied to a numeric value")
        return [choose(name, ("numeric",), 0, False)[0].call(item)]

    def double(self, item: Any) -> Decimal:
        words = "jsonpath item method .double() "
        if isinstance(item, bool) or not isinstance(item, (str, Decimal)):
            raise _Structural("22036", words + "can only be applied to a string or numeric value")
        try:
            number: Decimal = conversions.to_number(t.read(str(item), "float8", self.context), "float8", "numeric")
        except Error:
            wrong = "string argument of jsonpath item method .double() is not a valid representation of a double precision number"
            raise _Structural("22036", wrong) from None
        if not number.is_finite():
            raise _Structural("22036", words.strip() + " cannot be NaN or infinite")
        return number

    def pairs(self, item: Any) -> list[Any]:
        if not isinstance(item, dict):
            raise _Structural("2203C", "jsonpath item method .keyvalue() can only be applied to an object")
        if item is not self.root:
            raise Elsewhere  # its id is where PostgreSQL stores it
        return [{"id": Decimal(0), "key": key, "value": item[key]} for key in _keys(item)]

    def moment(self, item: Any, template: str | None) -> _Moment:
        if not isinstance(item, str):
            raise _Structural("22031", "jsonpath item method .datetime() can only be applied to a string")
        if template is not None:
            raise Elsewhere
        for form, type_ in _MOMENTS:
            if form.fullmatch(item):
                try:
                    value = t.read(item, type_, self.context)
                except Error as error:
                    raise _Structural(error.sqlstate, error.message) from None
                return _Moment(type_, value, t.write(value, type_, self.context).replace(" ", "T"))
        words = f'datetime format is not recognized: "{item}"'
        raise _Structural("22031", words, "Use a datetime template argument to specify the input data format.")

    # --- operators ----------------------------------------------------------------------------------------------------

    def unwrapped(self, step: PathStep, item: Any) -> Iterator[Any]:
        for value in self.steps(step, item, self.lax):
            if self.lax and isinstance(value, list):
                yield from value
            else:
                yield value

    def _unary(self, step: PathStep, item: Any) -> Iterator[Any]:
        for value in self.unwrapped(step.items[0], item):
            if not isinstance(value, Decimal):
                raise _Structural("2203B", f"operand of unary jsonpath operator {step.value} is not a numeric value")
            yield -value if step.value == "-" else value

    def _operator(self, step: PathStep, item: Any) -> list[Any]:
        if step.value not in ("+", "-", "*", "/", "%"):
            return [self.test(step, item)]
        sides = list[Decimal]()
        for operand, side in zip(step.items, ("left", "right"), strict=True):
            hits = list(self.unwrapped(operand, item))
            if len(hits) != 1 or not isinstance(hits[0], Decimal):
                raise _Structural(
                    "22038", f"{side} operand of jsonpath operator {step.value} is not a single numeric value"
                )
            sides.append(hits[0])
        try:
            return [choose(step.value, ("numeric", "numeric"), 0, True)[0].call(*sides)]
        except Error as error:
            raise _Structural(error.sqlstate, error.message) from None

    def test(self, step: PathStep, item: Any) -> bool | None:
        """Return what a condition is for an item; None if it is unknown."""
        bounds.step()
        if step.kind == "bracket":
            return self.test(step.items[0], item)
        if step.kind == "is_unknown":
            return self.test(step.items[0], item) is None
        if step.kind == "not":
            inner = self.test(step.items[0], item)
            return None if inner is None else not inner
        if step.kind == "operator" and step.value in ("&&", "||"):
            decides = step.value == "||"
            sides = [self.test(part, item) for part in step.items]
            return decides if decides in sides else None if None in sides else not decides
        try:
            if step.kind == "exists":
                hits = self.steps(step.items[0], item, self.lax)
                return bool(list(itertools.islice(hits, 1) if self.lax else hits))
            return self.compared(step, item)
        except _Structural:
            return None

    def compared(self, step: PathStep, item: Any) -> bool | None:
        lefts = list(self.unwrapped(step.items[0], item))
        if step.kind == "like_regex":
            return self.decided(self.matches(step, left) for left in lefts)
        if step.kind != "operator":
            raise Elsewhere
        rights = list(self.unwrapped(step.items[1], item))
        return self.decided(_compared(step.value, left, right) for left in lefts for right in rights)

    def decided(self, tests: Iterator[bool | None]) -> bool | None:
        is_found = is_unknown = False
        for result in tests:
            bounds.step()
            if result is None and not self.lax:
                return None
            if result and self.lax:
                return True
            is_found, is_unknown = is_found or bool(result), is_unknown or result is None
        return True if is_found else None if is_unknown else False

    @staticmethod
    def matches(step: PathStep, value: Any) -> bool | None:
        if not isinstance(value, str):
            return None
        pattern, flags = step.value
        if "q" in flags or "x" in flags:
            raise Elsewhere
        call = REGISTER["regexp_like"][0].call
        lines = ("s" if "s" in flags else "p") if "m" not in flags else "w" if "s" in flags else "n"
        hits: bool = call(value, pattern, "i" * ("i" in flags) + lines)
        return hits


_MOMENTS = tuple((re.compile(form), type_) for form, type_ in (
    (r"\d{4}-\d\d-\d\d", "date"), (r"\d\d:\d\d:\d\d(?:\.\d+)?", "time"),
    (r"\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d(?::?\d\d)?", "timetz"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?", "timestamp"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d(?::?\d\d)?", "timestamptz"),
))  # fmt: skip


def _keys(item: dict[str, Any]) -> list[str]:
    return sorted(item, key=lambda key: (len(key.encode()), key.encode()))


def _values(item: dict[str, Any]) -> list[Any]:
    return [item[key] for key in _keys(item)]


def _compared(operator: str, left: Any, right: Any) -> bool | None:
    """Return a comparison of two values; None for values that are not compared."""
    if operator == "starts with":
        return left.startswith(right) if isinstance(left, str) and isinstance(right, str) else None
    if isinstance(left, _Moment) and isinstance(right, _Moment):
        if left.type != right.type:
            raise Elsewhere
        left, right = left.value, right.value
    elif (left is None) != (right is None):
        return operator == "!="
    elif (
        isinstance(left, bool) != isinstance(right, bool)
        or type(left) is not type(right)
        or isinstance(left, (list, dict))
    ):
        return None
    elif left is None:
        left = right = 0
    operators: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
    return operators[operator](left, right)


# --- functions --------------------------------------------------------------------------------------------------------


def _results_of(context: t.Context, value: Json, path: Path, variables: Json | None, silent: bool) -> Iterator[Any]:
    named = {} if variables is None else variables.value
    if not isinstance(named, dict):
        raise said("22023", '"vars" argument is not an object', None)
    try:
        for count, item in enumerate(_Search(path, value.value, named, context).all_results()):
            if count > bounds.most_rows():
                raise Large
            yield Json(item.text if isinstance(item, _Moment) else item)
    except _Structural as problem:
        if not silent:
            raise problem.error from None
        yield None  # the end of what is found before the error


def _listed(
    context: t.Context, value: Json, path: Path, variables: Json | None = None, silent: bool = False
) -> list[Any]:
    return [item for item in _results_of(context, value, path, variables, silent) if item is not None]


def _exists(
    context: t.Context, value: Json, path: Path, variables: Json | None = None, silent: bool = False
) -> bool | None:
    hits = _results_of(context, value, path, variables, silent)
    listed = list(itertools.islice(hits, 1)) if path.lax else list(hits)
    return None if None in listed else bool(listed)


def _is_match(
    context: t.Context, value: Json, path: Path, variables: Json | None = None, silent: bool = False
) -> bool | None:
    hits = list(_results_of(context, value, path, variables, silent))
    if len(hits) == 1 and hits[0] is not None and (hits[0].value is None or isinstance(hits[0].value, bool)):
        result: bool | None = hits[0].value
        return result
    if silent:
        return None
    raise said("22038", "single boolean result is expected")


def _silent(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda context, value, path: call(context, value, path, None, True)


_MORE = "(jsonb, jsonpath, vars jsonb?, silent bool?)"
for _zoned in ("", "_tz"):
    function(f"jsonb_path_query{_zoned}{_MORE} *jsonb", context=True)(_listed)
    function(f"jsonb_path_query_array{_zoned}{_MORE} jsonb", context=True)(
        lambda *values: Json([item.value for item in _listed(*values)])
    )
    function(f"jsonb_path_query_first{_zoned}{_MORE} jsonb", context=True)(
        lambda *values: next(iter(_listed(*values)), None)
    )
    function(f"jsonb_path_exists{_zoned}{_MORE} bool", context=True)(_exists)
    function(f"jsonb_path_match{_zoned}{_MORE} bool", context=True)(_is_match)
function("@?(jsonb, jsonpath) bool; jsonb_path_exists_opr(jsonb, jsonpath) bool", context=True)(_silent(_exists))


@function("@@(text, text) bool")
def _searched(text: str, words: str) -> bool:
    """Refuse text search, as which PostgreSQL reads two literals."""
    raise said(*NO_SEARCH)


function("@@(jsonb, jsonpath) bool; jsonb_path_match_opr(jsonb, jsonpath) bool", context=True)(_silent(_is_match))
t.READERS["jsonpath"] = read_path
