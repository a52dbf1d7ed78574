"""The command line: text in, text out."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Annotated

import typer
from typer.exceptions import TyperException

from envlock.adapters.interrupts import INTERRUPTS
from envlock.cli.demo import demo
from envlock.cli.diff import diff
from envlock.cli.doctor import doctor
from envlock.cli.export import export
from envlock.cli.fleet import app as fleet
from envlock.cli.guard import SETTINGS as GUARD_SETTINGS
from envlock.cli.guard import guard
from envlock.cli.language import take, translator
from envlock.cli.listing import Listed
from envlock.cli.options import help_alone
from envlock.cli.restore import restore
from envlock.cli.show import Screen, speak
from envlock.cli.snapshot import snapshot
from envlock.cli.verify import verify
from envlock.cli.wheelhouse import app as wheelhouse
from envlock.errors import EnvlockError, UsageProblem

# what a command reads is needed to its end: looking for garbage every 700 objects, and in all of
# them on the way out, finds none and takes a tenth of the time
gc.set_threshold(50_000, 20)
atexit.register(gc.freeze)

_PIPE = 13  # SIGPIPE, which not every host has

app = typer.Typer(
    name="envlock",
    cls=Listed,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Keep, guard and restore the vendor builds of an accelerator image.",
)
app.command()(snapshot)
app.command(context_settings=GUARD_SETTINGS)(guard)
app.add_typer(wheelhouse)
app.command()(restore)
app.command()(verify)
app.command()(diff)
app.command()(doctor)
app.command()(export)
app.command()(demo)
app.add_typer(fleet)


def _show_version(value: bool) -> None:
    if value:
        from envlock import __version__

        typer.echo(f"envlock {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
    lang: Annotated[
        str | None,
        typer.Option(
            metavar="LANG", help="en or zh, also after a command. Else LC_ALL, LANG, LANGUAGE."
        ),
    ] = None,
) -> int:
    return help_alone(context)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; the only error handler.

    Args:
        argv: arguments without the program's name; default ``sys.argv``.

    Returns:
        The exit code. A bug is not caught: it stays a traceback, and Python's own code 1.
    """
    _interrupt_on(*INTERRUPTS[1:])
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    finally:
        speak(None)


def _run(arguments: list[str]) -> int:
    screen = Screen(json="--json" in arguments, color="NO_COLOR" not in os.environ)
    command = "envlock"
    try:
        language, arguments = take(arguments, os.environ)
        speak(translator(language))
        command = next((word for word in arguments if not word.startswith("-")), command)
        result = app(arguments, prog_name="envlock", standalone_mode=False)
    except EnvlockError as error:
        screen.error(command, error)
        return error.exit_code
    except TyperException as error:
        return _usage(screen, command, error)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except SystemExit as ended:
        if not ended.code:  # typer's own options for shells
            return 0
        # typer's own answer where whoever read the output has gone (``envlock … | head``): it says
        # 1, which is a bug's code here; a shell says this of SIGPIPE
        return 128 + _PIPE
    return int(result or 0)


def _interrupt_on(*numbers: signal.Signals) -> None:
    """Ends a run by these signals as Ctrl-C does: with an undo, and 130."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means what it says
                signal.signal(number, interrupt)


def _usage(screen: Screen, command: str, error: TyperException) -> int:
    """typer's own errors in envlock's form."""
    said = getattr(error, "format_message", lambda: str(error))().rstrip(".")
    text = said[:1].lower() + said[1:]
    known = {
        info.name or getattr(info.callback, "__name__", "") for info in app.registered_commands
    }
    known |= {
        info.typer_instance.info.name for info in app.registered_groups if info.typer_instance
    }
    hint = f"see 'envlock {command} --help'" if command in known else "see 'envlock --help'"
    problem = UsageProblem(f"command line: {text}", hint)
    screen.error(command, problem)
    return problem.exit_code
