"""Lists of values: x = ANY (list) means what the engine means by it, for NULL, empty lists and lists with NULL."""

from typing import Any

import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.sql.parse import parse
from dpsql.sql.rewrites.comparisons import read_list

VALUES = [None, 1, 2, 3]
LISTS: list[Any] = [[], [1], [1, 2], [1, None], [None], None]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("listed", LISTS)
@pytest.mark.parametrize("test", ["= ANY", "<> ALL"])
def test_in_means_the_same_as_any(value: Any, listed: Any, test: str) -> None:
    """The rewritten text and the engine's own ANY give the same of TRUE, FALSE, NULL."""
    sql = f"SELECT x {test}($1) IS NOT DISTINCT FROM TRUE, (x {test}($1)) IS NULL FROM t"
    query = parse(sql, [listed]).query
    assert query is not None
    assert "ANY" not in query.sql("duckdb").upper() and "ALL" not in query.sql("duckdb").upper()
    connection = plain_duckdb()
    connection.execute("CREATE OR REPLACE TABLE t AS SELECT CAST(? AS INTEGER) AS x", [value])
    found = connection.execute(query.sql("duckdb")).fetchone()
    written = "NULL" if listed is None else str(listed).replace("None", "NULL")
    own = sql.replace("$1", f"CAST({written} AS INTEGER[])").replace("<> ALL(", "<> ALL(SELECT unnest(")
    own = own.replace("[])", "[]))") if "<> ALL" in own else own
    if listed is not None:
        assert found == connection.execute(own).fetchone()
    else:
        assert found == (False, True)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{}", []), (" { } ", []), ("{a,b}", ["a", "b"]), ('{ "p" , q r }', ["p", "q r"]),
        ('{"a\\"b",NULL,"NULL",nUll}', ['a"b', None, "NULL", None]), ("{a\\ ,b}", ["a ", "b"]), ('{""}', [""]),
        ("a", None), ("{a", None), ("{a,}", None), ("{{a}}", None), ('{"a" b}', None), ("{a}b", None), ("{" + " a" * 90_000, None),
    ],
)  # fmt: skip
def test_texts_of_lists_are_read(text: str, wanted: Any) -> None:
    assert read_list(text) == wanted
