"""Kinds of systems that a model file can describe; the module's name is the ``kind`` of the file.

Each module has one object ``SYSTEM`` that satisfies :class:`vftsim.study.system.System`.  A new kind is
a new file here.
"""
