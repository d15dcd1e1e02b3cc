"""Which function, operator or common type PostgreSQL chooses for arguments (its manual, chapter 10), and the
register of functions.

A function is registered by PostgreSQL's signature; what is not registered is answered elsewhere or does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from dpsql.frontends.pgwire.catalog.shape import VECTORS, static
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.call_syntax import BY_WORDS, Node
from dpsql.frontends.pgwire.constants.tokens import NO_FUNCTION, NO_SEARCH, SEARCH_TYPES, Elsewhere, Qualified, said

NO_OPERATOR = "No operator matches the given name and argument type{}. You might need to add {}explicit type cast{}."
NO_COLUMNS = 'a column definition list is required for functions returning "record"'
NOT_UNIQUE = "Could not choose a best candidate {}. You might need to add explicit type casts."


@dataclass(frozen=True, slots=True)
class Signature:
    """A function or operator: the types of its arguments and its result. `strict`: NULL for a NULL argument. `context`: the
    first argument of `call` is the context, and if `typed` the second are the types. `rows`: it returns a list of rows. `kind`:
    function, aggregate or window; an aggregate may be one `within` an order, or want its values `sorted_`. `shape`: the columns
    of the record that it returns."""

    name: str
    arguments: tuple[str, ...]
    result: str
    call: Callable[..., Any]
    strict: bool = True
    context: bool = False
    typed: bool = False
    rows: bool = False
    variadic: bool = False
    least: int = 0
    kind: str = "function"
    within: bool = False
    sorted_: bool = False
    labels: tuple[str, ...] = ()
    shape: tuple[tuple[str, str], ...] = ()


REGISTER: dict[str, list[Signature]] = {}
_FORM = re.compile(r"\s*(\S+?)\(([^)]*)\)\s+(\S+)\s*")


def function(signatures: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function under PostgreSQL's signatures, as abs(int4) int4; a result `setof x` is written `*x`, an argument that
    may be missing `x?`, and arguments of any number `*x`. Names before types are those of named arguments."""

    def register(call: Callable[..., Any]) -> Callable[..., Any]:
        for text in filter(str.strip, signatures.split(";")):
            match = _FORM.fullmatch(text)
            assert match is not None, text
            written = [word.strip() for word in match[2].split(",") if word.strip()]
            words = [word.split()[-1] for word in written]
            variadic = bool(words) and words[-1].startswith("*")
            arguments = tuple(word.strip("*?") for word in words)
            least = sum(not word.endswith("?") and not word.startswith("*") for word in words)
            labels = tuple(word.split()[0] if " " in word else "" for word in written)
            signature = Signature(
                match[1], arguments, match[3].lstrip("*"), call, rows=match[3].startswith("*"), variadic=variadic,
                least=least, labels=labels, **options
            )  # fmt: skip
            REGISTER.setdefault(match[1], []).append(signature)
        return call

    return register


def each(names: str, over: Sequence[str], form: str, call: Callable[..., Any], **options: Any) -> None:
    """Register one function under several names for each of some types, which {} stands for."""
    for name in names.split():
        for type_ in over:
            function(f"{name}{form.replace('{}', type_)}", **options)(call)


_POLYMORPHIC = {"anyelement", "anyarray", "anynonarray", "anycompatible", "anycompatiblearray", "anyrange",
"anymultirange", "any",
                "anyenum"}  # fmt: skip


def _fits(supplied: str, expected: str) -> bool:
    if expected == "unknown":
        return supplied == "unknown"
    if supplied == "unknown" or expected in ("any", "anyelement", "anycompatible"):
        return True
    if expected in ("anyarray", "anycompatiblearray"):
        return bool(t.element(supplied))
    if expected == "anynonarray":
        return not t.element(supplied)
    if expected in ("anyrange", "anymultirange"):
        return supplied in (t.RANGES if expected == "anyrange" else t.MULTIRANGES)
    return t.implicit(supplied, expected)


def _spread(signature: Signature, count: int) -> tuple[str, ...] | None:
    """Return the types of a number of arguments; None if the function takes another number."""
    expected = signature.arguments
    if signature.variadic:
        return expected[:-1] + (expected[-1],) * (count - len(expected) + 1) if count >= len(expected) else None
    return expected[:count] if signature.least <= count <= len(expected) else None


def is_registered(name: str) -> bool:
    """Return whether a function is computed here, by its own name or as what an operator or another name calls."""
    return name in REGISTER or (name in _alike() and name in REGISTER)


@cache
def _alike() -> frozenset[str]:
    """Register the functions of PostgreSQL's catalog that an operator or another name calls, and return their names."""
    rows = static("pg_proc")
    listed = zip(*(rows[key] for key in ("oid", "proname", "prosrc", "prokind", "proargtypes")), strict=True)
    functions = {
        oid: (name, source, tuple(map(_type_of, types))) for oid, name, source, kind, types in listed if kind == "f"
    }
    callers = [
        (functions[code], name)
        for name, code in zip(*(static("pg_operator")[key] for key in ("oprname", "oprcode")), strict=True)
        if code in functions
    ]
    by_source: dict[tuple[str, tuple[str, ...]], list[Signature]] = {}
    for (_, source, types), name in [*callers, *((facts, facts[0]) for facts in functions.values())]:
        same = [s for s in REGISTER.get(name, ()) if s.arguments == types and s.kind == "function"]
        by_source.setdefault((source, types), []).extend(same if source else ())
    unnamed = {name for name, *_ in functions.values()} - REGISTER.keys()
    further = [
        (name, by_source.get((source, types), []))
        for name, source, types in functions.values()
        if name in unnamed and not t.exists(name)
    ]
    computed: dict[str, list[Signature]] = {}
    for name, same in further:
        computed.setdefault(name, []).extend(replace(signature, name=name) for signature in same[:1])
    REGISTER.update((name, signatures) for name, signatures in computed.items() if signatures)
    return frozenset(computed)


def _type_of(oid: int) -> str:
    return t.names_of_types().get(oid, "")


def in_order(name: str, arguments: list[Node]) -> list[Node]:
    """Return named arguments in the order of the function that has them, up to the last; those that are missing have the
    defaults of their types."""
    signature = next((s for s in REGISTER[name] if any(s.labels)), REGISTER[name][0])
    supplied = {argument.value: argument.items[0] for argument in arguments if argument.kind == "argument"}
    plain, position = [argument for argument in arguments if argument.kind != "argument"], arguments[0].position
    rest = list(zip(signature.labels, signature.arguments, strict=True))[len(plain) :]
    if not supplied.keys() <= {label for label, _ in rest}:
        raise Elsewhere
    last = max(k for k, (label, _) in enumerate(rest) if label in supplied)
    defaults = {"jsonb": Node("string", position, "{}"), "bool": Node("truth", position, False)}
    missing = Node("number", position, "0")
    return plain + [supplied.get(label) or defaults.get(type_, missing) for label, type_ in rest[: last + 1]]


def choose(
    name: str, supplied: Sequence[str], position: int, is_operator: bool
) -> tuple[Signature, tuple[str, ...], str]:
    """Return the function for arguments of these types, the types that its arguments get, and its result's type. Raises 42883
    and 42725 in PostgreSQL's words."""
    candidates, label, name = [], name, name.removeprefix(BY_WORDS)
    for signature in REGISTER.get(name, []):
        expected = _spread(signature, len(supplied))
        if expected is not None and all(map(_fits, supplied, expected)) and _solved(supplied, expected) is not None:
            candidates.append((signature, expected))
    chosen = _best(candidates, supplied, is_operator)
    if not chosen and _exists(name, supplied, is_operator):
        raise Elsewhere
    if len(chosen) != 1:
        raise _unresolved(label, supplied, position, is_operator, bool(chosen))
    signature, expected = chosen[0]
    solution = _solved(supplied, expected)
    assert solution is not None
    if not is_operator and "unknown" in supplied and _is_undetermined(name, supplied, expected):
        raise said("42804", "could not determine polymorphic type because input has type unknown")
    return (
        signature,
        tuple(_concrete(w, solution, g) for w, g in zip(expected, supplied, strict=True)),
        _concrete(signature.result, solution, "text"),
    )


def _is_undetermined(name: str, supplied: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether PostgreSQL's function takes values of any one type, and nothing says of which these are."""
    family = [g for g, w in zip(supplied, expected, strict=True) if w in _ELEMENTS]
    return set(family) == {"unknown"} and any(
        len(types) == len(supplied) and any(w in _ELEMENTS for w in types) for types in _catalogued(False).get(name, ())
    )


_ELEMENTS = {"anyelement", "anyarray", "anynonarray", "anyrange", "anymultirange"}


def _exists(name: str, supplied: Sequence[str], is_operator: bool) -> bool:
    """Return whether PostgreSQL has such a function or operator, which is not computed here."""
    return any(
        len(expected) == len(supplied)
        and all(map(_fits, supplied, expected))
        and _solved(supplied, expected) is not None
        for expected in _catalogued(is_operator).get(name, ())
    )


def not_computed(name: str, position: int) -> Exception:
    """Return why a function of PostgreSQL is not computed here."""
    is_search = any(SEARCH_TYPES & set(types) for types in _catalogued(False).get(name, ()))
    return said(*NO_SEARCH, position) if is_search else Elsewhere(f"{name} is not computed here")


@cache
def _catalogued(is_operator: bool) -> dict[str, list[tuple[str, ...]]]:
    """Return the types of the arguments of all operators or functions of PostgreSQL."""
    rows, signatures = static("pg_operator" if is_operator else "pg_proc"), dict[str, list[tuple[str, ...]]]()
    sides = zip(rows["oprleft"], rows["oprright"], strict=True) if is_operator else rows["proargtypes"]
    for name, oids in zip(rows["oprname" if is_operator else "proname"], sides, strict=True):
        signatures.setdefault(name, []).append(tuple(t.named(oid) for oid in oids if oid))
    return signatures


def _unresolved(name: str, supplied: Sequence[str], position: int, is_operator: bool, ambiguous: bool) -> Exception:
    words = list(map(t.sql_name, supplied))
    if is_operator:
        written_out = f"{words[0]} {name} {words[1]}" if len(words) == 2 else f"{name} {words[0]}"
        plural = len(words) == 2
        hint = NO_OPERATOR.format("s" * plural, "" if plural else "an ", "s" * plural)
        if ambiguous:
            return said("42725", f"operator is not unique: {written_out}", position, NOT_UNIQUE.format("operator"))
        return said("42883", f"operator does not exist: {written_out}", position, hint)
    schema = "pg_catalog." if isinstance(name, Qualified) else ""
    written_out = f"function {schema}{name}({', '.join(words)})"
    if ambiguous:
        return said("42725", f"{written_out} is not unique", position, NOT_UNIQUE.format("function"))
    return said("42883", f"{written_out} does not exist", position, NO_FUNCTION)


def _best(candidates: list[Any], supplied: Sequence[str], is_operator: bool) -> list[Any]:
    for exact in candidates:
        if exact[1] == tuple(supplied):
            return [exact]
    if is_operator and len(supplied) == 2 and "unknown" in supplied:
        other = supplied[0] if supplied[1] == "unknown" else supplied[1]
        same = [c for c in candidates if c[1] == (other, other)]
        if same and other != "unknown":
            return same
    if len(candidates) < 2:
        return candidates
    candidates = _most(candidates, lambda expected: sum(g == w for g, w in zip(supplied, expected, strict=True)))
    candidates = _most(
        candidates,
        lambda expected: sum(
            g == w or (g != "unknown" and t.preferred(w) and t.category(w) == t.category(g))
            for g, w in zip(supplied, expected, strict=True)
        ),
    )
    if len(candidates) < 2 or "unknown" not in supplied:
        return candidates
    return _by_unknown(candidates, supplied)


def _most(candidates: list[Any], count: Callable[[tuple[str, ...]], int]) -> list[Any]:
    if len(candidates) < 2:
        return candidates
    counts = [count(expected) for _, expected in candidates]
    return [candidate for candidate, number in zip(candidates, counts, strict=True) if number == max(counts)]


def _category(type_: str) -> str:
    return {"anyarray": "A", "anycompatiblearray": "A", "anyrange": "R", "anymultirange": "R"}.get(
        type_, "P" if type_ in _POLYMORPHIC else t.category(type_)
    )


def _by_unknown(candidates: list[Any], supplied: Sequence[str]) -> list[Any]:
    remaining = candidates
    resolved = True
    for index, type_ in enumerate(supplied):
        if type_ != "unknown":
            continue
        categories = {_category(expected[index]) for _, expected in remaining}
        if "S" in categories:
            wanted_category = "S"
        elif len(categories) == 1:
            wanted_category = next(iter(categories))
        else:
            resolved = False
            break
        remaining = [c for c in remaining if _category(c[1][index]) == wanted_category]
        liked = [c for c in remaining if t.preferred(c[1][index])]
        remaining = liked or remaining
    if resolved and len(remaining) == 1:
        return remaining
    typed_ones = {type_ for type_ in supplied if type_ != "unknown"}
    if len(typed_ones) == 1:
        same = next(iter(typed_ones))
        alike = [same] * len(supplied)
        matching = [c for c in candidates if all(_fits(same, w) and w != "any" for w in c[1]) and _solved(alike, c[1])]
        if len(matching) == 1:
            return matching
    return remaining if resolved else candidates


def _solved(supplied: Sequence[str], expected: Sequence[str]) -> dict[str, str] | None:
    """Return the types for which the polymorphic ones stand; None if the arguments do not agree."""
    elements, families = list[str](), {"anyelement": list[str](), "anycompatible": list[str]()}
    ranges, vectors = "", {g for g, w in zip(supplied, expected, strict=True) if w == "anyarray" and g in VECTORS}
    for g, w in zip(supplied, expected, strict=True):
        if g == "unknown" or w not in _POLYMORPHIC or w == "any":
            continue
        family = "anycompatible" if w.startswith("anycompatible") else "anyelement"
        if w in ("anyarray", "anycompatiblearray"):
            families[family].append(t.element(g))
        elif w == "anyrange":
            families[family].append(t.RANGES[g])
            ranges = g
        elif w == "anymultirange":
            ranges = t.MULTIRANGES[g]
            families[family].append(t.RANGES[ranges])
        else:
            elements.append(g)
            families[family].append(g)
    if len(set(families["anyelement"])) > 1:
        return None
    exact = families["anyelement"][0] if families["anyelement"] else "text"
    common = common_type(families["anycompatible"]) if families["anycompatible"] else "text"
    vector = next(iter(vectors), "")
    return None if common is None else {"anyelement": exact, "anycompatible": common, "range": ranges, "vector": vector}


def _concrete(expected: str, solution: dict[str, str], supplied: str) -> str:
    if expected == "anyrange":
        return solution["range"] or "int4range"
    if expected == "anymultirange":
        return next(name for name, inner in t.MULTIRANGES.items() if inner == (solution["range"] or "int4range"))
    if expected in ("anyarray", "anycompatiblearray"):
        if expected == "anyarray" and solution["vector"]:
            return solution["vector"]
        return "_" + solution["anyelement" if expected == "anyarray" else "anycompatible"]
    if expected == "anycompatible":
        return solution["anycompatible"]
    return supplied if expected == "any" else solution["anyelement"] if expected in _POLYMORPHIC else expected


def common_type(types: Sequence[str]) -> str | None:
    """Return the type to which values of these types are brought, text for literals alone; None if there is none."""
    typed_ones = [type_ for type_ in types if type_ != "unknown"]
    if not typed_ones:
        return "text"
    best = typed_ones[0]
    for other in typed_ones[1:]:
        if other == best:
            continue
        if t.category(other) != t.category(best):
            return None
        if not t.preferred(best) and t.implicit(best, other) and not t.implicit(other, best):
            best = other
    return best if all(t.implicit(type_, best) for type_ in typed_ones) else None


def first_misfit(types: Sequence[str]) -> int:
    """Return the index of the first type that has no common type with those before it."""
    firsts = {type_: index for index, type_ in reversed(list(enumerate(types)))}  # where each type stands first
    return next(index for index in sorted(firsts.values()) if common_type(types[: index + 1]) is None)


_XML = ("xmlelement", "xmlparse", "xmlforest", "xmlconcat", "xmlroot", "xmlserialize", "xmlexists", "xmltable")


@cache
def known_functions() -> frozenset[str]:
    """Return the names of PostgreSQL's functions, and of those that its grammar reads otherwise."""
    return frozenset({*static("pg_proc")["proname"], "_pg_expandarray", "grouping", "normalize", *_XML})


@cache
def record_functions() -> frozenset[str]:
    """Return the names of the functions whose columns a list in FROM names."""
    rows = static("pg_proc")
    facts = zip(rows["proname"], rows["prorettype"], rows["proallargtypes"], rows["prokind"], strict=True)
    return frozenset(
        name
        for name, result, columns, kind in facts
        if result == 2249 and columns is None and kind == "f" and "record" in name
    )


@cache
def denied_functions() -> frozenset[str]:
    """Return the names of the functions that only superusers call."""
    rows = static("pg_proc")
    named = zip(rows["proname"], rows["proacl"], strict=True)
    return frozenset(name for name, rights in named if rights is not None and not str(rights).startswith("{=X"))
