"""Everything that the command line and the prompt print, in text that a terminal shows and does not obey."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from importlib import resources
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from dpsql.errors.exceptions import REGISTER, nearest, refuse, suggestion
from dpsql.media.text import json_text, terminal, terminal_lines

if TYPE_CHECKING:
    from rich.progress import TaskID


class _Cleaned:
    """Standard output at a terminal, for writers of whole tables."""

    encoding = property(lambda self: sys.stdout.encoding)

    def write(self, text: str) -> int:
        say(text, nl=False)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: `say` flushes."""

    def isatty(self) -> bool:
        return True


def standard_output() -> TextIO:
    """Return standard output for an answer: as it is for a program that reads it, cleaned for a terminal."""
    return cast(TextIO, _Cleaned()) if sys.stdout.isatty() else sys.stdout


def say(text: str, *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print text of one or more lines; `style`: of `click.style`, such as `fg` or `bold`."""
    _print(terminal_lines(text), err, nl, style)


def notify(text: str, *, nl: bool = True, **style: Any) -> None:
    """Print text as `say` does on standard error, where everything goes that is no data."""
    _print(terminal_lines(text), True, nl, style)


def say_line(text: str, *, err: bool = False, **style: Any) -> None:
    """Print one line that quotes data, names or SQL, with its line ends spelled out: none of it can pass for a line of ours."""
    _print(terminal(text), err, True, style)


def say_cells(*cells: str) -> None:
    """Print one line of cells with tabs between them; a tab in a cell is spelled out."""
    _print("\t".join(map(terminal, cells)), False, True, {})


def _print(text: str, err: bool, nl: bool, style: dict[str, Any]) -> None:
    click.echo(click.style(text, **style) if style else text, err=err, nl=nl)  # without a style there is none to reset


def say_json(value: Any, *, indent: int | None = None) -> None:
    click.echo(json_text(value, indent=indent, allow_nan=True))


def say_styled(text: str, *, paged: bool = False) -> None:
    """Print a page of our own documentation, with its codes for bold and colour; `paged`: through the pager."""
    if paged:
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)


def say_paged(text: str) -> None:
    click.echo_via_pager(terminal_lines(text))


def spinner() -> AbstractContextManager[object]:
    """Return a context that shows on a terminal that a question is being worked on."""
    from rich.console import Console

    return Console(stderr=True).status("working on the data, Ctrl-C stops", spinner="line")


def waiting() -> Callable[[], AbstractContextManager[object]] | None:
    return spinner if sys.stderr.isatty() else None


# --- progress of a batch run on standard error: a bar on a terminal, plain lines elsewhere ----------------------------


class Progress:
    """The progress of a run; a context manager."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._total = self._count = 0
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._bar = Bar(*columns, console=Console(stderr=True, highlight=False, markup=False), transient=True)
        self._task: TaskID | None = None

    def say(self, text: str) -> None:
        """Show one or more lines above the bar."""
        if self._task is not None:
            self._bar.console.print(terminal_lines(text), soft_wrap=True)
        else:
            notify(text)

    def begin(self, total: int) -> None:
        """Announce how many statements will be answered, and show the bar for the first time."""
        self._total = total
        if sys.stderr.isatty() and total:
            self._bar.start()
            self._task = self._bar.add_task("answering", total=total)

    def done(self, name: str) -> None:
        """Advance the bar; `name`: the file of the result."""
        self._count += 1
        if self._task is not None:
            self._bar.update(self._task, advance=1, description=terminal(name))
        else:
            self.say(f"[{self._count}/{self._total}] {name}")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._task is not None:
            self._bar.stop()
            self._task = None


# --- the documentation in the installed package, for `dpsql help`: each page of docs/ is a topic, and each error has a slug

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\([^)]+\)")
_MOST_WIDTH = 100
_MOST_PLACES = 12
_CODE = re.compile(r"^```.*?^```\n", re.S | re.M)
_TERM = re.compile(r"^- \*\*(.*?)\*\*[^:\n]*:((?:.|\n(?!- |\n|#))*)", re.M)
"""An explained term, a section of its own where words are looked for."""
_SECTION = re.compile(r"^#+ (.*)\n((?:(?!#+ ).*\n)*)", re.M)


def topics() -> dict[str, str]:
    """Return the title of every page by its topic, which is the name of its file without the ending."""
    pages = resources.files("dpsql.frontends").joinpath("pages").iterdir()
    return {
        page.name.removesuffix(".md"): page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        for page in sorted(pages, key=lambda page: page.name)
        if page.name.endswith(".md")
    }


def help_page(words: str) -> str:
    """Return as Markdown what `dpsql help WORDS` shows: the page of a topic (in any case, also as docs/NAME.md), the entry of an
    error by its slug, else where all of the words stand. Raises InterfaceError topic_unknown if that is nowhere.
    """
    titles, name = topics(), words.strip().lower()
    topic = name.removeprefix("docs/").removesuffix(".md").replace("-", "_")
    if topic in titles:
        return _page(topic)
    if entry := REGISTER.get(topic):
        lines = [f"# {entry.slug}", f"SQLSTATE {entry.sqlstate}, {entry.raises.__name__}", f"`{entry.sentence}`"]
        return "\n\n".join([*lines, *([f"Way out: {entry.hint}"] if entry.hint else [])]) + "\n"
    if indexes := _places(name.split(), titles):
        return f"# {words.strip()}\n\n" + "".join(f"- {index}\n" for index in indexes)
    near = titles if nearest(topic, REGISTER) is None else REGISTER
    raise refuse("topic_unknown", topic=words, hint=f"{suggestion(topic, near)} `dpsql help` lists all topics")


def _places(words: list[str], titles: Iterable[str]) -> list[str]:
    """Return the errors and the sections of pages that have all words, those whose heading has most of them first."""
    patterns = [re.compile(rf"(?<![^\W_]){re.escape(word)}", re.I) for word in words]

    def count(text: str) -> int:
        return sum(pattern.search(text) is not None for pattern in patterns)

    errors = [
        f"`{entry.slug}`: {entry.sentence}"
        for entry in REGISTER.values()
        if 0 < len(words) == count(f"{entry.slug} {entry.sqlstate} {entry.sentence} {entry.hint}")
    ]
    sections = [
        (
            count(heading),
            f"`dpsql help {topic}`, {heading}: {max(body.splitlines() or [''], key=count).strip(' |')[:200]}",
        )
        for topic in titles
        if topic != "refusals"
        for heading, body in _SECTION.findall(_TERM.sub(_term_section, _CODE.sub("", _page(topic))))
        if 0 < len(words) == count(f"{heading}\n{body}")
    ]
    sections.sort(key=lambda section: -section[0])
    listed = [*(line for _, line in sections[:_MOST_PLACES]), *errors[:_MOST_PLACES]]
    more = len(sections) + len(errors) - len(listed)
    return listed + ([f"and {more} more: add a word"] if more else [])


def _term_section(term: re.Match[str]) -> str:
    return f"# {term[1]}\n{' '.join(term[2].split())}\n"


def _page(topic: str) -> str:
    return resources.files("dpsql.frontends").joinpath("pages", f"{topic}.md").read_text(encoding="utf-8")


def topic_list() -> str:
    """Return one line for every topic: its name and its title."""
    titles = topics()
    width = max(map(len, titles))
    return "".join(f"  {topic:<{width}}  {title}\n" for topic, title in titles.items())


def drawn_page(page: str, width: int, *, styled: bool) -> str:
    """Return Markdown as text for a terminal of `width` characters; `styled`: with its codes for bold and colour."""
    from rich.console import Console
    from rich.markdown import Markdown

    out = StringIO()
    console = Console(
        file=out, width=min(width, _MOST_WIDTH), force_terminal=styled, color_system="standard" if styled else None,
        legacy_windows=False,
    )  # fmt: skip
    console.print(Markdown(_LINK.sub(_reference, _PICTURE.sub(r"\1", page)), hyperlinks=False))
    return out.getvalue()


def _reference(link: re.Match[str]) -> str:
    """Return the text of a link: of one to a page with the command that shows it; other relative links lead nowhere."""
    text, target = link.groups()
    if "://" in target:
        return link.group()
    page = target.partition("#")[0]
    if not page.endswith(".md") or "/" in page:
        return text
    command = f"`dpsql help {page.removesuffix('.md')}`"
    return command if text.strip("`").endswith(page) else f"{text} ({command})"
