"""A new mechanism and a new accountant work from SQL to the stored answer by registration alone.

Each double is valid: it has a law, a price and a proof, and passes the contract tests of its interface.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support import clinic
from support.accountant_contract import AccountantContract
from support.mechanism_contract import ONE, MechanismContract

from dpsql.errors.exceptions import InternalError, Refusal
from dpsql.noise.noise_samplers import SAMPLERS
from dpsql.noise.samplers import discrete_laplace
from dpsql.privacy.accounting import ACCOUNTANTS
from dpsql.privacy.ledger_units import charge_units, float_upper, limit_units, spent_amount
from dpsql.privacy.loss import PrivacyLoss, positive, pure_of_rho
from dpsql.privacy.mechanisms.contract import Constant, Noise, Norm, Sensitivity
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.laplace import noise_for as laplace_for
from dpsql.privacy.mechanisms.rational_bounds import ln_upper
from dpsql.privacy.mechanisms.registry import MECHANISMS, Mechanism
from dpsql.privacy.mechanisms.weighted_sums import LOGARITHMS
from dpsql.session.session import open_session
from dpsql_audit.noise_laws import LAWS, pure_rho


@dataclass(frozen=True)
class Doubled(Laplace):
    """Laplace noise of twice the scale that its price needs: t is even."""

    mechanism = "doubled"

    @property
    def loss(self) -> PrivacyLoss:
        return self._twice(super().loss)

    def recomputed_loss(self) -> PrivacyLoss:
        return self._twice(super().recomputed_loss())

    @staticmethod
    def _twice(loss: PrivacyLoss) -> PrivacyLoss:
        assert loss.epsilon is not None
        return PrivacyLoss.pure(2 * loss.epsilon)

    @classmethod
    def calibrated(cls, moved: Sensitivity, epsilon: Fraction) -> Noise:
        noise = laplace_for(moved, epsilon / 2)
        return cls(moved, noise.shift, noise.t, noise.s) if isinstance(noise, Laplace) else Constant(moved)


def doubled_loss(noise: Doubled, steps: Sequence[int]) -> tuple[Fraction, Fraction]:
    epsilon = 2 * sum(steps) * Fraction(noise.s, noise.t)
    return epsilon, pure_rho(epsilon)


@pytest.fixture
def doubled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register a mechanism: its law, its sampler, the shape of its weighted sums, and the law that the audit checks."""
    monkeypatch.setitem(
        MECHANISMS, "doubled", Mechanism("doubled", Doubled, None, Norm.L1, {"epsilon": Doubled.calibrated})
    )
    monkeypatch.setitem(
        SAMPLERS, Doubled, lambda noise, count, randomness: discrete_laplace(count, noise.t, noise.s, randomness)
    )
    monkeypatch.setitem(LOGARITHMS, "doubled", LOGARITHMS["laplace"])
    plain = LAWS[Laplace]
    monkeypatch.setitem(LAWS, Doubled, replace(plain, loss=doubled_loss))
    yield


@pytest.mark.usefixtures("doubled")
class TestDoubled(MechanismContract):
    word = "doubled"

    def density(self, noise: Noise, z: np.ndarray) -> np.ndarray:
        return -np.abs(z) / float(noise.noise_scale)

    def small(self) -> Noise:
        return Doubled(ONE, 0, 16, 3)


@dataclass(frozen=True)
class Renyi:
    """Renyi differential privacy at order 16: the divergences add up (Mironov 2017, arXiv 1702.07476, Propositions 1, 3).

    rho-zCDP costs 16 rho; a total of r is (r + ln(1/delta) / 15, delta)-DP. The stored dimension is rho = r / 16.
    """

    epsilon: Fraction
    delta: Fraction

    kind = "renyi"
    least_delta = Fraction(1, 10**6)
    order = 16

    @property
    def limits(self) -> dict[str, Fraction]:
        converting = ln_upper(2 / self.delta) / (self.order - 1)
        return {"rho": max(Fraction(0), (self.epsilon - converting) / self.order), "delta": self.delta / 2}

    def units(self, loss: PrivacyLoss) -> dict[str, int]:
        return charge_units({"rho": loss.rho, "delta": loss.delta}, self.kind)

    def limit_units(self) -> dict[str, int]:
        return limit_units(self.limits)

    def epsilon_of(self, spent: Mapping[str, int]) -> float:
        rho = spent_amount(spent, "rho")
        return float_upper(rho * self.order + ln_upper(2 / self.delta) / (self.order - 1)) if rho else 0.0

    def repeated(self, times: int) -> tuple[float, Fraction]:
        rho, delta = times * self.limits["rho"], times * self.delta
        return float_upper(rho * self.order + ln_upper(2 / delta) / (self.order - 1)), delta

    def request(self, epsilon: Fraction) -> PrivacyLoss:
        return PrivacyLoss(None, Fraction(0), positive(epsilon) ** 2 / 2)

    def spends_delta(self, mechanism: Mechanism) -> bool:
        return False

    def noise_for(self, mechanism: Mechanism, sensitivity: Sensitivity, part: PrivacyLoss, delta: Fraction) -> Noise:
        assert part.rho is not None
        if mechanism.calibrations and "rho" not in mechanism.calibrations:
            return mechanism.calibrated("epsilon", sensitivity, pure_of_rho(part.rho))
        return mechanism.calibrated("rho", sensitivity, part.rho)

    def charge(self, loss: PrivacyLoss, delta: Fraction) -> PrivacyLoss:
        return loss


@pytest.fixture
def renyi(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register an accountant, which needs one registration."""
    monkeypatch.setitem(ACCOUNTANTS, "renyi", Renyi)


@pytest.mark.usefixtures("renyi")
class TestRenyi(AccountantContract):
    word = "renyi"


SQL = "SELECT region, count(*) AS n, avg(age) AS a FROM patients GROUP BY region"


def test_a_mechanism_is_asked_for_by_its_word_charged_stored_and_derived_from(
    doubled: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = clinic.build(tmp_path)
    with open_session(path, analyst="research", create_ledger=True) as session:
        session.execute("SET dp.mechanism = 'doubled'")
        release = session.execute(SQL)
        assert release.loss.epsilon == 1
        explained = session.execute(f"EXPLAIN VERBOSE {SQL}").rows()
        assert any("doubled" in str(row) for row in explained)
        assert session.execute(SQL).reused
        session.execute("SET dp.reuse = derive")
        total = session.execute("SELECT count(*) AS n FROM patients")
        assert total.reused and next(iter(total.rows()))[0] == pytest.approx(1000, abs=200)
    monkeypatch.delitem(MECHANISMS, "doubled")
    with open_session(path, analyst="research") as session:
        with pytest.raises(Refusal, match=r"dp\.mechanism"):
            session.execute("SET dp.mechanism = 'doubled'")
        session.execute("SET dp.reuse = derive")
        assert not session.execute("SELECT count(*) AS n FROM patients").reused


def test_noise_of_a_mechanism_without_a_registered_sampler_is_not_added(
    doubled: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(SAMPLERS, Doubled)
    with open_session(clinic.build(tmp_path), analyst="research", create_ledger=True) as session:
        session.execute("SET dp.mechanism = 'doubled'")
        with pytest.raises(InternalError) as caught:
            session.execute(SQL)
        assert caught.value.slug == "noise_plan"
