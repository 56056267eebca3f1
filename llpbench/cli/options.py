"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from llpbench.running.settings import DEFAULT_PRESET, OPTIONS, PRESETS, default

Command = TypeVar("Command", bound=Callable[..., Any])


def run_options(command: Command) -> Command:
    """The flags that `settings.OPTIONS` declares, with --preset and --config."""
    for name, option in reversed(OPTIONS.items()):
        if option.form == "file":
            continue
        given = default(name)
        text = option.help if given is None else f"{option.help} [default: {given}]"
        if option.form == "switch":
            decorate = click.option(f"--{name}/--no-{name}", default=None, help=text)
        else:
            decorate = click.option(f"--{name}", metavar=option.metavar, multiple=option.form == "many", help=text)
        command = decorate(command)
    command = click.option("--config", metavar="FILE", help="A TOML file with the same names as the flags.")(command)
    text = f"{' or '.join(PRESETS)}: what holds unless flags or the file say otherwise. [default: {DEFAULT_PRESET}]"
    return click.option("--preset", metavar="NAME", help=text)(command)


plugin_option = click.option("--plugin", multiple=True, metavar="FILE", help=OPTIONS["plugin"].help)
data_dir_option = click.option("--data-dir", metavar="DIR", help=OPTIONS["data-dir"].help)
journal_option = click.option(
    "--journal",
    "journals",
    multiple=True,
    metavar="PATH",
    help="A journal, the folder of one, or published; may be repeated. [default: that in --out]",
)
out_option = click.option(
    "--out", metavar="DIR", default=str(default("out")), show_default=True, help=OPTIONS["out"].help
)


def load_plugins(plugin: Iterable[str]) -> None:
    """Load what --plugin names."""
    from llpbench.core.registry import load_plugin

    for path in plugin:
        load_plugin(path)
