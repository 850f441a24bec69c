"""The process schedulers of guests; one a file."""
