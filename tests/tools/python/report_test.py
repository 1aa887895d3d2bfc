"""Pages on gradients, without PyTorch: records made by hand, in which it is known what is wrong."""

import re
import unittest

import numpy as np

import halflab
from gradient_pages import Pages, spread
from pages import Page


class Records(Pages):
    def test_nothing_wrong(self):
        page = self.page([2.0**16] * 4, {0: {("a", "output"): spread(-10), ("a.weight", "gradient"): spread(-12)}})
        self.assertEqual(page.title, "No step was skipped, and FP16 keeps the gradients")
        self.assert_says(page, "Nothing: go on.")
        self.assertNotIn("Why steps were lost", page.text)

    def test_an_empty_record(self):
        page = self.page([])
        self.assertEqual(page.title, "No step was recorded")
        self.assert_says(page, "Check that optimizer= or scaler= is the one whose step() or update() the loop calls")
        self.assertNotIn("no tensors one by one", page.text)

    def test_unsampled(self):
        page = self.page([2.0**16] * 4)
        self.assertEqual(page.title, "No step was skipped, and whether FP16 loses gradients cannot be told")
        self.assert_says(page, "No step was sampled")

    def test_a_stall_whose_values_are_lost_already(self):
        """What FP16 leaves of gradients around 2^-30 at S = 1, and of those around 2^-20."""
        with np.errstate(under="ignore"):
            samples = {("b", "output"): spread(-20).astype(np.float16), ("a", "output"): spread(-30).astype(np.float16)}
        self.assertFalse(samples["a", "output"].any())
        page = self.page([1.0] * 5, {0: samples}, scaler="")
        self.assertEqual(page.title, "No step was skipped, but FP16 loses gradients at S = 1")
        best = halflab.ExponentHistogram(samples["b", "output"]).recommended_log2_scale
        self.assert_says(
            page,
            f"torch.amp.GradScaler(init_scale=2.0**{best})",
            "At S = 1, 1 of 2 tensors lies wholly below FP16’s normal numbers, where first digits are lost and then the "
            "values: b (output).",
            "1 of 2 tensors got nothing but zeros: a (output).",
            "cannot be told by a run that lost the values",
        )

    def test_what_a_run_lost_is_not_told_by_the_table(self):
        """At S = 2^4 the run itself lost values; of S = 1 it tells a bound, of 2^4 and more nothing."""
        values = spread(-18)
        page = self.page([2.0**4] * 3, {0: {("a", "output"): values}})
        bound = np.mean(values.astype(np.float16) == 0)
        best = halflab.ExponentHistogram(values).recommended_log2_scale
        self.assertGreater(bound, 0)
        self.assert_says(page, f"flushed at 2^{best}, recommended", f"≥ {100 * bound:.3g} %\n?\n?\n", "3 steps, 1 sample.")

    def test_a_stall_of_which_nothing_is_left(self):
        page = self.page([1.0] * 3, {0: {("a", "output"): np.zeros(50)}}, scaler="")
        self.assertEqual(page.title, "No step was skipped, and whether FP16 loses gradients cannot be told")
        self.assert_says(page, "Try torch.amp.GradScaler()", "Whether FP16 made them so cannot be told", "twin=compute_loss")

    def test_an_old_torch_is_advised_by_its_own_names(self):
        for version, name in (("1.13.1", "torch.cuda.amp."), ("2.2.0", "torch.cuda.amp."), ("2.3.1+cu121", "torch.amp.")):
            source = f"PyTorch {version}, Net"
            page = self.page([1.0] * 3, {0: {("a", "output"): np.zeros(50)}}, scaler="", source=source, folder=version)
            self.assert_says(page, f"Try {name}GradScaler()")

    def test_zeros_alone_are_no_proof(self):
        page = self.page([2.0**16] * 2, {0: {("a", "output"): np.zeros(500), ("b", "output"): spread(-9)}})
        self.assertEqual(page.title, "No step was skipped, and whether FP16 loses gradients cannot be told")
        self.assert_says(page, "twin=compute_loss")

    def test_a_stall_that_a_twin_counts(self):
        """The shares are those of casts by numpy."""
        with np.errstate(under="ignore"):
            exact = {"b": spread(-24, seed=1), "a": spread(-34, seed=2)}
            samples = {(name, "output"): values.astype(np.float16) for name, values in exact.items()}
            samples.update({(name, "output in FP32"): values for name, values in exact.items()})
            together = np.concatenate(list(exact.values()))
            lost = np.mean(together.astype(np.float16) == 0)
        page = self.page([1.0] * 5, {0: samples}, scaler="")
        self.assertEqual(page.title, "No step was skipped, but FP16 loses gradients at S = 1")
        self.assertTrue(0.5 < lost < 1)
        self.assert_says(page, f"{100 * lost:.3g} % at S = 1;", "At S = 1, 1 of 2 tensors loses everything: a (output).")
        best = halflab.ExponentHistogram(together).recommended_log2_scale
        self.assert_says(page, f"Recommended: S = 2^{best}")
        self.assertIn(f"Every S from 2^{self.lowest_keeping(together)} to 2^{best + 1}", page.text)

    @staticmethod
    def lowest_keeping(values):
        """Of the scales without overflow the smallest that loses at most one in a thousand more than the largest."""
        with np.errstate(under="ignore", over="ignore"):
            cast = {m: np.abs(np.ldexp(values, m).astype(np.float16)) for m in range(-10, 60)}
        fits = {m: np.mean(halves == 0) for m, halves in cast.items() if np.isfinite(halves).all()}
        return min(m for m, lost in fits.items() if lost <= fits[max(fits)] + 0.001)

    def test_activations_stand_apart(self):
        """They are not scaled: 2^10 can grow by five octaves, whatever S is."""
        page = self.page([2.0**16] * 2, {0: {("a", "output"): spread(-10), ("a", "activation"): np.full(500, 1024.0)}})
        self.assertEqual(page.title, "No step was skipped, and FP16 keeps the gradients")
        table = page.text.split("What no loss scale touches")[1]
        self.assertIn("a\nactivation\n500\n0 %\n?\n1.02e+03\n5\n", table)
        self.assertNotIn("What no loss scale touches", self.page([2.0], folder="other").text)

    def test_small_losses_have_a_title_of_their_own(self):
        values = np.concatenate([spread(-8, 990), spread(-70, 10)])
        page = self.page([2.0**16] * 3, {0: {("a", "output"): values, ("a", "output in FP32"): values}})
        self.assertEqual(page.title, "No step was skipped, but FP16 makes 1 % of the gradients zero at S = 2^16")
        self.assert_says(page, "1 % at S = 2^16, which most steps had", "No tensor loses more than half at S = 2^16.")
        self.assert_says(page, "Nothing: no scale keeps more.")
        page = self.page([2.0**4] * 3, {0: {("a", "output in FP32"): spread(-22)}})
        self.assertRegex(page.title, r"No step was skipped, but FP16 makes [\d.]+ % of the gradients zero at S = 2\^4")
        self.assert_says(page, "Begin with a larger S")
        values[990:] = 0
        page = self.page([2.0**16] * 3, {0: {("a", "output"): values, ("a", "output in FP32"): values}})
        self.assertEqual(page.title, "No step was skipped, and FP16 keeps the gradients")

    def test_zeros_next_to_subnormal_numbers_may_be_losses(self):
        """A run in FP16 at S = 1: of spread values small ones become zero. Zeros beside a gap were zero before."""
        with np.errstate(under="ignore"):
            lost = np.concatenate([spread(-10), spread(-21)]).astype(np.float16)
        self.assertTrue(0 < np.mean(lost == 0) < 0.1)
        page = self.page([1.0] * 3, {0: {("a", "output"): lost}}, scaler="")
        self.assertEqual(page.title, "No step was skipped, and whether FP16 loses gradients cannot be told")
        self.assert_says(page, "watch(..., twin=compute_loss) repeats samples in FP32", "Scale the loss, which no GradScaler does")
        masked = np.abs(spread(-5)) + 2.0**-8
        masked[::2] = 0
        page = self.page([1.0] * 3, {0: {("a", "output"): masked}}, scaler="")
        self.assertEqual(page.title, "No step was skipped, and FP16 keeps the gradients")
        self.assert_says(page, "Nothing: go on.")

    def test_parameters_in_FP32_beside_FP16_do_not_count(self):
        samples = {("a", "output"): spread(-10), ("norm.weight", "gradient"): np.full(10, 8.0), ("a.weight", "gradient"): [0.5]}
        types = {"output_types": {"a": "float16"}, "gradient_types": {"norm.weight": "float32", "a.weight": "float16"}}
        record = self.record([1000.0] * 3, {0: samples}, **types)
        self.assertEqual(record.recommended_scale(), 2.0**15)
        page = Page(record.report(self.folder / "page.html"))
        self.assert_says(page, "Left out are gradients that are made in FP32", "overflows: norm.weight.")
        record = self.record([1000.0] * 3, {0: samples}, **{**types, "output_types": {"a": "float32"}})
        self.assertEqual(record.recommended_scale(), 2.0**11)

    def test_weights_are_of_their_own_type(self):
        samples = {0: {("a", "output"): spread(-10), ("a.weight", "weight"): spread(-30), ("b.weight", "update"): spread(-30)}}
        page = self.page([2.0**10] * 3, samples, parameter_types={"a.weight": "float32", "b.weight": "float16"})
        table = page.text.split("What no loss scale touches")[1]
        self.assertIn("a.weight\nweight\n500\n0 %\n100 %", table)
        self.assertIn("b.weight\nupdate\n500\n0 %\n?", table)
        self.assertIn("that values can still grow", table)

    def test_a_scale_that_FP32_does_not_hold(self):
        record = self.record([1.0] * 3, {0: {("a", "output"): spread(-170)}}, output_types={"a": "float32"})
        self.assertEqual(record.recommended_scale(), 2.0**127)
        self.assert_says(Page(record.report(self.folder / "page.html")), "Recommended: S = 2^127, the largest that FP32 holds.")

    def test_products_beyond_the_range_of_doubles_are_lost(self):
        values = {"a": np.array([1e300, 1e-300, 1.0, np.inf, 0.0])}
        for scale, lost in ((2.0**-1000, "overflowed"), (2.0**200, "flushed")):
            histogram = halflab.ExponentHistogram(values["a"])
            forecast = halflab.gradients.arrays.CastForecast(histogram, "bfloat16", values.values(), int(np.log2(scale)))
            zones = forecast.zones(0)
            self.assertEqual((zones[lost], sum(zones.values())), (2, 5))

    def test_one_scaler_to_replay(self):
        record = self.record([2.0**16] * 3, {0: {("a", "output"): spread(-10)}})
        self.assertEqual(record.replay("dynamic").summary, record.replay(["dynamic"]).summary)

    def test_a_run_in_other_formats_is_forecast(self):
        page = self.page([1.0] * 3, {0: {("a", "output"): spread(-30)}}, scaler="", output_types={"a": "bfloat16"})
        self.assertEqual(page.title, "No step was skipped, but FP16 would lose gradients at S = 1")
        self.assert_says(page, "Nothing, as you train in bfloat16. Should you go to FP16: scaler = torch.amp.GradScaler(")
        page = self.page([1.0] * 3, {0: {("a", "output"): spread(-19)}}, scaler="", output_types={"a": "float32"})
        self.assertRegex(page.title, r"No step was skipped, but FP16 would make [\d.]+ % of the gradients zero at S = 1")
        self.assert_says(page, "Nothing, as you train in FP32. Should you go to FP16:")

    def test_a_scale_that_is_no_power_of_two(self):
        page = self.page([1000.0] * 3, {0: {("a", "output"): spread(-9)}})
        self.assert_says(page, "to within an octave", "at S = 2^10")
        self.assertEqual(page.title, "No step was skipped, and FP16 keeps the gradients")

    def test_a_run_that_was_killed(self):
        self.assert_says(self.page([1.0], ended="running"), "The run was killed, or goes on still")
        self.assert_says(self.page([1.0], ended="KeyError: 'x<y'"), "The run ended by KeyError: 'x<y'.")

    def test_the_run_that_lost_every_sample(self):
        """Counts of a twin are all there is."""
        skip = {"step": 0, "scale": 2.0**30, "twin": "finite", "cured_by": 2.0**20}
        values = {("a", "output"): np.full(5, np.inf), ("a", "output in FP32"): spread(-9)}
        page = self.page([2.0**30], {0: values}, skips=[skip])
        self.assert_says(page, "1 of 1 step was skipped", "A smaller S cures step 0", "Recommended: S = 2^")

    def test_what_a_twin_counts_at_skipped_steps_counts(self):
        """Of step 3 FP32 tells that S must be smaller by far, as the scale that cures it does."""
        skip = {"step": 3, "scale": 2.0**16, "twin": "finite", "cured_by": 2.0**3}
        samples = {0: {("a", "output in FP32"): np.full(9, 2.0**-10)}, 3: {("a", "output in FP32"): np.full(9, 2.0**12)}}
        samples[4] = {("a", "output in FP32"): np.array([2.0**40, np.inf])}
        samples[5] = {("a", "output in FP32"): np.full(9, 2.0**30)}
        broken = {"step": 4, "scale": 2.0**15, "twin": "not finite"}, {"step": 5, "scale": 2.0**14, "forward_output": "a"}
        record = self.record([2.0**16] * 6, samples, skips=[skip, *broken])
        self.assertEqual(record.recommended_scale(), 2.0**2)
        page = Page(record.report(self.folder / "page.html"))
        self.assert_says(page, "A smaller S cures step 3", "Recommended: S = 2^2")
        self.assert_says(page, "6 steps, 4 samples, of which 2 are counted: the others tell nothing of S.")


class Names(Pages):
    def test_names_are_texts(self):
        name = """<b>a</b> & "b" 'c'"""
        skip = {"step": 1, "scale": 2.0, "parameter": name, "module_output": name, "twin": f"none: {name}"}
        samples = {0: {(name, "output"): spread(-10), (name, "gradient"): spread(-40)}}
        page = self.page([2.0] * 3, samples, skips=[skip], notes=[name])
        self.assertNotIn("b", page.tags[: page.tags.index("h1")])
        self.assertGreater(page.text.count(name), 5)
        self.assertEqual(page.tags.count("b"), 1)  # that of "What to do"

    def test_names_are_drawn_without_what_all_begin_with(self):
        names = [f"model.layers.{i}.weight" for i in range(3)]
        page = self.page([2.0] * 3, {0: {(name, "gradient"): spread(-10) for name in names}})
        self.assert_says(page, *(f"\n…{i}.weight\n" for i in range(3)), *names)

    def test_long_names_break_between_words(self):
        page = self.page([2.0] * 3, {0: {("q_proj.base_layer.weight", "gradient"): spread(-10)}})
        self.assertIn(">q_<wbr>proj.<wbr>base_<wbr>layer.<wbr>weight</td>", page.source)

    def test_cells_have_the_colour_of_their_zone(self):
        """At S = 2^4 of four values one becomes zero, one overflows."""
        values = {("a", "gradient"): np.ldexp(1.0, [-30, -25, -3, 13])}
        page = self.page([2.0**4] * 3, {0: values})
        cells = {style: path.count("M") for style, path in re.findall(r'class="cell (\w+) l\d" d="([^"]*)"', page.source)}
        self.assertEqual(cells, {"flushed": 2, "subnormal": 1, "normal": 1})
        self.assert_says(page, "magnitude of the values, S divided out")

    def test_many_steps_keep_the_page_small(self):
        scales = [2.0 ** (step % 7) for step in range(30_000)]
        page = self.page(scales, {0: {("a", "output"): spread(-10)}}, bad=range(1, 30_000, 2))
        self.assertLess(len(page.source), 150_000)

    def test_thousands_of_tensors_keep_the_page_small(self):
        samples = {(f"model.layers.{i}.attention.weight", "gradient"): spread(-10 - i % 20, 50, i) for i in range(4000)}
        page = self.page([2.0**16] * 2, {0: samples})
        self.assertLess(len(page.source), 150_000)
        self.assert_says(page, "40 of 4000 tensors", "100 of 4000 tensors")


class Experiments(Pages):
    def test_a_record_of_an_experiment_is_reported(self):
        halflab.run_experiment(
            "training", out=self.folder / "run", model="autoencoder", policy="O2", scalers="none", steps=21, record=True
        )
        record = halflab.read_gradients(self.folder / "run")
        self.assertEqual({key for key in record.exponents}, {(step, of) for step in (0, 10, 20) for of in ("run", "twin")})
        page = Page(record.report(self.folder / "page.html"))
        twin = halflab.ExponentHistogram()
        for (_, of), histogram in record.exponents.items():
            if of == "twin":
                twin += histogram
        share = 100 * twin.flushed_at_scale(0) / twin.nonzero_finite
        self.assert_says(page, f"{share:.3g} % at S = 1", "The record has no tensors one by one")


if __name__ == "__main__":
    unittest.main()
