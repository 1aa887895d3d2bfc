"""Orders of sums, which reveal_order gives as nested tuples."""

from . import _halflab


def flat_order(order):
    """The order of a sum, as reveal_order gives it, as a list of additions, one after another.

    Each is a tuple of what is added: a number below n is the place of a term, n + i the result of addition i. Nested tuples
    of a thousand terms and more, which Python neither prints nor compares, can so be printed, compared and replayed:

        values = list(terms)
        for places in halflab.flat_order(order):
            values.append(sum(values[place] for place in places))

    >>> order = halflab.reveal_order(lambda x: (x[0] + x[1]) + (x[2] + x[3]), 4)
    >>> order
    ((0, 1), (2, 3))
    >>> halflab.flat_order(order)
    [(0, 1), (2, 3), (4, 5)]
    """
    pending, values, sums, places = [(order, 0)], [], [], set()  # values: places of terms, and -1 - i of addition i
    while pending:
        part, terms = pending.pop()
        if terms:
            sums.append(tuple(values[-terms:]))
            values[-terms:] = [-len(sums)]
        elif isinstance(part, tuple) and len(part) > 1:
            pending.append((part, len(part)))
            pending += [(each, 0) for each in reversed(part)]
        else:
            _require_place(part, places)
            places.add(part)
            values.append(part)
    if max(places) >= len(places):
        _refuse(f"place {max(places)} of {len(places)}")
    return [tuple(len(places) - 1 - place if place < 0 else place for place in terms) for terms in sums]


def _require_place(part, known):
    if isinstance(part, tuple):
        _refuse(f"a tuple of {len(part)}")
    if isinstance(part, bool) or not isinstance(part, int) or part < 0:
        _refuse(_halflab.shown(part))
    if part in known:
        _refuse(f"place {part} twice")


def _refuse(what):
    raise ValueError(f"flat_order: {what} is not allowed; allowed: what reveal_order gives, as ((0, 1), 2)")
