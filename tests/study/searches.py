"""Searches of a SIP benchmark with the settings of a test."""

from vftsim.study.designs.capacity import searched
from vftsim.study.designs.find_capacity import constant_load_studies
from vftsim.study.designs.search_levels import CapacityRequest


def search_study(model, seed, jobs, *, settings, stop=None, store=None):
    """The capacity at constant load; with a stop the failover-safe capacity."""
    request = CapacityRequest(seed=seed, jobs=jobs, store=store)
    return searched(model, request, settings, constant_load_studies(model, seed, None, stop))
