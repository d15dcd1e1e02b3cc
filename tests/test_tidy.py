"""House style as a test: sizes, words, and calls that have a better replacement here."""

import ast
import re

import pytest
from support.package_modules import FILES, PACKAGE, name, nodes_of
from support.places import ROOT

MOST_LINES = 700
LONGEST_FUNCTION = 70

BANNED = {
    r"\bnumpy\.random\b|\bnp\.random\b|^import random\b|^from random\b": "samplers (the operating system's randomness)",
    r"\bNotImplementedError\b|\bTODO\b|\bFIXME\b|\bXXX\b": "finish it, or refuse with a slug",
    r"\beval\(|\bexec\(": "a table of functions",
    r"\bpickle\.loads?\(": "Arrow or JSON, and a MAC",
    r"\byaml\.(safe_)?load\(": "policy.yaml_text.read_yaml (text scalars, repeated keys refused)",
    r"\bfetch_arrow_table\(|\bfetchdf\(": "to_arrow_table()",
}
"""Patterns that no line of the package may match, and what to use instead."""
WRITTEN = ("storage/records.py", "a table of functions")
"""What writes a method from the names of a class's fields, as `dataclasses` does."""
EXACT_ROOMS = (
    "pricing/sensitivity.py", "plan/stability.py", "pricing/bounding.py", "noise/group_layout.py",
    "noise/samplers.py", "noise/weighted_runs.py", "noise/cell_choice.py", "noise/noise_samplers.py",
    "noise/local_sensitivity.py",
)  # fmt: skip
"""Rooms that decide about privacy with integers and fractions alone."""


def test_files_and_functions_are_short() -> None:
    for file in FILES:
        assert len(file.read_text(encoding="utf-8").splitlines()) <= MOST_LINES, name(file)
        for node in nodes_of(file, ast.FunctionDef, ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION, f"{name(file)}: {node.name} is long"


def test_no_line_has_a_call_with_a_better_replacement() -> None:
    wrong = [
        f"{name(file)}:{number}: {line.strip()[:80]} -- use {instead}"
        for file in FILES
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for pattern, instead in BANNED.items()
        if re.search(pattern, line) and (name(file), instead) != WRITTEN
    ]
    assert wrong == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    """A file's name says what the thing is."""
    assert [name(file) for file in FILES if file.stem in ("utils", "util", "helpers", "common", "misc")] == []


def test_exact_answers_are_opened_in_one_place() -> None:
    """By the noise gate; the contract tests of engines, which nothing imports (`test_floors`), look at them as well."""
    calls = {name(file) for file in FILES if re.search(r"\.unseal\(\)", file.read_text(encoding="utf-8"))}
    assert calls == {"noise/perturb.py", "testing/__init__.py"}


def test_noise_is_drawn_in_one_place() -> None:
    """The samplers are called by the gate alone, through their registries."""
    drawing = re.compile(r"\bdiscrete_(laplace|gaussian)\(")
    calls = {name(file) for file in FILES if drawing.search(file.read_text(encoding="utf-8"))}
    assert calls == {"noise/noise_samplers.py", "noise/samplers.py"}
    users = {name(file) for file in FILES if "noise_samplers import" in file.read_text(encoding="utf-8")}
    assert users == {"noise/perturb.py"}


@pytest.mark.parametrize("room", EXACT_ROOMS)
def test_rooms_that_decide_have_no_floats(room: str) -> None:
    floats = [node for node in nodes_of(PACKAGE / room, ast.Constant) if isinstance(node.value, float)]
    casts = [
        node
        for node in nodes_of(PACKAGE / room, ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "float"
    ]
    if room == "noise/group_layout.py":
        floats = [node for node in floats if node.value != 2.0]  # its way out: noisy integers become floats
    assert floats == [] and casts == []


def test_no_path_or_host_of_ours() -> None:
    """Nothing of the machine this was written on."""
    for file in [*FILES, *(ROOT / "tests").rglob("*.py"), *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        if file.name != "test_tidy.py":
            assert "/work/" not in file.read_text(encoding="utf-8"), file
