"""The command line. Commands import what they need when they run, so that `dpsql --help` answers at once.

Standard output carries data only, everything else goes to standard error. Exit status: 0 done, 1 refusal, 2 usage,
3 budget, 4 fault, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn, cast

import click
from click.core import ParameterSource

from dpsql.errors.custodian_log import keep_log, unexpected_text
from dpsql.errors.exceptions import Error, Exit
from dpsql.frontends.cli.options import STOPPED, analyst_option, exit_status, policy_option
from dpsql.frontends.rendering.terminal import say

NO_READER = 128 + signal.SIGPIPE
_OBJECTS_BETWEEN_COLLECTIONS = 1_000_000


_MODULES = {
    "query": "ask", "run": "ask", "repl": "ask", "explain": "ask", "check": "owner", "init": "owner", "demo": "owner",
    "budget": "budget", "migrate": "budget", "prepare": "owner", "erase": "erase", "fit": "fit", "serve": "serve",
    "user": "serve", "risk": "owner", "export": "export", "estimate": "export", "plan": "ask", "plot": "owner",
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
def cli(context: click.Context, policy: Path | None, analyst: str | None) -> None:
    """Private answers to SQL: every answer is differentially private, with error bars and a price.

    Without a command: the prompt (`dpsql repl`). New here? `dpsql demo` needs nothing else, and `dpsql help` has the
    documentation.
    """
    if context.invoked_subcommand is None:
        if policy is None:
            raise click.UsageError("no policy: dpsql -p POLICY starts the prompt, dpsql demo shows what it is", context)
        context.invoke(cli.commands["repl"], policy=policy, analyst=analyst)
        return
    for option, name in (("-p", "policy"), ("--analyst", "analyst")):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            # Without it the command would read another policy, or ask as the owner.
            raise click.UsageError(
                f"{option} stands after the command: dpsql {context.invoked_subcommand} {option} {context.params[name]}",
                context,
            )


def main() -> NoReturn:
    """Run the command `dpsql`, and end the process with its status."""
    _start_quickly(sys.argv[1:])
    status = status_of(sys.argv[1:])
    gc.freeze()  # Python looks for garbage once more when it ends, in everything that was imported
    sys.exit(status)


class _NoPandas:
    """An import hook that hides pandas. pyarrow imports it with its first array, which takes a third of a second; no
    command needs data frames.
    """

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas, as an import hook."""
        if fullname == "pandas":
            raise ModuleNotFoundError("a command of dpsql does without pandas", name=fullname)


def _start_quickly(arguments: list[str]) -> None:
    """Hide pandas from this process (only the data sets of the demo use its frames), and look for garbage seldom: imports make
    many objects and hardly any garbage. A server, which lives long, looks as often as Python does."""
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
        say(usage.getvalue(), err=True, nl=False)
        return Exit.USAGE
    except Error as error:
        say(error.text(), err=True)
        return exit_status(error)
    except (KeyboardInterrupt, click.Abort):
        say("stopped", err=True)
        return STOPPED
    except SystemExit:  # so click ends when standard output is closed
        return NO_READER
    except OSError as error:
        return _unwritten(error)
    except Exception as error:
        say(unexpected_text(error), err=True)
        return Exit.FAULT


def _unwritten(error: OSError) -> int:
    """Discard buffered output: standard output is closed or full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return NO_READER
    say(unexpected_text(error), err=True)
    return Exit.FAULT
