"""Commands of a connection (SET, BEGIN, FETCH, COPY, ...), read from their words.

Every other statement is a query for the session or the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire import writes as w
from dpsql.frontends.pgwire.catalog.shape import quoted
from dpsql.frontends.pgwire.constants.moments import read_interval
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said, tokenize
from dpsql.frontends.pgwire.constants.tokens import Token as Word
from dpsql.sql.lexer import Piece
from dpsql.storage.records import dataclass

MOST_COMMAND = 4_000


@dataclass(frozen=True)
class Command:
    """One command. `kind`: what it does, usually its first word in lower case; `tag`: its command tag; `name` and `value`: what
    it names; `query`: the query inside DECLARE and COPY; `words`: further words, in upper case except for COPY."""

    kind: str
    tag: str
    name: str = ""
    value: str = ""
    query: Piece | None = None
    words: tuple[str, ...] = ()

    @property
    def is_option(self) -> bool:
        """Return whether the name is that of an option of the session, not of a setting of the connection."""
        return self.name.lower().startswith("dp.")

    @property
    def local(self) -> bool:
        """Return whether this is SET LOCAL."""
        return self.kind in ("set", "reset") and "LOCAL" in self.words


_OF_OTHERS = {"ATTACH", "DETACH", "INSTALL", "PRAGMA", "EXPORT", "USE"}
"""First words of statements that PostgreSQL does not have."""
_COMMANDS = {
    "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "RESET", "SHOW", "DISCARD",
    "DEALLOCATE", "CLOSE", "LISTEN", "UNLISTEN", "DECLARE", "FETCH", "MOVE", "COPY", "PREPARE", "EXECUTE", "NOTIFY",
}  # fmt: skip
_EXPLAINED = {
    "analyze",
    "verbose",
    "costs",
    "settings",
    "generic_plan",
    "buffers",
    "wal",
    "timing",
    "summary",
    "format",
}
_CURSOR_WORDS = {"BINARY", "ASENSITIVE", "INSENSITIVE", "SCROLL"}


def words_of(piece: Piece, tokens: Sequence[Token]) -> list[str]:
    """Return the tokens as written, with their quotes; a token of several words (GROUP BY) is split."""
    words: list[str] = []
    for token in tokens:
        source = piece.source(token)
        words += [source] if source[-1] in "\"'" else source.split()
    return words


def read_command(piece: Piece) -> Command | None:
    """Return the command of a statement; None for a query. Raises refusals with SQLSTATEs."""
    tokens = piece.tokens()
    first = piece.source(tokens[0]).upper()
    if first == "EXPLAIN":
        _check_explain(piece, tokens)
    if written := written_word(piece, tokens):
        return Command("write", written, words=w.changed_table(words_of(piece, tokens[:_MOST_HEAD])))
    if first in _OF_OTHERS:
        raise _wrong_at(piece.sql, 0)
    if first in w.MAINTAINS:
        return _maintenance(piece, first, words_of(piece, tokens[:MOST_COMMAND]))
    if first == "EXPLAIN" and (name := _explained_name(piece, tokens)):
        return Command("explain_execute", "EXPLAIN", name)
    if first not in _COMMANDS:
        return None
    if first == "DECLARE":
        return _declare(piece)
    if first == "COPY":
        return _copy(piece)
    if first in ("PREPARE", "EXECUTE"):
        return _prepared(piece, first)
    if len(piece.sql) > MOST_COMMAND:
        raise refuse("wire_syntax", word=first)
    words = words_of(piece, tokens[1:])
    upper = [word.upper() for word in words]
    _check_modes(piece.sql, first, upper)
    try:
        return _plain(first, words, upper) if first != "SET" else _set(piece.sql, words, upper)
    except IndexError:
        raise refuse("syntax", detail=f"{first} is not finished", position=len(piece.sql) + 1) from None


def _check_explain(piece: Piece, tokens: Sequence[Token]) -> None:
    """Raise what is wrong with the options of EXPLAIN."""
    if len(tokens) < 2 or tokens[1].token_type is not TokenType.L_PAREN:
        return
    words = words_of(piece, tokens[2 : _closing(tokens, 1)][:MOST_COMMAND])
    spelled = [word.upper() for word in words]
    formats = spelled[spelled.index("FORMAT") + 1 :][:1] if "FORMAT" in spelled else []
    if formats and formats[0] not in ("TEXT", "XML", "JSON", "YAML"):
        written = words[spelled.index("FORMAT") + 1].strip("'").lower()
        raise said("22023", f'unrecognized value for EXPLAIN option "format": "{written}"')
    if formats not in ([], ["TEXT"]):
        raise refuse("explain_format", format=formats[0])
    for name, *value in (option.lower().split() for option in " ".join(words).split(",") if option.strip()):
        if name not in _EXPLAINED:
            raise said("42601", f'unrecognized EXPLAIN option "{name}"')
        if name != "format" and value and value[0].strip("'") not in ("on", "off", "true", "false", "0", "1"):
            raise said("42601", f"{name} requires a Boolean value")


def _explained_name(piece: Piece, tokens: Sequence[Token]) -> str:
    """Return the name of the prepared statement that EXPLAIN EXECUTE explains; "" for another EXPLAIN."""
    start = _closing(tokens, 1) + 1 if len(tokens) > 1 and tokens[1].token_type is TokenType.L_PAREN else 1
    words = [piece.source(token) for token in tokens[start : start + 4]]
    index = next((k for k, word in enumerate(words) if word.upper() not in ("ANALYZE", "VERBOSE")), 0)
    return (
        unquoted(words[index + 1])
        if [word.upper() for word in words[index : index + 1]] == ["EXECUTE"] and words[index + 1 :]
        else ""
    )


def written_word(piece: Piece, tokens: Sequence[Token]) -> str:
    """Return what PostgreSQL calls a statement that its read-only transactions refuse; "" for another. Raises what a role without
    rights is told before."""
    first = piece.source(tokens[0]).upper()
    if first == "WITH":
        return w.change_in_with(words_of(piece, tokens[:MOST_COMMAND]))
    if first == "EXPLAIN":
        behind = next((k for k, t in enumerate(tokens) if piece.source(t).upper() in w.CHANGES), 0)
        start = _closing(tokens, 1) + 1 if len(tokens) > 1 and tokens[1].token_type is TokenType.L_PAREN else 1
        skipped = {piece.source(token).upper() for token in tokens[start:behind]}
        return piece.source(tokens[behind]).upper() if behind and skipped <= {"ANALYZE", "VERBOSE"} else ""
    if first not in w.WRITES:
        return ""
    words = words_of(piece, tokens[:_MOST_HEAD])
    if refused := w.refusal(words, [unquoted(word) for word in words]):
        raise refused
    return w.write_words(words)


def _maintenance(piece: Piece, first: str, words: list[str]) -> Command:
    """Return VACUUM, LOCK and the like. Raises what a role without rights is told of the others."""
    if refused := w.refusal(words, [unquoted(word) for word in words]):
        raise refused
    if first == "CALL":
        return Command("call", first, query=Piece(f"SELECT {piece.sql[4:]}", offset=-3))
    if first == "LOCK":
        locked = w.locked(words[1:])
        if isinstance(locked, int):
            raise _wrong_at(piece.sql, 1 + locked)
        return Command("lock", "LOCK TABLE", value=locked[0], words=locked[1])
    whole = first == "REINDEX" and (words[1:] or [""])[0].upper() in ("DATABASE", "SYSTEM", "SCHEMA")
    names = ("",) if whole else w.maintained(words[1:])
    if isinstance(names, int):
        raise _wrong_at(piece.sql, 1 + names)
    tag = "ANALYZE" if first == "ANALYSE" else first
    return Command(
        "maintain", tag, value=words[1].lower() if first == "REINDEX" and words[1:] else "table", words=names
    )


def _plain(first: str, words: list[str], upper: list[str]) -> Command | None:
    if first in ("BEGIN", "START"):
        return Command("begin", "BEGIN" if first == "BEGIN" else "START TRANSACTION", words=tuple(upper))
    if first in ("COMMIT", "END", "ROLLBACK", "ABORT"):
        return _ending(first, words, upper)
    if first in ("SAVEPOINT", "RELEASE"):
        return Command(first.lower(), first, unquoted(words[-1]))
    if first in ("RESET", "SHOW"):
        return _show(first, words, upper)
    if first in ("FETCH", "MOVE"):
        return _fetch(first, words, upper)
    if first == "DISCARD" and upper[0] not in ("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"):
        raise _wrong_at(" ".join([first, *words]), 1)
    if first == "DISCARD" and upper[0] in ("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"):
        return Command(
            "discard", f"DISCARD {upper[0][:4]}" if upper[0][:4] == "TEMP" else f"DISCARD {upper[0]}", upper[0]
        )
    if first == "DEALLOCATE":
        name = words[1] if upper[0] == "PREPARE" else words[0]
        every = name.upper() == "ALL"
        return Command("deallocate", "DEALLOCATE ALL" if every else "DEALLOCATE", "" if every else unquoted(name))
    if first == "CLOSE":
        every = upper[0] == "ALL"
        return Command("close", "CLOSE CURSOR ALL" if every else "CLOSE CURSOR", "" if every else unquoted(words[0]))
    if first in ("LISTEN", "UNLISTEN", "NOTIFY"):
        return Command(first.lower(), first, unquoted(words[0]))
    raise refuse("wire_syntax", word=first)


_MODE = r"(?:ISOLATION LEVEL (?:SERIALIZABLE|REPEATABLE READ|READ (?:UN)?COMMITTED)|READ (?:ONLY|WRITE)|(?:NOT )?DEFERRABLE)"
_MODES = rf"{_MODE}(?:(?: ,)? {_MODE})*"
_WITH_MODES = re.compile(
    rf"BEGIN(?: WORK| TRANSACTION)?(?: {_MODES})?|START TRANSACTION(?: {_MODES})?|SET TRANSACTION {_MODES}|"
    rf"SET SESSION CHARACTERISTICS AS TRANSACTION {_MODES}"
)
"""Commands that begin a transaction or change one, with what it may be."""


def _check_modes(sql: str, first: str, upper: list[str]) -> None:
    """Raise PostgreSQL's syntax error at the first word of such a command that has no meaning."""
    begins = first in ("BEGIN", "START")
    changes = first == "SET" and upper[:1] in (["TRANSACTION"], ["SESSION"]) and "TRANSACTION" in upper[:4]
    if not (begins or changes) or (changes and "SNAPSHOT" in upper) or _WITH_MODES.fullmatch(" ".join([first, *upper])):
        return
    vocabulary = {*re.findall(r"[A-Z]+", f"{_WITH_MODES.pattern}UNCOMMITTED"), ","}
    wrong = (k for k, word in enumerate(_words(sql)) if word.text.upper() not in vocabulary)
    raise _wrong_at(sql, next(wrong))


def _ending(first: str, words: list[str], upper: list[str]) -> Command:
    tag = "COMMIT" if first in ("COMMIT", "END") else "ROLLBACK"
    if upper[:1] == ["PREPARED"]:
        name = unquoted(words[-1])
        raise said("42704", f'prepared transaction with identifier "{name}" does not exist')
    if "CHAIN" in upper and "NO" not in upper:
        return Command(tag.lower(), tag, words=("CHAIN",))
    if tag == "ROLLBACK" and "TO" in upper:
        return Command("rollback_to", tag, unquoted(words[-1]))
    return Command(tag.lower(), tag)


def _set(sql: str, words: list[str], upper: list[str]) -> Command:
    scope = upper[0] if upper[0] in ("SESSION", "LOCAL") and upper[1:2] not in (["="], ["TO"]) else ""
    if scope:
        words, upper = words[1:], upper[1:]
    if upper[:2] == ["TRANSACTION", "SNAPSHOT"]:
        problem = "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ"
        raise said("0A000", problem)
    if upper[0] in ("CHARACTERISTICS", "TRANSACTION", "CONSTRAINTS"):
        tag = "SET CONSTRAINTS" if upper[0] == "CONSTRAINTS" else "SET"
        return Command("characteristics", tag, words=tuple(upper))
    if upper[0] in ("ROLE", "AUTHORIZATION"):
        return role_command(upper[0], words[-1])
    if upper[:2] == ["TIME", "ZONE"]:
        name, values = "timezone", [_zone_of_interval(sql, words[3:])] if upper[2:3] == ["INTERVAL"] else words[2:]
    elif upper[:2] == ["XML", "OPTION"]:
        name, values = "xmloption", words[2:]
    elif upper[0] in _NAMED and upper[1:2] != ["="]:
        name, values = _NAMED[upper[0]], words[1 + (upper[1] == "TO") :]
        if upper[0] == "SCHEMA" and values[0][0] not in "'$Ee":
            raise _wrong_at(sql, 2)
    else:
        return _assigned(sql, scope)
    words_for_default = ("DEFAULT", "LOCAL") if upper[:2] == ["TIME", "ZONE"] else ("DEFAULT",)
    default = len(values) == 1 and values[0].upper() in words_for_default
    return Command("reset" if default else "set", "SET", name, "".join(map(unquoted, values)), words=(scope,))


def _zone_of_interval(sql: str, words: list[str]) -> str:
    """Return the zone of SET TIME ZONE INTERVAL, as POSIX spells it: the interval is counted east of Greenwich."""
    fields = " ".join(words[1:]).lower()
    if words[0][0] != "'" or fields not in ("", "hour", "hour to minute"):
        if words[0][0] == "'" and fields:
            raise said("42601", "time zone interval must be HOUR or HOUR TO MINUTE")
        raise _wrong_at(sql, 4)
    span = read_interval(unquoted(words[0]), None, fields)
    if span.months or span.days:
        raise said("22023", f"interval time zone must not contain {'months' if span.months else 'days'}")
    hours, seconds = divmod(abs(span.micros) // 1_000_000, 3600)
    clock = f"{hours:02}" + f":{seconds // 60:02}" * bool(seconds) + f":{seconds % 60:02}" * bool(seconds % 60)
    east, west = ("-", "+") if span.micros < 0 else ("+", "-")
    return f"<{east}{clock}>{west}{clock}"


ROLES = ("role", "session_authorization")
"""Settings that are set by statements of their own."""


def role_command(word: str, written: str) -> Command:
    """Return SET ROLE or SET SESSION AUTHORIZATION."""
    name = unquoted(written)
    is_free = name in ("none", "default") if word == "ROLE" else name == "default"
    kind = "own_role" if is_free else "role"
    return Command(kind, "SET", name, "role" if word == "ROLE" else "session authorization")


def _assigned(sql: str, scope: str) -> Command:
    """Parse SET name {TO | =} {value [, ...] | DEFAULT}."""
    listed = _words(sql)
    start = index = 1 + bool(scope)
    while listed[index].kind in ("word", "quoted") and listed[index + 1].text == ".":
        index += 2
    if listed[index].kind not in ("word", "quoted") or listed[index + 1].text.upper() not in ("=", "TO"):
        raise _wrong_at(sql, index + (listed[index].kind in ("word", "quoted")))
    name = "".join(unquoted(word.source) for word in listed[start : index + 1])
    if name.lower().startswith("dp."):
        return Command("reset" if listed[index + 2].text.upper() == "DEFAULT" else "set", "SET", name, words=(scope,))
    values, index = list[str](), index + 2
    is_default = listed[index].source.upper() == "DEFAULT"
    while True:
        sign = listed[index].text if listed[index].text in ("+", "-") else ""
        index += bool(sign)
        word = listed[index]
        if word.kind not in ("word", "quoted", "string", "number") or word.source.upper() == "NULL":
            raise _wrong_at(sql, index)
        values.append(sign.strip("+") + (word.text.lower() if word.kind == "word" else word.text))
        index += 1
        if listed[index].text != ",":
            break
        index += 1
    if listed[index].text == ";":
        index += 1
    if listed[index].kind != "end":
        raise _wrong_at(sql, index)
    if len(values) > 1 and name.lower() not in _LISTS:
        raise said("22023", f"SET {name} takes only one argument")
    value = ", ".join(map(quoted, values) if name == "search_path" else values)
    if name.lower() in ROLES:
        return role_command(name.upper(), value)
    return Command("reset" if is_default and name != "all" else "set", "SET", name, value, words=(scope,))


_LISTS = {"search_path", "datestyle", "temp_tablespaces", "local_preload_libraries", "session_preload_libraries",
          "backtrace_functions", "createrole_self_grant", "wal_consistency_checking", "log_destination"}  # fmt: skip
"""Settings that take several values."""


def _words(sql: str) -> list[Word]:
    """Return the tokens of a command as PostgreSQL reads it. Raises wire_syntax for what it does not read."""
    try:
        return tokenize(sql)
    except Elsewhere:
        raise refuse("wire_syntax", word=sql.split(maxsplit=1)[0].upper()) from None


def _wrong_at(sql: str, index: int) -> Error:
    """Return PostgreSQL's syntax error at a token."""
    word = _words(sql)[index]
    near = "end of input" if word.kind == "end" else f'or near "{word.source}"'
    return said("42601", f"syntax error at {near}", word.start)


_NAMED = {"NAMES": "client_encoding", "SCHEMA": "search_path", "SEED": "seed"}
"""Settings that SET names without an equals sign."""


def _show(first: str, words: list[str], upper: list[str]) -> Command | None:
    if first == "SHOW" and upper in (["TABLES"], ["ALL", "TABLES"]):
        return None
    joined = " ".join(upper)
    if first == "RESET" and joined in ("ROLE", "SESSION AUTHORIZATION"):
        return Command("own_role", "RESET", "none", joined.lower())
    if first == "RESET" and joined == "TRANSACTION ISOLATION LEVEL":
        raise said("0A000", 'parameter "transaction_isolation" cannot be reset')
    if joined in ("TRANSACTION ISOLATION LEVEL", "TIME ZONE"):
        name = joined.lower()
    elif joined == "SESSION AUTHORIZATION":
        name = "session_authorization"
    else:
        name = "".join(map(unquoted, words))
        if wrong := set(words[1::2]) - {"."}:
            raise _wrong_at(" ".join([first, *words]), 1 + words.index(min(wrong, key=words.index)))
    if not name or words[0][0] in "$'" or words[0][0].isdecimal():
        raise _wrong_at(" ".join([first, *words]), 1)
    return Command(first.lower(), first, name)


def _fetch(first: str, words: list[str], upper: list[str]) -> Command:
    """Parse FETCH [direction] [FROM | IN] name. The command's `value` is the direction as a word and a count, such as
    "forward 1", "backward all" or "absolute 3"."""
    name, rest = unquoted(words[-1]), [word for word in upper[:-1] if word not in ("FROM", "IN")]
    if joined := {"NEXT": "forward 1", "PRIOR": "backward 1", "FIRST": "absolute 1", "LAST": "absolute -1"}.get(
        " ".join(rest)
    ):
        return Command(first.lower(), first, name, joined)
    word = rest.pop(0).lower() if rest[:1] and rest[0].isalpha() and rest[0] != "ALL" else "forward"
    count = "".join(rest) or "1"
    if word not in ("forward", "backward", "absolute", "relative") or not re.fullmatch(r"ALL|[+-]?\d{1,18}", count):
        raise refuse("wire_syntax", word=first)
    if count[0] == "-" and word in ("forward", "backward"):
        word, count = "backward" if word == "forward" else "forward", count[1:]
    return Command(first.lower(), first, name, f"{word} {count.lower()}")


def _declare(piece: Piece) -> Command:
    """Parse DECLARE name [BINARY] [ASENSITIVE | INSENSITIVE] [[NO] SCROLL] CURSOR [WITH HOLD | WITHOUT HOLD] FOR query [FOR READ
    ONLY]."""
    tokens = piece.tokens()
    head = words_of(piece, tokens[:_MOST_HEAD])
    upper = [word.upper() for word in head]
    if "CURSOR" not in upper[2:] or "FOR" not in upper[2:]:
        raise refuse("wire_syntax", word="DECLARE")
    cursor, start = upper.index("CURSOR", 2), upper.index("FOR", 2)
    options = [word for index, word in enumerate(upper[2:cursor], 3) if (word, upper[index]) != ("NO", "SCROLL")]
    holding = upper[cursor + 1 : start]
    named = head[1][0] == '"' or head[1].isidentifier() or head[1].replace("$", "_").isidentifier()
    proper = named and set(options) <= _CURSOR_WORDS and holding in ([], ["WITH", "HOLD"], ["WITHOUT", "HOLD"])
    if not proper or start + 1 >= len(tokens):
        raise refuse("wire_syntax", word="DECLARE")
    words = ("HOLD",) * (holding == ["WITH", "HOLD"]) + ("BINARY",) * ("BINARY" in options)
    words += ("NO SCROLL" if "NO" in upper[2:cursor] else "SCROLL",) * ("SCROLL" in options)
    stop = len(tokens) - 3 * ([token.text.upper() for token in tokens[-3:]] == ["FOR", "READ", "ONLY"])
    return Command("declare", "DECLARE CURSOR", unquoted(head[1]), query=piece.part(start + 1, stop), words=words)


_MOST_HEAD = 16
"""Limit on the tokens before the query of DECLARE."""


def _prepared(piece: Piece, first: str) -> Command:
    """Parse PREPARE name [(types)] AS query, and EXECUTE name [(values)]; the command's `query` is the query, or the values."""
    tokens = piece.tokens()
    if len(tokens) > 1 and piece.source(tokens[1]).upper() == "TRANSACTION":
        hint = "Set max_prepared_transactions to a nonzero value."
        raise said("55000", "prepared transactions are disabled", hint=hint)
    listed = len(tokens) > 2 and tokens[2].token_type is TokenType.L_PAREN
    end = _closing(tokens, 2) + 1 if listed else 2
    name = unquoted(piece.source(tokens[1])) if len(tokens) > 1 else ""
    if first == "EXECUTE" and name and end == len(tokens):
        return Command("execute", first, name, query=piece.part(3, end - 1) if end > 4 else None)
    if not name or end + 1 >= len(tokens) or piece.source(tokens[end]).upper() != "AS":
        raise refuse("wire_syntax", word=first)
    written = " ".join(words_of(piece, tokens[3 : end - 1]) if listed else ()).replace(" . ", ".")
    types = re.sub(r" \([\d ,]*\)", "", written).split(" , ")  # sizes bind no parameter
    return Command("prepare", first, name, query=piece.part(end + 1, len(tokens)), words=tuple(filter(None, types)))


def _copy(piece: Piece) -> Command:
    """Parse COPY (query) TO STDOUT, or of a whole table, with options [WITH] [(FORMAT csv, ...)] or in the old syntax: BINARY,
    CSV, HEADER, DELIMITER, NULL."""
    tokens = piece.tokens()
    table = len(tokens) < 2 or tokens[1].token_type is not TokenType.L_PAREN
    end = _table_end(piece, tokens) if table else _closing(tokens, 1) + 1
    behind = words_of(piece, tokens[end:][:MOST_COMMAND])
    if [word.upper() for word in behind[:2]] != ["TO", "STDOUT"]:
        raise _target_refused(behind)
    if table and TokenType.L_PAREN in (kinds := [token.token_type for token in tokens[:end]]):
        bracket = tokens[kinds.index(TokenType.L_PAREN)].start
        columns = piece.sql[bracket + 1 : tokens[end - 1].start]
        query = Piece(f"SELECT {columns} FROM {piece.sql[4:bracket]}")
    else:
        before = "SELECT * FROM"
        whole = Piece(before + piece.sql[4 : tokens[end - 1].end + 1], offset=4 - len(before))
        query = whole if table else piece.part(2, end - 1)
    return Command("copy", "COPY", query=query, words=tuple(behind[2:]))


def _target_refused(behind: Sequence[str]) -> Error:
    """Return PostgreSQL's refusal of COPY to a file or a program of the server."""
    if len(behind) < 2 or behind[0].upper() != "TO":
        return refuse("copy_target")
    target = "or from an external program" if behind[1].upper() == "PROGRAM" else "a file"
    hint = "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."
    return said("42501", f"permission denied to COPY to {target}", hint=hint)


def _table_end(piece: Piece, tokens: Sequence[Token]) -> int:
    """Return the index of the token after the name of a table that is copied, and its columns. Refuses COPY FROM."""
    words = [piece.source(token).upper() for token in tokens]
    if "TO" not in words:
        raise refuse("read_only", word="COPY FROM")
    end = words.index("TO")
    if end == 1:
        raise refuse("wire_syntax", word="COPY")
    return end


def _closing(tokens: Sequence[Token], start: int) -> int:
    """Return the index of the bracket that closes the one at `start`, or of the last token if none does."""
    depth = 0
    for index in range(start, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            return index
    return len(tokens) - 1


def unquoted(word: str) -> str:
    """Return a name or string without its quotes; a plain name is folded to lower case."""
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "\"'":
        return word[1:-1].replace(word[0] * 2, word[0])
    return word.lower() if word.isidentifier() else word


def bare_name(written: str) -> str:
    """Return the last part of a name, without quotes."""
    return unquoted(re.split(r"\.(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", written)[-1]) if written else ""


def without_local(piece: Piece) -> Piece:
    """Return SET LOCAL ... with spaces in place of LOCAL, so that positions stay: a session knows SET only."""
    token = piece.tokens()[1]
    blank = " " * (token.end + 1 - token.start)
    return Piece(f"{piece.sql[: token.start]}{blank}{piece.sql[token.end + 1 :]}", piece.line, piece.offset)


def without_options(piece: Piece) -> Piece:
    """Return EXPLAIN (...) with spaces in place of its options but ANALYZE, so that positions stay: the others change nothing."""
    tokens = piece.tokens()
    if piece.source(tokens[0]).upper() != "EXPLAIN" or len(tokens) < 3 or tokens[1].token_type is not TokenType.L_PAREN:
        return piece
    start, stop = tokens[1].start, tokens[_closing(tokens, 1)].end + 1
    options = re.sub(
        r"(?i)\b(analyze\b(?!\s+(?:off|false|0)\b))|\S", lambda match: match[1] or " ", piece.sql[start:stop]
    )
    return Piece(f"{piece.sql[:start]}{options}{piece.sql[stop:]}", piece.line, piece.offset)


def moved(error: Error, offset: int) -> Error:
    """Return an error with its position moved by `offset`: from a part of a text to the whole text."""
    if error.position is not None:
        error.position += offset
    return error
