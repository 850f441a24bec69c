"""A farm of servers that handle calls together, and the user agents that call through it."""
