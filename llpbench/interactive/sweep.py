"""`llpbench.run`: the command `llpbench run` for Python and notebooks, with the same options under the same names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.core.errors import LLPBenchError
from llpbench.interactive.loaded import Results
from llpbench.running.settings import OPTIONS, PLOTS, Settings, resolve

if TYPE_CHECKING:
    from llpbench.core.registry import Registry


def run(*, preset: str | None = None, config: str | PathLike[str] | None = None, **flags: Any) -> Results:
    """Run missing runs, write the leaderboards into `out`, and return all results in `out`.

    Options, defaults, presets and journal are those of the command `llpbench run`; `--bag-sizes` is `bag_sizes` here.
    Repeat an interrupted call to continue. Values may be Python objects:
    `bag_sizes=[64, 256]`, `seeds=3`, `set={"dllp": {"learning_rate": [1e-4, 1e-3]}}`, `out=Path("results")`.

    Methods, datasets, baggings and encoders that a notebook or the calling program defines run in this process, one
    cell after the other. To run several at a time, put them into a file and name it with `plugin`.

    Raises `LLPBenchError` for invalid options. Failed runs are part of the results, with their reasons.

    Examples
    --------
    >>> import tempfile
    >>> import llpbench
    >>> out = tempfile.mkdtemp()
    >>> results = llpbench.run(methods="bag-share", datasets="adult", seeds=1, executor="debug", out=out)
    >>> results.leaderboard()["mean"].tolist()
    [50.0]
    """
    from llpbench.running import runner
    from llpbench.running.display import Display

    given = {name.replace("_", "-"): _plain(value) for name, value in flags.items() if value is not None}
    try:
        settings = resolve(given, preset=preset, config=None if config is None else Path(config))
    except LLPBenchError as error:
        raise LLPBenchError(_in_python(str(error), flags)) from None
    display = Display.on_stderr()
    if typed := _known_here_alone(settings):
        elsewhere = None if settings.executor in ("auto", "debug") else settings.executor
        others = {"executor": elsewhere, "ray_address": settings.ray_address, "cell_timeout": settings.cell_timeout}
        if name := next((name for name, value in others.items() if value is not None), ""):
            raise LLPBenchError(
                f"{typed} exists in this process only, so {name}={others[name]!r} cannot be used. Leave {name} out, or "
                f"put the {typed.partition(' ')[0]} into a file for plugin=."
            )
        settings = replace(settings, executor="debug")
        display.say(f"{typed} exists in this process only: cells run here, one after the other")
    try:
        contents = runner.run(settings, display).contents
        results = Results.of(contents, [settings.out])
        results.publish(settings.out, plots=settings.out / PLOTS if settings.plots else None)
        return results
    except LLPBenchError as error:
        raise LLPBenchError(_FLAG.sub(lambda match: match[1].replace("-", "_"), str(error))) from None


_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
"""an option of the command"""


def _in_python(message: str, typed: Iterable[str]) -> str:
    """Return a message with options as they are named in Python: `bag_sizes` for `--bag-sizes`."""
    named = "|".join(sorted(map(re.escape, {*OPTIONS, *(name.replace("_", "-") for name in typed)}), key=len)[::-1])
    found = re.compile(rf"(?<![\w-])(?:--({named})|({named}))(?![\w-])")
    return found.sub(lambda match: (match[1] or match[2]).replace("-", "_"), message.replace("name --", "option "))


def _plain(value: Any) -> Any:
    """Return a value as in a configuration file: lists for tuples, ranges and arrays, texts for paths."""
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "tolist"):  # numpy's
        return value.tolist()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | range | set | frozenset):
        return [_plain(each) for each in value]
    return value


def _known_here_alone(settings: Settings) -> str:
    """Return a wanted entry that no other process can import; "" if there is none."""
    from llpbench.core.registry import BAGGINGS, DATASETS, ENCODERS, METHODS, load_plugin
    from llpbench.data.loading import select_datasets

    for plugin in settings.plugin:
        load_plugin(plugin, edited=True)
    wanted: list[tuple[Registry, list[str]]] = [(METHODS, METHODS.select(settings.methods))]
    wanted += [(DATASETS, select_datasets(settings.datasets)), (ENCODERS, ENCODERS.select(settings.encoders))]
    wanted += [(BAGGINGS, [text.partition(":")[0].strip() for text in settings.baggings.split(",")])]
    for registry, names in wanted:
        for entry in (each for each in registry.entries() if each.name in names):
            if entry.local:
                return f"{registry.kind} {entry.name!r}"
    return ""


# for `help` and completion
_DEFAULTS = {"preset": None, "config": None, **{name.replace("-", "_"): each.default for name, each in OPTIONS.items()}}
_PARAMETERS = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=each) for name, each in _DEFAULTS.items()
]
run.__signature__ = inspect.Signature(_PARAMETERS, return_annotation=Results)  # type: ignore[attr-defined]
run.__doc__ = f"{run.__doc__}\n    Options:\n" + "\n".join(
    f"    - `{name.replace('-', '_')}`: {option.help}" for name, option in OPTIONS.items()
)
