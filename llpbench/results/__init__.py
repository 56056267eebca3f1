"""The journal of results: reading, writing, merging, publishing."""
