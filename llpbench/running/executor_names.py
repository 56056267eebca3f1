"""The registry of executors: by name, the module of this room whose `make` returns one. To add one, add a line here."""

EXECUTORS = {"inline": "inline", "ray": "ray_executor", "debug": "debug"}
