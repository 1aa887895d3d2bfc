"""How fast the page is in a headless Chromium, medians of 50: speed.py PAGE.html [NATIVE_TRAINING] [LIMIT]. Exit code 1: one of
them takes more than LIMIT times as long as it may on two idle cores (default 1). Exit code 3: skipped."""

import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

from case import WebDriverWait, start

REPEATS = 50


def median(times):
    return sorted(times)[len(times) // 2]


def open_chapter(browser, page, state, selector):
    browser.get("about:blank")
    browser.get(page.as_uri() + state)
    WebDriverWait(browser, 60).until(lambda b: b.execute_script("return Boolean(document.querySelector(arguments[0]))", selector))


def first_answer(browser, page):
    times = []
    for _ in range(REPEATS):
        open_chapter(browser, page, "", "[data-ready] main")
        times.append(browser.execute_script("return performance.getEntriesByName('answered')[0].startTime"))
    return median(times)


def slider_move(browser, page):
    """Script and layout of a move, over a histogram of 10^6 values of the reader's own."""
    open_chapter(browser, page, "#gradients", "#file")
    values = [2.0 ** (-40 + i % 37) * (1 + i % 1000 / 1000) for i in range(10**6)]
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,), }"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "million.npy"
        file.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<1000000f", *values))
        browser.find_element("id", "file").send_keys(str(file))
        WebDriverWait(browser, 60).until(lambda b: "million.npy" in b.find_element("tag name", "figcaption").text)
    return median(browser.execute_script("""
        const slider = document.querySelector("#scale"), times = [];
        for (let move = 0; move < arguments[0]; ++move) {
          const begin = performance.now();
          slider.value = move % 40;
          slider.dispatchEvent(new Event("input", { bubbles: true }));
          document.body.offsetHeight;
          document.querySelector("svg path.bars").getBBox();
          times.push(performance.now() - begin);
        }
        return times""", REPEATS))


def training_step(browser, page):
    """One step of the small autoencoder in FP32 and one in FP16."""
    open_chapter(browser, page, f"#training&step={REPEATS + 10}", "#play")
    WebDriverWait(browser, 120).until(lambda b: f"After {REPEATS + 10} steps" in b.find_element("tag name", "main").text)
    script = "return performance.getEntriesByName(arguments[0]).map((step) => step.duration)"
    return sum(median(browser.execute_script(script, f"{name} step")[10:]) for name in ("FP32", "FP16"))


def native_step(program):
    def seconds(steps):
        courses = [f'["autoencoder","{policy}","none",0,{steps},{{}}]' for policy in ("fp32", "amp")]
        begin = time.perf_counter()
        subprocess.run([program, *courses], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begin

    return 1000 * median([(seconds(REPEATS + 1) - seconds(1)) / REPEATS for _ in range(5)])


def main():
    page = pathlib.Path(sys.argv[1]).resolve()
    limit = next((float(argument) for argument in sys.argv[2:] if re.fullmatch(r"[\d.]+", argument)), 1)
    native = next((argument for argument in sys.argv[2:] if not re.fullmatch(r"[\d.]+", argument)), None)
    browser = start()
    try:
        browser.set_window_size(1300, 1400)
        rows = [("from navigation to the first answer", first_answer(browser, page), 300),
                ("script and layout of one move of the slider, 10^6 values", slider_move(browser, page), 8),
                ("one step of the autoencoder in FP32 and one in FP16", training_step(browser, page), 15)]
    finally:
        browser.quit()
    for name, found, allowed in rows:
        print(f"{name}: {found:.1f} ms, median of {REPEATS}; at most {allowed} on two idle cores")
    if native:
        print(f"the same steps natively, on one thread: {native_step(native):.2f} ms")
    return 0 if all(found <= limit * allowed for _, found, allowed in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
