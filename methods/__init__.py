"""The methods, one file each. The registry finds them, and `llpbench list methods` lists them."""
