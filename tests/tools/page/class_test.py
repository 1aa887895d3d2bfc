"""What a class needs of the page: contrast, focus, text alternatives, other languages and scripts, print, and a sentence where
something is missing."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile

from case import TEXTS, By, Keys, Page
from selenium.webdriver.common.action_chains import ActionChains

TOOLS = TEXTS.parent

# Of each visible text its contrast with what is behind it, where WCAG 2.2 AA asks for more (1.4.3).
POOR_CONTRAST = """
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parsed = (color) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92
    : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) =>
    q - p); return (x + 0.05) / (y + 0.05); };
  const behind = (at) => {
    for (; at; at = at.parentElement) { const color = parsed(getComputedStyle(at).backgroundColor); if (color[3] === 255) return color; }
    return parsed("white");
  };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement, style = getComputedStyle(parent), text = walker.currentNode.data.trim();
    if (!text || !parent.checkVisibility() || parent.closest("script, style, noscript")) continue;
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
    const contrast = ratio(parsed(parent.closest("svg") ? style.fill : style.color), behind(parent));
    if (contrast < (isLarge ? 3 : 4.5)) found.push(`${text.slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  const ink = parsed(getComputedStyle(document.body).color), style = getComputedStyle(document.documentElement);
  for (const name of ["sign", "exponent", "significand", "guard", "round", "sticky"])  // behind texts of drawings
    if (ratio(ink, parsed(style.getPropertyValue(`--${name}`))) < 4.5) found.push(`ink on ${name}`);
  for (const name of ["edge", "link", "wrong", "right"])  // 1.4.11
    for (const ground of ["paper", "box"])
      if (ratio(parsed(style.getPropertyValue(`--${name}`)),
        parsed(style.getPropertyValue(`--${ground}`))) < 3) found.push(`${name} on ${ground}`);
  return found;"""

FOCUSABLE = "a[href], summary, button:not(:disabled), input, select, textarea, [tabindex]"


class Class(Page):
    def media(self, media="", **features):
        self.browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {
                "media": media,
                "features": [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()],
            },
        )

    def tearDown(self):
        self.media()

    def states(self):
        return self.chapters() + [
            "number&value=1e9",
            "number&value=abc",
            "operation&value=fma(245.375, 19.953125, 28688)&draws=4096",
            "sum&terms=own",
            "gradients&scale=40",
            "training&network=mlp&course=0:static.30&step=3",
            "quiz&answers=0123012301",
            "later&zoom=1",
        ]

    def test_contrast(self):
        for scheme in ("light", "dark"):
            self.media(prefers_color_scheme=scheme)
            for state in self.states():
                self.open(f"#{state}")
                self.assertEqual(self.browser.execute_script(POOR_CONTRAST), [], f"{state}, {scheme}")

    def test_the_keyboard_reaches_everything_in_the_order_of_reading(self):
        for chapter in self.chapters():
            self.open(f"#{chapter}")
            wanted = self.browser.execute_script("return document.querySelectorAll(arguments[0]).length", FOCUSABLE)
            order = []
            for _ in range(wanted):
                ActionChains(self.browser).send_keys(Keys.TAB).perform()  # which a file's field takes, too
                order.append(
                    self.browser.execute_script(
                        "return [...document.querySelectorAll(arguments[0])].indexOf(document.activeElement)", FOCUSABLE
                    )
                )
            self.assertEqual(order, list(range(wanted)), chapter)
            outline = self.browser.execute_script(
                "const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth"
            )
            self.assertEqual(outline, "solid3px", chapter)

    def test_every_figure_and_control_has_a_text(self):
        for state in self.states():
            self.open(f"#{state}")
            nameless = self.browser.execute_script(
                """
              const named = (each) => each.getAttribute("aria-label") || each.textContent.trim() ||
                each.closest("label")?.textContent.trim();
              const drawings = [...document.querySelectorAll("svg")].filter((svg) =>
                !svg.parentElement.closest("svg, [aria-hidden=true]") && !svg.matches("[aria-hidden=true]"));
              return [...drawings.filter((svg) => svg.getAttribute("role") !== "img" || !svg.getAttribute("aria-label")),
                ...[...document.querySelectorAll("button, input, select, textarea, a, [tabindex]")].filter((each) =>
                  !named(each)),
                ...document.querySelectorAll("canvas:not([aria-label]), img:not([alt])")].map((each) => each.outerHTML.slice(0,
                  100))"""
            )
            self.assertEqual(nameless, [], state)
            levels = [int(heading.tag_name[1]) for heading in self.all("h1, h2, h3")]
            self.assertEqual(levels[:2], [1, 2])

    def test_print_loses_nothing(self):
        for state in self.states():
            self.media()
            self.open(f"#{state}")
            seen = [line for line in self.find("main").text.split("\n")]
            self.media("print")
            self.browser.set_window_size(718, 1000)  # A4 less its margins
            printed = self.find("main").text.split("\n")
            self.assertEqual([line for line in seen if line not in printed], [], state)
            self.assertIn("halflab.html#", printed[-1])
            cut = self.browser.execute_script(
                """
              return [...document.querySelectorAll("main *")].filter((each) => !each.closest("svg, select, textarea, input") &&
                each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.outerHTML.slice(0, 100))"""
            )
            self.assertEqual(cut, [], state)

    def test_no_webassembly_and_no_javascript(self):
        script = self.browser.execute_cdp_cmd(
            "Page.addScriptToEvaluateOnNewDocument", {"source": "delete globalThis.WebAssembly"}
        )
        try:
            self.browser.get("about:blank")
            self.browser.get(self.page.as_uri())
            self.wait(lambda: self.all("[role=alert]"))
            self.assertEqual(self.alert(), "This page computes with WebAssembly, which this browser does not have.")
        finally:
            self.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.browser.get("about:blank")
            self.browser.get(self.page.as_uri())
            self.assertIn("This page computes, and so needs JavaScript.", self.text())
        finally:
            self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


class Languages(Class):
    """With all texts in brackets and in Chinese characters, as a language that is not shipped would have them."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        copy = pathlib.Path(cls.folder.name) / "tools/page"
        shutil.copytree(TOOLS, copy)
        (copy.parents[1] / "experiments").symlink_to(TOOLS.parents[1] / "experiments")
        texts = json.loads((TEXTS / "en.json").read_text(encoding="utf-8"))
        for key, text in texts.items():
            parts = re.split(r"(\{\w+\})", text)
            texts[key] = (
                "【"
                + "".join(part if part.startswith("{") else "半精度浮動小数点"[: len(part)] * (len(part) // 8 + 1) for part in parts)
                + "】"
            )
        for language in TEXTS.glob("*.json"):
            (copy / "texts" / language.name).write_text(json.dumps(texts), encoding="utf-8")
        cls.real, cls.page = cls.page, pathlib.Path(cls.folder.name) / "pseudo.html"
        subprocess.run([copy / "build.sh", cls.real.parent, cls.page], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.page = cls.real
        cls.folder.cleanup()

    def known_words(self):
        """Names of formats, functions and processors, which are the library's in every language."""
        self.open()
        formats = [option.get_attribute("textContent") for option in self.all("#format option")]
        return re.findall(r"[A-Za-z]{2,}", " ".join(formats)) + [
            "sqrt",
            "exp",
            "fma",
            "inf",
            "nan",
            "halflab",
            "html",
            "mxfp",
            "nvfp",
            "volta",
            "turing",
            "ampere",
            "ada",
            "hopper",
            "blackwell",
        ]

    def test_contrast(self):
        pass

    test_the_keyboard_reaches_everything_in_the_order_of_reading = test_contrast
    test_every_figure_and_control_has_a_text = test_contrast
    test_print_loses_nothing = test_no_webassembly_and_no_javascript = test_contrast

    def test_no_text_comes_from_the_code(self):
        known = self.known_words()
        for state in self.chapters() + [
            "operation&value=fma(245.375, 19.953125, 28688)",
            "quiz&answers=0123012301",
            "later&zoom=1",
        ]:
            self.open(f"#{state}")
            texts = self.browser.execute_script(
                """
              const found = [document.title], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
              while (walker.nextNode()) if (!walker.currentNode.parentElement.closest("script, style, textarea")) found.push(walker.currentNode.data);
              for (const name of ["aria-label", "aria-valuetext", "title", "alt", "placeholder"])
                for (const each of document.querySelectorAll(`[${name}]`)) found.push(each.getAttribute(name));
              return found"""
            )
            self.assertGreater(len(texts), 20, state)
            for text in texts:
                words = re.findall(r"(?<![#&=%\w])[A-Za-z]{2,}", re.sub(r"【[^】]*】|#\S+|0x[0-9a-f]+", "", text))
                self.assertEqual([word for word in words if word not in known], [], f"{state}: {text!r}")

    def test_chinese_characters_wrap(self):
        for chapter in self.chapters():
            for width in (360, 1300):
                self.open(f"#{chapter}", width)
                inside, shown = self.browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
                self.assertLessEqual(shown, inside, f"{chapter} at {width}")
                self.browser.save_screenshot(str(self.screenshots / f"pseudo_{chapter}_{width}.png"))
