"""The Python module halflab against exact rationals, the standard library and numpy's own halves.

PYTHONPATH=build/python python3 tests/tools/python_test.py
"""

import doctest
import itertools
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import tempfile
import unittest
from fractions import Fraction

import numpy as np

import halflab

# name: precision, emin, largest number, and what an overflow to nearest becomes.
ROWS = {
    "binary64": (53, -1022, Fraction(2**53 - 1) * 2**971, "inf"),
    "binary32": (24, -126, Fraction(2**24 - 1) * 2**104, "inf"),
    "tf32": (11, -126, Fraction(2**11 - 1) * 2**117, "inf"),
    "bfloat16": (8, -126, Fraction(2**8 - 1) * 2**120, "inf"),
    "binary16": (11, -14, Fraction(65504), "inf"),
    "e5m2": (3, -14, Fraction(57344), "inf"),
    "e4m3": (4, -6, Fraction(448), "nan"),
    "e5m2_fnuz": (3, -15, Fraction(57344), "nan"),
    "e4m3_fnuz": (4, -7, Fraction(240), "nan"),
    "e3m2": (3, -2, Fraction(28), "max"),
    "e2m3": (4, 0, Fraction(15, 2), "max"),
    "e2m1": (2, 0, Fraction(6), "max"),
}
DIRECTIONS = ("nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd")


def floor_log2(x):
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= Fraction(2) ** e else e - 1


def rounded(x, row="binary16", rounding="nearest_even"):
    """The rational x in a format, as a float: the definition, digit by digit."""
    precision, emin, largest, overflow = ROWS[row]
    if x == 0:
        return 0.0
    negative, magnitude = x < 0, abs(x)
    quantum = Fraction(2) ** (max(floor_log2(magnitude), emin) - precision + 1)
    units, rest = divmod(magnitude / quantum, 1)
    up = {
        "nearest_even": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and units % 2 == 1),
        "nearest_away": rest >= Fraction(1, 2),
        "toward_zero": False,
        "toward_positive": rest > 0 and not negative,
        "toward_negative": rest > 0 and negative,
        "to_odd": rest > 0 and units % 2 == 0,
    }[rounding]
    result = (units + up) * quantum
    if result > largest:
        stays = rounding in ("toward_zero", "to_odd") or rounding == (
            "toward_positive" if negative else "toward_negative"
        )
        result = float(largest) if stays or overflow == "max" else float(overflow)
    return -float(result) if negative else float(result)


def hard_values(row, count, seed):
    """Numbers of a format, midpoints between neighbours and what lies just beside them, near all its borders."""
    precision, emin, largest, _ = ROWS[row]
    draw = random.Random(seed)
    emax = floor_log2(largest)
    values = []
    while len(values) < count:
        exponent = draw.choice([emin - precision - 1, emin - 1, emin, 0, emax, draw.randint(emin - precision, emax)])
        units = draw.choice([1, 2**precision - 1, draw.randint(1, 2**precision)])
        x = Fraction(units) * Fraction(2) ** (exponent - precision + 1)
        half_ulp = Fraction(2) ** (max(exponent, emin) - precision)
        x += half_ulp * draw.choice([0, 0, 1, 1, -1, 1 + Fraction(1, 2**20), 1 - Fraction(1, 2**20)])
        x *= draw.choice([1, -1])
        if -sys_max <= x <= sys_max and Fraction(float(x)) == x:
            values.append(x)
    return values


sys_max = Fraction(math.ldexp(2**53 - 1, 971))


def half_of(value):
    """binary16 to nearest-even as the standard library packs it."""
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


class Case(unittest.TestCase):
    def assert_same(self, found, expected, message=None):
        """Equal numbers, NaNs and signs of zeros included."""
        found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
        np.testing.assert_array_equal(found, expected, err_msg=str(message))
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(
            np.signbit(found)[numbers], np.signbit(expected)[numbers], err_msg=f"signs: {message}"
        )

    def assert_refused(self, fragment, function, *arguments, **options):
        with self.assertRaises(ValueError) as caught:
            function(*arguments, **options)
        text = str(caught.exception)
        self.assertIn(fragment, text)
        self.assertEqual(len(text.splitlines()), 1, text)


class Formats(Case):
    def test_limits_of_every_row(self):
        self.assertEqual(set(halflab.formats), set(ROWS) | {"e8m0"})
        for name, (precision, emin, largest, overflow) in ROWS.items():
            row = halflab.formats[name]
            self.assertIs(getattr(halflab, name), row)
            self.assertEqual((row.name, row.precision, row.emin), (name, precision, emin))
            self.assertEqual((Fraction(row.max), row.emax), (largest, floor_log2(largest)))
            self.assertEqual(row.min_normal, 2.0**emin)
            self.assertEqual(row.min_subnormal, math.ldexp(1, emin - precision + 1))
            self.assertEqual((row.epsilon, row.unit_roundoff), (2.0 ** (1 - precision), 2.0**-precision))
            self.assertEqual((row.has_infinity, row.has_nan), (overflow == "inf", overflow != "max"))
        self.assertEqual((halflab.e8m0.min_normal, halflab.e8m0.max), (2.0**-127, 2.0**127))
        self.assertEqual(halflab.binary16, halflab.formats["binary16"])
        self.assertNotEqual(halflab.e4m3, halflab.e5m2)
        self.assertTrue(halflab.binary32.contains(halflab.binary16) and halflab.binary16.contains("e4m3"))
        self.assertFalse(halflab.binary16.contains("bfloat16"))

    def test_values_are_all_finite_codes(self):
        for name, row in halflab.formats.items():
            if row.width > 16:
                continue
            values = row.values()
            decoded = halflab.decode(np.arange(2**row.width), row)
            np.testing.assert_array_equal(values, np.unique(decoded[np.isfinite(decoded)]), err_msg=name)
            self.assertEqual(len(values), row.finite_values)

    def test_every_half_decodes_as_the_standard_library_unpacks_it(self):
        codes = np.arange(2**16)
        expected = [struct.unpack("<e", struct.pack("<H", code))[0] for code in codes]
        self.assert_same(halflab.decode(codes), expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(halflab.encode(halflab.decode(codes))[numbers], codes[numbers])

    def test_encode_rounds_as_the_standard_library_packs(self):
        values = [float(x) for x in hard_values("binary16", 5000, seed=1)] + [math.inf, -math.inf, -0.0, 0.0]
        bits = halflab.encode(values)
        self.assertEqual(bits.dtype, np.uint16)
        np.testing.assert_array_equal(bits, [half_of(value) for value in values])

    def test_every_row_rounds_as_exact_rationals_do(self):
        for name, rounding in itertools.product(ROWS, DIRECTIONS):
            values = hard_values(name, 250, seed=2)
            found = halflab.round_to([float(x) for x in values], name, rounding=rounding)
            expected = [rounded(x, name, rounding) for x in values]
            if name.endswith("fnuz"):
                expected = [x + 0.0 for x in expected]  # it has no -0
            self.assert_same(found, expected, (name, rounding))

    def test_shape_and_dtype_of_the_input_change_no_bit(self):
        values = np.float32(np.random.default_rng(3).normal(size=(5, 7, 11))) * np.float32(2.0**-10)
        for name in ("binary16", "e4m3", "bfloat16"):
            for options in ({}, {"rounding": "toward_positive"}, {"rounding": "stochastic", "seed": 5}):
                bits = halflab.encode(values, name, **options)
                self.assertEqual(bits.shape, values.shape)
                np.testing.assert_array_equal(bits, halflab.encode(values.astype(np.float64), name, **options))
                np.testing.assert_array_equal(bits, halflab.encode(values.astype(">f4"), name, **options))
        transposed = halflab.encode(values.T)
        np.testing.assert_array_equal(transposed, halflab.encode(values).T)
        self.assertEqual(halflab.encode([]).shape, (0,))
        self.assertEqual(halflab.round_to(3), 3.0)
        self.assertIsInstance(halflab.round_to(3), np.float64)

    def test_codes_of_64_bits(self):
        bits = [2**63, 1, 2**64 - 1]  # numpy alone makes floats of the first two and objects of 2**64
        expected = struct.unpack("<3d", struct.pack("<3Q", *bits))
        self.assert_same(halflab.decode(bits, "binary64"), expected)
        self.assert_same(halflab.decode(np.array(bits, dtype=">u8"), "binary64"), expected)
        self.assert_same(halflab.decode([np.uint64(2**63), 1], "binary64"), expected[:2])
        self.assert_refused("18446744073709551616 is no code of binary64", halflab.decode, [2**64, 1], "binary64")
        self.assert_refused("-1 is no code of binary64", halflab.decode, [2**63, -1], "binary64")
        self.assert_refused("allowed: integers", halflab.decode, [2**63, 0.5], "binary64")
        self.assert_refused("allowed: integers", halflab.decode, [1, True, None])

    def test_stochastic_rounding_is_a_function_of_its_seed_and_unbiased(self):
        values = np.full(40000, 1 + 0.25 * 2.0**-10)
        rounded_up = halflab.round_to(values, rounding="stochastic", seed=1) > 1
        self.assertAlmostEqual(rounded_up.mean(), 0.25, delta=0.01)
        np.testing.assert_array_equal(rounded_up, halflab.round_to(values, rounding="stochastic", seed=1) > 1)
        self.assertTrue(np.any(rounded_up != (halflab.round_to(values, rounding="stochastic", seed=2) > 1)))

    def test_counts(self):
        counts = halflab.Counts()
        halflab.round_to([1.0, 0.1, 2.0**-24, 2.0**-25, 2.0**-15, 65519.0, 65520.0, np.nan, -np.inf, 0.0], counts=counts)
        self.assertEqual(
            counts.as_dict(),
            {
                "exact": 6,  # 1, 2^-24, 2^-15, NaN, -infinity, 0
                "inexact": 3,  # 0.1, 2^-25, 65519
                "subnormal": 2,
                "flushed": 1,
                "overflowed": 1,
                "underflow": 1,
                "divide_by_zero": 0,
                "invalid": 0,
            },
        )
        halflab.divide([1.0, 0.0], [0.0, 0.0], counts=counts)
        self.assertEqual((counts.divide_by_zero, counts.invalid, counts.total), (1, 1, 12))

    def test_attributes_at_the_borders(self):
        self.assert_same(halflab.round_to(1e6, saturate=True), 65504)
        self.assert_same(halflab.round_to(-(2.0**-15), flush_to_zero=True), -0.0)
        self.assert_same(halflab.add(2.0**-24, 0.0, denormals_are_zero=True), 0.0)

    def test_fields_make_up_the_value(self):
        codes = np.arange(2**16)
        values, fields = halflab.decode(codes), halflab.fields(codes)
        finite = np.isfinite(values)
        made = np.where(fields["sign"], -1, 1) * np.ldexp(fields["significand"], fields["exponent"])
        self.assert_same(made[finite], values[finite])
        joined = fields["sign"] * 2**15 + fields["biased_exponent"] * 2**10 + fields["trailing_significand"]
        np.testing.assert_array_equal(joined, codes)
        classes = fields["number_class"]
        self.assertEqual([classes[i] for i in (0, 1, 0x3C00, 0x7C00, 0x7D00, 0x7E00, 0x8000, 0x8001)], [
            "positive_zero", "positive_subnormal", "positive_normal", "positive_infinity", "signalling_nan", "quiet_nan",
            "negative_zero", "negative_subnormal"])  # fmt: skip
        subnormal = np.char.endswith(classes, "subnormal")
        np.testing.assert_array_equal(subnormal, (np.abs(values) < 2.0**-14) & (values != 0))

    def test_text(self):
        self.assertEqual(halflab.text(0x2E66, style="fields"), "0 01011 1001100110")
        self.assertEqual(halflab.text(0x2E66, style="exact"), "0.0999755859375")
        self.assertEqual(halflab.text(0x2E66, style="hex"), "0x1.998p-4")
        shortest = halflab.text([[0x2E66, 0x7BFF], [0xFC00, 1]])
        self.assertEqual(shortest.tolist(), [["0.1", "65504"], ["-inf", "6e-08"]])

    def test_neighbours(self):
        doubles = [1.0, -1.5, 1e300, 5e-324, 0.0, 2.0**-1022, math.inf]
        self.assert_same(halflab.ulp(doubles, "binary64"), [math.ulp(x) for x in doubles])
        self.assert_same(halflab.next_up(doubles, "binary64"), np.nextafter(doubles, np.inf))
        self.assert_same(halflab.next_down(doubles, "binary64"), np.nextafter(doubles, -np.inf))
        halves = np.arange(0x7BFF, dtype=np.uint16).view(np.float16)
        self.assert_same(halflab.next_up(halves), np.nextafter(halves, np.float16(np.inf)))
        self.assert_same(halflab.ulp(halves), np.spacing(halves))
        self.assert_same(halflab.next_up(65504), np.inf)
        self.assertEqual(halflab.ulp_distance(-(2.0**-24), 2.0**-23), 3)
        self.assertEqual(halflab.next_after(1.0, 0.0), 1 - 2.0**-11)

    def test_block_formats(self):
        x = np.concatenate([np.full(32, 3.0), [1000.0], np.full(31, 1.0)])
        # The scales are 2^(1-2) and 2^(9-2): 3 / 0.5 = 6 is a number of e2m1, 1000 / 128 saturates at 6, 1 / 128 is lost.
        self.assert_same(halflab.round_to_blocks(x, "mxfp4"), np.concatenate([np.full(32, 3.0), [768.0], np.zeros(31)]))
        self.assertEqual(halflab.block_formats["mxfp4"]["bits_per_value"], 4.25)
        x[3], x[40] = np.inf, 1.0
        self.assertEqual(np.isnan(halflab.round_to_blocks(x, "mxfp4")).tolist(), [True] * 32 + [False] * 32)
        self.assertTrue(np.isnan(halflab.round_to_blocks(x, "nvfp4")).all())
        self.assertEqual(halflab.round_to_blocks(np.ones((3, 0)), "mxfp4").shape, (3, 0))

    def test_wrong_arguments(self):
        refused = self.assert_refused
        refused("unknown format 'binary61'; did you mean 'binary64'?", halflab.encode, 1, "binary61")
        refused("unknown attribute 'ronding'; did you mean 'rounding'?", halflab.encode, 1, ronding="to_odd")
        refused("unknown rounding 'nearest'", halflab.encode, 1, rounding="nearest")
        refused("needs a seed", halflab.encode, 1, rounding="stochastic")
        refused("seed", halflab.encode, 1, seed=1)
        refused("allowed: True, False", halflab.encode, 1, saturate="perhaps")
        refused("allowed: a halflab.Counts", halflab.encode, 1, counts=3)
        refused("complex128 is not allowed", halflab.encode, 1j)
        refused("2^53", halflab.encode, 2**53 + 1)
        refused("70000 is no code of binary16", halflab.decode, [0, 70000])
        refused("-1 is no code of e2m1; allowed: integers from 0 to 15", halflab.decode, -1, "e2m1")
        refused("allowed: integers", halflab.decode, 0.5)
        refused("up to 20 bits", halflab.binary32.values)
        refused("unknown style", halflab.text, 0, style="long")
        for values in ([1.0], []):
            refused("unknown block format 'mxfp5'; did you mean", halflab.round_to_blocks, values, "mxfp5")
            refused("unknown scale_rule", halflab.round_to_blocks, values, "mxfp4", "flor")
        refused("seed = -1 is not allowed", halflab.round_to_blocks, [1.0], "mxfp4", seed=-1)
        for n in (2**31, 0.5, [1, 2]):
            refused(f"n = {n} is not allowed; allowed: one integer", halflab.scalb, 1, n)
        refused("format 'e8m0' is not allowed", halflab.add, 1, 1, "e8m0")
        refused("a: 0.1 is not a number of binary16", halflab.add, 0.1, 1)
        refused("b: 70000 is not a number of binary16", halflab.add, 1, 70000)
        refused("broadcast", halflab.add, [1, 2], [1, 2, 3])


class Operations(Case):
    def operands(self, count, seed, arity):
        columns = []
        for i in range(arity):
            values = [rounded(x) for x in hard_values("binary16", 2 * count, seed + i)]
            columns.append([x for x in values if math.isfinite(x)][:count])
        return columns

    def test_rational_operations_in_every_direction(self):
        for rounding in DIRECTIONS:
            a, b, c = self.operands(400, 10, 3)
            rational = [tuple(map(Fraction, row)) for row in zip(a, b, c)]
            for name, exact in {
                "add": lambda x, y, z: x + y,
                "subtract": lambda x, y, z: x - y,
                "multiply": lambda x, y, z: x * y,
                "divide": lambda x, y, z: x / y if y else None,
                "fma": lambda x, y, z: x * y + z,
            }.items():
                operands = (a, b, c) if name == "fma" else (a, b)
                found = getattr(halflab, name)(*operands, rounding=rounding)
                for value, row in zip(found, rational):
                    expected = exact(*row)
                    if expected:  # signs of zeros are for the other tests
                        self.assertEqual(value, rounded(expected, rounding=rounding), (name, rounding, row))

    def test_counting_changes_no_bit(self):
        a, b = self.operands(500, 20, 2)
        for name in ("add", "multiply", "divide"):
            operation, counts = getattr(halflab, name), halflab.Counts()
            self.assert_same(operation(a, b, counts=counts), operation(a, b))
            self.assertEqual(counts.total, 500)

    def test_numpy_halves_agree(self):
        """numpy computes in binary32 and rounds once more, which for these four changes nothing."""
        codes = np.random.default_rng(4).integers(0, 2**16, size=(2, 20000), dtype=np.uint16)
        a, b = codes.view(np.float16)
        with np.errstate(all="ignore"):
            for name in ("add", "subtract", "multiply", "divide"):
                self.assert_same(getattr(halflab, name)(a, b), getattr(np, name)(a, b), name)
            self.assert_same(halflab.sqrt(a), np.sqrt(a))

    def test_square_roots(self):
        for x in hard_values("binary16", 300, seed=5):
            half = rounded(abs(x))
            if not math.isfinite(half):
                continue
            # Between two neighbours: lower^2 <= x < upper^2.
            lower = halflab.sqrt(half, rounding="toward_zero")
            upper = halflab.next_up(lower)
            self.assertTrue(Fraction(lower) ** 2 <= Fraction(half) < Fraction(upper) ** 2)

    def test_remainders(self):
        a, b = self.operands(300, 30, 2)
        b = [y or 1.0 for y in b]
        self.assert_same(halflab.remainder(a, b), [math.remainder(x, y) for x, y in zip(a, b)])
        self.assert_same(halflab.fmod(a, b), [math.fmod(x, y) for x, y in zip(a, b)])
        self.assert_same(halflab.remainder([1.0, np.inf], [0.0, 1.0]), [np.nan, np.nan])

    def test_scalb(self):
        (a,) = self.operands(300, 40, 1)
        for n in (-30, -3, 0, 5, 40):
            self.assert_same(halflab.scalb(a, n), [math.copysign(rounded(Fraction(x) * Fraction(2) ** n), x) for x in a])

    def test_binary64_is_the_processors(self):
        a, b = np.random.default_rng(6).normal(size=(2, 1000))
        self.assert_same(halflab.add(a, b, "binary64"), a + b)
        self.assert_same(halflab.multiply(a, b, "binary64"), a * b)

    def test_comparisons(self):
        a = np.array([1.0, -0.0, np.nan, 2.0])
        b = np.array([2.0, 0.0, 1.0, 1.0])
        self.assertEqual(halflab.compare(a, "less", b).tolist(), [True, False, False, False])
        self.assertEqual(halflab.compare(a, "equal", b).tolist(), [False, True, False, False])
        self.assertEqual(halflab.compare(a, "not_less", b).tolist(), [False, True, True, True])
        self.assertEqual(halflab.compare(a, "unordered", b).tolist(), [False, False, True, False])
        self.assertEqual(halflab.total_order(a, b).tolist(), [True, True, False, False])
        self.assertEqual(len(halflab.predicates), 12)
        self.assert_refused("did you mean 'less'", halflab.compare, 1, "les", 2)

    def test_operands_of_every_kind_are_read_alike(self):
        halves = np.arange(-12, 12, dtype=np.float16)
        expected = halflab.fma(halves, halves, 1)
        for dtype in (">f2", "<f4", ">f4", ">f8", "i1", ">i2", ">i8"):
            apart = np.zeros((len(halves), 3), dtype=dtype)
            apart[:, 1] = halves
            self.assert_same(halflab.fma(apart[:, 1], apart[:, 1], 1), expected, dtype)
            self.assert_same(halflab.fma(apart[::-1, 1], apart[::-1, 1], 1), expected[::-1], dtype)
        self.assert_same([halflab.fma(x, np.array(x), 1) for x in halves], expected)
        self.assert_same(halflab.fma(halves.tolist(), halves.tolist(), [1]), expected)
        self.assertEqual(halflab.add(np.ones((0, 3)), 1).shape, (0, 3))

    def test_broadcasting(self):
        table = halflab.multiply(np.arange(4.0)[:, None], np.arange(3.0))
        np.testing.assert_array_equal(table, np.outer(np.arange(4), np.arange(3)))


class Sums(Case):
    def values(self, count, seed):
        return [rounded(Fraction(x)) for x in np.random.default_rng(seed).normal(size=count)]

    def test_orders(self):
        values = self.values(77, 7)
        exact = [Fraction(x) for x in values]

        def pairwise(terms):
            if len(terms) == 1:
                return terms[0]
            left = 1 << (len(terms) - 1).bit_length() - 1
            return Fraction(rounded(pairwise(terms[:left]) + pairwise(terms[left:])))

        chain = [exact[0]]
        for x in exact[1:]:
            chain.append(Fraction(rounded(chain[-1] + x)))
        self.assertEqual(halflab.sum(values), float(chain[-1]))
        self.assert_same(halflab.partial_sums(values), [float(x) for x in chain])
        self.assertEqual(halflab.sum(values, "pairwise"), float(pairwise(exact)))
        self.assertEqual(halflab.sum(values, "exact"), rounded(sum(exact)))
        self.assertEqual(halflab.sum(values, "exact", "binary64"), rounded(sum(exact), "binary64"))
        for order in halflab.sum_orders:
            self.assertLess(abs(halflab.sum(values, order, "binary32") - float(sum(exact))), 1e-4)

    def test_what_a_half_cannot_count(self):
        ones = np.ones(5000)
        self.assertEqual(halflab.sum(ones), 2048)
        self.assertEqual(halflab.sum(ones, format="bfloat16"), 256)
        self.assertEqual(halflab.sum(ones, format="binary32"), 5000)
        self.assertEqual(halflab.sum(ones, "kahan"), 5000)
        stochastic = halflab.partial_sums(ones, rounding="stochastic", seed=1)
        self.assertAlmostEqual(stochastic[-1], 5000, delta=300)

    def test_axes(self):
        np.testing.assert_array_equal(halflab.sum(np.ones((2, 3, 4))), np.full((2, 3), 4))
        np.testing.assert_array_equal(halflab.partial_sums(np.ones((2, 3))), [[1, 2, 3], [1, 2, 3]])
        np.testing.assert_array_equal(halflab.sum(np.ones((2, 0))), [0, 0])
        np.testing.assert_array_equal(halflab.dot(np.ones((2, 3)), np.arange(3.0)), [3, 3])

    def test_dot_products(self):
        a, b = self.values(60, 8), self.values(60, 9)
        exact = [(Fraction(x), Fraction(y)) for x, y in zip(a, b)]
        fused = twice = wide = Fraction(0)
        for x, y in exact:
            fused = Fraction(rounded(fused + x * y))
            twice = Fraction(rounded(twice + Fraction(rounded(x * y))))
            wide = Fraction(rounded(wide + x * y, "binary32"))
        self.assertEqual(halflab.dot(a, b, "fma"), float(fused))
        self.assertEqual(halflab.dot(a, b, "mul_add"), float(twice))
        self.assertEqual(halflab.dot(a, b, "binary32"), rounded(wide))
        self.assertEqual(halflab.dot(a, b, "exact"), rounded(sum(x * y for x, y in exact)))
        self.assertEqual(halflab.matmul(a, b, "fp16_fma"), float(fused))
        self.assertEqual(halflab.matmul(a, b, "fp16_mul_add"), float(twice))
        self.assertEqual(halflab.matmul(a, b, "fp32"), float(wide))

    def test_matrix_products(self):
        a = np.reshape(self.values(6 * 5, 10), (6, 5))
        b = np.reshape(self.values(5 * 4, 11), (5, 4))
        for accumulation in halflab.accumulations:
            product = halflab.matmul(a, b, accumulation)
            np.testing.assert_allclose(product, a @ b, atol=0.02)
            self.assertEqual(product[2, 3], halflab.matmul(a[2], b[:, 3], accumulation))
            # One chain may be cut where a step of every accumulation here ends.
            whole = halflab.matmul(np.tile(a[0, :4], 8), np.tile(b[:4, 0], 8), accumulation)
            start = halflab.matmul(np.tile(a[0, :4], 4), np.tile(b[:4, 0], 4), accumulation)
            self.assertEqual(whole, halflab.matmul(np.tile(a[0, :4], 4), np.tile(b[:4, 0], 4), accumulation, c=start))

    def test_tensor_cores_by_hand(self):
        # 1 + 3 * 2^-24: FP32 loses each term, Volta's 23 bits below the largest too, Ampere's 24 bits keep them and
        # truncate the sum to 1 + 2^-23.
        a, b = [1.0] + [2.0**-12] * 3, [1.0] + [2.0**-12] * 3
        self.assertEqual(halflab.matmul(a, b, "fp32"), 1)
        self.assertEqual(halflab.matmul(a, b, "volta_fp32"), 1)
        self.assertEqual(halflab.matmul(a, b, "ampere_fp32"), 1 + 2.0**-23)
        self.assertEqual(halflab.tensor_cores["hopper"]["products_per_step"], 16)

    def test_wrong_arguments(self):
        refused = self.assert_refused
        refused("did you mean 'pairwise'", halflab.sum, [1.0], "pairwize")
        refused("partial_sums", halflab.sum, [1.0], rounding="stochastic", seed=1)
        refused("a scalar is not allowed", halflab.sum, 1.0)
        refused("did you mean 'hopper_fp32'", halflab.matmul, [1.0], [1.0], "hoper_fp32")
        refused("a has 1 columns and b 2 rows", halflab.matmul, [1.0], [1.0, 2.0])
        refused("3 dimensions", halflab.matmul, np.ones((1, 1, 1)), [1.0])
        refused("shape of the product", halflab.matmul, [1.0], [1.0], c=[1.0])
        refused("c: 0.1 is not a number of binary32", halflab.matmul, [1.0], [1.0], c=0.1)
        refused("format 'binary64' is not allowed", halflab.dot, [1.0], [1.0], format="binary64")


class Functions(Case):
    def test_all_names_are_functions(self):
        self.assertGreaterEqual(len(halflab.math.functions), 31)
        for name in halflab.math.functions:
            self.assertEqual(getattr(halflab.math, name)(np.ones((2, 2))).shape, (2, 2), name)

    def test_against_float64(self):
        """The standard library's value, known to a few parts in 2^52, rounds to the same half on either side."""
        halves = halflab.binary16.values()[::37]
        for name, domain in {
            "exp": halves < 12,
            "log": halves > 0,
            "tanh": halves == halves,
            "sin": halves == halves,
            "atan": halves == halves,
            "erf": halves == halves,
            "expm1": halves < 12,
        }.items():
            x = halves[domain]
            found = getattr(halflab.math, name)(x)
            for half, value in zip(x, found):
                reference = getattr(math, name)(half)
                sides = {half_of(reference * (1 + side * 2.0**-48)) for side in (-1, 1)}
                self.assertIn(half_of(value), sides, (name, half))

    def test_special_values(self):
        self.assert_same(halflab.math.log([0.0, 1.0, -1.0, np.inf]), [-np.inf, 0.0, np.nan, np.inf])
        self.assert_same(halflab.math.pow([2.0, 0.0], [3.0, 0.0]), [8.0, 1.0])
        self.assert_same(halflab.math.hypot(3.0, 4.0), 5.0)
        self.assert_same(halflab.math.atan2(-0.0, 1.0), -0.0)
        counts = halflab.Counts()
        halflab.math.log([0.0, -1.0], counts=counts)
        self.assertEqual((counts.divide_by_zero, counts.invalid), (1, 1))
        self.assertGreater(
            halflab.math.exp(1.0, rounding="toward_positive"), halflab.math.exp(1.0, rounding="toward_negative")
        )
        self.assert_refused("not a number of binary16", halflab.math.exp, 0.1)


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

    def test_headroom(self):
        self.assertEqual(halflab.ExponentHistogram([65504.0]).log2_headroom, 0)
        self.assertEqual(halflab.ExponentHistogram([65505.0]).log2_headroom, -1)
        self.assertIsNone(halflab.ExponentHistogram([0.0]).log2_headroom)
        self.assert_refused("[-112, 123]", halflab.ExponentHistogram([1.0]).zones, 124)
        for method in ("flushed_at_scale", "zones"):
            self.assert_refused("allowed: integers", getattr(halflab.ExponentHistogram([1.0]), method), 0.5)
        self.assert_refused("allowed: one integer", halflab.ExponentHistogram([1.0]).zones, [1, 2])
        self.assertEqual(halflab.ExponentHistogram([1.0]).flushed_at_scale([]).shape, (0,))


class Scalers(Case):
    # log2 S after each step, from 2^10 with a growth interval of 4; X: a step whose gradients are not finite.
    FIRST = ". . . . X . . . . X X . X . . . . . . ."
    SECOND = ". . . . X X X X X . . . . X X . X X . . . . . ."
    TRACES = {
        "dynamic": (
            "10 10 10 11 10 10 10 10 11 10 9 9 8 8 8 8 9 9 9 9",
            "10 10 10 11 10 9 8 7 6 6 6 6 7 6 5 5 4 3 3 3 3 4 4 4",
        ),
        "megatron:hysteresis=2": (
            "10 10 10 11 11 11 11 11 12 12 11 11 10 10 10 10 11 11 11 11",
            "10 10 10 11 11 10 9 8 7 7 7 7 8 8 7 7 6 5 5 5 5 6 6 6",
        ),
        "apex_hysteresis:hysteresis=2": (
            "10 10 10 11 11 11 11 11 12 12 11 11 11 11 11 11 12 12 12 12",
            "10 10 10 11 11 10 9 8 7 7 7 7 8 8 7 7 7 6 6 6 6 7 7 7",
        ),
        "deepspeed:hysteresis=2": (
            "10 10 10 10 10 10 10 10 10 9 8 8 7 7 7 7 7 8 8 8",
            "10 10 10 10 10 9 8 7 6 6 6 6 6 5 4 4 3 2 2 2 2 2 3 3",
        ),
        "deepspeed:hysteresis=2:consecutive_hysteresis=1": (
            "10 10 10 10 10 10 10 10 10 10 9 9 9 9 9 9 9 10 10 10",
            "10 10 10 10 10 9 8 7 6 6 6 6 6 6 5 5 5 4 4 4 4 4 5 5",
        ),
        "deepspeed:hysteresis=1": (
            "10 10 10 10 9 9 9 9 9 8 7 7 6 6 6 6 6 7 7 7",
            "10 10 10 10 9 8 7 6 5 5 5 5 5 4 3 3 2 1 1 1 1 1 2 2",
        ),
        "paddle:hysteresis=2": (
            "10 10 10 11 11 11 11 11 12 12 11 11 11 11 11 11 12 12 12 12",
            "10 10 10 11 11 10 10 9 9 9 9 9 10 10 9 9 9 8 8 8 8 9 9 9",
        ),
    }
    SAME_AS = {
        "flax": "deepspeed:hysteresis=1",
        **dict.fromkeys(("apex_amp", "apex_fp16_optimizer", "tensorflow", "keras", "jmp", "mindspore"), "dynamic"),
    }

    def trace(self, spec, pattern):
        scaler = halflab.Scaler(spec, init_scale=1024, growth_interval=4)
        trace = []
        for mark in pattern.split():
            self.assertEqual(scaler.update(mark == "X"), "skip" if mark == "X" else "apply")
            trace.append(math.log2(scaler.scale))
        return trace

    def test_published_rules_step_by_step(self):
        specs = {**{spec: spec for spec in self.TRACES}, **self.SAME_AS}
        for spec, same_as in specs.items():
            for pattern, trace in zip((self.FIRST, self.SECOND), self.TRACES[same_as]):
                self.assertEqual(self.trace(spec, pattern), [int(x) for x in trace.split()], spec)

    def test_options_in_either_form(self):
        self.assertEqual(
            halflab.Scaler("dynamic:growth_interval=20").options, halflab.Scaler("dynamic", growth_interval=20).options
        )
        self.assertEqual(halflab.Scaler("static", scale=8).scale, 8)
        self.assertEqual(halflab.scalers["dynamic"]["options"]["growth_interval"]["default"], 2000)
        self.assertEqual(halflab.scalers["dynamic"]["options"]["growth_factor"]["allowed"], "numbers in (1, inf)")

    def test_every_global_scaler_goes_on_from_its_state(self):
        steps = [halflab.ExponentHistogram([x]) for x in (1.0, np.inf, 100.0, 2.0, np.nan, 1.0, 1.0)]
        twin = halflab.ExponentHistogram([2.0**-20])
        for name, row in halflab.scalers.items():
            if row["kind"] != "global":
                self.assert_refused(f"scaler '{name}' is of kind {row['kind']}", halflab.Scaler, name)
                continue
            first, second = halflab.Scaler(name), halflab.Scaler(name)
            for step in steps[:4]:
                first.update(exponents=step, twin=twin)
            second.restore(first.state)
            for step in steps[4:]:
                decisions = [scaler.update(exponents=step, twin=twin) for scaler in (first, second)]
                self.assertEqual(decisions[0], decisions[1], name)
                self.assertEqual(first.scale, second.scale, name)

    def test_a_scaler_that_looks_at_exponents(self):
        scaler = halflab.Scaler("adaptive", headroom=2)
        self.assertTrue(scaler.needs_exponents)
        gradients = np.float32([2.0**-30, 2.0**-20])
        seen = halflab.ExponentHistogram(halflab.round_to(gradients * scaler.scale))
        self.assertTrue(scaler.wants_twin(exponents=seen))
        self.assertEqual(scaler.update(exponents=seen, twin=halflab.ExponentHistogram(gradients)), "apply")
        # 65504 / 2^-20 lies below 2^36, of which 2 octaves stay free.
        self.assertEqual(scaler.scale, 2.0**33)
        self.assert_refused("without the exponents", scaler.update, True)
        self.assert_refused("without the exponents", scaler.wants_twin, True)

    def test_wrong_arguments(self):
        refused = self.assert_refused
        refused("unknown scaler 'dinamic'; did you mean 'dynamic'", halflab.Scaler, "dinamic")
        refused("unknown option 'interval'", halflab.Scaler, "dynamic", interval=3)
        refused("allowed: numbers in (1, inf)", halflab.Scaler, "dynamic:growth_factor=1")
        refused("is given twice", halflab.Scaler, "dynamic:growth_interval=3", growth_interval=3)
        refused("allowed: a number", halflab.Scaler, "dynamic", growth_interval="x")
        scaler = halflab.Scaler("dynamic")
        refused("saved state", scaler.restore, {"scale": 1})
        refused("scale = 'x' is not allowed; allowed: a number", scaler.restore, {**scaler.state, "scale": "x"})
        refused("saved state", scaler.restore, {1: 2})
        refused("nothing is known of the step", scaler.update)
        refused("nothing is known of the step", scaler.wants_twin, max_abs=1)
        for max_abs in (math.nan, -1, math.inf, 1e39):
            refused("max_abs = ", scaler.update, False, max_abs)
        self.assertEqual(scaler.state, halflab.Scaler("dynamic").state)


class Records(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name) / "run"

    def write(self, **files):
        self.directory.mkdir(exist_ok=True)
        contents = {"manifest.json": '{"experiment": "x"}', "summary.json": '{"a": 1, "b": "nan"}', "verdict.txt": "so"}
        for name, text in {**contents, **files}.items():
            (self.directory / name).write_text(text)

    def test_what_is_read(self):
        self.write(**{"steps.csv": 'step,loss,kind,big\n0,nan,"a, b",18446744073709551615\n1,,"c""d",0\n2,1e-3,e,1\n'})
        record = halflab.read_record(self.directory)
        self.assertEqual(record.manifest, {"experiment": "x"})
        self.assertEqual(record.summary["a"], 1)
        self.assertTrue(math.isnan(record.summary["b"]))
        self.assertEqual(record.verdict, "so")
        steps = record.steps
        self.assertEqual(steps.dtype.names, ("step", "loss", "kind", "big"))
        self.assertEqual(steps["step"].tolist(), [0, 1, 2])
        np.testing.assert_array_equal(steps["loss"], [np.nan, np.nan, 1e-3])
        self.assertEqual(steps["kind"].tolist(), ["a, b", 'c"d', "e"])
        self.assertEqual(int(steps["big"][0]), 2**64 - 1)
        self.assertEqual(steps[steps["loss"] > 0]["kind"].tolist(), ["e"])

    def test_what_is_refused(self):
        def refused(fragment):
            with self.assertRaises(halflab.RecordError) as caught:
                halflab.read_record(self.directory)
            self.assertIn(fragment, str(caught.exception))
            self.assertEqual(len(str(caught.exception).splitlines()), 1)

        refused("no such directory")
        self.directory.mkdir()
        refused("no record of a run")
        (self.directory / ".partial").mkdir()
        refused("the run has not finished")
        self.write(**{"t.csv": "a,b\n1,2\n3\n"})
        refused("t.csv:3: 1 cells; allowed: 2")
        self.write(**{"t.csv": ""})
        refused("t.csv: empty")
        self.write(**{"t.csv": "a,a\n1,2\n"})
        refused("two columns have one name")
        self.write(**{"t.csv": "a\n1\n", "summary.json": "{"})
        refused("summary.json:1: no JSON")
        self.write(**{"summary.json": "[]"})
        refused("no JSON object")
        self.write()
        self.assertEqual(list(halflab.read_record(self.directory).tables), ["t"])
        (self.directory / "verdict.txt").unlink()
        refused("verdict.txt: no such file")

    def test_a_run_without_steps(self):
        self.write()
        with self.assertRaisesRegex(halflab.RecordError, "no table 'steps'"):
            halflab.read_record(self.directory).steps

    def program(self):
        program = pathlib.Path(os.environ.get("HALFLAB_BIN_DIR", "build/bin")) / "formats"
        if not program.exists():
            self.skipTest(f"{program} is not built")
        return program

    def test_runs_that_leave_no_record(self):
        self.program()
        for fragment, name, options in (
            ("experiment 'formets' was not found", "formets", {}),
            ("did you mean --quick", "formats", {"quck": True}),
            ("formats: left no record", "formats", {"help": True}),
            ("'3,4' is not allowed", "formats", {"rows": np.array([3, 4])}),
        ):
            with self.assertRaises(halflab.ExperimentError) as caught:
                halflab.run_experiment(name, **options)
            self.assertIn(fragment, str(caught.exception))
            self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_a_run_of_a_program(self):
        program = self.program()
        subprocess.run([program, "--quick", "--quiet", "--out", self.directory], check=True, capture_output=True)
        record = halflab.read_record(self.directory)
        self.assertEqual(record.manifest["experiment"], "formats")
        self.assertEqual(json.loads((self.directory / "summary.json").read_text()).keys(), record.summary.keys())
        table = record.tables["formats"]
        for row in table:
            here = halflab.formats[row["format"]]
            self.assertEqual((row["max"], row["min_subnormal"]), (here.max, here.min_subnormal))
            self.assertEqual((row["precision_bits"], row["finite_values"]), (here.precision, here.finite_values))


class Networks(Case):
    def test_bytes_per_parameter(self):
        mixed = halflab.memory("mlp", "O2", "adamw")
        parameters = 784 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10
        self.assertEqual(mixed["parameters"], parameters)
        roles = {role: size / parameters for role, size in mixed.items()}
        self.assertEqual((roles["weights"], roles["master_weights"], roles["optimizer_state"]), (2, 4, 8))
        self.assertEqual(halflab.memory("mlp", "fp32", "sgd")["optimizer_state"], 0)
        self.assertEqual(halflab.memory("mlp", "fp32", "momentum")["optimizer_state"], 4 * parameters)
        counted = set(mixed) - {"total", "inference", "parameters"}
        self.assertEqual(mixed["total"], sum(mixed[role] for role in counted))

    def test_activations_grow_with_the_batch(self):
        small, large = (halflab.memory("mlp", batch=batch)["activations"] for batch in (16, 48))
        self.assertEqual(large, 3 * small)
        table = halflab.activations("mlp", batch=16)
        self.assertEqual(sum(int(table[field].sum()) for field in ("values", "saved", "masks")), small)
        full = halflab.memory("bert_large", recomputation="full", batch=1, sequence=128)
        none = halflab.memory("bert_large", batch=1, sequence=128)
        self.assertLess(full["activations"], none["activations"])
        self.assertEqual(full["weights"], none["weights"])

    def test_products_take_two_flop_a_weight_and_example(self):
        kernels = halflab.kernels("mlp", "fp32", batch=16)
        forward = (kernels["phase"] == "forward") & (kernels["operator_class"] == "tensor contraction")
        self.assertEqual(int(kernels["flop"][forward].sum()), 2 * 16 * (784 * 512 + 512 * 256 + 256 * 10))

    def test_a_file_of_ones_own(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "one.toml"
            file.write_text(
                'name = "one"\nsource = "here"\n[symbols]\nbatch = 2\n[input]\nshape = ["batch", 3]\n[[blocks]]\n'
                'name = "b"\noperators = [{ name = "l", operation = "linear", features = 5 }]\n'
            )
            self.assertEqual(halflab.memory(file)["parameters"], 3 * 5 + 5)
            file.write_text("name = ")
            self.assert_refused("one.toml:1", halflab.memory, file)

    def test_wrong_arguments(self):
        refused = self.assert_refused
        refused("unknown network 'bert'", halflab.memory, "bert")
        refused("unknown policy 'ampp'; did you mean 'amp'", halflab.memory, "mlp", "ampp")
        refused("unknown optimizer", halflab.memory, "mlp", optimizer="newton")
        refused("unknown recomputation 'ful'; did you mean 'full'", halflab.memory, "mlp", recomputation="ful")
        refused("unknown symbol 'bach'; did you mean 'batch'", halflab.memory, "mlp", bach=3)
        for batch in (0.5, True, -1, "3", np.array([3, 4])):
            refused("symbol batch = ", halflab.kernels, "mlp", batch=batch)
        refused("symbol optimizer = 'sgd' is not allowed", halflab.kernels, "mlp", optimizer="sgd")
        self.assertEqual(halflab.memory("mlp", batch=np.int64(3)), halflab.memory("mlp", batch=3))
        refused("cannot be read", halflab.activations, "nowhere.toml")


class Documentation(Case):
    def test_everything_public_says_what_it_is(self):
        for name in halflab.__all__:
            thing = getattr(halflab, name)
            if callable(thing):
                self.assertTrue(thing.__doc__, name)
        for kind in (halflab.Counts, halflab.ExponentHistogram, halflab.Format, halflab.Scaler):
            self.assertEqual(kind.__module__, "halflab")

    def test_the_examples_of_the_module(self):
        parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
        result = runner.run(parser.get_doctest(halflab.__doc__, {}, "halflab", None, 0))
        self.assertGreater(result.attempted, 5)
        self.assertEqual(result.failed, 0)


if __name__ == "__main__":
    unittest.main()
