"""The views that docs/postgresql.md recommends have a value or NULL for every text, on the version of the server."""

from __future__ import annotations

import re

import psycopg
import pytest
from support.places import ROOT
from support.postgres_source import Server, server

__all__ = ["server"]
TEXTS = (
    "7", " -12 ", "+3", "eve", "", "1e3", "99999999999999999999", "-2147483648", "2147483648", "0x1F", "NaN", "infinity", "١٢",
    "2024-02-29", "2023-02-29", "2024-13-01", "0000-00-00", "24:00", "\t1\n", "1 000", "1_000", "now", "a\\b", "'", "5874898-01-01",
)  # fmt: skip
PAGE = (ROOT / "docs" / "postgresql.md").read_text(encoding="utf-8")
VIEWS = re.findall(r"```sql\n(.*?)```", PAGE.partition("## Views")[2], re.DOTALL)


@pytest.mark.parametrize("form", VIEWS)
def test_every_text_has_a_value(server: Server, form: str) -> None:
    with psycopg.connect(server.database(), autocommit=True) as owner:
        if owner.info.server_version < 160000:
            form = VIEWS[1]
        owner.execute("CREATE TABLE raw_visits (person integer, note text, day text)")
        with owner.cursor() as cursor:
            cursor.executemany("INSERT INTO raw_visits VALUES (%s, %s, %s)", [(at, t, t) for at, t in enumerate(TEXTS)])
        owner.execute(form)  # type: ignore[call-overload]
        read = owner.execute("SELECT score, day::text FROM typed_visits ORDER BY person").fetchall()
    values = dict(zip(TEXTS, read, strict=True))
    assert [values[text][0] for text in ("7", " -12 ", "+3", "eve", "")] == [7, -12, 3, None, None]
    assert [values[text][1] for text in ("2024-02-29", "2023-02-29", "eve", "7")] == ["2024-02-29", None, None, None]


def test_the_page_recommends_no_cast_that_fails() -> None:
    """Each cast of the page's views stands behind a test of its text, or inside of the function that catches its failure."""
    assert len(VIEWS) == 2
    assert (ROOT / "docs" / "spark.md").read_text(encoding="utf-8").count("try_cast(note AS INT)") == 1
    for text in VIEWS:
        for line in text.splitlines():
            assert "::" not in line or re.search(r"CASE WHEN .* THEN .*::.* END|RETURN \$1::date", line), line
