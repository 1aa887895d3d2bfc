"""Pages on tensors that are given as arrays and files: report_gradients, held to what `halflab hist` says."""

import math
import unittest

import numpy as np

import halflab
from gradient_pages import Pages, spread
from pages import Page


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
