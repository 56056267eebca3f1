"""The contracts of the benchmark: bags, methods, models, the registry, cells, records and criteria."""
