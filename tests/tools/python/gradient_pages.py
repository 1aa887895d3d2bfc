"""What the tests of pages on gradients share: records made by hand, and their pages."""

import math
import pathlib
import tempfile

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
