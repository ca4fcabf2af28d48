"""Record README's picture: the live page while it translates one sentence, as an animated PNG.

It needs Chromium and `pip install playwright`. After `snakemake --workflow-profile demo live`:

python docs/record_live_page.py results/demo/live.html docs/images/live.png
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

DIRECTION, SENTENCE = "en-de", "We are going home."
FIRST, STEP, LAST = 2000, 600, 4000  # milliseconds of the first picture, of each step, of the last
# The explanations are for those who use the page.
STYLE = """
header, footer, form .row:first-child, p.dim, #status { display: none !important }
h2 { margin-top: 1rem }
main { padding: 0.5rem }
"""


def record(page: Path, out: Path) -> None:
    """Write the recording of a live page."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1120, "height": 800}, color_scheme="light", reduced_motion="reduce")
        tab.goto(page.resolve().as_uri())
        tab.add_style_tag(content=STYLE)
        tab.evaluate("direction => { document.getElementById('direction').value = direction }", DIRECTION)
        tab.fill("#source", SENTENCE)
        tab.evaluate("translate(); document.activeElement.blur()")
        tab.wait_for_function("shown.done")
        pictures = [picture(tab, step) for step in range(int(tab.get_attribute("#step", "max")) + 1)]
        browser.close()
    first, *others = pictures
    durations = [FIRST, *[STEP] * (len(others) - 1), LAST]
    first.save(out, "PNG", save_all=True, append_images=others, duration=durations, loop=0, optimize=True)


def picture(tab: Page, step: int) -> Image.Image:
    """The page at a step of denoising."""
    tab.evaluate("step => show(step)", step)
    return Image.open(io.BytesIO(tab.locator("main").screenshot())).convert("RGB")


if __name__ == "__main__":
    record(Path(sys.argv[1]), Path(sys.argv[2]))
