"""The parameters of the server and the benchmark, under the names that the old lab uses."""

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
