"""Every writer of the package is known: text reaches a terminal, a page, a picture or JSON through `dpsql.media` alone."""

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from support.package_modules import FILES, PACKAGE, name, nodes_of

TERMINAL = "frontends/rendering/terminal.py"
TAG = re.compile(r"(?<!\?P)<(!--|/?[a-zA-Z][\w-]*(\s[^<>]*)?/?>|!doctype)", re.IGNORECASE)
NO_MARKUP = {"sql/": "operators and placeholders of SQL", "ledger/witness.py": "the name of a thread"}
PRINTS = {
    "frontends/pgwire/catalog/policy_rows.py": "a script of developers",
    "engine/registry.py": "a script of developers",
    "policy/__main__.py": "a script of developers",
    "dpsql_audit/verify_export.py": "an auditor's program of its own, which imports nothing from dpsql",
}
STREAMS = {"isatty", "encoding", "flush", "fileno", "buffer"}
"""Parts of a stream that write no text of ours; `buffer` takes Arrow and Parquet, which have no text for a terminal."""
CONSTANTS = {"scripts", "script_json(described)"}
"""Arguments of `source_markup` that are no constants of the source: the library's scripts, and a value as JSON for a script."""


def calls(file: Path) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of a file with the text of what is called."""
    return ((ast.unparse(node.func), node) for node in nodes_of(file, ast.Call))


def constants(file: Path) -> dict[str, ast.Constant]:
    """Return the texts that a module gives names to."""
    return {
        node.targets[0].id: node.value
        for node in nodes_of(file, ast.Assign)
        if isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant)
    }


def templates(file: Path) -> Iterator[ast.Constant]:
    """Yield the templates of a file. A template that is no constant of the source is an error."""
    named = constants(file)
    for called, node in calls(file):
        if called != "markup":
            continue
        first = node.args[0]
        for part in [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]:
            template = named.get(part.id) if isinstance(part, ast.Name) else part
            assert isinstance(template, ast.Constant), f"{name(file)}:{node.lineno}: {ast.unparse(part)}"
            yield template


def docstrings(file: Path) -> set[int]:
    """Return the identities of constants that are statements of their own."""
    return {id(node.value) for node in nodes_of(file, ast.Expr) if isinstance(node.value, ast.Constant)}


def stray_tags(file: Path) -> list[str]:
    """Return the tags of a file that are not in templates."""
    known = {id(node) for node in templates(file)} | docstrings(file)
    known |= {id(node.args[0]) for called, node in calls(file) if called == "source_markup"}
    return [
        f"{name(file)}:{node.lineno}: {node.value[:60]!r}"
        for node in nodes_of(file, ast.Constant)
        if isinstance(node.value, str) and TAG.search(node.value) and id(node) not in known
    ]


def test_tags_are_in_templates_alone() -> None:
    wrong = [tag for file in FILES if not name(file).startswith(tuple(NO_MARKUP)) for tag in stray_tags(file)]
    assert wrong == [], "write HTML and SVG with dpsql.media.text"


def test_only_the_media_escape_and_make_markup() -> None:
    for file in FILES:
        imported = {
            alias.name for node in nodes_of(file, ast.ImportFrom) if node.module == "html" for alias in node.names
        }
        made = [called for called, _ in calls(file) if called == "Markup"]
        assert name(file) == "media/text.py" or (imported, made) == (set(), []), file
        for called, node in calls(file):
            if called == "source_markup":
                given = ast.unparse(node.args[0])
                assert isinstance(node.args[0], ast.Constant) or given in CONSTANTS, f"{name(file)}: {given}"


class Slots(HTMLParser):
    """The places of a template that are filled."""

    def __init__(self, template: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self._open = ""
        numbers = {str(number): "two words" for number in range(20)}
        fields = {field: "two words" for field in re.findall(r"(?<!{){(\w+)}(?!})", template) if not field.isdigit()}
        self.feed(template.format(*numbers.values(), **fields))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        names = [attribute for attribute, _ in attrs]
        filled = [attribute for attribute, value in attrs if value is not None and "two words" in value]
        self.wrong += [attribute for attribute in names if attribute in ("two", "words")]
        self.wrong += [attribute for attribute in filled if attribute == "href" or attribute.startswith("on")]
        self.wrong += [
            f"src={value}"
            for attribute, value in attrs
            if attribute == "src" and not str(value).startswith("data:image/")
        ]

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in ("script", "style") and "two words" in data:
            self.wrong.append(self._open)


def test_placeholders_are_text_or_quoted_attributes() -> None:
    filled_by_constants = {"script", "style"}  # `CONSTANTS` and style sheets, checked above
    for file in FILES:
        for node in templates(file):
            wrong = set(Slots(node.value).wrong) - (filled_by_constants if "<style>" in node.value else set())
            assert wrong == set(), f"{name(file)}:{node.lineno}"


def test_the_rule_of_placeholders_finds_what_is_wrong() -> None:
    """Unquoted attributes, code and addresses are found, so that the test above can fail."""
    for template in ("<p class={}>x</p>", '<p onclick="{}">', '<a href="{}">', "<script>{}</script>", '<img src="{}">'):
        assert Slots(template).wrong, template


def prints(file: Path) -> list[str]:
    """Return where a file writes to a terminal, or hands on the stream of one."""
    writers = {"print", "click.echo", "click.secho", "click.echo_via_pager", "sys.stdout.write", "sys.stderr.write"}
    wrong = [f"{name(file)}:{node.lineno}: {called}" for called, node in calls(file) if called in writers]
    streams = {id(node) for node in nodes_of(file, ast.Attribute) if ast.unparse(node) in ("sys.stdout", "sys.stderr")}
    parts = {id(node.value) for node in nodes_of(file, ast.Attribute) if node.attr in STREAMS}
    handled = {id(node.args[0]) for called, node in calls(file) if called == "getattr"}
    return wrong + [f"{name(file)}: sys.stdout or sys.stderr"] * len(streams - parts - handled)


def test_a_terminal_is_written_to_in_one_place() -> None:
    wrong = [place for file in FILES if name(file) not in {TERMINAL, *PRINTS} for place in prints(file)]
    assert wrong == [], f"use {TERMINAL}"
    assert prints(PACKAGE / TERMINAL), "the rule finds what it looks for"


def test_rich_writes_what_was_cleaned() -> None:
    """Consoles of rich draw spinners, bars and pages of documentation. `say` and `done` clean what they are given."""
    users = {name(file) for file in FILES if any(called == "Console" for called, _ in calls(file))}
    assert users == {"frontends/cli/owner.py", "frontends/rendering/terminal.py"}


def test_json_for_a_door_is_written_by_the_media() -> None:
    """`ensure_ascii=False` leaves C1 controls, marks of direction and lone surrogates as they are. The table of letters that a
    PostgreSQL server searches is a constant of its statement."""
    wrong = [
        f"{name(file)}:{node.lineno}"
        for file in FILES
        for called, node in calls(file)
        if called in ("json.dumps", "json.dump")
        and any(option.arg == "ensure_ascii" and not getattr(option.value, "value", True) for option in node.keywords)
    ]
    allowed = {"media/text.py", "exports/rows_file.py", "engine/postgresql/dialect.py"}
    assert wrong and {place.partition(":")[0] for place in wrong} <= allowed


def test_the_library_that_draws_is_loaded_by_its_process_alone() -> None:
    users = {
        name(file)
        for file in FILES
        for node in nodes_of(file, ast.Import, ast.ImportFrom)
        if any(alias.name.startswith("vl_convert") for alias in node.names)
        or "vl_convert" in (getattr(node, "module", "") or "")
    }
    assert users == {"frontends/rendering/picture_process.py"}
