"""A process that fits series of ever other lengths does not grow for ever."""

import jax

from effective_langevin.execution import compilation


def test_programs_are_dropped_after_many_shapes(monkeypatch):
    dropped = []
    monkeypatch.setattr(compilation, "_shapes", set())
    monkeypatch.setattr(compilation, "_MOST_SHAPES", 24)
    monkeypatch.setattr(jax, "clear_caches", lambda: dropped.append(1))
    for size in range(100):
        compilation.note_shape("fit", size)
        compilation.note_shape("fit", size)
    assert len(dropped) == 100 // 25
