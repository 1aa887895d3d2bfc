"""What tests of the page share: one headless Chromium, and a reader's hands."""

import pathlib
import unittest

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError as error:
    print(f"skipped: {error}; Debian: python3-selenium chromium-driver")
    raise SystemExit(3) from None

TEXTS = pathlib.Path(__file__).parents[3] / "tools/page/texts"


def start():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--lang=en"):
        options.add_argument(argument)
    try:
        return webdriver.Chrome(options=options)
    except WebDriverException as error:
        print(f"skipped: {str(error).splitlines()[0]}; Debian: chromium-driver")
        raise SystemExit(3) from None


class Page(unittest.TestCase):
    page = screenshots = browser = None  # page_test.py sets them

    def open(self, state="", width=1300):
        self.browser.get("about:blank")  # else another state of the same page is no navigation
        self.browser.set_window_size(width, 1400)
        self.browser.get(self.page.as_uri() + state)
        WebDriverWait(self.browser, 20).until(lambda b: b.execute_script("return document.documentElement.dataset.ready"))
        WebDriverWait(self.browser, 60).until(lambda _: not self.all("[data-loading]"))
        self.wait(lambda: not self.all("#chapter > [role=status]"))  # what is loaded when it is wanted

    def chapters(self):
        self.open()
        return [link.get_attribute("href").split("#")[1].split("&")[0] for link in self.all("nav a")]

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def text(self):
        return self.find("body").text

    def enter(self, value):
        self.find("#value").send_keys(Keys.CONTROL, "a", Keys.NULL, value, Keys.ENTER)

    def alert(self):
        return self.find("[role=alert]").text

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def press(self, text, within="main"):
        next(button for button in self.all(f"{within} button") if button.text == text).click()

    def choose(self, selector, value):
        Select(self.find(selector)).select_by_value(value)

    def wait(self, condition):
        WebDriverWait(self.browser, 10).until(lambda _: condition())
