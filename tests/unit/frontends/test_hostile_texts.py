"""Whatever keys, names, remarks and questions contain, each writer shows it and no medium obeys it.

The products are read by real parsers: of HTML, XML, CSV and JSON. A terminal obeys control characters, and so the text for one has
none but the ends of its own lines.
"""

import csv
import io
import json
import random
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.written_release import WrittenBars, written_release

from dpsql.errors.exceptions import refuse
from dpsql.frontends.batch import statements
from dpsql.frontends.cli import ask, status_of
from dpsql.frontends.pgwire.messages import error_response, notice_response
from dpsql.frontends.rendering import plots, terminal
from dpsql.frontends.rendering.formats import write_csv, write_json, write_rows, write_text
from dpsql.frontends.rendering.plots import release_chart, specification
from dpsql.frontends.rendering.tables import Layout, column_summary, write_table
from dpsql.media.text import marked_up
from dpsql.plan.intervals import Type
from dpsql.release.release import Release
from dpsql.release.value_text import answer_html
from dpsql.session.session import open_session
from dpsql_audit.pictures import bounds_picture

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


TEXTS = hostile_texts(150, seed=34)


def answers() -> Iterator[Release]:
    """Yield answers with hostile keys, names and remarks, thirty at a time."""
    for first in range(0, len(TEXTS), 30):
        keys = TEXTS[first : first + 30]
        yield written_release(
            [(keys[0], Type.TEXT, keys), (keys[-1], Type.INTEGER, list(range(len(keys))))],
            {1: [1.0] * len(keys)},
            notices=tuple(keys),
            bars=WrittenBars(tuple(keys)),
        )


def rows_of(release: Release) -> list[list[str]]:
    return [list(map(str, row)) for row in zip(*(column.to_pylist() for column in release.table.columns), strict=True)]


# --- terminals ---------------------------------------------------------------------------------------------------


def to_terminal(write: Callable[[Release, Any], None], release: Release) -> str:
    out = FakeTerminal()
    write(release, out)
    return out.getvalue()


@pytest.mark.parametrize(
    "write",
    [
        write_table,
        lambda release, out: write_table(release, out, 40),
        lambda release, out: write_table(release, out, None, Layout.LINES),
        lambda release, out: write_text(release, out, "csv", bars=True),
        lambda release, out: write_text(release, out, "json", bars=False),
        lambda release, out: write_rows(release.table.column_names, rows_of(release), out, "table"),
        lambda release, out: write_rows(release.table.column_names, rows_of(release), out, "csv"),
        lambda release, out: write_rows(release.table.column_names, rows_of(release), out, "json"),
    ],
    ids=["table", "narrow", "lines", "csv", "json", "rows", "rows_csv", "rows_json"],
)
def test_answers_at_a_terminal_move_no_cursor(write: Callable[[Release, Any], None]) -> None:
    for release in answers():
        text = to_terminal(write, release)
        assert text.replace("\n", "").isprintable()


def test_a_table_has_a_line_for_each_row() -> None:
    """A line end in a key makes no second row."""
    for release in answers():
        assert len(to_terminal(write_table, release).splitlines()) == len(release) + 2


def test_everything_printed_is_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in [*TEXTS, "\ud800"]:
        _printed(text, monkeypatch)


def _printed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = FakeTerminal(), FakeTerminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    terminal.say(text)
    terminal.say_line(text, err=True)
    terminal.say_json({text: [text]})
    terminal.standard_output().write(text)
    terminal.standard_output().writelines([text])
    terminal.say(
        column_summary(
            [dict.fromkeys(("column", "type", "domain", "outside", "keys", "description"), text) | {"nullable": 1}],
            "utf-8",
            80,
        )
    )
    assert out.getvalue().replace("\n", "").isprintable() and err.getvalue().count("\n") == 1
    assert err.getvalue().replace("\n", "").isprintable()


def test_errors_quote_what_they_are_about_in_one_line() -> None:
    for text in [*TEXTS, "\ud800", "a\udfffb"]:
        error = refuse("unknown_column", name=text, table=text, hint=text).placed_in(f"SELECT {text}", 8)
        assert error.text().replace("\n", "").isprintable() and str(error).encode()
        assert "\n" not in error.message


def test_what_a_server_says_may_be_printed() -> None:
    for text in [*TEXTS, "\ud800"]:
        for message in (notice_response(text, detail=text), error_response("22000", text, detail=text, hint=text)):
            assert message[5:].decode().replace("\0", "").replace("\n", "").isprintable()


# --- programs and spreadsheets -------------------------------------------------------------------------------------------


def test_files_have_the_answer_unchanged() -> None:
    for release in answers():
        out = io.StringIO()
        write_csv(release.table, out)
        assert list(csv.reader(io.StringIO(out.getvalue(), newline=""))) == [
            release.table.column_names,
            *rows_of(release),
        ]
        out = io.StringIO()
        write_json(release, out)
        written = json.loads(out.getvalue())
        assert [list(map(str, row.values())) for row in written["rows"]] == rows_of(release)
        assert written["notices"] == list(release.notices) and out.getvalue()[:-1].isprintable()


def test_a_spreadsheet_gets_texts_and_no_formulas() -> None:
    for release in answers():
        out = io.StringIO()
        write_csv(release.table, out, for_spreadsheet=True)
        read = list(csv.reader(io.StringIO(out.getvalue(), newline="")))
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for row in read for cell in row)
        assert [row[1] for row in read[1:]] == [row[1] for row in rows_of(release)], "numbers are numbers"


# --- pages and pictures --------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The tags, attributes and texts of a page; comments and other declarations are noted as tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {attribute for attribute, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.tags.append("comment")


def test_a_notebook_shows_answers_as_text() -> None:
    for release in answers():
        keys = release.table.column(0).to_pylist()
        page = Tags(answer_html(release.table.column_names, rows_of(release), [None, None], len(release), keys))
        assert set(page.tags) == {"table", "thead", "tbody", "tr", "th", "td", "p"} and not page.attributes
        assert page.tags.count("td") == 2 * len(keys) and {marked_up(key) for key in keys} <= set(page.texts)


def test_a_report_shows_answers_and_questions_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "svg", lambda chart: json.dumps(specification(chart)))
    for release in answers():
        keys, (name, _) = release.table.column(0).to_pylist(), release.table.column_names
        one_each: list[dict[str, Any]] = [{"n": 1.0}] * len(keys)
        note = {
            "columns": [{"name": name, "type": "text", "noisy": False}, {"name": "n", "type": "integer", "noisy": True}],
            "rows": [{name: key, "n": 1} for key in keys], "low": one_each, "high": one_each, "error": one_each,
            "confidence": 0.95, "receipt": keys[1], "price": keys[2], "charged": keys[3], "reused": False, "notices": keys,
            "notes": keys,
        }  # fmt: skip
        page = Tags("".join(statements._answer_parts(note)))
        assert set(page.tags) == {"table", "thead", "tbody", "tr", "th", "td", "p", "img"}
        assert page.attributes == {"alt", "src"} and {marked_up(key) for key in keys} <= set(page.texts)


def test_pictures_of_an_audit_are_svg() -> None:
    picture = ET.fromstring(bounds_picture([(1.0, 0.5, text) for text in TEXTS]))
    titles = {title.text for title in picture.iter("title")}
    assert {f"{marked_up(text)}: 0.50 of what is claimed" for text in TEXTS} == titles


def test_charts_have_a_label_for_each_key_that_no_picture_obeys() -> None:
    pytest.importorskip("altair")
    for release in answers():
        described = specification(release_chart(release))
        labels = {row["key"] for row in _rows(described)}
        assert len(labels) == len(release), "cutting and cleaning merge no keys"
        for text in _strings(described):
            assert "\\" not in text and text.isprintable() and len(text) <= 120
            assert ET.fromstring(f"<t>{escape(text)}</t>").text == text


def _rows(node: Any) -> Iterator[dict[str, Any]]:
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _rows(part)
    if isinstance(node, dict) and "key" in node and "value" in node:
        yield node


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _strings(part)


# --- from the question to the screen -------------------------------------------------------------------------------------

KEYS = hostile_texts(25, seed=35, without="\0")


@pytest.fixture
def hostile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a data set whose keys and descriptions are hostile."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    with duckdb.connect("data.duckdb") as connection:
        connection.execute("CREATE TABLE t (id INTEGER, k VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(KEYS)))
    column = {"type": "text", "domain": KEYS, "nullable": False, "description": "".join(KEYS)[:900]}
    policy = {
        "dataset": "d", "source": "duckdb:///data.duckdb", "privacy_unit": {"table": "t", "column": "id"},
        "budget": {"epsilon": 100, "delta": 1e-6, "accountant": "pure"}, "per_query": {"epsilon": 1, "max_epsilon": 1},
        "ledger": "sqlite:///ledger.db",
        "tables": {"t": {"max_rows": 1, "columns": {"id": {"type": "integer", "nullable": False}, "k": column}}},
    }  # fmt: skip
    Path("p.yaml").write_text(json.dumps(policy), encoding="utf-8")
    assert status_of(["check", "p.yaml", "--create-ledger"]) == 0
    return tmp_path


def alias(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_commands_print_no_controls(hostile_folder: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = FakeTerminal(), FakeTerminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(ask, "waiting", lambda: None)  # a spinner moves the cursor
    sql = f"SELECT k AS {alias(KEYS[13])}, COUNT(*) AS {alias(''.join(KEYS[:20]))} FROM t GROUP BY k"
    assert status_of(["query", "-p", "p.yaml", "-f", format, sql]) == 0, err.getvalue()
    assert status_of(["explain", "-p", "p.yaml", sql]) == 0
    assert status_of(["query", "-p", "p.yaml", "DESCRIBE t"]) == 0
    for wrong in (f"SELECT {alias(KEYS[20])} FROM t", f"SELECT COUNT(*) FROM {alias(KEYS[21])}", f"SELECT '{KEYS[1]}"):
        assert status_of(["query", "-p", "p.yaml", wrong]) != 0
    assert status_of(["query", "-p", "p.yaml", "--analyst", "".join(KEYS[13:22]), sql]) != 0
    for text in (out.getvalue(), err.getvalue()):
        assert text.replace("\n", "").isprintable()


def test_python_shows_answers_and_errors_as_text(hostile_folder: Path) -> None:
    with open_session(Path("p.yaml")) as session:
        release = session.execute(f"SELECT k AS {alias(KEYS[13])}, COUNT(*) AS {alias(KEYS[14])} FROM t GROUP BY k")
    assert repr(release).replace("\n", "").isprintable() and len(repr(release).splitlines()) <= 24
    page = Tags(release._repr_html_())
    assert set(page.tags) == {"table", "thead", "tbody", "tr", "th", "td", "p"} and not page.attributes


@pytest.mark.parametrize("ending", ["svg", pytest.param("png", marks=pytest.mark.slow), "html", "json"])
def test_pictures_of_hostile_keys_are_drawn(hostile_folder: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    if ending == "html":  # the scripts take seconds, and are the same in every page
        monkeypatch.setattr(plots, "_drawn", lambda kind, described, charged: b"scripts();")
    sql = f"SELECT k AS {alias(''.join(KEYS[:30]))}, COUNT(*) AS {alias(''.join(KEYS[10:22]))} FROM t GROUP BY k"
    assert status_of(["plot", "-p", "p.yaml", sql, "-o", f"x.{ending}"]) == 0
    drawn = Path(f"x.{ending}").read_bytes()
    if ending == "svg":
        assert {element.tag.split("}")[1] for element in ET.fromstring(drawn).iter()} <= {
            "svg", "g", "rect", "path", "line", "text", "tspan", "defs", "clipPath", "title", "style",
        }  # fmt: skip
    elif ending == "html":
        page = Tags(drawn.decode())
        assert page.tags == ["html", "head", "meta", "title", "style", "script", "body", "div", "script"]
        value = page.texts[-2 if page.texts[-1].isspace() else -1]
        start = value.index('{"config"') if '{"config"' in value else value.index("{")
        assert json.JSONDecoder().raw_decode(value[start:])[0]["config"]
    elif ending == "json":
        assert json.loads(drawn)["config"]
    else:
        assert drawn.startswith(b"\x89PNG")
