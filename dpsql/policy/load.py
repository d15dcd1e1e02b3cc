"""Reading of a policy: file to text, text to tree, tree to values, these to a policy; all problems are reported together."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from dpsql.errors.custodian_log import DATASETS
from dpsql.errors.exceptions import Error, PolicyRefusal, refuse
from dpsql.policy.build import build_policy
from dpsql.policy.check import check_policy
from dpsql.policy.fields import KeysOf
from dpsql.policy.types import Policy
from dpsql.policy.yaml_text import Origin, Problems, Unreadable, read_yaml

Check = Callable[[Policy, Problems], None]
"""A check that adds what is wrong in a policy to its problems."""
MOST_BYTES = 1 << 20
_FILLED = {
    "dataset": "filled",
    "privacy_unit": None,
    "budget": {"epsilon": Fraction(10_000), "delta": Fraction(9, 10_000)},
    "ledger": "sqlite:///filled.db",
    "tables": {},
}
"""Values of required keys with a problem, so that the rest of the file can be checked: they never reach a policy in force."""


def load_policy(path: str | Path) -> Policy:
    """Return the policy in the file at `path`; relative paths in it start at the file's folder.

    Raises PolicyRefusal: `policy_file` if the file cannot be read as text, `policy_invalid` with all `.problems` otherwise.
    """
    place = Path(path)
    return parse_policy(policy_text(place), str(place), place.parent)


def parse_policy(text: str, origin: str = "policy", folder: Path = Path(".")) -> Policy:
    """Return the policy in `text`; `origin` names it in messages. Raises PolicyRefusal (`policy_invalid`)."""
    policy, problems = _read(text, folder)
    if policy is None or problems:
        raise refusal(origin, problems)
    DATASETS.add(policy.dataset)
    return replace(policy, origin=replace(policy.origin, name=origin))


def policy_problems(text: str, further: Check | None = None) -> list[tuple[str, str]]:
    """Return (path, sentence) for every problem of the policy in `text`; empty if it is acceptable. `further`: a check that
    packages above this one add. Parts of the policy that have problems may be missing from what it is given."""
    return _read(text, Path("."), further)[1]


def policy_text(path: Path) -> str:
    """Return the text of a policy file. Raises PolicyRefusal (`policy_file`)."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise refuse("policy_file", origin=str(path), problem="it is not a file")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "no such place"
        raise refuse("policy_file", origin=str(path), problem=reason.lower()) from None
    if len(data) > MOST_BYTES:
        raise refuse("policy_file", origin=str(path), problem=f"it is longer than {MOST_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refuse("policy_file", origin=str(path), problem=f"line {line} is not UTF-8") from None


def refusal(origin: str, problems: list[tuple[str, str]]) -> Error:
    """Return the refusal of the policy called `origin` with its problems, (path, sentence), of which there is at least one."""
    path, sentence = problems[0]
    more = "" if len(problems) == 1 else f" (and {len(problems) - 1} more)"
    error = refuse("policy_invalid", origin=origin, path=path, sentence=sentence, more=more)
    error.path = path
    if isinstance(error, PolicyRefusal):
        error.problems = tuple(problems)
    return error


def _read(text: str, folder: Path, further: Check | None = None) -> tuple[Policy | None, list[tuple[str, str]]]:
    problems = Problems()
    if len(text) > MOST_BYTES:
        return None, [("$", f"the policy is longer than {MOST_BYTES} characters")]
    try:
        tree = read_yaml(text, problems)
    except Unreadable as error:
        return None, [("$", str(error))]
    if not isinstance(tree, dict):
        return None, [("$", "a policy is a mapping of keys (dataset, privacy_unit, budget, ledger, tables, ...)")]
    stated = KeysOf(Policy).read(tree, (), problems, _FILLED)
    policy = replace(build_policy(stated, folder, problems), origin=Origin(lines=problems.lines))
    check_policy(policy, tree, problems)
    if further is not None:
        further(policy, problems)
    return policy, problems.listed()
