"""Modules and loops that hooks and scalers stumble over: right, or one clear line; and never another training."""

import copy
import io
import json
import pickle
import unittest
import unittest.mock

from case import Case, Training, halflab, hooks_in, mixed_model, needs, nn, step_hooks_of, torch
from torch.utils.checkpoint import checkpoint


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.first, self.inner, self.last = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 3)
        self.reentrant = reentrant

    def forward(self, x):
        x = self.first(x)
        if self.reentrant is None:
            return self.last(self.inner(x))
        return self.last(checkpoint(self.inner, x, use_reentrant=self.reentrant))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared, self.last = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.shared(self.shared(x).relu()))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.second.weight = self.first.weight
        self.unused = nn.Linear(8, 8)

    def forward(self, x):
        return {"logits": self.last(self.second(self.first(x))), "none": None}["logits"]


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.last = nn.Embedding(10, 8, sparse=True), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.table(x[:, 0].abs().long().clamp(0, 9)))


class Gain(nn.Module):
    """Of operations that any PyTorch has for FP16 on a CPU."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 2, 8))

    def forward(self, x):
        return x * self.weight


def plain(model, **options):
    return Training(model=model, scale=None, autocast=None, **options)


class Models(Case):
    def assert_same(self, model, steps=4, **options):
        alone, watched = plain(model).run(steps), plain(model)
        record = watched.watch(steps, every=1, **options)
        self.assertEqual(alone.losses, watched.losses)
        self.assertEqual(hooks_in(watched.model), 0)
        return record

    def test_in_place_modules(self):
        record = self.assert_same(lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 3)))
        relu, linear = record.tensors["1", "output"], record.tensors["0", "output"]
        self.assertEqual(relu.total, linear.total)
        self.assertGreater(linear.zero, relu.zero)  # the gradient before the ReLU has zeros where it was negative

    def test_activation_checkpointing(self):
        expected = self.assert_same(lambda: Checkpointed(None))
        for reentrant in (False, True):
            record = self.assert_same(lambda: Checkpointed(reentrant), also=["activations"])
            for key in (("first", "output"), ("inner.0", "output"), ("inner.1", "output"), ("inner.0.weight", "gradient")):
                if key in record.tensors or reentrant is not False:
                    self.assertEqual(record.tensors[key], expected.tensors[key], (reentrant, key))
            self.assertEqual(record.tensors["last", "activation"].total, 4 * 32 * 3)
            self.assertEqual(record.tensors["inner.1", "activation"].total, 4 * 32 * 8)

    def test_a_module_used_twice_in_a_step(self):
        record = self.assert_same(Twice)
        self.assertEqual(record.tensors["shared", "output"].total, 4 * 2 * 32 * 8)
        self.assertEqual(record.tensors["shared.weight", "gradient"].total, 4 * 64)

    def test_tied_weights_and_gradients_that_are_none(self):
        record = self.assert_same(Tied)
        self.assertIn(("first.weight", "gradient"), record.tensors)
        self.assertNotIn(("second.weight", "gradient"), record.tensors)
        self.assertNotIn(("unused.weight", "gradient"), record.tensors)
        self.assertIn("first.weight is also second.weight", record.record.manifest["notes"])

    def test_sparse_gradients(self):
        record = self.assert_same(Sparse)
        self.assertGreater(record.tensors["table.weight", "gradient"].nonzero_finite, 0)
        self.assertLess(record.tensors["table.weight", "gradient"].total, 4 * 80)

    def test_a_sparse_gradient_that_is_not_finite(self):
        from halflab.torch.ledger import first_suspect

        table = nn.Embedding(10, 4, sparse=True)
        table(torch.tensor([7, 2, 7])).sum().backward()
        table.weight.grad = table.weight.grad.coalesce()
        table.weight.grad.values()[1, 3] = float("inf")
        suspect = first_suspect([("table.weight", table.weight)])
        self.assertEqual((suspect.index, suspect.value), ((7, 3), float("inf")))

    def test_frozen_layers_and_inputs_without_a_gradient(self):
        def model():
            network = mixed_model()
            for parameter in network[0].parameters():
                parameter.requires_grad_(False)
            return network

        record = self.assert_same(model)
        self.assertNotIn(("0", "output"), record.tensors)
        self.assertIn(("4", "output"), record.tensors)

    def test_outputs_of_other_kinds(self):
        class Several(nn.Module):
            def __init__(self):
                super().__init__()
                self.recurrent, self.last = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 3)

            def forward(self, x):
                output, (_, cell) = self.recurrent(x[:, None])
                return self.last(output[:, 0] + cell[0])

        record = self.assert_same(Several)
        self.assertEqual(record.tensors["recurrent", "output"].total, 4 * 2 * 32 * 8)

    def test_weights_of_16_bits_without_autocast(self):
        for dtype in (torch.bfloat16, torch.float16):
            training = plain(lambda: nn.Sequential(Gain(), Gain()).to(dtype))
            training.x = training.x.to(dtype)
            training.loss = lambda training=training: (training.model(training.x) * training.x).mean()
            record = training.watch(3, every=1)
            self.assertEqual(record.tensors["1", "output"].total, 3 * 32 * 8)
            self.assertEqual(record.tensors["0.weight", "gradient"].total, 3 * 8)
            self.assertEqual(record.record.manifest["output_types"]["1"], str(dtype).removeprefix("torch."))

    @needs(2, 3)
    def test_compiled_modules(self):
        def model():
            network = mixed_model()
            network[4] = torch.compile(nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 3)), backend="eager")
            return network

        record = self.assert_same(model)
        self.assertIn(("4", "output"), record.tensors)
        self.assertNotIn(("4.1", "output"), record.tensors)
        self.assertIn(("4.1.weight", "gradient"), record.tensors)
        self.assertIn("4 is compiled: outputs inside of it are not seen, its parameters are", record.record.manifest["notes"])

    @needs(2, 3)
    def test_a_model_compiled_in_place(self):
        def model():
            network = mixed_model()
            network.compile(backend="eager")
            return network

        record = self.assert_same(model)
        self.assertEqual({kind for _, kind in record.tensors}, {"gradient"})
        self.assertIn("the model is compiled", record.record.manifest["notes"][0])

    @needs(2, 3)
    def test_a_model_that_runs_compiled_elsewhere(self):
        """The model itself is watched; what torch.compile made of it is called. With hooks or without, it is one graph."""
        for backend in ("eager", "aot_eager"):
            for is_warm in (False, True):
                with self.subTest(backend=backend, is_warm=is_warm):
                    alone = self.compiled(backend).run(2 * is_warm).run(8)
                    torch._dynamo.utils.counters.clear()
                    watched = self.compiled(backend).run(2 * is_warm)
                    record = watched.watch(8, every=3, twin=watched.loss).record
                    self.assertEqual(alone.losses, watched.losses)
                    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
                    self.assertLessEqual(graphs, 2)  # with hooks and without
                    self.assertIn("no module was seen to run", " ".join(record.manifest["notes"]))
                    self.assertGreater(record.tensors["0.weight", "gradient"].nonzero_finite, 0)

    @staticmethod
    def compiled(backend):
        torch._dynamo.reset()
        training = plain(mixed_model)
        made = torch.compile(training.model, backend=backend)
        training.loss = lambda: nn.functional.cross_entropy(made(training.x), training.y)
        return training

    def test_passes_of_evaluation_do_not_count(self):
        def run(evaluates):
            training = plain(lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))

            def evaluate(_step):
                training.model.eval()
                with torch.no_grad():
                    training.model(training.x * float("nan"))
                training.model.train()

            if evaluates:
                training.step_done = evaluate
            return training.watch(3, every=1, also=["activations"], twin=training.loss).record

        plain_record, record = run(False), run(True)
        self.assertEqual(dict(record.tensors), dict(plain_record.tensors))
        self.assertEqual(record.skips, [])

    def test_complex_outputs_and_parameters_count_twice(self):
        class Complex(nn.Module):
            def __init__(self):
                super().__init__()
                self.turn, self.last = nn.Linear(8, 6, dtype=torch.complex64), nn.Linear(6, 3)

            def forward(self, x):
                return self.last(self.turn(x.to(torch.complex64)).abs())

        record = self.assert_same(Complex)
        self.assertEqual(record.tensors["turn", "output"].total, 4 * 2 * 32 * 6)
        self.assertEqual(record.tensors["turn.weight", "gradient"].total, 4 * 2 * 48)
        notes = record.record.manifest["notes"]
        for name in ("turn", "turn.weight"):
            self.assertIn(f"{name} is complex: the real and the imaginary part of a number count as two values", notes)

    def test_copies_inside(self):
        """A copy of the model is none of the watched, and a model can be saved whole."""
        training = plain(mixed_model)
        copies = []

        def copied(step):
            copies.append(copy.deepcopy(training.model))
            torch.save(training.model, io.BytesIO())
            copies[-1](training.x)

        alone = plain(mixed_model).watch(2, every=1, also=["activations"], twin=lambda: None)
        with halflab.torch.watch(training.model, training.optimizer, every=1, also=["activations"]) as watched:
            copied(0)
            torch.manual_seed(5)
            mixed_model()
            training.run(2)
        self.assertEqual(dict(watched.tensors), dict(alone.tensors))

    @needs(2, 3)
    def test_copies_of_the_scaler_inside(self):
        """They scale by themselves, and are not watched."""
        training = Training(scale=2.0**8)
        with halflab.torch.watch(training.model, training.optimizer, training.scaler, every=1) as watched:
            copies = [copy.deepcopy(training.scaler), pickle.loads(pickle.dumps(training.scaler))]
            for scaler in copies:
                self.assertEqual(scaler.scale(torch.ones(())).item(), 2.0**8)
                other = Training(scale=2.0**8)
                other.scaler = scaler
                other.run(2)
            training.run(1)
        self.assertEqual(len(watched.steps), 1)
        self.assertNotIn("step", vars(training.scaler))

    def test_an_optimizer_with_a_closure(self):
        training = plain(mixed_model)
        training.optimizer = torch.optim.LBFGS(training.model.parameters(), max_iter=2)

        def closure():
            training.optimizer.zero_grad()
            loss = training.loss()
            loss.backward()
            return loss

        with halflab.torch.watch(training.model, training.optimizer, every=1, twin=training.loss) as watched:
            for _ in range(3):
                training.optimizer.step(closure)
        self.assertEqual(len(watched.steps), 3)
        self.assertGreater(watched.tensors["4.weight", "gradient"].nonzero_finite, 0)
        self.assertNotIn(("4.weight", "gradient in FP32"), watched.tensors)  # the weights are others by then
        self.assertIn("closure", watched.record.manifest["notes"][0])

    def test_a_scheduler_made_inside(self):
        training = plain(mixed_model)
        with halflab.torch.watch(training.model, training.optimizer, every=2):
            scheduler = torch.optim.lr_scheduler.StepLR(training.optimizer, 1)
            training.step_done = lambda step: scheduler.step()
            training.run(4)
        training.run(2)
        self.assertAlmostEqual(training.optimizer.param_groups[0]["lr"], 0.05 * 0.1**6)


class Loops(Case):
    def test_an_exception_inside(self):
        training = plain(mixed_model)
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            with halflab.torch.watch(training.model, training.optimizer, every=1, out=self.folder / "run"):
                training.run(3)
                training.loss()
                raise ZeroDivisionError("mine")
        self.assertEqual(hooks_in(training.model), 0)
        self.assertEqual(step_hooks_of(training.optimizer), 0)
        record = halflab.read_gradients(self.folder / "run")
        self.assertEqual((len(record.steps), record.manifest["ended"]), (3, "ZeroDivisionError: mine"))
        training.run(2)

    @needs(2, 3)
    def test_a_scaler_without_its_update(self):
        training = Training()
        with halflab.torch.watch(training.model, scaler=training.scaler, every=1) as watched:
            training.scaler.scale(training.loss()).backward()
            training.scaler.step(training.optimizer)
        self.assertEqual(watched.steps["scale"].tolist(), [2.0**16])
        with self.assertRaisesRegex(RuntimeError, "since the last update"):
            with halflab.torch.watch(training.model, scaler=training.scaler, every=1):
                training.scaler.step(training.optimizer)

    @needs(2, 3)
    def test_a_scaler_that_never_steps(self):
        training = Training()

        def loop():
            with halflab.torch.watch(training.model, training.optimizer, training.scaler):
                for _ in range(3):
                    training.scaler.scale(training.loss()).backward()
                    training.optimizer.step()

        self.assert_refused("update() was never called, and 3 optimizer steps went past it", loop)
        self.assertEqual(hooks_in(training.model), 0)

    @needs(2, 3)
    def test_unscaled_by_the_loop_and_clipped(self):
        training = Training(scale=2.0**10)
        step = training.scaler.step

        def clipped(optimizer):
            training.scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(training.model.parameters(), 1e-6)
            return step(optimizer)

        training.scaler.step = clipped
        record = training.watch(2, every=1)
        self.assertEqual(training.scaler.step, clipped)
        self.assertGreater(record.steps["max_abs"].min(), 1e-5)  # before clipping

    @needs(2, 3)
    def test_a_scaler_that_is_switched_off(self):
        training = Training(autocast=None)
        training.scaler = torch.amp.GradScaler("cpu", enabled=False)
        record = training.watch(4, every=2)
        self.assertEqual(record.steps["scale"].tolist(), [1.0] * 4)

    @needs(2, 3)
    def test_one_of_two_optimizers_that_skips(self):
        training = Training(scale=2.0**10)
        halves = list(training.model.parameters())
        optimizers = [torch.optim.SGD(halves[:4], 0.1), torch.optim.SGD(halves[4:], 0.1)]
        with halflab.torch.watch(training.model, scaler=training.scaler, every=1) as watched:
            training.scaler.scale(training.loss()).backward()
            training.model[0].weight.grad[0, 0] = float("inf")
            for optimizer in optimizers:
                training.scaler.step(optimizer)
            training.scaler.update()
        (skip,) = watched.skips
        self.assertEqual((skip["outcome"], skip["parameter"]), ("partly applied", "0.weight"))

    @needs(2, 3)
    def test_two_optimizers_of_one_scaler(self):
        training = Training(scale=2.0**10)
        halves = list(training.model.parameters())
        optimizers = [torch.optim.SGD(halves[:4], 0.1), torch.optim.SGD(halves[4:], 0.1)]
        with halflab.torch.watch(training.model, scaler=training.scaler, every=1) as watched:
            for _ in range(3):
                training.model.zero_grad()
                training.scaler.scale(training.loss()).backward()
                for optimizer in optimizers:
                    training.scaler.step(optimizer)
                training.scaler.update()
        self.assertEqual(len(watched.steps), 3)
        self.assertEqual(watched.tensors["0.weight", "gradient"].total, 3 * 128)
        self.assertEqual(watched.tensors["4.weight", "gradient"].total, 3 * 48)

    def test_two_watches_at_once(self):
        training = plain(mixed_model)
        with halflab.torch.watch(training.model, training.optimizer):
            other = halflab.torch.watch(training.model, training.optimizer)
            self.assert_refused("this Sequential is watched already; allowed: one watch at a time", other.__enter__)
            training.run(1)
        with halflab.torch.watch(training.model, training.optimizer):
            training.run(1)

    def test_a_closed_watch(self):
        training = plain(mixed_model)
        watched = halflab.torch.watch(training.model, training.optimizer)
        self.assert_refused("this watch has not begun", lambda: watched.tensors)
        with watched:
            training.run(1)
        self.assert_refused("this watch is closed; allowed: a new halflab.torch.watch", watched.__enter__)
        training.run(1)
        self.assertEqual(len(watched.steps), 1)

    def test_a_watch_that_cannot_begin_leaves_nothing(self):
        training = plain(mixed_model)
        out = self.folder / "r"
        watched = halflab.torch.watch(training.model, training.optimizer, twin=lambda: None, out=out)
        with unittest.mock.patch("halflab.torch.watch.OptimizerTap", side_effect=RuntimeError("planted")):
            self.assertRaisesRegex(RuntimeError, "planted", watched.__enter__)
        self.assertEqual(hooks_in(training.model), 0)
        self.assertEqual(json.loads((out / "manifest.json").read_text())["ended"], "RuntimeError: planted")
        with halflab.torch.watch(training.model, training.optimizer):
            training.run(1)

    def test_a_selection_of_nothing(self):
        training = plain(mixed_model)
        watched = halflab.torch.watch(training.model, training.optimizer, select="no such layer")
        self.assert_refused("select = 'no such layer' is found in none of ", watched.__enter__)

    def test_folders_that_are_not_the_watchs(self):
        training = plain(mixed_model)

        def watch(out):
            with halflab.torch.watch(training.model, training.optimizer, out=out):
                training.run(1)

        mine, file = self.folder / "mine", self.folder / "file"
        mine.mkdir()
        (mine / "steps.csv").write_text("my own")
        file.write_text("my own")
        self.assert_refused("holds steps.csv, which is not of a gradient record", watch, mine)
        self.assert_refused("is a file; allowed: a folder", watch, file)
        self.assert_refused("watch: out: ", watch, file / "below")
        self.assertEqual([(mine / "steps.csv").read_text(), file.read_text()], ["my own"] * 2)
        watch(self.folder / "new")
        watch(self.folder / "new")
        (self.folder / "new" / "notes.txt").write_text("my own")
        self.assert_refused("holds notes.txt", watch, self.folder / "new")
        training.run(1)

    def test_options_that_are_wrong(self):
        training, other = plain(mixed_model), plain(mixed_model)
        model, optimizer = training.model, training.optimizer
        watch = halflab.torch.watch

        class Partial:
            def is_enabled(self):
                return True

        for fragment, arguments, options in (
            ("model = a int is not allowed", (3,), {}),
            ("nothing says when a step ends", (model,), {}),
            ("optimizer = a Sequential", (model, model), {}),
            ("scaler = a float", (model, optimizer, 2.0), {}),
            ("scaler = a Partial", (model, optimizer, Partial()), {}),
            ("every = 0 is not allowed; allowed: whole numbers from 1", (model, optimizer), {"every": 0}),
            ("every = True", (model, optimizer), {"every": True}),
            ("also = ['grads'] is not allowed; allowed: a list of activations, weights, updates",
             (model, optimizer), {"also": ["grads"]}),
            ("also = 'weights'", (model, optimizer), {"also": "weights"}),
            ("twin = 3", (model, optimizer), {"twin": 3}),
            ("an optimizer without any parameter of the model is not allowed", (model, other.optimizer), {}),
            ("select = '('", (model, optimizer), {"select": "("}),
        ):  # fmt: skip
            self.assert_refused(fragment, watch, *arguments, **options)


if __name__ == "__main__":
    unittest.main()
