"""The frame of a page: head, style, label, contents, sections."""

from dataclasses import dataclass
from importlib import resources
from importlib.metadata import PackageNotFoundError, version

from prisma_sbi.report.markup import Child, Markup, items, join, tag

GENERATOR = "prisma_sbi report"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Browsers then run no script and fetch nothing, whatever a page holds."""
_LIBRARIES = ("prisma-sbi", "jax", "numpy", "scipy", "xarray", "matplotlib")


@dataclass(frozen=True, kw_only=True)
class Label:
    """Who may read a page, and why.

    Attributes
    ----------
    name
        Shown above the title, and the class of the body.
    sentences
        What the label means.
    """

    name: str
    sentences: tuple[str, ...]


PRIVATE = Label(
    name="private",
    sentences=(
        "This page compares with recorded trips. Its numbers, pictures and counts come from them "
        "and are covered by no guarantee: do not publish it.",
    ),
)
RELEASED = Label(
    name="released",
    sentences=(
        "This page was made from synthetic sets and the records of their releases alone. It tells "
        "no more about a recorded trip than they do: what they guarantee holds for it too.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a heading; ``name`` is its anchor."""

    name: str
    title: str
    children: tuple[Child, ...]


def page(*, title: str, lead: str, label: Label, sections: list[Section]) -> str:
    """A whole page as text.

    Parameters
    ----------
    title, lead
        What it is about, in words and in a sentence.
    label
        Who may read it.
    sections
        In order; empty ones are left out.
    """
    shown = [each for each in sections if any(child is not None for child in each.children)]
    style = resources.files("prisma_sbi.report").joinpath("page.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=GENERATOR),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{label.name.capitalize()}: {title}"),
        tag("style", Markup(style)),
    )
    links: list[Child] = [tag("a", each.title, href=f"#{each.name}") for each in shown]
    body = tag(
        "body",
        tag(
            "header",
            tag("div", label.name, class_="label"),
            tag("h1", title),
            tag("p", lead, class_="lead"),
            tag("div", *(tag("p", each) for each in label.sentences), class_="notice", role="note"),
            tag("nav", items("ul", links), aria_label="Sections"),
        ),
        tag("main", *(_section(each) for each in shown)),
        tag("footer", f"Made by prisma_sbi {_version('prisma-sbi')}. This page is {label.name}."),
        class_=label.name,
    )
    return join(Markup("<!doctype html>\n"), tag("html", head, body, lang="en"), "\n")


def _section(section: Section) -> Markup:
    """One section under its heading."""
    return tag(
        "section",
        tag("h2", section.title, id=f"{section.name}-title"),
        *section.children,
        id=section.name,
        aria_labelledby=f"{section.name}-title",
    )


def library_versions() -> dict[str, Child]:
    """Versions of the libraries at work."""
    return {name: _version(name) for name in _LIBRARIES if _version(name)}


def _version(name: str) -> str:
    """Installed version, or empty."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
