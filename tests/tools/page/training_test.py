import re

from case import Keys, Page, WebDriverWait


class Training(Page):
    def wait_for_steps(self, state, steps):
        self.open(f"#training&{state}&step={steps}")
        WebDriverWait(self.browser, 240).until(lambda _: f"After {steps} steps" in self.text())

    def losses(self):
        return [float(loss) for loss in re.search(r"the loss is (\S+) in FP16 and (\S+) in FP32", self.text()).groups()]

    def test_the_sigmoid_net_stalls_at_1_and_recovers_with_the_slider(self):
        self.wait_for_steps("course=0:none", 250)
        stalled, wide = self.losses()
        self.assertGreater(stalled, 1.08 * wide)
        self.assertIn("100 % of the gradient of encoder", self.text())
        self.find("#scale").send_keys(*[Keys.ARROW_RIGHT] * 20)
        self.assertEqual(self.find("#scale").get_attribute("aria-valuetext"), "2^20")
        self.assertIn("course=0%3Anone%2C25", self.wait_for_address("static.20"))
        address = self.browser.current_url
        self.wait_for_steps(address.split("#training&")[1].split("&step")[0], 450)
        recovered, wide = self.losses()
        self.assertLess(recovered, 0.95 * stalled)
        self.assertNotIn("100 % of the gradient", self.text())
        self.assertEqual(len(self.all(".strip")), 6)

    def wait_for_address(self, part):
        WebDriverWait(self.browser, 5).until(lambda b: part in b.current_url)
        return self.browser.current_url

    def test_run_pause_step_and_restart(self):
        self.open("#training&network=mlp")
        WebDriverWait(self.browser, 20).until(lambda _: self.all("#play"))
        self.assertIn("Nothing is trained yet", self.text())
        self.press("Run")
        WebDriverWait(self.browser, 60).until(lambda _: re.search(r"After (\d\d+) steps", self.text()))
        self.press("Pause")
        steps = self.steps()
        self.press("One step")
        WebDriverWait(self.browser, 20).until(lambda _: self.steps() == steps + 1)
        self.assertIn(f"step={steps + 1}", self.wait_for_address(f"step={steps + 1}"))
        self.press("Restart")
        self.assertIn("Nothing is trained yet", self.text())

    def go_and_come_back(self):
        self.find("a[href^='#number']").click()
        self.wait(lambda: self.all("#value"))
        self.find("a[href^='#training']").click()
        self.wait(lambda: self.all("#play"))

    def test_it_goes_on_from_the_step_that_is_shown(self):
        self.wait_for_steps("network=autoencoder&course=0:none", 30)
        self.go_and_come_back()
        self.assertIn("Nothing is trained yet", self.text())
        self.press("One step")
        self.wait(lambda: self.steps() == 1)
        self.press("static")
        self.assertIn("course=0%3Anone%2C1%3Astatic.0&step=1", self.wait_for_address("static.0&step=1"))
        self.find("#scale").send_keys(*[Keys.ARROW_RIGHT] * 10)
        self.assertIn("course=0%3Anone%2C1%3Astatic.10&step=1", self.wait_for_address("static.10&step=1"))
        self.open_step(20)
        again = self.find(".answer").text
        self.wait_for_steps("network=autoencoder&course=0:none,1:static.10", 20)
        self.assertEqual(self.find(".answer").text, again)
        self.press("Restart")
        self.browser.execute_script("""
            globalThis.seen = [];
            new MutationObserver(() => seen.push(document.querySelector(".answer").textContent)).observe(
              document.querySelector("main"), { subtree: true, childList: true, characterData: true })""")
        self.press("Run")
        seen = lambda: re.findall(r"After (\d+) steps", " ".join(self.browser.execute_script("return seen")))
        WebDriverWait(self.browser, 60).until(lambda _: seen())
        self.assertLess(int(seen()[0]), 20)
        self.press("Pause")

    def open_step(self, step):
        """Another address of the same page, as one that is typed."""
        address = re.sub(r"step=\d+", f"step={step}", self.browser.current_url)
        self.browser.execute_script("location.href = arguments[0]", address)
        WebDriverWait(self.browser, 60).until(lambda _: f"After {step} steps" in self.text())

    def test_another_language_does_not_end_it(self):
        self.open("#training&network=mlp")
        self.press("Run")
        WebDriverWait(self.browser, 60).until(lambda _: re.search(r"After \d+ steps", self.text()))
        self.choose("#language", "de")
        self.wait(lambda: re.search(r"Nach \d+ Schritten", self.text()))
        self.assertEqual(self.find("#play").text, "Pause")
        steps = int(re.search(r"Nach (\d+) Schritten", self.text())[1])
        WebDriverWait(self.browser, 20).until(lambda _: f"Nach {steps} " not in self.text())
        self.press("Pause")

    def test_the_last_step_is_told(self):
        self.open("#training&network=mlp&step=1990")
        WebDriverWait(self.browser, 120).until(lambda _: "After 1990 steps" in self.text())
        self.assertNotIn("at most", self.text())
        self.press("Run")
        WebDriverWait(self.browser, 20).until(lambda _: "After 2000 steps" in self.text())
        self.assertIn("The page makes 2000 steps at most", self.text())
        self.assertFalse(self.find("#play").is_enabled())

    def steps(self):
        return int(re.search(r"After (\d+) steps", self.text())[1])

    def test_every_scaler_and_a_scale_that_overflows(self):
        self.wait_for_steps("network=mlp&course=0:static.30", 12)
        self.assertIn("Steps skipped because a gradient overflowed: 12.", self.text())
        self.assertIn("With S = 2^30 the gradient overflowed in FP16, and the last step was skipped.", self.text())
        self.assertNotIn("no layer has lost", self.text())
        self.press("dynamic")
        self.assertIn("12:dynamic", self.wait_for_address("12%3Adynamic").replace("%3A", ":"))
        self.assertEqual(self.find(".buttons [aria-pressed=true]").text, "dynamic")
        self.wait_for_steps("network=mlp&course=0:adaptive", 12)
        self.assertIn("S was 2^0 at first and is", self.find("figure:nth-of-type(2) svg[role=img]").get_attribute("aria-label"))

    def test_the_page_stays_alive_while_it_trains(self):
        self.open("#training")
        WebDriverWait(self.browser, 20).until(lambda _: self.all("#play"))
        self.press("Run")
        WebDriverWait(self.browser, 60).until(lambda _: "After 3" in self.text())
        slices = sorted(self.browser.execute_script("return performance.getEntriesByName('training slice').map((slice) => slice.duration)"))
        print(f"a slice of training: {slices[len(slices) // 2]:.1f} ms, median of {len(slices)}; the longest {slices[-1]:.1f} ms")
        self.assertLess(slices[len(slices) // 2], 60)  # 12 on two idle cores
        self.browser.get(self.page.as_uri() + "#number")  # leaves the chapter while it trains

    def test_a_browser_without_simd_gets_a_sentence(self):
        source = """const all = WebAssembly.instantiate, size = (bytes) => bytes.byteLength
            WebAssembly.instantiate = (bytes, imports) => size(bytes) > 1e6 ? Promise.reject(new WebAssembly.CompileError("none")) : all(bytes, imports)"""
        script = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
        try:
            self.open("#training")
            WebDriverWait(self.browser, 20).until(lambda _: "SIMD" in self.alert())
        finally:
            self.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)

    def test_it_fits_on_any_screen(self):
        self.wait_for_steps("network=mlp&course=0:static.30,4:dynamic", 8)
        for width in (360, 1300, 2560):
            self.browser.set_window_size(width, 1400)
            inside, shown = self.browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
            self.assertLessEqual(shown, inside, width)
            self.browser.save_screenshot(str(self.screenshots / f"training_{width}.png"))
