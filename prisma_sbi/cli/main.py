"""The `prisma` command."""

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.text import Text

from prisma_sbi.cli import region_commands, run_commands, stage_commands
from prisma_sbi.cli.console import messages

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Private synthetic power traces from recorded trips. Start with: prisma demo",
)
app.command(epilog="Example: prisma demo -o out/demo")(run_commands.demo)
app.command(epilog="Example: prisma run examples/ann_arbor.toml -o out/ann_arbor")(run_commands.run)
app.add_typer(region_commands.app, name="region")
app.add_typer(stage_commands.telemetry_app, name="telemetry")
app.command(epilog="Example: prisma encode traces.zarr --region city -o fit.zarr")(
    stage_commands.encode
)
app.command(epilog="Example: prisma synthesize fit.zarr --region city --epsilon 0.5 -o release")(
    stage_commands.synthesize
)
app.command(epilog="Example: prisma decode release --region city -o synthetic.zarr")(
    stage_commands.decode
)
app.command(epilog="Example: prisma evaluate real.zarr synthetic.zarr --region city -o scores")(
    stage_commands.evaluate
)


def _show_version(*, asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        print(f"prisma {version('prisma-sbi')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda asked: _show_version(asked=asked),
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Options of every command."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command; exit with 0, 1 (unexpected), 2 (bad input) or 130 (interrupted).

    What a user can mend is one line on stderr. Set ``PRISMA_DEBUG=1`` for the traceback.
    """
    try:
        app(args=arguments)
    except KeyboardInterrupt:
        messages.print("[red]interrupted[/] Finished stages are kept; run again to go on.")
        sys.exit(130)
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("PRISMA_DEBUG"):
            raise
        messages.print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
