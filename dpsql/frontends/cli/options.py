"""Options of commands."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from dpsql.frontends.cli.shared import SessionOptions, settings_of

PATH = click.Path(path_type=Path)
FILE, FOLDER = click.Path(path_type=Path, dir_okay=False), click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=1)
Command = TypeVar("Command", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """Numbers of a range without nan and infinity, which click would accept."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a finite number. Raises UsageError for anything outside the range."""
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value!r} is not a finite number.", param, ctx)


def option(
    names: str, help: str, kind: click.ParamType[Any, Any] | tuple[str, ...] | str | None = None, **about: Any
) -> Callable[[Command], Command]:
    """Return an option. `names`: its spellings and, last, the name of its argument, if that differs; `kind`: the type of its
    value, the values that it may have, or the word for a text in the help (None: a flag)."""
    if kind is None:
        about["is_flag"] = True
    elif isinstance(kind, str):
        about["metavar"] = kind
    else:
        about["type"] = click.Choice(kind) if isinstance(kind, tuple) else kind
    return click.option(*names.split(), help=help or None, **about)


def policy_option(required: bool = True) -> Callable[[Command], Command]:
    """Return the option -p POLICY, whose default is the environment's DPSQL_POLICY."""
    return option(
        "-p --policy",
        "The policy file (or DPSQL_POLICY).",
        PATH,
        envvar="DPSQL_POLICY",
        required=required,
        metavar="POLICY",
    )


analyst_option = option(
    "--analyst",
    "The analyst whose account is charged as well (or DPSQL_ANALYST); by default the owner asks.",
    "NAME",
    envvar="DPSQL_ANALYST",
)


objective_option = option(
    "--objective",
    "Which error to make small: the largest relative error, or the mean error.",
    ("worst", "mean"),
    default="worst",
)
project_option = option(
    "--project", "The project whose account is charged as well (or DPSQL_PROJECT).", "NAME", envvar="DPSQL_PROJECT"
)


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -p, --analyst, --project, --epsilon, --confidence and --set NAME=VALUE to a command, which gets them as `chosen`."""

    @wraps(command)
    def run(
        *arguments: Any, policy: Path, analyst: str | None, project: str | None, epsilon: str | None,
        confidence: str | None, settings: tuple[str, ...], **more_options: Any,
    ) -> Any:  # fmt: skip
        chosen = SessionOptions(policy, analyst, project, tuple(settings_of(epsilon, confidence, settings)))
        return command(*arguments, chosen=chosen, **more_options)

    for added in (
        option("--set settings", "Set an option, as SHOW dp.all lists them.", "NAME=VALUE", multiple=True),
        option("--confidence", "The share of cases in which error bars hold, e.g. 0.95.", "SHARE"),
        option("--epsilon", "The epsilon of each query.", "EPSILON"),
        project_option, analyst_option, policy_option(),
    ):  # fmt: skip
        run = added(run)
    return run
