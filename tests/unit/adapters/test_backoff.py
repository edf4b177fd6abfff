"""Pauses between tries."""

from app.adapters.backoff import FIRST_S, LONGEST_S, Backoff


def test_pauses_grow_to_a_bound_and_begin_anew() -> None:
    backoff = Backoff()
    pauses = [backoff.pause_s() for _ in range(20)]
    assert 0 < pauses[0] <= FIRST_S
    assert all(LONGEST_S / 2 <= pause <= LONGEST_S for pause in pauses[10:])
    assert len(set(pauses)) == len(pauses)
    backoff.reset()
    assert backoff.pause_s() <= FIRST_S
