"""Designs: which models a study plays, at which loads, until when, and how it judges them: one file a question."""
