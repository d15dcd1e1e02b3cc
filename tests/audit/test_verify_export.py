"""The standalone program's totals of a ledger's charges: pure DP and zCDP, each by its own rules."""

from fractions import Fraction

import pytest

from dpsql.privacy.accounting import rho_to_epsilon
from dpsql_audit.verify_export import DELTA, Audit, epsilon_of

E, R = 10**18, 10**36


def audit_of(limits: dict[str, int], *charges: dict[str, int]) -> Audit:
    audit = Audit(None)
    audit.add({"seq": 1, "kind": "account", "scope": "dataset", "limits": limits}, "", "")
    for number, charge in enumerate(charges, 2):
        facts = {"seq": number, "kind": "charge", "id": str(number), "scopes": ["dataset"], "charge": charge}
        audit.add(facts, "", "")
    assert not audit.problems
    return audit


def test_charges_of_epsilon_are_added_up_by_both_accountants() -> None:
    """rho is half of the sum of squares: 0.5 (1 + 0.25)."""
    pure = audit_of({"epsilon": 9 * E, "delta": E}, {"epsilon": E, "delta": 3}, {"epsilon": E // 2, "delta": 0})
    words = pure.accountants("dataset")
    assert words.startswith("as pure DP epsilon 1.5; as zCDP rho 0.625, which is epsilon ")
    assert words.endswith("and delta 0.000000000000000003 under both")


def test_charges_of_rho_have_no_finite_epsilon_under_pure_privacy() -> None:
    words = audit_of({"rho": R}, {"rho": R // 8}, {"rho": R // 8}).accountants("dataset")
    assert words.startswith("as pure DP no finite epsilon; as zCDP rho 0.25, which is epsilon ")
    assert "delta 1e-06" in words and "under both" not in words


@pytest.mark.parametrize("rho", [Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 2), Fraction(30)])
def test_rho_is_the_epsilon_that_dpsql_makes_of_it(rho: Fraction) -> None:
    """It is never smaller, because every order gives a true bound, and larger only because the orders are a grid."""
    own, best = epsilon_of(float(rho)), float(rho_to_epsilon(rho, Fraction(str(DELTA))))
    assert best * (1 - 1e-9) <= own <= best * 1.001 + 1e-6
    assert epsilon_of(0) == 0
