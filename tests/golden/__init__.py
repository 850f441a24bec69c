"""Golden results: what the simulation gives today, number by number, for whatever is built in its place."""
