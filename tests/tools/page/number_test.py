import json

from case import By, Keys, Page, Select, WebDriverWait
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin


class Number(Page):
    def test_a_click_on_a_bit_changes_the_number(self):
        self.open()
        self.assertIn("0.0999755859375", self.text())
        self.find('[data-place="0"]').click()
        self.assertIn("0x2e67", self.text())
        self.assertIn("value=0x2e67", self.browser.current_url)
        self.find('[data-place="15"]').click()
        self.assertIn("0xae67", self.text())
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("data-place"), "15")

    def test_the_keyboard_does_too(self):
        self.open("#number&value=1")
        self.find('[data-place="10"]').send_keys(Keys.SPACE)
        self.assertIn("0x3800", self.text())

    def test_every_format_is_there_to_choose(self):
        self.open("#number&value=448")
        names = [option.get_attribute("value") for option in Select(self.find("#format")).options]
        self.assertEqual(len(names), 13)
        for name in names:
            Select(self.find("#format")).select_by_value(name)
            self.assertIn(f"format={name}", self.browser.current_url)
            self.assertTrue(self.find(".bitrow").text, name)

    def test_what_is_no_number_gets_the_sentence_of_the_library(self):
        self.open()
        for wrong in ("abc", "0x12345", "1 2", "<b>", "'\"&", "9" * 3000, "%", "漢字"):
            self.enter(wrong)
            self.assertTrue(self.alert(), wrong) if wrong != "9" * 3000 else self.assertIn("infinity", self.text())
            self.enter("0.1")
            self.assertIn("0.0999755859375", self.text())
        self.enter("0,1")
        self.assertEqual(self.alert(), "Decimals are written with a point: 0.1.")
        self.enter("fma(1,2,3")
        self.assertIn("must be ')'", self.alert())
        self.open("#number&value=0,1&language=de")
        self.assertEqual(self.alert(), "Dezimalzahlen werden mit einem Punkt geschrieben: 0.1.")

    def test_what_a_format_lacks_is_said_in_every_one(self):
        for wanted in ("0", "-0", "1/0", "-1/0", "0/0", "inf", "nan", "-1", "1e400", "1e-400"):
            self.open(f"#number&value={wanted}")
            names = [option.get_attribute("value") for option in Select(self.find("#format")).options]
            for name in names if wanted in ("-0", "inf") else ("binary16", "e4m3", "e2m1", "e8m0"):
                self.open(f"#number&value={wanted}&format={name}")
                if name == "e8m0" and "/" in wanted:
                    self.assertIn("without arithmetic", self.alert())
                else:
                    self.assertTrue(self.find(".answer").text, f"{wanted} in {name}")
        self.open("#number&value=-0&format=e8m0")
        self.assertIn("e8m0 (float8_e8m0fnu) has nothing for -0: it becomes", self.find(".answer").text)

    def test_a_number_without_end_keeps_the_reader_s_words(self):
        self.open("#number&value=1/3")
        self.assertIn("binary16 (fp16) has no 1/3, it lies between 0.333251953125 and 0.33349609375.", self.text())
        self.press("bfloat16")
        self.assertIn("bfloat16 (bf16) has no 1/3, it lies between", self.text())

    def test_half_of_the_smallest_number_is_lost(self):
        self.open("#number&value=2^-25")
        self.assertIn("and what is at most half of it becomes 0.", self.find(".answer").text)

    def test_words_are_explained(self):
        self.open()
        self.assertNotIn("so that 10 bits hold 11", self.text())
        self.find("details.words summary").click()
        self.assertIn("it is not stored, so that 10 bits hold 11", self.text())


class NumberLine(Page):
    def window(self):
        return json.loads(
            self.browser.execute_script(
                """
            const ticks = document.querySelectorAll(".numberline svg[role] > text");
            return JSON.stringify([...ticks].map((text) => text.textContent))"""
            )
        )

    def ticks(self):
        return self.find(".numberline .tick").get_attribute("d").count("M")

    def test_it_says_why_a_decimal_is_lost(self):
        self.open("#number&value=0.1")
        self.assertIn(
            "binary16 (fp16) has no 0.1, it lies between 0.0999755859375 and 0.10003662109375. It becomes "
            "0.0999755859375, which is 0.0244 % too small. In binary its digits have no end, as those of 1/3 in decimal, and "
            "binary16 (fp16) keeps 11 bits of it.",
            self.find(".answer").text,
        )
        present, wanted = (float(self.find(f"circle.{kind}").get_attribute("cx").rstrip("%")) for kind in ("present", "wanted"))
        self.assertLess(present, wanted)
        self.assertEqual(wanted, 50)

    def test_fewer_bits_are_kept_of_what_is_subnormal(self):
        self.open("#number&value=1e-6")
        self.assertIn(
            "In binary its digits have no end, as those of 1/3 in decimal, and binary16 (fp16) keeps 5 bits of it.",
            self.text(),
        )

    def test_the_gap_at_zero_and_the_subnormal_numbers(self):
        self.open("#number&value=2^-24&centre=0&zoom=-21")
        self.assertEqual(self.ticks(), 9)  # 0 and four of each sign
        self.assertIn("2^-24", self.window())
        self.assertIn("5.96e-8", self.window())
        zero = self.find(".numberline rect.zero")
        self.assertEqual(float(zero.get_attribute("width")), 125)  # from -2^-25 to 2^-25 of 2^-21
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, ".numberline rect.subnormal")), 2)
        self.assertIn("e5m2: 1 here", self.window())

    def test_the_whole_range_and_what_lies_beyond(self):
        self.open("#number&value=1e6&centre=65504&zoom=10")
        said = "is beyond what binary16 (fp16) holds: in magnitude the largest number is 65504, and so it becomes"
        self.assertIn(f"1e6 {said} inf.", self.find(".answer").text)
        self.assertEqual(self.ticks(), 17)  # 65504 - 512 = 64992 and every 32 from there
        self.assertTrue(self.find(".numberline rect.beyond"))
        self.open("#number&value=-1e6")
        self.assertIn(f"-1e6 {said} -inf.", self.find(".answer").text)
        self.open("#number&value=1")
        self.press("All")
        self.assertIn("binary16: 63,490 here", self.window())
        Select(self.find("#language")).select_by_visible_text("Deutsch")
        self.assertIn("binary16: 63\u202f490 hier", self.window())
        Select(self.find("#language")).select_by_visible_text("English")
        self.press("Smallest normal")
        self.assertEqual({"2^-24", "2^-23"} - set(self.window()), set())

    def zoom(self):
        return float(self.find("#zoom").get_attribute("value"))

    def test_every_control_moves_it(self):
        self.open("#number&value=1&centre=1&zoom=0")
        drawing = self.find(".numberline svg[role]")
        drawing.send_keys("+")
        self.assertEqual(self.zoom(), -1)
        drawing.send_keys("-", "-")
        self.assertEqual(self.zoom(), 1)
        drawing.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("0.2", self.window())  # from 0 to 2 moved by a tenth of its width
        drawing.send_keys("0")
        self.assertEqual(self.window()[:2], ["-1", "1"])
        self.press("Closer")
        self.assertEqual(self.window()[:2], ["-0.5", "0.5"])
        self.find("#zoom").send_keys(Keys.ARROW_RIGHT)
        self.assertGreater(self.zoom(), 0)
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), "zoom")
        WebDriverWait(self.browser, 5).until(lambda b: "centre=0&" in b.current_url)

    def test_shortcuts_of_the_browser_stay_its_own(self):
        self.open("#number&value=1&centre=1&zoom=0")
        swallowed = self.browser.execute_script("""
            const line = document.querySelector(".numberline svg[role]");
            return ["ctrlKey", "metaKey", "altKey"].flatMap((held) => ["0", "+", "-", "ArrowLeft"].map((key) =>
              !line.dispatchEvent(new KeyboardEvent("keydown", { key, [held]: true, cancelable: true }))))""")
        self.assertEqual(swallowed, [False] * 12)
        self.assertEqual(self.zoom(), 0)

    def test_the_wheel_and_a_pointer_that_drags(self):
        self.open("#number&value=1&centre=0&zoom=1")
        drawing = self.find(".numberline svg[role]")
        ActionChains(self.browser).click_and_hold(drawing).move_by_offset(60, 0).move_by_offset(60, 0).release().perform()
        width = drawing.size["width"]
        low = float(self.window()[0])
        self.assertAlmostEqual(low, -1 - 2 * 120 / width, delta=0.01)
        origin = ScrollOrigin.from_element(drawing)
        ActionChains(self.browser).scroll_from_origin(origin, 0, -200).perform()
        self.assertAlmostEqual(self.zoom(), 0, delta=0.01)
        self.assertEqual(self.browser.execute_script("return scrollY"), 0)

    def test_two_fingers_zoom(self):
        self.open("#number&value=1&centre=0&zoom=1")
        self.browser.execute_script(
            """
            const drawing = document.querySelector(".numberline svg[role]"),
              { left, width, top } = drawing.getBoundingClientRect();
            drawing.setPointerCapture = () => {};
            const send = (kind, pointerId, part) => drawing.dispatchEvent(
              new PointerEvent(kind, { pointerId, clientX: left + part * width, clientY: top + 9, bubbles: true }));
            send("pointerdown", 7, 0.4); send("pointerdown", 8, 0.6);
            send("pointermove", 7, 0.3); send("pointermove", 8, 0.7);
            send("pointerup", 7, 0.3); send("pointerup", 8, 0.7)"""
        )
        self.assertAlmostEqual(self.zoom(), 0, delta=0.01)

    def test_every_format_has_one_at_every_zoom(self):
        self.open()
        for format in [option.get_attribute("value") for option in Select(self.find("#format")).options]:
            for state in ("", "&centre=0&zoom=-1100", "&centre=0&zoom=1100", "&centre=1e308", "&centre=-1e308&zoom=-1074"):
                self.open(f"#number&format={format}&value=1{state}")
                self.assertEqual(len([text for text in self.window() if text.endswith(" here")]), 13, f"{format}{state}")
