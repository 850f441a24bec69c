"""Disks: where the data of a domain are, one file a kind."""
