"""A prefork web server, and httperf as its client."""
