"""Changes of single values in the text of a policy; comments, order and layout of everything else stay."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from difflib import unified_diff
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from dpsql.errors.exceptions import refuse
from dpsql.frontends.admin.new_policy import yaml_scalar
from dpsql.policy import parse_policy
from dpsql.policy.load import policy_text

Change = tuple[tuple[str, ...], object]
"""A place in a policy (keys from its root) and the value there; a list is added to the list that is there."""


def edited(text: str, changes: Iterable[Change]) -> str:
    """Return the text of a policy with each change made. The tables and columns of the places exist."""
    for path, value in changes:
        node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
        for key in path[:-1]:
            node = next(child for name, child in node.value if name.value == key)
        existing = next((child for name, child in node.value if name.value == path[-1]), None)
        if existing is None:
            text = _with_entry(text, node, f"{path[-1]}: {_written(value)}")
        elif isinstance(value, list):
            for item in reversed(value):
                text = _with_item(text, existing, _written(item))
        else:
            text = text[: existing.start_mark.index] + _written(value) + text[existing.end_mark.index :]
    return text


def _with_entry(text: str, mapping: Any, entry: str) -> str:
    """Return the text with another entry of a mapping: the last one in braces, the first one in a block."""
    if not mapping.value:
        start, end = mapping.start_mark.index, mapping.end_mark.index
        return f"{text[:start]}{{{entry}}}{text[end:]}"
    if mapping.flow_style:
        end = mapping.value[-1][1].end_mark.index
        return f"{text[:end]}, {entry}{text[end:]}"
    start = mapping.value[0][0].start_mark
    return f"{text[: start.index]}{entry}\n{' ' * start.column}{text[start.index :]}"


def _with_item(text: str, items: Any, item: str) -> str:
    """Return the text with another item at the end of a list."""
    if not items.value:
        return f"{text[: items.start_mark.index]}[{item}]{text[items.end_mark.index :]}"
    end = items.value[-1].end_mark.index
    if items.flow_style:
        return f"{text[:end]}, {item}{text[end:]}"
    line = text.find("\n", end)
    end = len(text) if line < 0 else line
    return f"{text[:end]}\n{' ' * items.start_mark.column}- {item}{text[end:]}"


def with_table(text: str, lines: Iterable[str]) -> str:
    """Return the text of a policy with another table after the last one. `lines`: the table, indented by two blanks."""
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    tables = next(child for name, child in root.value if name.value == "tables")
    if tables.flow_style:
        problem = "the tables of the policy are in braces; write them on lines"
        raise refuse("init_table", table=next(iter(lines)).strip().rstrip(":"), problem=problem)
    last, indent = tables, " " * tables.value[0][0].start_mark.column
    while last.value and not isinstance(last.value, str) and not last.flow_style:
        last = last.value[-1]
        last = last[1] if isinstance(last, tuple) else last
    line = text.find("\n", last.end_mark.index)
    end = len(text) if line < 0 else line
    return f"{text[:end]}\n" + "\n".join(f"{indent}{entry[2:]}" for entry in lines) + (text[end:] or "\n")


def _written(value: object) -> str:
    """Return a value as YAML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (int, Fraction)):
        return f"{float(value):.15g}" if isinstance(value, Fraction) else str(value)
    return yaml_scalar(str(value))


def policy_diff(path: Path, changes: Iterable[Change]) -> tuple[str, str]:
    """Return the text of the policy at `path` with the changes, and the difference. Raises PolicyRefusal if the changed policy
    is none."""
    before = policy_text(path)
    after = edited(before, changes)
    parse_policy(after, str(path), path.parent)
    lines = unified_diff(before.splitlines(True), after.splitlines(True), str(path), f"{path} (proposed)", n=1)
    return after, "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def replace_policy(path: Path, text: str) -> None:
    """Write a changed policy in the place of the old one, at once. Raises Fault file_write."""
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.write_text(text, encoding="utf-8", newline="")
        draft.chmod(path.stat().st_mode & 0o777)
        draft.replace(path)
    except OSError as error:
        raise refuse("file_write", place=str(path), problem=error.strerror or "it failed") from None
