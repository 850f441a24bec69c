"""A page on this machine: a model's knobs, today's configuration beside variants, answered by the command line."""
