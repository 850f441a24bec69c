"""Calibration and validation against measured data."""
