"""For people in Python and in notebooks: `llpbench.run` and `llpbench.load_results`."""
