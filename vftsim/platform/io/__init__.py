"""Packets and their way: ports, rings, stages, network cards, links, paths into a guest."""
