"""Wrong inputs with their complete messages: tests/unit/frontends/wrong_input/*.txt, each a command line and its expected output.

When a message changes, rewrite its file by hand and read it aloud.
"""

import re
import shlex
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from support.clinic_folder import POLICY, Clinic, Outcome

CASES = sorted((Path(__file__).parent / "wrong_input").glob("*.txt"))
BROKEN = (
    POLICY.replace("upper: 120", "upper: -1")
    .replace("max_rows: 100", "max_rows: 0")
    .replace("epsilon: 2,", "epsilon: NaN,")
    .replace("      smokes:", "      region: {type: txt}\n      smokes:")
)
FILES = {
    "broken.yaml": BROKEN,
    "report.sql": "SELECT COUNT(*) FROM patients;\nSELECT COUNT(*) FROM patient;\nSELECT AVG(income)\nFROM patients;\n",
    "half.sql": "SELECT COUNT(*) FROM patients WHERE region = 'north;\n",
    "twice.sql": "SELECT COUNT(*) FROM patients;\nSELECT AVG(age) FROM patients;\n",
}


def comparable(text: str) -> str:
    """Return the text unchanged, or with an older click without its usage lines and its suggestions of similar commands."""
    if tuple(map(int, version("click").split(".")[:2])) >= (8, 5):
        return text
    return re.sub(r"^Usage: .*\nTry .*\n", "", text, flags=re.MULTILINE).replace(" Did you mean 'query'?", "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_wrong_input_gives_the_expected_message_and_status(
    case: Path, bare_clinic: Clinic, dpsql: Callable[..., Outcome]
) -> None:
    command, _, expected = case.read_text(encoding="utf-8").partition("\n")
    if case.stem != "no-ledger":
        bare_clinic.create_ledger()
    for name, text in FILES.items():
        Path(name).write_text(text)
    words = shlex.split(command)[2:]
    outcome = dpsql(*words)
    said = re.sub(re.escape(str(bare_clinic.folder)), "FOLDER", outcome.err)
    assert comparable(f"{said}exit {outcome.status}\n") == comparable(expected)
    assert outcome.out == "", "standard output carries data only"
    assert case.stem == "no-ledger" or bare_clinic.charges() == 0, "nothing was charged"


def test_there_are_at_least_ten_cases() -> None:
    assert len(CASES) >= 10
