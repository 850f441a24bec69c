"""Traffic from outside and programs inside domains: each file a part with its spec, records, functions and metrics."""
