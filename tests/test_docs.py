"""Docs that can fail: generated pages are up to date, and everything a user can write is found in them."""

import json
import re
import tomllib

import click
import pytest
from support.places import ROOT

from dpsql.engine.registry import page as engines_page
from dpsql.errors.exceptions import REGISTER
from dpsql.frontends.cli import cli

COMMANDS = cli.list_commands(click.Context(cli))
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = "\n".join(path.read_text() for path in FILES)
MOST_LINES = 250
"""Lines of a page that is read. The guarantee's sections are cited by number, and the register of errors is looked up by slug."""
MOST_OF_README = 90
"""A screen and a half."""


def test_messages_are_found_by_their_slug() -> None:
    assert list(REGISTER) == sorted(REGISTER)


def test_the_page_of_engines_is_up_to_date() -> None:
    assert (ROOT / "docs" / "engines.md").read_text() == engines_page()


def test_every_command_is_found_in_the_docs() -> None:
    assert not [name for name in COMMANDS if not re.search(rf"dpsql {name}\b", PAGES)]


def test_every_key_of_the_policy_is_found_on_its_page() -> None:
    schema = json.loads((ROOT / "schemas" / "policy.schema.json").read_text())
    keys = set(schema["properties"])
    for shape in schema.get("$defs", {}).values():
        keys |= set(shape.get("properties", {}))
    page = (ROOT / "docs" / "policy.md").read_text()
    assert not [key for key in keys if f"`{key}`" not in page]


def test_every_link_leads_somewhere() -> None:
    broken = []
    for page in [ROOT / "ARCHITECTURE.md", *FILES]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert not broken


def test_every_page_is_in_the_site_and_in_its_index() -> None:
    settings = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    entries = [entry for part in settings["nav"] for entry in part.values()]
    listed = [page for entry in entries for page in ([entry] if isinstance(entry, str) else entry)]
    pages = sorted(path.relative_to(ROOT / "docs").as_posix() for path in FILES[1:])
    assert sorted(listed) == pages and len(listed) == len(set(listed))
    index = (ROOT / "docs" / "index.md").read_text()
    assert [page for page in pages if page != "index.md" and f"]({page})" not in index] == []


def test_prose_of_the_pages_has_lines_of_at_most_100_characters() -> None:
    """Long lines hide in a diff what changed. Tables, code, headings, pictures and pages written by a program are free."""
    long = []
    generated = ("coverage.md", "engines.md")
    for page in FILES:
        text = (
            ""
            if page.name in generated
            else re.sub(r"^ *```.*?^ *```", lambda m: "\n" * m[0].count("\n"), page.read_text(), flags=re.S | re.M)
        )
        for number, line in enumerate(text.splitlines(), 1):
            is_free = line.lstrip().startswith(("|", "#", "!", "<")) or line.startswith("    ")
            if not is_free and len(re.sub(r"`[^`]*`", "``", line)) > 100:
                long.append(f"{page.name}:{number}")
    assert not long


def test_no_line_of_prose_begins_like_a_numbered_list() -> None:
    """Wrapped prose that ends a line with "(b =" and goes on with "1) under" becomes a list where Markdown is shown."""
    lines = [line for line in PAGES.split("\n") if re.match(r"\s*\d+\) ", line)]
    assert not lines


def test_fences_of_code_name_one_language_at_most() -> None:
    """With more words behind the fence the site shows the fence itself, and takes the text after the code for code."""
    assert re.findall(r"^ *```\w+ .*$", PAGES, re.M) == []


def test_no_page_links_out_of_the_documentation() -> None:
    """Neither the wheel nor the site has the rest of the repository. Tables of measurements are a folder below the pages."""
    for page in FILES[1:]:
        out = r"\]\(\.\./\.\./" if page.parent.name == "evidence" else r"\]\(\.\./"
        assert not re.search(out, page.read_text()), page.name


def test_pages_that_are_read_are_short() -> None:
    """Tables of measurements stand in docs/evidence/."""
    free = ("privacy.md", "refusals.md")
    pages = [page for page in FILES[1:] if page.parent.name != "evidence" and page.name not in free]
    lines = {page.name: len(page.read_text().splitlines()) for page in pages}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
    assert len(FILES[0].read_text().splitlines()) <= MOST_OF_README


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does(command: str) -> None:
    found = cli.get_command(click.Context(cli), command)
    assert isinstance(found, click.Command) and found.help
