"""Encoders, one per file. The registry finds them, and `llpbench list encoders` lists them."""
