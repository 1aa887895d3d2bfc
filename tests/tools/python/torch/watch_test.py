"""halflab.torch.watch: what it records, and that the training does not notice."""

import math
import os
import random
import subprocess
import sys
import unittest

from case import Case, Training, halflab, hooks_in, mixed_model, needs, nn, np, torch


class Undisturbed(Case):
    def assert_undisturbed(self, training, **options):
        alone, watched = Training(**training).run(), Training(**training)
        record = watched.watch(**options)
        self.assertEqual(alone.losses, watched.losses)
        for (name, a), b in zip(alone.model.state_dict().items(), watched.model.state_dict().values()):
            self.assertTrue(torch.equal(a, b), name)
        self.assertEqual(hooks_in(watched.model), 0)
        self.assertNotIn("step", vars(watched.scaler) if watched.scaler else {})
        return record

    @needs(2, 3)
    def test_the_losses_are_the_same_bits(self):
        everything = ["activations", "weights", "updates"]
        for training in ({}, {"scale": 2.0**24}, {"accumulate": 3}, {"growth_interval": 3}, {"scale": 1000.0}):
            for options in ({"every": 1, "also": everything}, {"every": 5}):
                with self.subTest(training=training, options=options):
                    self.assert_undisturbed(training, **options)

    def test_without_a_scaler(self):
        for autocast in (None, torch.bfloat16):
            self.assert_undisturbed({"scale": None, "autocast": autocast}, every=2)

    @needs(2, 3)
    def test_with_a_twin_that_repeats_steps(self):
        alone, watched = Training(scale=2.0**30).run(20), Training(scale=2.0**30)
        record = watched.watch(20, every=4, twin=watched.loss)
        self.assertGreater(len(record.skips), 5)
        self.assertEqual(alone.losses, watched.losses)


    def test_a_twin_draws_the_same_random_numbers_of_python_and_numpy(self):
        def model():
            class Noisy(nn.Sequential):
                def forward(self, x):
                    drawn.append((random.random(), np.random.random()))
                    return super().forward(x * (0.5 + drawn[-1][0]) + drawn[-1][1])

            return Noisy(nn.Linear(8, 3))

        losses, draws = [], []
        for is_watched in (False, True):
            drawn = []
            random.seed(1)
            np.random.seed(1)
            training = Training(model=model, scale=None, autocast=None)
            training.watch(4, every=2, twin=training.loss) if is_watched else training.run(4)
            losses.append(training.losses)
            draws.append(drawn)
        self.assertEqual(*losses)
        alone, (first, again, second, third, third_again, fourth) = draws
        self.assertEqual((first, third), (again, third_again))
        self.assertEqual(alone, [first, second, third, fourth])

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_disk_that_is_full(self):
        """The training goes on, and one line says where its record ends."""
        alone, training = Training(scale=None, autocast=None).run(), Training(scale=None, autocast=None)
        watch = halflab.torch.watch(training.model, training.optimizer, every=1, out=self.folder / "r", twin=training.loss)
        full = "the record .*r cannot be written (No space left on device); it ends at step 3, the training goes on"
        with watch as watched, self.assertWarnsRegex(RuntimeWarning, full.replace("(", r"\(").replace(")", r"\)")) as caught:
            training.run(3)
            watched._recorder._writer._files["tensors"] = open("/dev/full", "w")
            training.run(9)
            self.assertEqual(hooks_in(training.model), 0)
        self.assertEqual(len(caught.warnings), 1)
        self.assertEqual(alone.losses, training.losses)
        record = halflab.read_gradients(self.folder / "r")
        self.assertEqual(record.steps["step"].tolist()[:3], [0, 1, 2])
        self.assertEqual(record.manifest["ended"], "stopped at step 3: No space left on device")

    @needs(2, 3)
    def test_what_cannot_be_looked_at(self):
        """Nested tensors; and a mapping that does not like to be read."""

        class Odd(dict):
            def values(self):
                raise LookupError("two\nlines")

        class Nested(nn.Module):
            def forward(self, x):
                return torch.nested.nested_tensor([x.detach()[:2], x.detach()[:1]]).requires_grad_(), Odd(x=x)

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.nested, self.last = Nested(), nn.Linear(8, 3)

            def forward(self, x):
                nested, odd = self.nested(x)
                return self.last(odd["x"] + sum(part.sum() for part in nested.unbind()) / 99)

        alone, training = (Training(model=Model, scale=None, autocast=None) for _ in range(2))
        with halflab.torch.watch(training.model, training.optimizer, every=1, also=["activations"]) as watched:
            training.run()
        self.assertEqual(alone.run().losses, training.losses)
        (note,) = watched.record.manifest["notes"]
        self.assertRegex(note, r"^not seen any more: nested \([A-Za-z]+Error: .*\)$")
        self.assertIn(("last", "output"), watched.tensors)

    def test_tensors_with_a_bit_for_minus(self):
        class Imaginary(nn.Module):
            def forward(self, x):
                return torch.view_as_complex(x.reshape(32, 2, 2)).conj().imag

        def model():
            return nn.Sequential(nn.Linear(8, 4), Imaginary(), nn.Tanh(), nn.Linear(2, 3))

        record = self.assert_undisturbed({"model": model, "scale": None, "autocast": None}, every=1, also=["activations"])
        self.assertEqual(record.tensors["1", "activation"].total, 12 * 64)
        negated = torch.view_as_complex(torch.ones(3, 2)).conj().imag
        self.assertTrue(negated.is_neg())
        self.assertEqual(halflab.ExponentHistogram(negated), halflab.ExponentHistogram([1.0] * 3))
        np.testing.assert_array_equal(halflab.round_to(negated), [-1.0] * 3)


class Recorded(Case):
    @needs(2, 3)
    def test_counts_are_those_of_the_gradients(self):
        """Against gradients that autograd itself keeps."""
        training = Training(scale=2.0**10)
        kept, linear = [], training.model[4]
        hook = linear.register_forward_hook(lambda module, inputs, output: (output.retain_grad(), kept.append(output)) and None)
        weights = []
        training.scaler.step, step = lambda o: (weights.append(linear.weight.grad.clone()), step(o)), training.scaler.step
        record = training.watch(4, every=2)
        hook.remove()
        for key, tensors in ((("4", "output"), [t.grad for t in kept]), (("4.weight", "gradient"), weights)):
            expected = halflab.ExponentHistogram()
            for tensor in (tensors[0], tensors[2]):
                expected.add(tensor.numpy())
            self.assertEqual(record.tensors[key], expected.shifted(-10), key)
            self.assertEqual(record.tensors[key].zones(15)["overflowed"], expected.zones(5)["overflowed"])
        self.assertTrue(record.record.exact)
        largest = halflab.ExponentHistogram()
        for (_, kind), histogram in record.tensors.items():
            self.assertIn(kind, ("output", "gradient"))
            largest += histogram
        self.assertEqual(record.recommended_scale(), 2.0**largest.recommended_log2_scale)

    @needs(2, 3)
    def test_a_twin_counts_what_FP32_has_at_samples(self):
        """At S = 1 the FP16 run's own counts cannot tell what it lost."""
        training = Training(scale=None)
        record = training.watch(3, every=10, twin=training.loss)
        exact = Training(scale=None, autocast=None).run(1)
        for name, parameter in exact.model.named_parameters():
            expected = halflab.ExponentHistogram(parameter.grad.numpy())
            self.assertEqual(record.tensors[name, "gradient in FP32"], expected, name)
        self.assertEqual({step for step, _, _ in record.record.samples}, {0})
        self.assertEqual(record.record.manifest["output_types"]["4"], "float16")

    @needs(2, 3)
    def test_a_twin_that_cannot_be_made_is_noted(self):
        training = Training(scale=2.0**8)
        record = training.watch(3, every=1, twin=lambda: torch.zeros(0).item()).record
        (note,) = record.manifest["notes"]
        self.assertIn("the repeat in FP32: none: RuntimeError", note)

    @needs(2, 3)
    def test_scale_and_overflow_of_every_step(self):
        training, scales = Training(scale=2.0**22, growth_interval=4), []
        training.step_done = lambda step: scales.append(training.scaler.get_scale())
        record = training.watch(30, every=10)
        steps = record.steps
        self.assertEqual(steps["scale"].tolist(), [2.0**22, *scales[:-1]])
        skipped = [now < before for before, now in zip([2.0**22, *scales], scales)]
        self.assertEqual(steps["found_inf"].tolist(), skipped)
        self.assertEqual([skip["step"] for skip in record.skips], np.flatnonzero(skipped).tolist())
        self.assertTrue(any(skipped) and not all(skipped))
        self.assertTrue(np.all(steps["max_abs"][steps["found_inf"] == 0] > 0))
        self.assertEqual(record.replay(["dynamic"]).summary["equal_to_record"], 1)

    @needs(2, 3)
    def test_a_scale_that_is_no_power_of_two(self):
        record = Training(scale=1000.0).watch(3, every=1)
        self.assertFalse(record.record.exact)
        exact = Training(scale=1024.0).watch(3, every=1)
        self.assertTrue(exact.record.exact)
        ratio = record.recommended_scale() / exact.recommended_scale()
        self.assertLessEqual(abs(math.log2(ratio)), 1)

    def test_weights_updates_and_activations_on_request(self):
        training = Training(scale=None, autocast=None)
        before = training.model[0].weight.detach().clone()
        record = training.watch(1, also=["weights", "updates", "activations"])
        after = training.model[0].weight.detach()
        self.assertEqual(record.tensors["0.weight", "weight"], halflab.ExponentHistogram(before.numpy()))
        self.assertEqual(record.tensors["0.weight", "update"], halflab.ExponentHistogram((after - before).numpy()))
        self.assertEqual(record.tensors["4", "activation"].total, 32 * 3)

    @needs(2, 3)
    def test_updates_of_two_optimizers_that_are_unscaled_first(self):
        training = Training(scale=2.0**10)
        before = {name: p.detach().clone() for name, p in training.model.named_parameters()}
        parameters = list(training.model.parameters())
        optimizers = [torch.optim.SGD(own, 0.1) for own in (parameters[:4], parameters[4:])]
        with halflab.torch.watch(training.model, scaler=training.scaler, every=1, also=["updates"]) as watched:
            training.scaler.scale(training.loss()).backward()
            for do in (training.scaler.unscale_, training.scaler.step):
                for optimizer in optimizers:
                    do(optimizer)
            training.scaler.update()
        for name, parameter in training.model.named_parameters():
            expected = halflab.ExponentHistogram((parameter.detach() - before[name]).numpy())
            self.assertEqual(watched.tensors[name, "update"], expected, name)

    def test_updates_of_an_optimizer_with_a_closure(self):
        training = Training(scale=None, autocast=None)
        training.optimizer = torch.optim.LBFGS(training.model.parameters(), max_iter=2)

        def closure():
            training.optimizer.zero_grad()
            loss = training.loss()
            loss.backward()
            return loss

        before = training.model[4].weight.detach().clone()
        with halflab.torch.watch(training.model, training.optimizer, every=1, also=["updates"]) as watched:
            training.optimizer.step(closure)
        update = training.model[4].weight.detach() - before
        self.assertTrue(update.any())
        self.assertEqual(watched.tensors["4.weight", "update"], halflab.ExponentHistogram(update.numpy()))

    @needs(2, 3)
    def test_types_are_those_of_each_tensor(self):
        """Under autocast a LayerNorm is FP32 on a CPU, and its parameters count for no scale."""

        def model():
            return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 3))

        training = Training(model=model, scale=2.0**4)
        with torch.no_grad():
            training.model[1].bias.mul_(0)
        record = training.watch(2, every=1, also=["weights"]).record
        self.assertEqual(record.manifest["gradient_types"]["1.weight"], record.manifest["output_types"]["1"])
        self.assertEqual(record.manifest["output_types"]["0"], "float16")
        self.assertEqual(set(record.manifest["parameter_types"].values()), {"float32"})
        counted = halflab.ExponentHistogram()
        for (name, kind), histogram in record.tensors.items():
            is_counted = kind == "output" or record.manifest["gradient_types"][name] == "float16"
            if kind != "weight" and is_counted:
                counted += histogram
        self.assertEqual(record.recommended_scale(), 2.0**counted.recommended_log2_scale)
        self.assertEqual(record.gradients().total, counted.total)

    def test_selected_names_alone(self):
        training = Training(scale=None, autocast=None)
        record = training.watch(2, select=r"^4", twin=training.loss)
        self.assertEqual({name for name, _ in record.tensors}, {"4", "4.weight", "4.bias"})
        with self.assertRaisesRegex(halflab.RecordError, r"tensors\[\('9', 'output'\)\]: not in the record; allowed: \('4'"):
            record.tensors["9", "output"]

    def test_hooks_are_on_at_samples_alone(self):
        training, on = Training(scale=None, autocast=None), []
        loss = training.loss
        training.loss = lambda: (on.append(hooks_in(training.model)), loss())[1]
        training.watch(9, every=4)
        self.assertEqual([count > 0 for count in on], [step % 4 == 0 for step in range(9)])

    def test_a_record_without_a_folder_lives_as_long_as_the_watch(self):
        record = Training(scale=None, autocast=None).watch(2)
        self.assertEqual(len(record.steps), 2)
        folder = record.folder
        self.assertEqual(len(halflab.read_gradients(folder).steps), 2)

    def test_a_folder_that_is_another_record(self):
        (self.folder / "manifest.json").write_text("{}")
        with self.assertRaisesRegex(halflab.torch.WatchError, "allowed: another folder"):
            Training(scale=None, autocast=None).watch(1, out=self.folder)

    def test_answers_in_the_middle(self):
        training = Training(scale=None, autocast=None)
        with halflab.torch.watch(training.model, training.optimizer, every=1) as watched:
            training.run(2)
            self.assertEqual(len(watched.steps), 2)
            training.run(3)
            self.assertEqual(len(watched.steps), 5)
        self.assertEqual(len(watched.steps), 5)


class Import(Case):
    def test_halflab_alone_imports_no_torch(self):
        script = "import sys, halflab; assert 'torch' not in sys.modules; halflab.torch.watch; assert 'torch' in sys.modules"
        subprocess.run([sys.executable, "-c", script], check=True)

    def test_everything_public_is_documented(self):
        for name in halflab.torch.__all__:
            self.assertTrue(getattr(halflab.torch, name).__doc__, name)
        self.assertIn(">>>", halflab.torch.watch.__doc__)
        self.assertTrue(mixed_model and nn)


if __name__ == "__main__":
    unittest.main()
