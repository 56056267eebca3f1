"""Datasets and baggings, one per file (`llpbench list datasets`, `llpbench list baggings`)."""
