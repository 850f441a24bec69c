"""What records compute that is no arithmetic: closed forms, bounds, and figures that one experiment alone reads."""
