"""The ledger of skipped steps: planted faults, found where they were planted; and whether a smaller S cures them."""

import math
import unittest

from case import Case, Training, halflab, needs, nn, torch


class Plant(torch.autograd.Function):
    """Passes a tensor on; its gradient gets a value at an index where `at` has one."""

    @staticmethod
    def forward(ctx, x, at):
        ctx.at = at
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        for index, value in ctx.at.items():
            gradient = gradient.index_put(tuple(torch.tensor(i) for i in index), torch.tensor(value, dtype=gradient.dtype))
        return gradient, None


class Planted(nn.Module):
    """Three linear layers; `at` plants gradients of the output of the second."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(8, 6), nn.Linear(6, 5), nn.Linear(5, 3)
        self.at = {}

    def forward(self, x):
        return self.third(Plant.apply(self.second(self.first(x).relu()), self.at))


@needs(2, 3)
class Skipped(Case):
    def watched(self, every, planted, **options):
        """Step -> what is planted at it; S stays below overflow otherwise."""
        training = Training(model=Planted, scale=2.0**8)
        training.model.at = planted.get(0, {})

        def plant_next(step):
            training.model.at = planted.get(step + 1, {})

        training.step_done = plant_next
        return training.watch(12, every=every, **options)

    def assert_in_second(self, skip, row):
        """Row of the weight or element of the bias: autograd makes both from the gradient of one output."""
        self.assertIn(skip["parameter"], ("second.weight", "second.bias"))
        self.assertEqual(skip["index"][0], row)
        self.assertFalse(math.isfinite(skip["value"]))

    def test_the_first_parameter_in_backward_order(self):
        record = self.watched(5, {7: {(3, 4): math.inf}})
        (skip,) = record.skips
        self.assertEqual((skip["step"], skip["scale"], skip["outcome"]), (7, 2.0**8, "skipped"))
        self.assert_in_second(skip, 4)
        self.assertIsNone(skip["module_output"])  # no hooks at step 7
        self.assertGreater(skip["largest_finite"], 0)

    def test_a_sampled_step_names_the_module_too(self):
        for value in (math.inf, math.nan):
            (skip,) = self.watched(5, {5: {(0, 2): value}}).skips
            self.assert_in_second(skip, 2)
            self.assertEqual((skip["module_output"], skip["forward_output"]), ("second", None))

    def test_the_step_after_a_skip_is_looked_at_closer(self):
        first, second = self.watched(100, {7: {(0, 0): math.nan}, 8: {(0, 1): math.nan}}).skips
        self.assertEqual((first["module_output"], second["module_output"]), (None, "second"))
        self.assert_in_second(second, 1)
        self.assertEqual(second["scale"], 2.0**7)

    def test_the_step_after_S_grew_is_looked_at_closer(self):
        training = Training(scale=2.0**15, growth_interval=3, growth_factor=2.0**12)
        record = training.watch(8, every=100)
        skip = record.skips[0]
        self.assertEqual((skip["step"], skip["scale"]), (3, 2.0**27))
        self.assertEqual(skip["module_output"], "4")

    def test_a_forward_pass_that_overflows(self):
        class Large(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(8, 6), nn.Linear(6, 3)

            def forward(self, x):
                return self.second(self.first(x) * 60000)

        training = Training(model=Large, scale=2.0**4)
        with torch.no_grad():
            training.model.second.weight.mul_(100)
        (skip, *_) = training.watch(1, every=1, twin=training.loss).skips
        self.assertEqual(skip["forward_output"], "the input of second")
        self.assertIsNone(skip["cured_by"])

    def test_an_input_that_is_not_finite_is_not_laid_on_the_first_layer(self):
        for value in (math.nan, math.inf):
            training = Training(scale=2.0**4)
            training.x = training.x.clone()
            training.x[1, 2] = value
            (skip, *_) = training.watch(1, every=1).skips
            self.assertEqual(skip["forward_output"], "the model's input")

    def test_without_a_scaler_the_input_is_named_too(self):
        training = Training(scale=None, autocast=None)
        training.x = training.x.clone()
        training.x[1, 2] = math.nan
        (skip, *_) = training.watch(1, every=1).skips
        self.assertEqual((skip["outcome"], skip["forward_output"]), ("applied", "the model's input"))

    def test_weights_that_were_not_finite_before_the_step(self):
        """Of a step that is skipped, and of one that is applied."""
        for options in ({"scale": 2.0**4}, {"scale": None, "autocast": None}):
            training = Training(**options)

            def break_weights(step, training=training):
                if step == 2:
                    training.model[4].weight.data[0, 0] = math.nan

            training.step_done = break_weights
            skip = training.watch(6, every=1).skips[0]
            self.assertEqual((skip["step"], skip["weight_before"]), (3, "4.weight"))

    def test_weights_that_a_bad_batch_spoilt(self):
        training = Training(scale=None, autocast=None)
        good, bad = training.x, training.x.clone()
        bad[1, 2] = math.nan

        def choose(step):
            training.x = bad if step == 2 else good

        training.step_done = choose
        first, second, *_ = training.watch(6, every=1).skips
        self.assertEqual((first["step"], first["forward_output"], first["weight_before"]), (3, "the model's input", None))
        self.assertIsNotNone(second["weight_before"])

    def test_a_mask_of_infinities_is_no_bad_input(self):
        class Masked(nn.Linear):
            def forward(self, x):
                return super().forward(torch.softmax(x, 1))

        training = Training(model=lambda: Masked(8, 3), scale=2.0**30)
        training.x = training.x.clone()
        training.x[:, 2] = -math.inf
        (skip, *_) = training.watch(1, every=1).skips
        self.assertIsNone(skip["forward_output"])

    def test_an_overflow_outside_of_any_submodule(self):
        class Large(nn.Linear):
            def forward(self, x):
                return super().forward(x) * 60000 * 60000

        training = Training(model=lambda: Large(8, 3), scale=2.0**4)
        (skip, *_) = training.watch(1, every=1).skips
        self.assertEqual(skip["forward_output"], "the model")

    def test_a_twin_says_which_scale_cures(self):
        training = Training(scale=2.0**30)
        (skip, *_) = training.watch(1, every=1, twin=training.loss).skips
        self.assertEqual(skip["twin"], "finite")
        self.assertTrue(math.isfinite(skip["twin_value"]))
        self.assertLess(skip["cured_by"], 2.0**30)
        for scale, is_finite in ((skip["cured_by"], True), (2 * skip["cured_by"], False)):
            again = Training(scale=scale)
            self.assertEqual(again.watch(1).skips == [], is_finite)

    def test_a_gradient_in_FP32_does_not_lower_the_scale_that_cures(self):
        """The gain's gradient is a multiple of all that FP16 makes."""

        class Gained(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.gain = nn.Linear(8, 3), nn.Parameter(torch.full((1,), 2.0**-6))

            def forward(self, x):
                return self.linear(x).float() * self.gain * 2.0**6

        training = Training(model=Gained, scale=2.0**30)
        (skip, *_) = training.watch(1, every=1, twin=training.loss).skips
        again = [Training(model=Gained, scale=factor * skip["cured_by"]).watch(1).skips == [] for factor in (1, 2)]
        self.assertEqual(again, [True, False])

    def test_a_twin_sees_what_no_scale_cures(self):
        training = Training(model=Planted, scale=2.0**8)
        training.model.at = {(0, 0): math.nan}
        (skip,) = training.watch(1, every=1, twin=training.loss).skips
        self.assertEqual((skip["twin"], skip["cured_by"]), ("not finite", None))

    def test_a_twin_that_cannot_be_made(self):
        def broken():
            raise KeyError("no batch")

        training = Training(scale=2.0**30)
        (skip, *_) = training.watch(1, every=1, twin=broken).skips
        self.assertIn("none: KeyError", skip["twin"])
        self.assertIsNone(skip["cured_by"])

    def test_a_twin_sees_the_parameters_of_all_optimizers(self):
        """The gradients of the second optimizer's parameters are the larger ones."""
        for scale in (2.0**4, 2.0**30):
            training = Training(scale=scale)
            parameters = list(training.model.parameters())
            optimizers = [torch.optim.SGD(own, 0.0) for own in (parameters[:4], parameters[4:])]

            def loss(training=training):
                with torch.autocast("cpu", dtype=torch.float16):
                    return (training.model(training.x) * training.model[4].bias.exp() * 300).float().mean()

            with halflab.torch.watch(training.model, scaler=training.scaler, every=1, twin=loss) as watched:
                training.scaler.scale(loss()).backward()
                for optimizer in optimizers:
                    training.scaler.step(optimizer)
                training.scaler.update()
            repeated = {name for name, kind in watched.tensors if kind == "gradient in FP32"}
            self.assertEqual(repeated, {name for name, _ in training.model.named_parameters()})
            largest = watched.tensors["4.bias", "gradient in FP32"].max_abs
            self.assertLess(watched.recommended_scale() * largest, 65504)
            self.assertEqual(len({skip["cured_by"] for skip in watched.skips}), int(scale > 2.0**20))

    def test_a_twin_where_the_optimizer_holds_frozen_parameters(self):
        training = Training(scale=2.0**30)
        training.model[0].requires_grad_(False)
        (skip, *_) = training.watch(1, every=1, twin=training.loss).skips
        self.assertEqual(skip["twin"], "finite")
        self.assertLess(skip["cured_by"], 2.0**30)

    def test_the_twin_is_the_step_itself(self):
        """Dropout and batch normalisation: with the random state and buffers of the step, the same gradient but for FP16."""
        training = Training(scale=2.0**30)
        record = training.watch(1, every=1, twin=training.loss)
        exact = Training(scale=None, autocast=None)
        exact.run(1)
        (skip, *_) = record.skips
        gradient = dict(exact.model.named_parameters())[skip["parameter"]].grad
        self.assertEqual(skip["twin_value"], float(gradient[skip["index"]]))


class NotSkipped(Case):
    def test_a_step_that_is_applied_although_it_is_not_finite(self):
        training = Training(model=Planted, scale=None, autocast=None)
        training.model.at = {(0, 0): math.inf}
        (skip, *_) = training.watch(1, every=1).skips
        self.assertEqual(skip["outcome"], "applied")
        self.assertIn(skip["parameter"], ("second.weight", "second.bias"))

    @needs(2, 3)
    def test_a_fused_optimizer_decides_itself(self):
        training = Training(scale=2.0**30)
        training.optimizer = torch.optim.Adam(training.model.parameters(), fused=True)
        record = training.watch(2, every=1)
        self.assertEqual([skip["outcome"] for skip in record.skips], ["skipped", "skipped"])
        self.assertIn(record.skips[0]["parameter"], ("4.weight", "4.bias"))
        self.assertEqual(record.steps["scale"].tolist(), [2.0**30, 2.0**29])


if __name__ == "__main__":
    unittest.main()
