"""Pages on gradients, without PyTorch: records made by hand, in which it is known what is wrong."""

import math
import pathlib
import re
import tempfile
import unittest

import numpy as np

import halflab
from halflab.gradients.files import Writer, fp32_parameters
from oracle import Case
from pages import Page

TORCH = {"source": "PyTorch 2.15, Net", "scaler": "dynamic:init_scale=65536", "exponents_every": 1, "notes": []}


def spread(log2, size=500, seed=0):
    """Values around 2^log2, normally distributed."""
    return np.random.default_rng(seed).normal(size=size) * 2.0**log2


class Pages(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def record(self, scales, samples=None, skips=(), bad=(), ended="finished", folder="record", **description):
        """`samples`: {step: {(name, kind): array}}, with S divided out; kinds in FP32 are the twin's."""
        writer = Writer(self.folder / folder, {**TORCH, "output_types": {"a": "float16"}, **description})
        bad, in_fp32 = {skip["step"] for skip in skips} | set(bad), fp32_parameters(description)
        for step, scale in enumerate(scales):
            totals = {"run": halflab.ExponentHistogram(), "twin": halflab.ExponentHistogram()}
            for (name, kind), values in (samples or {}).get(step, {}).items():
                histogram = halflab.ExponentHistogram(values)
                if name not in in_fp32:
                    totals["twin" if kind.endswith("in FP32") else "run"].__iadd__(histogram)
                writer.tensor(step, name, kind, histogram)
            for of, total in totals.items():
                if total.total and math.frexp(scale)[0] == 0.5:
                    writer.exponents(step, of, total)
            cells = {"max_abs_all": totals["run"].max_abs, "twin_max_abs_all": totals["twin"].max_abs}
            writer.step(step=step, scale=float(scale), found_inf=int(step in bad), **cells)
        for skip in skips:
            writer.skip(**{"outcome": "skipped", **skip})
        writer.close(ended)
        return halflab.read_gradients(self.folder / folder)

    def page(self, *arguments, **options):
        page = Page(self.record(*arguments, **options).report(self.folder / "page.html"))
        self.assertEqual(page.references(), [])
        self.assertNotIn("script", page.tags)
        self.assertFalse([name for name in self.folder.iterdir() if name.name.startswith(".")])
        return page

    def assert_says(self, page, *fragments):
        for fragment in fragments:
            self.assertIn(fragment, page.text)


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


class Ledgers(Pages):
    SAMPLES = {0: {("a", "output"): spread(-10), ("b", "output"): spread(-12)}}

    def skipped(self, *skips, scales=None, **options):
        return self.page(scales or [2.0**16] * 3 + [2.0**15] * 7, self.SAMPLES, skips=skips, **options)

    def test_an_input_that_was_not_finite(self):
        bad = {"step": 5, "scale": 2.0**15, "parameter": "head.weight", "index": "0 0", "value": math.nan,
               "module_output": "head", "forward_output": "the model's input", "twin": "not finite"}  # fmt: skip
        search = {"step": 0, "scale": 2.0**16, "parameter": "head.bias", "index": "1", "value": math.inf, "twin": "finite",
                  "cured_by": 2.0**15}  # fmt: skip
        page = self.skipped(search, bad)
        self.assertEqual(page.title, "2 of 10 steps were skipped: at step 5 the model’s input was not finite")
        self.assert_says(
            page,
            "Look at the batch of step 5: what the model was given holds NaNs or infinities",
            "The trouble began before the model: at step 5 its input was not finite.",
            "No S cures step 5: the model’s input was not finite.",
        )
        self.assertNotIn("inside of torch.autocast", page.text)

    def test_a_forward_pass_that_overflows(self):
        skip = {"step": 2, "scale": 2.0**16, "parameter": "head.weight", "index": "4 2", "value": math.inf,
                "largest_finite": 0.25, "module_output": "head", "forward_output": "decoder"}  # fmt: skip
        page = self.skipped(skip)
        self.assertEqual(page.title, "1 of 10 steps was skipped: decoder overflows in the forward pass")
        self.assert_says(
            page,
            "Run decoder in FP32",
            "At step 2, with S = 2^16, the gradient of head.weight was the first that was not finite, in backward order: "
            "inf at [4, 2]. The largest that was finite is 0.25, S divided out.",
            "at step 2 the output of decoder was the first that was not finite",
            "No S cures step 2: S does not touch the forward pass, which overflowed.",
        )

    def test_a_backward_pass_that_overflows(self):
        page = self.skipped({"step": 2, "scale": 2.0**16, "parameter": "b.weight", "module_output": "b"})
        self.assertEqual(page.title, "1 of 10 steps was skipped: the gradient of b breaks first")
        self.assert_says(page, "in the backward pass of step 2 the gradient of the output of b was")
        self.assert_says(
            page,
            "Whether a smaller S cures it cannot be told: run watch with twin=compute_loss. The next finite step was 3, "
            "with S = 2^15.",
        )

    def test_a_scale_that_cures(self):
        skips = [{"step": step, "scale": 2.0**16, "twin": "finite", "cured_by": 2.0 ** (14 - step)} for step in (1, 2)]
        page = self.skipped(*skips)
        self.assert_says(page, "A smaller S cures 2 of 2 steps: repeated with S = 2^12 to 2^13, nothing overflows.")
        self.assertNotIn("cures it cannot be told", page.text)

    def test_what_no_scale_cures(self):
        page = self.skipped({"step": 2, "scale": 2.0**16, "twin": "not finite"})
        self.assertEqual(page.title, "1 of 10 steps was skipped: FP32 is not finite there either")
        self.assert_says(page, "No S cures step 2", "Look at the batch and the loss")

    def test_a_twin_that_failed(self):
        page = self.skipped({"step": 2, "scale": 2.0**16, "twin": "none: KeyError: 'b<a'"})
        self.assert_says(page, "cannot be told: the repeat in FP32 failed (KeyError: 'b<a').")

    def test_a_scaler_that_looks_for_its_scale(self):
        skips = [{"step": step, "scale": scale} for step, scale in ((0, 2.0**18), (1, 2.0**17), (6, 2.0**17))]
        page = self.skipped(*skips, scales=[2.0**18, 2.0**17] + [2.0**16] * 4 + [2.0**17] + [2.0**16] * 3)
        self.assertEqual(page.title, "3 of 10 steps were skipped, as the scaler looked for S")
        self.assert_says(page, "at the very beginning or right after S had grown")
        leap = [2.0**14] * 3 + [2.0**16, 2.0**15, 2.0**14]
        page = self.skipped(*({"step": step, "scale": leap[step]} for step in (3, 4)), scales=leap)
        self.assertEqual(page.title, "2 of 6 steps were skipped, as the scaler looked for S")
        skips[2]["step"] = 4
        page = self.skipped(*skips, scales=[2.0**18, 2.0**17] + [2.0**16] * 8)
        self.assertEqual(page.title, "3 of 10 steps were skipped")

    def test_a_scale_that_collapses_is_no_search(self):
        skips = [{"step": step, "scale": 2.0**-step} for step in range(9)]
        page = self.skipped(*skips, scales=[2.0**-step for step in range(10)])
        self.assertEqual(page.title, "9 of 10 steps were skipped, and FP16 loses gradients at S = 2^-9")

    def test_a_step_that_was_applied(self):
        page = self.skipped({"step": 2, "scale": 1.0, "outcome": "applied", "parameter": "a.weight"}, scaler="")
        self.assertEqual(page.title, "1 of 10 steps was not finite: the gradient of a.weight breaks first")
        self.assert_says(page, "destroys the weights")

    def test_the_first_of_steps_that_were_applied_is_to_blame(self):
        """The later ones follow from the weights that it spoilt."""
        first = {"step": 2, "scale": 1.0, "outcome": "applied", "parameter": "a.weight", "forward_output": "the model's input"}
        later = {"scale": 1.0, "outcome": "applied", "forward_output": "a", "weight_before": "a.weight"}
        page = self.skipped(first, *({"step": step, **later} for step in range(3, 10)), scaler="", scales=[1.0] * 10)
        self.assertEqual(page.title, "8 of 10 steps were not finite: at step 2 the model’s input was not finite")
        self.assert_says(page, "Look at the batch of step 2")
        self.assertNotIn("Run a in FP32", page.text)

    def test_weights_that_were_not_finite_already(self):
        skips = [{"step": step, "scale": 2.0**16, "twin": "not finite", "forward_output": "a", "weight_before": "a.weight"}
                 for step in (4, 5)]  # fmt: skip
        page = self.skipped(*skips)
        title = "2 of 10 steps were skipped: the weights a.weight were not finite already at step 4"
        self.assertEqual(page.title, title)
        self.assert_says(page, "Look at what made the weights a.weight before step 4", "No S cures steps 4 and 5: the weights")
        for wrong in ("Run a in FP32", "Look at the batch", "which overflowed"):
            self.assertNotIn(wrong, page.text)

    def test_a_bad_input_beside_another_trouble_is_advised_too(self):
        skips = [{"step": step, "scale": 2.0**16, "forward_output": "decoder"} for step in (2, 3)]
        page = self.skipped(*skips, {"step": 4, "scale": 2.0**16, "forward_output": "the model's input"})
        self.assertIn("decoder overflows in the forward pass", page.title)
        self.assert_says(page, "Look at the batch of step 4", "Run decoder in FP32")

    def test_modules_with_numbers_for_names(self):
        page = self.skipped({"step": 2, "scale": 2.0**16, "forward_output": "0"})
        self.assertEqual(page.title, "1 of 10 steps was skipped: module 0 overflows in the forward pass")
        page = self.skipped({"step": 2, "scale": 2.0**16, "parameter": "0.weight", "module_output": "0.1"})
        self.assertEqual(page.title, "1 of 10 steps was skipped: the gradient of module 0.1 breaks first")

    def test_a_parameter_alone_that_was_not_finite(self):
        """Hooks were on at step 0, which was sampled, and at step 2 they were not."""
        page = self.skipped({"step": 0, "scale": 2.0**16, "parameter": "a.weight"})
        self.assert_says(page, "At step 0 every output that hooks saw was finite, and so was its gradient: the parameter’s")
        self.assert_says(self.skipped({"step": 2, "scale": 2.0**16}), "Hooks were on at none of these steps")

    def test_a_step_that_one_optimizer_applied(self):
        page = self.skipped({"step": 2, "scale": 2.0**16, "outcome": "partly applied", "parameter": "a.weight"})
        self.assertEqual(page.title, "1 of 10 steps was partly applied: the gradient of a.weight breaks first")
        self.assert_says(page, "partly applied: one optimizer skipped them, another did not: 2, of 10.")

    def test_skips_without_a_ledger(self):
        page = self.page([2.0**16] * 3 + [2.0**15] * 7, self.SAMPLES, bad=[2], source="mlp on digits")
        self.assertEqual(page.title, "1 of 10 steps was skipped")
        self.assert_says(page, "it is not recorded which gradient was the first")

    def test_ranks_of_another_run_are_not_mixed_in(self):
        """Ranks that this run has not, a folder that is none, a record of one process beside them, and other runs."""
        read = lambda: halflab.read_gradients(self.folder / "ranks")
        for rank, scales in ((0, [1.0] * 3), (1, [1.0] * 3), (2, [1.0] * 9)):
            about = {"rank": rank, "ranks": 2, "run": "a"} if rank < 2 else {}
            self.record(scales, folder=f"ranks/rank{rank}", **about)
        (self.folder / "ranks" / "rank_old").mkdir()
        (self.folder / "ranks" / "rank_old" / "manifest.json").write_text("{}")
        self.assertEqual([part.name for part in read().parts], ["rank0", "rank1"])
        self.record([1.0] * 3, folder="ranks/rank1", rank=1, ranks=2, run="b")
        with self.assertRaisesRegex(halflab.RecordError, "ranks: rank1 is of another run than rank0; allowed: one run$"):
            read()
        (self.folder / "ranks" / "manifest.json").write_text("{}")
        with self.assertRaisesRegex(halflab.RecordError, "holds a record beside those of ranks"):
            read()

    def test_names_of_any_characters(self):
        names = ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", " a", ""]
        samples = {0: {(name, "output"): spread(-10) for name in names}}
        skips = [{"step": step, "scale": 1.0, "parameter": name} for step, name in enumerate(names)]
        record = self.record([1.0] * len(names), samples, skips=skips)
        self.assertEqual([name for name, _ in record.tensors], names)
        self.assertEqual([skip["parameter"] or "" for skip in record.skips], names)

    def test_rank_0_clears_what_older_runs_left(self):
        self.record([1.0] * 9, folder="ranks")
        self.record([1.0] * 9, folder="old/rank2")
        (self.folder / "old" / "rank2").rename(self.folder / "ranks" / "rank2")
        (self.folder / "ranks" / "notes.txt").write_text("my own")
        for rank in (1, 0):
            self.record([1.0] * 3, folder=f"ranks/rank{rank}", rank=rank, ranks=2, run="a")
        record = halflab.read_gradients(self.folder / "ranks")
        self.assertEqual(([part.name for part in record.parts], len(record.steps)), (["rank0", "rank1"], 3))
        self.assertEqual([path.name for path in (self.folder / "ranks").iterdir() if path.is_file()], ["notes.txt"])

    def test_a_replay_is_that_of_all_ranks(self):
        """A step that one rank lost; the largest gradients are those of the other."""
        for rank, log2 in ((0, -10), (1, 2)):
            samples = {step: {("a", "output"): spread(log2)} for step in range(6)}
            skips = [{"step": 2, "scale": 2.0**16}] if rank else []
            self.record([2.0**16] * 3 + [2.0**15] * 3, samples, skips=skips, folder=f"ranks/rank{rank}")
        merged = halflab.read_gradients(self.folder / "ranks")
        replayed = merged.replay("dynamic")
        alone = halflab.read_gradients(self.folder / "ranks" / "rank1").replay("dynamic")
        self.assertEqual(str(replayed.steps), str(alone.steps))  # texts: they hold NaNs
        other = halflab.read_gradients(self.folder / "ranks" / "rank0").replay("dynamic")
        self.assertNotEqual(str(replayed.steps), str(other.steps))

    def test_ranks_that_lose_a_step_together_lose_it_once(self):
        for rank in (0, 1):
            skips = [{"step": 2, "scale": 2.0**16, "parameter": "b.weight"}, {"step": 5 + rank, "scale": 2.0**15}]
            self.record([2.0**16] * 9, self.SAMPLES, skips=skips, folder=f"ranks/rank{rank}")
        page = Page(halflab.read_gradients(self.folder / "ranks").report(self.folder / "page.html"))
        self.assertEqual(page.title, "3 of 9 steps were skipped: the gradient of b.weight breaks first")
        self.assert_says(page, "Steps that were skipped: 2, 5 and 6, of 9.", "At step 2 of rank 0, with S = 2^16")
        self.assert_says(page, "2 (rank 1)")

    def test_rare_skips_are_no_alarm(self):
        for steps, is_rare in ((400, True), (40, False)):
            skip = {"step": 20, "scale": 2.0**16, "parameter": "b.weight"}
            page = self.skipped(skip, scales=[2.0**16] * 21 + [2.0**15] * (steps - 21))
            self.assertEqual("Nothing, while skips are so rare." in page.text, is_rare, steps)

    def test_the_staircase_marks_each_lost_step(self):
        """In hundredths of the width: step 9 of 10 begins at 90 and is as wide as a step."""
        page = self.skipped({"step": 9, "scale": 2.0**15})
        self.assertIn('<path class="bad" d="M90.00,0h10.00v100h-10.00z"/>', page.source)
        self.assertIn("H30.00V", page.source)

    def test_many_skips_are_listed_in_part(self):
        page = self.skipped(*({"step": step, "scale": 2.0**16} for step in range(400)), scales=[2.0**16] * 500)
        self.assert_says(page, "0, 1, 2 and 397 more; the last of them 399, of 500", "The first 100 of 400")


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


class Arrays(Pages):
    def setUp(self):
        super().setUp()
        self.gradients = {"first": spread(-20).astype(np.float32), "second": spread(-31).astype(np.float32)}

    def test_it_says_what_hist_says(self):
        """The command `halflab hist`, which counts in its own way, on files of the same values."""
        for name, values in self.gradients.items():
            np.save(self.folder / f"{name}.npy", values)
        paths = {name: self.folder / f"{name}.npy" for name in self.gradients}
        for format in ("binary16", "e4m3", "e5m2", "bfloat16"):
            with self.subTest(format):
                report = halflab.report_gradients(paths, self.folder / "page.html", format=format)
                hist = halflab.run_command("hist", *paths.values(), format=format)
                self.assertEqual(report.recommended_scale(), 2.0 ** min(hist.summary["recommended_scale_log2"], 127))
                self.assert_same_scales(self.gradients, hist, format)
                page, name = Page(report.path), "FP16" if format == "binary16" else format
                share = hist.summary["fraction_flushed_at_1"]
                self.assert_says(page, f"{name} makes zero", f"{100 * share:.3g} % at S = 1;" if share else "0 % at S = 1;")
                self.assertEqual(report.tensors["second"], halflab.ExponentHistogram(self.gradients["second"]))

    def assert_same_scales(self, gradients, hist, format, scaled_by=0):
        """The plateaus and what is lost at S = 1, tensor by tensor and of all together."""
        gradients = {**gradients, "all tensors": np.concatenate(list(gradients.values()))}
        for row in hist.tables["tensors"]:
            values = gradients[row["tensor"]]
            found = halflab.gradients.arrays._forecast_of("x", values, halflab.formats[format], scaled_by)
            with self.subTest(format, values=values[:6], scaled_by=scaled_by):
                scales = row["plateau_lowest_log2"], row["plateau_highest_log2"]
                self.assertEqual((found.lowest_keeping(), found.headroom), scales)
                for zone, name in (("flushed", "flushed"), ("subnormal", "subnormal"), ("overflowed", "overflow")):
                    self.assertAlmostEqual(found.share(zone, 0), row[f"fraction_{name}_at_1"], 5)
                self.assertEqual(found.zones(0)["flushed"], found.flushed(0))

    def test_extremes_are_what_hist_says(self):
        draw = np.random.default_rng(0)
        gradients = {
            "far": np.float32([1e30, 1e-30]),
            "near": np.float32([1e-7, 1e-3]),
            "single": np.float32([2.0**-149, 3e38]),
            "least": np.array([5e-324]),
            "double": np.array([1e300, 1e-300, 1.0, 0.0, np.inf, np.nan]),
            "largest": np.array([65510.0, 1.0]),  # rounds to 65504
            "one": np.append(np.full(1999, 2.0**-40), 1.0),  # of 2000 is left at the largest scale
            "all": draw.normal(size=500) * 2.0 ** draw.integers(-1000, 1000, 500),
        }
        np.savez(self.folder / "x.npz", **gradients)
        for format, scaled_by in (("binary16", 0), ("binary16", 30), ("binary64", 0), ("bfloat16", -9), ("e2m1", 0)):
            options = {"format": format, "scaled_by": 2.0**scaled_by}
            hist = halflab.run_command("hist", self.folder / "x.npz", **options)
            self.assert_same_scales(gradients, hist, format, scaled_by)
            report = halflab.report_gradients(gradients, self.folder / "page.html", **options)
            self.assertEqual(math.log2(report.recommended_scale()), hist.summary["recommended_scale_log2"])
            low, high = (hist.summary[f"plateau_{end}_log2"] for end in ("lowest", "highest"))
            if format != "binary64":  # which loses nothing at S = 1
                self.assert_says(Page(report.path), f"Every S from 2^{low} to 2^{high} keeps")

    def test_a_scale_at_which_something_is_left(self):
        """2^127 is the largest that FP32 holds. What it does not keep takes a larger one."""
        for values, log2, why in (
            (np.float32([2.0**-149]), 127, "the largest that FP32 holds"),
            (np.array([2.0**-170]), 184, "an octave below the largest without overflow, which FP32 does not hold"),
            (np.array([5e-324]), 1088, "an octave below the largest without overflow, which FP32 does not hold"),
        ):
            report = halflab.report_gradients({"a": values}, self.folder / "page.html")
            self.assertEqual(report.recommended_scale(), 2**log2)
            page = Page(report.path)
            self.assert_says(page, f"0 % at S = 2^{log2}, recommended.", f"Recommended: S = 2^{log2}, {why}.")

    def test_a_format_of_all_scales(self):
        report = halflab.report_gradients({"x": np.float32([1e-7, 1e-3])}, self.folder / "page.html", format="binary64")
        self.assertEqual(Page(report.path).title, "binary64 keeps these gradients at S = 1")

    def test_values_that_carry_their_scale(self):
        scaled = {name: values * np.float32(2.0**16) for name, values in self.gradients.items()}
        plain = halflab.report_gradients(self.gradients, self.folder / "plain.html")
        report = halflab.report_gradients(scaled, self.folder / "page.html", scaled_by=2.0**16)
        self.assertEqual(report.tensors, plain.tensors)
        self.assertEqual(report.recommended_scale(), plain.recommended_scale())
        self.assert_says(Page(report.path), "S = 2^16, which the values carry")

    def test_headlines(self):
        for title, values, options in (
            ("FP16 loses these gradients at S = 1", spread(-30), {}),
            ("FP16 keeps these gradients at S = 1", spread(-5), {}),
            ("e5m2 makes 33.3 % of these gradients zero at S = 1", [2.0**-30, 1e-3, 2.0**-12, 0], {"format": "e5m2"}),
            ("These gradients overflow FP16 at S = 1", spread(20), {}),
            ("These gradients overflow e4m3 at S = 1", spread(10), {"format": "e4m3"}),
            ("There is nothing to lose: no value is finite and other than zero", [0.0, np.nan], {}),
        ):
            page = Page(halflab.report_gradients({"a": values}, self.folder / "page.html", **options).path)
            self.assertEqual(page.title, title)
        page = Page(halflab.report_gradients({"a": [np.inf, 1e-3], "b": [1.0]}, self.folder / "page.html").path)
        self.assert_says(page, "Not finite already, which no scale cures: values of a.")

    def test_subnormal_numbers_have_fewer_digits(self):
        page = Page(halflab.report_gradients({"a": np.ldexp(1.5, np.arange(-24, -19))}, self.folder / "page.html").path)
        self.assertEqual(page.title, "FP16 keeps these gradients at S = 1, 100 % of them with fewer digits")
        self.assert_says(page, "For more digits scale the loss with S = 2^34: 0 % are subnormal there, 100 % here.")
        page = Page(halflab.report_gradients({"a": [1.0, 0.5]}, self.folder / "page.html").path)
        self.assert_says(page, "Nothing: no scale keeps more.")

    def test_what_overflows_is_named(self):
        page = Page(halflab.report_gradients({"a": [1e6, 1e-3], "b": [1e-3]}, self.folder / "page.html").path)
        self.assert_says(page, "Scale the loss with S = 2^-5, or see why a is so large.")

    def test_zeros_of_FP16_may_have_been_made_before(self):
        with np.errstate(under="ignore"):
            lost = spread(-21).astype(np.float16)
        self.assertTrue(0 < np.mean(lost == 0) < 0.9)
        told = "a holds FP16 with exact zeros beside subnormal numbers."
        page = Page(halflab.report_gradients({"a": lost, "b": spread(-5)}, self.folder / "page.html").path)
        self.assert_says(page, told)
        for values in (lost.astype(np.float32), lost[lost != 0], np.where(np.abs(lost) < 2.0**-14, 0, lost)):
            page = Page(halflab.report_gradients({"a": values}, self.folder / "page.html").path)
            self.assertNotIn(told, page.text)

    def test_zeros_alone_of_a_narrow_format_may_be_all_that_is_left(self):
        with np.errstate(under="ignore"):
            lost = spread(-40).astype(np.float16)
        codes = np.zeros(500, dtype=np.uint8)
        write = halflab._arrays.write_safetensors
        write(self.folder / "bfloat16.safetensors", {"w": (codes.astype(np.uint16), halflab.bfloat16)})
        np.save(self.folder / "half.npy", lost)
        untold = "but whether a was lost before cannot be told"
        nothing = "no value is finite and other than zero"
        for values, format in (
            (lost, "FP16"),
            (lost.astype(">f2"), "FP16"),
            (self.folder / "half.npy", "FP16"),
        ):
            with self.subTest(format, values=str(values)[:40]):
                page = Page(halflab.report_gradients({"a": values, "b": spread(-5)}, self.folder / "page.html").path)
                self.assertEqual(page.title, f"FP16 keeps these gradients at S = 1, {untold}")
                told = f"a holds {format} with no finite value but exact zeros. Whether {format} made these zeros cannot"
                advice = f"Keep a in FP32, or scale the loss, and ask again: {format} may have made the zeros."
                self.assert_says(page, told, advice, "\na\ngradient\n500\n100 %\n?\n", "?: cannot be told")
                page = Page(halflab.report_gradients({"a": values}, self.folder / "page.html").path)
                self.assertEqual(page.title, f"Whether a was lost before cannot be told: {nothing}")
                self.assert_says(page, told, advice)
                self.assertNotIn("nothing to scale", page.text)
        for values in (np.zeros(500, np.float32), lost.astype(np.int16), self.folder / "bfloat16.safetensors"):
            page = Page(halflab.report_gradients({"a": values}, self.folder / "page.html").path)
            self.assertEqual(page.title, f"There is nothing to lose: {nothing}")
            self.assert_says(page, "Nothing: there is nothing to scale.", "\na\ngradient\n500\n100 %\n-\n")
        page = Page(halflab.report_gradients({"a": lost, "b": spread(-40), "c": lost}, self.folder / "page.html").path)
        self.assertEqual(page.title, "FP16 loses these gradients at S = 1")
        self.assert_says(page, "a and c hold FP16 with no finite value", "Scale the loss with S", "Keep a and c in FP32")

    def test_a_folder_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(FileNotFoundError, "/nowhere/page.html'$"):
            halflab.report_gradients(self.gradients, "/nowhere/page.html")

    def test_files_of_many_tensors(self):
        np.savez(self.folder / "both.npz", **self.gradients)
        report = halflab.report_gradients({"step": str(self.folder / "both.npz")}, self.folder / "page.html")
        self.assertEqual(set(report.tensors), {"step.first", "step.second"})

    def test_a_device_keeps_its_place(self):
        """Under root the page would else take the name of /dev/null from all programs."""
        link = self.folder / "null"
        link.symlink_to("/dev/null")
        self.assertEqual(halflab.report_gradients(self.gradients, link).path, link)
        self.assertTrue(link.is_symlink())
        with open(self.folder / "redirected", "w") as file:
            link = self.folder / "stdout"
            link.symlink_to(f"/proc/self/fd/{file.fileno()}")
            halflab.report_gradients(self.gradients, link)
            (self.folder / "fd").symlink_to("/proc/self/fd")
            halflab.report_gradients(self.gradients, self.folder / "fd" / str(file.fileno()))
        self.assertTrue(link.is_symlink())
        self.assertIn("</html>", (self.folder / "redirected").read_text())

    def test_what_is_not_allowed(self):
        out = self.folder / "page.html"
        for fragment, tensors, options in (
            ("allowed: a dict of arrays", {}, {}),
            ("allowed: a dict of arrays", [1.0], {}),
            ("scaled_by = 3 is not allowed; allowed: powers of two", self.gradients, {"scaled_by": 3}),
            ("scaled_by = 0 is not allowed", self.gradients, {"scaled_by": 0}),
            ("scaled_by = 'x' is not allowed", self.gradients, {"scaled_by": "x"}),
            ("format = e8m0 is not allowed", self.gradients, {"format": "e8m0"}),
            ("report_gradients: tensors['b']: values: None is not allowed", {**self.gradients, "b": None}, {}),
            ("cannot be read", {"a": "/nowhere.npy"}, {}),
        ):
            self.assert_refused(fragment, halflab.report_gradients, tensors, out, **options)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
