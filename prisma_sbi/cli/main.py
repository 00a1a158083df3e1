"""The `prisma` command."""

from importlib.metadata import version
from typing import Annotated

import typer

from prisma_sbi.cli import (
    audit_command,
    encode_command,
    evaluate_command,
    region_commands,
    reproduce_command,
    run_commands,
    stage_commands,
    synthesize_command,
    telemetry_commands,
)
from prisma_sbi.cli.errors import GuardedGroup
from prisma_sbi.cli.study import commands as study_commands

WHOLE, INPUTS = "Everything at once", "Inputs, before the stages"
STAGES = "One stage at a time, in this order"
CHECKS = "Checks of a fit and of the guarantee"

app = typer.Typer(
    cls=GuardedGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Private synthetic power traces from recorded trips.",
    epilog="Start with: prisma demo -o out/demo",
)
app.command(rich_help_panel=WHOLE, epilog="Example: prisma demo -o out/demo")(run_commands.demo)
app.command(
    rich_help_panel=WHOLE, epilog="Example: prisma run examples/ann_arbor.toml -o out/ann_arbor"
)(run_commands.run)
app.command(rich_help_panel=WHOLE, epilog="Example: prisma reproduce table2 -o out/table2")(
    reproduce_command.reproduce
)
app.add_typer(region_commands.app, name="region", rich_help_panel=INPUTS)
app.add_typer(telemetry_commands.app, name="telemetry", rich_help_panel=INPUTS)
app.command(
    rich_help_panel=STAGES, epilog="Example: prisma encode traces.zarr --region city -o fit.zarr"
)(encode_command.encode)
app.command(
    rich_help_panel=STAGES,
    epilog="Example: prisma synthesize fit.zarr --region city --epsilon 0.5 -o release",
)(synthesize_command.synthesize)
app.command(
    rich_help_panel=STAGES,
    epilog="Example: prisma decode release --region city -o synthetic.zarr",
)(stage_commands.decode)
app.command(
    rich_help_panel=STAGES,
    epilog="Example: prisma evaluate real.zarr synthetic.zarr --report out/report.html",
)(evaluate_command.evaluate)
app.command(
    rich_help_panel=CHECKS, epilog="Example: prisma diagnose fit.zarr --region city -o diagnosis"
)(encode_command.diagnose)
app.command(
    rich_help_panel=CHECKS, epilog="Example: prisma audit --epsilon 0.5 --runs 100 -o audit.json"
)(audit_command.audit)
app.add_typer(study_commands.app, name="study", rich_help_panel=CHECKS)


def _show_version(*, asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        print(f"prisma {version('prisma-sbi')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool | None,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda asked: _show_version(asked=asked),
            help="Print the version.",
        ),
    ] = False,
    _debug: Annotated[
        bool | None,
        typer.Option(
            "--debug",
            envvar="PRISMA_DEBUG",
            help="Print the traceback of an error; goes before the command.",
        ),
    ] = False,
) -> None:
    """Options of every command; the group reads them from its context."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command; exit with 0, 1 (unexpected), 2 (bad input) or 130 (interrupted).

    What a user can mend is one line on stderr; ``--debug`` adds the traceback.
    """
    app(args=arguments, prog_name="prisma")


if __name__ == "__main__":
    main()
