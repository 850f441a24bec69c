"""Studies: a model run many times, what comes out, and what it says about capacity.

What a study does with a model, whatever it is composed of: :mod:`vftsim.study.composed`.
"""
