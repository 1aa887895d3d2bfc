"""What is written of an ExponentHistogram: methods of that class."""

import csv
import json
import math
import os

from .gradients.files import EXPONENTS, histogram_rows

_COLUMNS = EXPONENTS[2:]


def to_csv(self, path):
    """Writes the counts to a CSV file: rows of zeros, infinities and NaNs, then one for each octave that has values.

    Columns: exponent_log2, the e of 2^e <= |x| < 2^(e+1) or else "zero", "infinite", "nan"; and those of octave_counts:
    values, powers_of_two, near_next, top.

    >>> import os
    >>> halflab.ExponentHistogram([0.75, 1.5, 0.0]).to_csv(os.devnull)
    """
    with open(os.fspath(path), "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(histogram_rows(self))


def to_json(self):
    """The counts as the text of one JSON object: zero, infinite, nan, max_abs, and a list for each column of to_csv(), of
    the octaves that have values.

    >>> halflab.ExponentHistogram([0.75]).to_json()[:53]
    '{"zero": 0, "infinite": 0, "nan": 0, "max_abs": 0.75,'
    """
    octaves = histogram_rows(self)[3:]
    lists = {name: [row[place] for row in octaves] for place, name in enumerate(_COLUMNS)}
    return json.dumps({"zero": self.zero, "infinite": self.infinite, "nan": self.nan, "max_abs": self.max_abs, **lists})


def tensorboard(self):
    """The arguments of SummaryWriter.add_histogram_raw() that show log2 |x| of the values that are neither zero, infinite
    nor NaN, a bucket for each octave.

    max is exact, and min the lower edge of the lowest octave. sum and sum_squares, of log2 |x|, are estimates that take
    each value for the middle of its octave: sum is off by at most num / 2.

    >>> halflab.ExponentHistogram([0.75, 1.5, 0.0]).tensorboard()["bucket_limits"]
    [-1.0, 0.0, 1.0]
    """
    if not self.nonzero_finite:
        return dict(min=0.0, max=0.0, num=0, sum=0.0, sum_squares=0.0, bucket_limits=[0.0], bucket_counts=[0])
    lowest, highest = self.lowest_exponent, self.highest_exponent
    first = int(self.exponents[0])
    counts = self.counts[lowest - first : highest - first + 1].tolist()
    middles = [exponent + 0.5 for exponent in range(lowest, highest + 1)]
    return dict(
        min=float(lowest),
        max=math.log2(self.max_abs),
        num=self.nonzero_finite,
        sum=sum(count * middle for count, middle in zip(counts, middles)),
        sum_squares=sum(count * middle**2 for count, middle in zip(counts, middles)),
        bucket_limits=[float(edge) for edge in range(lowest, highest + 2)],
        bucket_counts=[0, *counts],
    )

