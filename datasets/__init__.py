"""The datasets and baggings: one file each, found by the registry. `llpbench list datasets` and `baggings` name them."""
