from case import By, Keys, Page


class Operation(Page):
    def test_2048_plus_1(self):
        self.open("#operation")
        text = self.text()
        self.assertIn("2048 + 1 = 2048", text)
        self.assertRegex(text, r"guard bit\n1\nround bit\n0\nsticky: is any further bit set\?\n0")
        rows = {row.text.split(" 0x")[0] for row in self.browser.find_elements(By.CSS_SELECTOR, ".wide tbody tr")}
        self.assertIn("upward 2050", rows)
        self.assertIn("toward zero 2048", rows)

    def test_every_example_is_answered(self):
        self.open("#operation")
        for place in range(len(self.browser.find_elements(By.CSS_SELECTOR, ".examples button"))):
            example = self.browser.find_elements(By.CSS_SELECTOR, ".examples button")[place]
            name = example.text
            example.click()
            self.assertTrue(self.find(".answer").text, name)
            self.assertEqual(self.find("#value").get_attribute("value"), name)

    def test_operands_far_apart_and_no_numbers(self):
        self.open("#operation&format=binary64&value=1e300*1e-300")
        self.assertTrue(self.find(".answer").text)
        self.enter("1/0")
        self.assertIn("inf", self.find(".answer").text)
        self.enter("0*inf")
        self.assertIn("nan", self.find(".answer").text)

    def test_once_is_not_twice(self):
        self.open("#operation&value=fma(245.375, 19.953125, 28688)")
        rows = [row.text for row in self.all("tbody tr") if " 0x78" in row.text]
        self.assertIn("rounded once fma(245.375, 19.953125, 28688) 33568 0x7819", rows)
        self.assertIn("product rounded, then the sum 4896 + 28688 33600 0x781a differs", rows)
        self.assertIn("in FP32, then rounded again 33584 33600 0x781a differs", rows)

    def test_it_says_why(self):
        for value, why in (
            ("2048+1", "2049 lies halfway between 2048 and 2050, and a tie goes to the one whose last bit is 0: 2048."),
            ("2048+1.5", "2049.5 lies between 2048 and 2050, nearer to 2050."),
            ("65504+16", "65520 is beyond the largest number by half a spacing or more, and so it becomes inf."),
            ("2^-14/3", "the last place stays 2^-24"),
        ):
            self.open(f"#operation&value={value.replace('+', '%2B')}")
            self.assertIn(why, self.text())

    def test_operands_are_shown_as_the_format_has_them(self):
        said = "with operands as binary16 has them"
        self.open("#operation&value=0.1*0.1")
        self.assertIn(f"0.1*0.1, {said}: 0.0999755859375 * 0.0999755859375 = 0.0099945068359375", self.text())
        self.open("#operation&value=2048%2B1")
        self.assertNotIn(said, self.text())

    def test_the_mean_of_stochastic_rounding_converges(self):
        self.open("#operation&value=2048%2B0.3&draws=4096&seed=7")
        self.assertIn(
            "After 4096 draws, 583 times 2050 and 3513 times 2048, the mean is 2048.28466796875; exact: 2048.300048828125",
            self.text(),
        )
        self.find("#draws").send_keys(Keys.ARROW_LEFT)
        self.assertIn("After 2048 draws", self.text())
        before = self.text()
        self.press("Draw anew")
        self.assertNotEqual(self.text(), before)
        self.wait(lambda: "draws=2048&seed=8" in self.browser.current_url)

    def test_it_says_why_nothing_is_drawn(self):
        for state, why in (
            ("value=65504%2B16", "one of its two results is inf, and draws of it have no mean."),
            ("value=65504%2B8", "one of its two results is inf, and draws of it have no mean."),
            ("value=448%2B24&format=e4m3", "one of its two results is nan, and draws of it have no mean."),
            ("value=448%2B64&format=e4m3", "its only result is nan."),
            ("value=6%2B1&format=e2m1", "its only result is 6."),
        ):
            self.open(f"#operation&{state}")
            self.assertFalse(self.all("#draws"), state)
            self.assertIn(f"Stochastic rounding is not drawn here: {why}", self.text())

    def test_a_long_number_is_about_in_no_language(self):
        self.open("#operation&value=1/3&language=de")
        said = self.find("[aria-live=polite]").text
        self.assertIn("genau: ≈ 0.33", said)
        self.assertNotIn("about", self.text())

    def test_nothing_is_drawn_where_nothing_is_rounded(self):
        for value in ("1%2B1", "0x3c00", "1/0", "0*inf", "-(1)"):
            self.open(f"#operation&value={value}")
            self.assertFalse(self.all("#draws"), value)
            self.assertNotIn("is not drawn here", self.text(), value)
            self.assertFalse(self.all("[role=alert]"), value)
