"""A command made from the options of a verb: it parses them, calls the function of the verb, and
shows the result."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from wavecast.cli import streams
from wavecast.cli.supervise import document_written
from wavecast.cli.types import click_type
from wavecast.errors import NothingAnalysed, UsageError
from wavecast.options import NoOptions, Options, Progress
from wavecast.options.values import Files, Flag, Several

if TYPE_CHECKING:
    from wavecast.api.result import ShownResult

Write = Callable[["ShownResult"], None]
"""Shows a result where and how the command line asks for."""
_AFTER_DASHES: Final = "wavecast.after_dashes"
_FORMAT_OF: Final = {".html": "html", ".json": "json", ".md": "markdown", ".sarif": "sarif"}
"""Suffix of an output -> its format, where none is stated."""


@dataclass(frozen=True, slots=True)
class Show:
    """How a result is shown: its formats (`text`, or a method of the result), whether they can go
    to a file (`output`), and the options of its text (`view`). `width` are the columns of a text
    that no terminal shows, where COLUMNS does not say. With `stderr` a result prints a part of its
    text to standard error (`render` has this argument). With `executes` what the verb executes
    prints to standard error where standard output is a document."""

    formats: tuple[str, ...] = ("text", "json")
    output: bool = False
    view: type[Options] = NoOptions
    width: int | None = None
    highlight: bool = False
    stderr: bool = False
    executes: bool = False

    def parameters(self) -> list[click.Parameter]:
        """The options of a command: those of formats where there are several."""
        several = len(self.formats) > 1
        parameters: list[click.Parameter] = []
        if several:
            form = click.Choice(self.formats)
            names = ["-f", "--format"]
            parameters.append(click.Option(names, type=form, default="text", show_default=True))
        if self.output:
            file = click.Path(path_type=Path, dir_okay=False)
            text = "Write to this file. Without --format its name says the format."
            parameters.append(click.Option(["-o", "--output"], type=file, help=text))
        if several:
            text = "Write HTML and open it in the browser."
            parameters.append(click.Option(["--open"], is_flag=True, help=text))
        return parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """What a command is made of. `function` gets the arguments in order, `progress`, and the stated
    options by name; `modes` are further options, by the option that they go with, unless `choose`
    names the class for arguments and options. `after` is the parameter of `function` for what
    follows `--` (with `AfterDashes`). `first` may end the command before anything else, with its
    exit code; it gets the values, and what writes a result as a document (None for text). An error
    of the function that has a `partial` result is raised when that is shown."""

    name: str
    function: Callable[..., ShownResult]
    options: type[Options]
    text: str
    examples: Sequence[str]
    arguments: Sequence[click.Parameter] = ()
    modes: Mapping[str, type[Options]] = field(default_factory=dict)
    choose: Callable[[Sequence[Any], Mapping[str, Any]], type[Options]] | None = None
    after: str = ""
    show: Show = field(default_factory=Show)
    first: Callable[[Mapping[str, Any], Write | None], int | None] = lambda *_: None
    progress: Callable[[], AbstractContextManager[Progress]] = streams.progress

    def command(self, kind: type[click.Command] = click.Command) -> click.Command:
        """The command."""
        return kind(
            self.name,
            params=[*self.arguments, *self._parameters(), *self.show.parameters()],
            callback=self._run,
            help=self.text,
            epilog="\n\n".join(("Examples:", *self.examples)) if self.examples else None,
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    def _parameters(self) -> list[click.Option]:
        parameters: dict[str, click.Option] = {}
        for options in (self.options, *self.modes.values(), self.show.view):
            for name in options.described():
                if name not in parameters:
                    parameters[name] = click_option(options, name)
        return [*parameters.values()]

    def _run(self, **values: Any) -> int:
        context = click.get_current_context()
        form, opens = self._form(context), values.get("open")
        output = values["output"] if self.show.output else None
        view = _stated_options(context, self.show.view)

        def write(result: ShownResult) -> None:
            self._show(result, form, output, view)

        code = self.first(values, write if form != "text" else None)
        if code is not None:
            return code
        words: list[Any] = []
        for argument in self.arguments:
            if not isinstance(argument, click.Argument):
                continue
            value = values.pop(argument.name or "")
            words += value if argument.nargs == -1 else [value]
        stated = self._options(context, words)
        if self.after:
            stated[self.after] = context.meta[_AFTER_DASHES]
        self._check_outputs(self._options_of(words, stated), stated, output)
        process = os.getpid()
        try:
            document = self.show.executes and form != "text" and output is None
            apart = streams.stdout_as_stderr() if document else contextlib.nullcontext()
            with self.progress() as update, apart:
                result = self.function(*words, progress=update, **stated)
        except BaseException as error:
            is_fork = form != "text" and os.getpid() != process
            if not is_fork and (partial := getattr(error, "partial", None)):
                self._show(partial, form, output, view)
            raise
        if form != "text" and os.getpid() != process:
            return result.exit_code()  # a fork that the program made has no document
        if form != "text" and not hasattr(result, form):
            raise UsageError(f"no {form} of {result.subject()}")
        if opens:
            _open(result, stated.get("html") or output)
        if not opens or not self.show.output:
            self._show(result, form, output, view)
        for line in () if form == "text" else result.remarks():
            click.echo(line, err=True)
        for line in result.messages():
            click.echo(f"wavecast: {line}", err=True)
        if why := result.why_nothing():
            raise NothingAnalysed(why)
        return result.exit_code()

    def _options_of(self, words: Sequence[Any], stated: Mapping[str, Any]) -> type[Options]:
        """The options of the mode that is stated."""
        mode = next((mode for mode in self.modes if stated.get(mode)), "")
        return self.choose(words, stated) if self.choose else self.modes.get(mode, self.options)

    @staticmethod
    def _check_outputs(
        options: type[Options], stated: Mapping[str, Any], output: Path | None
    ) -> None:
        """Look at the files and folders that are written, before the work. Raises InputError."""
        from wavecast import files

        if output is not None:
            files.check_writable(output)
        for name, described in options.described().items():
            values, path = described.values, stated.get(name)
            if path is not None and isinstance(values, Files) and values.written:
                check = files.check_folder if values.folder else files.check_writable
                check(path)

    def _form(self, context: click.Context) -> str:
        """The format that is stated, or that of the name of the file with the result. Raises
        UsageError."""
        if len(self.show.formats) == 1:
            return self.show.formats[0]
        form, output = context.params["format"], context.params.get("output")
        if context.params["open"] and form != "html" and by_user(context, "format"):
            raise UsageError(f"--open shows HTML, not {form}")
        by_default = context.get_parameter_source("format") is ParameterSource.DEFAULT
        if self.show.output and output is not None and by_default:
            named = _FORMAT_OF.get(output.suffix, form)
            return named if named in self.show.formats else form
        return form

    def _options(self, context: click.Context, words: Sequence[Any]) -> dict[str, Any]:
        """The options that are stated. Of those that the settings or the environment state, the
        ones that have an effect: those of the mode whose needs are stated, too."""
        classes = (self.options, *self.modes.values())
        stated = _stated_options(context, *classes)
        of_mode = self._options_of(words, stated)
        names = {
            name
            for name in of_mode.described()
            if not (others := of_mode.needs().get(name)) or not stated.keys().isdisjoint(others)
        }
        for options in classes:
            names |= {n for n in options.described() if by_user(context, _parameter(options, n))}
        return {name: value for name, value in stated.items() if name in names}

    def _show(
        self, result: ShownResult, form: str, output: Path | None, view: Mapping[str, Any]
    ) -> None:
        if output is None:
            closed = sys.stdout.closed  # by a script
            self._write(result, form, io.StringIO() if closed else sys.stdout, view)
            return
        with streams.writing(output) as file:
            self._write(result, form, file, view)

    def _write(
        self, result: ShownResult, form: str, stream: IO[str], view: Mapping[str, Any]
    ) -> None:
        if form == "text":
            free = stream.isatty() or os.environ.get("COLUMNS")
            width = None if free else self.show.width
            console = streams.console(width, stream, highlight=self.show.highlight)
            if self.show.stderr:
                stderr = streams.console(stream=sys.stderr, highlight=False)
                view = {**view, "stderr": stderr}
            result.render(console, **view)
            return
        streams.as_document(stream)
        text = getattr(result, form)()
        stream.write(text if text.endswith("\n") else f"{text}\n")
        stream.flush()
        document_written()


class AfterDashes(click.Command):
    """A command that keeps what follows `--` apart."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[_AFTER_DASHES] = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])


def click_option(options: type[Options], name: str) -> click.Option:
    """An option of a command line. Its default is only shown: unstated ones are not passed on."""
    described, default = options.described()[name], options.default(name)
    values = described.values
    flags = [_parameter(options, name), *(described.flags or (options.flag(name),))]
    if isinstance(values, Flag):
        return click.Option(flags, is_flag=True, default=default, help=described.help)
    several = isinstance(values, Several)
    shown = described.shown
    shows = shown is None and default not in (None, "", ())
    default = ",".join(default) if isinstance(default, tuple) else default
    return click.Option(
        flags,
        type=click_type(values.each if isinstance(values, Several) else values),
        multiple=several,
        default=default if shows else None,
        show_default=shown or shows,
        metavar=described.metavar or None,
        help=described.help,
    )


def _parameter(options: type[Options], name: str) -> str:
    """The name of an option for click, settings and variables: that of its flag."""
    return options.flag(name).removeprefix("--").replace("-", "_")


def by_user(context: click.Context, parameter: str) -> bool:
    """Whether a parameter is on the command line."""
    return context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE


def _stated_options(context: click.Context, *classes: type[Options]) -> dict[str, Any]:
    """The options of classes that the command line, the environment or the settings state."""
    parameters = {
        name: _parameter(options, name) for options in classes for name in options.described()
    }
    unstated = (None, ParameterSource.DEFAULT)
    return {
        name: context.params[parameter]
        for name, parameter in parameters.items()
        if context.get_parameter_source(parameter) not in unstated
    }


def _open(result: ShownResult, path: Path | None) -> None:
    """Write the page of a result, and open it in the browser."""
    page = path or Path(tempfile.mkdtemp(prefix="wavecast-")) / "report.html"
    with streams.writing(page) as file:
        file.write(result.html())
    click.echo(f"page: {page}", err=True)
    if click.launch(str(page)):
        click.echo("no browser could be started: open the page in one", err=True)


__all__ = ["AfterDashes", "Show", "Verb", "Write", "by_user", "click_option"]
