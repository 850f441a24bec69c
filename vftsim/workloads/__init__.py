"""Traffic and the applications that it meets."""
