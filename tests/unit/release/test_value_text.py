"""Numbers in human-readable form: no line of three hundred digits."""

from __future__ import annotations

import pytest

from dpsql.release.value_text import answer_html, half_width_text


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (0.0, "0"),
        (0.01234, "0.0124"),
        (999.1, "1e+03"),
        (123456.0, "124,000"),
        (1e304, "1e+304"),
        (1.2344e20, "1.24e+20"),
        (float("inf"), "inf"),
    ],
)
def test_half_widths_are_short(width: float, text: str) -> None:
    assert half_width_text(width) == text


@pytest.mark.parametrize(("value", "error"), [(1e304, 2e303), (3.0, 1e304), (10**30, 5.0), (-1e200, None)])
def test_huge_numbers_in_a_page_are_written_with_exponents(value: float, error: float | None) -> None:
    page = answer_html(["x"], [(value,)], [[error]], 1, ())
    assert "plusmn" in page and len(page) < 200
