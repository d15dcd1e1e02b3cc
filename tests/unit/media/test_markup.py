"""What is filled into a template is text, whatever it contains."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from dpsql.media.text import Markup, joined, marked_up, markup


class Parsed(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(st.one_of(st.characters(), st.sampled_from("<>&\"'!-/\x1b\x00 =")), max_size=40))
def test_a_value_stays_a_value(text: str) -> None:
    page = Parsed(markup('<p title="{0}">{0}</p>', text))
    assert page.tags == [("p", [("title", marked_up(text))])]
    assert page.text == marked_up(text)


def test_markup_is_not_escaped_again() -> None:
    row = markup("<td>{}</td>", "a<b")
    assert markup("<tr>{}</tr>", row) == "<tr><td>a&lt;b</td></tr>"
    assert joined(["<", row], markup("<br>")) == "&lt;<br><td>a&lt;b</td>"
    assert isinstance(joined([]), Markup)


def test_a_part_of_markup_is_text_again() -> None:
    """Slices and sums of markup are plain texts, which are escaped where they are used."""
    assert markup("<p>{}</p>", markup("<b>x</b>")[:3]) == "<p>&lt;b&gt;</p>"
    assert markup("<p>{}</p>", markup("<b>") + "<i>") == "<p>&lt;b&gt;&lt;i&gt;</p>"
