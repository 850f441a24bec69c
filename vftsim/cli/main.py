"""The console script: finds the commands, runs one, turns the outcome into an exit code.

Exit codes: 0 done; 1 a result is outside its declared accuracy or damaged; 2 a user's mistake (one message on
standard error, nothing written); 3 interrupted (Ctrl-C, SIGTERM, SIGHUP), workers killed or a disk full,
what was finished is kept.
A traceback is always a bug.
"""

from __future__ import annotations

import _thread
import functools
import importlib
import inspect
import os
import pkgutil
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FrameType
from typing import Any

import typer
from typer.core import TyperCommand
from typer.exceptions import Abort, Exit, TyperException

from vftsim.cli import options, output
from vftsim.cli.common import as_command
from vftsim.cli.examples import epilog_of
from vftsim.cli.from_study import as_it_is
from vftsim.cli.output import INTERRUPTED, OK, USAGE, interrupted, stopped
from vftsim.errors import ModelFileError, StorageError, UsageError, VftsimError, WorkerLostError

_TYPER_INTERRUPTED = 130
_NO_MEMORY = "there is not enough memory; fewer --jobs or a smaller model need less"
_AGAIN_S = 0.01
_is_dropped = threading.Event()
"""Python has dropped an interruption."""
_COMPLETING = "_VFTSIM_COMPLETE"
"""Variable by which a shell asks for what may follow."""

EPILOG = (
    "Exit codes: 0 done, 1 outside the declared accuracy or damaged, 2 mistake in the command or a file, "
    "3 interrupted (what was finished is kept)."
)


_ARGUMENT, _LISTED = re.compile(r"[\[{]+([A-Z]+)[\].}]*"), re.compile(r"<list\[(\w+)\]>")
"""An argument as Typer has it in a usage: ``{MODEL...}...``; a type of which there may be several."""


def _usage_of(argument: re.Match[str]) -> str:
    name = f"{argument[1]}{'...' if '...' in argument[0] else ''}"
    return f"[{name}]" if "[" in argument[0] else name


class GroupedHelp(TyperCommand):
    """A command whose options stand in the groups that they name (``rich_help_panel``), also without boxes."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage: an argument in square brackets where it may be left out, and in no others."""
        return [_ARGUMENT.sub(_usage_of, piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, the command's options, and each group."""
        groups: dict[str, list[tuple[str, str]]] = {
            name: [] for name in ("Arguments", "Options", options.MODEL, options.RESULT, options.WORK)
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            group = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if record is not None:
                name = _LISTED.sub(r"<\1>", record[0])
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or group, []).append((name, record[1]))
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


def build_app(named: str | None = None) -> typer.Typer:
    """Return the application with every command of :mod:`vftsim.cli.commands`.

    To read their options takes longer than most commands do: with the name of a command the application has that one
    alone, with another word all of them without options, to be listed.
    """
    app = typer.Typer(
        name="vftsim",
        help="What will a system carry, virtualized and protected by fault tolerance? Simulation with error bars.",
        epilog=EPILOG,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # the boxes of the help would cost as much time as all the rest of it
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback(invoke_without_command=True)(_global_options)
    if sys.flags.optimize > 1:
        raise UsageError("python -OO leaves out the docstrings in which commands declare their options; -O keeps them")
    commands = importlib.import_module("vftsim.cli.commands")
    studies = {each.__name__: each for each in commands.AS_THEY_ARE}
    modules = sorted([*studies, *(each.name for each in pkgutil.iter_modules(commands.__path__))])
    names = {module.partition("_")[0]: module for module in modules}
    for name in list(names) if named is None or named not in names else [named]:
        module = names[name]
        study = studies.get(module)
        function = study or getattr(importlib.import_module(f"{commands.__name__}.{module}"), module)
        # Given apart from the help, it is not cut to what is left of a line.
        short = " ".join(inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0].split())
        add = app.command(name, cls=GroupedHelp, short_help=short, epilog=epilog_of(name))
        if named not in (None, name):
            add(_unread)
            continue
        conducted = function if study is None else as_it_is(study, **commands.AS_THEY_ARE[study])
        add(_saying_what_is_kept(as_command(conducted)))
    return app


def _unread() -> None:
    """Stand for a command in a list."""


@functools.cache
def command_line(named: str | None = None) -> Any:
    """Return what reads a command line, made once: that of :func:`build_app`."""
    return typer.main.get_command(build_app(named))


def _saying_what_is_kept(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that ends a study's interruption with its message; Typer would drop it."""

    @functools.wraps(command)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        try:
            return command(*arguments, **named)
        except KeyboardInterrupt as end:
            raise interrupted(str(end) or "nothing had finished") from None
        except Exception as error:
            # One that was dropped comes again within _AGAIN_S: a mistake in between is not told beside it.
            if _stands_for(KeyboardInterrupt, error) or _is_dropped.is_set():
                raise interrupted("nothing had finished") from None
            if _stands_for(MemoryError, error):
                raise MemoryError from None
            raise
        finally:
            options.end_watch()
            options.leave_cluster()

    return wrapped


def _stands_for(kind: type[BaseException], error: BaseException | None) -> bool:
    """Whether a library has made an error of its own out of one of this kind, as pydantic does."""
    while error is not None:
        if isinstance(error, kind) or kind.__name__ in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def console() -> int:
    """Run the command line of this process.

    The first Ctrl-C, kill or hang-up interrupts it, further ones do not disturb the orderly end.  Programs started to
    end the workers must not die of them either; they inherit that they are ignored.  What is ignored from
    outside (``nohup``, a job in the background) stays ignored.
    """
    try:
        output.prepare()
        for number in _ending():
            if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
                signal.signal(number, _interrupt_once)
        sys.unraisablehook = _interrupt_again
        try:
            return main()
        finally:
            _ignore_further()
    except KeyboardInterrupt:
        return stopped("interrupted", INTERRUPTED)
    except MemoryError:
        return stopped(_NO_MEMORY, INTERRUPTED)


def _ending() -> list[int]:
    return [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _interrupt_once(_: int, __: FrameType | None) -> None:
    _ignore_further()
    raise KeyboardInterrupt


def _interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
    """Repeat an interruption that Python dropped, as it does where it comes in a destructor or a callback of C code.

    A command that lost it would go on, and be deaf to all further signals.  What else is dropped is shown as usual.
    """
    if dropped.exc_type is None or not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    _is_dropped.set()
    signal.signal(signal.SIGINT, _interrupt_once)
    # Nothing here waits for the thread, as Thread.start() does: the interruption could come in that, and be dropped.
    _thread.start_new_thread(_interrupt_soon, ())


def _interrupt_soon() -> None:
    time.sleep(_AGAIN_S)
    _thread.interrupt_main()


def _ignore_further() -> None:
    """Let nothing disturb the orderly end: neither that of an interrupted command nor that of one that is done."""
    for number in _ending():
        signal.signal(number, signal.SIG_IGN)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit code."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except OSError as error:
        output.abandon_output()
        if isinstance(error, BrokenPipeError):
            return OK
        return stopped(f"cannot {_what_failed(error.filename)}: {error.strerror or error}", INTERRUPTED)
    except MemoryError:
        return stopped(_NO_MEMORY, INTERRUPTED)
    return code


def _as_typed(error: VftsimError, words: Sequence[str]) -> str:
    """Return the message of a mistake; of one in an assignment, under the option that it was typed in.

    Ranges, grids and variants become assignments, which are read as those of ``--set`` are.
    """
    if not isinstance(error, ModelFileError):
        return str(error)
    from vftsim.spec.overrides import ORIGIN

    if error.file != ORIGIN:
        return str(error)
    key, typed = error.key.partition("=")[0], [*pairwise(("", *words))]
    whole = [(before, word) for before, word in typed if error.key in (word, word.removeprefix(f"{ORIGIN}="))]
    for before, word in whole or [(before, word) for before, word in typed if key in word]:
        option = word.partition("=")[0] if word.startswith("-") else before if before.startswith("-") else word
        return str(error).replace(ORIGIN, option, 1)
    return str(error)


def _what_failed(name: Any) -> str:
    if name == output.STANDARD_OUTPUT:
        return "use standard output"
    return f"use '{name}'" if name else "go on"


def _run(arguments: Sequence[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    named = None if _COMPLETING in os.environ else next((word for word in words if not word.startswith("-")), "")
    try:
        outcome = command_line(named)(args=words, standalone_mode=False)
    except TyperException as error:
        return stopped(_instead_of_file(_mistake(error), words), USAGE)
    except VftsimError as error:
        code = INTERRUPTED if isinstance(error, (StorageError, WorkerLostError)) else USAGE
        return stopped(_instead_of_file(_as_typed(error, words), words), code)
    except Exit as end:
        return end.exit_code
    except (Abort, KeyboardInterrupt):
        outcome = _TYPER_INTERRUPTED
    except SystemExit:
        # Typer exits by itself when the reader of our output has gone (| head); nor must the interpreter complain.
        output.abandon_output()
        return OK
    if outcome == _TYPER_INTERRUPTED:
        return stopped("interrupted; nothing had finished", INTERRUPTED)
    return outcome if isinstance(outcome, int) else OK


def _mistake(error: TyperException) -> str:
    """Return what is wrong with a command line, with the value: pydantic checks it, whose messages leave it out."""
    message = error.format_message().replace("Value error, ", "") or type(error).__name__
    if message.startswith("No such command") and message.endswith("'."):
        return f"{message} 'vftsim --help' lists them"
    inputs = [each["input"] for each in getattr(error.__cause__, "errors", list)()]
    if not inputs or str(inputs[0]) in message:
        return message
    from vftsim.spec.suggest import shown

    return f"{message}, got {shown(str(inputs[0]))}"


def _instead_of_file(mistake: str, words: Sequence[str]) -> str:
    """Return a mistake with what to do instead, where an option that prints was given a file."""
    for option, word in () if words[0] == "export" else pairwise(words):
        if option in ("--csv", "--json") and word.endswith(f".{option[2:]}") and word in mistake:
            return f"{mistake}; {option} prints, and takes no file: {option} > {word}"
    return mistake


def _global_options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        from vftsim._version import __version__

        print(f"vftsim {__version__}")
        raise Exit(OK)
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise Exit(USAGE)


if __name__ == "__main__":
    sys.exit(console())
