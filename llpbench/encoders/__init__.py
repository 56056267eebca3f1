"""Encoders, one per file, found by the registry. `llpbench list encoders` names them."""
