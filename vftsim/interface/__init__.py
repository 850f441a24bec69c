"""The package as Python functions: one for each command, with the same names."""
