"""Reading of a policy: file to text, text to tree, tree to shape, shape to policy; all problems are reported together."""

from __future__ import annotations

import copy
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsql.errors.exceptions import Error, PolicyRefusal, refuse
from dpsql.errors.suggestions import did_you_mean
from dpsql.policy.types import Policy
from dpsql.policy.yaml_text import Origin, Place, Problems, Unreadable, read_yaml

Check = Callable[[Policy, Problems], None]
"""A check that adds what is wrong in a policy to its problems."""
MOST_BYTES = 1 << 20
SENTENCES = dict.fromkeys(("model_type", "dict_type"), "a mapping of keys to values is expected here")
"""The sentences of pydantic's errors that shapes themselves do not word; its own texts speak of Python."""


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
    # pydantic takes longer to import than everything else, and code that only uses the types does not need it
    from dpsql.policy.build import build_policy
    from dpsql.policy.check import check_policy

    problems = Problems()
    if len(text) > MOST_BYTES:
        return None, [("$", f"the policy is longer than {MOST_BYTES} characters")]
    try:
        tree = read_yaml(text, problems)
    except Unreadable as error:
        return None, [("$", str(error))]
    if not isinstance(tree, dict):
        return None, [("$", "a policy is a mapping of keys (dataset, privacy_unit, budget, ledger, tables, ...)")]
    shape = _shape(copy.deepcopy(tree), problems)
    policy = replace(build_policy(shape, folder, problems), origin=Origin(lines=problems.lines))
    check_policy(policy, tree, problems)
    if further is not None:
        further(policy, problems)
    return policy, problems.listed()


def _shape(tree: dict[str, Any], problems: Problems) -> Any:
    """Return `tree` as a PolicyShape; misshapen parts are reported and cut out, and the rest is tried again.

    Required keys of the root are filled in if they were cut out or missing, so that the rest can still be checked; such
    values never reach a policy in force, because a problem has been recorded by then.
    """
    from pydantic import ValidationError

    from dpsql.policy.shape import PolicyShape

    fill: dict[str, Any] = {
        "dataset": "filled",
        "privacy_unit": "row",
        "budget": {"epsilon": "10000", "delta": "0.0009"},
        "ledger": "sqlite:///filled.db",
        "tables": {},
    }
    cut: set[Place] = set()
    while True:
        places: list[Place] = []
        try:
            return PolicyShape.model_validate(tree)
        except ValidationError as error:
            for item in error.errors():
                place = _place(item["loc"])
                if item["type"] == "missing":
                    if place not in cut:
                        problems.add(place, "is missing")
                    place = place if len(place) == 1 else place[:-1]
                else:
                    problems.add(place, _sentence(item, place))
                    place = next((place[:i] for i, part in enumerate(place) if isinstance(part, int)), place)
                cut.add(place)
                places.append(place)
        if not _is_cut(tree, places, fill):
            return PolicyShape.model_validate(fill)


def _place(loc: tuple[int | str, ...]) -> Place:
    """Return the place of an error; pydantic marks a bad key of a mapping by a last part `[key]`."""
    return loc[:-1] if loc and loc[-1] == "[key]" else loc


def _is_cut(tree: dict[str, Any], places: list[Place], fill: dict[str, Any]) -> bool:
    """Cut `places` out of the tree, or what contains them if they are not in it. Return False if nothing could be cut: then
    validation would find the same again."""
    while places:
        if sum(_cut(tree, place, fill) for place in places):
            return True
        places = [place[:-1] for place in places if len(place) > 1]
    return False


def _cut(tree: dict[str, Any], place: Place, fill: dict[str, Any]) -> bool:
    """Remove a place, or fill it in if the root needs it. Return whether the tree changed."""
    if len(place) == 1 and place[0] in fill:
        key = str(place[0])
        before, tree[key] = tree.get(key), fill[key]
        return before is not fill[key]
    node: Any = tree
    for part in place[:-1]:
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, dict) or not place or place[-1] not in node:
        return False
    del node[place[-1]]
    return True


def _sentence(item: Any, place: Place) -> str:
    from dpsql.policy.shape import keys_at

    kind = item["type"]
    if kind == "extra_forbidden":
        return f"unknown key {place[-1]}{did_you_mean(str(place[-1]), keys_at(place[:-1]))}"
    if kind == "value_error":
        return str(item["ctx"]["error"])
    return SENTENCES.get(kind, "the value has another form than the policy's pages say")
