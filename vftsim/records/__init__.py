"""What published studies state of their systems, beside what the models predict."""
