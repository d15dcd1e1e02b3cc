"""Text for each medium: a terminal, HTML and SVG, a script in a page, JSON, Markdown, CSV for spreadsheets, pictures.

Keys of an answer are data, and names and texts of SQL are anybody's words: an escape sequence moves the cursor of a terminal, a
tag in a page runs, a control character ends the library that draws pictures, `=1+1` is a formula to a spreadsheet. Each medium
has one function that makes such text harmless, and every writer of the package uses it (`tests/test_media.py` finds those that
do not). A character that cannot be shown is spelled out (`\\x1b`), so that nothing is lost.

Characters that `str.isprintable` accepts are neither controls, formats (among them the marks that reverse the direction of a
text), surrogates, private, nor unassigned; each of them may stand in XML 1.0 (section 2.2), and so in HTML.

HTML and SVG are made from templates, and what is filled in is escaped, so that no text becomes a tag. Only this module knows how
to escape. Templates are constants in the source, never texts that are put together, and placeholders stand between tags or in
quoted attributes (`tests/test_media.py` checks both).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_MOST_IN_PICTURE = 120


def _replaced(text: str, is_kept: Callable[[str], bool], instead: Callable[[str], str]) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or is_kept(c) else instead(c) for c in text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def terminal(text: str) -> str:
    """Return text for one line of a terminal or of a log: line ends and everything else that is not printable are spelled out."""
    return _replaced(text, lambda c: False, _spelled)


def terminal_lines(text: str) -> str:
    """Return text of several lines for a terminal: `terminal` of each of them."""
    return _replaced(text, lambda c: c == "\n", _spelled)


def terminal_places(text: str) -> str:
    """Return one line in which each character keeps its place, so that a caret below it points to the right one."""
    return _replaced(text, lambda c: False, lambda c: " " if c == "\t" else "\N{REPLACEMENT CHARACTER}")


def marked_up(text: str) -> str:
    """Return text of several lines in characters that HTML and SVG allow; `dpsql.media.text` also escapes them."""
    return _replaced(text, lambda c: c == "\n" or unicodedata.category(c) == "Zs", _spelled)


def picture(text: str) -> str:
    """Return text for one line of a picture, without any backslash: Vega-Lite copies titles into expressions in which it escapes
    quotes and no backslashes, so that a title with `\\"` would be computed. A long text is cut, because a label of a million
    characters takes minutes to draw."""
    line = _replaced(
        text[: _MOST_IN_PICTURE + 1], lambda c: unicodedata.category(c) == "Zs", lambda c: f"[U+{ord(c):04X}]"
    ).replace("\\", "\N{SET MINUS}")
    return line if len(line) <= _MOST_IN_PICTURE else line[: _MOST_IN_PICTURE - 1] + "…"


def json_text(value: Any, *, indent: int | None = None, allow_nan: bool = False) -> str:
    """Return a value as JSON that a terminal may show. Characters that are not printable are written as JSON's own escapes.
    Raises ValueError for numbers that JSON lacks, unless `allow_nan`."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=allow_nan, indent=indent)
    return _replaced(text, lambda c: c == "\n", lambda c: json.dumps(c)[1:-1])


def script_json(value: Any) -> str:
    """Return a value as an expression of a script in an HTML page, which no text in it ends or comments out: it has no `<`."""
    text = json.dumps(value)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


_MARKDOWN = re.compile(r"[\\`*_\[\]<>|~&:@#!$]|(?<=www)\.")


def markdown_cell(text: str) -> str:
    """Return a text for a cell of a table in Markdown, in which it is no markup, tag, link or end of the cell."""
    return _MARKDOWN.sub(r"\\\g<0>", terminal(text))


def sql_name(name: str) -> str:
    """Return a name as a quoted identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def csv_cell(text: str) -> str:
    """Return a text as a cell of RFC 4180: quoted where a reader would take it for several cells, for NULL, or for a line end."""
    is_quoted = text == "" or any(mark in text for mark in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if is_quoted else text


def sheet_cell(text: str) -> str:
    """Return a text for a cell of a spreadsheet, with an apostrophe before one that would be taken for a formula (OWASP, "CSV
    Injection"). Numbers must not be given as text: -1 is no formula."""
    return "'" + text if text.startswith(_FORMULA_STARTS) else text


class Markup(str):
    """Text that is HTML or SVG: it was made from templates, and is not escaped again."""

    __slots__ = ()


def markup(template: str, *values: object, **named: object) -> Markup:
    """Return a template in the syntax of `str.format`, filled with values; each of them that is not markup is escaped.

    >>> markup("<p title=\"{0}\">{0}</p>", "a < b")
    '<p title="a &lt; b">a &lt; b</p>'
    """
    return Markup(template.format(*map(_escaped, values), **{name: _escaped(value) for name, value in named.items()}))


def joined(parts: Iterable[object], between: str = "") -> Markup:
    """Return the parts one after the other, those that are not markup escaped."""
    return Markup(_escaped(between).join(map(_escaped, parts)))


def _escaped(value: object) -> str:
    return value if isinstance(value, Markup) else escape(marked_up(str(value)))


def source_markup(text: str) -> Markup:
    """Return a constant of the source, such as a style sheet, as markup that is no template."""
    return Markup(text)
