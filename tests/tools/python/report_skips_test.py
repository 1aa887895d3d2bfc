"""What a page says of steps that were skipped, without PyTorch: records made by hand, whose steps are skipped for known
reasons."""

import math
import unittest

import halflab
from gradient_pages import Pages, spread
from pages import Page


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


if __name__ == "__main__":
    unittest.main()
