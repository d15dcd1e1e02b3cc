"""Random texts that are barely SQL: bytes, Unicode, and single pieces repeated."""

import random

_WORDS = (
    "SELECT ", "FROM ", "visits ", "COUNT(*) ", "WHERE ", "(", ")", "'", '"', ",", ";", "--", "/*", "*/", "$$", "$1", "?", ":a", ".", "*", "=", "0", "9", "e", "CASE ", "WHEN ", "END ", "[", "]",
    "{", "}", "\\", "\n", "\t", "\r", "\x0b", "\u00a0", "\u2028", "\ufeff", "\u202e", "\u0000", "\ud800", "\udfff", "\U0010ffff", "\u0301", "é", "日本", "١", "İ", "ſ", "ﬀ", "@", "#", "~", "`", "||", "::", "->",
    "{{", "{%", "EXPLAIN ", "EXPLAIN PRIVACY ", "SET dp.epsilon = ", "SHOW ", "BEGIN ", "U&'", "E'\\", "x'", "1e", "0x", "\x1b[31m", "%s", "%(a)s", "{0}", "\x7f", "\x85",
)  # fmt: skip


def random_text(rng: random.Random) -> str:
    """Return one of three kinds of arbitrary text."""
    kind = rng.random()
    if kind < 0.4:
        return "".join(rng.choice(_WORDS) for _ in range(rng.choice([1, 2, 5, 10, 30])))
    if kind < 0.7:
        letters = [
            chr(rng.choice([rng.randrange(128), rng.randrange(0x300), rng.randrange(0x110000)]))
            for _ in range(rng.randrange(60))
        ]
        prefix = rng.choice(["", "SELECT ", "SELECT COUNT(*) FROM visits WHERE ", "SET dp.epsilon = ", "EXPLAIN "])
        return prefix + "".join(letters)
    raw = bytes(rng.randrange(256) for _ in range(rng.randrange(80)))
    return raw.decode(rng.choice(["latin-1", "utf-8"]), rng.choice(["replace", "surrogateescape", "ignore"]))
