"""Clusters as bags: each k-means cluster is a bag of any size."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.random import Generator

from llpbench.core.bags import IntArray
from llpbench.core.ranges import AtLeast
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import grouped, standardised

_BATCH = 4096
_LARGEST_SEED = 2**32


@register_bagging("kmeans", version=1)
def _kmeans(table: Table, rows: IntArray, rng: Generator, *, clusters: Annotated[int, AtLeast(2)] = 100) -> IntArray:
    """Cluster standardised numbers and frequent categories, and drop empty clusters.

    The clustering is scikit-learn's mini-batch k-means in one thread. Other versions may draw other clusters.
    """
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    seed = int(rng.bit_generator.random_raw() % _LARGEST_SEED)
    model = MiniBatchKMeans(clusters, batch_size=_BATCH, n_init=1, random_state=seed)
    with threadpool_limits(limits=1):  # bags must not depend on the number of threads
        found = model.fit_predict(standardised(table, rows))
    return grouped(rows, np.asarray(found, dtype=np.int64))
