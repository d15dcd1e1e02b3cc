"""No names that say nothing, or few of them, and one word means one thing (docs/glossary.md).

Run as a script (`PYTHONPATH=.:tests`), it prints the table as it is now; only smaller numbers may be written down here.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from support.package_modules import FILES, PACKAGE, name, nodes, nodes_of
from support.places import ROOT

WORDS = frozenset({"one", "at", "found", "known", "told", "made", "kept", "asked", "shown", "beside"})
FURTHER_WORDS = frozenset({"given", "here", "of", "others", "own", "seen", "there", "wanted", "way", "what"})
"""Words of no meaning of their own as names: a reader has to look up what they stand for."""


def package_of(file: Path) -> str:
    """The package that a module stands in; "dpsql" for those directly in it."""
    folder, _, rest = name(file).partition("/")
    return folder if rest else "dpsql"


PACKAGES = sorted({package_of(file) for file in FILES})


def bound_names(file: Path) -> Iterator[str]:
    """Every name that is given in a module: variables, parameters, attributes, functions, classes, imports under a name. What
    stands in strings and comments does not count."""
    for node in nodes(file):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


@cache
def counted(words: frozenset[str] = WORDS) -> dict[str, int]:
    """How many names of each package are such words, with or without an underscore in front."""
    counts = dict.fromkeys(PACKAGES, 0)
    for file in FILES:
        counts[package_of(file)] += sum(name.strip("_") in words for name in bound_names(file))
    return counts


def classes_of_one_name() -> dict[str, int]:
    """Public classes whose name another class has as well: how many there are of each name."""
    names = Counter(
        node.name for file in FILES for node in nodes_of(file, ast.ClassDef) if not node.name.startswith("_")
    )
    return {name: count for name, count in sorted(names.items()) if count > 1}


MOST_FURTHER_WORDS = {"ledger": 1, "plan": 1, "release": 2, "reuse": 1, "tuning": 1}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_says_nothing(package: str) -> None:
    assert counted()[package] == 0, f"give names of the domain instead of {sorted(WORDS)}"


@pytest.mark.parametrize("package", PACKAGES)
def test_further_names_that_say_nothing_become_fewer(package: str) -> None:
    most = MOST_FURTHER_WORDS.get(package, 0)
    assert counted(FURTHER_WORDS)[package] <= most, f"give names of the domain instead of {sorted(FURTHER_WORDS)}"


MOST_OF_ONE_MEANING = {"place": 184, "room": 0, "cut": 0}
CUTS = ("aggregates", "plan", "planning", "pricing", "session", "tuning")
"""Packages that know the bound on what units add in total, which a question chooses for itself (`TotalCut`)."""


@pytest.mark.parametrize("word", sorted(MOST_OF_ONE_MEANING))
def test_a_word_of_the_glossary_has_its_one_meaning(word: str) -> None:
    """Names of the word become fewer: what stands in a list has an `index`, a file a `path`, a store a `location`, work a
    `queue`; a place is where something stands in a text that a person wrote, a cut is a `TotalCut`."""
    files = (file for file in FILES if word != "cut" or package_of(file) not in CUTS)
    names = [bound for file in files for bound in bound_names(file) if bound.strip("_") in (word, f"{word}s")]
    assert len(names) <= MOST_OF_ONE_MEANING[word], Counter(map(str, names))


def test_no_class_name_means_two_things() -> None:
    assert not classes_of_one_name(), "one word, one meaning: choose another name (docs/glossary.md)"


def test_the_glossary_names_classes_that_there_are() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)*)`", text))
    there = {node.name for file in FILES for node in nodes_of(file, ast.ClassDef)}
    assert named and not named - there


def test_the_glossary_has_each_entry_once() -> None:
    entries = re.findall(r"^- \*\*([^*]+)\*\*", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.M)
    assert len(entries) >= 30 and len(set(entries)) == len(entries)


QUESTION_WORDS = ("Whether ", "What ", "How ", "Which ", "Where ", "Who ", "When ")
LABELS = ("The same", "That of ", "Those of ", "Of ", "As ", "Its ", "One.", "Nothing.", "Itself")


def test_docstrings_of_functions_say_what_is_done() -> None:
    """A docstring that begins with a question word is half a sentence: "Return whether ...", not "Whether ...". One that begins with
    "That of" or "As" is a label that another docstring completes. (ruff's D401 finds those that begin with an article.)"""
    half = [
        f"{file.relative_to(PACKAGE)}: {node.name}: {text}"
        for file in FILES
        for node in nodes_of(file, ast.FunctionDef, ast.AsyncFunctionDef)
        if (text := ast.get_docstring(node) or "").startswith(QUESTION_WORDS + LABELS)
    ]
    assert not half, half


if __name__ == "__main__":
    print("MOST_FURTHER_WORDS =", {package: count for package, count in counted(FURTHER_WORDS).items() if count})
