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
