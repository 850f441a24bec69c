"""Measured laboratories: datasets described by a file of their own, and what measuring tools write into them."""
