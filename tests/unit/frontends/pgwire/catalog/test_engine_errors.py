"""Errors of the catalogs' engine: PostgreSQL's states and sentences, and nothing of the engine."""

from collections.abc import Iterator

import pytest

from dpsql.errors.exceptions import Error
from unit.frontends.pgwire.catalog.test_tables import Asker


@pytest.fixture(scope="module")
def shop() -> Iterator[Asker]:
    yield Asker("ann")


@pytest.mark.parametrize(
    ("sql", "state", "sentence"),
    [
        ("SELECT relname + 1 FROM pg_class", "42883", "operator does not exist: name + integer"),
        (
            "SELECT relname, count(*) FROM pg_class",
            "42803",
            'column "pg_class.relname" must appear in the GROUP BY clause',
        ),
        (
            "SELECT relname FROM pg_class GROUP BY relkind",
            "42803",
            'column "pg_class.relname" must appear in the GROUP BY clause',
        ),
        ("SELECT relname::int FROM pg_class", "22P02", "invalid input syntax for type integer"),
        ("SELECT 9223372036854775807 + 1", "22003", "bigint out of range"),
        ("SELECT 'nope'::regclass", "42P01", 'relation "nope" does not exist'),
        ("SELECT left(relname, true) FROM pg_class", "42883", "function left(name, boolean) does not exist"),
        ("SELECT nope FROM pg_class", "42703", 'column "nope" does not exist'),
        ("SELECT 1 FROM pg_class WHERE count(*) > 1", "42803", "aggregate functions are not allowed in WHERE"),
        ("SELECT 'abc'::date", "22007", 'invalid input syntax for type date: "abc"'),
        ("SELECT (SELECT 1, 2)", "42601", "subquery must return only one column"),
        ("SELECT relname FROM pg_class ORDER BY 100", "42P10", "ORDER BY position 100 is not in select list"),
        ("SELECT relname FROM pg_class GROUP BY 100", "42P10", "GROUP BY position 100 is not in select list"),
        ("SELECT * FROM pg_class c JOIN pg_type c ON true", "42712", 'table name "c" specified more than once'),
    ],
)
def test_refusals_give_the_true_reason(shop: Asker, sql: str, state: str, sentence: str) -> None:
    with pytest.raises(Error) as caught:
        shop.rows(sql)
    assert caught.value.sqlstate == state and sentence in str(caught.value)


def test_errors_never_quote_the_engine(shop: Asker) -> None:
    for sql in ("SELECT 1 + 'x'::name FROM pg_class", "SELECT relname::int4 FROM pg_class", "SELECT substr(1)"):
        with pytest.raises(Error) as caught:
            shop.rows(sql)
        assert "Error" not in caught.value.message
        assert "pgf_" not in caught.value.message
