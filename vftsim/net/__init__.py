"""Networks: links, network cards, and the ways of a packet into a guest."""
