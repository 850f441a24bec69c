"""Figures of studies: their names, what a model will have of them, and their estimates over replications."""
