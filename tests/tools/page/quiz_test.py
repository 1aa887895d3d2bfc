from case import Page


class Quiz(Page):
    def questions(self):
        return self.all(".quiz fieldset")

    def test_every_right_answer_is_right_and_every_wrong_one_says_why(self):
        for seed in range(1, 6):
            self.open(f"#quiz&seed={seed}")
            right = 0
            for place in range(10):
                self.questions()[place].find_elements("css selector", "button")[0].click()
                verdict = self.questions()[place].find_element("css selector", ".verdict").text
                right += verdict.startswith("Right.")
                self.assertRegex(verdict, r"^(Right\.|No, it is .+\.) See why$")
            self.assertIn(f"{right} of 10 answers are right", self.text())
            self.assertEqual(len(self.all(".quiz .right")), 10)

    def test_the_state_that_shows_why_says_the_right_answer(self):
        self.open("#quiz&seed=3")
        links = []
        for place in range(10):
            question = self.questions()[place]
            question.find_element("css selector", "button").click()
            question = self.questions()[place]
            links.append(
                (
                    question.find_element("css selector", "a").get_attribute("href"),
                    question.find_element("css selector", ".right").text,
                )
            )
        for link, right in links:
            self.open(link[link.index("#") :])
            self.assertFalse(self.all("[role=alert], [role=status]"), link)
            if not right.startswith(("2^", "neither", "keins")) and "+" not in right:
                self.assertIn(right, self.text().replace(",", ""), link)

    def test_a_right_answer(self):
        self.open("#quiz&seed=1")
        for choice in range(4):
            self.open(f"#quiz&seed=1&answers={choice}---------")
            if self.all(".verdict")[0].text.startswith("Right."):
                return self.assertIn("1 of 1 answers are right", self.text())
        self.fail("no choice is right")

    def test_new_questions(self):
        self.open("#quiz")
        before = [question.text for question in self.questions()]
        self.press("Ten new questions")
        after = [question.text for question in self.questions()]
        self.assertGreater(sum(a != b for a, b in zip(before, after)), 7)
        self.assertIn("seed=2", self.browser.current_url)
