"""The journal: what is known, merged from several machines."""
