"""A shuffled stream of rows that are read by blocks: what a network is trained on where the series does not fit.

A pass takes every row once. It reads the blocks in a random order, another one in each pass, some of them at once into
a buffer of bounded size, and deals out the rows of the buffer in random order. What comes at a place of the stream
depends on the seed and the place alone: a stream can be left and entered again anywhere.
"""

from collections.abc import Sequence

import numpy as np

from .._core.types import Samples
from .lazy import Rows

BUFFER_NUMBERS = 1 << 24  # of float32 in the buffer: 64 MiB


class Stream:
    """Rows of one or several `Rows` of equal length side by side, `total` of them in passes of all there are.

    The last pass may be short of rows. It takes as many from every block as belong to it by its length: with fewer rows
    asked for than there are, all blocks are read once and none of their rows comes twice.
    """

    def __init__(self, parts: Sequence[Rows], total: int, seed: Sequence[int]):
        self.parts, self.total, self.seed = tuple(parts), int(total), tuple(int(s) for s in seed)
        self.most = BUFFER_NUMBERS // sum(part.shape[1] for part in self.parts)
        self._edges = np.append(np.arange(0, len(self), self.parts[0].block), len(self))
        self._start, self._buffer = 0, [np.empty((0, part.shape[1]), np.float32) for part in self.parts]

    def __len__(self) -> int:
        """Number of rows of a pass."""
        return len(self.parts[0])

    def take(self, first: int, stop: int) -> list[Samples]:
        """Return what stands at places first ... stop - 1 of the stream, of each part."""
        found = []
        while first < stop:
            if not self._start <= first < self._start + len(self._buffer[0]):
                self._fill(first)
            last = min(stop, self._start + len(self._buffer[0]))
            found.append([part[first - self._start : last - self._start] for part in self._buffer])
            first = last
        return [np.concatenate(pieces) for pieces in zip(*found)]

    def describe(self, taken: int) -> str:
        """Say what was read once so many rows were taken."""
        size = 4 * sum(self.most * part.shape[1] for part in self.parts) / 2**20
        return (
            f"{taken} samples from a shuffled stream of {len(self._edges) - 1} blocks, "
            f"{taken / len(self):.3g} passes over {len(self)} training samples, through a buffer of {size:.3g} MiB"
        )

    def _fill(self, place: int) -> None:
        """Read the blocks of the buffer that holds a place of the stream."""
        number = place // len(self)
        shares, groups = self._plan(number)
        ends = number * len(self) + np.cumsum([shares[group].sum() for group in groups])
        which = int(np.searchsorted(ends, place, side="right"))
        rows = int(shares[groups[which]].sum())
        self._start, self._buffer = int(ends[which]) - rows, []  # the old buffer goes before the new one comes
        rng = np.random.default_rng([*self.seed, number, which])
        places, done = rng.permutation(rows), 0
        self._buffer = [np.empty((rows, part.shape[1]), np.float32) for part in self.parts]
        for block in groups[which]:
            low, high = int(self._edges[block]), int(self._edges[block + 1])
            chosen = rng.choice(high - low, shares[block], replace=False)
            for part, into in zip(self.parts, self._buffer):
                into[places[done : done + len(chosen)]] = part[low:high][chosen]
            done += len(chosen)

    def _plan(self, number: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return how many rows a pass takes of each block, and which blocks it reads at once, in its order."""
        wanted = min(len(self), self.total - number * len(self))
        shares = np.diff([edge * wanted // len(self) for edge in self._edges.tolist()])
        order = np.random.default_rng([*self.seed, number]).permutation(len(shares))
        together = max(1, self.most // max(1, int(shares.max())))
        return shares, np.array_split(order, -(-len(order) // together))
