"""The registry of executors. To add one, add a line with the name of its module, which has a function `make`."""

EXECUTORS = {"inline": "inline", "ray": "ray_executor", "debug": "debug"}
