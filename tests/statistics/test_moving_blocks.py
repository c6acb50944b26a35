import numpy as np

from effective_langevin.statistics.resampling import drawn_weights, moving_blocks, scatter_of_draws


def test_every_draw_has_as_many_cells_and_every_cell_counts_alike():
    """24 cells in blocks of 6: four blocks a draw; 4000 draws, so that the mean count is known to 0.7 %."""
    drawn = moving_blocks(24, 4, draws=4000)
    assert drawn.shape == (4000, 24)
    assert (drawn.sum(axis=1) == 24).all()
    np.testing.assert_allclose(drawn.mean(axis=0), 1.0, atol=0.05)
    assert drawn.max() == 4


def test_errors_from_four_blocks_scatter_less_where_blocks_begin_anywhere():
    """White cells, 24 in 4 blocks, 500 records: the error of the mean is right to 10 %, and steadier."""
    rng, exact = np.random.default_rng(0), 1 / np.sqrt(24)
    moving, apart = [], []
    for seed in range(500):
        cells = rng.normal(size=24)
        moving.append(scatter_of_draws(moving_blocks(24, 4, 200, seed) @ cells / 24, 4))
        apart.append(scatter_of_draws(drawn_weights(4, 200, seed) @ cells.reshape(4, 6).mean(axis=1) / 4, 4))
    assert abs(np.sqrt(np.mean(np.square(moving))) / exact - 1) < 0.1
    assert np.std(moving) < 0.9 * np.std(apart)
