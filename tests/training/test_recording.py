"""Steps that a GPU records and replays give the bits of steps that it does not."""

from __future__ import annotations

import pytest
import torch

from benchmarks.gpu.traces import Subject, identical
from llpbench.training.device import Machine
from llpbench.training.stage import StageRun

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

GPU = torch.device("cuda")
STEPS = 5
"""two are run, the third is recorded, the others are replayed"""


@pytest.mark.parametrize("name", ["dllp", "llp-gan", "tabllp-self", "tabllp-bdc"])
def test_recorded_steps_equal_eager_steps(name: str) -> None:
    subject = Subject(name, "mlp")
    plain, recorded = (subject.trace([0, 1], Machine(GPU, recorded=each), STEPS) for each in (False, True))
    assert identical(plain, recorded)


@pytest.mark.parametrize(("name", "graphs"), [("dllp", 1), ("tabllp-bdc", 0)])
def test_synchronising_step_is_not_recorded(name: str, graphs: int) -> None:
    population = Subject(name, "mlp").population([0], Machine(GPU, recorded=True))
    run = StageRun(population, population.method.stages[-1], population.state)
    plan, progress = run.plan(0), torch.ones(4, device=GPU)
    for step in range(STEPS):
        run.step(plan, step, progress)
    assert run._recorded is not None
    assert len(run._recorded._graphs) == graphs
