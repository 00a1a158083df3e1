"""Options that several commands of `prisma study` have, and what they say at the end."""

from pathlib import Path
from typing import Annotated

import typer

PUBLIC = "Made from public inputs and simulated trips only: this may be shown to anybody."
PRIVATE = "This describes recorded trips and is private, like the traces."

StudyRegion = Annotated[
    Path | None,
    typer.Option("--region", help="Folder of the region.", show_default="the demo city"),
]
Folder = Annotated[
    Path | None, typer.Option("-o", "--output", help="Folder for data, tables and figures.")
]
Seed = Annotated[int, typer.Option(help="Of routes, truths, noise and draws.")]
Aggressiveness = Annotated[float, typer.Option(help="Of the driver.")]
Detour = Annotated[float, typer.Option(help="Driven length over the shortest way.")]
VehicleNumber = Annotated[
    int | None,
    typer.Option("--vehicle", help="Position in the pool.", show_default="of median mass"),
]
