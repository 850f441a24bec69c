"""The record of one httperf: what it does, and the sums of which it prints its report."""

from vftsim.kernel import Record, Sim, Table, part


class HttpLoad(Record):
    """One httperf.

    ``active`` connections are open, ``most_active`` is the largest number at a time.  Times are sums in ns: until
    connected, from request to the first piece of the reply, from there to the last; ``lifetimes`` is a row of
    delays, of connections that had a reply; ``response_times`` another, from request to first piece.  A sample is the
    reply rate of a span, ``sampled`` replies had come by its beginning.
    """

    row: int
    flow: int
    port: int
    gap_ns: int
    gaps: int
    connections: int
    timeout_ns: int
    request_bytes: int
    retry_ns: int
    linear_retries: int
    sample_ns: int
    start_ns: int
    end_ns: int
    begun: int
    active: int
    most_active: int
    connects: int
    connect_ns: int
    requests: int
    responses: int
    response_ns: int
    replies: int
    transfer_ns: int
    lifetimes: int
    response_times: int
    timeouts: int
    resets: int
    sampled: int
    samples: int
    sample_sum: float
    sample_squares: float
    sample_min: float
    sample_max: float
    repeated: int
    dropped: int
    bytes_sent: int
    bytes_received: int


http_loads = Table("http_loads", HttpLoad, 1024)


@part
def flow_of(sim: Sim, load: int) -> int:
    """Return the flow of a load."""
    return http_loads(sim)[load].flow
