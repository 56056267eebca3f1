"""Random streams derived from (seed, purpose), so that no two purposes share numbers."""

from __future__ import annotations

import hashlib

import numpy as np


def sequence(seed: int, *purpose: str | int) -> np.random.SeedSequence:
    """Return the seed sequence of a purpose, e.g. `sequence(3, "split", "adult")`. Stable across runs and machines."""
    words = [int.from_bytes(hashlib.sha256(str(part).encode()).digest()[:8], "little") for part in purpose]
    return np.random.SeedSequence([seed, *words])


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return a numpy generator for a purpose. It is PCG64, since numpy may change its default."""
    return np.random.Generator(np.random.PCG64(sequence(seed, *purpose)))


def torch_seed(seed: int, *purpose: str | int) -> int:
    """Return a 63-bit integer for `torch.Generator.manual_seed`, for one purpose."""
    return int(sequence(seed, *purpose).generate_state(1, np.uint64)[0] >> np.uint64(1))
