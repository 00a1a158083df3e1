"""Text in HTML comes out as it went in, and never becomes an element."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prisma_sbi.report.markup import Markup, facts, items, join, tag, text
from prisma_sbi.report.tables import number
from tests.report.conftest import WILD, Reader

# A browser reads carriage returns and NUL as something else; everything else must survive.
anything = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=40)


@given(anything, anything)
def test_any_text_survives_as_content_and_as_attribute(content, value):
    reader = Reader(tag("p", content, title=value))
    assert reader.faults == []
    assert reader.elements == [("p", {"title": value})]
    assert "".join(found for _, found in reader.texts) == content


def test_markup_is_not_escaped_twice_and_plain_text_always():
    assert tag("p", tag("b", "<"), "<", None, 3) == "<p><b>&lt;</b>&lt;3</p>"
    assert text(Markup("<br>")) == "<br>"
    assert join("a", tag("br")) == "a<br>"
    assert "<script" not in tag("p", WILD)
    assert isinstance(join(WILD), Markup)
    # Adding a plain text to markup gives a plain text, which is escaped again.
    assert tag("p", Markup("<b>") + "<i>") == "<p>&lt;b&gt;&lt;i&gt;</p>"


def test_attributes_are_named_for_python():
    assert tag("th", "x", class_="a", aria_label='"', scope=None) == (
        '<th class="a" aria-label="&quot;">x</th>'
    )
    assert tag("meta", name="viewport") == '<meta name="viewport">'


def test_lists_of_nothing_are_nothing():
    assert items("ul", []) is None
    assert items("ul", ["<"]) == "<ul><li>&lt;</li></ul>"
    assert facts({"a": "<"}) == "<dl><div><dt>a</dt><dd>&lt;</dd></div></dl>"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.00"),
        (0.64812, "0.648"),
        (2.0, "2.00"),
        (18.66, "18.7"),
        (1234.4, "1,234"),
        (0.005816, "0.00582"),
        (-1.339, "−1.34"),
        (1e-7, "1.00e−07"),
        (float("nan"), "not defined"),
        (float("inf"), "∞"),
    ],
)
def test_numbers_have_three_digits(value, shown):
    assert number(value) == shown
