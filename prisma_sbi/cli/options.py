"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

RegionOption = Annotated[
    Path, typer.Option("--region", help="Folder of the region, from region build.")
]
OutputOption = Annotated[Path, typer.Option("-o", "--output", help="Where the result goes.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing result.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]
