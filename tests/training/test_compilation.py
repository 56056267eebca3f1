"""Where steps are compiled, and what is done with a damaged library among those kept."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from llpbench.core.cell import Environment, Protocol
from llpbench.methods.dllp import DLLP
from llpbench.training import compilation, device
from llpbench.training.compilation import (
    REPAID_AFTER,
    REPAID_AFTER_SHALLOW,
    compiles_on_cpu,
    forget_compiled,
    keep_compiled_code,
    most_together,
    remove_damaged,
)
from llpbench.training.device import Machine, quick_products
from llpbench.training.specification import make_cell


@pytest.mark.parametrize(
    ("method", "encoder", "epochs", "compiler", "compiled"),
    [
        ("dllp", "saint", 1_000, True, True),
        ("dllp", "saint", 10, True, False),
        ("dllp", "saint", 1_000, False, False),
        ("dllp", "saint-row", 1_000, True, False),
        ("dllp", "mlp", 1_000, True, False),
        ("dllp", "mlp", 10_000, True, True),
        ("dllp", "mlp", 10_000, False, False),
        ("llp-vat", "saint", 10_000, True, False),
        ("llp-gan", "mlp", 10_000, True, False),
    ],
)
def test_only_long_trainings_are_compiled_on_a_cpu(
    monkeypatch: pytest.MonkeyPatch, method: str, encoder: str, epochs: int, compiler: bool, compiled: bool
) -> None:
    monkeypatch.setattr(compilation, "compiler_exists", lambda: compiler)
    cell = make_cell(method, "adult", bag_size=16, encoder=encoder, protocol=Protocol(epochs))
    assert compiles_on_cpu(cell, Environment(), rows=1_000) is compiled
    for asked in (True, False):
        assert compiles_on_cpu(cell, Environment(compile=asked), rows=1_000) is asked


@pytest.mark.parametrize(("attribute", "compiled"), [("compiles", True), ("compiles", False), ("stackable", False)])
def test_a_method_that_forbids_it_or_looks_at_values_is_compiled_only_if_asked(
    monkeypatch: pytest.MonkeyPatch, attribute: str, compiled: bool
) -> None:
    monkeypatch.setattr(compilation, "compiler_exists", lambda: True)
    monkeypatch.setattr(DLLP, attribute, compiled)
    cell = make_cell("dllp", "adult", bag_size=16, encoder="saint", protocol=Protocol(1_000))
    assert compiles_on_cpu(cell, Environment(), rows=1_000) is compiled
    assert compiles_on_cpu(cell, Environment(compile=True), rows=1_000)


@pytest.mark.parametrize(("encoder", "repaid"), [("saint", REPAID_AFTER), ("mlp", REPAID_AFTER_SHALLOW)])
def test_training_is_long_from_a_number_of_rows_and_epochs(
    monkeypatch: pytest.MonkeyPatch, encoder: str, repaid: int
) -> None:
    monkeypatch.setattr(compilation, "compiler_exists", lambda: True)
    cell = make_cell("dllp", "adult", bag_size=16, encoder=encoder, protocol=Protocol(epochs=100))
    assert [compiles_on_cpu(cell, Environment(), repaid // 100 + more) for more in (-1, 0)] == [False, True]


def test_booleans_are_not_kept_for_the_gradient_where_that_is_slow() -> None:
    """Where a ReLU was positive is asked of its output again, which is kept anyway."""
    for machine, again in ((Machine(), True), (Machine(precision=torch.bfloat16), False)):
        forget_compiled(machine)
        assert torch._functorch.config.recompute_views is again


@pytest.mark.parametrize(
    ("encoder", "device", "compiled", "members", "most"),
    [
        ("saint", "cpu", True, None, 1),
        ("saint", "cpu", True, 3, 3),
        ("saint", "cpu", False, None, None),
        ("saint", "cuda", True, None, None),
        ("mlp", "cpu", True, None, None),
    ],
)
def test_a_deep_encoder_compiled_for_a_cpu_trains_one_at_a_time(
    encoder: str, device: str, compiled: bool, members: int | None, most: int | None
) -> None:
    cell = make_cell("dllp", "adult", bag_size=16, encoder=encoder)
    assert most_together(cell, Environment(members=members), Machine(torch.device(device), compiled)) == most


def test_a_damaged_library_is_removed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, foreign = tmp_path / "kept", tmp_path / "foreign"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(kept))
    for folder, removed in ((kept, True), (foreign, False)):
        folder.mkdir()
        library = folder / "half.main.so"
        library.touch()
        with pytest.raises(OSError, match="file too short") as told:
            ctypes.CDLL(str(library))
        assert remove_damaged(RuntimeError(f"ImportError: {told.value}")) is removed
        assert library.exists() is not removed
    assert not remove_damaged(RuntimeError("something else"))


def test_a_folder_of_ones_own_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "mine")
    keep_compiled_code()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "mine"
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    keep_compiled_code()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "compiled")


def test_looking_for_a_compiler_does_not_settle_on_a_temporary_folder(tmp_path: Path) -> None:
    told = "import os; from llpbench.training import compilation; compilation.compiler_exists(); "
    told += "print(os.environ['TORCHINDUCTOR_CACHE_DIR'])"
    fresh = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", told],
        env={**fresh, "LLPBENCH_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(tmp_path / "compiled")


PAIR = [torch.arange(96.0**2).mul(pace).sin().reshape(96, 96) for pace in (1.0, 1.7)]
MATMUL = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("machine", "exact", "quick"),
    [
        (Machine(compiled=True), True, True),
        (Machine(compiled=True), False, False),
        (Machine(compiled=False), True, False),
        (Machine(compiled=True, precision=torch.bfloat16), True, False),
        (Machine(torch.device("cuda"), compiled=True), True, False),
    ],
)
def test_another_library_multiplies_compiled_float32_alone_and_only_where_it_is_exact(
    monkeypatch: pytest.MonkeyPatch, machine: Machine, exact: bool, quick: bool
) -> None:
    monkeypatch.setattr(device, "_onednn_is_exact", lambda: exact)
    before = MATMUL.fp32_precision
    with quick_products(machine):
        assert (MATMUL.fp32_precision != before) is quick
    assert MATMUL.fp32_precision == before
    with pytest.raises(ZeroDivisionError), quick_products(machine):
        _ = 1 / 0
    assert MATMUL.fp32_precision == before


def test_products_have_the_error_of_float32_whatever_the_cpu() -> None:
    a, b = PAIR
    exact = a.double() @ b.double()
    with quick_products(Machine(compiled=True)):
        assert torch.allclose((a @ b).double(), exact, atol=1e-4)


def test_a_cpu_that_would_round_products_to_bfloat16_keeps_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one with AMX would, or a later torch."""
    matmul = torch.Tensor.__matmul__
    monkeypatch.setattr(torch.cpu, "_is_avx512_supported", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)

    def rounded(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if MATMUL.fp32_precision != "bf16" or a.dtype != torch.float32:
            return matmul(a, b)
        return matmul(a.bfloat16(), b.bfloat16()).float()

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounded)
    device._onednn_is_exact.cache_clear()
    try:
        assert not device._onednn_is_exact()
    finally:
        device._onednn_is_exact.cache_clear()
