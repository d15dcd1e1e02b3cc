"""What several commands share: sessions opened from their options, exit status, files that they read."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.errors.exceptions import Error

if TYPE_CHECKING:
    from dpsql.policy import Policy
    from dpsql.session.session import Session

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


def open_policy(place: Path, analyst: str | None, project: str | None = None) -> Policy:
    """Return the policy at `place`. Raises UsageError for an analyst or a project that it does not name."""
    from dpsql.errors.suggestions import did_you_mean
    from dpsql.policy import load_policy

    policy = load_policy(place)
    for kind, name, named in (("analyst", analyst, policy.analysts), ("project", project, policy.projects)):
        if name is not None and name not in named:
            names = ", ".join(named) or "none"
            problem = f"the policy names no {kind} {name!r}{did_you_mean(name, named)} (known: {names})"
            raise click.BadParameter(problem, param_hint=f"--{kind}")
    return policy


def open_session_from_options(
    place: Path, analyst: str | None, settings: Iterable[tuple[str, str]] = (), project: str | None = None
) -> Session:
    """Open a session on the policy at `place` with its options set."""
    from dpsql.session.opening import open_session

    session = open_session(open_policy(place, analyst, project), analyst=analyst, project=project)
    try:
        for name, value in settings:
            session.set_option(name, value)
    except BaseException:
        session.close()
        raise
    return session
