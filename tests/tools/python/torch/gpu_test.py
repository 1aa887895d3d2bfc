"""What the module says of tensors and trainings on a GPU, held to one. Skipped where PyTorch sees none."""

import functools
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import unittest
from unittest import mock

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS starts: products of equal bits in every run

from case import Case, Training, halflab, has_module, needs, nn, np, torch

if not torch.cuda.is_available():
    print(f"skipped: PyTorch {torch.__version__} of {sys.executable} sees no GPU")
    raise SystemExit(3)

from autocast_test import CALLS, class_of, expected_class, listed_classes
from counts_test import counted_on_device, edges
from memory_test import TYPES
from reveal_test import evaluate, leaves

torch.use_deterministic_algorithms(True)
GPU = "cuda"


def on_gpu(kernel):
    """A function of the host's tensors that computes on the GPU."""
    return lambda *tensors: kernel(*(tensor.cuda() for tensor in tensors))


@needs(2, 4)
class Watch(Case):
    def test_the_losses_are_the_same_bits(self):
        everything = ["activations", "weights", "updates"]
        trainings = ({}, {"scale": 2.0**24}, {"accumulate": 3}, {"optimizer": {"fused": True}})
        trainings += ({"scale": None, "autocast": None},)
        for training, with_twin in itertools.product(trainings, (False, True)):
            with self.subTest(training=training, with_twin=with_twin):
                alone, watched = Training(device=GPU, **training).run(), Training(device=GPU, **training)
                step = lambda: sum(watched.loss() / watched.accumulate for _ in range(watched.accumulate))
                watched.watch(every=3, also=everything, twin=step if with_twin else None)
                self.assertEqual(alone.losses, watched.losses)
                for (name, a), b in zip(alone.model.state_dict().items(), watched.model.state_dict().values()):
                    self.assertTrue(torch.equal(a, b), name)

    def test_counts_are_those_of_the_gradients(self):
        training, kept = Training(device=GPU, scale=2.0**10), {}
        step = training.scaler.step

        def keep_and_step(optimizer):
            kept.update({name: p.grad.clone() for name, p in training.model.named_parameters()})
            step(optimizer)

        training.scaler.step = keep_and_step
        record = training.watch(1, every=1)
        for name, gradient in kept.items():
            expected = halflab.ExponentHistogram(gradient.cpu().numpy()).shifted(-10)
            self.assertEqual(record.tensors[name, "gradient"], expected, name)
        self.assertEqual(record.record.manifest["output_types"]["4"], "float16")

    def test_lost_steps_and_what_cures_them(self):
        for optimizer in ({}, {"fused": True}):
            training = Training(device=GPU, scale=2.0**30, optimizer=optimizer)
            scales = []
            training.step_done = lambda step: scales.append(training.scaler.get_scale())
            record = training.watch(20, every=4, twin=training.loss)
            lost = [now < before for before, now in zip([2.0**30, *scales], scales)]
            self.assertEqual([skip["step"] for skip in record.skips], np.flatnonzero(lost).tolist())
            self.assertTrue(any(lost) and not all(lost))
            self.assertEqual(record.replay(["dynamic"]).summary["equal_to_record"], 1)
            self.assertIn("GradScaler", record.report(self.folder / "page.html").read_text(encoding="utf-8"))

    def test_no_step_between_samples_waits_for_the_gpu(self):
        """PyTorch raises where the host would wait. The optimizer is fused, since GradScaler waits for any other."""
        training = Training(device=GPU, optimizer={"fused": True})
        with halflab.torch.watch(training.model, training.optimizer, training.scaler, every=100):
            try:
                for step in range(8):
                    torch.cuda.set_sync_debug_mode("error" if step else "default")
                    training.optimizer.zero_grad()
                    training.scaler.scale(training.loss()).backward()
                    training.scaler.step(training.optimizer)
                    training.scaler.update()
            finally:
                torch.cuda.set_sync_debug_mode("default")

    def test_a_compiled_model(self):
        training = Training(device=GPU)
        training.model[0] = torch.compile(training.model[0])
        record = training.watch(6, every=2)
        self.assertTrue(any(name.startswith("0") for name, _ in record.tensors))


class Counts(Case):
    def test_every_code_of_16_bits_and_the_edges_of_wider_ones(self):
        codes = torch.arange(65536, dtype=torch.int32).to(torch.int16)
        wide = edges()
        for values in (codes.view(torch.float16), codes.view(torch.bfloat16), wide, wide.float()):
            expected = halflab.ExponentHistogram(values.double().numpy())
            self.assertEqual(counted_on_device(values.cuda()), expected, values.dtype)
            self.assertEqual(halflab.ExponentHistogram(values.cuda()), expected, values.dtype)

    def test_functions_of_arrays_take_tensors_of_a_gpu(self):
        values = torch.randn(320)
        np.testing.assert_array_equal(halflab.round_to(values.cuda()), halflab.round_to(values))
        np.testing.assert_array_equal(
            halflab.round_to_blocks(values.bfloat16().cuda(), "mxfp4"), halflab.round_to_blocks(values.bfloat16(), "mxfp4")
        )
        self.assertEqual(halflab.sum(values.half().cuda()), halflab.sum(values.half()))
        report = halflab.report_gradients({"a": values.half().cuda()}, self.folder / "page.html")
        self.assertEqual(report.tensors["a"].total, 320)


@needs(2, 4)
class Autocast(Case):
    def test_every_operation_has_the_class_that_fake_tensors_show(self):
        """But for scaled_dot_product_attention, whose kernels cast for themselves."""
        listed = listed_classes()
        for low, (operation, calls) in itertools.product((torch.float16, torch.bfloat16), CALLS.items()):
            for call, *shapes in calls[: 1 if operation == "attention_context" else None]:
                with self.subTest(operation=operation, low=low), torch.device(GPU), torch.autocast(GPU, dtype=low):
                    self.assertEqual(class_of(call, shapes, low), expected_class(listed, operation, low))


def requested():
    """Bytes of the tensors of the GPU, without what the allocator adds to fill its blocks."""
    return torch.cuda.memory_stats()["requested_bytes.all.current"]


class Copy(nn.Module):
    def forward(self, x):
        return x.clone()


@needs(2, 4)
class Memory(Case):
    """The bytes that PyTorch has of its allocator, beside those of memory(device="cuda")."""

    MODELS = {
        "mlp": (
            lambda: nn.Sequential(nn.Linear(4096, 8192), nn.ReLU(), nn.Linear(8192, 4096), nn.ReLU(), nn.Linear(4096, 10)),
            (2048, 4096),
        ),
        "convolutions": (
            lambda: nn.Sequential(
                *(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(64, 128, 3), nn.ReLU(), nn.Flatten(), nn.Linear(115200, 100)),
            ),
            (64, 3, 64, 64),
        ),
        "transformer": (lambda: nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True), (32, 256, 512)),
    }

    def make(self, name):
        """The model, and an example of its shape that no module saves."""
        make, shape = self.MODELS[name]
        return nn.Sequential(Copy(), make()), torch.randn(shape, device=GPU)

    def taken(self, name, policy, optimizer):
        """At the end of the forward pass of the second step: weights, gradients, the optimizer's state, and what is saved;
        without the output, which nothing saves, and what libraries keep from the first step on as their workspace."""
        model, x = self.make(name)
        model, dtype = model.to(GPU), TYPES[policy]
        optimizer = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[optimizer](model.parameters(), 1e-4)
        for step in range(2):
            with torch.autocast(GPU, dtype=dtype or torch.float16, enabled=dtype is not None):
                output = model(x)
                used = requested() - output.untyped_storage().nbytes()
            output.float().sum().backward()
            del output
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
            if step == 0:
                state = [v for s in optimizer.state.values() for v in s.values() if torch.is_tensor(v) and v.is_cuda]
                held = [*model.parameters(), *model.buffers(), *state, *(p.grad for p in model.parameters())]
                rest = requested() - sum(t.untyped_storage().nbytes() for t in held)
        return used - rest

    def test_a_step_takes_what_memory_says_with_a_gpu_and_without(self):
        torch.use_deterministic_algorithms(False)
        self.addCleanup(torch.use_deterministic_algorithms, True)
        for name, policy, optimizer in itertools.product(self.MODELS, TYPES, ("sgd", "adamw")):
            used = self.taken(name, policy, optimizer)
            for is_available in (True, False):
                with mock.patch("torch.cuda.is_available", lambda: is_available):
                    found = halflab.torch.memory(*self.make(name), policy, optimizer, device=GPU)["total"]
                what = f"{name} {policy} {optimizer}, {'a' if is_available else 'no'} GPU: {found} bytes, {used} requested"
                print(f"{what}, {used / found - 1:+.3%}")
                self.assertLessEqual(abs(used - found), 64, what)  # numbers of a random generator


class Kernels(Case):
    def held(self, kernel, operation, format, **options):
        found = halflab.validate(on_gpu(kernel), operation, format=format, arrays="torch", nan="any", **options)
        print(f"{operation}, {format}: {found}")
        return found

    def test_functions(self):
        """PyTorch computes them in float: half a ulp of 16 bits and a bit. Its sigmoid of bfloat16 flushes, and is left out."""
        functions = {"rcp": torch.reciprocal, "gelu": nn.functional.gelu, "silu": nn.functional.silu}
        names = ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "rsqrt", "erf", "sigmoid")
        functions.update({name: getattr(torch, name) for name in names})
        for name, kernel in functions.items():
            found = self.held(kernel, name, "binary16")
            self.assertEqual(found.results, 65536)
            self.assertLessEqual(found.most_ulp, 2, name)
        for name in ("rcp", "exp", "log", "tanh", "erf"):
            self.assertLessEqual(self.held(functions[name], name, "bfloat16").most_ulp, 1, name)

    def test_arithmetic_rounds_once(self):
        """In float, and then to 16 bits, which for these operations is as good as once (Figueroa 1995)."""
        for format in ("binary16", "bfloat16"):
            self.assertEqual(self.held(torch.sqrt, "sqrt", format).beyond, 0)
            for name, kernel in (("add", torch.add), ("subtract", torch.sub), ("multiply", torch.mul), ("divide", torch.div)):
                self.assertEqual(self.held(kernel, name, format, shards=(3, 4096)).beyond, 0)

    def test_a_wrong_kernel_is_found(self):
        found = self.held(lambda x: torch.where(x.abs() < 2.0**-14, x * 0, x).sqrt(), "sqrt", "binary16")
        self.assertEqual((found.verdict, found.differing, found.contradicted), ("different", 2046, 0))
        self.assertIn("reads subnormal operands as zeros", found.explanation)

    @unittest.skipUnless(has_module("cupy"), "needs cupy")
    def test_arrays_of_cupy(self):
        import cupy

        found = halflab.validate(cupy.sqrt, "sqrt", arrays="cupy", nan="any")
        self.assertEqual((found.results, found.beyond), (65536, 0), str(found))

    @unittest.skipUnless(has_module("triton"), "needs Triton")
    def test_the_kernel_in_triton_that_the_pages_show(self):
        script = pathlib.Path(__file__).parents[4] / "docs/kernels/sigmoid_triton.py"
        halflab.run_command("inputs", "sigmoid", to=self.folder / "x.npy")
        subprocess.run([sys.executable, script], cwd=self.folder, check=True)
        verdict = halflab.run_command(
            "validate", "sigmoid", self.folder / "x.npy", self.folder / "y.npy", ulp=1, nan="any", out=self.folder / "out"
        )
        print(verdict.verdict)
        self.assertIn(verdict.summary["class"], ("equal", "within"))

    @unittest.skipUnless(shutil.which("nvcc"), "needs nvcc")
    def test_the_kernel_in_cuda_that_the_pages_show(self):
        program = self.folder / "multiply_add"
        source = pathlib.Path(__file__).parents[4] / "docs/kernels/multiply_add.cu"
        subprocess.run(["nvcc", "-arch=native", "-o", program, source], check=True)
        operands = [self.folder / f"{name}.hex" for name in "abc"]
        halflab.run_command("inputs", "fma", to=",".join(map(str, operands)))
        for way, verdict in (("half", "equal"), ("float", "different")):
            subprocess.run([program, way], cwd=self.folder, check=True)
            found = halflab.run_command(
                "validate", "fma", *operands, self.folder / "y.hex", nan="any", out=self.folder / way
            )
            self.assertEqual(found.summary["class"], verdict)
        self.assertIn("it rounds twice: to float", found.summary["explanation"])


class Sums(Case):
    def test_orders_of_sums(self):
        for dtype, n in itertools.product((torch.float32, torch.float64), (7, 40, 300, 2000)):
            tree = halflab.reveal_order(on_gpu(torch.sum), n, dtype)
            self.assertEqual(sorted(leaves(tree)), list(range(n)))
            for seed in range(20):
                terms = torch.from_numpy(np.random.default_rng(seed).standard_normal(n)).to(dtype)
                self.assertEqual(evaluate(tree, terms.numpy()), torch.sum(terms.cuda()).item())

    def test_products_are_explained(self):
        draw = torch.Generator().manual_seed(1)
        to_float = functools.partial(torch.mm, out_dtype=torch.float32)
        products = {"float32": torch.mm, "float16": torch.mm, "float16 to float32": to_float}
        for (name, product), n in itertools.product(products.items(), (64, 256)):
            a, b = (torch.randn(n, n, generator=draw).to(getattr(torch, name.split()[0])).cuda() for _ in range(2))
            answer = halflab.explain_gemm(a, b, product(a, b))
            print(f"a product of {name}, {n} x {n} x {n}: {answer.verdict.splitlines()[0]}")
            self.assertEqual((answer.summary["real_bugs"], answer.summary["unexplained"]), (0, 0))


if __name__ == "__main__":
    unittest.main()
