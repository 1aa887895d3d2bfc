"""The exception of halflab.torch."""


class WatchError(RuntimeError):
    """What watch cannot do, in one line that says what is allowed."""
