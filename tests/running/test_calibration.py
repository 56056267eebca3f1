"""How fast this machine is: measured once, kept in the user's cache, measured again where things differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llpbench.core.cell import Environment
from llpbench.core.registry import load_plugin
from llpbench.running.calibration import FILE, Calibration
from llpbench.training import device


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a machine of its own."""
    monkeypatch.setattr(device, "is_shared", lambda *_: False)
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / FILE


def test_it_is_measured_once_and_again_where_things_differ(cache: Path) -> None:
    said: list[str] = []
    environment = Environment(device="cpu")
    rate = Calibration(environment, said.append)("mlp")
    assert rate is not None
    assert 0 < rate < 1e-3
    assert list(json.loads(cache.read_text()).values()) == [rate]
    assert said == ["measuring how fast this machine is with encoder mlp: a few seconds, once"]
    assert Calibration(environment, said.append)("mlp") == rate
    assert len(said) == 1
    assert Calibration(Environment(device="cpu", threads=2), said.append)("mlp") is not None
    assert len(said) == len(json.loads(cache.read_text())) == 2, "other threads"


def test_what_is_measured_on_a_busy_machine_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(device, "is_shared", lambda *_: True)
    assert Calibration(Environment(device="cpu"), said.append)("mlp") is not None
    assert not cache.exists()
    assert said[0].endswith("a few seconds, and again next time, since others use it now")


@pytest.mark.parametrize("damaged", ["", "[]", '{"a": "b"}', "{"])
def test_a_damaged_file_is_measured_anew(cache: Path, damaged: str) -> None:
    cache.parent.mkdir()
    cache.write_text(damaged)
    rate = Calibration(Environment(device="cpu"), lambda _: None)("mlp")
    assert list(json.loads(cache.read_text()).values()) == [rate]


def test_where_nothing_can_be_kept_it_is_measured_every_time(cache: Path) -> None:
    cache.parent.write_text("a file, not a folder")
    said: list[str] = []
    calibration = Calibration(Environment(device="cpu"), said.append)
    assert calibration("mlp") is not None
    assert calibration("mlp") is not None
    assert len(said) == 2


def test_an_encoder_that_cannot_be_trained_has_no_speed(cache: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "faulty.py"
    plugin.write_text(
        "from llpbench.core.registry import register_encoder\n"
        "from llpbench.encoders.mlp import MLPEncoder\n"
        "@register_encoder('faulty', learning_rate=1e-3, hidden=64)\n"
        "class Faulty(MLPEncoder):\n"
        "    def encode(self, embeddings, mask, random):\n"
        "        raise ValueError('no luck')\n"
    )
    load_plugin(plugin)
    assert Calibration(Environment(device="cpu"), lambda _: None)("faulty") is None
    assert not cache.exists()
