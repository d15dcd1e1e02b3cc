"""Options of commands, and the sessions that they open."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpsql.errors.exceptions import Error

if TYPE_CHECKING:
    from dpsql.policy import Policy
    from dpsql.session.session import Session


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


# --- sessions opened from options, and exit status --------------------------------------------------------------------


STOPPED = 128 + signal.SIGINT


@dataclass(frozen=True)
class SessionOptions:
    """The policy on which a command opens a session, whose session it is, and the options set in it, as (name, value)."""

    policy: Path
    analyst: str | None
    project: str | None
    settings: tuple[tuple[str, str], ...]

    def open(self) -> Session:
        """Open the session. Raises what `open_session_from_options` does."""
        return open_session_from_options(self.policy, self.analyst, self.settings, self.project)


def settings_of(epsilon: str | None, confidence: str | None, settings: Iterable[str]) -> list[tuple[str, str]]:
    """Return the options as (name, value). Raises UsageError for --set without "="."""
    options = [(name, value) for name, value in (("epsilon", epsilon), ("confidence", confidence)) if value is not None]
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise click.BadParameter(f"{setting!r} is not NAME=VALUE", param_hint="--set")
        options.append((name.strip(), value.strip()))
    return options


def exit_status(error: Error) -> int:
    """Return the exit status of a command that ends with this error."""
    return STOPPED if error.slug == "stopped" else int(error.exit_status)


def open_policy(path: Path, analyst: str | None, project: str | None = None) -> Policy:
    """Return the policy at `path`. Raises UsageError for an analyst or a project that it does not name."""
    from dpsql.errors.exceptions import did_you_mean
    from dpsql.policy import load_policy

    policy = load_policy(path)
    for kind, name, named in (("analyst", analyst, policy.analysts), ("project", project, policy.projects)):
        if name is not None and name not in named:
            names = ", ".join(named) or "none"
            problem = f"the policy names no {kind} {name!r}{did_you_mean(name, named)} (known: {names})"
            raise click.BadParameter(problem, param_hint=f"--{kind}")
    return policy


def open_session_from_options(
    path: Path, analyst: str | None, settings: Iterable[tuple[str, str]] = (), project: str | None = None
) -> Session:
    """Open a session on the policy at `path` with its options set."""
    from dpsql.session.opening import open_session

    session = open_session(open_policy(path, analyst, project), analyst=analyst, project=project)
    try:
        for name, value in settings:
            session.set_option(name, value)
    except BaseException:
        session.close()
        raise
    return session
