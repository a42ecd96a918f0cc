"""The site as it is opened from a disk, without a network: narrow and wide, and searched."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    quiet = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, env=os.environ | quiet, check=True)
    return folder


@pytest.mark.parametrize("width", [360, 1280])
def test_every_page_fits_its_window_and_fetches_nothing(browser, site, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    for file in sorted(set(site.rglob("*.html")) - {site / "404.html"}):
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, file
        assert not page.evaluate("[...document.images].filter(i => !i.naturalWidth).length"), file
    assert not [url for url in fetched if not url.startswith(("file:", "data:"))]
    page.close()


def test_the_search_finds_a_page_by_its_words(browser, site):
    page = browser.new_page()
    page.goto((site / "results" / "accuracy.html").as_uri())
    page.fill("input[name=query]", "recency")
    found = page.locator(".md-search-result__list a").first
    found.wait_for(timeout=60_000)
    assert "recency.html" in found.get_attribute("href")
    page.close()
