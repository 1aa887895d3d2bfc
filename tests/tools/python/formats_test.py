"""Numbers, arrays and formats against exact rationals, the standard library and numpy's own halves."""

import copy
import itertools
import math
import pickle
import random
import struct
import unittest
from fractions import Fraction

import numpy as np

import halflab
from oracle import Case, DIRECTIONS, ROWS, floor_log2, half_of, hard_values, rounded


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

    def test_counting_changes_no_result(self):
        values = [0.0, 6e-8, 1e-40, 1e-310, 0.1, 65504.0, np.inf, np.nan]
        with np.errstate(all="ignore"):
            arrays = [np.array(values, dtype) for dtype in ("float16", "float32", "float64")]
        for array in arrays:
            for format in ("binary16", "bfloat16", "tf32", "binary32", "binary64"):
                for attributes in ({}, {"denormals_are_zero": True}, {"rounding": "stochastic", "seed": 7}):
                    with self.subTest(dtype=array.dtype, format=format, **attributes):
                        plain = halflab.encode(array, format, **attributes)
                        counted = halflab.encode(array, format, counts=halflab.Counts(), **attributes)
                        self.assertTrue(np.array_equal(plain, counted))

    def test_subnormal_operands_of_every_dtype_are_read_as_zeros(self):
        for dtype in ("float16", "float32", "float64"):
            smallest = np.array(np.finfo(dtype).smallest_subnormal)
            self.assert_same(halflab.round_to(smallest, "binary64", denormals_are_zero=True), 0.0)

    def test_signalling_nans_of_every_dtype_are_invalid(self):
        for width, code in ((16, 0x7C01), (32, 0x7F800001), (64, 0x7FF0000000000001)):
            signalling = np.array([code], f"uint{width}").view(f"float{width}")
            counts = halflab.Counts()
            halflab.encode(signalling, counts=counts)
            self.assertEqual(counts.invalid, 1, width)
            halflab.add(signalling, 1.0, format=f"binary{width}", counts=counts)
            self.assertEqual(counts.invalid, 2, width)

    def test_the_table_is_asked_by_any_name(self):
        self.assertEqual(halflab.formats["float16"], halflab.binary16)
        self.assertNotIn("float16", list(halflab.formats))
        with self.assertRaisesRegex(KeyError, "unknown format 'float17'; did you mean 'float16'?"):
            halflab.formats["float17"]

    def test_results_go_through_pickle(self):
        counts, histogram = halflab.Counts(), halflab.ExponentHistogram([0.75, -3.0, 0.0, np.inf, np.nan])
        halflab.add([1.0, 2.0**-24], [0.5, 1.0], counts=counts)
        for made in (pickle.loads(pickle.dumps(counts)), copy.deepcopy(counts)):
            self.assertEqual(made.as_dict(), counts.as_dict())
        self.assertEqual(pickle.loads(pickle.dumps(histogram)), histogram)
        for format in halflab.formats.values():
            self.assertEqual(pickle.loads(pickle.dumps(format)), format)

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

    def test_names_and_dtypes_that_mean_a_format(self):
        for meant, names in {
            "binary16": ("float16", "half", "fp16", "FP16", "Float16", np.float16, np.dtype(">f2")),
            "binary32": ("float32", "single", "fp32", np.float32),
            "binary64": ("float64", "double", "fp64", np.float64, float),
            "bfloat16": ("bf16",),
            "e4m3": ("float8_e4m3fn", "E4M3"),
            "e2m1": ("fp4",),
            "e5m2_fnuz": ("float8_e5m2fnuz",),
        }.items():
            for name in names:
                self.assert_same(halflab.round_to(math.pi, name), halflab.round_to(math.pi, meant), name)
                self.assertTrue(halflab.formats[meant].contains(name))
                if isinstance(name, str) and name.islower():
                    self.assertEqual(getattr(halflab, name), halflab.formats[meant])
        self.assert_refused("unknown format 'floot16'; did you mean 'float16'?", halflab.encode, 1, "floot16")
        self.assert_refused("unknown format 'int16'", halflab.encode, 1, np.int16)
        self.assert_refused("format = None is not allowed; allowed: a name", halflab.encode, 1, None)

    def test_doubles_and_wide_integers_are_not_cut(self):
        self.assertEqual(halflab.round_to(1 / 3, "binary64"), 1 / 3)
        self.assert_refused("9007199254740993 is not allowed", halflab.round_to, np.array([2**53 + 1]), "binary64")
        self.assert_refused("2^53", halflab.round_to, np.array([2**64 - 1], dtype=np.uint64), rounding="toward_zero")
        self.assert_refused(f"{np.dtype(np.longdouble)} is not allowed", halflab.encode, np.longdouble(1) / 3)
        quiet = np.array([0x7E01], dtype=np.uint16).view(np.float16)
        self.assertEqual(halflab.next_up(quiet).view(np.uint64), np.uint64(0x7FF8040000000000))
        self.assertEqual(halflab.ExponentHistogram([1.0 + 2.0**-40]).max_abs, 1.0 + 2.0**-40)

    def test_wrong_arguments(self):
        refused = self.assert_refused
        refused("unknown format 'binary61'; did you mean 'binary64'?", halflab.encode, 1, "binary61")
        refused("unknown attribute 'ronding'; did you mean 'rounding'?", halflab.encode, 1, ronding="to_odd")
        refused("unknown rounding 'nearest'", halflab.encode, 1, rounding="nearest")
        refused("needs a seed", halflab.encode, 1, rounding="stochastic")
        refused("seed", halflab.encode, 1, seed=1)
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
            refused("scale_rule = 'ceil' is not allowed with nvfp4", halflab.round_to_blocks, values, "nvfp4", "ceil")
        refused("seed = -1 is not allowed", halflab.round_to_blocks, [1.0], "mxfp4", seed=-1)
        for n in (2**31, 0.5, [1, 2]):
            refused(f"n = {n} is not allowed; allowed: one integer", halflab.scalb, 1, n)
        refused("format 'e8m0' is not allowed", halflab.add, 1, 1, "e8m0")
        refused("a: 0.1 is not a number of binary16", halflab.add, 0.1, 1)
        refused("b: 70000 is not a number of binary16", halflab.add, 1, 70000)
        refused("broadcast", halflab.add, [1, 2], [1, 2, 3])


if __name__ == "__main__":
    unittest.main()
