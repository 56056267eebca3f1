"""The datasets: specifications, sources, baggings and splits. `llpbench list datasets` names them."""
