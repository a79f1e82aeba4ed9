"""The page in a real browser: streaming, Markdown, stop, edit, retry, settings, themes, phone width, keyboard, safety.

    python page.py http://127.0.0.1:8080 FOLDER

needs the package playwright and Debian's chromium; screenshots go to FOLDER. `cargo xtask clients` runs this too, where
there is a Chromium.
"""

import pathlib
import sys

from playwright.sync_api import sync_playwright

BASE, FOLDER = sys.argv[1].rstrip("/"), pathlib.Path(sys.argv[2])
FOLDER.mkdir(parents=True, exist_ok=True)

# An answer that no small model gives by itself, written where an answer of a model would be.
SHOWN = """Here is **how** it works, with `code` and a [link](https://example.org):

1. First, *sort* the list.
2. Then take the middle.

```python
def median(values):
    # An odd number of values has one in the middle.
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
```

| n | median |
|---|--------|
| 3 | 2.0    |
| 5 | 3.5    |

> A median does not care how far away the others are.
"""
EVIL = ("<img src=x onerror=\"window.broken=1\"> <script>window.broken=1</script> [a](javascript:window.broken=1) "
        "**<b onmouseover=alert(1)>bold</b>**\n\n```html\n<script>window.broken=1</script>\n```\n\n"
        "[x](https://example.org/\"onmouseover=\"window.broken=1)")


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def idle(page):
    page.wait_for_selector("#send:not([hidden])", state="attached", timeout=60_000)


def ask(page, text):
    page.fill("#question", text)
    page.press("#question", "Enter")


def run(page, outside):
    page.goto(BASE)
    page.wait_for_function("document.querySelector('#model').options.length > 0")
    expect(page.evaluate("document.activeElement.id") == "question", "one can type at once")
    page.screenshot(path=FOLDER / "empty.png")

    page.click("#open-settings")
    page.fill("#temperature", "0")
    page.fill("#max_tokens", "60")
    page.fill("#system", "You are a helpful assistant.")
    page.click("#settings .primary")
    ask(page, "What is the capital of France?")
    page.wait_for_selector(".message.assistant .stats", timeout=60_000)
    answer = page.text_content(".message.assistant .body")
    expect("Paris" in answer, answer)
    expect("tokens" in page.text_content(".message.assistant .stats"), "the speed is told")
    expect("of 4096 tokens" in page.text_content("#context-text") or " of " in page.text_content("#context-text"), "context")

    # Retry gives the same at temperature 0; an edited question replaces the conversation after it.
    page.click(".message.assistant button:has-text('Retry')")
    idle(page)
    page.wait_for_selector(".message.assistant .stats", timeout=60_000)
    expect(page.text_content(".message.assistant .body") == answer, "the same again")
    page.hover(".message.user")
    page.click(".message.user button:has-text('Edit')")
    page.fill(".message.user textarea", "What is the capital of Italy?")
    page.press(".message.user textarea", "Enter")
    idle(page)
    page.wait_for_selector(".message.assistant .stats", timeout=60_000)
    expect(page.locator(".message").count() == 2, "one question, one answer")
    expect("Rom" in page.text_content(".message.assistant .body"), page.text_content(".message.assistant .body"))

    # Escape stops an answer; what came stays.
    page.click("#open-settings")
    page.fill("#max_tokens", "2000")
    page.click("#settings .primary")
    ask(page, "Tell me a very long story about the sea.")
    page.wait_for_selector(".message.assistant:last-child .body p", timeout=60_000)
    page.keyboard.press("Escape")
    idle(page)
    expect("stopped" in page.text_content(".message.assistant:last-child .stats"), "it says that it was stopped")

    # Conversations outlive the page.
    page.reload()
    page.wait_for_selector("#conversations li")
    page.click("#conversations .title")
    expect(page.locator(".message").count() == 4, "the conversation is back")

    # What a model writes is Markdown, and never HTML.
    for text, name in [(EVIL, "evil"), (SHOWN, "markdown")]:
        page.evaluate(
            """text => localStorage.setItem("akunu.conversations", JSON.stringify([{ id: "x", title: "How does a median work?",
                 tokens: 214, messages: [{ role: "user", content: "How does a median work?" },
                 { role: "assistant", content: text, model: "smollm2", stats: "96 tokens · 61.2 a second · first after 0.12 s" }] }]))""",
            text)
        page.reload()
        page.wait_for_selector("#conversations li")
        page.click("#conversations .title")
        page.wait_for_timeout(200)
        if name == "evil":
            expect(page.evaluate("window.broken === undefined"), "no script of a model runs")
            expect(page.locator(".body img, .body script, .body b").count() == 0, "no element of a model's")
            addresses = page.eval_on_selector_all(".body a", "all => all.map(a => a.href)")
            expect(all(address.startswith("https://") for address in addresses), addresses)
        else:
            for selector in ["strong", "em", "ol li", "table td", "blockquote", "pre .keyword", "a[rel~=noopener]"]:
                expect(page.locator(f".body {selector}").count() > 0, selector)
            page.wait_for_function("document.querySelector('#model').options.length > 0")
            page.screenshot(path=FOLDER / "light.png")
            page.click("#theme")
            page.mouse.move(0, 0)
            page.screenshot(path=FOLDER / "dark.png")
            page.set_viewport_size({"width": 390, "height": 780})
            page.wait_for_timeout(300)
            page.screenshot(path=FOLDER / "phone.png")
            wide = page.evaluate("document.documentElement.scrollWidth")
            expect(wide <= 390, f"{wide} pixels on a phone")
            page.click("#open-sidebar")
            page.wait_for_timeout(300)
            page.screenshot(path=FOLDER / "phone-list.png")
            page.click("#close-sidebar")
            page.set_viewport_size({"width": 1200, "height": 800})
            page.click("#open-settings")
            page.screenshot(path=FOLDER / "settings.png")
            page.keyboard.press("Escape")

    # Everything that can be pressed has a name.
    unnamed = page.eval_on_selector_all(
        "button, input, select, textarea",
        "all => all.filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).map(e => e.id)")
    expect(not unnamed, f"without a name: {unnamed}")
    expect(not outside, f"asked elsewhere: {outside}")


with sync_playwright() as driver:
    browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    wrong, outside = [], []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: outside.append(request.url) if not request.url.startswith(BASE) else None)
    page.on("dialog", lambda dialog: dialog.accept())
    run(page, outside)
    browser.close()
    expect(not wrong, f"the browser complained: {wrong}")
print("the page works in Chromium")
