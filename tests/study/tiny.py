"""A SIP lab so small that a replication takes a fraction of a second.

The mix has 8.5 touches an attempt (half calls of 13, half others of 4), 4 ms each, so the CPU is full at
1 / (8.5 x 4 ms) = 29 attempts a second: steps of 10 from 10 end at the third or fourth.
"""

import re

TINY = """\
name: tiny
domains:
  sut:
    interfaces:
      eth0: {path: {kind: moderated}}
    applications:
      proxy:
        kind: sip_server
        touch_cost: 4 ms
        register_touch_cost: 4 ms
workloads:
  calls:
    kind: ims_bench
    to: sut.proxy
    subscribers: 2000
    registered: 50 %
    ring_time: 500 ms
    hold_time: 1 s
    pre_registration: {duration: 3 s, rate: 20 /s, transient: 1 s}
    stir: {duration: 2 s, steps: 1}
    steps: {initial: 10 /s, increment: 10 /s, duration: 6 s, transient: 2 s, most: 5}
"""


def tiny(**changes: str) -> str:
    """Return it with other values of some keys of its traffic, as they are written there."""
    text = TINY
    for key, value in changes.items():
        text, found = re.subn(rf"(?m)^    {key}: .*$", f"    {key}: {value}", text)
        assert found == 1, key
    return text
