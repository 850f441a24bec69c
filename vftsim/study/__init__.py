"""Studies: a model run many times, what comes out, and what it says about capacity."""
