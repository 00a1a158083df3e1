"""What an exception means to the shell: an exit code and one readable line."""

import traceback
from typing import Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from prisma_sbi.cli.console import messages

SURROUNDINGS = 1
"""Exit code if the machine or the network failed, not the request."""
BAD_INPUT = 2
"""Exit code of a wrong request: an option, a file or a package that is not right."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

_BAD_PATHS = (
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)


def exit_code(error: Exception) -> int:
    """Exit code for an exception that a user can do something about."""
    if isinstance(error, OSError) and not isinstance(error, _BAD_PATHS):
        return SURROUNDINGS
    return BAD_INPUT


class GuardedGroup(TyperGroup):
    """Commands whose foreseen errors end in one line; others keep their traceback and code 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command and turn what it raises into an exit code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _say(
                "interrupted: ",
                "Finished stages are kept and the one in work is dropped. "
                "Run the same command again to go on.",
            )
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # the reader of stdout has gone; there is nobody to tell
        except (ValueError, OSError, ImportError) as error:
            if ctx.params.get("_debug"):
                traceback.print_exc()
            _say("error: ", str(error) or type(error).__name__)
            raise typer.Exit(exit_code(error)) from error


def _say(word: str, text: str) -> None:
    """One line on stderr, however narrow the terminal is."""
    line = Text.assemble((word, "bold red"), " ".join(text.split()))
    messages.print(line, soft_wrap=True)
