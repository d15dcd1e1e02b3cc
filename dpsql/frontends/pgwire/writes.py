"""Statements that write, lock or maintain tables: which PostgreSQL's read-only transactions refuse, and what it says of the rest
to a role that owns nothing and may only read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.constants.tokens import said

WRITES = {
    "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT", "REVOKE", "COMMENT", "REFRESH",
    "IMPORT", "SECURITY", "REASSIGN",
}  # fmt: skip
"""First words of what a read-only transaction refuses."""
CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")
"""Of these, what may stand in PREPARE, EXPLAIN and WITH."""
MAINTAINS = {"VACUUM", "ANALYZE", "ANALYSE", "CLUSTER", "REINDEX", "LOCK", "CHECKPOINT", "LOAD", "DO", "CALL"}
"""First words of what it does not refuse: rights decide."""

_NAMING = {"CREATE", "ALTER", "DROP", "IMPORT", "REASSIGN", "SECURITY", "REFRESH"}
_OF_TWO_WORDS = {
    "MATERIALIZED VIEW",
    "FOREIGN TABLE",
    "FOREIGN SCHEMA",
    "EVENT TRIGGER",
    "DEFAULT PRIVILEGES",
    "USER MAPPING",
}
_MODIFIERS = {"TEMP", "TEMPORARY", "LOCAL", "GLOBAL", "UNLOGGED", "OR", "REPLACE", "UNIQUE", "RECURSIVE"}
"""Words that PostgreSQL's name of a statement lacks."""


def write_words(words: Sequence[str]) -> str:
    """Return the name of a write command as PostgreSQL's message has it, such as CREATE TABLE."""
    first, *more = [upper for word in words if (upper := word.upper()) not in _MODIFIERS]
    if first not in _NAMING:
        return f"{first} TABLE" if first == "TRUNCATE" else first
    size = 2 if " ".join(more[:2]) in _OF_TWO_WORDS else 1
    named = " ".join([first, *more[:size]]) if more and more[0].isalpha() else first
    return f"{named} AS" if named == "CREATE TABLE" and "AS" in more else named


def changed_table(words: Sequence[str]) -> tuple[str, ...]:
    """Return the name of the table whose rows a statement changes; nothing for a statement of another kind."""
    if words[0].upper() not in CHANGES:
        return ()
    start = next((k for k, word in enumerate(words) if word.upper() not in _BEFORE_TABLE), len(words))
    stop = start + 1
    while words[stop : stop + 1] == ["."]:
        stop += 2
    return ("".join(words[start:stop]),) if start < len(words) else ()


_BEFORE_TABLE = {*CHANGES, "INTO", "FROM", "ONLY"}


def change_in_with(words: Sequence[str]) -> str:
    """Return what PostgreSQL calls a statement behind WITH that changes rows: itself, or SELECT if only a question of WITH does;
    an empty text for one that only reads."""
    depth, before, is_inner = 0, "", False
    for word in words:
        upper = word.upper()
        depth += (word == "(") - (word == ")")
        if upper in CHANGES and depth == 0 and before == ")":
            return upper
        is_inner |= upper in CHANGES and depth == 1 and before == "("
        before = word
    return "SELECT" if is_inner else ""


_MODES = re.compile(
    r"ACCESS SHARE|ROW SHARE|ROW EXCLUSIVE|SHARE UPDATE EXCLUSIVE|SHARE|SHARE ROW EXCLUSIVE|EXCLUSIVE|ACCESS EXCLUSIVE"
)


def locked(words: Sequence[str]) -> tuple[str, tuple[str, ...]] | int:
    """Return the mode of LOCK and the tables that it names, or the index of the first word that has no meaning there. `words`:
    those behind LOCK."""
    upper = [word.upper() for word in words]
    stop = len(words) - (upper[-1:] == ["NOWAIT"])
    start = upper.index("IN") if "IN" in upper[:stop] else stop
    mode = " ".join(upper[start + 1 : stop - 1]) if start < stop else "ACCESS EXCLUSIVE"
    if start < stop and (upper[stop - 1] != "MODE" or not _MODES.fullmatch(mode)):
        vocabulary = {*re.findall(r"[A-Z]+", _MODES.pattern), "IN", "MODE"}
        return next((k for k in range(start, stop) if upper[k] not in vocabulary), stop)
    names = names_in([word for word in words[:start] if word.upper() not in ("TABLE", "ONLY", "*")])
    return (mode, names) if isinstance(names, tuple) else names


def names_in(words: Sequence[str]) -> tuple[str, ...] | int:
    """Return the names between commas, or the index of the first word that is in none."""
    names, name = list[str](), ""
    for index, word in enumerate((*words, ",")):
        if word == "," and name[-1:] not in ("", "."):
            names, name = [*names, name], ""
        elif word != "," and not word[0].isdecimal() and (word == "." or name[-1:] in ("", ".")):
            name += word
        else:
            return index
    return tuple(names)


_ASIDE = {"FULL", "FREEZE", "VERBOSE", "ANALYZE", "ANALYSE", "TABLE", "INDEX", "CONCURRENTLY", "ONLY", "*"}


def maintained(words: Sequence[str]) -> tuple[str, ...] | int:
    """Return the tables that VACUUM and the like name, without options and columns in brackets."""
    bare_words, depth = list[str](), 0
    for word in words:
        depth += word == "("
        if depth == 0 and (word.upper() not in _ASIDE or bare_words[-1:] == ["."]):
            bare_words.append(word)
        depth -= word == ")"
    stop = next((k for k, word in enumerate(bare_words) if word.upper() == "USING"), len(bare_words))
    return names_in(bare_words[:stop]) if bare_words[:stop] else ()


def refusal(words: Sequence[str], bare: Sequence[str]) -> Error | None:
    """Return what a role without rights is told of a statement that stays the same for it; None for another. `bare`: its words
    without their quotes."""
    first = words[0].upper()
    if first == "CHECKPOINT":
        return said("42501", "permission denied to execute CHECKPOINT command")
    if first == "LOAD" and len(words) > 1:
        return said("42501", f'access to library "{bare[1]}" is not allowed')
    if first == "DO":
        upper = [word.upper() for word in words]
        name = bare[upper.index("LANGUAGE") + 1] if "LANGUAGE" in upper[:-1] else "plpgsql"
        return said("42501", f"permission denied for language {name}")
    if [word.upper() for word in words[:2]] == ["ALTER", "SYSTEM"] and len(words) > 3:
        every = words[3].upper() == "ALL"
        action = "perform ALTER SYSTEM RESET ALL" if every else f'set parameter "{bare[3]}"'
        return said("42501", f"permission denied to {action}")
    return None
