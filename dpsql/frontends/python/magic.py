"""`%load_ext dpsql` for IPython and Jupyter: `%dpsql POLICY` opens a connection, `%%dpsql` asks the text of the cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.python.dbapi import Connection, connect
from dpsql.frontends.rendering.terminal import say, say_line

if TYPE_CHECKING:
    from dpsql.release.release import Release

USAGE = "%dpsql POLICY.yaml [ANALYST] opens a connection, %%dpsql [NAME] asks the cell and keeps the answer as NAME"


class Magic:
    """The connection of one notebook, and the commands on its lines and cells."""

    def __init__(self, shell: Any) -> None:
        """`shell`: IPython's interactive shell, among whose variables answers are stored."""
        self.shell = shell
        self.connection: Connection | None = None

    def __call__(self, line: str, cell: str | None = None) -> Release | None:
        """Open a connection (`%dpsql`) or ask a cell (`%%dpsql`); print an error as its text, without a traceback."""
        try:
            if cell is not None:
                return self._ask(line.strip(), cell)
            self._open(line)
        except Error as error:
            say(error.text())
        return None

    def _open(self, line: str) -> None:
        policy, *analyst = line.split()[:2] or [""]
        if not policy:
            raise refuse("command_argument", command="%dpsql", problem="lacks a policy", hint=USAGE)
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        self.connection = connect(policy, *analyst)
        say_line(f"{self.connection.session.policy.dataset}: {', '.join(self.connection.session.policy.visible)}")

    def _ask(self, name: str, cell: str) -> Release:
        if self.connection is None:
            raise refuse("command_argument", command="%%dpsql", problem="has no connection yet", hint=USAGE)
        if name and not name.isidentifier():
            raise refuse(
                "command_argument", command="%%dpsql", problem=f"keeps no answer under the name {name}", hint=USAGE
            )
        release = self.connection.execute(cell).release
        if name:
            self.shell.user_ns[name] = release
        return release


def load_ipython_extension(shell: Any) -> None:
    """Register `%dpsql` and `%%dpsql`; called by `%load_ext dpsql`."""
    shell.register_magic_function(Magic(shell), magic_kind="line_cell", magic_name="dpsql")
