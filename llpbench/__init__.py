"""llpbench: the benchmark suite for learning from label proportions on tables.

The front door: whatever an author or a notebook needs comes from here, in one line::

    from llpbench import Bags, Method, Model, Now, losses, register_method

Names are imported at their first use (`_PLACE_OF`), so importing this package loads neither torch nor pandas.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.core import PACKAGE
from llpbench.core import __version__ as __version__

if TYPE_CHECKING:  # `__getattr__` imports these names at run time
    from llpbench.blocks import losses as losses
    from llpbench.core.bags import BaggedRows as BaggedRows
    from llpbench.core.bags import Bags as Bags
    from llpbench.core.bags import FloatArray as FloatArray
    from llpbench.core.bags import IntArray as IntArray
    from llpbench.core.bags import Rows as Rows
    from llpbench.core.bags import Schema as Schema
    from llpbench.core.errors import LLPBenchError as LLPBenchError
    from llpbench.core.method import DirectMethod as DirectMethod
    from llpbench.core.method import DirectParams as DirectParams
    from llpbench.core.method import Member as Member
    from llpbench.core.method import Method as Method
    from llpbench.core.method import MethodParams as MethodParams
    from llpbench.core.method import Now as Now
    from llpbench.core.method import Pairs as Pairs
    from llpbench.core.method import Phase as Phase
    from llpbench.core.method import Predictor as Predictor
    from llpbench.core.method import Reports as Reports
    from llpbench.core.method import Stage as Stage
    from llpbench.core.model import MLP as MLP
    from llpbench.core.model import Encoder as Encoder
    from llpbench.core.model import Encoding as Encoding
    from llpbench.core.model import Model as Model
    from llpbench.core.model import Network as Network
    from llpbench.core.model import Random as Random
    from llpbench.core.ranges import AtLeast as AtLeast
    from llpbench.core.ranges import Choice as Choice
    from llpbench.core.ranges import LogUniform as LogUniform
    from llpbench.core.ranges import Uniform as Uniform
    from llpbench.core.ranges import When as When
    from llpbench.core.registry import register_bagging as register_bagging
    from llpbench.core.registry import register_dataset as register_dataset
    from llpbench.core.registry import register_encoder as register_encoder
    from llpbench.core.registry import register_method as register_method
    from llpbench.core.registry import register_suite as register_suite
    from llpbench.core.tables import Table as Table
    from llpbench.data.baggings import grouped as grouped
    from llpbench.data.baggings import shuffled as shuffled
    from llpbench.data.sources import OpenML as OpenML
    from llpbench.data.sources import Parquet as Parquet
    from llpbench.interactive.loaded import Results as Results
    from llpbench.interactive.loaded import load_results as load_results
    from llpbench.interactive.sweep import run as run
    from llpbench.owndata.bag_data import BagData as BagData
    from llpbench.owndata.choosing import choose as choose
    from llpbench.owndata.classifier import LLPClassifier as LLPClassifier
    from llpbench.owndata.cross_tables import CrossTable as CrossTable
    from llpbench.owndata.cross_tables import cross_table as cross_table
    from llpbench.owndata.fitted import bag_scorer as bag_scorer
    from llpbench.tables.number_text import as_numbers as as_numbers
    from llpbench.tables.texts import as_text as as_text

_TREE = ast.parse(Path(__file__).read_bytes())
_BLOCK = next(node.body for node in _TREE.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
_PLACE_OF = {name.name: str(line.module) for line in _BLOCK if isinstance(line, ast.ImportFrom) for name in line.names}
"""module of each public name: the imports above, which type checkers alone execute"""


class _Checkout:
    """Finds contributions beside this package, where a checkout has them; an installation has them inside."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG004
        if name not in ("llpbench.methods", "llpbench.datasets"):
            return None
        file = PACKAGE.parent / name.removeprefix("llpbench.") / "__init__.py"
        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(file.parent)])


if not (PACKAGE / "methods").is_dir():
    sys.meta_path.insert(0, _Checkout)  # before that of another checkout which is installed


def __getattr__(name: str) -> Any:
    """A public name, imported at its first use, which may take seconds (torch)."""
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = _PLACE_OF[name]
    value = getattr(importlib.import_module(place), name, None)
    if value is None:  # a module, such as `losses`
        value = importlib.import_module(f"{place}.{name}")
    globals()[name] = value
    return value


__all__ = [*_PLACE_OF]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
