"""The cookbook: every query runs on the demo, and the page's statements about the outcome are true."""

import re
import statistics
from pathlib import Path

import pytest
from support.places import ROOT

from dpsql.errors.exceptions import Error
from dpsql.frontends.demo import build_demo
from dpsql.session.session import open_session

PAGE = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^### (\d+)\. .*?\n```sql\n(.*?)\n```\n\n(.*?)(?=\n#|\Z)", PAGE, re.M | re.S)
README = re.findall(r"^```sql\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
INLINE = [" ".join(question.split()) for question in re.findall(r"`(SELECT [^`]*)`", PAGE)]


def test_the_page_has_25_questions_in_order() -> None:
    assert [int(number) for number, *_ in QUESTIONS] == list(range(1, 26))
    answered = sum(words.startswith("Answered, ") for *_, words in QUESTIONS)
    assert f"{answered} are answered, and {25 - answered} are refused" in PAGE.replace("\n", " ")


def test_the_series_with_one_size_of_noise_is_as_wide_as_said(tmp_path: Path) -> None:
    page = re.search(r"^### With one size.*?```sql\n(.*?)```\n\n(.*?)(?=\n### |\n## )", PAGE, re.M | re.S)
    assert page
    *options, question = [statement.strip() for statement in page[1].split(";") if statement.strip()]
    said = [float(width) for width in re.findall(r"± (\d+)", page[2])]
    with open_session(build_demo("nafld", tmp_path / "demo"), create_ledger=True) as session:
        for option in options:
            session.execute(option)
        widths = [set(session.execute(question).error.column(1).to_pylist())]
        for option in ("SET dp.correlation = 0", "SET dp.mechanism = auto"):
            session.execute(option)
            widths.append(set(session.execute(question).error.column(1).to_pylist()))
    assert [width for (width,) in widths] == pytest.approx(said, rel=0.03)


def test_every_outcome_is_as_the_page_says(tmp_path: Path) -> None:
    with open_session(build_demo("nafld", tmp_path / "demo"), create_ledger=True) as session:
        session.set_option("reuse", "off")
        for number, sql, words in QUESTIONS:
            refused = re.match(r"Refused with `(\w+)`: \*(.*?)\*", " ".join(words.split()))
            if refused:
                with pytest.raises(Error) as error:
                    session.execute(sql)
                assert error.value.slug == refused[1] and not error.value.charged, number
                assert error.value.message.rstrip(".") == refused[2].rstrip("."), number
                continue
            release = session.execute(sql)
            noisy = next(index for index, column in enumerate(release.columns) if column.noisy)
            bars = [bar for bar in release.error.column(noisy).to_pylist() if bar is not None]
            said = re.match(r"Answered, to ± ([0-9]+(?:\.[0-9]+)?)", words)
            assert said or (words.startswith("Answered, without an error bar.") and not bars), number
            if said:  # half and twice: bars of means depend on the drawn noise
                assert 0.5 < statistics.median(bars) / float(said[1]) < 2, (number, bars)
        assert len(INLINE) == 2
        for sql in (*INLINE, *README):
            assert session.execute(sql).rows()
