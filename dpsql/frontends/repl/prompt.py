"""The line editor: prompt_toolkit with history, highlighting, and completion from the policy alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import PostgresLexer

from dpsql.aggregates.contract import aggregates
from dpsql.errors.exceptions import Error
from dpsql.frontends.repl.commands import as_command, names
from dpsql.sql.binder.aggregates import function_name
from dpsql.sql.lexer import read_script
from dpsql.storage.files import state_directory

if TYPE_CHECKING:
    from dpsql.policy import Policy
    from dpsql.session.session import Session

KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "LEFT JOIN", "ON", "USING", "AS",
    "WITH", "UNION ALL", "DISTINCT", "CASE", "WHEN", "THEN", "ELSE", "END", "AND", "OR", "NOT", "IN", "IS NULL",
    "BETWEEN", "LIKE", "FILTER", "OVER", "PARTITION BY", "DESC", "ASC", "EXPLAIN", "SHOW", "SET", "RESET", "DESCRIBE",
    "CAST", "INTERVAL",
)  # fmt: skip
FUNCTIONS = (
    "median", "clamp", "least", "greatest", "coalesce", "nullif", "abs",
    "sign", "round", "floor", "ceil", "sqrt", "exp", "ln", "log", "lower", "upper", "trim", "substr", "left", "right",
    "length", "concat", "replace", "date_trunc", "extract", "date_diff", "year", "quarter", "month", "day", "hour",
    "width_bucket", "dp_interval_low", "dp_interval_high", "dp_error", "row_number", "rank", "lag", "lead",
)  # fmt: skip
_WORD = re.compile(r"[\w.\\?]+\Z")


class PolicyCompleter(Completer):
    """Completion of tables, columns, functions, options and backslash commands; names of tables and columns come from the policy
    alone."""

    def __init__(self, policy: Policy, options: Iterable[str]) -> None:
        self._columns = {name.lower(): list(table.columns) for name, table in policy.visible.items()}
        self._tables = list(policy.visible)
        self._qualified = [
            table.qualified_name for table in policy.visible.values() if table.qualified_name != table.name
        ]
        self._options = [*options, "dp.budget", "dp.all"]

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        match = _WORD.search(before)
        word = match.group() if match else ""
        start = before[: len(before) - len(word)]
        if not word and not complete_event.completion_requested:
            return
        for continuation in self._words(start, word, document.text):
            if continuation.lower().startswith(word.lower()):
                yield Completion(continuation, start_position=-len(word))

    def _words(self, start: str, word: str, text: str) -> list[str]:
        if word.startswith("\\"):
            return names() if not start.strip() else []
        previous = start.rsplit(maxsplit=1)[-1].upper() if start.split() else ""
        if previous in ("SET", "RESET", "SHOW"):
            return [*self._options, *(["TABLES"] if previous == "SHOW" else [])]
        if previous == "\\SET":
            return [option.removeprefix("dp.") for option in self._options]
        if previous in ("FROM", "JOIN", "DESCRIBE", "\\D"):
            return [*self._tables, *self._qualified]
        if "." in word:
            return self._of_table(word, text)
        named = [name for name in self._tables if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)]
        columns = [column for name in named or self._tables for column in self._columns[name.lower()]]
        called = [function_name(spelling) for aggregate in aggregates() for spelling in aggregate.spellings]
        words = [*columns, *self._tables, *called, *FUNCTIONS]
        keywords = [key.lower() if word[:1].islower() else key for key in KEYWORDS]
        return list(dict.fromkeys([*words, *keywords]))

    def _of_table(self, word: str, text: str) -> list[str]:
        """Return the columns of a table as table.column and alias.column."""
        holder = word.rpartition(".")[0]
        named = re.findall(rf"\b(\w+)\s+(?:AS\s+)?{re.escape(holder)}\b", text, re.IGNORECASE)
        tables = [table.lower() for table in (holder, *named) if table.lower() in self._columns]
        return [f"{holder}.{column}" for table in tables[:1] for column in self._columns[table]]


def typed(session: Session) -> Iterator[str]:
    """Yield the complete texts that the person types, until Ctrl-D. Ctrl-C clears the line."""
    who = f"{session.analyst}@" if session.analyst else ""
    prompt = f"{who}{session.policy.dataset}> "
    editor: PromptSession[str] = PromptSession(
        prompt,
        history=_history(session.policy.dataset),
        multiline=True,
        prompt_continuation=lambda width, number, wrapped: "-> ".rjust(width),
        lexer=PygmentsLexer(PostgresLexer),
        completer=PolicyCompleter(session.policy, session.options.show()),
        complete_while_typing=True,
        auto_suggest=AutoSuggestFromHistory(),
        key_bindings=_keys(),
        enable_open_in_editor=True,
    )
    while True:
        try:
            text = editor.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip():
            yield text


def _keys() -> KeyBindings:
    """Return key bindings in which Enter ends a complete text, and begins a new line in an incomplete one."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text
        script = read_script(text)
        if as_command(text) is not None or (script.rest is None and not script.unfinished):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _history(dataset: str) -> History:
    """Return a data set's history in a file that only its owner can read, or in memory without a state directory."""
    with suppress(OSError, Error):
        folder = state_directory()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = folder / f"history.{dataset}"
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT, 0o600))
        return FileHistory(str(place))
    return InMemoryHistory()
