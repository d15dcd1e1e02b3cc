"""Pictures of answers and errors show exactly what was released, and nothing that cannot be drawn is charged."""

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from support.clinic_folder import Clinic

from dpsql.errors.exceptions import Error
from dpsql.frontends.cli import status_of
from dpsql.frontends.rendering import plots
from dpsql.plan.intervals import Type
from dpsql.release.release import OutputColumn
from dpsql.session.session import open_session

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
GROUPED = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM patients GROUP BY region"


def run(clinic: Clinic, *words: str, command: str = "plot") -> int:
    return status_of([command, "-p", str(clinic.policy), *words])


def marks(chart: dict[str, Any]) -> set[str]:
    """Return the kinds of marks anywhere in a chart."""
    parts = [*chart.get("layer", []), *chart.get("vconcat", [])]
    mark = chart.get("mark")
    found = {mark["type"] if isinstance(mark, dict) else mark} if mark else set()
    return found.union(*map(marks, parts)) if parts else found


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>"), ("json", b"{")]
)
def test_a_picture_is_written_as_its_ending_says(clinic: Clinic, ending: str, start: bytes, tmp_path: Path) -> None:
    place = tmp_path / f"picture.{ending}"
    assert run(clinic, GROUPED, "--out", str(place)) == 0
    assert place.read_bytes().lstrip()[: len(start)].lower() == start.lower()
    assert clinic.charges() == 1
    if ending == "html":
        assert b'src="http' not in place.read_bytes(), "the page needs no network"


def test_a_picture_holds_the_released_numbers_and_their_bars(clinic: Clinic) -> None:
    with open_session(clinic.policy) as session:
        release = session.execute(GROUPED)
    chart = json.loads(plots.release_chart(release).to_json())
    assert marks(chart) == {"bar", "rule", "tick"}
    panels = [panel["layer"][0]["encoding"]["y"]["title"] for panel in chart["vconcat"]]
    assert panels == ["n", "age"]
    drawn = [[row for values in chart["datasets"].values() for row in values]] if "datasets" in chart else []
    rows = drawn[0] if drawn else [row for panel in chart["vconcat"] for row in _rows_of(panel)]
    for index, name in enumerate(("n", "age"), 1):
        released = [
            (key, value, low, high)
            for key, value, low, high in zip(
                *(table.column(column).to_pylist() for table, column in (
                    (release.table, 0), (release.table, index), (release.low, index), (release.high, index)
                )), strict=True,
            )
        ]  # fmt: skip
        for row in released:
            assert row in [(entry["key"], entry["value"], entry["low"], entry["high"]) for entry in rows], name


@pytest.mark.parametrize("count", [1, 9, 26])
def test_no_two_series_share_a_colour_and_years_have_no_commas(count: int) -> None:
    points = [(f"key {n % 2}", f"series {n}", 1.0, 0.5, 1.5) for n in range(count)]
    drawn = plots.svg(plots.comparison_chart(points, "key", "n", "title"))
    colours = re.findall(r"<path aria-label=\"key: [^>]* fill=\"([^\"]+)", drawn)
    assert len({*colours} - {"#222222"}) == count
    columns = (OutputColumn("year", Type.INTEGER, False), OutputColumn("n", Type.INTEGER, True))
    table = pa.table({"year": range(1900, 1900 + 70 * count), "n": [2] * 70 * count})
    chart = plots.release_chart(plots.StoredAnswer(columns, table, table, table, 0.95))
    ticks = re.findall(r">([0-9,]+)</text>", plots.svg(chart))
    assert not [tick for tick in ticks if "," in tick]


def _rows_of(panel: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a panel whose data are in the panel or in its layers."""
    rows: list[dict[str, Any]] = panel.get("data", {}).get("values", [])
    return rows or [row for layer in panel.get("layer", []) for row in layer.get("data", {}).get("values", [])]


@pytest.mark.parametrize(
    ("sql", "out", "sentence"),
    [
        ("SHOW TABLES", "x.svg", "cannot be drawn"),
        ("SELECT region, age, smokes, COUNT(*) FROM patients GROUP BY region, age, smokes", "x.svg", "cannot be drawn"),
        ("SELECT region FROM patients GROUP BY region", "x.svg", "cannot be drawn"),
        ("SELECT MODE(region) FROM patients", "x.svg", "cannot be drawn"),
        (GROUPED, "x.pdf", "ends in none of .svg"),
        (GROUPED, "nowhere/x.svg", "cannot write"),
        ("SELECT nothing FROM patients", "x.svg", "does not exist"),
    ],
)
@pytest.mark.parametrize("command", ["plot", "query"])
def test_what_cannot_be_drawn_is_refused_uncharged(
    clinic: Clinic, sql: str, out: str, sentence: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    option = "--out" if command == "plot" else "--plot"
    assert run(clinic, sql, option, str(tmp_path / out), command=command) != 0
    assert sentence in capsys.readouterr().err and clinic.charges() == 0
    assert not (tmp_path / out).exists()


def test_a_disk_that_is_full_keeps_the_charge_and_says_so(
    clinic: Clinic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(clinic.policy) as session:
        release = session.execute(GROUPED)
    monkeypatch.setattr(Path, "write_bytes", lambda *words, **more: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(Error) as raised:
        plots.draw_release(release, tmp_path / "x.svg")
    assert raised.value.slug == "file_write" and raised.value.charged


def drawn_rows(place: Path) -> list[dict[str, Any]]:
    chart = json.loads(place.read_text())
    tables = [chart.get("data", {}), *chart.get("datasets", {}).values(), *map(_rows_of, chart.get("vconcat", []))]
    rows = [row for table in tables for row in (table.get("values", []) if isinstance(table, dict) else table)]
    return rows or _rows_of(chart)


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        (GROUPED, "SELECT region, COUNT(*), AVG(age) FROM patients GROUP BY region"),
        (
            "SELECT p.region, SUM(n) AS n FROM numbers JOIN patients AS p USING (patient_id) WHERE smokes GROUP BY p.region",
            "SELECT region, SUM(n) FROM numbers JOIN patients USING (patient_id) WHERE smokes GROUP BY region",
        ),
        (
            "WITH numbers AS (SELECT * FROM patients AS a WHERE age < 40) SELECT region, COUNT(*) AS n FROM numbers GROUP BY 1",
            "SELECT region, COUNT(*) FROM patients WHERE age < 40 GROUP BY region",
        ),
    ],
    ids=["table", "join", "named_like_a_table"],
)
def test_the_owner_sees_what_the_database_answers_beside_the_noisy_answer(
    clinic: Clinic, sql: str, plain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "exact.json"
    assert run(clinic, sql, "--exact", "-o", str(place)) == 0
    assert clinic.charges() == 1 and "for the data's owner alone" in capsys.readouterr().err
    assert place.stat().st_mode & 0o777 == 0o600
    with duckdb.connect(str(clinic.folder / "clinic.duckdb"), read_only=True) as data:
        expected = {(key, value) for key, *values in data.execute(plain).fetchall() for value in values}
    rows = drawn_rows(place)
    assert {(row["key"], row["exact"]) for row in rows} == expected
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    assert "exact numbers, for the owner alone" in place.read_text()


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT SAMPLE_AGGREGATE(AVG(age), 0, 120) AS m FROM patients", "does not answer its text"),
        ("SELECT region, COUNT(*) AS n FROM patients GROUP BY region, smokes", "have the same keys"),
    ],
)
def test_without_exact_numbers_nothing_is_charged(
    clinic: Clinic, sql: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(clinic, sql, "--exact", "-o", str(tmp_path / "x.svg")) == 2
    assert problem in capsys.readouterr().err and clinic.charges() == 0
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize("option", [["--analyst", "research"], ["--errors"]])
def test_exact_numbers_are_for_the_owner(
    clinic: Clinic, option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(clinic, GROUPED, "--exact", *option, "-o", str(tmp_path / "x.svg")) == 2
    assert "for the data's owner" in capsys.readouterr().err and clinic.charges() == 0


def test_exact_numbers_go_to_a_new_file(clinic: Clinic, tmp_path: Path) -> None:
    """Anyone who made a link at this path, or has the file there open, does not see them."""
    others, opened = tmp_path / "others.svg", tmp_path / "opened.svg"
    (tmp_path / "link.svg").symlink_to(others)
    for place in (others, opened):
        place.write_text("before")
    with opened.open() as reader:
        for name in ("link.svg", "opened.svg"):
            place = tmp_path / name
            assert run(clinic, GROUPED, "--exact", "-o", str(place)) == 0
            assert place.stat().st_mode & 0o777 == 0o600 and not place.is_symlink() and "<svg" in place.read_text()
        assert reader.read() == "before" and others.read_text() == "before"
    assert sorted(path.name for path in tmp_path.glob(".*")) == []
