"""What keeps a service alive when its host fails: guards at the port, and the faults that test them."""
