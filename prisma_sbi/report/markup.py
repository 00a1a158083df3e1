"""A small builder of HTML in which every text is escaped unless it was built here."""

from html import escape

_VOID = frozenset({"br", "img", "link", "meta"})


class Markup(str):
    """HTML that is safe to insert as it is."""

    __slots__ = ()


type Child = Markup | str | int | None
"""What may stand inside an element: markup, text to escape, or nothing."""


def text(content: object) -> Markup:
    """Escape a text; markup stays as it is."""
    if isinstance(content, Markup):
        return content
    return Markup(escape(str(content)))


def tag(name: str, /, *children: Child, **attributes: str | int | None) -> Markup:
    """Build an element.

    Parameters
    ----------
    name
        Of the element.
    *children
        In order. Plain texts are escaped, markup is inserted, ``None`` is left out.
    **attributes
        Values are escaped; ``None`` leaves the attribute out. Underscores in names become
        hyphens and one at the end disappears, so ``class_`` and ``aria_label`` can be given.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Put children behind each other."""
    return Markup("".join(text(child) for child in children if child is not None))


def items(kind: str, sentences: list[Child], **attributes: str | int | None) -> Markup | None:
    """A list of kind ``ul`` or ``ol``, or nothing where it would be empty."""
    if not sentences:
        return None
    return tag(kind, *(tag("li", sentence) for sentence in sentences), **attributes)


def facts(pairs: dict[str, Child]) -> Markup:
    """Names and what they are, as a list of definitions."""
    return tag(
        "dl",
        *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs.items()),
    )


def scroll_box(content: Markup, label: str, **attributes: str | int | None) -> Markup:
    """A box that scrolls sideways by itself, also with the keyboard."""
    return tag("div", content, role="region", aria_label=label, tabindex=0, **attributes)
