"""Columns of one length as a numpy structured array, whose fields are columns and whose elements are rows."""

import numpy as np


def structured(columns):
    """The columns of a dict, lists or arrays, as one structured array."""
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    length = len(next(iter(arrays.values()), ()))
    table = np.empty(length, dtype=[(name, array.dtype) for name, array in arrays.items()])
    for name, array in arrays.items():
        table[name] = array
    return table
