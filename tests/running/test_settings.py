"""Presets, configuration file and flags become one value; what cannot be read is one clear line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from bench import dedent

from llpbench.core.cell import Protocol
from llpbench.core.errors import LLPBenchError
from llpbench.running.settings import OPTIONS, PRESETS, default, resolve


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "bench.toml"
    path.write_text(dedent(text))
    return path


def error_of(flags: dict[str, Any] | None = None, **more: Any) -> str:
    with pytest.raises(LLPBenchError) as error:
        resolve(flags or {}, **more)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_presets_have_declared_values() -> None:
    quick, paper = resolve({}), resolve({}, preset="paper")
    assert (quick.methods, quick.datasets, quick.encoders, quick.baggings) == ("default", "adult", "mlp", "ordered")
    assert (quick.bag_sizes, quick.seeds, quick.out) == ((256,), (0, 1, 2), Path("results"))
    assert quick.protocol == Protocol(epochs=5, patience=3, bags_per_step=2)
    assert resolve({"bags-per-step": "8"}).protocol == Protocol(epochs=5, patience=3, bags_per_step=8)
    assert (paper.protocol, paper.encoders, paper.seeds) == (Protocol(), "saint", tuple(range(10)))
    assert len(paper.datasets.split(",")) == 6
    assert {*PRESETS} == {"quick", "paper"}
    assert [default(name) for name in ("bag-sizes", "threads", "plugin", "time-budget")] == [256, 1, None, None]


def test_flags_override_file_and_file_overrides_preset(tmp_path: Path) -> None:
    path = config(tmp_path, 'preset = "paper"\nbag-sizes = [64, 256]\nseeds = 5\nepochs = 7')
    settings = resolve({"seeds": "2"}, config=path)
    assert settings.seeds == (0, 1)
    assert settings.bag_sizes == (64, 256)
    assert settings.protocol == Protocol(epochs=7)
    assert settings.encoders == "saint"
    assert resolve({}, config=path, preset="quick").encoders == "mlp"


def as_flag(value: Any) -> Any:
    """The value of a configuration file as a flag has it."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, bool) else str(value)


def test_config_file_accepts_every_flag(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        f"""
        methods = ["dllp", "supervised"]
        datasets = "adult,credit"
        baggings = "random"
        encoders = ["mlp"]
        pretraining = ["none", "bag"]
        bag-sizes = "64,256"
        max-bags = 13
        seeds = [3, 4]
        epochs = 5
        patience = 2
        bags-per-step = 8
        out = "there"
        device = "cpu"
        threads = 2
        compile = true
        precision = "float32"
        ensemble = 1
        executor = "ray"
        ray-address = "auto"
        cell-timeout = "2h"
        retry = "failed"
        keep-stale = true
        time-budget = "9m"
        save-predictions = true
        plots = false
        data-dir = "{tmp_path}"
        plugin = ["mine.py"]
        tune = 20
        tune-regimes = ["coarse"]
        tune-sampler = "random"
        tune-seed = 77
        numbers = ["scores", "robust"]
        set.dllp.learning_rate = 0.001
        space.dllp.dropout = [0.0, 0.1]
        """,
    )
    said = tomllib.loads(path.read_text())
    flags = {name: as_flag(value) for name, value in said.items() if name != "space"}
    flags |= {"plugin": ("mine.py",), "set": ("dllp.learning_rate=0.001",)}
    assert flags.keys() == {name for name, option in OPTIONS.items() if option.read.form != "file"} - {
        "study",
        "average",
    }  # both exclude --tune
    from_file, from_flags = resolve({}, config=path), resolve(flags)
    assert from_file.set == {"dllp": {"learning_rate": 0.001}}
    assert from_flags.set == {"dllp": {"learning_rate": "0.001"}}  # its method reads it
    assert from_file.space == {"dllp": {"dropout": [0.0, 0.1]}}
    apart: dict[str, object] = {"set": {}, "space": {}, "narrowed": frozenset()}
    assert vars(from_file) | apart == vars(from_flags) | apart


def test_repeated_options_accumulate(tmp_path: Path) -> None:
    path = config(
        tmp_path, 'plugin = "/a.py"\nset.dllp.hidden = 64\nset.dllp.dropout = 0.2\nset.supervised.hidden = 128'
    )
    settings = resolve({"plugin": ("/b.py", "/a.py"), "set": ("dllp.hidden=256", "x-v1.5.y=a=b.c")}, config=path)
    assert settings.plugin == ("/a.py", "/b.py")
    assert settings.set == {
        "dllp": {"hidden": "256", "dropout": 0.2},
        "supervised": {"hidden": 128},
        "x-v1.5": {"y": "a=b.c"},
    }


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("seeds", "1", (0,)),
        ("seeds", "3", (0, 1, 2)),
        ("seeds", 3, (0, 1, 2)),
        ("seeds", "0,3,7", (0, 3, 7)),
        ("seeds", "4-6", (4, 5, 6)),
        ("seeds", "0-149", tuple(range(150))),
        ("seeds", "7-7", (7,)),
        ("seeds", "7,", (7,)),
        ("seeds", "0-2,9,1", (0, 1, 2, 9)),
        ("seeds", [5, 6], (5, 6)),
        ("bag-sizes", "64,256, 64", (64, 256)),
        ("bag-sizes", 64, (64,)),
        ("bag-sizes", [64, 1024], (64, 1024)),
        ("bag-sizes", "1024,64", (1024, 64)),
        ("time-budget", "540s", 540),
        ("time-budget", "9m", 540),
        ("time-budget", "1.5h", 5400),
        ("time-budget", "30", 30),
        ("time-budget", 30, 30),
        ("time-budget", 1.5, 1.5),
    ],
)
def test_numbers_and_times_are_parsed(name: str, given: Any, expected: Any) -> None:
    assert getattr(resolve({name: given}), name.replace("-", "_")) == expected


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "seeds",
            [*["0", "-1", "x", "1.5", "5-3", "0-99999999", "99999999", "101", "1,x", "-2-4"], "", True, 2.0, []],
            "a number",
        ),
        (
            "bag-sizes",
            [*["0", "-64", "many", "64,x", "2.5", "1e3", "²"], "", 2.5, [64, "x"], True, None],
            "whole numbers",
        ),
        ("time-budget", ["0", "-3m", "soon", "1.2.3s", "9 days", "", True, "inf"], "a time such as 540s, 9m or 1.5h"),
    ],
)
def test_bad_numbers_and_times_are_refused(name: str, given: list[Any], message: str) -> None:
    for each in given:
        assert f"--{name} must be {message}" in error_of({name: each}), each


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"epochs": "0"}, "--epochs must be a positive whole number, got 0"),
        ({"patience": "-1"}, "--patience must be a positive whole number, got -1"),
        ({"threads": "two"}, "--threads must be a positive whole number, got two"),
        ({"device": "gpu"}, "--device must be auto, cpu, cuda or cuda:N, got gpu"),
        ({"precision": "float16"}, "--precision must be float32 or bfloat16, got float16"),
        ({"executor": "slurm"}, "--executor must be auto or debug or inline or ray, got slurm"),
        ({"ray-address": "auto", "executor": "inline"}, "--ray-address and --executor inline cannot be combined"),
        ({"cell-timeout": "9s", "executor": "debug"}, "--cell-timeout and --executor debug cannot be combined"),
        ({"cell-timeout": "soon"}, "--cell-timeout must be a time"),
        ({"retry": "some"}, "--retry must be all, or one or more of failed, stale, done, got some"),
        ({"retry": "all", "keep-stale": True}, "--keep-stale and --retry failed,stale,done cannot be combined"),
        ({"data-dir": "/no/such/folder"}, "--data-dir must be a folder that exists, got /no/such/folder"),
        ({"out": ""}, "--out must be a path, got ''"),
        (
            {"set": ("dllp",)},
            "--set must be METHOD.PARAM=VALUE, such as dllp.learning_rate=1e-3, or several: dllp.learning_rate=1e-4",
        ),
        ({"set": ("dllp.rate=",)}, "--set must be METHOD.PARAM=VALUE"),
        ({"set": ("dllp.rate=,",)}, "--set must be METHOD.PARAM=VALUE"),
        ({"set": ("dllp.rate=1", "dllp.rate=2")}, "--set must be given once for dllp.rate"),
        ({"tune": "0"}, "--tune must be a positive whole number, got 0"),
        ({"tune-seed": "-1"}, "--tune-seed must be a whole number, 0 or more, got -1"),
        ({"tune-sampler": "cmaes"}, "--tune-sampler must be tpe or random, got cmaes"),
        ({"tune-sampler": "random"}, "--tune-sampler needs --tune N"),
        ({"tune": "9", "study": "fine-grained"}, "--tune and --study cannot be combined"),
        ({"tune": "9", "ensemble": "5"}, "--tune and --ensemble cannot be combined"),
        ({"tune": "9", "average": "half"}, "--tune and --average cannot be combined"),
        ({"average": "half:0"}, "--average must be half or ema, with a number of epochs if not 30, such as half:50"),
        ({"ensemble": "0"}, "--ensemble must be a positive whole number, got 0"),
        ({"tune": "9", "seeds": "999-1001"}, "--tune-seed 1000 is one of --seeds"),
    ],
)
def test_bad_flags_are_refused(flags: dict[str, Any], message: str) -> None:
    assert error_of(flags).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bag-size = 64", "unknown name bag-size in {path}. Did you mean bag-sizes"),
        ("bag_sizes = 64", "unknown name bag_sizes in {path}. Did you mean bag-sizes"),
        ("colour = 1", "unknown name colour in {path}. Available: study, methods, datasets, "),
        ("bag-sizes = 0", "bag-sizes in {path} must be whole numbers"),
        ("methods = 3", "methods in {path} must be a text, got 3"),
        ("compile = 'yes'", "compile in {path} must be true or false, got yes"),
        ("set.dllp = 3", "set in {path} must be METHOD.PARAM=VALUE"),
        ("set.dllp.hidden = [[1]]", "set in {path} must be METHOD.PARAM=VALUE"),
        ("space.dllp.hidden = []", "space in {path} must be METHOD.PARAM = [LOW, HIGH]"),
        ("space = 3", "space in {path} must be METHOD.PARAM = [LOW, HIGH]"),
        ("preset = 'slow'", "unknown preset 'slow'. Available: quick, paper."),
        ("preset = []", "unknown preset []. Available: quick, paper."),
        ("seeds = ", "--config {path} is not TOML: Invalid value (at "),
    ],
)
def test_bad_config_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = config(tmp_path, text)
    assert error_of(config=path).startswith(message.format(path=repr(str(path))))
