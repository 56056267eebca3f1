"""Compiled steps, predictions a chunk at a time, steps that a GPU records, and memory of a process."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path

import pytest
import torch
from bench import dedent, python
from small import population, small_encoder

from benchmarks.gpu.traces import Subject, identical
from llpbench.core.cell import Environment, Protocol
from llpbench.core.method import Stage
from llpbench.methods.dllp import DLLP
from llpbench.training import cell_runs, device
from llpbench.training.cell_runs import REPAID_AFTER, _compiles_on_cpu, _most_together
from llpbench.training.cohort import Prediction
from llpbench.training.device import Machine, compiler_exists, keep_compiled_code, remove_damaged
from llpbench.training.objective import log_proba
from llpbench.training.specification import make_cell
from llpbench.training.stage import StageRun, _MemberView
from llpbench.training.training_data import stacked_rows


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
    assert python(code, check=True).stdout.strip() == str(tmp_path / "compiled")


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


def measure(code: str) -> list[float]:
    """The numbers that some code prints, in a process of its own."""
    return [float(word) for word in python(dedent(code), check=True).stdout.split()]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reset a peak")
def test_peak_memory_counts_from_reset() -> None:
    before, large, kept, small = measure(
        """
        import numpy as np
        from llpbench.training import memory

        memory.keep_freed()
        memory.reset_peak()
        print(memory.peak_mb())
        blocks = [np.ones(10**5) for _ in range(250)]  # 200 MB
        print(memory.peak_mb())
        del blocks
        memory.reset_peak()
        print(memory.peak_mb())
        memory.give_back()
        memory.reset_peak()
        print(memory.peak_mb())
        """
    )
    assert large > before + 180
    assert kept > before + 150, "glibc has kept it"
    assert small < before + 50


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory is kept by means of glibc")
def test_allocator_keeps_freed_memory() -> None:
    code = """
        import resource, torch
        from llpbench.training.memory import keep_freed

        def faults():
            for _ in range(20):  # until the heap is large enough for every order in which it splits and joins blocks
                torch.zeros(9 * 2**20) + 1  # 38 MB: what glibc never keeps by itself
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(2):
                torch.zeros(9 * 2**20) + 1
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

        print(faults())
        keep_freed()
        print(faults())
        """
    given_back, kept = measure(code)
    assert kept * 20 < given_back


SLOTS = torch.arange(1)
METHOD = DLLP(DLLP.Params(hidden=16, learning_rate=0.01, dropout=0.0))


@pytest.mark.parametrize("at_once", [1000, 64, 7])
def test_prediction_is_independent_of_batch_size(at_once: int) -> None:
    members = population(METHOD, range(2))
    rows = stacked_rows([member.task.validation.rows for member in members.members], members.machine.device)
    slots = torch.arange(2)
    weights = members.weights(members.state.weights, slots, members.state.buffers)
    expected = members.prediction(log_proba, weights, slots, rows, slots)
    assert expected.shape[:2] == rows.numeric.shape[:2]
    for filled in (False, True):
        predict = Prediction(members.map, members.data.prior, at_once, filled)
        torch.testing.assert_close(predict(log_proba, weights, slots, rows, slots), expected, atol=1e-6, rtol=0)


def test_cpu_compiled_predictions_are_unchanged() -> None:
    """Of the validation rows, and of the training rows where a method asks for them."""
    if not compiler_exists():  # asked here alone: the answer takes seconds, in each process that collects tests
        pytest.skip("no C++ compiler")
    members, alone = (
        population(METHOD, [0], encoder=lambda _: small_encoder("saint"), machine=Machine(compiled=compiled))
        for compiled in (True, False)
    )
    criteria, expected = (
        each.validation.criteria(each.judging, each.weights(each.state.weights, SLOTS, each.state.buffers), SLOTS)
        for each in (members, alone)
    )
    assert criteria.keys() == expected.keys()
    for name, values in criteria.items():
        assert values == pytest.approx(expected[name], abs=1e-5), name
    views = [_MemberView(StageRun(each, Stage(), each.state), 0, 0) for each in (members, alone)]
    before = views[0].proba()
    for view in views:  # as methods do
        with torch.no_grad():
            for weight in view.network.head.parameters():
                weight.mul_(2.0)
    of_training, eager = (view.proba() for view in views)
    assert of_training == pytest.approx(eager, abs=1e-5)
    assert of_training != pytest.approx(before, abs=1e-2)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

GPU = torch.device("cuda")
STEPS = 5
"""two are run, the third is recorded, the others are replayed"""


@needs_gpu
@pytest.mark.parametrize("name", ["dllp", "llp-gan", "tabllp-self", "tabllp-bdc"])
def test_recorded_steps_equal_eager_steps(name: str) -> None:
    subject = Subject(name, "mlp")
    plain, recorded = (subject.trace([0, 1], Machine(GPU, recorded=each), STEPS) for each in (False, True))
    assert identical(plain, recorded)


@needs_gpu
@pytest.mark.parametrize(("name", "graphs"), [("dllp", 1), ("tabllp-bdc", 0)])
def test_synchronising_step_is_not_recorded(name: str, graphs: int) -> None:
    population = Subject(name, "mlp").population([0], Machine(GPU, recorded=True))
    run = StageRun(population, population.method.stages[-1], population.state)
    plan, progress = run.plan(0), torch.ones(4, device=GPU)
    for step in range(STEPS):
        run.step(plan, step, progress)
    assert run._recorded is not None
    assert len(run._recorded._graphs) == graphs
