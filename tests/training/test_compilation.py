"""Compiled steps: where they are used, how matrices are multiplied, and how damaged stored libraries are handled."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from llpbench.core.cell import Environment, Protocol
from llpbench.training import cell_runs, device
from llpbench.training.cell_runs import REPAID_AFTER, _compiles_on_cpu, _most_together
from llpbench.training.device import Machine, keep_compiled_code, remove_damaged
from llpbench.training.specification import make_cell


@pytest.mark.parametrize(
    ("method", "encoder", "epochs", "compiler", "compiled"),
    [
        ("dllp", "saint", 10_000, True, True),
        ("dllp", "saint", 10, True, False),
        ("dllp", "saint", 10_000, False, False),
        ("dllp", "saint-row", 10_000, True, False),
        ("dllp", "mlp", 10_000, True, False),
        ("llp-vat", "saint", 10_000, True, False),
    ],
)
def test_only_long_deep_trainings_are_compiled_on_cpu(
    monkeypatch: pytest.MonkeyPatch, method: str, encoder: str, epochs: int, compiler: bool, compiled: bool
) -> None:
    monkeypatch.setattr(cell_runs, "compiler_exists", lambda: compiler)
    cell = make_cell(method, "adult", bag_size=16, encoder=encoder, protocol=Protocol(epochs))
    assert _compiles_on_cpu(cell, Environment(), rows=1_000) is compiled
    assert not _compiles_on_cpu(cell, Environment(), rows=(REPAID_AFTER - 1) // epochs)
    for asked in (True, False):
        assert _compiles_on_cpu(cell, Environment(compile=asked), rows=1_000) is asked


@pytest.mark.parametrize(
    ("encoder", "device", "compiled", "most"),
    [
        ("saint", "cpu", True, 1),
        ("saint", "cpu", False, None),
        ("saint", "cuda", True, None),
        ("mlp", "cpu", True, None),
    ],
)
def test_compiled_deep_encoder_trains_one_member_at_a_time(
    encoder: str, device: str, compiled: bool, most: int | None
) -> None:
    cell = make_cell("dllp", "adult", bag_size=16, encoder=encoder)
    assert _most_together(cell, Machine(torch.device(device), compiled)) == most


def test_only_damaged_compiled_library_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, foreign = tmp_path / "kept", tmp_path / "foreign"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(kept))
    for folder, removed in ((kept, True), (foreign, False)):
        library = folder / "half.main.so"
        folder.mkdir()
        library.touch()
        with pytest.raises(OSError, match="file too short") as told:
            ctypes.CDLL(str(library))
        assert remove_damaged(RuntimeError(f"ImportError: {told.value}")) is removed
        assert library.exists() is not removed
    assert not remove_damaged(RuntimeError("something else"))


def test_compiled_code_goes_to_cache_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "mine")
    keep_compiled_code()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "mine"
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    code = "import os; from llpbench.training import device; device.compiler_exists(); "
    code += "print(os.environ['TORCHINDUCTOR_CACHE_DIR'])"  # the first look for a compiler must not choose another
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path / "compiled")


MATMUL = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("machine", "processor", "exact", "quick"),
    [
        (Machine(compiled=True), "AMD EPYC", True, True),
        (Machine(compiled=True), "Intel(R) Xeon(R)", True, False),
        (Machine(compiled=True), "AMD EPYC", False, False),
        (Machine(compiled=False), "AMD EPYC", True, False),
        (Machine(torch.device("cuda"), compiled=True), "AMD EPYC", True, False),
    ],
)
def test_onednn_multiplies_only_exact_compiled_float32(
    monkeypatch: pytest.MonkeyPatch, machine: Machine, processor: str, exact: bool, quick: bool
) -> None:
    monkeypatch.setattr(device, "_onednn_is_exact", lambda: exact)
    monkeypatch.setattr(device, "_processor", lambda: processor)
    before = MATMUL.fp32_precision
    with machine.fast_products():
        assert (MATMUL.fp32_precision != before) is quick
    assert MATMUL.fp32_precision == before
    with pytest.raises(ZeroDivisionError), machine.fast_products():
        _ = 1 / 0
    assert MATMUL.fp32_precision == before
