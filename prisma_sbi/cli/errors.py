"""What an exception means to the shell: an exit code and one readable line."""

import functools
import traceback
from collections.abc import Callable
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

_GOES_ON = (
    "Finished parts are kept and the one in work is dropped. Run the same command again to go on."
)
_BEGINS_ANEW = (
    "Work that is half done is not kept. Run the same command again to begin from the start."
)
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


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a command that goes on from there; the text says what is kept."""


def resumable[**P, R](command: Callable[P, R]) -> Callable[P, R]:
    """Mark a command that keeps what is finished, so that Ctrl-C says so.

    Other commands are told to begin anew, which is true of whatever is not marked.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt as stopped:
            raise Interrupted(_GOES_ON) from stopped

    return run


class GuardedGroup(TyperGroup):
    """Commands whose foreseen errors end in one line; others keep their traceback and code 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command and turn what it raises into an exit code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            _say("interrupted: ", str(stopped) or _BEGINS_ANEW)
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
