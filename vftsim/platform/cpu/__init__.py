"""Hosts, virtual CPUs, guests and the work they do."""
