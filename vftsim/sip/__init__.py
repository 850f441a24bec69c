"""The SIP lab: server, test systems, benchmark."""
