"""Studies: a model run many times, what comes out, and what it says about capacity.

The rooms below know statistics and models; what a kind of system measures stands in
:mod:`vftsim.study.systems`, one file a kind.
"""
