"""The page in a real browser: its flows, its keyboard, its widths, and what it must never do."""

import threading
import time
from dataclasses import replace
from urllib.parse import quote

import polars as pl
import pytest
import uvicorn

from ltocf.recommend.recommender import Recommender
from ltocf.service.access.guard import Rules
from ltocf.service.app import create_app
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import Event, EventStore
from ltocf.training.records import EpochRecord

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
PICK = ".chip[data-group=chips]"  # the others filter by category
EVIL = "<img src=x onerror=\"document.title='owned'\">"
EPOCHS = [EpochRecord(n, 1 / n, 0.1, [], {"recall@20": n / 10}) for n in (1, 2, 3)]
VIEWS = [
    "#/try", "#/people", "#/people/{user}", "#/items", "#/items/{item}", "#/live", "#/model",
]  # fmt: skip


@pytest.fixture(scope="module")
def town(hamlet):
    """The small town, in which one place has a name that is markup."""
    names = hamlet.item_names
    evil = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(EVIL)).otherwise(pl.col("name"))
    dataset = replace(hamlet, item_names=names.with_columns(evil.alias("name")))
    return Recommender("ltocf", dim=8, epochs=3, negatives=4, protocol="validation").fit(dataset)


class Site:
    def __init__(self, recommender, store, **options):
        self.app = create_app(ServedModel(recommender, epochs=EPOCHS), store, **options)
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
    picked = page.locator(".chip-name").inner_text().strip()
    assert page.locator(".entry").first.locator(".because").all_inner_texts() == [picked]
    page.locator(".entry .add").first.click()
    expect(page.locator(PICK)).to_have_count(2)
    expect(page.locator(".entry a.name").first).not_to_have_text(first[0])
    page.locator(PICK).first.click()
    page.locator(PICK).first.click()
    page.wait_for_selector("text=Popular now")


def test_one_bar_holds_every_share_and_they_add_up_to_all_of_the_score(open_page):
    page = open_page()
    page.locator(".result").nth(1).click()
    expect(page.locator(PICK)).to_have_count(1)
    page.locator(".result").nth(2).click()
    first = page.locator(".entry").first
    expect(first.locator(".because")).to_have_count(2)
    texts = first.locator(".share").all_inner_texts()
    shares = [abs(int(text.replace("−", "-").removesuffix(" %"))) for text in texts]
    assert sum(shares) == 100
    whole = first.locator(".stack").bounding_box()["width"]
    for share, part in zip(shares, first.locator(".part").all(), strict=True):
        assert part.bounding_box()["width"] == pytest.approx(whole * share / 100, abs=6)
    assert first.locator(".total").inner_text().startswith("score ")


def test_a_pick_is_confirmed_can_be_undone_and_survives_a_reload(open_page):
    page = open_page()
    page.locator(".result").nth(1).click()
    expect(page.locator(".toast")).to_contain_text("Picked")
    expect(page.locator(".result[aria-pressed=true]")).to_have_count(1)
    page.wait_for_selector(".stack")
    page.reload()
    expect(page.locator(PICK)).to_have_count(1)
    page.wait_for_selector(".entry .add")
    page.locator(".entry .add").first.click()
    expect(page.locator(PICK)).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(PICK)).to_have_count(1)


def test_the_focus_stays_in_the_list_after_a_pick(open_page):
    page = open_page()
    page.wait_for_selector(".entry .add")
    page.locator(".entry .add").nth(2).focus()
    page.keyboard.press("Enter")
    expect(page.locator(PICK)).to_have_count(1)
    page.wait_for_selector(".reasons .stack")
    assert page.evaluate("document.activeElement.classList.contains('add')")


def test_words_are_found_in_any_order_and_enter_picks_the_first(open_page, site):
    page = open_page()
    page.wait_for_selector(".result")
    words = " ".join(reversed(site.name.lower().split()))
    page.get_by_label("Find something").fill(words)
    page.keyboard.press("Enter")
    expect(page.locator(PICK)).to_contain_text(site.name)


def test_what_is_not_for_me_leaves_the_list_and_can_come_back(open_page):
    page = open_page()
    page.wait_for_selector(".entry .refuse")
    first = titles(page)[0]
    page.locator(".entry .refuse").first.click()
    expect(page.locator(".entry a.name").first).not_to_have_text(first)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".entry a.name").first).to_have_text(first)


@pytest.mark.parametrize(
    "address", ["#/people/100%", "#/constructor", "#/items/%E0%A4%A", "#//", "#"]
)
def test_no_address_leaves_the_page_blank(browser, site, address):
    page = browser.new_page()
    page.goto(f"{site.url}/{address}")
    page.wait_for_selector("main .card, main .notice")
    assert page.locator("h1").inner_text()
    page.close()


@pytest.mark.parametrize("address", ["#/modell", "#/try-it", "#constructor", "#/<b>"])
def test_an_address_of_nothing_is_said_with_a_way_to_every_view(open_page, address):
    page = open_page(address)
    expect(page.locator("h1")).to_have_text("Nothing is here")
    expect(page.locator("main code")).to_have_text(address)
    assert page.locator("nav a[aria-current]").count() == 0
    page.locator("main").get_by_role("link", name="Model").click()
    expect(page.locator("h1")).to_have_text("The model")


def test_an_event_can_be_taken_back_where_it_was_recorded(open_page, site):
    page = open_page(f"#/people/{site.user}")
    page.wait_for_selector(".entry .add")
    before = page.locator("#history-title ~ p").inner_text()
    page.locator(".entry .add").nth(1).click()
    expect(page.locator("#history-title ~ p")).not_to_have_text(before)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#history-title ~ p")).to_have_text(before)


def test_somebody_new_has_an_empty_history_and_never_the_word_null(browser, site):
    page = browser.new_page()
    page.goto(f"{site.url}/#/people/nobody-yet")
    page.wait_for_selector("text=Popular now")
    page.wait_for_selector("text=Nothing yet")
    assert "null" not in page.locator("main").inner_text()
    page.close()


def test_the_feed_shows_events_as_they_come(open_page, site):
    page = open_page("#/live")
    page.wait_for_selector("#events-title")
    name = site.name
    site.app.state.live.store.add([[Event("zoe", site.item, 10**15)]])
    expect(page.locator(".feed").first.locator("li").first).to_contain_text("zoe took " + name)


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
    page.wait_for_selector(PICK)
    assert name in page.locator(PICK).inner_text()


def test_the_model_shows_its_training_and_its_life(open_page):
    page = open_page("#/model")
    page.wait_for_selector("text=Learned times")
    text = page.locator("main").inner_text()
    shop, research = text.split("For researchers")
    for words in ("last update", "live hit rate@20", "slowest lists (p99)", "Answers, by route"):
        assert words in shop
    for words in ("Training loss", "Recall@20 while training", "Response", "Learned times"):
        assert words in research
    assert "null" not in text and "undefined" not in text and "NaN" not in text


def test_the_keyboard_is_enough(open_page, site):
    page = open_page()
    page.wait_for_selector(".result")
    page.keyboard.press("/")
    page.keyboard.type(site.name)
    expect(page.locator(".results li")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(PICK)
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.id") == "search-find-something"
    page.keyboard.press("Shift+Tab")  # back to the one thing that was picked
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Nothing yet")


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_wider_than_a_small_telephone(open_page, site, view):
    page = open_page(view.format(user=site.user, item=site.item), width=360)
    page.wait_for_load_state("networkidle")
    page.wait_for_selector(".card")
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
    assert EVIL in page.locator(PICK).inner_text()
    site.app.state.live.store.add([[Event(EVIL, site.item, 0)]])
    page.goto(f"{site.url}/#/people/{quote(EVIL)}")
    page.wait_for_selector("h1:has-text('<img')")
    assert page.locator("main img").count() == 0
    assert page.title() == f"{EVIL} – ltocf"


def test_escape_closes_what_was_found_on_a_small_screen(open_page):
    page = open_page(width=360)
    page.get_by_label("Find something").fill("a")
    results = page.locator(".results")
    expect(results.locator(".result").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Find something")).to_have_value("")
    page.wait_for_timeout(400)  # in which a search for what was typed would have answered
    expect(results).to_be_hidden()


def test_bars_end_at_the_same_place_and_the_latest_pick_is_in_sight(open_page):
    page = open_page(width=360)
    for n in range(3):
        page.locator(".entry .add").nth(n).click()
        expect(page.locator(PICK)).to_have_count(n + 1)
    page.wait_for_selector(".stack")
    expect(page.locator(".entry .skeleton")).to_have_count(0)
    ends = page.locator(".stack").evaluate_all("all => all.map(one => one.offsetWidth)")
    assert len(ends) > 3 and len(set(ends)) == 1
    beyond = (
        "chip => chip.getBoundingClientRect().right - chip.parentNode.getBoundingClientRect().right"
    )
    assert page.locator(PICK).last.evaluate(beyond) <= 1


def test_an_unknown_item_is_said_with_a_way_on(browser, site):
    page = browser.new_page()
    page.goto(f"{site.url}/#/items/no-such-item")
    page.wait_for_selector("text=No item has this id")
    expect(page.get_by_label("Find an item")).to_be_visible()
    page.close()


def test_a_list_that_was_asked_for_again_at_once_is_one_line_of_the_feed(open_page, site):
    page = open_page(f"#/people/{site.user}")
    page.wait_for_selector(".stack")
    page.goto(f"{site.url}/#/live")
    lines = page.locator("#lists-title ~ ol li")
    expect(lines.first).to_contain_text("2 times")
    expect(lines.first).to_contain_text(site.user)


def test_what_needs_a_key_asks_for_it_and_is_then_done(browser, town, tmp_path):
    store = EventStore.open(tmp_path / "events.db")
    guarded = Site(town, store, rules=Rules(token="secret"))
    page = browser.new_page()
    page.goto(f"{guarded.url}/#/people/{guarded.user}")
    page.locator(".entry .add").first.click()
    page.get_by_label("asks for a key").fill("wrong")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector("text=That key may not do this")
    page.get_by_label("asks for a key").fill("secret")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector("text=Recorded: ")
    expect(page.get_by_label("asks for a key")).to_have_count(0)
    assert store.last() == 1
    page.close()
    guarded.stop()
    store.close()


VERSIONS = [
    {"version": 2, "role": "current", "made": "2026-11-19T00:00:00+00:00"},
    {"version": 1, "role": "previous", "made": "2026-11-18T00:00:00+00:00"},
]
OPERATIONS = {"versions": VERSIONS, "routes": [], "updates": [], "events_by_hour": []}


def test_a_rollback_asks_for_an_administrators_key_and_has_a_way_back(browser, site):
    asked = []

    def roll_back(route):
        key = route.request.headers.get("authorization")
        asked.append(key)
        if key == "Bearer boss":
            route.fulfill(json={"current": 1, "previous": 2, "candidate": None})
        else:
            route.fulfill(status=401, json={"detail": "needs a key"})

    page = browser.new_page()
    page.route("**/operations", lambda route: route.fulfill(json=OPERATIONS))
    page.route("**/versions/rollback", roll_back)
    page.goto(f"{site.url}/#/model")
    page.get_by_role("button", name="Roll back").click()
    page.get_by_label("administrator's key").fill("boss")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector("text=Rolled back to version 1")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("text=Back to the version before")
    assert asked == [None, "Bearer boss", "Bearer boss"]
    page.close()


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


ARMS = """async (arms) => {
  const { experimentCard } = await import("/static/experiment.js");
  const arm = { people: 12345, hit_rate: 1, conversion: 0.5, share: 0.5, shadow: false };
  for (const side of ["hit", "conversion"]) arm[`${side}_interval`] = { low: 0.9245, high: 1 };
  const both = ["A", "B"].map((name, n) => ({ ...arm, name, version: n + 1 }));
  document.querySelector("main").append(experimentCard({ arms: both, verdicts: [] }));
}"""
# Words, and parts of paths, that stand on more than one line; and what must be scrolled sideways.
BROKEN = """() => {
  const broken = [];
  for (const cell of document.querySelectorAll(".tiles dd, th, td")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) for (const found of texts.currentNode.data.matchAll(/[^\\s/]+/g)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, found.index);
      range.setEnd(texts.currentNode, found.index + found[0].length);
      const lines = new Set([...range.getClientRects()].map((line) => line.top));
      if (lines.size > 1) broken.push(found[0]);
    }
  }
  const wide = (one) => one.scrollWidth > one.clientWidth;
  const cut = [...document.querySelectorAll(".scroll")].filter(wide);
  return [...broken, ...cut.map((one) => one.getAttribute("aria-label"))];
}"""


@pytest.mark.parametrize("width", [360, 1280])
def test_no_figure_of_the_model_is_cut_off_and_no_word_broken(open_page, width):
    page = open_page("#/model", width=width)
    expect(page.get_by_role("heading", name="Answers, by route")).to_be_visible()
    page.evaluate(ARMS)
    page.get_by_text("last update").locator("+ dd").evaluate(
        "(one) => { one.textContent = 'kept as a candidate'; }"
    )
    assert page.evaluate(BROKEN) == []
