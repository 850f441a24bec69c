"""Voice quality from delay and loss: the E-model.

E-model (ITU-T G.107, 06/2015): R = Ro - Is - Id - Ie,eff with every parameter of table 2 at its default
except delay and loss, which gives R = 93.2 without either.

* Delay impairment (7.4): Id = Idte + Idle + Idd: talker echo, listener echo and pure delay.  Echo paths are
  as long as the connection (T = Ta, Tr = 2 Ta) and as loud as in table 2 (TELR 65 dB, WEPL 110 dB).
* Ie,eff = Ie + (95 - Ie) Ppl / (Ppl / BurstR + Bpl), Ppl the loss in percent (7.5).
* MOS = 1 + 0.035 R + 7e-6 R (R - 60) (100 - R), 1 below R = 0 and 4.5 above 100 (annex B).

Validity: one-way delays up to 500 ms and losses up to 20 % (table 2).  Beyond either there is no rating, not
even a bad one: :attr:`VoiceQuality.is_valid` says so.

G.711: Ie = 0; Bpl = 25.1 with packet-loss concealment, 4.3 without (G.113, appendix I).  Other codecs have their own
Ie, Bpl, and look-ahead, by which the speech of a packet is later (:class:`Codec`).  A packet later than the play-out
buffer is as good as lost.

Left out: noise and side tone other than the defaults; a codec after another one.
"""

import math
from dataclasses import dataclass

G711_CONCEALED_BPL = 25.1
LONGEST_DELAY_MS = 500.0
LARGEST_LOSS_PERCENT = 20.0

# Defaults of G.107, table 2, in dB, dBm0p and ms as there.
_SLR, _RLR, _STMR, _LSTR, _DS = 8.0, 2.0, 15.0, 18.0, 3.0
_TELR, _WEPL, _NC, _NFOR, _PS, _PR = 65.0, 110.0, -70.0, -64.0, 35.0, 35.0
_PERCEPTIBLE_DELAY_MS = 100.0
_QUANTIZING_UNITS = 1.0


@dataclass(frozen=True, slots=True)
class Codec:
    """What a codec does to speech; by default nothing, as G.711."""

    impairment: float = 0.0
    """Ie, the equipment impairment factor."""
    robustness: float = G711_CONCEALED_BPL
    """Bpl, the packet-loss robustness factor."""
    look_ahead_ms: float = 0.0
    """Speech beyond a packet's own for which the coder waits."""


G711 = Codec()


@dataclass(frozen=True, slots=True)
class VoiceQuality:
    """Rating factor and mean opinion score."""

    r_factor: float
    mos: float
    is_valid: bool = True
    """Whether delay and loss are within what the E-model is stated for."""


def e_model(
    delay_ms: float,
    loss_percent: float,
    *,
    codec: Codec = G711,
    burst_ratio: float = 1.0,
) -> VoiceQuality:
    """Rate a connection by its delay, and by the percentage of packets that are lost or late.

    The delay is one way, mouth to ear, but for the codec's look-ahead.  ``burst_ratio`` is 1 for random loss, above for
    bursts (:func:`burst_ratio`).
    """
    delay_ms += codec.look_ahead_ms
    ie = codec.impairment
    loss_impairment = ie + (95.0 - ie) * loss_percent / (loss_percent / burst_ratio + codec.robustness)
    r_factor = _noise_ratio() - _simultaneous(delay_ms) - delay_impairment(delay_ms) - loss_impairment
    is_valid = delay_ms <= LONGEST_DELAY_MS and loss_percent <= LARGEST_LOSS_PERCENT
    return VoiceQuality(r_factor, mean_opinion_score(r_factor), is_valid)


def delay_impairment(delay_ms: float) -> float:
    """Return Id of a one-way delay: echo to talker and listener, and the delay itself (G.107, 7.4)."""
    return _talker_echo(delay_ms) + _listener_echo(2.0 * delay_ms) + pure_delay(delay_ms)


def pure_delay(delay_ms: float) -> float:
    """Return Idd, the impairment by too long a delay even without echo (G.107, 7.4; sT = 1, mT = 100 ms)."""
    if delay_ms <= _PERCEPTIBLE_DELAY_MS:
        return 0.0
    x = math.log2(delay_ms / _PERCEPTIBLE_DELAY_MS)
    return 25.0 * (_norm(x, 6.0) - 3.0 * _norm(x / 3.0, 6.0) + 2.0)


def burst_ratio(lost: int, bursts: int, packets: int) -> float:
    """Return BurstR: mean length of the bursts over that of random loss at the same share (G.107, 7.5).

    Random loss at a share ``p`` comes in bursts of mean length ``1 / (1 - p)``.  Never below 1: bursts shorter than
    random ones are outside the E-model.  A packet is lost or late; a burst is an unbroken row of such packets within a
    stream.
    """
    if not 0 <= bursts <= lost <= packets:
        raise ValueError(f"need bursts <= lost <= packets, got {bursts}, {lost} and {packets}")
    if bursts == 0 or lost == packets:
        return 1.0
    return max(1.0, lost / bursts * (1.0 - lost / packets))


def mean_opinion_score(r_factor: float) -> float:
    """Opinion score that goes with a rating factor."""
    if r_factor <= 0.0:
        return 1.0
    if r_factor >= 100.0:
        return 4.5
    score = 1.0 + 0.035 * r_factor + 7e-6 * r_factor * (r_factor - 60.0) * (100.0 - r_factor)
    return max(1.0, score)


def _noise() -> float:
    """No, the power sum of all noise at the 0 dBr point (7.2)."""
    sender = _PS - _SLR - _DS - 100.0 + 0.004 * (_PS - _SLR - _RLR - _DS - 14.0) ** 2
    side_tone = _PR + 10.0 * math.log10(1.0 + 10.0 ** ((10.0 - _LSTR) / 10.0))
    receiver = _RLR - 121.0 + side_tone + 0.008 * (side_tone - 35.0) ** 2
    return 10.0 * math.log10(math.fsum(10.0 ** (level / 10.0) for level in (_NC, sender, receiver, _NFOR + _RLR)))


def _noise_ratio() -> float:
    """Ro, the basic signal-to-noise ratio (7.2)."""
    return 15.0 - 1.5 * (_SLR + _noise())


def _simultaneous(delay_ms: float) -> float:
    """Is: too loud a connection, side tone and quantizing noise (7.3)."""
    loudness = _SLR + _RLR + 0.2 * (64.0 + _noise() - _RLR)
    too_loud = 20.0 * (_norm(loudness / 8.0, 8.0) - loudness / 8.0)
    q = 37.0 - 15.0 * math.log10(_QUANTIZING_UNITS)
    g = 1.07 + 0.258 * q + 0.0602 * q * q
    y, z = (_noise_ratio() - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0, 46.0 / 30.0 - g / 40.0
    return too_loud + _side_tone(delay_ms) + 15.0 * math.log10(1.0 + 10.0**y + 10.0**z)


def _side_tone(delay_ms: float) -> float:
    """Ist, of which the echo is a part while it is early (7.3)."""
    echo = math.exp(-delay_ms / 4.0) * 10.0 ** (-_TELR / 10.0)
    masking = -10.0 * math.log10(10.0 ** (-_STMR / 10.0) + echo)
    low, middle = _norm((masking - 13.0) / 6.0, 8.0), _norm((masking + 1.0) / 19.4, 35.0)
    return 12.0 * low - 28.0 * middle - 13.0 * _norm((masking - 3.0) / 33.0, 13.0) + 29.0


def _talker_echo(delay_ms: float) -> float:
    """Idte (7.4); an echo of less than a millisecond is side tone."""
    if delay_ms < 1.0:
        return 0.0
    fading = 40.0 * math.log10((1.0 + delay_ms / 10.0) / (1.0 + delay_ms / 150.0))
    loss = _TELR - fading + 6.0 * math.exp(-0.3 * delay_ms**2)
    half = (-1.5 * (_noise() - _RLR) - (80.0 + 2.5 * (loss - 14.0))) / 2.0
    return float((half + math.hypot(half, 10.0) - 1.0) * (1.0 - math.exp(-delay_ms)))


def _listener_echo(round_trip_ms: float) -> float:
    """Idle (7.4)."""
    loss = 10.5 * (_WEPL + 7.0) / math.sqrt(math.sqrt(round_trip_ms + 1.0))
    half = (_noise_ratio() - loss) / 2.0
    return half + math.hypot(half, 13.0)


def _norm(x: float, power: float) -> float:
    return float((1.0 + abs(x) ** power) ** (1.0 / power))
