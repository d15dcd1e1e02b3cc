"""`dpsql help`: the installed package shows every page of docs/, and hints name existing pages."""

import re
from collections.abc import Callable

import click
import pytest
from support.clinic_folder import Outcome
from support.places import ROOT

from dpsql.errors.exceptions import REGISTER, Error
from dpsql.frontends.cli import cli
from dpsql.frontends.rendering.terminal import drawn_page, help_page, topics

Run = Callable[..., Outcome]
PAGES = sorted(page.stem for page in (ROOT / "docs").glob("*.md"))


def test_every_page_of_the_documentation_is_listed_with_its_title(dpsql: Run) -> None:
    outcome = dpsql("help")
    assert outcome.status == 0 and outcome.err == ""
    assert [line.split()[0] for line in outcome.out.splitlines() if line.startswith("  ")] == PAGES
    assert "sql SQL that is answered" in [" ".join(line.split()) for line in outcome.out.splitlines()]


def test_a_pipe_gets_the_page_as_it_is_written(dpsql: Run) -> None:
    assert dpsql("help", "reuse").out == (ROOT / "docs" / "reuse.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["first_hour", "FIRST-HOUR", "docs/first_hour.md", "first_hour.md"])
def test_a_topic_is_found_as_people_write_it(name: str) -> None:
    assert help_page(name) == help_page("first_hour")


@pytest.mark.parametrize("name", ["", "../README", "/etc/passwd", "sql/..", "glosary\n", "x" * 5000])
def test_what_is_no_page_is_refused(name: str) -> None:
    with pytest.raises(Error) as refused:
        help_page(name)
    assert refused.value.slug == "topic_unknown"


def test_every_error_is_shown_by_its_slug() -> None:
    for slug, entry in REGISTER.items():
        page = help_page(slug)
        assert entry.sqlstate in page and entry.sentence in page and entry.hint in page, slug


def test_a_word_of_the_glossary_is_explained(dpsql: Run) -> None:
    entries = re.findall(r"^- \*\*([\w, ]+)\*\*: (.{20,}?)$", (ROOT / "docs" / "glossary.md").read_text(), re.M)
    assert len(entries) > 30
    for term, words in [entry for entry in entries if entry[0].lower() not in PAGES]:
        lines = dpsql("help", term.replace(",", "")).out.splitlines()
        entry = f"- `dpsql help glossary`, {term}: {words[:20]}"
        assert [line for line in lines[:8] if line.startswith(entry)], (term, lines)


def test_words_are_found_in_sections_and_errors(dpsql: Run) -> None:
    out = dpsql("help", "contribution", "BOUNDS").out
    assert "- `dpsql help glossary`, Contribution bounds: " in out and "- `group_bounds`: " in out
    assert "- `alias_count`: the alias names {got} columns, there are {want}\n" in dpsql("help", "42P10").out


def test_every_page_that_a_message_cites_can_be_shown_by_the_installed_package() -> None:
    texts = [f"{entry.sentence} {entry.hint}" for entry in REGISTER.values()]
    context = click.Context(cli)
    commands = [command for name in cli.list_commands(context) if (command := cli.get_command(context, name))]
    texts += [command.help or "" for command in commands]
    texts += [getattr(option, "help", "") or "" for command in commands for option in command.params]
    cited = {topic for text in texts for topic in re.findall(r"dpsql help (\w+)", text)}
    assert cited >= {"sql", "engines"} and cited <= set(topics())
    assert not [text for text in texts if "docs/" in text], "pip does not install docs/"


@pytest.mark.parametrize("topic", PAGES)
def test_no_link_of_a_page_leads_nowhere_at_a_terminal(topic: str) -> None:
    drawn = drawn_page(help_page(topic), 90, styled=False)
    assert "\x1b" not in drawn and max(map(len, drawn.splitlines())) <= 90
    assert set(re.findall(r"\(dpsql help (\w+)\)", drawn)) <= set(topics())
    assert not re.findall(r"\]\([\w.#]+\)", drawn)
