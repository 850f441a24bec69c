"""The command line; see :mod:`vftsim.cli.main`."""
