"""HTML and SVG from templates: what is filled in is escaped, so that no text becomes a tag.

Only this module knows how to escape. Templates are constants in the source, never texts that are put together, and placeholders
stand between tags or in quoted attributes (`tests/test_media.py` checks both).
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from dpsql.media.text import marked_up


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
