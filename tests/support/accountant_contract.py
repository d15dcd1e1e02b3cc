"""Contract tests of accountants. An accountant's suite derives from `AccountantContract` and sets its name."""

from fractions import Fraction

import pytest

from dpsql.errors.exceptions import PolicyRefusal
from dpsql.privacy.accounting import ACCOUNTANTS, Accountant, make_accountant
from dpsql.privacy.ledger_units import DECIMALS
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.registry import MECHANISMS, askable

MILLIONTH = Fraction(1, 10**6)
EPSILONS = [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(7), Fraction(100)]
MOVED = Sensitivity(2, 3, 5, 2)


class AccountantContract:
    """Tests that every accountant must pass. `word` is the accountant's name; budgets have a delta of one millionth."""

    word: str

    def account(self, epsilon: Fraction = Fraction(10)) -> Accountant:
        return make_accountant(self.word, epsilon, MILLIONTH)

    def test_it_is_made_by_its_word_and_keeps_known_dimensions(self) -> None:
        account = self.account()
        assert account.kind == self.word and type(account) is ACCOUNTANTS[self.word]
        assert account.epsilon == 10
        assert set(account.limits) <= set(DECIMALS)
        assert account.units(PrivacyLoss.nothing()) == dict.fromkeys(account.limits, 0)
        assert set(account.limit_units()) == set(account.limits)

    def test_a_budget_with_less_delta_than_it_needs_is_refused(self) -> None:
        least = self.account().least_delta
        if least:
            make_accountant(self.word, Fraction(1), least)
            with pytest.raises(PolicyRefusal, match="delta"):
                make_accountant(self.word, Fraction(1), least * Fraction(9, 10))
        else:
            make_accountant(self.word, Fraction(1), Fraction(0))

    def test_the_limits_are_worth_the_epsilon_of_the_budget(self) -> None:
        account = self.account()
        assert account.epsilon_of({}) == 0
        assert 9.999999 < account.epsilon_of(account.limit_units()) <= 10
        beyond = {name: units * 2 for name, units in account.limit_units().items()}
        assert account.epsilon_of(beyond) > 10

    def test_several_budgets_amount_to_what_each_of_them_adds(self) -> None:
        """Twelve budgets, each fully spent, compose to the sum of their losses, checked against the accountant's own
        conversion."""
        account = self.account()
        once, _ = account.repeated(1)
        assert 9.999999 < once <= 10 + 1e-12
        epsilon, delta = account.repeated(12)
        assert delta == 12 * MILLIONTH
        sums = {name: 12 * units for name, units in account.limit_units().items()}
        converted = make_accountant(self.word, Fraction(1000), delta).epsilon_of(sums)
        assert converted * (1 - 1e-9) <= epsilon <= converted * (1 + 1e-9)

    def test_limits_are_rounded_down_and_charges_up(self) -> None:
        account = self.account()
        for name, limit in account.limits.items():
            assert limit * 10 ** DECIMALS[name] - 1 < account.limit_units()[name] <= limit * 10 ** DECIMALS[name]
        third = PrivacyLoss(*[Fraction(1, 3)] * 3)
        for name, units in account.units(third).items():
            assert units == 10 ** DECIMALS[name] // 3 + 1

    def test_charges_of_parts_are_at_least_the_charge_of_the_whole(self) -> None:
        account = self.account()
        loss = PrivacyLoss(Fraction(1, 3), Fraction(1, 7), Fraction(1, 11))
        whole, parts = account.units(loss.times(7)), account.units(loss)
        assert all(7 * parts[name] >= units for name, units in whole.items())

    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize("parts", [1, 3, 40])
    def test_parts_of_a_request_add_up_to_no_more(self, epsilon: Fraction, parts: int) -> None:
        account = self.account()
        asked = account.request(epsilon)
        assert sum([asked.times(Fraction(1, parts))] * parts, PrivacyLoss.nothing()) == asked
        with pytest.raises(ValueError):
            account.request(Fraction(0))

    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize("parts", [1, 3, 40])
    @pytest.mark.parametrize("word", [one.word for one in askable()])
    def test_noise_is_charged_at_most_its_part_and_hardly_less(self, epsilon: Fraction, parts: int, word: str) -> None:
        account, mechanism = self.account(), MECHANISMS[word]
        part = account.request(epsilon).times(Fraction(1, parts))
        delta = MILLIONTH / 100 if account.spends_delta(mechanism) else Fraction(0)
        noise = account.noise_for(mechanism, MOVED, part, delta)
        for loss in (noise.loss, noise.recomputed_loss()):
            charged = account.charge(loss, delta)
            assert charged.delta == delta
            for name in ("epsilon", "rho"):
                limit, cost = getattr(part, name), getattr(charged, name)
                assert limit is None or (cost is not None and limit * Fraction(99, 100) < cost <= limit)
            account.units(charged)

    def test_a_mechanism_that_spends_no_delta_is_charged_without(self) -> None:
        account = self.account()
        free = [mechanism for mechanism in askable() if not account.spends_delta(mechanism)]
        assert free, "some mechanism can be used without delta"
        for mechanism in free:
            noise = account.noise_for(mechanism, MOVED, account.request(Fraction(1)), Fraction(0))
            assert account.charge(noise.loss, Fraction(0)) == noise.loss
