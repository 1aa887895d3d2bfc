"""What a watch must not be misled by: trainings in which the obvious cause of a lost step, or the obvious S, is the wrong one."""

import math
import pathlib
import subprocess
import sys
import unittest

from case import Case, Training, halflab, needs, nn, np, torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from pages import Page  # noqa: E402


def network():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


class Batches:
    """A training on batches of its own, under FP16 autocast with a GradScaler."""

    def __init__(self, scale=2.0**10, count=40, accumulate=1, model=network, lr=1e-3, **scaler):
        torch.manual_seed(3)
        self.model = model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=scale, **scaler)
        self.accumulate = accumulate
        self.batches = [[torch.randn(16, 8), torch.randn(16, 4)] for _ in range(count)]

    def loss_of(self, batch):
        with torch.autocast("cpu", dtype=torch.float16):
            return nn.functional.mse_loss(self.model(batch[0]).float(), batch[1]) / self.accumulate

    def watch(self, twin=None, every=10, **options):
        with halflab.torch.watch(self.model, self.optimizer, self.scaler, every=every, twin=twin, **options) as watched:
            self.run()
        return watched

    def run(self):
        for first in range(0, len(self.batches), self.accumulate):
            self.now = self.batches[first : first + self.accumulate]
            self.optimizer.zero_grad()
            for self.last in self.now:
                self.scaler.scale(self.loss_of(self.last)).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()

    def loss_of_the_step(self):
        return sum(map(self.loss_of, self.now))


@needs(2, 3)
class Causes(Case):
    def page(self, watched):
        return Page(watched.report(self.folder / "page.html"))

    def test_the_recommended_S_suits_the_steps_that_no_sample_saw(self):
        training = Batches(count=60, lr=1e-6)
        for batch in training.batches[7::10]:
            batch[1] *= 3000
        watched = training.watch()
        largest = np.nanmax(watched.steps["max_abs"])
        self.assertLess(watched.recommended_scale() * largest, 65504)
        self.assertGreater(4 * watched.recommended_scale() * largest, 65504)
        again = Batches(scale=watched.recommended_scale(), count=60, lr=1e-6)
        again.batches = training.batches
        self.assertEqual(again.watch().skips, [])

    def test_the_recommended_S_is_smaller_than_one_that_overflowed(self):
        training = Batches(scale=2.0**20, growth_interval=5)
        watched = training.watch(every=1000)
        self.assertLess(watched.recommended_scale(), min(skip["scale"] for skip in watched.skips))

    def test_a_twin_repeats_all_micro_batches_or_says_why_it_does_not(self):
        def train(whole):
            training = Batches(accumulate=4)
            training.batches[17][1] *= 3e4
            loss = training.loss_of_the_step if whole else lambda: training.loss_of(training.last)
            return training, training.watch(twin=loss, every=1)

        training, watched = train(whole=True)
        (skip, *_) = watched.skips
        self.assertEqual((skip["step"], skip["twin"]), (4, "finite"))
        alone = Batches(accumulate=4)

        def is_finite_at(scale):
            alone.model.zero_grad()
            for batch in training.batches[16:20]:
                (alone.loss_of(batch) * scale).backward()
            return all(p.grad.isfinite().all() for p in alone.model.parameters())

        alone.model.load_state_dict(training.model.state_dict())
        self.assertTrue(is_finite_at(skip["cured_by"]))
        self.assertFalse(is_finite_at(4 * skip["cured_by"]))
        _, watched = train(whole=False)
        reason = "the step had 4 forward passes and the function of twin= makes 1; allowed: one that makes the loss of all of them"
        self.assertEqual({skip["twin"] for skip in watched.skips}, {f"none: {reason}"})
        self.assertIn(reason, self.page(watched).text)

    def test_a_module_that_casts_its_result_has_gradients_in_FP16(self):
        class Head(nn.Linear):
            def forward(self, x):
                return super().forward(x).float()

        class Wide(nn.Linear):
            def forward(self, x):
                with torch.autocast("cpu", enabled=False):
                    return super().forward(x.float())

        watched = Batches(model=lambda: nn.Sequential(nn.Linear(8, 16), Wide(16, 16), Head(16, 4))).watch(every=1)
        self.assertEqual({watched.record.manifest["output_types"][name] for name in "12"}, {"float32"})
        types = watched.record.manifest["gradient_types"]
        self.assertEqual({name for name, dtype in types.items() if dtype == "float32"}, {"1.weight", "1.bias"})

    def test_in_FP32_without_a_module_that_was_seen_nothing_is_said_of_FP16_runs(self):
        class Bare(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(8, 4))

        model, x = Bare(), torch.randn(32, 8)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with halflab.torch.watch(model, optimizer, every=1) as watched:
            for _ in range(3):
                optimizer.zero_grad()
                ((x @ model.weight).square().mean() * 1e-9).backward()
                optimizer.step()
        page = self.page(watched)
        self.assertIn("FP16 would", page.title)
        self.assertIn("as you train in FP32", page.text)

    def test_weights_in_FP16_are_not_sent_to_a_scaler_that_refuses_them(self):
        model, x = network().half(), torch.randn(16, 8).half()
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        with halflab.torch.watch(model, optimizer, every=1) as watched:
            for _ in range(3):
                optimizer.zero_grad()
                (model(x).square().mean() * 1e-4).backward()
                optimizer.step()
        page = self.page(watched)
        self.assertIn("Keep the weights in FP32", page.text)
        self.assertNotIn("watch again", page.text)

    def test_what_is_given_to_a_module_is_not_laid_on_it(self):
        class Between(nn.Module):
            def __init__(self, drop):
                super().__init__()
                self.first, self.drop, self.last = nn.Linear(8, 16), drop, nn.Linear(16, 4)

            def forward(self, x):
                return self.last(self.drop((self.first(x) * 300).square()))

        for drop in (nn.Dropout(0.0), nn.Identity(), nn.ReLU(inplace=True)):
            watched = Batches(model=lambda: Between(drop), count=5).watch(every=1)
            place = "drop" if isinstance(drop, nn.ReLU) else "the input of drop"  # in place it cannot be told
            self.assertEqual({skip["forward_output"] for skip in watched.skips}, {place})
            self.assertNotIn("start with", self.page(watched).text)

    def test_NaNs_of_labels_are_no_search_for_S(self):
        for bad in (range(0, 1), range(7, 40, 10)):
            training = Batches()
            for place in bad:
                training.batches[place][1][0, 0] = math.nan
            watched = training.watch()
            self.assertEqual([skip["step"] for skip in watched.skips], list(bad))
            page = self.page(watched)
            self.assertIn("were NaN, which no overflow made", page.title)
            self.assertIn("Look at the loss and the labels", page.text)
            self.assertNotIn("larger S", page.text)

    def test_an_overflow_is_not_taken_for_NaNs_of_labels(self):
        watched = Batches(scale=2.0**24).watch(every=1)
        self.assertTrue(any(math.isnan(skip["value"]) for skip in watched.skips))
        self.assertNotIn("NaN", self.page(watched).title)

    def test_a_scaler_that_grows_too_often_is_told(self):
        watched = Batches(scale=2.0**16, count=100, growth_interval=1).watch()
        self.assertIn("Let S grow later, by a larger growth_interval", self.page(watched).text)

    def test_parameters_of_another_optimizer_are_named(self):
        model = network()
        optimizer = torch.optim.SGD(model[0].parameters(), 0.1)
        with halflab.torch.watch(model, optimizer) as watched:
            model(torch.randn(2, 8)).sum().backward()
            optimizer.step()
        note = "not seen, as this optimizer does not step them: the gradients of 2.weight and 1 more"
        self.assertIn(note, watched.record.manifest["notes"])


@needs(2, 3)
class Unchanged(Case):
    def test_a_twin_leaves_no_trace(self):
        class Averages(nn.Module):
            """Its output follows from an attribute and from a buffer that forward passes replace."""

            def __init__(self):
                super().__init__()
                self.linear, self.average, self.calls = nn.Linear(8, 4), torch.zeros(4), []
                self.register_buffer("last", torch.zeros(4))

            def forward(self, x):
                y = self.linear(x)
                self.average = 0.9 * self.average + 0.1 * y.detach().mean(0).float()
                self.last = self.last + y.detach().float().mean(0)
                self.calls.append(len(self.calls))
                return y + self.average + self.last + len(self.calls)

        class Renormalised(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.linear = nn.Embedding(50, 8, max_norm=1.0), nn.Linear(8, 4)

            def forward(self, x):
                return self.linear(self.embedding((x[:, 0].abs() * 10).long()))

        for model in (Averages, Renormalised):
            alone, watched = (Batches(model=model, lr=0.05) for _ in range(2))
            alone.run()
            watched.watch(twin=watched.loss_of_the_step, every=1)
            for one, other in zip(alone.model.state_dict().values(), watched.model.state_dict().values()):
                self.assertTrue(torch.equal(one, other), model)

    def test_a_twin_does_not_move_the_random_numbers_of_an_emulation(self):
        def train(twin):
            training = Training()
            with halflab.torch.emulate(training.model, "e4m3", rounding="stochastic", seed=1):
                training.watch(6, every=1, twin=training.loss if twin else None)
            return training.losses

        self.assertEqual(train(twin=True), train(twin=False))

    def test_a_forked_process_leaves_the_record_alone(self):
        script = """
import os, sys, torch, halflab.torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def step():
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
with halflab.torch.watch(model, optimizer, every=1) as watched:
    step()
    child = os.fork()
    step()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    step()
print(watched.steps["step"].tolist(), watched.record.manifest["ended"])
"""
        made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual(made.stdout, "[0, 1, 2] finished\n", made.stderr)


@needs(2, 3)
class Refused(Case):
    def test_one_line(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        lazy = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 4))
        of_lazy = torch.optim.SGD(lazy[1].parameters(), 0.1)
        self.assert_refused("also = None is not allowed; allowed: a list of", halflab.torch.watch, model, optimizer, also=None)
        self.assert_refused("the parameter 0.weight, which has no shape yet", halflab.torch.watch, lazy, of_lazy)
        with halflab.torch.watch(model, optimizer) as watched:
            model(torch.randn(2, 8)).sum().backward()
            optimizer.step()
        with self.assertRaisesRegex(halflab.RecordError, "replay: scalers = 3 is not allowed; allowed: a list of names"):
            watched.replay(3)

    def test_a_scripted_model_is_watched_by_its_parameters(self):
        model = torch.jit.script(network())
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with halflab.torch.watch(model, optimizer, every=1, twin=lambda: model(torch.ones(2, 8)).sum()) as watched:
            model(torch.randn(2, 8)).sum().backward()
            optimizer.step()
        self.assertEqual({kind for _, kind in watched.tensors}, {"gradient"})


if __name__ == "__main__":
    unittest.main()
