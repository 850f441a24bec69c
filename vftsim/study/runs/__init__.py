"""Runs of a study: models, replications, where they are executed, how far they are, and what they will take."""
