"""Statements about the connection and not about data: read from words, because they are no questions.

Whatever is not listed here is a question and goes to the session or the catalog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpsql.errors.exceptions import Error, refuse

MOST_COMMAND = 4_000


@dataclass(frozen=True)
class Command:
    """One command. `kind` is its first word in lower case, `name` and `value` what it names; `query` the SQL inside of
    DECLARE and COPY and `offset` where that starts in the text; `words` all further words in upper case."""

    kind: str
    tag: str
    name: str = ""
    value: str = ""
    query: str = ""
    offset: int = 0
    words: tuple[str, ...] = ()


_WORD = re.compile(
    r"""\s*(?:--[^\n]*|/\*.*?\*/|("(?:[^"]|"")*"|'(?:[^']|'')*'|[^\W\d][\w$]*|\d+(?:\.\d+)?|\S))""", re.DOTALL
)
_KEYWORD = re.compile(r"[A-Za-z]+")
_WRITES = {
    "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT", "REVOKE", "COMMENT",
    "VACUUM",
    "ANALYZE", "REINDEX", "CLUSTER", "REFRESH", "LOCK", "IMPORT", "SECURITY", "REASSIGN", "CALL", "DO", "NOTIFY",
    "CHECKPOINT",
    "LOAD", "ATTACH", "DETACH", "INSTALL", "PRAGMA", "EXPORT", "USE",
}  # fmt: skip
_COMMANDS = {
    "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "RESET", "SHOW", "DISCARD",
    "DEALLOCATE", "CLOSE", "LISTEN", "UNLISTEN", "DECLARE", "FETCH", "MOVE", "COPY", "PREPARE", "EXECUTE",
}  # fmt: skip
_CURSOR = re.compile(
    r"""\s*DECLARE\s+("(?:[^"]|"")+"|[^\W\d][\w$]*)\s+((?:(?:BINARY|ASENSITIVE|INSENSITIVE|NO\s+SCROLL|SCROLL)\s+)*)CURSOR
    (\s+WITH\s+HOLD|\s+WITHOUT\s+HOLD)?\s+FOR\s+(?=\S)""",
    re.IGNORECASE | re.VERBOSE,
)
_COPY = re.compile(r"\s*COPY\s*\(", re.IGNORECASE)


def read_command(sql: str) -> Command | None:
    """The command of a text that starts with its first word; None for a question. Raises refusals with SQLSTATEs."""
    found = _KEYWORD.match(sql)
    first = found.group().upper() if found else ""
    if first in _WRITES:
        raise refuse("read_only", word=_write_words(sql, first))
    if first not in _COMMANDS:
        return None
    if first == "DECLARE":
        return _declare(sql)
    if first == "COPY":
        return _copy(sql)
    if len(sql) > MOST_COMMAND:
        raise refuse("wire_syntax", word=first)
    words = [word for word in _WORD.findall(sql) if word][1:]
    upper = [word.upper() for word in words]
    try:
        return _plain(first, words, upper)
    except IndexError:
        raise refuse("wire_syntax", word=first) from None


def _write_words(sql: str, first: str) -> str:
    """CREATE TABLE and the like, as PostgreSQL names it in its message."""
    second = re.match(r"\w+\s+([A-Za-z]+)", sql)
    return f"{first} {second.group(1).upper()}" if first in ("CREATE", "ALTER", "DROP") and second else first


def _plain(first: str, words: list[str], upper: list[str]) -> Command | None:
    if first in ("BEGIN", "START"):
        return Command("begin", "BEGIN" if first == "BEGIN" else "START TRANSACTION", words=tuple(upper))
    if first in ("COMMIT", "END"):
        return Command("commit", "COMMIT")
    if first in ("ROLLBACK", "ABORT"):
        rest = [word for word in upper if word not in ("WORK", "TRANSACTION", "SAVEPOINT")]
        return (
            Command("rollback_to", "ROLLBACK", unquoted(words[-1])) if "TO" in rest else Command("rollback", "ROLLBACK")
        )
    if first in ("SAVEPOINT", "RELEASE"):
        return Command(first.lower(), first, unquoted(words[-1]))
    if first == "SET":
        return _set(words, upper)
    if first in ("RESET", "SHOW"):
        return _show(first, words, upper)
    if first in ("FETCH", "MOVE"):
        return _fetch(first, words, upper)
    if first == "DISCARD":
        return Command("discard", f"DISCARD {upper[0]}", upper[0])
    if first == "DEALLOCATE":
        name = words[1] if upper[0] == "PREPARE" else words[0]
        every = name.upper() == "ALL"
        return Command("deallocate", "DEALLOCATE ALL" if every else "DEALLOCATE", "" if every else unquoted(name))
    if first == "CLOSE":
        every = upper[0] == "ALL"
        return Command("close", "CLOSE CURSOR ALL" if every else "CLOSE CURSOR", "" if every else unquoted(words[0]))
    if first in ("LISTEN", "UNLISTEN"):
        return Command("listen", first)
    raise refuse("wire_prepare", word=first)


def _set(words: list[str], upper: list[str]) -> Command:
    scope = upper[0] if upper[0] in ("SESSION", "LOCAL") and upper[1:2] not in (["="], ["TO"]) else ""
    if scope:
        words, upper = words[1:], upper[1:]
    if upper[0] in ("CHARACTERISTICS", "TRANSACTION", "CONSTRAINTS"):
        if "WRITE" in upper:
            raise refuse("read_write")
        return Command("nothing", "SET")
    if upper[0] in ("ROLE", "AUTHORIZATION"):
        if upper[-1] in ("NONE", "DEFAULT"):
            return Command("nothing", "SET")
        raise refuse("role_fixed", name=unquoted(words[-1]))
    if upper[:2] == ["TIME", "ZONE"]:
        name, values = "timezone", words[2:]
    elif upper[0] == "NAMES":
        name, values = "client_encoding", words[1:]
    else:
        at = next((index for index, word in enumerate(upper) if word in ("=", "TO")), 0)
        if at == 0:
            raise refuse("wire_syntax", word="SET")
        name, values = "".join(map(unquoted, words[:at])), words[at + 1 :]
    if not values:
        raise refuse("wire_syntax", word="SET")
    value = "".join(", " if word == "," else unquoted(word) for word in values)
    if name == "search_path":
        value = "".join(", " if word == "," else word for word in values)
    default = len(values) == 1 and values[0].upper() in ("DEFAULT",)
    return Command("reset" if default else "set", "SET", name, value, words=(scope,))


def _show(first: str, words: list[str], upper: list[str]) -> Command | None:
    if first == "SHOW" and upper in (["TABLES"], ["ALL", "TABLES"]):
        return None
    joined = " ".join(upper)
    if joined in ("TRANSACTION ISOLATION LEVEL", "TIME ZONE"):
        name = joined.lower()
    elif joined == "SESSION AUTHORIZATION":
        name = "session_authorization"
    else:
        name = "".join(map(unquoted, words))
    if not name:
        raise refuse("wire_syntax", word=first)
    return Command(first.lower(), first, name)


def _fetch(first: str, words: list[str], upper: list[str]) -> Command:
    """FETCH [NEXT | n | ALL | FORWARD [n | ALL]] [FROM | IN] name; `value` is a count, or "all"."""
    name, rest = unquoted(words[-1]), [word for word in upper[:-1] if word not in ("FROM", "IN")]
    if rest[:1] == ["FORWARD"]:
        rest = rest[1:] or ["1"]
    elif rest in ([], ["NEXT"]):
        rest = ["1"]
    if len(rest) != 1 or not (rest[0] == "ALL" or rest[0].isdigit()):
        raise refuse("cursor_forward")
    return Command(first.lower(), first, name, rest[0].lower())


def _declare(sql: str) -> Command:
    match = _CURSOR.match(sql)
    if match is None:
        raise refuse("wire_syntax", word="DECLARE")
    hold = bool(match.group(3) and "WITHOUT" not in match.group(3).upper())
    words = ("HOLD",) * hold + ("BINARY",) * ("BINARY" in (match.group(2) or "").upper())
    return Command(
        "declare", "DECLARE CURSOR", unquoted(match.group(1)), query=sql[match.end() :], offset=match.end(), words=words
    )


def _copy(sql: str) -> Command:
    """COPY (query) TO STDOUT [WITH] [(FORMAT csv, ...)] or the old words BINARY, CSV, HEADER, DELIMITER, NULL."""
    match = _COPY.match(sql)
    if match is None:
        raise (
            refuse("copy_table")
            if re.search(r"\sTO\s", sql[:MOST_COMMAND], re.IGNORECASE)
            else refuse("read_only", word="COPY FROM")
        )
    tail = list(re.finditer(r"\)\s*TO\s+STDOUT\b", sql, re.IGNORECASE))
    if not tail:
        raise refuse("copy_target")
    end = tail[-1]
    words = tuple(word for word in _WORD.findall(sql[end.end() :][:MOST_COMMAND]) if word)
    return Command("copy", "COPY", query=sql[match.end() : end.start()], offset=match.end(), words=words)


def unquoted(word: str) -> str:
    """A name or string without its quotes; a plain name is folded to lower case."""
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "\"'":
        return word[1:-1].replace(word[0] * 2, word[0])
    return word.lower() if word.isidentifier() else word


def moved(error: Error, offset: int) -> Error:
    """An error placed in the text inside of a command, placed in the whole text."""
    if error.position is not None:
        error.position += offset
    return error
