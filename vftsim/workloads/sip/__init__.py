"""SIP: its messages, and a server that handles them."""
