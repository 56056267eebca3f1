"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import FAMILIES
from llpbench.running.settings import DEFAULT_PRESET, OPTIONS, PRESETS, default

Command = TypeVar("Command", bound=Callable[..., Any])


class AnyPath(click.Path):
    """A path. Unlike in click, an empty text is an error, not the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises `LLPBenchError` if it is empty."""
        if not str(value).strip():
            raise LLPBenchError(f"{param.get_error_hint(ctx) if param else 'a path'} must be a path, got {value!r}.")
        return super().convert(value, param, ctx)


def add_options(command: Command, options: Sequence[Callable[[Any], Any]]) -> Command:
    """Add options and arguments to a command, in their order."""
    for option in reversed(options):
        command = option(command)
    return command


_KINDS = {"methods": "method", "datasets": "dataset", "baggings": "bagging", "encoders": "encoder"}
"""Kinds of registered names that an option takes."""


def _completed(*kinds: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return completions of the last name in a comma list."""

    def complete(context: click.Context, option: click.Parameter, written: str) -> list[str]:
        del context, option
        from llpbench.core.registry import REGISTRIES

        before, comma, last = written.rpartition(",")
        names = [name for kind in kinds for name in REGISTRIES[kind].names()]
        names += [f"suite:{name}" for name in REGISTRIES["suite"].names()] if kinds == ("dataset",) else []
        if kinds == ("method",):
            names += [f"family:{family}" for family in FAMILIES]
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete


def run_options(command: Command) -> Command:
    """Add the flags of `settings.OPTIONS`, --preset and --config to a command."""
    for name, option in reversed(OPTIONS.items()):
        if option.read.form == "file":
            continue
        text = f"{option.help}{_default(default(name))}"
        if option.read.form == "switch":
            decorate = click.option(f"--{name}/--no-{name}", default=None, help=text)
        else:
            decorate = click.option(
                f"--{name}",
                metavar=option.read.metavar,
                multiple=option.read.form == "many",
                help=text,
                shell_complete=_completed(_KINDS[name]) if name in _KINDS else None,
            )
        command = decorate(command)
    command = click.option("--config", metavar="FILE", help="TOML file of options. Its keys are the names of options.")(
        command
    )
    text = f"Named set of defaults for all other options: {' or '.join(PRESETS)}.{_default(DEFAULT_PRESET)}"
    return click.option("--preset", metavar="NAME", help=text)(command)


def _default(value: Any) -> str:
    """Return a default as text for the help; "" for switches."""
    if value is None or isinstance(value, bool):
        return ""
    return f" [default: {','.join(map(str, value)) if isinstance(value, tuple) else value}]"


checked_argument = click.argument(
    "what", metavar="NAME|FILE.py", type=click.Path(), shell_complete=_completed(*_KINDS.values())
)
plugin_option = click.option("--plugin", multiple=True, metavar="FILE", help=OPTIONS["plugin"].help)
data_dir_option = click.option("--data-dir", metavar="DIR", help=OPTIONS["data-dir"].help)
journal_option = click.option(
    "--journal",
    "journals",
    multiple=True,
    type=AnyPath(),
    metavar="PATH",
    help="Journal file or folder, or the name of published results, such as core. May be repeated. [default: OUT]",
)
out_option = click.option(
    "--out", type=AnyPath(), metavar="DIR", default=str(default("out")), show_default=True, help=OPTIONS["out"].help
)


def load_plugins(plugin: Iterable[str]) -> None:
    """Load what --plugin names."""
    from llpbench.core.registry import load_plugin

    for path in plugin:
        load_plugin(path)
