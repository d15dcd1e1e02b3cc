"""`dpsql help`: the documentation at the terminal."""

from __future__ import annotations

import shutil
import sys

import click

from dpsql.frontends.rendering.terminal import say, say_styled


@click.command()
@click.argument("topic", required=False)
@click.pass_context
def help(context: click.Context, topic: str | None) -> None:
    """Show a page of the documentation, or the list of them; Markdown when standard output is no terminal."""
    from dpsql.frontends.rendering.topics import drawn_topic, topic_list, topic_of, topic_text, topics
    from dpsql.frontends.repl.screen import Screen

    group = context.parent.command if context.parent is not None else None
    if topic is None:
        say(f"{topic_list()}\n`dpsql help TOPIC` shows a page, `dpsql COMMAND --help` the options of a command.")
    elif isinstance(group, click.Group) and topic in group.commands and topic not in topics():
        say(group.commands[topic].get_help(click.Context(group.commands[topic], context.parent, topic)))
    elif sys.stdout.isatty():
        screen = Screen()
        screen.styled_page(drawn_topic(topic_of(topic), shutil.get_terminal_size().columns, styled=screen.styled))
    else:
        say_styled(topic_text(topic_of(topic)))
