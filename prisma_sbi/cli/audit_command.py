"""`prisma audit`: attacks on a mechanism, and on released traces."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from prisma_sbi import _validate
from prisma_sbi._files import replacing
from prisma_sbi.audit import (
    AuditResult,
    audit_noise,
    audit_selection,
    audit_synthesis,
    audit_traces,
)
from prisma_sbi.cli.console import note, print_json, print_table, progress_bar, tracker, wrote
from prisma_sbi.cli.options import Json
from prisma_sbi.descriptors import DESCRIPTORS, make_descriptor_table
from prisma_sbi.encoding import descriptor_table, load_fit
from prisma_sbi.evaluation import Nearness, nearness
from prisma_sbi.privacy import SynthesisSettings, load_release, rho_from_epsilon_delta
from prisma_sbi.region import Region, demo_region, load_region
from prisma_sbi.simulator.fleet import simulate_fleet
from prisma_sbi.telemetry import load_traces

LEVELS = ("noise", "selection", "table", "traces")
REFUTED = 3
"""Exit code if a mechanism was found to reveal more than it claims."""
Move = Callable[[int, int | None], None]


def audit(
    region: Annotated[
        Path | None,
        typer.Option("--region", help="Folder of the region.", show_default="the demo city"),
    ] = None,
    level: Annotated[
        str,
        typer.Option(help="noise, selection, table or traces; several with commas, or none."),
    ] = "noise,selection,table",
    fit: Annotated[
        Path | None,
        typer.Option(
            "--fit",
            help="At the level table, attack the table of this fit; the report is then private.",
            show_default="simulated trips",
        ),
    ] = None,
    trips: Annotated[int, typer.Option(help="Simulated trips to attack.", min=8)] = 200,
    runs: Annotated[
        int, typer.Option(help="Releases with the canary, and as many without.", min=4)
    ] = 200,
    draws: Annotated[
        int, typer.Option(help="The same for noise and selection, which are quick.", min=4)
    ] = 5_000,
    mechanism: Annotated[str, typer.Option(help="aim, mst or independent.")] = "aim",
    epsilon: Annotated[float, typer.Option(help="Claimed privacy budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Claimed probability of failure.")] = 1e-5,
    table: Annotated[str, typer.Option(help="route or published.")] = "route",
    like: Annotated[
        Path | None,
        typer.Option(
            "--like", help="Audit the settings of this release, in place of the four above."
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="That a bound holds.")] = 0.95,
    members: Annotated[
        Path | None, typer.Option(help="Traces that a release was made from; private.")
    ] = None,
    held_out: Annotated[
        Path | None, typer.Option("--held-out", help="Traces it was not made from; private.")
    ] = None,
    released: Annotated[Path | None, typer.Option(help="Traces that were released.")] = None,
    seed: Annotated[int, typer.Option(help="Of simulated trips; noise has no seed.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="JSON file for the report.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Attack a mechanism and compare what leaks with what is claimed.

    Two tables that differ by one record, a canary far from all others, are
    released again and again; an attacker guesses from each release whether the
    canary was in. How often the guess is right gives a lower bound on epsilon.
    A bound above the claim proves a fault. One below it proves nothing: another
    attack may do better.

    With --members, --held-out and --released it also measures whether released
    traces lie nearer to the trips they were made from than to others.

    Exit code 3 if a claim is refuted.
    """
    levels = _levels(level)
    settings = SynthesisSettings(mechanism=mechanism, epsilon=epsilon, delta=delta, table=table)
    if like is not None:
        settings = _settings_of(like, region)
    rho_from_epsilon_delta(settings.epsilon, settings.delta)
    _validate.in_range(0.5, 1.0, confidence=confidence)
    compared = _compared(members, held_out, released)
    if not levels and not compared:
        raise ValueError("Expected at least one level, or traces to compare; got neither.")
    if fit is not None and levels != ["table"]:
        raise ValueError(
            f"Expected --level table with --fit; got {level!r}. The other levels take no fit."
        )
    if output is not None and output.is_dir():
        raise IsADirectoryError(f"Expected a file for the report; got the folder {output}.")
    plan = _Plan(
        settings=settings,
        region=region,
        fit=fit,
        n_trips=trips,
        n_runs=runs,
        n_draws=draws,
        confidence=confidence,
        seed=seed,
    )
    with progress_bar() as bars:
        found = [plan.run(name, tracker(bars, name)) for name in levels]
    near = nearness(*(load_traces(path) for path in compared), seed=seed) if compared else None
    report = {
        "settings": settings.to_dict(),
        "audits": [each.to_dict() for each in found],
        "nearness": near.to_dict() if near is not None else None,
    }
    if output is not None:
        with replacing(output) as partial:
            partial.write_text(json.dumps(report, indent=1))
    _show(found, near, report, as_json=as_json)
    if output is not None:
        wrote(output)
    if any(each.caught for each in found):
        raise typer.Exit(REFUTED)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Everything that the attacks share."""

    settings: SynthesisSettings
    region: Path | None
    fit: Path | None
    n_trips: int
    n_runs: int
    n_draws: int
    confidence: float
    seed: int

    def run(self, level: str, move: Move) -> AuditResult:
        """One attack."""
        if level == "noise":
            return audit_noise(n_runs=self.n_draws, confidence=self.confidence, progress=move)
        if level == "selection":
            return audit_selection(n_runs=self.n_draws, confidence=self.confidence, progress=move)
        public = self._public()
        if level == "traces":
            return audit_traces(
                public,
                simulate_fleet(public, self.n_trips, seed=self.seed),
                self.settings,
                n_runs=self.n_runs,
                confidence=self.confidence,
                progress=move,
            )
        return audit_synthesis(
            public,
            self._table(public),
            self.settings,
            n_runs=self.n_runs,
            confidence=self.confidence,
            progress=move,
        )

    def _public(self) -> Region:
        """The region, by default the embedded one."""
        return demo_region() if self.region is None else load_region(self.region)

    def _table(self, public: Region) -> Any:
        """Descriptors of a fit, or of a simulated fleet, which nobody has to protect."""
        if self.fit is not None:
            return descriptor_table(public, load_fit(self.fit))
        fleet = simulate_fleet(public, self.n_trips, seed=self.seed)
        columns = {name: fleet[name].values for name in DESCRIPTORS}
        return make_descriptor_table(columns, region_fingerprint=public.fingerprint)


def _settings_of(release: Path, region: Path | None) -> SynthesisSettings:
    """Settings of a release, for a table of any size."""
    if region is None:
        raise ValueError("Expected the region of the release with --like; got none. Add --region.")
    settings = load_release(release, load_region(region)).settings
    is_private_count = isinstance(settings.n_rows, str)
    return settings if is_private_count else replace(settings, n_rows=None)


def _levels(text: str) -> list[str]:
    """Levels in the order of the text."""
    names = [name.strip() for name in text.split(",") if name.strip() not in ("", "none")]
    for name in names:
        _validate.one_of(LEVELS, level=name)
    return names


def _compared(*paths: Path | None) -> list[Path]:
    """All three sets of traces, or none."""
    given = [path for path in paths if path is not None]
    if len(given) not in (0, 3):
        raise ValueError(
            f"Expected all of --members, --held-out and --released, or none; got {len(given)}. "
            "Held-out trips show how near a release comes by chance."
        )
    return given


def _show(
    found: list[AuditResult], near: Nearness | None, report: dict[str, Any], *, as_json: bool
) -> None:
    """Tables on stdout, sentences on stderr."""
    if as_json:
        print_json(report)
        return
    if found:
        print_table(
            "What attacks found, beside what is claimed",
            {
                "level": "",
                "epsilon_low": "epsilon >=",
                "epsilon": "claimed",
                "rho_low": "rho >=",
                "rho": "claimed",
                "runs": "runs",
                "caught": "refuted",
            },
            [
                {
                    "level": each.level,
                    "epsilon_low": f"{each.epsilon_low:.3g}",
                    "epsilon": f"{each.claim.epsilon:.3g}",
                    "rho_low": f"{each.rho_low:.3g}",
                    "rho": f"{each.claim.rho:.3g}",
                    "runs": f"{each.n_runs:,}",
                    "caught": "YES" if each.caught else "no",
                }
                for each in found
            ],
        )
    if near is not None:
        print_table(
            "Do released traces betray the trips they were made from?",
            {"name": "", "value": "value", "low": "low", "high": "high", "chance": "by chance"},
            near.rows(),
        )
    for each in found:
        note(each.text)
    if near is not None:
        note(near.text)
