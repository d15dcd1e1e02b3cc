"""docs/bi.md lists the steps that the tests with real clients perform."""

from clients.matrix import COLUMNS, PAGE, _tried, page


def test_the_table_of_clients_is_up_to_date() -> None:
    """The table is current; `PYTHONPATH=tests python -m clients.matrix` regenerates it."""
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text


def test_every_client_connects_asks_and_fails_well() -> None:
    page(PAGE.read_text(encoding="utf-8"))
    assert len(_tried) >= 12
    for client, steps in _tried.items():
        for column in (COLUMNS[0], "asks"):
            assert steps[column], (client, column)
