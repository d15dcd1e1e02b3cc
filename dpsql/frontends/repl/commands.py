"""Backslash commands of the prompt."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.errors.custodian_log import registering
from dpsql.errors.exceptions import refuse
from dpsql.errors.suggestions import did_you_mean
from dpsql.frontends.files import require_writable
from dpsql.frontends.rendering.formats import FORMATS, write_file
from dpsql.frontends.rendering.tables import Layout, column_summary
from dpsql.frontends.repl import named_queries
from dpsql.frontends.repl.screen import Screen
from dpsql.privacy.loss import plain_decimal

if TYPE_CHECKING:
    from dpsql.release.release import Release
    from dpsql.session.session import Session


class Leave(Exception):
    """A request to leave the prompt."""


@dataclass
class Prompt:
    """One prompt: its session, its screen, `ask` (answers one statement and prints its price) and `answer_file`."""

    session: Session
    ask: Callable[[str], Release]
    answer_file: Callable[[str], None]
    screen: Screen = field(default_factory=Screen)


WORDS = {"help": "\\?", "?": "\\?", "quit": "\\q", "exit": "\\q"}
"""Commands that may be typed without a backslash."""


def as_command(text: str) -> str | None:
    """Return the backslash command that a whole text means, None if it is SQL."""
    stripped = text.strip()
    if stripped.startswith("\\"):
        return stripped
    topic = re.fullmatch(r"help\s+(\w+)\s*;?", stripped, re.I)
    return f"\\? {topic[1]}" if topic else WORDS.get(stripped.rstrip(";").rstrip().lower())


def command(prompt: Prompt, line: str) -> None:
    """Execute one backslash command. Raises Leave for \\q, and refusals for what is wrong."""
    word, _, rest = line.partition(" ")
    name = word.rstrip(";")
    if name not in _RUN:
        raise refuse("command_unknown", word=word, hint=f"\\? lists the commands{did_you_mean(word, _RUN)}")
    _RUN[name](prompt, rest.strip().rstrip(";").rstrip())


def names() -> list[str]:
    """Return the commands, for completion."""
    return [usage.split()[0].replace("[+]", "") for usage in HELP]


def _show(prompt: Prompt, sql: str) -> None:
    prompt.screen.show(prompt.session.execute(sql))


def _tables(prompt: Prompt, rest: str) -> None:
    _show(prompt, "SHOW TABLES")


def _describe(prompt: Prompt, rest: str) -> None:
    if rest:
        release = prompt.session.execute(f"DESCRIBE {rest}")
        prompt.screen.text(column_summary(release.table.to_pylist(), sys.stdout.encoding or "utf-8"))
    else:
        _tables(prompt, rest)


def _describe_fully(prompt: Prompt, rest: str) -> None:
    _show(prompt, f"DESCRIBE {rest}" if rest else "SHOW TABLES")


def _explain(prompt: Prompt, rest: str) -> None:
    prompt.screen.text(prompt.session.explain(rest).to_text() + "\n")


def _explain_fully(prompt: Prompt, rest: str) -> None:
    plan = prompt.session.explain(rest)
    prompt.screen.text(f"{plan.to_text()}\n\n{plan.details()}\n")


def _budget(prompt: Prompt, rest: str) -> None:
    session = prompt.session
    epsilon = plain_decimal(session.options.epsilon)
    prompt.screen.text(
        f"{session.budget().text()}\n{session.questions_left():,} questions of epsilon {epsilon} can be asked\n"
    )


def _set(prompt: Prompt, rest: str) -> None:
    name, _, value = rest.partition(" ")
    option = name if name.startswith("dp.") else f"dp.{name}"
    if not value.strip():
        _show(prompt, f"SHOW {option}" if name else "SHOW dp.all")
        return
    prompt.session.execute(f"SET {option} = {value.strip().removeprefix('=').strip()}")


def _layout(prompt: Prompt, rest: str) -> None:
    """Set the layout; \\x without an argument toggles it, as in psql."""
    layouts = {"on": Layout.LINES, "off": Layout.TABLE, "auto": Layout.AUTO}
    switched = "off" if prompt.screen.layout is Layout.LINES else "on"
    word = _choice("\\x", rest or switched, tuple(layouts))
    prompt.screen.layout = layouts[word]
    prompt.screen.text(f"one value a line: {word}\n")


def _timing(prompt: Prompt, rest: str) -> None:
    word = _choice("\\timing", rest or ("off" if prompt.screen.timing else "on"), ("on", "off"))
    prompt.screen.timing = word == "on"
    prompt.screen.text(f"timing: {word}\n")


def _pager(prompt: Prompt, rest: str) -> None:
    word = _choice("\\pager", rest or ("off" if prompt.screen.pager else "on"), ("on", "off"))
    prompt.screen.pager = word == "on"
    prompt.screen.text(f"pager: {word}\n")


def _choice(word: str, argument: str, allowed: tuple[str, ...]) -> str:
    if argument.lower() not in allowed:
        raise refuse("command_argument", command=word, problem=f"takes {', '.join(allowed)}, not {argument}")
    return argument.lower()


def _include(prompt: Prompt, rest: str) -> None:
    if not rest:
        raise refuse("command_argument", command="\\i", problem="takes the name of a file")
    prompt.answer_file(_unquoted(rest))


def _output(prompt: Prompt, rest: str) -> None:
    prompt.screen.direct(_unquoted(rest))


_COPY = re.compile(
    r"\((?P<sql>.*)\)\s+to\s+(?P<place>'[^']+'|\"[^\"]+\"|\S+)(?:\s+(?:with\s+)?\(?\s*(?:format\s+)?(?P<format>\w+)\s*\)?)?\Z",
    re.IGNORECASE | re.DOTALL,
)


def _copy(prompt: Prompt, rest: str) -> None:
    """Answer \\copy (SQL) TO FILE [FORMAT]: each noisy column is followed by the two ends of its error bars."""
    match = _COPY.match(rest)
    if match is None:
        problem = "is written \\copy (SELECT ...) TO FILE.csv; tables are copied as answers of a question alone"
        raise refuse("command_argument", command="\\copy", problem=problem)
    place = Path(_unquoted(match["place"])).expanduser()
    ending = (match["format"] or place.suffix.removeprefix(".") or "csv").lower()
    formats = [name for name in FORMATS if name != "table"]
    if ending not in formats:
        raise refuse("command_argument", command="\\copy", problem=f"writes {', '.join(formats)}, not {ending}")
    require_writable(place)
    release = prompt.ask(match["sql"])
    with registering(charged=release.receipt.is_paid, passing=OSError):
        write_file(release, place, ending, bars=True)
    prompt.screen.text(f"{len(release)} row{'' if len(release) == 1 else 's'} written to {place}\n")


def _plot(prompt: Prompt, rest: str) -> None:
    """Answer \\plot (SQL) TO FILE: draw a picture. Altair is loaded on first use."""
    from dpsql.frontends.rendering.plots import check_plot, draw_release, require_drawable

    match = _COPY.match(rest)
    if match is None or match["format"]:
        raise refuse("command_argument", command="\\plot", problem="is written \\plot (SELECT ...) TO FILE.svg")
    place = Path(_unquoted(match["place"])).expanduser()
    check_plot(place)
    require_drawable(prompt.session, match["sql"])
    draw_release(prompt.ask(match["sql"]), place)
    prompt.screen.text(f"drawn to {place}\n")


def _named(prompt: Prompt, rest: str) -> None:
    if rest:
        prompt.screen.show(prompt.ask(named_queries.query(rest)))
        return
    queries = named_queries.all_queries()
    prompt.screen.text(
        "".join(f"  {name:<16} {' '.join(text.split())}\n" for name, text in queries.items()) or "none\n"
    )


def _keep(prompt: Prompt, rest: str) -> None:
    name, _, text = rest.partition(" ")
    if not text.strip():
        raise refuse("command_argument", command="\\ns", problem="takes a name and a query: \\ns NAME SELECT ...")
    named_queries.keep(name, text.strip())


def _forget(prompt: Prompt, rest: str) -> None:
    named_queries.forget(rest)


def _help(prompt: Prompt, rest: str) -> None:
    if rest:
        _show_topic(prompt, rest)
        return
    lines = [f"  {usage:<22} {text}\n" for usage, text in HELP.items()]
    prompt.screen.text(
        "".join(lines) + "  a statement ends with ; and may have many lines. Ctrl-C stops a running question.\n"
    )


def _show_topic(prompt: Prompt, name: str) -> None:
    from dpsql.frontends.rendering.topics import drawn_page, help_page

    columns = shutil.get_terminal_size().columns
    prompt.screen.styled_page(drawn_page(help_page(name), columns, styled=prompt.screen.styled))


def _leave(prompt: Prompt, rest: str) -> None:
    raise Leave


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


_COMMANDS: dict[str, tuple[str, Callable[[Prompt, str], None]]] = {
    "\\d[+] [TABLE]": ("tables, or the columns of one table (+: domains, keys, descriptions)", _describe),
    "\\dt": ("tables", _tables),
    "\\explain[+] SQL": (
        "what a question would cost and how exact it would be (+: more); nothing is charged",
        _explain,
    ),
    "\\budget": ("what is spent and left", _budget),
    "\\set [NAME [VALUE]]": ("all options, one option, or change one (\\set epsilon 0.2; \\set epsilon default)", _set),
    "\\x [on|off|auto]": ("one value a line; auto: where a table is wider than the terminal", _layout),
    "\\timing [on|off]": ("how long each question took", _timing),
    "\\pager [on|off]": ("answers longer than the terminal go through $PAGER", _pager),
    "\\i FILE": ("answer the statements of a file", _include),
    "\\o [FILE]": ("write answers to a file; without FILE to the terminal again", _output),
    "\\copy (SQL) TO FILE": ("ask, and write the answer as csv, json, parquet or arrow (by the file's ending)", _copy),
    "\\plot (SQL) TO FILE": (
        "ask, and draw the answer with its error bars (.svg, .png, .html; needs the extra plot)",
        _plot,
    ),
    "\\n [NAME]": ("the queries kept under names, or ask one of them", _named),
    "\\ns NAME SQL": ("keep a query under a name", _keep),
    "\\nd NAME": ("forget the query of that name", _forget),
    "\\? [WORDS]": ("this help (so does help), a page (help sql), an error by its slug, or words", _help),
    "\\q": ("leave (so do Ctrl-D, quit and exit)", _leave),
}
"""Each command: how it is written, what it does in words, and in fact. A command with [+] has another form that shows more."""
HELP = {usage: words for usage, (words, _) in _COMMANDS.items()}
_RUN = {usage.split()[0].removesuffix("[+]"): run for usage, (_, run) in _COMMANDS.items()} | {
    "\\d+": _describe_fully, "\\explain+": _explain_fully, "\\h": _help, "\\help": _help,
}  # fmt: skip
