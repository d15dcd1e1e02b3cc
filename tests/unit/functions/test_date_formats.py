"""Words of to_char are translated only where strftime's letters mean the same."""

from __future__ import annotations

import pytest

from dpsql.functions.dates import of_words


@pytest.mark.parametrize(
    ("words", "letters"),
    [
        ("YYYY-MM-DD", "%Y-%m-%d"),
        ("HH24:MI:SS", "%H:%M:%S"),
        ("MISS", "%M%S"),
        ('"day" DDD', "day %j"),
        # seconds past midnight, and its other spelling
        ("SSSS", None),
        ("SSSSS", None),
        ("HH24SSSS", None),
        # a backslash before a quotation mark makes it a character in PostgreSQL
        ('\\"DD', None),
        ("D", None),
    ],
)
def test_words_with_another_meaning_than_their_parts_are_not_translated(words: str, letters: str | None) -> None:
    assert of_words(words) == letters
