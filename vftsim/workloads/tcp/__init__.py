"""Bulk TCP: connections, their two ends, the client as iperf 2 is one, and the program in the guest."""
