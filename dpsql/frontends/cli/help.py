"""`dpsql help`: the documentation at the terminal."""

from __future__ import annotations

import shutil
import sys

import click

from dpsql.frontends.rendering.terminal import say, say_styled


@click.command()
@click.argument("words", nargs=-1)
@click.pass_context
def help(context: click.Context, words: tuple[str, ...]) -> None:
    """Show a page of the documentation, an error by its slug, or where words stand; without words, the list of pages.

    Markdown when standard output is no terminal.
    """
    from dpsql.frontends.rendering.topics import drawn_page, help_page, topic_list, topics
    from dpsql.frontends.repl.screen import Screen

    group, name = context.find_root().command, " ".join(words)
    command = group.get_command(context, name) if isinstance(group, click.Group) else None
    if not words:
        say(
            f"{topic_list()}\n`dpsql help TOPIC` shows a page, `dpsql help SLUG` an error, `dpsql help WORDS` finds words, "
            "`dpsql COMMAND --help` shows the options of a command."
        )
    elif command is not None and name not in topics():
        say(command.get_help(click.Context(command, context.parent, name)))
    elif sys.stdout.isatty():
        screen = Screen()
        columns = shutil.get_terminal_size().columns
        screen.styled_page(drawn_page(help_page(name), columns, styled=screen.styled))
    else:
        say_styled(help_page(name))
