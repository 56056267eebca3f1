"""Any dataset of OpenML, by its number: `--datasets openml:31`.

Target, types and missing values are those of OpenML (`llpbench/data/loading.py`). With two classes, the later in
string order is positive.
"""

from llpbench.core.registry import DATASETS
from llpbench.data.loading import openml_by_id

DATASETS.unlisted = openml_by_id
