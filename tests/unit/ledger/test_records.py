"""Records of the ledger: permitted requests, scopes and amounts, and lossless writing of amounts and ids."""

from dataclasses import replace
from typing import Any

import pytest

from dpsql.errors.exceptions import Error
from dpsql.ledger.records import (
    ChargeRequest,
    added,
    asker,
    charge_id,
    checked_scope,
    checked_units,
    from_text,
    request_of,
    to_text,
)

REQUEST = ChargeRequest("owner/r-1", "ann", "s1", ("dataset",), {"epsilon": 1, "delta": 0}, "block", "v1")


def slug_of(error: pytest.ExceptionInfo[Error]) -> str:
    return error.value.slug


@pytest.mark.parametrize(
    "changed",
    [
        *({name: "x" * 200} for name in ("analyst", "session", "policy_version")),
        *({name: "x" * 2000} for name in ("id", "what")),
        {"scopes": ("analyst:ann", "dataset", "session:s1")},
        {"charge": {"rho": 0}},
    ],
    ids=str,
)
def test_requests_up_to_the_limits_are_let_in(changed: dict[str, Any]) -> None:
    assert replace(REQUEST, **changed) != REQUEST


@pytest.mark.parametrize(
    "changed",
    [
        *({name: "x" * 201} for name in ("analyst", "session", "policy_version")),
        *({name: "x" * 2001} for name in ("id", "what")),
        *({name: ""} for name in ("id", "analyst", "session", "policy_version", "what")),
        {"id": 7},
        {"scopes": ()},
        {"scopes": ("analyst:ann",)},
        {"scopes": ("dataset", "dataset")},
        {"scopes": ("dataset", "analyst:ann", "analyst:ann")},
        {"scopes": ("dataset", "everything")},
        {"charge": {}},
        {"charge": {"epsilon": -1}},
    ],
    ids=str,
)
def test_requests_beyond_the_limits_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(Error) as error:
        replace(REQUEST, **changed)
    assert slug_of(error) == "ledger_request"


@pytest.mark.parametrize(
    ("analyst", "name"),
    [
        (None, "owner"), ("owner", "analyst:owner"), ("a/b", "analyst:a%2Fb"), ("a:b", "analyst:a%3Ab"),
        ("é", "analyst:%C3%A9"),
    ],
)  # fmt: skip
def test_no_analyst_is_taken_for_the_owner_or_for_another(analyst: str | None, name: str) -> None:
    assert asker(analyst) == name
    assert charge_id(analyst, "r/1") == f"{name}/r/1"
    assert request_of(f"{name}/r/1") == "r/1"


@pytest.mark.parametrize("request_id", ["", "x" * 201])
def test_a_request_id_has_1_to_200_characters(request_id: str) -> None:
    assert charge_id(None, "x" * 200) == "owner/" + "x" * 200
    with pytest.raises(Error) as error:
        charge_id(None, request_id)
    assert slug_of(error) == "ledger_request"


@pytest.mark.parametrize(
    "scope",
    [
        "", "dataset ", "datasets", "analyst:", "analyst", "owner:x", "window:2026-1-1", "window:2026-11-01:",
        "window:2026-11-01:session:s", "window:2026-11-01:analyst:", "analyst:" + "x" * 223,
    ],
)  # fmt: skip
def test_other_scopes_are_refused(scope: str) -> None:
    with pytest.raises(Error) as error:
        checked_scope(scope)
    assert slug_of(error) == "ledger_request"


@pytest.mark.parametrize(
    "units",
    [{}, {"gamma": 1}, {"epsilon": -1}, {"epsilon": True}, {"epsilon": 1.0}, {"epsilon": "1"}, {"epsilon": 10**400}],
    ids=str,
)
def test_what_is_no_amount_is_refused(units: dict[str, Any]) -> None:
    with pytest.raises(Error) as error:
        checked_units(units)
    assert slug_of(error) == "ledger_request"


@pytest.mark.parametrize("units", [{}, {"epsilon": 0}, {"epsilon": 2**70, "delta": 10**300}], ids=str)
def test_amounts_of_any_length_are_read_back_from_text(units: dict[str, int]) -> None:
    assert all(isinstance(amount, str) for amount in to_text(units).values())
    assert from_text(to_text(units)) == units


@pytest.mark.parametrize("amount", ["", "-1", "+1", "1.0", " 1", "1_0", "\u0661", "\u00b2", 1, None], ids=repr)
def test_a_text_that_is_no_decimal_number_is_not_read(amount: Any) -> None:
    with pytest.raises(ValueError):
        from_text({"epsilon": "1", "delta": amount})


def test_amounts_are_added_by_dimension_and_a_missing_one_is_not_zero() -> None:
    assert added({"epsilon": 2, "delta": 3}, {"delta": 10, "epsilon": 20}) == {"epsilon": 22, "delta": 13}
    for left, right in (({"epsilon": 1}, {"epsilon": 1, "delta": 0}), ({"epsilon": 1, "delta": 0}, {"epsilon": 1})):
        with pytest.raises(Error) as error:
            added(left, right)
        assert slug_of(error) == "ledger_shape"
