"""Upper bounds on the time of row expressions, in nanoseconds, from their text and the policy alone.

An expression whose time depends on the row could be used to make one unit's row slow on purpose. So each text that a function
reads has a bounded length, regular expressions cost the size of their program times that length, all branches of a CASE are
added up, and a query whose rows could take longer is refused before data is read.
The constants are worst cases measured on one core (docs/privacy.md, section 10), rounded up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from dpsql.functions.sample_statistics import statistic_of
from dpsql.functions.signatures import REGISTRY, call
from dpsql.functions.values import MOST_TEXT
from dpsql.plan.expression_text import MOST_MATCHED, MOST_READ
from dpsql.plan.intervals import Type
from dpsql.plan.plan import (
    OTHER,
    Block,
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    literal,
)

MOST_NANOSECONDS = 1_000_000
"""Largest time of one call per row. All calls of a query together may take twice as long."""
MOST_OF_A_QUESTION = 2 * MOST_NANOSECONDS
_WIDEST = 4
"""Largest number of bytes of a character in UTF-8."""
_STEP = 10
"""Nanoseconds of one instruction of a regular expression per byte, when all instructions are active at once."""
_PLAIN = 20


def size(node: Expr) -> int | None:
    """Return a bound on the bytes of a value; None if nothing bounds it (a text column), so that only a part may be read."""
    if isinstance(node, Literal):
        return len(str(node.value).encode()) if node.value is not None else 0
    if not isinstance(node, Call):
        return None if node.facts.type is Type.TEXT else 40
    if node.facts.type is not Type.TEXT:
        return 40
    sizes = [size(argument) for argument in node.arguments]
    first, most = sizes[0] if sizes else 0, _WIDEST * MOST_TEXT
    if node.function in ("left", "right", "substr"):
        count = node.arguments[-1] if node.function != "substr" or len(sizes) == 3 else None
        taken = _WIDEST * count.value if isinstance(count, Literal) and isinstance(count.value, int) else None
        taken = None if taken is not None and taken < 0 else taken
        return taken if first is None else first if taken is None else min(first, taken)
    if node.function in ("case", "coalesce"):
        chosen = [*sizes[1:-1:2], sizes[-1]] if node.function == "case" else sizes
        return None if None in chosen else max(width for width in chosen if width is not None)
    if node.function in ("concat", "concat_ws", "replace", "regexp_replace"):
        if None in sizes:
            return most
        joined = sum(size for size in sizes if size is not None)
        # Every byte of a text, and the place after it, may be replaced.
        grown = (
            (sizes[0] or 0) + ((sizes[0] or 0) + 1) * (1 + (sizes[2] or 0)) if "replace" in node.function else joined
        )
        # Each replacement of a pattern may contain the matches of its groups; the text is cut in any case.
        return most if node.function == "regexp_replace" else min(most, grown * max(1, len(sizes)))
    if node.function in ("strftime", "to_text", "md5"):
        return 1_000
    if node.function == "translate":  # a character of one byte may become one of four
        return None if first is None else _WIDEST * first
    if node.function in ("lower", "upper"):
        return None if first is None else 2 * first
    return first


def cost(node: Expr, columns: Mapping[str, int] | None = None) -> int:
    """Return a bound on the nanoseconds of one row, adding up all branches. `columns`: the costs of columns that are computed."""
    if isinstance(node, Column):
        return (columns or {}).get(node.name, 1)
    if not isinstance(node, Call):
        return 1
    below = sum(cost(argument, columns) for argument in node.arguments)
    if statistic_of(node) is not None:
        return _PLAIN + below
    return _call_cost(node) + REGISTRY[node.function].repeated * below


def part_read(function: str, argument: Expr) -> Expr:
    """Return the part of an argument that a function reads: a text without a bound is cut to its first characters."""
    if REGISTRY[function].reads_text and argument.facts.type is Type.TEXT and size(argument) is None:
        return _first(argument, MOST_MATCHED if function.startswith("regexp") else MOST_READ)
    return argument


def way_out(costly: Call) -> str:
    """Return the hint for a call that costs too much; for a regular expression, it gives the longest text that is allowed."""
    first, *rest = costly.arguments
    if costly.function.startswith("regexp"):
        for most in (500, 250, 100, 50, 25, 10):
            if cost(call(costly.function, _first(first, most), *rest)) <= MOST_NANOSECONDS:
                return f"take a part of the text, as in left(x, {most}), or a shorter pattern"
    return "take a part of each text, as in left(x, 100), or a shorter pattern"


def _first(text: Expr, most: int) -> Call:
    return call("left", text, literal(most))


def _call_cost(node: Call) -> int:
    """Return a bound on the time of the function itself, without its arguments, in nanoseconds."""
    name, arguments = node.function, node.arguments
    texts = [argument for argument in arguments if argument.facts.type is Type.TEXT]
    sizes = [MOST_READ * _WIDEST if (bytes_read := size(argument)) is None else bytes_read for argument in texts]
    first = sizes[0] if sizes else 0
    if name in ("in", "place_in"):
        return _PLAIN + 10 * len(arguments)
    if name in ("like", "ilike"):
        return _PLAIN + (30 * first if name == "ilike" else 0) + _like(first, str(_value(arguments[1])))
    if name in ("contains", "strpos"):
        return _PLAIN + first * (10 + (sizes[1] if len(sizes) > 1 else 0) // 32)
    if name.startswith("regexp"):
        pattern = str(_value(arguments[1]))
        scans = _scans(pattern, first) if name == "regexp_replace" and _value(arguments[3]) else 1
        copied = 80 if scans > 1 else 5
        return _PLAIN + (copied * first if name == "regexp_replace" else 0) + _STEP * program(pattern) * first * scans
    return _PLAIN + REGISTRY[name].cost + REGISTRY[name].per_byte * sum(sizes)


def _value(node: Expr) -> object:
    return node.value if isinstance(node, Literal) else ""


def _like(length: int, pattern: str) -> int:
    """Return a bound on the time of LIKE in nanoseconds. Texts between % are searched one after the other; with _ in the pattern,
    an engine may backtrack at each %."""
    width = len(pattern.encode())
    again = len(re.findall("%+(?=[^%])", pattern))
    if "_" not in pattern or again <= 1:
        return length * (10 + width)
    return min(10**15, 10 * width * int(length**again) // math.factorial(min(again, 20)))


def _scans(pattern: str, length: int) -> int:
    """Bound how often each byte is read when all matches are replaced: a search may read ahead by the longest match."""
    pattern = re.sub(r"^\(\?[a-z]+\)", "", pattern)
    if re.fullmatch(r"(?:\\.|\[(?:\\.|[^\]\\\[])+\]|[^\\\[\](){}|*+?^$])[*+]?", pattern):
        return 2  # one character, or a run of it: the search ends with the match
    if not re.search(r"[*+?{|]", pattern):
        return 3  # all matches have the same length: the search ends with the match
    if re.search(r"[*+]|\{\d*,\}", pattern):
        return max(1, length)
    return min(max(1, length), program(pattern) + 1)


# --- regular expressions --------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""(?P<class>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]) | (?P<open>\((?:\?[^:)]*[:)>]?|)) | (?P<close>\))
    | (?P<repeat>\{\d+(?:,\d*)?\}|[*+?]\??) | (?P<escape>\\(?:[pP]\{?\^?\w+\}?|x\{[0-9A-Fa-f]+\}|.)) | (?P<any>.)""",
    re.VERBOSE | re.DOTALL,
)
_UNICODE = 4_000
"""Instructions of a class of Unicode (\\pL): hundreds of ranges, each of up to four bytes."""
_CHARACTER = 8
"""Instructions of a character of either case: up to four letters of one to three bytes (k is also the Kelvin sign, s the long s);
other ASCII letters need two."""
_ANY = 6
"""Instructions of any character, or of a range of characters, in UTF-8, of those that are active at once."""


def program(pattern: str) -> int:
    """Return a bound on the number of instructions of a pattern's program. A repetition repeats the instructions before it."""
    folded = "(?i" in pattern or re.search(r"\(\?[a-zA-Z]*i", pattern) is not None
    stack: list[list[int]] = [[]]
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup, token.group()
        if kind == "open":
            if not text.startswith("(?") or not text.endswith(")"):
                stack.append([])
        elif kind == "close":
            inner = sum(stack.pop()) if len(stack) > 1 else 0
            stack[-1].append(inner + 2)
        elif kind == "repeat" and stack[-1]:
            stack[-1][-1] = stack[-1][-1] * _most(text) + 2
        else:
            stack[-1].append(_atom(str(kind), text, folded))
    return 2 + sum(sum(level) for level in stack)


def _most(text: str) -> int:
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    return max([*numbers, 1]) + (1 if text.endswith(",}") else 0)


def _atom(kind: str, text: str, folded: bool) -> int:
    if kind == "class":
        inside = text[1:-1]
        if re.search(r"\\[pP]", inside):
            return _UNICODE * len(re.findall(r"\\[pP]", inside)) + _ANY * len(inside)
        if inside.isascii() and not re.search(r"\\[DSWx]|\[:\^", inside) and not folded:
            return (_ANY if inside.startswith("^") else 2) + len(
                re.findall(r"\[:\w+:\]|\\.|.(?:-.)?", inside, re.DOTALL)
            )
        return _ANY * (1 + len(inside))
    if kind == "escape":
        if text[1] in "pP":
            return _UNICODE
        return _ANY * 4 if text[1] in "DSW" else _ANY if text[1] == "x" else 5 if text[1] in "dsw" else 2
    if text == ".":
        return _ANY
    if folded and (text in "kKsS" or not text.isascii()):
        return _CHARACTER
    return 2 if folded else len(text.encode())


# --- blocks ---------------------------------------------------------------------------------------------------------


def block_cost(block: Block) -> int:
    """Return a bound on the nanoseconds of one row of a block. A column of a subquery costs as much as its expression wherever it
    is read, because an engine may inline the expression there."""
    total, columns = _relation(block.source)
    expressions = [key.expression for key in block.keys]
    for measure in block.measures:
        expressions += [*measure.arguments, *([measure.filter] if measure.filter is not None else [])]
    return total + sum(cost(expression, columns) for expression in expressions)


def relation_cost(source: Relation) -> int:
    """Return a bound on the nanoseconds of one row of a relation."""
    return _relation(source)[0]


def _relation(source: Relation) -> tuple[int, dict[str, int]]:
    """Return bounds on the time of one row of a relation, and of each of its columns when it is read again, in nanoseconds."""
    if isinstance(source, Union_):
        alike = [_relation(branch) for branch in source.sources]
        merged: dict[str, int] = {}
        for _, columns in alike:
            merged |= {name: max(price, merged.get(name, 1)) for name, price in columns.items()}
        return max(total for total, _ in alike), merged
    if isinstance(source, (Join, SemiJoin)):
        return _joined(source)
    if not isinstance(source, (Filter, Project, UnitAggregate, UnitWindow, Distinct)):
        return 0, {}
    total, columns = _relation(source.source)
    if isinstance(source, Filter):
        return total + cost(source.predicate, columns), columns
    if isinstance(source, Distinct):
        return total, columns
    if isinstance(source, Project):
        return total, {name: cost(value, columns) for name, value in source.columns}
    if isinstance(source, UnitAggregate):
        keys = {name: cost(value, columns) for name, value in source.keys}
        parts = [expression for _, _, *pair, _ in source.columns for expression in pair if expression is not None]
        return total + sum(keys.values()) + sum(cost(part, columns) for part in parts), keys
    for window in source.windows:
        read = [*window.keys, *(ordering.by for ordering in window.order)]
        read += [expression for expression in (window.argument, window.filter) if expression is not None]
        total += sum(cost(expression, columns) for expression in read)
    return total, columns


def _joined(source: Join | SemiJoin) -> tuple[int, dict[str, int]]:
    (left, left_costs), (right, right_costs) = _relation(source.left), _relation(source.right)
    total = left + right + sum(cost(a, left_costs) + cost(b, right_costs) for a, b in source.keys)
    if isinstance(source, Join):
        return total, {f"a.{name}": price for name, price in left_costs.items()} | {
            f"b.{name}": price for name, price in right_costs.items()
        }
    if source.condition is not None:
        total += cost(source.condition, left_costs | {OTHER + name: price for name, price in right_costs.items()})
    return total, left_costs
