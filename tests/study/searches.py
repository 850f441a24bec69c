"""Searches of a SIP benchmark with the settings of a test."""

from vftsim.study.designs.capacity import constant_load_studies
from vftsim.study.designs.capacity_answer import searched
from vftsim.study.execution import Execution


def search_study(model, seed, jobs, *, settings, stop=None, store=None):
    """The capacity at constant load; with a stop the failover-safe capacity."""
    studies = constant_load_studies(model, seed, None, stop)
    return searched(model, Execution(seed, jobs, store=store), settings, studies, prices=True)
