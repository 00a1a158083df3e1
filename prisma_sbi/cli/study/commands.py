"""`prisma study`: whether posteriors can be trusted, and what a trace can reveal."""

import typer

from prisma_sbi.cli.study.atlas import atlas
from prisma_sbi.cli.study.calibrate import calibrate_command
from prisma_sbi.cli.study.design import design
from prisma_sbi.cli.study.local import local
from prisma_sbi.cli.study.misfit import misfit_command
from prisma_sbi.cli.study.profile import profile
from prisma_sbi.cli.study.recover import recover_command
from prisma_sbi.cli.study.sensitivity import sensitivity
from prisma_sbi.cli.study.vehicles import vehicles

app = typer.Typer(
    no_args_is_help=True,
    help="Whether posteriors can be trusted, and what a trace can reveal.",
    epilog="Example: prisma study atlas --region city -o atlas",
)

app.command("calibrate", epilog="Example: prisma study calibrate --simulations 1000 -o sbc")(
    calibrate_command
)
app.command("local", epilog="Example: prisma study local --region city --routes 6 -o local")(local)
app.command(
    "profile", epilog="Example: prisma study profile traces.zarr --region city --trips 4 -o profile"
)(profile)
app.command("vehicles", epilog="Example: prisma study vehicles --region city -o vehicles")(vehicles)
app.command("atlas", epilog="Example: prisma study atlas --region city --routes 2000 -o atlas")(
    atlas
)
app.command("misfit", epilog="Example: prisma study misfit traces.zarr --region city -o misfit")(
    misfit_command
)
app.command("design", epilog="Example: prisma study design --region city -o design")(design)
app.command("recover", epilog="Example: prisma study recover --method quadrature,hmc -o recovery")(
    recover_command
)
app.command("sensitivity", epilog="Example: prisma study sensitivity --trips 8 -o sensitivity")(
    sensitivity
)
