"""The command line. Commands import what they need when they run, so that `dpsql --help` answers at once.

Standard output carries data only, everything else goes to standard error. Exit status: 0 done, 1 refusal, 2 usage,
3 budget, 4 fault, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import errno
import gc
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import click
from click.core import ParameterSource

from dpsql.errors.custodian_log import keep_log, unexpected_text
from dpsql.errors.exceptions import Error, Exit
from dpsql.frontends.rendering.terminal import notify
from dpsql.storage.records import dataclass, field

if TYPE_CHECKING:
    from dpsql.ledger.ledger import Ledger
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
    usage: str, help: str, kind: click.ParamType[Any, Any] | tuple[str, ...] | None = None, **about: Any
) -> Callable[[Command], Command]:
    """Return an option. `usage`: its spellings, the name of its argument if that differs, and the word for its value in the help;
    `kind`: the type of its value, or the values that it may have. An option without a word and a kind is a flag."""
    words = usage.split()
    names = [word for word in words if word.startswith("-") or word.islower()]
    if len(words) > len(names):
        about["metavar"] = " ".join(words[len(names) :])
    if kind is not None:
        about["type"] = click.Choice(kind) if isinstance(kind, tuple) else kind
    elif "metavar" not in about:
        about["is_flag"] = True
    return click.option(*names, help=help or None, **about)


def policy_option(required: bool = True) -> Callable[[Command], Command]:
    """Return the option -p POLICY, whose default is the environment's DPSQL_POLICY."""
    return option(
        "-p --policy POLICY", "The policy file (or DPSQL_POLICY).", PATH, envvar="DPSQL_POLICY", required=required
    )


analyst_option = option(
    "--analyst NAME",
    "The analyst whose account is charged as well (or DPSQL_ANALYST); by default the owner asks.",
    envvar="DPSQL_ANALYST",
)


objective_option = option(
    "--objective",
    "Which error to make small: the largest relative error, or the mean error.",
    ("worst", "mean"),
    default="worst",
)
project_option = option(
    "--project NAME", "The project whose account is charged as well (or DPSQL_PROJECT).", envvar="DPSQL_PROJECT"
)


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -p, --analyst, --project, --epsilon, --confidence, --set and --param to a command, which gets them as `chosen`."""

    @wraps(command)
    def run(
        *arguments: Any, policy: Path, analyst: str | None, project: str | None, epsilon: str | None,
        confidence: str | None, settings: tuple[str, ...], parameters: tuple[str, ...], **more_options: Any,
    ) -> Any:  # fmt: skip
        values = dict(pair(parameter, "--param") for parameter in parameters)
        chosen = SessionOptions(policy, analyst, project, settings_of(epsilon, confidence, settings), values)
        return command(*arguments, chosen=chosen, **more_options)

    for added in (
        option("--param parameters NAME=VALUE", "A value that stands as :NAME in the SQL.", multiple=True),
        option("--set settings NAME=VALUE", "Set an option, as SHOW dp.all lists them.", multiple=True),
        option("--confidence SHARE", "The share of cases in which error bars hold, e.g. 0.95."),
        option("--epsilon EPSILON", "The epsilon of each query."),
        project_option, analyst_option, policy_option(),
    ):  # fmt: skip
        run = added(run)
    return run


# --- sessions opened from options, and exit status --------------------------------------------------------------------

STOPPED = 128 + signal.SIGINT


@dataclass(frozen=True)
class SessionOptions:
    """The policy on which a command opens a session, whose session it is, the options set in it, as (name, value), and the values
    of `:name` in its texts."""

    policy: Path
    analyst: str | None
    project: str | None = None
    settings: Sequence[tuple[str, str]] = ()
    values: Mapping[str, str] = field(default_factory=dict)

    def filled(self, texts: Sequence[str]) -> list[str]:
        """Return texts with the values of their `:name`. Raises UsageError for a value that stands in none of them."""
        if not self.values:
            return list(texts)
        from dpsql.sql.lexer import with_values

        filled = [with_values(text, self.values) for text in texts]
        for name in self.values.keys() - set().union(*(names for _, names in filled)):
            raise click.BadParameter(f":{name} does not stand in the SQL", param_hint="--param")
        return [text for text, _ in filled]

    def open(self) -> Session:
        from dpsql.session.session import open_session

        policy = open_policy(self.policy, self.analyst, self.project)
        session = open_session(policy, analyst=self.analyst, project=self.project)
        try:
            for name, value in self.settings:
                session.set_option(name, value)
        except BaseException:
            session.close()
            raise
        return session


def settings_of(epsilon: str | None, confidence: str | None, settings: Iterable[str]) -> list[tuple[str, str]]:
    """Return the options as (name, value). Raises UsageError for --set without "="."""
    options = [(name, value) for name, value in (("epsilon", epsilon), ("confidence", confidence)) if value is not None]
    for setting in settings:
        name, value = pair(setting, "--set")
        options.append((name, value.strip()))
    return options


def pair(text: str, usage: str) -> tuple[str, str]:
    """Return NAME=VALUE as (name, value). Raises UsageError for other texts."""
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=usage)
    return name.strip(), value


def exit_status(error: Error) -> int:
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


@contextmanager
def open_owners_ledger(path: Path, **how: Any) -> Iterator[tuple[Policy, Ledger]]:
    """Open the policy at `path` and its ledger, with the policy's witness unless `how`, arguments of `open_ledger`, says else."""
    from dpsql.ledger import open_ledger
    from dpsql.policy import load_policy

    policy = load_policy(path)
    with open_ledger(policy.ledger_url(), policy.dataset, **{"witness": policy.witness, **how}) as ledger:
        yield policy, ledger


# --- the table of commands --------------------------------------------------------------------------------------------

NO_READER = 128 + signal.SIGPIPE
_OBJECTS_BETWEEN_COLLECTIONS = 1_000_000
_DOCUMENTATION = "pyarrow.vendored.docscrape"

_MODULES = {
    "query": "ask", "run": "ask", "repl": "ask", "explain": "ask", "check": "owner", "init": "owner", "demo": "owner",
    "budget": "budget", "prepare": "owner", "erase": "budget", "fit": "fit", "serve": "serve",
    "user": "serve", "risk": "owner", "export": "ask", "estimate": "ask", "plan": "ask", "plot": "owner",
    "watch": "ask", "help": "owner", "audit": "dpsql_audit.command",
}  # fmt: skip
"""Modules of the commands: in this package, but for the audit, which stands outside of what it audits."""


class _Commands(Mapping[str, click.Command]):
    """All commands by name. A command's module is imported when the command is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        module = _MODULES[name]
        command: click.Command = getattr(import_module(module if "." in module else f"{__name__}.{module}"), name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


@click.group(
    commands=cast(Any, _Commands()),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="dpsql", prog_name="dpsql")
@policy_option(required=False)
@analyst_option
@click.pass_context
def cli(context: click.Context, policy: Path | None, analyst: str | None) -> Any:
    """Private answers to SQL: every answer is differentially private, with error bars and a price.

    Without a command: the prompt (`dpsql repl`), with the options below; a command has its own, after its name. New here?
    `dpsql demo` needs nothing else, and `dpsql help` has the documentation.
    """
    if context.invoked_subcommand is None:
        if policy is None:
            raise click.UsageError("no policy: dpsql -p POLICY starts the prompt, dpsql demo shows what it is", context)
        return context.invoke(cli.commands["repl"], policy=policy, analyst=analyst)
    for option, name in (("-p", "policy"), ("--analyst", "analyst")):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            # Without it the command would read another policy, or ask as the owner.
            raise click.UsageError(
                f"{option} stands after the command: dpsql {context.invoked_subcommand} {option} {context.params[name]}",
                context,
            )
    return None


def main() -> NoReturn:
    _start_quickly(sys.argv[1:])
    status = status_of(sys.argv[1:])
    gc.freeze()  # Python looks for garbage once more when it ends, in everything that was imported
    sys.exit(status)


class _NoDocumentation(ModuleType):
    """pyarrow reads the documentation of its functions with this module to write their own: half the time of their import."""

    @staticmethod
    def NumpyDocString(text: str) -> dict[str, list[str]]:
        return {"Parameters": []}


class _NoPandas:
    """An import hook that hides pandas. pyarrow imports it with its first array, which takes a third of a second; no
    command needs data frames.
    """

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("a command of dpsql does without pandas", name=fullname)


def _start_quickly(arguments: list[str]) -> None:
    """Hide pandas from this process (only the data sets of the demo use its frames) and documentation of pyarrow, and look for
    garbage seldom: imports make many objects and hardly any garbage. A server, which lives long, looks as often as Python
    does."""
    sys.modules.setdefault(_DOCUMENTATION, _NoDocumentation(_DOCUMENTATION))
    if "demo" not in arguments:
        sys.meta_path.insert(0, _NoPandas())
    if "serve" not in arguments:
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)


def status_of(arguments: list[str]) -> int:
    """Run one command line and return its exit status; every error is shown without a traceback."""
    keep_log()
    try:
        status = cli.main(arguments, prog_name="dpsql", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else Exit.DONE
    except click.ClickException as error:
        usage = StringIO()
        error.show(file=usage)  # click quotes arguments as they are
        notify(usage.getvalue(), nl=False)
        return Exit.USAGE
    except Error as error:
        notify(error.text())
        return exit_status(error)
    except (KeyboardInterrupt, click.Abort):
        notify("stopped")
        return STOPPED
    except SystemExit:  # so click ends when standard output is closed
        return NO_READER
    except OSError as error:
        return _unwritten(error)
    except Exception as error:
        notify(unexpected_text(error))
        return Exit.FAULT


def _unwritten(error: OSError) -> int:
    """Discard buffered output: standard output is closed or full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return NO_READER
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        notify(f"cannot write standard output: {error.strerror}; `dpsql budget history` tells what was charged")
    else:
        notify(unexpected_text(error))
    return Exit.FAULT
