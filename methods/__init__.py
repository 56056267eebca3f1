"""The methods: one file each, found by the registry. `llpbench list methods` names them."""
