"""Datasets by theme, and baggings (`llpbench list datasets`, `llpbench list baggings`)."""
