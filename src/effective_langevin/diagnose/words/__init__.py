"""From evidence to plain words: every function takes what was measured and returns a `Finding`."""
