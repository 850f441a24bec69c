"""What a machine park is made of: CPUs and schedulers, I/O, networks, protection."""
