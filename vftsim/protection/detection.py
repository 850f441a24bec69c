"""How a host notices that the other one is gone.

Rule (Scales, Nelson, Venkitachalam 2010): the hosts exchange UDP heartbeats and watch the flow of log
entries and acknowledgements, which never stops because an idle guest still takes timer interrupts.
A failure is declared when either has been silent for longer than its timeout, of the order of a few
seconds.

VMware HA (vSphere availability guide, 4.0 to 5.5): heartbeats every second, a host is declared failed
after 15 s without one.
"""


def last_beat_ns(time_ns: int, period_ns: int, delay_ns: int = 0) -> int:
    """Return when the last signal arrived that was sent on a grid and arrived ``delay_ns`` later, by ``time_ns``."""
    return max(0, (time_ns - delay_ns) // period_ns * period_ns + delay_ns)


def declared_ns(last_heartbeat_ns: int, heartbeat_timeout_ns: int, last_log_ns: int, log_timeout_ns: int) -> int:
    """Return when the failure is declared: the first timeout of the two."""
    return min(last_heartbeat_ns + heartbeat_timeout_ns, last_log_ns + log_timeout_ns)
