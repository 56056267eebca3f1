"""Your own data in bags, without labels: fit, predict, disaggregate, save."""
