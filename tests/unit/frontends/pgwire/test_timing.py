"""A secret bit does not become an error: the timing attack over the wire is blocked in each of its parts."""

from pathlib import Path

from support.gated_engine import Gated, gated
from support.raw_client import error_of, rows_of
from support.served_clinic import Served, logged_in

DEAR = " AND ".join([f"NOT concat(sex, '{'x' * 4_000}') ~ 'a.{{480}}z'"] * 8)
BIT = f"SELECT COUNT(*) FROM patients WHERE CASE WHEN patient_id = 7 AND age > 50 THEN {DEAR} ELSE FALSE END"


def timed(clinic: Served, timing: str) -> Path:
    """Write the clinic's policy with another timing and return its path."""
    path = clinic.policy.with_name("timed.yaml")
    path.write_text(clinic.policy.read_text() + f"\ntiming: {timing}\n")
    return path


def test_the_attack_is_refused_before_data(clinic: Served) -> None:
    """The condition is too expensive for one row, and the epsilon too small for a query; nothing is scanned for either."""
    before = clinic.charges()
    with gated(clinic, timed(clinic, "padded")) as port:
        client = logged_in(port)
        assert "less than one question must spend" in error_of(client.query("SET dp.epsilon = 1e-9"))["M"]
        assert rows_of(client.query("SET statement_timeout = '160ms'; SELECT 1")) == [[b"1"]]
        found = error_of(client.query(BIT))
        assert found["C"] == "54001" and "one person's row" in found["M"] and found["D"] == "nothing was charged"
        assert Gated.scans == 0
    assert clinic.charges() == before
