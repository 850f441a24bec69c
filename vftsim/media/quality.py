"""Voice quality from delay and loss: the E-model.

E-model (ITU-T G.107, in the reduced form used for planning; constants as in Cole and Rosenbluth 2001
and G.113): R = R0 - Id - Ie,eff with

* Id = 0.024 d + 0.11 (d - 177.3) H(d - 177.3), d the one-way delay in ms, mouth to ear;
* Ie,eff = Ie + (95 - Ie) Ppl / (Ppl / BurstR + Bpl), Ppl the loss in percent;
* MOS = 1 + 0.035 R + 7e-6 R (R - 60) (100 - R), 1 below R = 0 and 4.5 above 100.

G.711: Ie = 0; Bpl = 25.1 with packet-loss concealment, 4.3 without; sources disagree, so it is a
parameter.  A packet later than the play-out buffer is as good as lost.

Left out: echo, noise and talker terms of G.107.
"""

from __future__ import annotations

from dataclasses import dataclass

R_DEFAULT = 93.2
DELAY_KNEE_MS = 177.3
G711_CONCEALED_BPL = 25.1
G711_PLAIN_BPL = 4.3


@dataclass(frozen=True, slots=True)
class VoiceQuality:
    """Rating factor and mean opinion score."""

    r_factor: float
    mos: float


def e_model(
    delay_ms: float,
    loss_percent: float,
    *,
    bpl: float = G711_CONCEALED_BPL,
    ie: float = 0.0,
    burst_ratio: float = 1.0,
    r0: float = R_DEFAULT,
) -> VoiceQuality:
    """Rate a connection.

    Parameters
    ----------
    delay_ms : float
        One way, mouth to ear.
    loss_percent : float
        Lost and late packets.
    bpl, ie : float
        Robustness and impairment of the codec.
    burst_ratio : float
        1 for random loss, above for bursts.
    """
    late_ms = max(0.0, delay_ms - DELAY_KNEE_MS)
    delay_impairment = 0.024 * delay_ms + 0.11 * late_ms
    loss_impairment = ie + (95.0 - ie) * loss_percent / (loss_percent / burst_ratio + bpl)
    r_factor = r0 - delay_impairment - loss_impairment
    return VoiceQuality(r_factor, mean_opinion_score(r_factor))


def mean_opinion_score(r_factor: float) -> float:
    """Opinion score that goes with a rating factor."""
    if r_factor <= 0.0:
        return 1.0
    if r_factor >= 100.0:
        return 4.5
    score = 1.0 + 0.035 * r_factor + 7e-6 * r_factor * (r_factor - 60.0) * (100.0 - r_factor)
    return max(1.0, score)
