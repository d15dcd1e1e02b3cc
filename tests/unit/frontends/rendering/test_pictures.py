"""Pictures are drawn where an abort ends nothing else, and what fails after a charge is an error that says so."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.clinic_folder import Clinic

from dpsql.errors.exceptions import Error
from dpsql.frontends.cli import status_of
from dpsql.frontends.rendering import plots

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
GROUPED = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"


def chart(title: str) -> Any:
    return plots.comparison_chart([("a", "b", 1.0, 0.0, 2.0)], "key", "number", title)


def test_a_library_that_aborts_ends_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """An uncleaned control character ends the process that draws, at least in vl-convert 1.7 to 1.9."""
    monkeypatch.setattr(plots, "picture", lambda text: text)
    for charged in (False, True):
        with pytest.raises(Error, match="could not be drawn") as raised:
            plots.svg(chart("\x1b\ufffe"), charged=charged)
        assert raised.value.slug == "plot_failed" and raised.value.charged is charged
    monkeypatch.undo()
    assert plots.svg(chart("\x1b\ufffe")).startswith("<svg")


def test_a_title_is_never_computed() -> None:
    """Vega-Lite copies titles into expressions: `\\"` in one would end the text there."""
    drawn = plots.svg(plots.comparison_chart([("a", "b", 1.0, 0.0, 2.0)], '\\"+(6*7)+"', "n", "t"))
    assert "42" not in drawn and "(6*7)" in drawn


def test_a_picture_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "_MOST_SECONDS", 0.001)
    with pytest.raises(Error, match="too long"):
        plots.svg(chart("t"))


def test_an_answer_without_its_picture_stays_charged_and_free_to_ask_again(
    clinic: Clinic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "aborts.py"
    program.write_text("import os; os.abort()")
    monkeypatch.setattr(plots, "_PROGRAM", program)
    place = tmp_path / "x.svg"
    assert status_of(["query", "-p", str(clinic.policy), GROUPED, "--plot", str(place)]) == 4
    shown = capsys.readouterr()
    assert "plot_failed" in shown.err and "the charge stays" in shown.err and "north" in shown.out
    monkeypatch.undo()
    monkeypatch.setenv("DPSQL_STATE", str(clinic.state))
    assert status_of(["query", "-p", str(clinic.policy), GROUPED, "--plot", str(place)]) == 0
    assert clinic.charges() == 1 and place.exists()


def test_a_report_without_a_picture_has_the_answer(
    clinic: Clinic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "_PROGRAM", tmp_path / "nothing.py")
    Path("q.sql").write_text(f"{GROUPED};")
    assert status_of(["run", "-p", "clinic.yaml", "--out", "out", "--report", "r.html", "q.sql"]) == 0
    page = Path("r.html").read_text()
    assert "could not be drawn" in page and "<td>north</td>" in page and "<img" not in page


def test_the_process_that_draws_imports_nothing_of_the_package() -> None:
    program = Path(plots._PROGRAM)
    code = f"import sys, runpy; runpy.run_path({str(program)!r}); print(any(name.startswith('dpsql') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "False\n"


def test_a_page_has_its_specification_as_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "_drawn", lambda kind, described, charged: b"scripts();")
    page = plots.picture_bytes(chart("</script><!--"), ".html").decode()
    start = page.index("vegaEmbed(")
    value, _ = json.JSONDecoder().raw_decode(page[page.index("{", start) :])
    assert value["title"]["text"] == "</script><!--" and page.count("</script>") == 2 and "<!--" not in page
