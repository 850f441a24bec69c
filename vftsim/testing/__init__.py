"""What tests of parts use: :func:`~vftsim.testing.judge.judge` puts a protection mechanism through its paces.

.. code-block:: python

    from vftsim.testing import judge


    def test_it_keeps_its_promise():
        assert judge(MySpec()).wrong == ()
"""

from vftsim.testing.judge import JudgedMechanism, judge
from vftsim.testing.plant import Plant, play

__all__ = ["JudgedMechanism", "Plant", "judge", "play"]
