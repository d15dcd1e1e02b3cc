"""The documentation in the installed package: each page of docs/ is a topic of `dpsql help`."""

from __future__ import annotations

import re
from importlib import resources
from io import StringIO

from dpsql.errors.exceptions import refuse
from dpsql.errors.suggestions import suggestion

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\([^)]+\)")
_MOST_WIDTH = 100


def topics() -> dict[str, str]:
    """Return the title of every page by its topic, which is the name of its file without the ending."""
    pages = resources.files("dpsql.frontends").joinpath("pages").iterdir()
    return {
        page.name.removesuffix(".md"): page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        for page in sorted(pages, key=lambda page: page.name)
        if page.name.endswith(".md")
    }


def topic_of(name: str) -> str:
    """Return the topic that `name` means, in any case and also as docs/NAME.md. Raises InterfaceError topic_unknown."""
    titles = topics()
    topic = name.strip().lower().removeprefix("docs/").removesuffix(".md").replace("-", "_")
    if topic not in titles:
        raise refuse("topic_unknown", topic=name, hint=f"{suggestion(topic, titles)} `dpsql help` lists all topics")
    return topic


def topic_text(topic: str) -> str:
    """Return the Markdown of a topic that `topic_of` returned."""
    page = resources.files("dpsql.frontends").joinpath("pages", f"{topic}.md")
    return page.read_text(encoding="utf-8")


def topic_list() -> str:
    """Return one line for every topic: its name and its title."""
    titles = topics()
    width = max(map(len, titles))
    return "".join(f"  {topic:<{width}}  {title}\n" for topic, title in titles.items())


def drawn_topic(topic: str, width: int, *, styled: bool) -> str:
    """Return a topic as text for a terminal of `width` characters; `styled`: with its codes for bold and colour."""
    from rich.console import Console
    from rich.markdown import Markdown

    out = StringIO()
    console = Console(
        file=out, width=min(width, _MOST_WIDTH), force_terminal=styled, color_system="standard" if styled else None,
        legacy_windows=False,
    )  # fmt: skip
    text = _PICTURE.sub(r"\1", topic_text(topic))
    console.print(Markdown(_LINK.sub(_reference, text), hyperlinks=False))
    return out.getvalue()


def _reference(link: re.Match[str]) -> str:
    """Return the text of a link: one to another page names the command that shows it; other relative links lead nowhere in a
    terminal."""
    text, target = link.groups()
    if "://" in target:
        return link.group()
    page = target.partition("#")[0]
    if not page.endswith(".md") or "/" in page:
        return text
    command = f"`dpsql help {page.removesuffix('.md')}`"
    return command if text.strip("`").endswith(page) else f"{text} ({command})"
