"""The command group: imports verbs lazily and prints errors as one line with an exit code."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from wavecast.cli import streams
from wavecast.cli.commands import COMMANDS
from wavecast.cli.groups import CommandGroup
from wavecast.cli.supervise import PROGRAM
from wavecast.errors import WavecastError
from wavecast.extras import hint_for
from wavecast.pipeline.execute.outcome import exit_code_of
from wavecast.version import __version__

_NEW_OBJECTS = 20_000
"""Python's collector starts after so many new objects (by itself after 700): imports make many, and
none is garbage."""


class _Verbs(CommandGroup):
    """A group whose verbs are imported when they are used, not when help lists them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        return import_module(entry[0]).command if entry else None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            code = super().invoke(ctx)
            streams.flush()
        except BrokenPipeError:  # whoever read our output has read enough; click would exit with 1
            streams.abandon()
            return 0
        return code

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    "wavecast",
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "WAVECAST"},
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="wavecast")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Know how a GPU kernel will run before it runs."""
    from wavecast.cli.settings import default_map

    ctx.obj = {**(ctx.obj or {}), "debug": debug}
    ctx.default_map = default_map()


def run(arguments: list[str] | None = None, command: click.Command = cli) -> NoReturn:
    """Run the command line and exit: 0 fine, 1 finding, 2 usage or input, 3 nothing analysed.

    `command` has the option `--debug`, as `cli` has.
    """
    about = {PROGRAM: arguments is None}
    if about[PROGRAM]:
        gc.set_threshold(_NEW_OBJECTS)
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments[: arguments.index("--") if "--" in arguments else None]
    if debug:
        arguments = ["--debug", *[a for a in arguments if a != "--debug"]]
    try:
        streams.prepare()
        code = command.main(
            args=arguments, prog_name=command.name, standalone_mode=False, obj=about
        )
    except WavecastError as error:
        if debug:
            raise
        streams.fail(*getattr(error, "lines", (str(error),)), code=error.exit_code)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        streams.report_interrupt(leave=about[PROGRAM])
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        streams.fail(error.format_message())
    except OSError as error:
        if debug:
            raise
        streams.abandon()
        about = f"{error.filename}: " if error.filename else "cannot write the output: "
        streams.fail(f"{about}{error.strerror or error}", code=exit_code_of(error))
    except Exception as error:
        if debug:
            raise
        if isinstance(error, ModuleNotFoundError) and (hint := hint_for(error.name or "")):
            module = (error.name or "").partition(".")[0]
            streams.fail(
                f"this needs {module}, which is not installed ({hint})", code=exit_code_of(error)
            )
        streams.fail(
            f"internal error, a bug in wavecast: {type(error).__name__}: {error} "
            "(run with --debug for the traceback)",
            code=exit_code_of(error),
        )
    sys.exit(code if isinstance(code, int) else 0)
