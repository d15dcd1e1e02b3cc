"""Plans as texts: they name stored releases, so they are the same in every version and every process."""

import hashlib
from dataclasses import replace
from datetime import date
from fractions import Fraction

import pytest
from support.places import policy
from support.recording_session import World

from dpsql.engine.emit import measurements as engine
from dpsql.errors.exceptions import InternalError
from dpsql.noise import perturb as noise
from dpsql.plan.canonical_text import canonical_text, fingerprint
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.measurements import MEASUREMENTS, Register
from dpsql.plan.plan import Block, BoundedBlock, Call, Caps, Column, Filter, Key, Literal, Measure, Scan, TermKind
from dpsql.pricing import measurements as pricing
from dpsql.reuse import measurements as reuse
from dpsql_audit import distances, mechanism_laws

WARD = Facts(Type.TEXT, values=("er", "it's", None), nullable=True)
WARD_TEXT = (
    "Facts(type=Type.TEXT,lower=NoneType:None,upper=NoneType:None,values=[str:'er',str:\"it's\",NoneType:None],"
    "nullable=bool:True,max_total=NoneType:None,outside=NoneType:None)"
)
DAY = Facts(Type.DATE, date(2024, 1, 1), date(2024, 1, 31), nullable=False, max_total=Fraction(1, 3))
DAY_TEXT = (
    "Facts(type=Type.DATE,lower=date:datetime.date(2024, 1, 1),upper=date:datetime.date(2024, 1, 31),"
    "values=NoneType:None,nullable=bool:False,max_total=Fraction:Fraction(1, 3),outside=NoneType:None)"
)
SCAN = Scan("visits", (Column("ward", WARD), Column("day", DAY)))
SCAN_TEXT = f"Scan(table=str:'visits',columns=[Column(name=str:'ward',facts={WARD_TEXT}),Column(name=str:'day',facts={DAY_TEXT})])"
TRUE = Facts(Type.BOOLEAN)
TRUE_TEXT = (
    "Facts(type=Type.BOOLEAN,lower=NoneType:None,upper=NoneType:None,values=NoneType:None,nullable=bool:True,"
    "max_total=NoneType:None,outside=NoneType:None)"
)


def test_a_plan_is_written_as_it_always_was() -> None:
    condition = Call("eq", (Column("ward", WARD), Literal(3, TRUE)), TRUE)
    block = Block(
        "b",
        Filter(SCAN, condition),
        (Key("k0", Column("ward", WARD), ("er",)),),
        (Measure("m0", "count", (), False, None),),
    )
    wanted = (
        f"Block(name=str:'b',source=Filter(source={SCAN_TEXT},predicate=Call(function=str:'eq',arguments="
        f"[Column(name=str:'ward',facts={WARD_TEXT}),Literal(value=int:3,facts={TRUE_TEXT})],facts={TRUE_TEXT})),"
        f"keys=[Key(name=str:'k0',expression=Column(name=str:'ward',facts={WARD_TEXT}),left=str:'',whole=bool:True)],"
        "measures=[Measure(name=str:'m0',aggregate=str:'count',arguments=[],distinct=bool:False,filter=NoneType:None)])"
    )
    for _ in range(2):  # the second time parts are cached
        assert canonical_text(block) == wanted
        assert fingerprint(block) == hashlib.sha256(wanted.encode()).hexdigest()
    assert canonical_text([TermKind.SUM, (1.5, "x")]) == "[TermKind.SUM,[float:1.5,str:'x']]"


def test_a_copy_with_another_field_has_another_text() -> None:
    """Facts and scans cache their text: it belongs to this very value, not to values derived from it."""
    assert canonical_text(WARD) == WARD_TEXT and canonical_text(SCAN) == SCAN_TEXT
    assert canonical_text(replace(WARD, nullable=False)) == WARD_TEXT.replace("bool:True", "bool:False")
    assert canonical_text(WARD.without_values()) == WARD_TEXT.replace(
        "[str:'er',str:\"it's\",NoneType:None]", "NoneType:None"
    )
    assert canonical_text(Scan("other", SCAN.columns)) == SCAN_TEXT.replace("'visits'", "'other'")
    assert replace(WARD) == WARD and hash(replace(WARD)) == hash(WARD)


@pytest.mark.parametrize("word", ["current_date", "today()", "now()", "current_timestamp", "CURRENT_TIMESTAMP"])
def test_what_reads_the_clock_is_planned_anew(word: str) -> None:
    session = World(policy("hospital")).session
    moving = f"SELECT COUNT(*) FROM visits WHERE day < CAST({word} AS DATE)"
    standing = "SELECT COUNT(*) FROM visits WHERE day < DATE '2024-01-05' AND lower(ward) = 'now()'"
    planned = [session.plan(session.planner.parse(sql, None)) for sql in (moving, moving, standing, standing)]
    assert planned[0] is not planned[1] and planned[2] is planned[3]


# --- Measurements other than sums: every layer has its part for every kind and knows no other kind --------------------


FLOORS: tuple[Register[object], ...] = (
    pricing.PARTS, engine.PARTS, noise.PARTS, reuse.PARTS, distances.MEASUREMENTS, mechanism_laws.MEASUREMENTS,
)  # type: ignore[assignment]  # fmt: skip


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
