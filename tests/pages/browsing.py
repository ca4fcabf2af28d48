"""Pages in a browser without a network."""

import contextlib


@contextlib.contextmanager
def opening(browser, path, **options):
    """A page, opened from its file; requests and errors of it are failures. ``options`` are those of the context."""
    size = {"width": 1280, "height": 900}
    context = browser.new_context(accept_downloads=True, offline=True, viewport=size, **options)
    tab, troubles = context.new_page(), []
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.on("request", lambda request: troubles.append(request.url) if request.url[:4] == "http" else None)
    tab.goto(path.as_uri())
    yield tab
    context.close()
    assert troubles == []


def cut_off(tab, *widths):
    """The widths of a window in which a page is wider than it; 640 pixels are also what 1280 are at a zoom of 200 %."""
    found = []
    for width in widths:
        tab.set_viewport_size({"width": width, "height": 700})
        if tab.evaluate("document.documentElement.scrollWidth") > width:
            found.append(width)
    return found


def unnamed(tab):
    """How many controls a screen reader has no name for."""
    return tab.evaluate(
        "[...document.querySelectorAll('button, input, select, textarea')].filter("
        "one => !(one.labels?.length || one.textContent || one.getAttribute('aria-label'))).length"
    )
