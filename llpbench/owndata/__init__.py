"""Data of one's own, in bags, of which no label is known: fit, predict, disaggregate, save."""
