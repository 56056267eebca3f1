"""Presets, configuration file and flags become one value; what cannot be read is one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench import dedent

from llpbench.core.cell import Protocol
from llpbench.core.errors import LLPBenchError
from llpbench.running.settings import OPTIONS, PRESETS, resolve


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
    assert [OPTIONS[name].default for name in ("bag-sizes", "threads", "plugin", "time-budget")] == [256, 1, None, None]


def test_flags_override_file_and_file_overrides_preset(tmp_path: Path) -> None:
    path = config(tmp_path, 'preset = "paper"\nbag-sizes = [64, 256]\nseeds = 5\nepochs = 7')
    settings = resolve({"seeds": "2"}, config=path)
    assert settings.seeds == (0, 1)
    assert settings.bag_sizes == (64, 256)
    assert settings.protocol == Protocol(epochs=7)
    assert settings.encoders == "saint"
    assert resolve({}, config=path, preset="quick").encoders == "mlp"
    path.write_text(path.read_text(), encoding="utf-8-sig")  # as some editors of Windows do
    assert resolve({"seeds": "2"}, config=path) == settings


SAMPLES: dict[str, object] = {
    **dict.fromkeys(("methods", "datasets", "baggings", "encoders"), "dllp"),
    **dict.fromkeys(("max-bags", "seeds", "epochs", "patience", "bags-per-step", "threads", "tune"), 7),
    **dict.fromkeys(("compile", "keep-stale", "save-predictions", "plots"), True),
    "pretraining": "none,bag",
    "bag-sizes": "64,256",
    "out": "there",
    "device": "cpu",
    "precision": "bfloat16",
    "ensemble": 1,
    "executor": "ray",
    "ray-address": "auto",
    "cell-timeout": "2h",
    "retry": "failed",
    "time-budget": "9m",
    "data-dir": "/",
    "plugin": "mine.py",
    "tune-regimes": "coarse",
    "tune-sampler": "random",
    "tune-seed": 77,
    "numbers": "scores,robust",
}
"""a value of each option; `study` and `average` exclude --tune, and `set` has a form of its own"""


def test_config_file_accepts_every_flag(tmp_path: Path) -> None:
    assert SAMPLES.keys() == OPTIONS.keys() - {"study", "average", "set"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in SAMPLES.items()]
    path = config(tmp_path, "\n".join([*lines, "set.dllp.hidden = 64"]))
    flags = {name: value if isinstance(value, bool) else str(value) for name, value in SAMPLES.items()}
    from_file, from_flags = resolve({}, config=path), resolve({**flags, "set": ("dllp.hidden=64",)})
    assert from_file.set == {"dllp": {"hidden": 64}}
    assert from_flags.set == {"dllp": {"hidden": "64"}}  # its method reads it
    apart: dict[str, object] = {"set": {}, "narrowed": frozenset()}
    assert vars(from_file) | apart == vars(from_flags) | apart


def test_repeated_options_accumulate(tmp_path: Path) -> None:
    path = config(tmp_path, 'plugin = "/a.py"\nset.dllp.hidden = 64\nset.dllp.dropout = 0.2\nset.supervised.hidden = 9')
    given = ("dllp.hidden=256", "x-v1.5.y=a=b.c", "x-v1.5.z=(1, 2),3")
    settings = resolve({"plugin": ("/b.py", "/a.py"), "set": given}, config=path)
    assert settings.plugin == ("/a.py", "/b.py")
    dllp = {"hidden": "256", "dropout": 0.2}
    assert settings.set == {"supervised": {"hidden": 9}, "x-v1.5": {"y": "a=b.c", "z": ["(1, 2)", "3"]}, "dllp": dllp}


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        *(("seeds", given, (0, 1, 2)) for given in ("3", 3, "0-2", "0,1,2,1")),
        *(("seeds", given, (7,)) for given in ("7-7", "7,", [7])),
        *(("seeds", given, (0, 3, 7, 8)) for given in ("0,3,7-8", [0, 3, 7, 8])),
        ("seeds", "0-149", tuple(range(150))),
        *(("bag-sizes", given, (64, 256)) for given in ("64,256, 64", [64, 256])),
        *(("bag-sizes", given, (64,)) for given in (64, "64")),
        *(("time-budget", given, 540) for given in ("540s", "9m", "0.15h", 540, "540")),
        ("time-budget", 1.5, 1.5),
        *(("retry", given, ("failed", "stale", "done")) for given in ("all", ["all"])),
    ],
)
def test_numbers_and_times_are_parsed(name: str, given: Any, expected: Any) -> None:
    assert getattr(resolve({name: given}), name.replace("-", "_")) == expected


BAD: dict[str, list[Any]] = {
    "seeds": [
        "0",
        "-1",
        "x",
        "1.5",
        "5-3",
        "0-99999999",
        "99999999",
        "101",
        "1,x",
        f"3,{10**16}",
        "-2-4",
        "",
        True,
        2.0,
        [],
    ],
    "bag-sizes": ["0", "-64", "many", "64,x", "2.5", "1e3", "²", "", 10**16, 2.5, [64, "x"], True, None],
    "time-budget": ["0", "-3m", "soon", "1.2.3s", "9 days", "", True, "inf"],
    **{name: ["0", "-1", "two"] for name in ("epochs", "patience", "threads", "tune", "ensemble")},
    "device": ["gpu"],
    "precision": ["float16"],
    "executor": ["slurm"],
    "cell-timeout": ["soon"],
    "retry": ["some"],
    "data-dir": ["/no/such/folder"],
    "out": [""],
    "tune-seed": ["-1"],
    "tune-sampler": ["cmaes"],
    "average": ["half:0", "all"],
    "set": [("dllp",), ("dllp.rate=",), ("d.rate=,",), ("d.rate=1", "d.rate=2")],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_values_are_refused(name: str) -> None:
    for each in BAD[name]:
        message = error_of({name: each})
        assert message.startswith(f"--{name} must be "), each
        assert str(each[0] if isinstance(each, tuple | list) and each else each) in message


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"ray-address": "auto", "executor": "inline"}, "--ray-address and --executor inline"),
        ({"cell-timeout": "9s", "executor": "debug"}, "--cell-timeout and --executor debug"),
        ({"retry": "all", "keep-stale": True}, "--keep-stale and --retry failed,stale,done"),
        ({"tune-sampler": "random"}, "--tune-sampler needs --tune N"),
        ({"tune": "9", "study": "fine-grained"}, "--tune and --study"),
        ({"tune": "9", "ensemble": "5"}, "--tune and --ensemble"),
        ({"tune": "9", "average": "half"}, "--tune and --average"),
        ({"study": "fine-grained", "average": "half"}, "--average and --study"),
        ({"tune": "9", "seeds": "999-1001"}, "--tune-seed 1000 is one of --seeds"),
    ],
)
def test_conflicting_flags_are_refused(flags: dict[str, Any], named: str) -> None:
    assert error_of(flags).startswith(named)


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
        ("preset = 'slow'", "unknown preset 'slow'. Available: quick, paper."),
        ("preset = []", "unknown preset []. Available: quick, paper."),
        ("seeds = ", "--config {path} is not TOML: Invalid value (at "),
    ],
)
def test_bad_config_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = config(tmp_path, text)
    assert error_of(config=path).startswith(message.format(path=repr(str(path))))
