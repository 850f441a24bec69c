"""The schedule of a run and the way of its packets: recorded, drawn, explained."""
