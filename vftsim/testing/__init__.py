"""What tests of parts use: :func:`~vftsim.testing.judge.judge` puts a protection mechanism through its paces.

:func:`~vftsim.testing.differences.first_difference` finds where two engines part.

.. code-block:: python

    from vftsim.testing import judge


    def test_it_keeps_its_promise():
        assert judge(MySpec()).wrong == ()
"""

from vftsim.testing.differences import first_difference
from vftsim.testing.judge import JudgedMechanism, judge
from vftsim.testing.plant import Plant, play

__all__ = ["JudgedMechanism", "Plant", "first_difference", "judge", "play"]
