"""Texts that some medium obeys instead of showing them, and streams that are terminals."""

import io
import random

PARTS = (
    "</script>", "<script>alert(1)</script>", "<!--", "-->", "<img src=x onerror=alert(1)>", "]]>", "&lt;", "\"'`", '\\"+1+"',
    "${1}", "{0}", "{x}", "%s", "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x90q\x9c", "\x7f", "\x00", "\b\b\b", "\r", "\n",
    "\nnothing was charged", "\u2028", "\u202e", "\u2066", "\ufffe", "\uffff", "\ue000", "\U000e0001", "=1+1", "@SUM(A1)",
    "-2+3", "\t=1", ",", ";", "|", "[bold]", ":smile:", "x" * 700, "é", "漢",
)  # fmt: skip
"""Parts of hostile texts, without lone surrogates, which no column of text can hold."""


def hostile_texts(count: int, seed: int, *, without: str = "") -> list[str]:
    """Return `count` different texts: each part alone, then several of them, without the characters `without`."""
    source = random.Random(seed)
    drop = str.maketrans("", "", without)
    texts: dict[str, None] = {}
    for part in (*PARTS, *("".join(source.choices(PARTS, k=source.randint(2, 4))) for _ in range(10 * count))):
        text = part.translate(drop)
        if text and len(text) <= 1000:
            texts[text] = None
    return list(texts)[:count]


class FakeTerminal(io.StringIO):
    """A stream in memory that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True
