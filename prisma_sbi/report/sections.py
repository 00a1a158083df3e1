"""The sections of a page that tell facts: data, guarantee, warnings, how to repeat."""

from collections.abc import Sequence

import xarray as xr

from prisma_sbi.report.markup import Child, Markup, facts, items, tag
from prisma_sbi.report.page import Section, library_versions
from prisma_sbi.report.sets import SyntheticSet, guarantee_facts, not_covered
from prisma_sbi.report.tables import contents_table, table


def data_section(sets: Sequence[SyntheticSet], *, real: xr.Dataset | None = None) -> Section:
    """What was looked at."""
    named = {each.name: each.traces for each in sets}
    first = next(iter(named.values()))
    shared: dict[str, Child] = {
        "horizon": f"{float(first.attrs.get('horizon_s', first.sizes['time'])):g} s",
        "time step": f"{float(first.attrs.get('time_step_s', 1.0)):g} s",
        "region": _fingerprint(first),
    }
    if real is not None:
        named = {"real": real, **named}
    return Section(
        name="data",
        title="Data",
        children=(facts(shared), contents_table(named)),
    )


def _fingerprint(traces: xr.Dataset) -> Child:
    """Fingerprint of the region, which changes with its roads, heights, vehicles or constants."""
    found = str(traces.attrs.get("region_fingerprint", ""))
    return tag("code", found) if found else "not stated"


def guarantee_section(sets: Sequence[SyntheticSet]) -> Section:
    """What is promised for each set, and what is not."""
    return Section(
        name="guarantee", title="Guarantee", children=tuple(_promise(each) for each in sets)
    )


def _promise(each: SyntheticSet) -> Markup:
    """Promise of one set."""
    if not each.is_private:
        reason = each.statement or "The set states no guarantee."
        return tag("article", tag("h3", each.name), tag("p", reason))
    pairs = guarantee_facts(each.release)
    statement = each.statement.split(" Warning: ")[0]
    return tag(
        "article",
        tag("h3", each.name),
        facts(dict(pairs)) if pairs else None,
        tag("p", statement),
        None if pairs else tag("p", "The record of the release is not beside the traces."),
        tag("h4", "Not covered"),
        items("ul", list(not_covered(each.release))),
        _measured_table(each),
    )


def _measured_table(each: SyntheticSet) -> Markup | None:
    """What the mechanism measured, folded away."""
    rows: list[tuple[Child, ...]] = [
        (" × ".join(item["columns"]), f"{item['stddev']:.3g}", str(item["n_merged"]))
        for item in each.release.get("measured", [])
    ]
    if not rows:
        return None
    heads = ["columns", "noise per cell (trips)", "times measured"]
    return tag(
        "details",
        tag("summary", f"What was measured, with how much noise ({len(rows)})"),
        table(f"Measured marginals of {each.name}", heads, rows),
    )


def warnings_section(sentences: Sequence[str]) -> Section:
    """What a reader must know, or that there is nothing."""
    listed = items("ul", list(dict.fromkeys(sentences)))
    return Section(
        name="warnings", title="Warnings", children=(listed or tag("p", "There are none."),)
    )


def repeat_section(command: str, sets: Sequence[SyntheticSet]) -> Section:
    """The command and the versions."""
    made_with: dict[str, Child] = {}
    libraries = dict.fromkeys(name for each in sets for name in each.release.get("versions", {}))
    for name in libraries:
        versions = [str(each.release.get("versions", {}).get(name, "")) for each in sets]
        made_with[name] = ", ".join(dict.fromkeys(filter(None, versions)))
    return Section(
        name="repeat",
        title="How to repeat",
        children=(
            tag("pre", tag("code", command), tabindex=0) if command else None,
            tag("h3", "Versions at work for this page"),
            facts(library_versions()),
            tag("h3", "Versions that made the releases") if made_with else None,
            facts(made_with) if made_with else None,
        ),
    )
