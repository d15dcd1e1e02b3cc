"""The screen of the prompt, and its backslash commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dpsql.errors.custodian_log import registering
from dpsql.errors.exceptions import Error, did_you_mean, refuse
from dpsql.frontends.files import replace_file, require_writable, writing
from dpsql.frontends.rendering.formats import FORMATS, write_file
from dpsql.frontends.rendering.tables import Layout, column_summary, drawn, write_table
from dpsql.frontends.rendering.terminal import notify, say, say_paged, say_styled, standard_output
from dpsql.media.text import json_text, terminal_lines
from dpsql.storage.files import state_directory
from dpsql.storage.records import dataclass, field

if TYPE_CHECKING:
    from dpsql.release.release import Release
    from dpsql.session.session import Session


@dataclass
class Screen:
    """Settings of one prompt. `layout`: \\x; `timing`: \\timing; `pager`: \\pager; `file`: \\o, None for standard output."""

    layout: Layout = Layout.AUTO
    timing: bool = False
    pager: bool = True
    file: TextIO | None = None
    place: str = ""
    _terminal: bool = field(init=False)

    def __post_init__(self) -> None:
        self._terminal = sys.stdout.isatty()

    @property
    def styled(self) -> bool:
        """Return whether text goes to a terminal, so that it may have bold and colour."""
        return self.file is None and self._terminal and "NO_COLOR" not in os.environ

    def show(self, release: Release) -> None:
        """Write an answer to the file or to the terminal, through the pager if it is longer than the terminal."""
        if self.file is not None:
            write_table(release, self.file, None, self.layout)
            self.file.flush()
            return
        if not self._terminal:
            write_table(release, standard_output(), None, self.layout)
            sys.stdout.flush()
            return
        size = shutil.get_terminal_size()
        encoding = sys.stdout.encoding or "utf-8"
        self.text(drawn(lambda out: write_table(release, out, size.columns, self.layout), encoding))

    def styled_page(self, text: str) -> None:
        """Write a page of the documentation, whose codes for bold and colour a terminal obeys."""
        if self.file is not None:
            self.text(text)
        else:
            say_styled(text, paged=self._is_long(text))

    def _is_long(self, text: str) -> bool:
        return self.pager and self._terminal and text.count("\n") >= shutil.get_terminal_size().lines

    def text(self, text: str) -> None:
        """Write text to the file or to the terminal, through the pager if it is longer than the terminal."""
        if self.file is not None:
            self.file.write(terminal_lines(text))
            self.file.flush()
        elif self._is_long(text):
            say_paged(text)
        else:
            say(text, nl=False)

    def direct(self, place: str) -> None:
        """Write later answers to the file at `place`, or to standard output if it is empty. Raises Fault file_write."""
        self.close()
        if place:
            with writing(Path(place)):
                self.file = Path(place).expanduser().open("w", encoding="utf-8")
            self.place = place

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
        self.file, self.place = None, ""

    def timed(self, work: Callable[[], Release]) -> Release:
        """Do `work`, and print how long it took if \\timing is on."""
        begun = time.monotonic()
        release = work()
        if self.timing:
            notify(f"time: {(time.monotonic() - begun) * 1000:.0f} ms", dim=True)
        return release


# --- commands ----------------------------------------------------------------------------------------------------


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
    return [usage.split()[0].replace("[+]", "") for usage in HELP]


def _show(prompt: Prompt, sql: str) -> None:
    prompt.screen.show(prompt.session.execute(sql))


def _tables(prompt: Prompt, rest: str) -> None:
    _show(prompt, "SHOW TABLES")


def _describe(prompt: Prompt, rest: str, *, fully: bool = False) -> None:
    if fully or not rest:
        _show(prompt, f"DESCRIBE {rest}" if rest else "SHOW TABLES")
        return
    release = prompt.session.execute(f"DESCRIBE {rest}")
    encoding, width = sys.stdout.encoding or "utf-8", shutil.get_terminal_size().columns
    prompt.screen.text(column_summary(release.table.to_pylist(), encoding, width))


def _explain(prompt: Prompt, rest: str, *, fully: bool = False) -> None:
    plan = prompt.session.explain(rest)
    prompt.screen.text(f"{plan.to_text()}\n" + (f"\n{plan.details()}\n" if fully else ""))


def _budget(prompt: Prompt, rest: str, *, fully: bool = False) -> None:
    session, budget = prompt.session, prompt.session.budget()
    if fully:
        prompt.screen.text(f"{budget.text()}\n")
        return
    epsilon, price = session.options.epsilon, session.planner.accountant.request(session.options.epsilon)
    lines = [budget.questions_text(session.planner.accountant.units(price), epsilon), budget.in_a_year]
    prompt.screen.text("".join(f"{line}\n" for line in lines if line))


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


def _switch(name: str, prompt: Prompt, rest: str) -> None:
    """Switch a setting of the screen on or off; without a word, to the other of the two."""
    word = _choice(f"\\{name}", rest or ("off" if getattr(prompt.screen, name) else "on"), ("on", "off"))
    setattr(prompt.screen, name, word == "on")
    prompt.screen.text(f"{name}: {word}\n")


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
        prompt.screen.show(prompt.ask(named_query(rest)))
        return
    queries = named_queries()
    prompt.screen.text(
        "".join(f"  {name:<16} {' '.join(text.split())}\n" for name, text in queries.items()) or "none\n"
    )


def _keep(prompt: Prompt, rest: str) -> None:
    name, _, text = rest.partition(" ")
    if not text.strip():
        raise refuse("command_argument", command="\\ns", problem="takes a name and a query: \\ns NAME SELECT ...")
    keep_query(name, text.strip())


def _forget(prompt: Prompt, rest: str) -> None:
    forget_query(rest)


def _help(prompt: Prompt, rest: str) -> None:
    if rest:
        _show_topic(prompt, rest)
        return
    lines = [f"  {usage:<22} {text}\n" for usage, text in HELP.items()]
    prompt.screen.text(
        "".join(lines) + "  a statement ends with ; and may have many lines. Ctrl-C stops a running question.\n"
    )


def _show_topic(prompt: Prompt, name: str) -> None:
    from dpsql.frontends.rendering.terminal import drawn_page, help_page

    columns = shutil.get_terminal_size().columns
    prompt.screen.styled_page(drawn_page(help_page(name), columns, styled=prompt.screen.styled))


def _leave(prompt: Prompt, rest: str) -> None:
    raise Leave


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


_COMMANDS: dict[str, tuple[str, Callable[..., None]]] = {
    "\\d[+] [TABLE]": ("tables, or the columns of one table (+: domains, keys, descriptions)", _describe),
    "\\dt": ("tables", _tables),
    "\\explain[+] SQL": (
        "what a question would cost and how exact it would be (+: more); nothing is charged",
        _explain,
    ),
    "\\budget[+]": ("how many questions are left (+: exact amounts)", _budget),
    "\\set [NAME [VALUE]]": ("all options, one option, or change one (\\set epsilon 0.2; \\set epsilon default)", _set),
    "\\x [on|off|auto]": ("one value a line; auto: where a table is wider than the terminal", _layout),
    "\\timing [on|off]": ("how long each question took", partial(_switch, "timing")),
    "\\pager [on|off]": ("answers longer than the terminal go through $PAGER", partial(_switch, "pager")),
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
    "\\h": _help,
    "\\help": _help,
}
_RUN |= {f"{name}+": partial(_RUN[name], fully=True) for name in ("\\d", "\\explain", "\\budget")}


# --- queries kept under names, in a file that only their owner can read ----------------------------------------


def named_queries() -> dict[str, str]:
    """Return texts by name; an empty mapping if there is no file, or if it holds something else."""
    try:
        content = json.loads(_queries_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, Error):
        return {}
    if not isinstance(content, dict):
        return {}
    return {name: text for name, text in content.items() if isinstance(text, str)}


def named_query(name: str) -> str:
    """Return the query called `name`. Raises InterfaceError query_unknown."""
    queries = named_queries()
    if name not in queries:
        hint = f"\\n lists the queries that are kept, \\ns NAME SQL keeps one{did_you_mean(name, queries)}"
        raise refuse("query_unknown", name=name, hint=hint)
    return queries[name]


def keep_query(name: str, text: str) -> None:
    """Keep `text` under `name`, in place of an earlier text of that name. Raises Fault file_write."""
    _write_queries(named_queries() | {name: text})


def forget_query(name: str) -> None:
    """Forget the query called `name`. Raises InterfaceError query_unknown, Fault file_write."""
    named_query(name)
    _write_queries({other: text for other, text in named_queries().items() if other != name})


def _queries_file() -> Path:
    return state_directory() / "named-queries.json"


def _write_queries(queries: dict[str, str]) -> None:
    """Write the file: a killed process leaves the old one or the new one."""
    place = _queries_file()
    with writing(place):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(place, lambda part: part.write_text(json_text(queries, indent=1), encoding="utf-8"), private=True)
