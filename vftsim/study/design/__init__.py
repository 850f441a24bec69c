"""Designs of experiments: points, each a model, under the same replications; study files, sensitivity, decisions."""
