"""Text of each medium is harmless there, and says which characters it had."""

import csv
import io
import json
import unicodedata
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.media import text as media

EVERY = "".join(map(chr, range(0x110000)))
HOSTILE = st.text(
    st.one_of(
        st.characters(), st.sampled_from("\x1b\x9b\x00\n\r\t\u202e\u2066\ufffe\ud800<>&'\"=+-@,;\\{}!/\x7f\u2028")
    ),
    max_size=60,
)


@pytest.mark.parametrize("clean", [media.terminal, media.terminal_places])
def test_every_character_can_be_printed(clean: object) -> None:
    assert callable(clean) and clean(EVERY).isprintable()


def test_lines_stay_lines_where_the_medium_has_lines() -> None:
    assert media.terminal_lines(EVERY).replace("\n", "").isprintable()
    assert media.terminal_lines("a\n\x1bb") == "a\n\\x1bb" and media.terminal("a\n\x1bb") == "a\\n\\x1bb"


def test_only_what_moves_the_cursor_is_spelled_out() -> None:
    assert media.terminal("a\tb\x00\x7f\u2028\u202e") == "a\\tb\\x00\\x7f\\u2028\\u202e"
    assert media.terminal("Żółć ± 漢字 \\") == "Żółć ± 漢字 \\"


def test_a_caret_below_the_text_keeps_its_column() -> None:
    for character in EVERY[:0x3000]:
        assert len(media.terminal_places(f"a{character}b")) == 3


@pytest.mark.parametrize("clean", [media.marked_up, media.picture])
def test_every_character_may_stand_in_xml(clean: object) -> None:
    """XML 1.0, section 2.2, by a parser that refuses everything else."""
    assert callable(clean)
    kept = {c for c in EVERY if clean(c) == c and c not in "<>&"}
    text = "".join(kept)
    assert ET.fromstring(f"<t>{text}</t>").text == text
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Cn", "Co") for c in kept - {"\n"})
    assert "\u00a0" in kept and "é" in kept, "French numbers have spaces that do not break"


def test_a_label_of_a_picture_is_one_short_line() -> None:
    assert len(media.picture("x" * 1_000_000)) == 120 and "\n" not in media.picture("a\nb")
    assert media.picture("x" * 120) == "x" * 120
    assert "\\" not in media.picture(EVERY[:100]) and media.picture("a\x1bb") == "a[U+001B]b"


@given(HOSTILE)
def test_json_is_printable_and_reads_back(text: str) -> None:
    written = media.json_text({"k": [text], text: None}, indent=1)
    assert written.replace("\n", "").isprintable() and written.encode()
    assert json.loads(written) == {"k": [text], text: None}


@given(HOSTILE)
def test_a_script_is_ended_by_no_text_and_reads_back(text: str) -> None:
    written = media.script_json([text])
    assert written.isascii() and written.isprintable() and not set("<>&") & set(written)
    assert json.loads(written) == [text]


@given(st.lists(HOSTILE, min_size=1, max_size=4))
def test_cells_of_csv_read_back(cells: list[str]) -> None:
    read = list(csv.reader(io.StringIO(",".join(map(media.csv_cell, cells)), newline="")))
    assert read == [cells]


@given(HOSTILE)
def test_a_spreadsheet_finds_no_formula(text: str) -> None:
    cell = media.sheet_cell(text)
    assert cell.removeprefix("'") == text.removeprefix("'")
    assert (
        unicodedata.normalize("NFKC", cell)[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n")
        or cell == text[:1] == "\n"
    )


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1"])
def test_a_formula_has_an_apostrophe(text: str) -> None:
    assert media.sheet_cell(text) == f"'{text}"
