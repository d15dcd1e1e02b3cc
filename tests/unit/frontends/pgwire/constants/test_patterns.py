"""LIKE: its wildcards mean those of a regular expression, and one pattern is read once for all rows."""

import random
import re

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.constants.patterns import _between_wildcards, _like


def _expected(text: str, pattern: str) -> bool | str:
    """Return whether the whole text matches, or PostgreSQL's error where a match comes to an escape without a sign."""
    form, signs = "", iter(pattern)
    for sign in signs:
        if sign != "\\":
            form += {"%": ".*", "_": "."}.get(sign, re.escape(sign))
        elif escaped := next(signs, ""):
            form += re.escape(escaped)
        else:
            return "22025" if re.match(form + ".", text, re.DOTALL) else False
    return re.fullmatch(form, text, re.DOTALL) is not None


def _answer(text: str, pattern: str) -> bool | str:
    try:
        return _like(text, pattern)
    except Error as error:
        return error.sqlstate


def test_like_is_a_regular_expression_of_its_wildcards() -> None:
    draw = random.Random(3)
    for _ in range(20_000):
        text = "".join(draw.choices("ab\n", k=draw.randrange(7)))
        pattern = "".join(draw.choices("ab%_\\", k=draw.randrange(7)))
        assert _answer(text, pattern) == _expected(text, pattern), (text, pattern)


def test_case_is_left_aside_sign_by_sign() -> None:
    assert _like("Straße İ", "STRAßE İ", ignore_case=True) and _like("ÄrZTE", "ä%e", ignore_case=True)
    assert not _like("ÄRZTE", "ä%e") and not _like("Straße", "strasse", ignore_case=True)


def test_a_pattern_is_read_once_for_all_rows() -> None:
    _between_wildcards.cache_clear()
    assert sum(_like(f"column_{number}", "column%1") for number in range(1_000)) == 100
    assert _between_wildcards.cache_info().misses == 1
