"""CPU schedulers of hypervisors, one file each."""
