"""What the tests share: registries as built in, a plugin with a tiny dataset and fast methods, the command line.

A pytest plugin, named in `conftest.py`.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from llpbench.cli.main import main
from llpbench.core import registry
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.core.registry import REGISTRIES
from llpbench.running.settings import Settings, resolve

PLUGIN = '''
"""A dataset of 400 rows and methods that take no time, or what time they are told to."""

import time
from dataclasses import dataclass

import numpy as np

from llpbench.data.sources import Parquet
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.registry import register_dataset, register_method


@register_dataset("tiny", source=Parquet("tiny.parquet"), target="label", positive="yes")
def tiny(frame):
    """Two Gaussians."""
    return frame


@register_dataset("absent", source=Parquet("absent.parquet"), target="label")
def absent(frame):
    """A file that is not there."""
    return frame


@dataclass(frozen=True)
class Params(DirectParams):
    seconds: float = 0.0


class Quick(DirectMethod):
    Params = Params

    def fit(self, train, schema, rng):
        time.sleep(self.params.seconds)
        means = np.stack([train.rows.numeric[bag].mean(axis=0) for bag in train.index])
        weights = np.linalg.lstsq(means, train.proportions, rcond=None)[0] + 1e-3 * rng.normal(size=2)

        def predict(rows):
            scores = np.exp(rows.numeric @ weights)
            return scores / scores.sum(axis=1, keepdims=True)

        return predict


@register_method("quick-a", role="", classes="multi", reference="")
class QuickA(Quick):
    """Least squares on bag means."""


@register_method("quick-b", role="floor", classes="binary", reference="")
class QuickB(Quick):
    """The same."""


@register_method("broken", role="", classes="multi", reference="")
class Broken(Quick):
    """Fails."""

    def fit(self, train, schema, rng):
        raise ValueError("no luck")
'''


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of the plugin, its data beside it. For other processes; in this one use `tiny_bench`."""
    folder = tmp_path_factory.mktemp("bench")
    rng = np.random.default_rng(0)
    labels = rng.random(400) < 0.4
    numbers = rng.normal(size=(400, 2)) + 1.5 * labels[:, None]
    frame = pd.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1], "label": np.where(labels, "yes", "no")})
    frame.to_parquet(folder / "tiny.parquet")
    path = folder / "tiny_bench.py"
    path.write_text(PLUGIN)
    return path


@pytest.fixture
def tiny_bench(plugin: Path) -> Path:
    """The plugin, loaded in this process for one test."""
    registry.load_plugin(plugin)
    return plugin


def make_settings(plugin: Path, out: Path, **flags: Any) -> Settings:
    """Settings of a short run on the plugin's dataset; `flags` as on the command line, with _ for -."""
    given = {"plugin": (str(plugin),), "out": str(out), "datasets": "tiny", "methods": "quick-a,quick-b"}
    given |= {"bag-sizes": "8,16", "executor": "debug", "seeds": "2"}
    return resolve(given | {name.replace("_", "-"): value for name, value in flags.items()})


def arguments(plugin: Path, out: Path, *more: str) -> list[str]:
    """The same on the command line."""
    common = ["--datasets", "tiny", "--methods", "quick-a,quick-b", "--bag-sizes", "8,16", "--executor", "debug"]
    return ["run", "--plugin", str(plugin), "--out", str(out), "--seeds", "2", "--no-plots", *common, *more]


DROPPED = "dropped"
"""Value of an option that `replaced` leaves out."""


def replaced(command: Sequence[str], flags: Sequence[str]) -> list[str]:
    """A command whose options give way to those of `flags`."""
    names = {flag for flag in flags if flag.startswith("--")}
    kept = [word for before, word in zip(["", *command], command, strict=False) if not names & {before, word}]
    given = [*flags]
    while DROPPED in given:
        place = given.index(DROPPED)
        del given[place - 1 : place + 1]
    return [*kept, *given]


def start(arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """`llpbench` in a process of its own, which does not import from where it is started."""
    command = [sys.executable, "-P", "-m", "llpbench", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def timeless(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Records without what differs between two computations of the same, in the order of their runs."""
    fleeting = ("times", "memory_mb", "finished", "code", "hardware")
    kept = [{name: value for name, value in record.items() if name not in fleeting} for record in records]
    return sorted(kept, key=lambda record: str(record["run"]))


def dedent(text: str) -> str:
    """A block of text as it stands, without its common indentation."""
    return textwrap.dedent(text).lstrip()


class Result(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


def done(result: Result) -> Result:
    """Require that a command succeeded."""
    assert result.code == 0, result.err
    return result


def refused(result: Result) -> str:
    """Return the one line of a command that was refused."""
    assert (result.code, result.out) == (2, ""), result.err
    (line,) = result.err.splitlines()
    assert line.startswith("llpbench: ")
    return line


@contextmanager
def refusal(match: str) -> Iterator[pytest.ExceptionInfo[LLPBenchError]]:
    """Require an error of one line."""
    with pytest.raises(LLPBenchError, match=match) as error:
        yield error
    assert "\n" not in str(error.value)


def python(code: str, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, **options)


class LLPBench:
    """`llpbench` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: str) -> Result:
        self._monkeypatch.setattr(sys, "argv", ["llpbench", *words])
        with pytest.raises(SystemExit) as exit_:
            main()
        return Result(int(exit_.value.code or 0), *self._capsys.readouterr())

    def succeed(self, *words: str) -> Result:
        """Require that a command succeeds."""
        return done(self(*words))


@pytest.fixture
def llpbench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> LLPBench:
    return LLPBench(monkeypatch, capsys)


@pytest.fixture(autouse=True)
def _registries_as_they_were() -> Iterator[None]:
    """Every test finds the registries as they are built in and leaves them so."""
    with as_they_were():
        yield


@contextmanager
def as_they_were() -> Iterator[None]:
    """Forget new entries and loaded plugins at the end, also for fixtures of a module."""
    # names() first, so that the built-in entries are there to be kept
    kept = {one.kind: {name: one.entry(name) for name in one.names()} for one in REGISTRIES.values()}
    plugins, modules = dict(registry._loaded_plugins), set(sys.modules)
    yield
    for one in REGISTRIES.values():
        one._entries = kept[one.kind]
    registry._loaded_plugins = plugins
    for name in set(sys.modules) - modules:
        if name.startswith("llpbench_plugin_"):
            del sys.modules[name]
