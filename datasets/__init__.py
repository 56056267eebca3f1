"""The datasets: specifications, sources, baggings and splits. `llpbench list datasets` names them.

One file a dataset (`adult.py`) or bagging (`bagging_ordered.py`); copy one to add another. What they flow through:
`sources` (where data come from) -> `loading` (find, check, keep) -> `specs` and `frames` (a frame becomes a `Table`) ->
`splits` and `baggings` (a `Table` becomes an `Assignment` of rows to bags). `catalogue` answers what there is.
"""
