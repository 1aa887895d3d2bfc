"""Whatever a call gets wrong is an error of one line that says what is allowed."""

import collections
import inspect
import unittest
from fractions import Fraction

import numpy as np

import halflab
from documentation_test import functions
from oracle import Case

LINE = 500  # characters: the longest lists of what is allowed fit in


class Errors(Case):
    def message(self, kinds, function, *arguments, **options):
        with self.assertRaises(kinds) as caught:
            function(*arguments, **options)
        text = str(caught.exception)
        self.assertEqual(len(text.splitlines()), 1, text)
        self.assertLess(len(text), LINE)
        return text

    def test_a_call_that_does_not_fit(self):
        for name, function in functions().items():
            with self.subTest(name):
                self.message(TypeError, function, *range(12))
                self.message((TypeError, ValueError), function, no_such_argument=1)
                parameters = inspect.signature(function).parameters.values()
                if any(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
                    self.message(TypeError, function)

    def test_it_says_what_is_wrong_what_fits_and_an_example(self):
        for fragments, function, arguments, options in (
            (("b is missing", "compare(a, predicate, b, format='binary16'), as in"), halflab.compare, (1, "less"), {}),
            (("values is given twice",), halflab.ulp, (1,), {"values": 1}),
            (("5 positional arguments are given, 2 too many",), halflab.text, (1, "binary16", "hex", 4, 5), {}),
            (("unknown argument 'formt'; allowed: ulp(values, format='binary16')",), halflab.ulp, (1,), {"formt": 1}),
            (("2 positional arguments are given, 1 too many; allowed: tanh(x, **attributes)", "tanh([0.5, 1.0])"),
             halflab.math.tanh, (1, 2), {}),
            (("log2_scale is missing; allowed: flushed_at_scale(log2_scale)",),
             halflab.ExponentHistogram().flushed_at_scale, (), {}),
            (("spec is missing; allowed: Scaler(spec, **options), as in halflab.Scaler('dynamic'",), halflab.Scaler, (), {}),
        ):  # fmt: skip
            text = self.message(TypeError, function, *arguments, **options)
            for fragment in fragments:
                self.assertIn(fragment, text)

    def test_values_of_a_wrong_type(self):
        for fragment, function, arguments, options in (
            ("compare: predicate = 2.0 is not allowed; allowed: a name, as in halflab.compare([1.0, 3.0], 'less', 2.0)",
             halflab.compare, (1.0, 2.0, "less"), {}),
            ("sum: order = 3 is not allowed; allowed: a name", halflab.sum, ([1.0], 3), {}),
            ("found_inf = 2 is not allowed; allowed: True, False, None", halflab.Scaler("dynamic").update, (2,), {}),
            ("max_abs = 'x' is not allowed; allowed: a number, None", halflab.Scaler("dynamic").update, (True, "x"), {}),
            ("exponents = [1] is not allowed; allowed: a halflab.ExponentHistogram, None",
             halflab.Scaler("dynamic").update, (), {"exponents": [1]}),
            ("restore: state = 1 is not allowed; allowed: a dict", halflab.Scaler("dynamic").restore, (1,), {}),
            ("spec = 1 is not allowed", halflab.Scaler, (1,), {}),
            ("self = 1 is not allowed; allowed: a halflab.Scaler", halflab.Scaler.update, (1,), {}),
            ("policy = 1 is not allowed; allowed: a name", halflab.memory, ("mlp", 1), {}),
            ("saturate = 2 is not allowed; allowed: True, False", halflab.encode, (1,), {"saturate": 2}),
            ("saturate = None is not allowed; allowed: True, False", halflab.encode, (1,), {"saturate": None}),
            ("values: None is not allowed; allowed: float16", halflab.ExponentHistogram, (None,), {}),
            ("values: None is not allowed", halflab.round_to, ([0.1, None],), {}),
            ("values: '2048' is not allowed", halflab.add, ("2048", 1), {}),
            ("values: b'1' is not allowed", halflab.encode, (b"1",), {}),
            ("values: Fraction(1, 3) is not allowed", halflab.round_to, ([0, 0.5, Fraction(1, 3)],), {}),
            ("values: 18446744073709551616 is not allowed; allowed: float16, float32, float64, integers of magnitude up to 2^53",
             halflab.round_to, (2**64,), {}),
            ("values: object is not allowed", halflab.round_to, (np.array([1], dtype=object),), {}),
            ("a: 0.1 is not a number of binary16; allowed: its numbers, as halflab.round_to(0.1) gives one",
             halflab.add, (0.1, 0.2), {}),
            ("as halflab.round_to(0.1, 'e4m3') gives one", halflab.add, (0.1, 0.2, "e4m3"), {}),
            ("format 'fp8' is not allowed; allowed: e4m3 (FP8 of weights and activations), e5m2", halflab.encode, (1, "fp8"), {}),
        ):  # fmt: skip
            self.assertIn(fragment, self.message(ValueError, function, *arguments, **options))
        for true in (True, np.True_):
            self.assertEqual(halflab.round_to(1e6, saturate=true), 65504)
            self.assertEqual(halflab.Scaler("dynamic").update(true), "skip")
        with self.assertRaises(TypeError) as caught:
            histogram = halflab.ExponentHistogram()
            histogram += 3
        self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_a_function_that_lies_elsewhere(self):
        with self.assertRaises(AttributeError) as caught:
            halflab.tanh
        self.assertEqual(str(caught.exception), "module 'halflab' has no attribute 'tanh'; the function is halflab.math.tanh")

    def test_values_that_are_large_are_cut(self):
        array, texts = np.arange(10000).reshape(100, 100), ["x" * 1000] * 1000
        for large in (array, list(range(200_000)), "x" * 1_000_000, {i: i for i in range(9999)}, 10**6000):
            for function, arguments, options in (
                (halflab.encode, (1, large), {}),
                (halflab.encode, (1,), {"rounding": large}),
                (halflab.encode, (1,), {"seed": large, "rounding": "stochastic"}),
                (halflab.encode, (1,), {"saturate": large}),
                (halflab.encode, (1,), {"counts": large}),
                (halflab.text, (0,), {"style": large}),
                (halflab.compare, (1, large, 2), {}),
                (halflab.scalb, (1, large), {}),
                (halflab.dot, ([1.0], [1.0], large), {}),
                (halflab.matmul, ([1.0], [1.0], large), {}),
                (halflab.matmul, (np.empty((2**33, 0)), np.empty((0, 2**33))), {}),
                (halflab.round_to_blocks, ([1.0], large), {}),
                (halflab.round_to_blocks, ([1.0], "mxfp4", large), {}),
                (halflab.Scaler, (large,), {}),
                (halflab.Scaler("dynamic").restore, ({"scale": large},), {}),
                (halflab.memory, ("mlp", large), {}),
                (halflab.memory, ("mlp",), {"optimizer": large}),
                (halflab.memory, ("mlp",), {"batch": large}),
            ):
                with self.subTest(f"{function.__name__ if hasattr(function, '__name__') else function} {type(large)}"):
                    self.message(ValueError, function, *arguments, **options)
        self.message(ValueError, halflab.encode, np.zeros(3, dtype=[(f"field{i}", "f4") for i in range(500)]))
        self.message(ValueError, halflab.decode, 10**6000)
        self.message(ValueError, halflab.encode, texts)

    def test_names_that_an_error_cannot_show_whole(self):
        long = ["x" * length for length in (100, 101, 250, 900)] + ["x:" + "y" * 900, "x" + ":y=1" * 900]
        for name in ("a\nb", "bin\nary", "a\u2028b", "\x1b[2J", "\ud800", *long):
            for function, arguments, options in (
                (halflab.encode, (1, name), {}),
                (halflab.encode, (1,), {"rounding": name}),
                (halflab.encode, (1,), {name: 1}),
                (halflab.ulp, (1,), {name: 1}),
                (halflab.text, (0,), {"style": name}),
                (halflab.compare, (1.0, name, 1.0), {}),
                (halflab.sum, ([1.0], name), {}),
                (halflab.matmul, ([1.0], [1.0], name), {}),
                (halflab.round_to_blocks, ([1.0], name), {}),
                (halflab.Scaler, (name,), {}),
                (halflab.Scaler, ("dynamic:" + name,), {}),
                (halflab.Scaler, ("dynamic:growth_interval=" + name,), {}),
                (halflab.Scaler, ("dynamic",), {name: 1}),
                (halflab.Scaler("dynamic").restore, ({name: 1.0},), {}),
                (halflab.memory, (name,), {}),
                (halflab.memory, ("mlp", name), {}),
                (halflab.memory, ("mlp",), {"optimizer": name}),
                (halflab.memory, ("mlp",), {"recomputation": name}),
                (halflab.memory, ("mlp",), {name: 1}),
            ):
                with self.subTest(function=function, name=name[:20], options=list(options)[:1]):
                    self.message((TypeError, ValueError), function, *arguments, **options)
        self.message(ValueError, halflab.memory, "a\nb.toml")
        self.message(ValueError, halflab.Scaler("dynamic").restore, {1: 1.0})
        for scaler, row in halflab.scalers.items():  # all options together are no longer than a spec may be
            if row["kind"] == "global":
                spec = scaler + "".join(f":{name}={each['default']}" for name, each in row["options"].items())
                self.assertEqual(halflab.Scaler(spec).name, scaler)

    def test_networks_of_a_wrong_type(self):
        for network in (5, None, ["mlp"], ""):
            for function in (halflab.memory, halflab.activations, halflab.kernels):
                text = self.message(ValueError, function, network)
                self.assertIn(f"network = {network!r} is not allowed; allowed: bert_large, ", text)

    def test_a_repr_that_raises(self):
        class Wrong:
            def __init__(self, error):
                self.error = error

            def __repr__(self):
                raise self.error

        class Unprintable:
            def __repr__(self):
                return "\ud800"

        for wrong in (Wrong(ValueError("no")), Unprintable()):
            self.assertIn("a value of type", self.message(ValueError, halflab.encode, 1, wrong))
        for interruption in (KeyboardInterrupt, SystemExit):
            with self.assertRaises(interruption):
                halflab.encode(1, Wrong(interruption()))

    def test_sequences_without_an_end(self):
        itself, twice, deep = [], [], 1.0
        itself.append(itself)
        twice += [twice, twice]
        for _ in range(200_000):
            deep = [deep]
        endless = collections.UserList()
        endless.append(endless)
        for values in (itself, twice, deep, endless):
            for function in (halflab.encode, halflab.decode, halflab.sum, halflab.ExponentHistogram):
                self.assertIn("allowed: up to 64 dimensions", self.message(ValueError, function, values))
        for depth in (33, 64, 65):  # as far as numpy goes
            values = 1.0
            for _ in range(depth):
                values = [values]
            try:
                self.assertEqual(np.asarray(values).ndim, depth)
            except ValueError:
                self.message(ValueError, halflab.encode, values)
            else:
                self.assertEqual(halflab.encode(values).ndim, depth)

    def test_masks_are_refused_by_all_that_take_arrays(self):
        masked = np.ma.array([1.0, 2.0], mask=[False, True])
        histogram = halflab.ExponentHistogram()
        for function, arguments in (
            (halflab.encode, (masked,)),
            (halflab.decode, (np.ma.array([1, 2], mask=[False, True]),)),
            (halflab.round_to, ([masked, masked],)),
            (halflab.round_to, (collections.deque([masked]),)),
            (halflab.round_to, ([(collections.UserList([masked]),)],)),
            (halflab.add, (1.0, masked)),
            (halflab.compare, (masked, "less", 1.0)),
            (halflab.sum, (masked,)),
            (halflab.partial_sums, (masked,)),
            (halflab.dot, ([1.0, 2.0], masked)),
            (halflab.matmul, ([1.0, 2.0], masked)),
            (halflab.round_to_blocks, (masked, "mxfp4")),
            (halflab.ulp, (np.ma.masked,)),
            (halflab.math.exp, (masked,)),
            (halflab.ExponentHistogram, (masked,)),
            (histogram.add, (masked,)),
            (histogram.zones, (np.ma.array(3),)),
        ):
            text = self.message(ValueError, function, *arguments)
            self.assertIn("a masked array is not allowed; allowed: its .filled(value) or .compressed()", text)
        self.assertEqual(halflab.sum(masked.compressed()), 1.0)
        self.assertEqual(halflab.sum(collections.deque([1.0, 2.0])), 3.0)


if __name__ == "__main__":
    unittest.main()
