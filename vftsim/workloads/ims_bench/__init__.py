"""The IMS benchmark (ETSI TS 186 008): user agents, the manager and what it measures."""
