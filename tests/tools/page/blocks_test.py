from case import Keys, Page, Select


class Blocks(Page):
    def cells(self, row):
        return [cell.text for cell in row.find_elements("css selector", "td")]

    def test_an_outlier_pushes_its_neighbours_to_zero(self):
        self.open("#blocks")
        self.assertIn("Of the 31 neighbours in the outlier's block 1 become 0", self.text())
        lost = []
        for _ in range(12):
            self.find("#outlier").send_keys(Keys.ARROW_RIGHT)
            lost.append(int(self.find(".answer").text.split("block ")[1].split(" ")[0]))
        self.assertEqual(lost, sorted(lost))
        self.assertEqual(lost[-1], 31)
        self.assertIn("4096 times as large, 3809.28", self.text())
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), "outlier")
        self.wait(lambda: "outlier=12" in self.browser.current_url)

    def test_every_format_and_rule(self):
        self.open("#blocks")
        for format in [option.get_attribute("value") for option in Select(self.find("#format")).options]:
            self.choose("#format", format)
            rules = (
                [option.get_attribute("value") for option in Select(self.find("#rule")).options] if self.all("#rule") else []
            )
            self.assertEqual(len(rules), 0 if format == "nvfp4" else 4)
            for rule in rules:
                self.choose("#rule", rule)
                self.assertEqual(len(self.all("tbody")[1].find_elements("css selector", "tr")), 32, format + rule)

    def test_codes_and_values(self):
        self.open("#blocks&format=mxfp4&row=6,-1.4 0.26, 0.2&place=0")
        rows = [self.cells(row) for row in self.all("tbody")[1].find_elements("css selector", "tr")]
        self.assertEqual(
            rows,
            [
                ["1", "6", "1 (0x7f)", "0111 6", "0x7", "6", "0 %"],
                ["2", "-1.4", "1 (0x7f)", "1011 -1.5", "0xb", "-1.5", "7.14 %"],
                ["3", "0.26", "1 (0x7f)", "0001 0.5", "0x1", "0.5", "92.3 %"],
                ["4", "0.2", "1 (0x7f)", "0000 0", "0x0", "0", "-100 %"],
            ],
        )

    def test_rows_of_a_reader(self):
        self.open("#blocks")
        before = self.find("#row").get_attribute("value")
        self.press("Another row")
        self.assertNotEqual(self.find("#row").get_attribute("value"), before)
        self.find("#row").send_keys(Keys.CONTROL, "a", Keys.NULL, "1 2 nan 3", Keys.TAB)
        self.assertIn("nan", self.text())
        self.find("#row").send_keys(Keys.CONTROL, "a", Keys.NULL, "1 two", Keys.TAB)
        self.assertIn("'two', number 2 of the row, is no number", self.alert())
        self.find("#row").send_keys(Keys.CONTROL, "a", Keys.NULL, "1 " * 65, Keys.TAB)
        self.assertIn("at most 64 numbers are allowed", self.alert())
        self.find("#row").send_keys(Keys.CONTROL, "a", Keys.NULL, "1,5 2,5", Keys.TAB)
        self.assertEqual(self.alert(), "Decimals are written with a point: 0.1.")

    def test_the_outlier_of_a_short_row_is_its_last_number(self):
        self.open("#blocks&row=1 2 3&outlier=10")
        self.assertIn("1024 times as large, 3072", self.text())
        self.assertIn("Of the 2 neighbours in the outlier's block 2 become 0", self.find(".answer").text)
        self.assertEqual(len(self.all("svg rect.outlier")), 1)
        self.open("#blocks&place=40&row=1 2")
        self.assertIn("Of the 1 neighbours in the outlier's block 0 become 0; together they are off by 0 %", self.text())

    def test_what_has_no_neighbours_or_broken_ones(self):
        self.open("#blocks&row=7")
        self.assertIn("The outlier has no neighbours in its block.", self.find(".answer").text)
        self.open("#blocks&row=1 2 0 nan&place=0")
        self.assertIn("Of the 3 neighbours in the outlier's block 2 are no longer numbers: a NaN", self.find(".answer").text)
        self.assertIn("2 / 3", self.cells(self.all("tbody tr")[0]))
        self.open("#blocks&row=1 0 0&place=0")
        self.assertIn("0 become 0; together they are off by 0 %", self.find(".answer").text)
