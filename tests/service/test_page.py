"""The page in a real browser: its flows, its keyboard, its widths, and what it must never do."""

import threading
import time
from dataclasses import replace
from urllib.parse import quote

import polars as pl
import pytest
import uvicorn

from ltocf.recommend.recommender import Recommender
from ltocf.runs.records import EpochRecord
from ltocf.service.app import create_app
from ltocf.service.events import Event, EventStore
from ltocf.service.guard import Rules
from ltocf.service.served import Served

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
EVIL = "<img src=x onerror=\"document.title='owned'\">"
EPOCHS = [EpochRecord(n, 1 / n, 0.1, [], {"recall@20": n / 10}) for n in (1, 2, 3)]
VIEWS = ["#/try", "#/people", "#/people/{user}", "#/items", "#/items/{item}", "#/model"]


@pytest.fixture(scope="module")
def town(hamlet):
    """The small town, in which one place has a name that is markup."""
    names = hamlet.item_names
    evil = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(EVIL)).otherwise(pl.col("name"))
    dataset = replace(hamlet, item_names=names.with_columns(evil.alias("name")))
    return Recommender("ltocf", dim=8, epochs=3, negatives=4, protocol="validation").fit(dataset)


class Site:
    def __init__(self, recommender, store, **options):
        self.app = create_app(Served(recommender, epochs=EPOCHS), store, **options)
        config = uvicorn.Config(self.app, port=0, log_level="warning", ws="none")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.02)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"
        train = recommender.dataset.split.train
        self.user, self.item = train.user_ids.ids[3], train.item_ids.ids[7]
        self.name = recommender.dataset.item_names["name"][7]

    def stop(self):
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture(scope="module")
def site(town, tmp_path_factory):
    store = EventStore.open(tmp_path_factory.mktemp("page") / "events.db")
    running = Site(town, store)
    yield running
    running.stop()
    store.close()


@pytest.fixture
def open_page(browser, site):
    """`open_page("#/model", width=360)`; at the end nothing was wrong in any console."""
    contexts, complaints = [], []

    def go(view="", *, width=1200, scheme="light", url=None):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda m: complaints.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.goto(f"{url or site.url}/{view}")
        return page

    yield go
    for context in contexts:
        context.close()
    assert complaints == []


def search(page, label, text):
    """For something that only one thing is called."""
    page.get_by_label(label).fill(text)
    expect(page.locator(".results li")).to_have_count(1)


def titles(page):
    return page.locator(".entry a.name").all_inner_texts()


def test_try_it_the_list_follows_each_click_with_its_reasons(open_page, site):
    page = open_page()
    page.wait_for_selector("text=Popular now")
    before = titles(page)
    search(page, "Find something", site.name)
    page.locator(".result").click()
    page.wait_for_selector("text=For you")
    page.wait_for_selector(".reasons")
    first = titles(page)
    assert len(first) == 10 and first != before
    picked = page.locator(".chip").inner_text().removesuffix("×").strip()
    assert page.locator(".entry").first.locator("dt").all_inner_texts() == [picked]
    page.locator(".entry .add").first.click()
    expect(page.locator(".chip")).to_have_count(2)
    expect(page.locator(".entry a.name").first).not_to_have_text(first[0])
    page.locator(".chip").first.click()
    page.locator(".chip").first.click()
    page.wait_for_selector("text=Popular now")


def test_bars_are_as_long_as_their_shares(open_page):
    page = open_page()
    page.locator(".result").nth(1).click()
    expect(page.locator(".chip")).to_have_count(1)
    page.locator(".result").nth(2).click()
    expect(page.locator(".entry").first.locator("dt")).to_have_count(2)
    numbers = page.locator(".entry").first.locator(".number").all_inner_texts()
    shares = [abs(float(text.replace("−", "-"))) for text in numbers]
    widths = [
        bar.bounding_box()["width"] for bar in page.locator(".entry").first.locator(".fill").all()
    ]
    for share, width in zip(shares, widths, strict=True):
        expected = max(0.015, share / max(shares)) * max(widths)
        assert width == pytest.approx(expected, rel=0.05, abs=1)


def test_a_person_gets_a_new_list_from_an_event(open_page, site):
    page = open_page(f"#/people/{site.user}")
    page.wait_for_selector("text=Similar people")
    page.wait_for_selector(".entry")
    first, history = titles(page)[0], page.locator("#history-title ~ p").inner_text()
    page.locator(".entry .add").first.click()
    expect(page.locator(".entry a.name").first).not_to_have_text(first)
    expect(page.locator("#history-title ~ p")).not_to_have_text(history)
    assert page.locator("#history-title ~ ul a").first.inner_text() == first


def test_people_are_found_and_lead_to_each_other(open_page, site):
    page = open_page("#/people")
    search(page, "Find a person", site.user)
    page.locator(".results a").first.click()
    page.wait_for_selector(f"h1:text-is('{site.user}')")
    page.locator(".scored a").first.click()
    expect(page.locator("h1")).not_to_have_text(site.user)


def test_an_item_shows_what_is_similar_and_can_be_picked(open_page, site):
    page = open_page(f"#/items/{site.item}")
    page.wait_for_selector("text=Similar items")
    assert page.locator(".scored li").count() == 12
    name = page.locator("h1").inner_text()
    page.get_by_role("button", name="I like it").click()
    page.wait_for_selector(".chip")
    assert name in page.locator(".chip").inner_text()


def test_the_model_shows_its_training_and_its_life(open_page):
    page = open_page("#/model")
    page.wait_for_selector("text=Learned times")
    text = page.locator("main").inner_text()
    for words in ("Training loss", "Recall@20 while training", "Response", "live hit rate@20"):
        assert words in text
    assert "null" not in text and "undefined" not in text and "NaN" not in text


def test_the_keyboard_is_enough(open_page, site):
    page = open_page()
    page.wait_for_selector(".result")
    page.keyboard.press("/")
    page.keyboard.type(site.name)
    expect(page.locator(".results li")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".chip")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.id") == "search-find-something"
    page.keyboard.press("Shift+Tab")  # back to the one thing that was picked
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Nothing yet")


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_wider_than_a_small_telephone(open_page, site, view):
    page = open_page(view.format(user=site.user, item=site.item), width=360)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(open_page, site, view, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = open_page(view.format(user=site.user, item=site.item), scheme=scheme)
    page.wait_for_load_state("networkidle")
    # The page's own policy lets no other script in, so axe comes as the browser's own code.
    found = axe.Axe().run(page).response["violations"]
    serious = [
        (one["id"], one["nodes"][0]["html"])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_a_name_that_is_markup_is_shown_as_text(open_page, site):
    page = open_page()
    search(page, "Find something", "<img")
    page.locator(".result").first.click()
    page.wait_for_selector(".reasons")
    assert EVIL in page.locator(".chip").inner_text()
    site.app.state.live.store.add([[Event(EVIL, site.item, 0)]])
    page.goto(f"{site.url}/#/people/{quote(EVIL)}")
    page.wait_for_selector("h1:has-text('<img')")
    assert page.locator("main img").count() == 0
    assert page.title() == f"{EVIL} – ltocf"


def test_outside_loopback_the_page_asks_for_the_token(browser, town, tmp_path):
    store = EventStore.open(tmp_path / "events.db")
    guarded = Site(town, store, rules=Rules(token="secret", read_needs_token=True))
    page = browser.new_page()
    page.goto(guarded.url)
    page.get_by_label("asks for its token").fill("wrong")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector("text=That was not the token")
    page.get_by_label("asks for its token").fill("secret")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector("text=Popular now")
    page.close()
    guarded.stop()
    store.close()
