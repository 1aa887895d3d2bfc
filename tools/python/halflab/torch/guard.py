"""Nothing that goes wrong while watch looks reaches the training."""

import contextlib


class Guard:
    """Errors become notes, one for each name; what has gone wrong under a name is not tried again.

    >>> guard = Guard(notes.append)
    >>> with guard.over("encoder.0"):
    ...     raise TypeError("nested tensors")
    >>> guard.is_blind("encoder.0")
    True
    """

    def __init__(self, note):
        self._note, self._blind = note, set()

    def is_blind(self, name):
        return name in self._blind

    @contextlib.contextmanager
    def over(self, name):
        try:
            yield
        except Exception as error:  # of the user's tensors and classes, of any type
            self.see_error(name, error)

    def see_error(self, name, error):
        if name not in self._blind:
            self._blind.add(name)
            self._note(f"not seen any more: {name or 'the model'} ({in_one_line(error)})")


def in_one_line(error):
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"[:160]
