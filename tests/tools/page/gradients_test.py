import csv
import json
import pathlib
import re
import struct
import tempfile

from case import Keys, Page, Select, WebDriverWait

RECORDS = pathlib.Path(__file__).parents[3] / "experiments/records/claims"
NETWORKS = sorted(record.name.removeprefix("gradients_") for record in RECORDS.glob("gradients_*"))


def npy(values, kind="f4", shape=None):
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': {shape or (len(values),)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values)


def safetensors(tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Gradients(Page):
    def open_gradients(self, state):
        self.open(f"#gradients{state}")
        WebDriverWait(self.browser, 20).until(lambda _: self.all("#network"))

    def rows(self):
        return {row.text.split("%")[0].rsplit(" ", 2)[0]: row.text for row in self.all("tbody tr")}

    def shares(self, row):
        return re.findall(r"([\d.e+-]+) %", next(text for name, text in self.rows().items() if name.startswith(row)))

    def test_what_a_scale_saves_is_what_the_records_say(self):
        for network in NETWORKS:
            with open(RECORDS / f"gradients_{network}/over_training.csv", encoding="utf-8") as file:
                rows = [row for row in csv.DictReader(file) if row["quantity"] == "weight gradients"]
            with open(RECORDS / f"gradients_{network}/moments.csv", encoding="utf-8") as file:
                moments = [row for row in csv.DictReader(file) if row["quantity"] == "weight gradients"]
            last = [row for row in rows if row["step"] == rows[-1]["step"]]
            for log2 in (0, 10):
                border = -25 - log2
                flushed = sum(int(row["count"]) for row in last if int(row["exponent_log2"]) < border)
                flushed += sum(int(row["count_powers_of_two"]) for row in last if int(row["exponent_log2"]) == border)
                nonzero = sum(int(row["count"]) for row in last)
                self.open_gradients(f"&network={network}&scale={log2}")
                found = float(self.shares("zero")[-1])
                self.assertAlmostEqual(found, 100 * flushed / nonzero, delta=0.0051 * found + 1e-9, msg=f"{network} {log2}")
            self.open_gradients(f"&network={network}")
            norm = 100 * float(moments[-1]["norm_share_flushed_at_scale_1"])
            self.assertAlmostEqual(float(self.shares("zero, as")[-1]), norm, delta=0.0051 * norm + 1e-12, msg=network)

    def test_the_slider(self):
        self.open_gradients("")
        self.assertIn("Without a loss scale (S = 1) FP16 rounds", self.find(".answer").text)
        width = self.zone("zero")
        self.find("#scale").send_keys(*[Keys.ARROW_RIGHT] * 10)
        self.assertIn("S = 2^10 saves", self.find(".answer").text)
        self.assertAlmostEqual(self.zone("zero"), width - 10, delta=0.01)
        WebDriverWait(self.browser, 5).until(lambda b: "scale=10" in b.current_url)
        self.press("largest S without an infinity: 2^28")
        self.assertNotIn("infinite (", self.find(".answer").text)
        self.find("#scale").send_keys(Keys.ARROW_RIGHT)
        self.assertIn("the step would be skipped; the largest S without that is 2^28", self.find(".answer").text)
        self.find("#scale").send_keys(Keys.HOME)
        self.assertIn("S = 2^-20 loses", self.find(".answer").text)

    def zone(self, kind):
        return float(self.find(f"svg rect.{kind}").get_attribute("width"))

    def test_every_moment_and_kind(self):
        self.open_gradients("")
        networks = [option.get_attribute("value") for option in Select(self.find("#network")).options]
        self.assertEqual(sorted(networks), sorted([*NETWORKS, "file"]))
        for network in NETWORKS:
            self.choose("#network", network)
            for moment in ("0", "1", "2"):
                self.choose("#moment", moment)
                for kind in ("weight", "activation"):
                    self.choose("#kind", kind)
                    self.assertGreater(self.find("svg path.bars").get_attribute("d").count("M"), 5)

    def give(self, name, content):
        """As a reader does who chooses a file."""
        path = pathlib.Path(self.folder) / name
        path.write_bytes(content)
        self.find("#file").send_keys(str(path))

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = directory.name

    def test_files_of_the_reader(self):
        self.open_gradients("")
        self.give("a.npy", npy([1.0, 2.0**-25, 3 * 2.0**-26, 70000.0, 0.0]))
        WebDriverWait(self.browser, 20).until(lambda _: "a.npy" in self.find("figcaption").text)
        self.assertIn("rounds 25 % of the non-zero gradients to zero", self.find(".answer").text)
        self.assertIn("infinite (1)", self.find(".answer").text)
        self.give("b.safetensors", safetensors({"fc.weight": [2.0**-30] * 3, "fc.bias": [1.0]}))
        WebDriverWait(self.browser, 20).until(lambda _: "b.safetensors, all tensors together" in self.find("figcaption").text)
        self.assertIn("rounds 75 % of", self.find(".answer").text)
        self.choose("#tensor", "1")
        self.assertIn("fc.weight (3,) binary32", self.find("figcaption").text)
        self.assertIn("rounds 100 % of", self.find(".answer").text)

    def drop(self, selector, name, content):
        """Whether the browser leaves the file to the page."""
        return self.browser.execute_script("""
            const [selector, name, content] = arguments, dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([new Uint8Array(content)], name));
            return ["dragover", "drop"].every((kind) => !document.querySelector(selector).dispatchEvent(
              new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true })))""", selector, name, list(content))

    def wait_for(self, text):
        WebDriverWait(self.browser, 20).until(lambda _: text in self.text(), text)

    def test_dropped_anywhere(self):
        self.open_gradients("")
        for place in (".answer", "h1", "html"):
            self.assertTrue(self.drop(place, f"on_{place[-1]}.npy", npy([1.0, 0.5])), place)
            self.wait_for(f"on_{place[-1]}.npy")
        self.find("a[href^='#number']").click()
        self.assertTrue(self.drop("h1", "elsewhere.npy", npy([1.0])))
        self.assertIn("#number", self.browser.current_url)

    def test_a_file_that_is_read_when_another_chapter_is_shown(self):
        self.open_gradients("")
        self.browser.execute_script("""
            const read = File.prototype.arrayBuffer;
            File.prototype.arrayBuffer = async function () {
              await new Promise((resolve) => { globalThis.goOn = resolve; });
              return read.call(this);
            }""")
        self.drop(".answer", "late.npy", npy([1.0, 0.5]))
        self.find("a[href^='#number']").click()
        self.wait(lambda: self.all("#value"))
        address = self.browser.current_url
        self.browser.execute_async_script("goOn(); setTimeout(arguments[0], 500)")
        self.assertEqual(self.browser.current_url, address)
        self.choose("#format", "e4m3")
        self.assertNotIn("network", self.browser.current_url)

    def test_what_cannot_be_read_takes_no_other_file_away(self):
        self.open_gradients("")
        self.give("good.npy", npy([1.0, 2.0**-30]))
        self.wait_for("good.npy")
        self.give("bad.npy", b"abc")
        self.wait_for("'bad.npy'")
        self.assertIn("good.npy", self.find("figcaption").text)
        self.assertIn("rounds 50 % of", self.find(".answer").text)
        self.find("a[href^='#number']").click()
        self.wait(lambda: self.all("#value"))
        self.browser.back()
        self.wait_for("good.npy")
        self.assertFalse(self.all("[role=alert]"))
        self.give("next.npy", npy([2.0**-30]))
        self.wait_for("next.npy")
        self.assertIn("rounds 100 % of", self.find(".answer").text)

    def test_what_is_zero_or_not_finite_is_told(self):
        self.open_gradients("")
        self.give("a.npy", npy([1.0, 0.0, 0.0, 0.0, float("nan"), float("inf")]))
        self.wait_for("a.npy")
        self.assertIn("exactly zero from the start 3", self.rows().values())
        self.assertIn("NaN or infinite from the start 2", self.rows().values())
        self.assertIn("NaN or infinite from the start (2): such a step is skipped with every S.", self.find(".answer").text)
        self.give("b.npy", npy([float("nan")]))
        self.wait_for("b.npy")
        self.assertIn("No value is finite and other than zero. There are values that are NaN", self.find(".answer").text)

    def test_the_largest_scale_beyond_the_slider(self):
        self.open_gradients("")
        for value, said in ((2.0**-60, "The largest S without an infinity is 2^75, beyond the slider."),
                            (2.0**50, "The largest S without an infinity is 2^-35, beyond the slider."),
                            (2.0**-24, "largest S without an infinity: 2^39")):
            self.give(f"{value}.npy", npy([value]))
            self.wait_for(f"{value}.npy")
            self.assertIn(said, self.text())
            self.assertEqual(len([b for b in self.all("main button") if "largest S" in b.text]), int(value == 2.0**-24))
        self.give("tiny.npy", npy([2.0**-140]))
        self.wait_for("tiny.npy")
        self.assertNotIn("argest S", self.text())

    def test_what_cannot_be_read_gets_a_sentence(self):
        self.open_gradients("")
        for name, content, said in (("a.txt", b"1 2 3", "'a.txt' is not read here; allowed: .npy and .safetensors"), ("a.npz", b"PK", "'a.npz'"),
                                    ("a.npy", b"abc", "'a.npy'"), ("b.npy", npy([1.0])[:-2], "'b.npy'"),
                                    ("c.npy", npy([1.0], "i4"), "no tensor of floating-point numbers"), ("e.npy", b"", "'e.npy'"),
                                    ("a.safetensors", b"\xff" * 20, "is no safetensors file, or is cut off"),
                                    ("b.safetensors", safetensors({"x": [1.0]})[:-1], "the file is cut off"),
                                    ("c.safetensors", struct.pack("<Q", 10) + b'{"x": [1]}', "'c.safetensors' cannot be read")):
            self.give(name, content)
            WebDriverWait(self.browser, 20).until(lambda _: self.all("[role=alert]") and said in self.alert(), name)
            self.assertTrue(self.find(".answer").text, name)
        self.browser.execute_script("""
            const file = new File([], "huge.safetensors"), transfer = { files: [file], types: ["Files"] };
            Object.defineProperty(file, "size", { value: 2 ** 31 });
            const event = new Event("drop", { bubbles: true, cancelable: true });
            event.dataTransfer = transfer;
            document.querySelector(".answer").dispatchEvent(event)""")
        WebDriverWait(self.browser, 20).until(lambda _: "'huge.safetensors' has 2.15 GB" in self.alert())

    def test_a_file_is_no_part_of_the_address(self):
        self.open_gradients("&network=file")
        self.assertIn("choose yours again", self.find(".answer").text)

    def test_it_fits_on_any_screen(self):
        self.open_gradients("&scale=10")
        for width in (360, 1300, 2560):
            self.browser.set_window_size(width, 1400)
            inside, shown = self.browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
            self.assertLessEqual(shown, inside, width)
            self.browser.save_screenshot(str(self.screenshots / f"gradients_{width}.png"))
