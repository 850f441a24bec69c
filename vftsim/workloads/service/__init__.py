"""A service: a tier of an application, and what it asks of other tiers before it answers.

Rule (a queueing network in which a thread is held while others are asked: Franks et al., "Enhanced modeling and
solution of layered queueing networks", IEEE TSE 35(2), 2009):

* **Threads** (a thread for each request, synchronous): a request that finds a thread idle is taken at once, else it
  waits in order of arrival, ``backlog`` of them at most; what finds no place is dropped.  A thread keeps its request
  until the answer has left, whatever it waits for.
* **Work** of a request: ``demand`` of CPU time, then ``reads`` and ``writes`` of the disk one after the other, then its
  ``calls`` in their order, then the answer.  Computing threads share the domain's vCPUs as its guest scheduler has it;
  one that goes on computing, with its calls or the next request, does so where it is.
* A **call** is made with ``probability``, and then ``count`` times: one after the other (``sequential``), or at once
  together with the parallel calls next to it (``parallel``: fork and join; the slowest decides).  Each costs the asker
  ``cost``, and what its path and its protection charge for a packet that is sent.  Copies of a domain take turns.
* **Cache**: a call finds its answer in the asker's memory in ``cache_hit`` of the cases, and is not made.  With
  ``cache_entries`` N the contents are N answers asked for equally often: with F of them there, F / N of those cases
  are hits, and each of the others brings one in (the collector of coupons).  The cache begins full; a domain that is
  booted again begins with an empty one.
* **Time-out and repetition**: a call without an answer is made again after ``timeout``, then after twice as long each
  time (RFC 6298, 5.5), ``retries`` times at most; of copies the next one is asked, not that again which was silent
  (nginx, ``proxy_next_upstream``, by default on a time-out).  Whoever is asked does not know that nobody waits any
  more, and works on both; the first answer counts.  A call that was given up, or whose answer says that it failed,
  fails the request: the service says so at once, and does not repeat what has failed.
* A **copy that was silent** is passed over (nginx, ``max_fails`` and ``fail_timeout`` of ``server``, with their
  defaults; ``ngx_http_upstream_round_robin.c``): from ``max_fails`` calls to it that have timed out, no call is
  directed at it for ``fail_timeout`` from the last of them on.  Then one call tries it anew, and the others pass it
  over until that one is answered (all ask it as before) or has timed out (for ``fail_timeout`` again).  The asker
  learns of each entry of its calls by itself, and a boot makes it forget.  Where all copies are passed over they are
  asked as if none were, as by Envoy below its panic threshold: an assumption, for nginx answers 502 at once.
* A **crash** takes the requests in the socket and in the threads' hands, and the calls made for them.

Network, path, scheduler and protection are those of any packet: a call leaves one domain and enters the other.

Closed forms: with threads that do not bind, exponential demands and a network that takes no time, a product-form
network (Jackson 1957; Baskett, Chandy, Muntz & Palacios 1975), so exact mean-value analysis (Reiser & Lavenberg 1980).

Messages go in windows (:mod:`vftsim.workloads.windows`), each on a connection that is open and was idle.

Left out: how connections are opened; locks and transactions of a database; work
between calls, which counts into ``demand``; a repeated request is worked on again, as if it changed nothing; health
checks, which ask copies beside the calls (HAProxy, ``check``).  What arrives for a call that is over is counted by
nobody, and is seen by its asker's path only.
"""
