"""A path whose packets cost nothing."""

FREE = {
    "kind": "direct",
    "event_cost": 0,
    "interrupt_exit_cost": 0,
    "driver_receive_cost": 0,
    "driver_transmit_cost": 0,
}
