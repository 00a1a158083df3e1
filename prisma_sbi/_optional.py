"""Optional dependencies: imported where they are needed, missed with a useful sentence."""

import importlib
from typing import Any


def optional_import(module: str, *, extra: str) -> Any:
    """Import ``module`` or say which extra of the package brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Expected the module {module!r} to be installed; got {error}. "
            f"Install it with: pip install 'prisma_sbi[{extra}]'"
        ) from error
