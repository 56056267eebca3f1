"""What everything is written against: bags, methods, models, the registry, cells, records, criteria."""
