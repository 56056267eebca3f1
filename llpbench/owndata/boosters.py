"""Check of boosters from untrusted files in a separate process, because some forged boosters crash XGBoost.

XGBoost never writes a tree with nodes or features outside its arrays, or with a cycle.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

_SECONDS = 120.0
"""Time limit for loading all boosters of a model."""
_MOST_CATEGORIES = 2**24
"""Largest number of categories of a feature in XGBoost."""
_OF_NODES = (
    *("left_children", "right_children", "split_indices", "split_conditions", "split_type"),
    *("default_left", "base_weights"),
)
"""Parts of a tree that have a value for each node."""


_sound: set[bytes] = set()
"""Digests of boosters that this process has written or checked. Checking takes seconds, so it is done once."""


class UnsoundError(ValueError):
    """A booster that cannot be used."""


def keep_sound(booster: bytes) -> None:
    """Mark a booster that XGBoost has just written in this process as checked."""
    _sound.add(hashlib.sha256(booster).digest())


def require_sound(boosters: Sequence[bytes]) -> None:
    """Raise `UnsoundError` unless XGBoost loads all boosters and all trees are valid."""
    boosters = [each for each in boosters if hashlib.sha256(each).digest() not in _sound]
    if not boosters:
        return
    places = os.pathsep.join(dict.fromkeys(os.path.abspath(place or os.curdir) for place in sys.path))
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", f"from {__name__} import main; main()"],
            input=pickle.dumps(list(boosters)),
            capture_output=True,
            env={**os.environ, "PYTHONPATH": places},
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnsoundError(f"a booster does not load within {_SECONDS:.0f} s") from None
    if done.returncode:
        raise UnsoundError("a booster is damaged")
    for each in boosters:
        keep_sound(each)


def main() -> None:
    """Load boosters in a separate process. Any error means that one is damaged."""
    import xgboost

    for content in pickle.load(sys.stdin.buffer):
        booster = xgboost.Booster(model_file=bytearray(content))
        _require_trees(json.loads(bytes(booster.save_raw("json")))["learner"])


def _require_trees(learner: dict[str, Any]) -> None:
    shape = learner["learner_model_param"]
    features, outputs = int(shape["num_feature"]), max(int(shape["num_class"]), int(shape["num_target"]), 1)
    model = learner["gradient_booster"]["model"]
    _require(all(0 <= output < outputs for output in model["tree_info"]))
    _require(len(model["tree_info"]) == len(model["trees"]))
    for tree in model["trees"]:
        _require_tree(tree, features)


def _require_tree(tree: dict[str, Any], features: int) -> None:
    """Visit the nodes that rows can reach. Raise an error for an invalid tree."""
    nodes = int(tree["tree_param"]["num_nodes"])
    _require(nodes > 0 and all(len(tree[part]) == nodes for part in _OF_NODES))
    segments = zip(tree["categories_segments"], tree["categories_sizes"], strict=True)
    several = dict(zip(tree["categories_nodes"], segments, strict=True))
    _require(all(0 <= category < _MOST_CATEGORIES for category in tree["categories"]))
    seen, waiting = set[int](), [0]
    while waiting:
        node = waiting.pop()
        _require(0 <= node < nodes and node not in seen)
        seen.add(node)
        children = [tree[side][node] for side in ("left_children", "right_children")]
        if children[0] == -1:
            continue
        waiting += children
        _require(0 <= tree["split_indices"][node] < features)
        if tree["split_type"][node]:
            start, size = several[node]
            _require(min(start, size) >= 0 and start + size <= len(tree["categories"]))


def _require(sound: bool) -> None:
    if not sound:
        raise UnsoundError("a tree leads nowhere")
