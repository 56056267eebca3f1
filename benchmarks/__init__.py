"""Speed and memory, measured by hand: never part of a test run."""
