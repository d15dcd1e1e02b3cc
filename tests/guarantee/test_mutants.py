"""The mutation gate: small bugs, each of which a few of our own tests must not miss.

Every mutant replaces one expression (or a few statements) of one function in a copy of the package next to the tests; its tests
run there and pass without it. A mutant that survives is a failure, and so is one whose code is no longer in its function: then
the table must be updated with the code.

`DPSQL_MUTANTS=all` runs every mutant. Otherwise those run that changed since `DPSQL_MUTANTS_BASE` (a commit; by default the
fifth before this one): their function or what it uses in its module, the tests that must detect them, or their entry. Of the
others, one in eighty runs, a different share at each commit; all are applied.
"""

import ast
import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from support.forked import LIBRARIES, Forked
from support.places import ROOT
from support.syntax_mutations import Scope, mutated, scopes_of

from guarantee.mutants import MUTANTS, Mutant

_BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Code:
    """One version of a module."""

    def __init__(self, source: str) -> None:
        module = without_docstrings(ast.parse(source))
        self._scopes: dict[str, list[Scope]] = {}
        for name, scope in scopes_of(module):
            self._scopes.setdefault(name, []).append(scope)
        self._binding: dict[str, list[ast.stmt]] = {}
        self.tests: list[str] = []
        for statement in module.body:
            for name in _bound(statement):
                self._binding.setdefault(name, []).append(statement)
            if isinstance(statement, _BLOCKS) and statement.name.lower().startswith("test"):
                self.tests.append(statement.name)
        self._trees: dict[str, frozenset[str]] = {}

    def trees(self, function: str) -> frozenset[str]:
        """Return the trees in this module on which a function or class depends (a dotted name; "" is the module), or an empty set
        if no such name exists."""
        if function not in self._trees:
            self._trees[function] = frozenset(map(ast.dump, self._nodes(function)))
        return self._trees[function]

    def _nodes(self, function: str) -> Iterator[ast.AST]:
        parts = function.split(".")
        outside = [".".join(parts[:length]) for length in range(1, len(parts))]
        waiting: list[ast.AST] = list(self._scopes.get(function, ()))
        for name in outside:  # names of the enclosing scope that a nested function uses
            waiting += [scope for scope in self._scopes.get(name, ()) if not isinstance(scope, ast.ClassDef)]
        classes = [
            name for name in outside if any(isinstance(scope, ast.ClassDef) for scope in self._scopes.get(name, ()))
        ]
        met: set[int] = set()
        while waiting:
            node = waiting.pop()
            if id(node) in met:
                continue
            met.add(id(node))
            yield node
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name):
                    waiting += self._binding.get(inner.id, ())
                elif isinstance(inner, ast.Attribute):  # methods of the same class
                    waiting += [scope for name in classes for scope in self._scopes.get(f"{name}.{inner.attr}", ())]


def without_docstrings(module: ast.Module) -> ast.Module:
    """Return the tree without string statements: docstrings of modules, functions, classes and attributes."""
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_text(line)] or [ast.Pass()]  # type: ignore[attr-defined]
    return module


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a module-level statement binds."""
    if isinstance(statement, _BLOCKS):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]


def differs(old: Code | None, new: Code, function: str) -> bool:
    """Return whether a function computes something else than in `old`; always True for a new module."""
    return old is None or old.trees(function) != new.trees(function)


def entries(source: str, called: str) -> dict[str, str]:
    """Return the trees of all calls of `called` whose first argument is a string, keyed by that string."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args]
    named = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == called]
    return {
        call.args[0].value: ast.dump(call)
        for call in named
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    }


def may_select(only: str, test: str, tests: list[str]) -> bool:
    """Return whether pytest's `-k only` may select `test` of a file that has `tests`. A word that occurs in no test's name is
    taken for a parameter value, which any test may have."""
    words = set(re.findall(r"[^\s()]+", only)) - {"and", "or", "not"}
    holds = [word in test or not any(word in other for other in tests) for word in words]
    if not words or re.search(r"\bnot\b", only):
        return True
    return any(holds) if re.search(r"\bor\b", only) else all(holds)


def asks_differently(old: Mapping[str, Code | None], new: Mapping[str, Code], selection: str, only: str) -> bool:
    """Return whether a test that pytest selects has changed. `selection`: files with or without `::NAME`, separated by spaces;
    `old` and `new`: the texts of the changed files."""
    for place in selection.split():
        file, _, name = place.partition("::")
        if file not in new:
            continue
        code = new[file]
        chosen = [name.split("::")[0]] if name else [test for test in code.tests if may_select(only, test, code.tests)]
        if any(differs(old.get(file), code, test) for test in chosen):
            return True
    return False


BASE = os.environ.get("DPSQL_MUTANTS_BASE", "HEAD~5")
EVERY = os.environ.get("DPSQL_MUTANTS") == "all"
TABLE = "guarantee/mutants.py"
SHARES = 80
"""Of the mutants that no change touched, one in so many runs."""
MOST_MEMORY = 6 << 30
"""Bytes that a process of a mutant's tests may have for data: a bug in a bound would take all that the machine has."""
BOUNDED = f"import resource, sys, pytest; resource.setrlimit(resource.RLIMIT_DATA, ({MOST_MEMORY},) * 2); sys.exit(pytest.main())"


def git(*command: str) -> str | None:
    """Return what a git command prints, or None if it fails."""
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


@dataclass(frozen=True)
class Changes:
    """Modules that changed since the base, by path within a folder, before (None if new) and now; names of mutants whose entries
    are new or changed; the number of commits."""

    package: tuple[dict[str, Code | None], dict[str, Code]]
    tests: tuple[dict[str, Code | None], dict[str, Code]]
    mutants: frozenset[str]
    commits: int


def moved(folder: str) -> dict[str, str]:
    """Return the base's path of each renamed file of a folder, by its current path."""
    listed = git(
        "diff", "--name-status", "--find-renames", "--diff-filter=R", f"--relative={folder}", BASE, "--", folder
    )
    return {now: before for _, before, now in (line.split("\t") for line in (listed or "").splitlines())}


def changed_modules(folder: str) -> tuple[dict[str, Code | None], dict[str, Code]] | None:
    """Return the changed modules of a folder that a mutant names, before and now, or None if git cannot tell. A renamed file is
    compared with its former version."""
    listed = git("diff", "--name-only", "--find-renames", f"--relative={folder}", BASE, "--", folder)
    if listed is None:
        return None
    named = {mutant.path for mutant in MUTANTS} | {
        f"tests/{test.split('::')[0]}" for mutant in MUTANTS for test in mutant.tests.split()
    }
    names = [name for name in listed.split() if f"{folder}/{name}" in named and (ROOT / folder / name).exists()]
    former = moved(folder)
    before = {name: git("show", f"{BASE}:{folder}/{former.get(name, name)}") for name in names}
    old = {name: None if source is None else Code(source) for name, source in before.items()}
    return old, {name: Code((ROOT / folder / name).read_text(encoding="utf-8")) for name in names}


@cache
def changes() -> Changes | None:
    """Return what changed since the base, or None if git cannot tell."""
    package, audit, tests = map(changed_modules, ("dpsql", "dpsql_audit", "tests"))
    table, commits = git("show", f"{BASE}:tests/{TABLE}"), git("rev-list", "--count", "HEAD")
    if package is None or audit is None or tests is None or table is None or commits is None:
        return None
    for modules, further in zip(package, audit, strict=True):
        modules.update({f"dpsql_audit/{name}": code for name, code in further.items()})
    for now_at, before_at in (moved("dpsql") | moved("tests")).items():
        table = table.replace(before_at, now_at)
    before, now = (entries(text, "Mutant") for text in (table, (ROOT / "tests" / TABLE).read_text(encoding="utf-8")))
    assert set(now) == {mutant.name for mutant in MUTANTS}
    return Changes(package, tests, frozenset(name for name in now if before.get(name) != now[name]), int(commits))


def is_touched(mutant: Mutant, since: Changes) -> bool:
    """Return whether a change touches the mutant's code, tests or entry."""
    old, new = since.package
    if mutant.file in new and differs(old[mutant.file], new[mutant.file], mutant.function):
        return True
    return mutant.name in since.mutants or asks_differently(*since.tests, mutant.tests, mutant.only)


def is_run(mutant: Mutant) -> bool:
    """Return whether to run the mutant's tests; otherwise the mutant is only applied."""
    since = None if EVERY else changes()
    return (
        since is None or is_touched(mutant, since) or (zlib.crc32(mutant.name.encode()) - since.commits) % SHARES == 0
    )


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a copy of the package and the tests, including bytecode. Each mutant is applied to this copy and then
    reverted: a separate copy for each would mean writing and removing a thousand more files."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("dpsql", "dpsql_audit", "schemas", "tests"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@contextmanager
def replaced(file: Path, text: str) -> Iterator[None]:
    """Replace a module's text while the block runs. Python matches bytecode to a module by its time and size, so each text has a
    distinct time here, and the original time is restored at the end."""
    before, times = file.read_bytes(), file.stat()
    file.write_text(text, encoding="utf-8")
    os.utime(file, (times.st_atime, zlib.crc32(text.encode()) // 2))
    try:
        yield
    finally:
        file.write_bytes(before)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def run(folder: Path, own: Path, tests: list[str], only: str) -> tuple[int, str]:
    """Run some tests in a copy and return their exit status (0: all passed, 1: some failed) and their output. `own`: an empty
    folder for files that they write."""
    mine = {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "tests")]), "DPSQL_STATE": str(own / "state")}
    command = ["-c", BOUNDED, "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line"]
    command += [f"--basetemp={own / 'tests'}"]
    command += [str(folder / "tests" / test) for test in tests] + (["-k", only] if only else [])
    with Forked(
        command, LIBRARIES, {**os.environ, **mine}, folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        printed, _ = child.communicate()
    return child.returncode, printed


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_still_has_its_place_and_its_tests(mutant: Mutant) -> None:
    source = (ROOT / mutant.path).read_text(encoding="utf-8")
    assert mutated(source, mutant.function, mutant.old, mutant.new) != source
    assert all((ROOT / "tests" / test.split("::")[0]).exists() for test in mutant.tests.split())


@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS if is_run(mutant)], ids=lambda mutant: mutant.name)
def test_mutants_are_noticed_by_their_tests(mutant: Mutant, copy: Path, tmp_path: Path) -> None:
    place = copy / mutant.path
    source = place.read_text(encoding="utf-8")
    with replaced(place, mutated(source, mutant.function, mutant.old, mutant.new)):
        status, printed = run(copy, tmp_path, mutant.tests.split(), mutant.only)
    assert status == 1, printed[-2000:]
    assert "No module named" not in printed


EVERY_SELECTION = sorted({(mutant.tests, mutant.only) for mutant in MUTANTS})
SELECTIONS = EVERY_SELECTION if EVERY else [("unit/privacy/mechanisms/test_exponential.py", "targets")]


@pytest.mark.parametrize(("tests", "only"), SELECTIONS)
def test_without_a_mutant_its_tests_are_green(tests: str, only: str, copy: Path, tmp_path: Path) -> None:
    """Tests pass in the copy: tests that cannot run there would seem to detect every mutant. `DPSQL_MUTANTS=all` checks every
    mutant's tests."""
    status, printed = run(copy, tmp_path, tests.split(), only)
    assert status == 0, printed[-2000:]


def test_a_mutant_without_bounds_ends_its_tests_alone(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "test_greedy.py").write_text(
        f"import numpy\ndef test_it(): numpy.empty({MOST_MEMORY}, 'u1')", encoding="utf-8"
    )
    status, printed = run(copy, tmp_path, [str(tmp_path / "test_greedy.py")], "")
    assert (status, "MemoryError" in printed) == (1, True), printed[-2000:]


def test_a_mutant_leaves_nothing_behind(tmp_path: Path) -> None:
    place = tmp_path / "module.py"
    place.write_text("x = 1\n", encoding="utf-8")
    before, times = place.stat(), set()
    for text in ("x = 2\n", "x = 3\n"):
        with replaced(place, text):
            assert place.read_text(encoding="utf-8") == text
            times.add(int(place.stat().st_mtime))
    assert len({*times, int(before.st_mtime)}) == 3
    assert (place.read_text(encoding="utf-8"), place.stat().st_mtime_ns) == ("x = 1\n", before.st_mtime_ns)


def test_names_of_mutants_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 30


def test_code_that_is_not_there_or_twice_is_no_mutant() -> None:
    source = "def f(x):\n    y = x + 1\n    return x + 1\n\ndef g(x):\n    return x + 2\n"
    assert "return x + 3" in mutated(source, "g", "x + 2", "x + 3")
    assert mutated(source, "f", "y = x + 1\nreturn x + 1", "return 0").splitlines()[1] == "    return 0"
    with pytest.raises(AssertionError, match="2 times"):
        mutated(source, "f", "x + 1", "x")
    with pytest.raises(AssertionError, match="0 times"):
        mutated(source, "f", "x + 2", "x")
    with pytest.raises(AssertionError, match="no function"):
        mutated(source, "h", "x + 2", "x")


MODULE = """
import enum
from x import far
LIMIT = 3
class C:
    def m(self): return self.n() + LIMIT
    def n(self): return far()
    def other(self): return 1
def f(x):
    def inner(y): return y
    return helper(x) + inner(x)
def helper(x): return LIMIT * x
def g(x): return enum.auto()
"""


@pytest.mark.parametrize(
    ("old", "new", "touched"),
    [
        ("LIMIT = 3", "LIMIT = 4", {"C", "C.m", "f", "f.inner", "helper"}),
        ("return far()", "return far() + 1", {"C", "C.m", "C.n"}),
        ("from x import", "from y import", {"C", "C.m", "C.n"}),
        ("return 1", "return 2", {"C", "C.other"}),
        ("return y", "return -y", {"f", "f.inner"}),
        ("LIMIT * x", "x * LIMIT", {"f", "f.inner", "helper"}),
        ("import enum", "import enum # a comment", set()),
        ("auto()", "auto( )", set()),
        ("def helper(x): return", "def helper(x): 'Return a multiple.'; return", set()),
        ("def g(x)", "def g(x=0)", {"g"}),
    ],
)
def test_a_change_touches_the_functions_that_use_what_changed(old: str, new: str, touched: set[str]) -> None:
    before, now = Code(MODULE), Code(MODULE.replace(old, new))
    functions = ["C", "C.m", "C.n", "C.other", "f", "f.inner", "helper", "g"]
    assert {function for function in functions if differs(before, now, function)} == touched
    assert differs(before, now, "") == bool(touched)
    assert differs(None, now, "g") and differs(before, Code(""), "g")


TESTS_BEFORE = """
CASES = [1, 2]
@mark(CASES)
def test_words_hold(x): assert x
def test_rows_hold(): check()
def check(): assert True
"""


@pytest.mark.parametrize(
    ("old", "new", "left_out"),
    [
        ("[1, 2]", "[1]", {"rows and hold", "words and rows"}),
        ("assert True", "pass", {"words", "words and rows", "::test_words_hold"}),
    ],
)
def test_a_change_of_a_test_touches_what_selects_it(old: str, new: str, left_out: set[str]) -> None:
    """A word that occurs in no test's name may be a parameter value of any of them."""
    before, now = {"t.py": Code(TESTS_BEFORE)}, {"t.py": Code(TESTS_BEFORE.replace(old, new))}
    words = {"", "words", "rows and hold", "rows or words", "hold and some_case", "not words", "words and rows"}
    touched = {only for only in words if asks_differently(before, now, "other.py t.py", only)}
    touched |= {"::test_words_hold"} if asks_differently(before, now, "t.py::test_words_hold", "") else set()
    assert touched == (words | {"::test_words_hold"}) - left_out
    assert not asks_differently(before, now, "other.py", "")
    assert asks_differently({"t.py": None}, now, "t.py", "words")


def test_a_file_that_has_only_moved_touches_no_mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = 'MUTANTS = (Mutant("one", "a.py", "f", "1", "2", "{}"),)\n'
    for name in ("dpsql", "tests/unit", "tests/guarantee"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "dpsql/a.py").write_text("def f(): return 1\n")
    (tmp_path / "tests/unit/test_old.py").write_text(TESTS_BEFORE)
    (tmp_path / "tests" / TABLE).write_text(entry.format("unit/test_old.py"))
    monkeypatch.setattr("guarantee.test_mutants.ROOT", tmp_path)
    monkeypatch.setattr("guarantee.test_mutants.BASE", "HEAD")
    one = Mutant("one", "a.py", "f", "1", "2", "unit/test_new.py", "words")
    monkeypatch.setattr("guarantee.test_mutants.MUTANTS", (one,))
    for command in (["init", "-q"], ["config", "user.email", "a@b.c"], ["config", "user.name", "a"], ["add", "."]):
        assert git(*command) is not None
    assert git("commit", "-q", "-m", "first") is not None
    (tmp_path / "tests/unit/test_old.py").rename(tmp_path / "tests/unit/test_new.py")
    (tmp_path / "tests" / TABLE).write_text(entry.format("unit/test_new.py"))
    assert git("add", ".") is not None
    since = changes.__wrapped__()
    assert since is not None and not is_touched(one, since)
    (tmp_path / "tests/unit/test_new.py").write_text(TESTS_BEFORE.replace("assert x", "assert not x"))
    since = changes.__wrapped__()
    assert since is not None and is_touched(one, since)


def test_an_entry_of_the_table_is_compared_by_its_name() -> None:
    table = 'A = "t.py"\nM = (Mutant("one", "x", A), Mutant("two", "y", A), other("three"))'
    before, now = entries(table, "Mutant"), entries(table.replace('"y"', '"z"') + "\n", "Mutant")
    assert set(before) == {"one", "two"}
    assert [name for name in now if before[name] != now[name]] == ["two"]


def test_each_mutant_runs_in_one_of_so_many_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guarantee.test_mutants.EVERY", False)
    runs: list[set[str]] = []
    for commits in range(100, 100 + SHARES):
        quiet = Changes(({}, {}), ({}, {}), frozenset(), commits)
        monkeypatch.setattr("guarantee.test_mutants.changes", lambda quiet=quiet: quiet)
        runs.append({mutant.name for mutant in MUTANTS if is_run(mutant)})
    assert sum(map(len, runs)) == len(set().union(*runs)) == len(MUTANTS)
    assert max(map(len, runs)) <= len(MUTANTS) // (SHARES // 2)
