"""The parameters of the server and the benchmark, as model files mean them."""

from vftsim.workloads.ims_bench.parameters import (
    ImsBenchSpec,
    Mix,
    PreRegistrationSpec,
    StepsSpec,
    StirSpec,
    Thresholds,
)
from vftsim.workloads.sip.parameters import SipServerSpec, VirtualizationSpec

__all__ = [
    "ImsBenchSpec",
    "Mix",
    "PreRegistrationSpec",
    "SipServerSpec",
    "StepsSpec",
    "StirSpec",
    "Thresholds",
    "VirtualizationSpec",
]
