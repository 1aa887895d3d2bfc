from case import Keys, Page


class Sum(Page):
    def row(self, way):
        return next(row.text for row in self.all("tbody tr") if row.text.startswith(way + " "))

    def test_4096_ones_stagnate_at_2048(self):
        self.open("#sum")
        self.assertIn(
            "4096 terms, chain: 2048 in place of 4096, 50 % off. After 2048 terms the chain stands still", self.text()
        )
        self.assertEqual(self.row("chain"), "chain 2048 0x6800 -2048 -50 %")
        self.assertEqual(self.row("tree, pairwise"), "tree, pairwise 4096 0x6c00 0 0 %")
        self.assertEqual(self.row("chain with Kahan's compensation"), "chain with Kahan's compensation 4096 0x6c00 0 0 %")
        self.assertEqual(len(self.all("tbody tr")), 7 + 4 + 2 * 6)

    def test_every_series_and_way_is_drawn(self):
        self.open("#sum")
        for series in ("tenths", "random", "alternating", "own"):
            self.choose("#terms", series)
            for place in (0, 4, 9, 22):
                way = self.all("tbody button")[place]
                way.click()
                self.assertIn(way.text, self.find("figcaption").text)
                self.assertIn("L", self.find("path.walk").get_attribute("d"), series)

    def test_the_steps(self):
        self.open("#sum&count=8")
        self.assertIn("8 terms, chain: 8, which is exact.", self.text())
        self.find("#step").send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        self.assertIn("6 terms, chain: 6", self.text())
        self.press("One term more")
        self.press("One term more")
        self.press("One term more")
        self.assertIn("8 terms, chain: 8", self.text())
        self.find("#count").send_keys(Keys.HOME)
        self.assertIn("4 terms, chain: 4", self.text())

    def test_it_plays_and_stops(self):
        self.open("#sum&step=1")
        self.find("#play").click()
        self.wait(lambda: "Pause" in self.find("#play").text and int(self.find("#step").get_attribute("value")) > 100)
        self.find("#play").click()
        at = self.find("#step").get_attribute("value")
        self.assertEqual(self.find("#play").text, "Play")
        self.find("#play").click()
        self.wait(lambda: int(self.find("#step").get_attribute("value")) > int(at))
        self.open("#number")
        self.assertIn("0.1", self.text())

    def test_it_does_not_move_for_who_asks_for_less_motion(self):
        self.browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
        )
        try:
            self.open("#sum&step=1")
            self.find("#play").click()
            self.assertIn("4096 terms, chain: 2048", self.text())
            self.assertEqual(self.find("#play").text, "Play")
        finally:
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def test_own_terms(self):
        self.open("#sum&terms=own&own=1%200.0001&count=1024")
        self.assertIn("1024 terms, chain: 512 in place of 512.051", self.text())
        for wrong, why in (
            ("1 x", "'x', number 2 of the row, is no number"),
            ("", "there is no number in the row"),
            ("漢字", "is no number"),
        ):
            self.open(f"#sum&terms=own&own={wrong}")
            self.assertIn(why, self.alert())
            self.assertTrue(self.find("#own"))
        self.open("#sum&terms=own&own=65504, 65504,-inf&count=4")
        self.assertIn("nan", self.text())

    def test_a_decimal_comma_is_not_two_numbers(self):
        self.open("#sum&terms=own&own=0%2C5&language=de")
        self.assertEqual(self.alert(), "Dezimalzahlen werden mit einem Punkt geschrieben: 0.1.")
        self.open("#sum&terms=own&own=0.5, 1;2,-1&count=4")
        self.assertIn("4 terms, chain: 2.5, which is exact.", self.text())

    def said(self, state):
        self.open(f"#sum&{state}")
        return self.find(".answer").text

    def test_what_binary64_does_not_hold_is_not_called_exact(self):
        said = self.said("terms=own&own=1 1e-30&format=bfloat16&count=4&step=2")
        self.assertIn("2 terms, chain: 1, the binary64 number that is nearest to the exact sum.", said)
        self.assertIn("exact: ≈ 1\n", self.text())
        said = self.said("terms=tenths&format=binary64&count=4&step=3")
        self.assertIn("3 terms, chain: 0.30000000000000004, the binary64 number that is nearest to the exact sum.", said)
        self.assertIn("which is exact", self.said("terms=tenths&format=binary64&count=4&step=2"))

    def test_an_overflow_is_no_standstill(self):
        said = self.said("terms=own&own=100")
        self.assertIn("4096 terms, chain: inf in place of 409600. With 679 terms the chain has overflowed", said)
        self.assertNotIn("stands still", said)
        for state in ("terms=own&own=100&format=e4m3&count=64", "terms=own&own=6&format=e2m1&count=64",
                      "terms=own&own=-1e308&format=binary64"):
            said = self.said(state)
            self.assertIn("the chain has overflowed", said, state)
            self.assertNotIn("stands still", said, state)
        self.assertIn("chain: -inf in place of < -1.79e308.", said)
        for own in ("nan", "inf"):
            self.assertEqual(self.said(f"terms=own&own=1 {own}"), f"4096 terms, chain: {own}, which is exact.")
