"""Workloads and applications as a model file names them, where the kind's own files are many."""
