"""Measurements other than sums: every layer has its part for every kind and knows no other kind."""

from __future__ import annotations

import pytest

from dpsql.engine.emit import measurements as engine
from dpsql.errors.exceptions import InternalError
from dpsql.noise import perturb as noise
from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.measurements import MEASUREMENTS, Register
from dpsql.plan.plan import BoundedBlock, Caps, Scan
from dpsql.pricing import measurements as pricing
from dpsql.reuse import measurements as reuse
from dpsql_audit import distances, mechanism_laws

FLOORS: tuple[Register[object], ...] = (
    pricing.PARTS,
    engine.PARTS,
    noise.PARTS,
    reuse.PARTS,
    distances.MEASUREMENTS,
    mechanism_laws.MEASUREMENTS,
)  # type: ignore[assignment]


@pytest.mark.parametrize("register", FLOORS, ids=lambda register: register.floor)
def test_every_floor_has_a_part_of_every_measurement_and_of_no_other(register: Register[object]) -> None:
    assert sorted(register) == sorted(MEASUREMENTS)


@pytest.mark.parametrize("register", FLOORS, ids=lambda register: register.floor)
def test_an_unknown_measurement_is_refused(register: Register[object]) -> None:
    with pytest.raises(InternalError, match="does not know the measurement sample"):
        register.of("sample")


def test_a_block_without_measurements_is_named_as_before_there_were_any() -> None:
    """Names of stored releases derive from this text."""
    block = BoundedBlock("", Scan("t", ()), (), (), (), None, Caps(1, 1))
    assert "measurements" not in canonical_text(block)
