"""The page of a watch: small models with a known trouble, diagnosed from the three lines that watch adds."""

import pathlib
import sys
import unittest

from case import Case, halflab, needs, nn, torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from pages import Page  # noqa: E402


class Deep(nn.Module):
    """Sigmoids divide the gradient by four and more, layer by layer."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))
        self.head = nn.Linear(64, 64)

    def forward(self, x):
        for layer in self.encoder:
            x = layer(x).sigmoid()
        return self.head(x)


class Hot(nn.Module):
    """The output of `decoder` passes 65504 where `heat` is large."""

    heat = 1.0

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.head = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, 64)

    def forward(self, x):
        return self.head(self.decoder(self.encoder(x) * self.heat) / self.heat)


@needs(2, 3)
class Diagnosed(Case):
    def train(self, model, steps=41, scale=None, twin=False, at_step=lambda step: None, every=10):
        """(the page, the watch); without a scale there is no scaler."""
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale, enabled=scale is not None)
        x = torch.randn(128, 64, generator=torch.Generator().manual_seed(3))

        def compute_loss():
            with torch.autocast("cpu", dtype=torch.float16):
                output = model(x)
            return nn.functional.mse_loss(output.float(), x)

        options = {"twin": compute_loss} if twin else {}
        with halflab.torch.watch(model, optimizer=optimizer, scaler=scaler, every=every, **options) as watched:
            for step in range(steps):
                at_step(step)
                optimizer.zero_grad()
                scaler.scale(compute_loss()).backward()
                scaler.step(optimizer)
                scaler.update()
        page = Page(watched.report(self.folder / "page.html"))
        self.assertEqual(page.references(), [])
        return page, watched

    def assert_says(self, page, *fragments):
        for fragment in fragments:
            self.assertIn(fragment, page.text)

    def test_a_stall_without_a_scaler(self):
        page, watched = self.train(Deep())
        self.assertFalse(watched.tensors["encoder.0.weight", "gradient"].nonzero_finite)
        best = int(watched.recommended_scale()).bit_length() - 1
        self.assertEqual(page.title, "No step was skipped, but FP16 loses gradients at S = 1")
        self.assert_says(page, f"torch.amp.GradScaler(init_scale=2.0**{best})", "got nothing but zeros", "encoder.0.weight")

    def test_a_stall_that_a_twin_measures(self):
        page, watched = self.train(Deep(), twin=True)
        exact = watched.tensors["encoder.0", "output in FP32"]
        self.assertEqual(exact.flushed_at_scale(0), exact.nonzero_finite)
        self.assertEqual(page.title, "No step was skipped, but FP16 loses gradients at S = 1")
        total = halflab.ExponentHistogram()
        for (_, kind), histogram in watched.tensors.items():
            if kind.endswith("in FP32"):
                total += histogram
        share = 100 * total.flushed_at_scale(0) / total.nonzero_finite
        self.assert_says(page, f"{share:.3g} % at S = 1", "loses everything: encoder.0 (output).")

    def test_the_advice_helps(self):
        """With the scaler that the page of the stall asks for the page says that nothing is wrong."""
        _, watched = self.train(Deep())
        page, scaled = self.train(Deep(), scale=watched.recommended_scale(), twin=True)
        self.assertEqual(page.title, "No step was skipped, and FP16 keeps the gradients")
        self.assertTrue(scaled.tensors["encoder.0.weight", "gradient"].nonzero_finite)

    def test_a_named_layer_that_overflows(self):
        model = Hot()

        def heat_up(step):
            model.heat = 1e5 if step > 29 else 1.0

        page, watched = self.train(model, scale=2.0**10, at_step=heat_up)
        self.assertEqual(page.title, "11 of 41 steps were skipped: the input of decoder overflows in the forward pass")
        self.assert_says(page, "Run what makes the input of decoder in FP32", "the input of decoder was the first", "No S cures")
        self.assertEqual(watched.skips[0]["step"], 30)

    def test_a_scale_that_was_too_large(self):
        page, watched = self.train(Hot(), scale=2.0**32, twin=True)
        lost = len(watched.skips)
        self.assertGreater(lost, 2)
        self.assertEqual(page.title, f"{lost} of 41 steps were skipped, as the scaler looked for S")
        self.assert_says(page, f"A smaller S cures {lost} of {lost} steps", "To spare the skipped steps at the beginning")


class Forecast(Case):
    def test_bfloat16(self):
        model = Deep()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        x = torch.randn(8, 64)

        def compute_loss():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return model(x).float().square().mean()

        with halflab.torch.watch(model, optimizer=optimizer, every=1, twin=compute_loss) as watched:
            compute_loss().backward()
            optimizer.step()
        self.assertTrue(watched.tensors["encoder.0", "output in FP32"].nonzero_finite)
        page = Page(watched.report(self.folder / "page.html"))
        self.assertEqual(page.title, "No step was skipped, but FP16 would lose gradients at S = 1")


if __name__ == "__main__":
    unittest.main()
