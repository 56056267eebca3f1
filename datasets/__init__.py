"""The datasets and baggings: one file each, found by the registry (`llpbench list datasets`, `list baggings`)."""
