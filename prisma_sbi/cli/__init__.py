"""The command line; it needs the extra ``cli``."""

import importlib
import sys

from prisma_sbi._optional import optional_import


def main() -> None:
    """Run the `prisma` command, or say what to install for it."""
    try:
        for module in ("typer", "rich"):
            optional_import(module, extra="cli")
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    importlib.import_module("prisma_sbi.cli.main").main()
