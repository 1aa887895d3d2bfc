"""Exponent histograms against counts by numpy."""

import csv
import json
import math
import pathlib
import random
import struct
import tempfile
import unittest

import numpy as np

import halflab
from oracle import Case, half_of


class Histogram(Case):
    def setUp(self):
        draw = np.random.default_rng(12)
        values = np.ldexp(draw.normal(size=3000), draw.integers(-40, 20, size=3000))
        edges = np.ldexp([1.0, 1 + 2.0**-20, 1 - 2.0**-20, 2 - 2.0**-10, 2 - 2.0**-11], -25)
        specials = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504.0, 65520.0, 65519.9]
        self.values = np.concatenate([values, edges, np.ldexp(edges, 10), np.ldexp(edges, 40), specials])

    def test_octaves(self):
        histogram = halflab.ExponentHistogram(self.values)
        expected = dict.fromkeys(range(-149, 128), 0)
        for value in self.values:
            if value != 0 and math.isfinite(value):
                expected[math.frexp(value)[1] - 1] += 1
        self.assertEqual(dict(zip(histogram.exponents.tolist(), histogram.counts.tolist())), expected)
        np.testing.assert_array_equal(histogram.edges[:-1], np.ldexp(1.0, histogram.exponents))
        self.assertEqual((histogram.zero, histogram.infinite, histogram.nan), (2, 2, 1))
        self.assertEqual(histogram.total, len(self.values))
        self.assertEqual(histogram.max_abs, np.max(np.abs(self.values[np.isfinite(self.values)])))

    def test_predictions_are_what_the_cast_does(self):
        histogram = halflab.ExponentHistogram(self.values)
        finite = self.values[np.isfinite(self.values) & (self.values != 0)]
        scales = np.arange(-30, 31)
        predicted = [getattr(histogram, f"{zone}_at_scale")(scales) for zone in ("flushed", "subnormal", "overflowed")]
        for m, flushed, subnormal, overflowed in zip(scales.tolist(), *predicted):
            halves = np.abs([struct.unpack("<e", struct.pack("<H", half_of(x)))[0] for x in np.ldexp(finite, m)])
            self.assertEqual(flushed, np.count_nonzero(halves == 0), m)
            self.assertEqual(subnormal, np.count_nonzero((halves > 0) & (halves < 2.0**-14)), m)
            self.assertEqual(overflowed, np.count_nonzero(np.isinf(halves)), m)
            self.assertEqual(sum(histogram.zones(m).values()), histogram.total)

    def test_every_dtype_counts_alike(self):
        with np.errstate(over="ignore"):
            halves = self.values.astype(np.float16)
        histogram = halflab.ExponentHistogram(halves)
        self.assertEqual(histogram, halflab.ExponentHistogram(halves.astype(np.float32)))
        self.assertEqual(histogram, halflab.ExponentHistogram(halves.astype(np.float64).reshape(-1, 1)))
        both = halflab.ExponentHistogram(halves[:100])
        both += halflab.ExponentHistogram()
        both.add(halves[100:])
        self.assertEqual(histogram, both)

    def test_dense_arrays_of_any_order(self):
        values = np.arange(-12, 12, dtype=np.float32).reshape(2, 3, 4)
        for array in (values.T, np.asfortranarray(values), values.transpose(1, 0, 2), values[::-1], values[..., ::2]):
            self.assertEqual(halflab.ExponentHistogram(array), halflab.ExponentHistogram(array.ravel().tolist()))

    def test_codes_of_other_libraries_types(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("needs ml_dtypes")
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            array = np.arange(5000).astype(getattr(ml_dtypes, name)).reshape(50, 100)
            expected = halflab.ExponentHistogram(array.astype(np.float32))
            self.assertEqual(halflab.ExponentHistogram(array), expected)
            self.assertEqual(halflab.ExponentHistogram(array.T), expected)
        self.assert_refused("int4 is not allowed", halflab.ExponentHistogram, np.ones(2, dtype=ml_dtypes.int4))

    def test_csv_and_json_hold_all_counts(self):
        for values in (self.values, [], [np.nan]):
            histogram = halflab.ExponentHistogram(values)
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "counts.csv"
                histogram.to_csv(file)
                rows = list(csv.DictReader(file.read_text().splitlines()))
            kept = json.loads(histogram.to_json())
            columns = ("exponent_log2", "values", "powers_of_two", "near_next", "top")
            listed = list(zip(*map(kept.get, columns)))
            self.assertEqual([tuple(int(row[name]) for name in columns) for row in rows[3:]], listed)
            octaves = np.zeros((277, 4), dtype=int)
            for row in rows[3:]:
                octaves[int(row["exponent_log2"]) + 149] = [int(row[name]) for name in columns[1:]]
            again = halflab.ExponentHistogram()
            rest = {row["exponent_log2"]: int(row["values"]) for row in rows[:3]}
            self.assertEqual(rest, {name: kept[name] for name in ("zero", "infinite", "nan")})
            again.add_counts(octaves, kept["max_abs"], **rest)
            self.assertEqual(again, histogram)

    def test_what_tensorboard_shows(self):
        values = np.ldexp(np.random.default_rng(1).uniform(1, 2, 1000), np.repeat(np.arange(-20, -10), 100))
        shown = halflab.ExponentHistogram(values).tensorboard()
        log2 = np.log2(values)
        counts, edges = np.histogram(log2, bins=np.arange(-20, -9))
        self.assertEqual(shown["bucket_counts"], [0, *counts])
        self.assertEqual(shown["bucket_limits"], edges.tolist())
        self.assertEqual((shown["min"], shown["num"]), (-20, 1000))
        self.assertAlmostEqual(shown["max"], log2.max())
        self.assertLessEqual(abs(shown["sum"] - log2.sum()), 500)
        self.assertEqual(halflab.ExponentHistogram([0.0, np.inf]).tensorboard()["bucket_counts"], [0])

    def test_headroom(self):
        self.assertEqual(halflab.ExponentHistogram([65504.0]).log2_headroom, 0)
        self.assertEqual(halflab.ExponentHistogram([65505.0]).log2_headroom, -1)
        self.assertIsNone(halflab.ExponentHistogram([0.0]).log2_headroom)
        self.assert_refused("[-112, 123]", halflab.ExponentHistogram([1.0]).zones, 124)
        for method in ("flushed_at_scale", "zones"):
            self.assert_refused("allowed: integers", getattr(halflab.ExponentHistogram([1.0]), method), 0.5)
        self.assert_refused("allowed: one integer", halflab.ExponentHistogram([1.0]).zones, [1, 2])
        self.assertEqual(halflab.ExponentHistogram([1.0]).flushed_at_scale([]).shape, (0,))

    def test_counts_kept_elsewhere(self):
        histogram = halflab.ExponentHistogram(self.values)
        kept = dict(zero=histogram.zero, infinite=histogram.infinite, nan=histogram.nan)
        again = halflab.ExponentHistogram()
        again.add_counts(histogram.octave_counts, histogram.max_abs, **kept)
        self.assertEqual(again, histogram)
        np.testing.assert_array_equal(histogram.octave_counts[:, 0], histogram.counts)
        again.add_counts(histogram.octave_counts, histogram.max_abs, **kept)
        self.assertEqual(again, halflab.ExponentHistogram(np.concatenate([self.values, self.values])))
        rows = histogram.octave_counts
        rows[3] = (1, 0, 0, 1)
        for fragment, arguments in (
            ("row 3 is not allowed", (rows, 1.0)),
            ("allowed: (277, 4)", (rows[:5], 1.0)),
            ("counts: float64 is not allowed; allowed: integers", (rows * 0.5, 1.0)),
            ("max_abs = 0 is not allowed", (histogram.octave_counts, 0.0)),
            ("max_abs = inf is not allowed", (histogram.octave_counts, math.inf)),
            ("max_abs = 1 is not allowed", (np.zeros((277, 4), dtype=int), 1.0)),
        ):
            self.assert_refused(fragment, again.add_counts, *arguments)

    def test_a_shift_is_a_multiplication(self):
        finite = self.values[np.isfinite(self.values)]
        for log2 in (-5, 0, 16):
            self.assertEqual(
                halflab.ExponentHistogram(finite).shifted(log2), halflab.ExponentHistogram(np.ldexp(finite, log2))
            )
        self.assert_refused("[-276, 276]", halflab.ExponentHistogram(finite).shifted, 277)

    def test_the_recommended_scale_is_an_octave_below_the_largest(self):
        self.assertEqual(halflab.ExponentHistogram([1.0]).recommended_log2_scale, 14)
        self.assertEqual(halflab.ExponentHistogram([65505.0]).recommended_log2_scale, -2)
        self.assertIsNone(halflab.ExponentHistogram([0.0, np.inf]).recommended_log2_scale)


if __name__ == "__main__":
    unittest.main()
