"""`dpsql audit` detects bugs planted in a copy of the installed package. For the complete table see `guarantee.planted_bugs`.

Each bug takes seconds of processor time, so there is one for each of the audit's methods of detection; further bugs of distances
run at night.
"""

import pytest
from support.effort import by_day
from support.places import ROOT
from support.syntax_mutations import mutated

from guarantee.mutants import MUTANTS, Mutant
from guarantee.planted_bugs import BUGS, FURTHER, PlantedBug, hunt

ONE_OF_EACH_WAY = (
    "half the L1 sensitivity",  # distances between exact sums of neighbours
    "EXPLAIN counts rows",  # output before anything is charged
    "a ledger that is gone is made anew",  # charges of real sessions
    "ties of a window broken by the engine",  # the same rows in another order, in files
)
FURTHER_DISTANCES = ("clipped one step too far out", "a window over everybody")
HUNTED = [bug for bug in BUGS if bug.mutant in ONE_OF_EACH_WAY + FURTHER_DISTANCES]


@pytest.mark.parametrize(
    "bug", by_day([bug for bug in HUNTED if bug.mutant in ONE_OF_EACH_WAY], HUNTED), ids=lambda bug: bug.mutant
)
def test_a_planted_bug_is_found_by_the_owners_command(bug: PlantedBug) -> None:
    found = hunt(bug)
    assert found.status == 1 and found.words.startswith("finding"), found


@pytest.mark.parametrize("mutant", FURTHER, ids=lambda mutant: mutant.name)
def test_a_bug_for_the_audit_still_has_its_place(mutant: Mutant) -> None:
    source = (ROOT / mutant.path).read_text(encoding="utf-8")
    assert mutated(source, mutant.function, mutant.old, mutant.new) != source


def test_every_planted_bug_is_in_a_table_once() -> None:
    names = {mutant.name for mutant in (*MUTANTS, *FURTHER)}
    assert {bug.mutant for bug in BUGS} >= {*ONE_OF_EACH_WAY, *FURTHER_DISTANCES}
    assert {bug.mutant for bug in BUGS} <= names and len({bug.mutant for bug in BUGS}) == len(BUGS) >= 40
