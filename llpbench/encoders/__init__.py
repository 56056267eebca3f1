"""The encoders: one file each, found by the registry. `llpbench list encoders` names them."""
