"""Logs as shops and sites write them: dates, returns, kinds of events, names in four languages."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.growth import enlarge, read_more, with_every_pair
from ltocf.data.ingest.prepare import Recipe, prepare
from ltocf.data.ingest.read_log import read_log
from ltocf.data.interactions import Interactions
from ltocf.data.sources.any_log import as_dataset
from ltocf.data.sources.catalog import dataset_beside
from ltocf.errors import ConfigError, DataError


def write(tmp_path, text, name="log.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def timed(tmp_path, *moments):
    rows = "".join(f"u,i{n},{moment}\n" for n, moment in enumerate(moments))
    return write(tmp_path, "user;item;time\n".replace(";", ",") + rows)


def when(log, **how):
    found = read_log(log, **how).interactions.timestamps
    assert found is not None
    return [datetime.fromtimestamp(t / 1e6, UTC).strftime("%Y-%m-%d %H:%M") for t in found]


def pairs(found: Interactions):
    return set(zip(found.user_ids[found.users], found.item_ids[found.items], strict=True))


def test_a_day_above_twelve_shows_whether_the_month_comes_first(tmp_path):
    log = timed(tmp_path, "12/1/10 8:26", "12/13/10 17:05")
    assert when(log) == ["2010-12-01 08:26", "2010-12-13 17:05"]
    assert any("%m/%d/%y %H:%M (found: a day is above 12" in note for note in read_log(log).notes)
    log = timed(tmp_path, "01/12/2010", "13/12/2010")
    assert when(log) == ["2010-12-01 00:00", "2010-12-13 00:00"]


def test_a_day_above_twelve_may_come_after_the_rows_that_are_looked_at_first(tmp_path):
    log = timed(tmp_path, *["2/1/24"] * 1500, "2/28/24")
    assert max(when(log)) == "2024-02-28 00:00"


def test_dates_that_can_be_read_two_ways_are_asked_about(tmp_path):
    log = timed(tmp_path, "12/1/10 8:26", "12/2/10 9:00")
    with pytest.raises(DataError, match=r"'12/1/10 ?'.* told apart; .*--time-format"):
        read_log(log)
    assert when(log, time_format="month-first")[0] == "2010-12-01 08:26"
    assert when(log, time_format="day-first")[0] == "2010-01-12 08:26"
    assert when(log, time_format="%m/%d/%y %H:%M")[0] == "2010-12-01 08:26"
    with pytest.raises(DataError, match=r"mixes dates"):
        read_log(timed(tmp_path, "31/1/24", "1/31/24"))
    with pytest.raises(ConfigError, match=r"time_format = 'weekly' is not a time format"):
        read_log(log, time_format="weekly")


def test_dots_mean_day_first_and_two_digits_mean_this_century(tmp_path):
    assert when(timed(tmp_path, "01.12.2010 08:26"))[0] == "2010-12-01 08:26"
    assert when(timed(tmp_path, "31.12.24"))[0] == "2024-12-31 00:00"
    assert when(timed(tmp_path, "1 Dec 2010 8:26 AM"))[0] == "2010-12-01 08:26"
    assert when(timed(tmp_path, "20240131", "20240201"))[0] == "2024-01-31 00:00"


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
@pytest.mark.parametrize("kind", [int, float, str])
def test_a_moment_is_the_same_in_any_unit(unit, kind):
    seconds = 1_700_000_000
    frame = pl.DataFrame({"user": ["u"], "item": ["i"], "time": [kind(seconds * unit)]})
    assert when(frame) == ["2023-11-14 22:13"]
    dates = pl.DataFrame({"user": ["u"], "item": ["i"], "time": [datetime(2023, 11, 14, 22, 13)]})
    assert when(dates) == ["2023-11-14 22:13"]


def test_an_update_by_seconds_comes_after_dates_and_plain_numbers_are_refused():
    old = as_dataset(pl.DataFrame({"user": ["u"], "item": ["a"], "time": ["2024-01-31"]}))
    news = {"user": ["u", "u"], "item": ["b", "c"], "time": [1_800_000_000, 1_600_000_000]}
    contents = read_more(old, pl.DataFrame(news))
    grown, _ = enlarge(old, contents.interactions)
    train = grown.split.train
    assert train.timestamps is not None
    order = [train.item_ids[np.array([row])][0] for row in train.items[train.timestamps.argsort()]]
    assert order == ["c", "a", "b"]
    with pytest.raises(DataError, match="times are plain numbers, but those of the data set are"):
        read_more(old, pl.DataFrame(news | {"time": [1, 2]}))
    ordered = as_dataset(pl.DataFrame({"user": ["u"], "item": ["a"], "time": [7]}))
    with pytest.raises(DataError, match="those of the data set are plain numbers"):
        read_more(ordered, pl.DataFrame(news))
    later = read_more(ordered, pl.DataFrame(news), now=True).interactions.timestamps
    assert later is not None and later.min() > 7


def test_the_next_log_is_read_as_the_first_one_was_though_it_could_be_read_two_ways(tmp_path):
    prepare(timed(tmp_path, "12/1/10", "12/13/10"), tmp_path / "data", Recipe(split="none"))
    contents = read_more(Dataset.load(tmp_path / "data"), timed(tmp_path, "12/2/10"))
    assert contents.interactions.timestamps is not None
    moment = datetime.fromtimestamp(contents.interactions.timestamps[0] / 1e6, UTC)
    assert (moment.month, moment.day) == (12, 2)


RETURNS = "CustomerID,StockCode,Quantity\n1,A,3\n1,B,2\n1,B,-2\n2,A,4\n2,A,-1\n2,C,-5\n"


def test_returns_take_back_what_they_return(tmp_path):
    contents = read_log(write(tmp_path, RETURNS))
    assert pairs(contents.interactions) == {(1, "A"), (2, "A")}
    assert contents.interactions.weights is None
    assert any("3 rows below 0 are returns" in note for note in contents.notes)
    weighted = read_log(tmp_path / "log.csv", weight="Quantity").interactions
    assert weighted.weights is not None and weighted.weights.tolist() == [3, 3]
    report = prepare(tmp_path / "log.csv", tmp_path / "data", Recipe(split="none"))
    assert pairs(Dataset.load(tmp_path / "data").split.train) == {(1, "A"), (2, "A")}
    assert report.taken_back == 2


@pytest.mark.parametrize("weight", [None, "qty"])
def test_a_return_in_the_next_log_takes_back_an_old_pair(weight):
    log = pl.DataFrame({"user": ["u", "u", "v"], "item": ["a", "b", "a"], "qty": [2, 3, 1]})
    old = as_dataset(log, weight=weight)
    news = pl.DataFrame({"user": ["u", "u"], "item": ["a", "c"], "qty": [-2, 1]})
    contents = read_more(old, news)
    grown, added = enlarge(old, contents.interactions, contents.unliked, contents.taken)
    assert pairs(grown.split.train) == {("u", "b"), ("u", "c"), ("v", "a")}
    assert (added.interactions, added.taken_back) == (1, 1)


KINDS = pl.DataFrame(
    [
        ("u", "a", "view"),
        ("u", "a", "purchase"),
        ("u", "b", "view"),
        ("u", "c", "purchase"),
        ("u", "c", "return"),
        ("v", "a", "view"),
        ("v", "b", "purchase"),
        ("v", "b", "dislike"),
        ("v", "c", "scroll"),
    ],
    schema=["user", "item", "event"],
    orient="row",
)
WEIGH = "view=1,purchase=5,return=-5,dislike=hide,scroll=0"


def test_kinds_of_events_have_the_given_weights(tmp_path):
    contents = read_log(KINDS, weigh=WEIGH)
    found = contents.interactions
    assert found.weights is not None
    weights = dict(
        zip(
            zip(found.user_ids[found.users], found.item_ids[found.items], strict=True),
            found.weights.tolist(),
            strict=True,
        )
    )
    assert weights == {("u", "a"): 6, ("u", "b"): 1, ("v", "a"): 1}
    assert contents.unliked is not None and pairs(contents.unliked) == {("v", "b")}
    KINDS.write_csv(tmp_path / "log.csv")
    prepare(tmp_path / "log.csv", tmp_path / "data", Recipe(weigh=WEIGH, split="none"))
    data = Dataset.load(tmp_path / "data")
    assert pairs(data.split.train) == set(weights)
    assert data.split.unliked is not None and pairs(data.split.unliked) == {("v", "b")}
    # The next log is weighed by the same table.
    news = pl.DataFrame({"user": ["u"], "item": ["a"], "event": ["dislike"]})
    more = read_more(data, news)
    grown, added = enlarge(data, more.interactions, more.unliked, more.taken)
    assert added.taken_back == 1
    assert pairs(grown.split.train) == {("u", "b"), ("v", "a")}
    assert grown.split.unliked is not None and ("u", "a") in pairs(grown.split.unliked)


@pytest.mark.parametrize(
    ("weigh", "message"),
    [
        ("view", "write KIND=NUMBER"),
        ("view=much", "give a number"),
        ("view=-1,return=-2", "no kind a weight above 0"),
        ("view=1,view=2", "twice"),
    ],
)
def test_a_table_of_kinds_without_meaning_is_refused(weigh, message):
    with pytest.raises(ConfigError, match=message):
        read_log(KINDS, weigh=weigh)


def test_a_kind_that_the_table_lacks_is_named(tmp_path):
    with pytest.raises(DataError, match=r"kind 'return' is not in weigh .*--weigh"):
        read_log(KINDS, weigh="view=1,purchase=5")
    assert any("every kind of event counts alike" in note for note in read_log(KINDS).notes)


@pytest.mark.parametrize(
    "header",
    [
        "CustomerID,StockCode,InvoiceDate",
        "contentId,user_id,timestamp",
        "Kundennummer,Artikelnummer,Bestelldatum",
        "Utilisateur,Produit,Date",
        "Cliente,Artículo,Fecha",
    ],
)
def test_usual_names_are_guessed_in_four_languages(tmp_path, header):
    log = write(tmp_path, header + "\n" + "1,2,2024-01-31\n")
    columns = read_log(log).columns
    assert {columns.user, columns.item, columns.time} == set(header.split(","))
    swapped = header.startswith("contentId")
    assert columns.user == header.split(",")[1 if swapped else 0]


def test_a_column_of_dates_that_is_not_used_is_reported(tmp_path):
    log = write(tmp_path, "user,item,seen first\nu,a,2024-01-31\n")
    assert any("'seen first' holds dates and is not used" in note for note in read_log(log).notes)


def dated(date: Callable[[int, int], str]) -> str:
    """Thirty visitors of three of twelve places each; `date` is that of visitor u's visit v."""
    rows = ["user,item,the moment"]
    for u in range(30):
        rows += [f"{u},p{(u + v) % 12},{date(u, v)}" for v in range(3)]
    return "\n".join(rows) + "\n"


def test_the_only_column_of_dates_is_that_of_times_whatever_it_is_called(tmp_path):
    log = read_log(write(tmp_path, dated(lambda u, v: f"2024-{1 + u % 12:02}-{10 + v} 10:00")))
    assert log.columns.time == "the moment" and "time" in log.columns.guessed
    assert len(set(log.interactions.timestamps.tolist())) == 36


@pytest.mark.parametrize(
    "date",
    [
        lambda u, v: f"19{60 + u}-01-31",  # a birthday
        lambda u, v: f"2024-01-{10 + (u + v) % 12}",  # when the place opened
        lambda u, v: f"{1 + u % 12}/{1 + v}/2024",  # day or month first?
    ],
)
def test_a_column_of_dates_of_something_else_is_only_reported(tmp_path, date):
    log = read_log(write(tmp_path, dated(date)))
    assert log.columns.time is None and log.interactions.timestamps is None
    assert any("'the moment' holds dates and is not used" in note for note in log.notes)


def test_of_two_columns_of_dates_none_is_taken(tmp_path):
    day = "2024-{:02}-{}".format
    text = dated(lambda u, v: f"{day(1 + u % 12, 10 + v)},{day(1 + u % 12, 12 + v)}")
    log = read_log(write(tmp_path, text.replace("the moment", "ordered,shipped")))
    assert log.columns.time is None


def test_a_quote_inside_a_field_is_no_damage(tmp_path):
    log = write(tmp_path, 'user,item\nann,"Weird Al" Yankovic\nben,5" vinyl\nben,"tea, green"\n')
    found = pairs(read_log(log).interactions)
    assert found == {("ann", '"Weird Al" Yankovic'), ("ben", '5" vinyl'), ("ben", "tea, green")}


def test_a_blank_first_line_is_not_taken_for_the_header(tmp_path):
    log = write(tmp_path, "\nuser,item\n1,2\n3,4\n3,x,y\n")
    assert pairs(read_log(log, skip_bad=True).interactions) == {(1, 2), (3, 4)}


def test_a_spreadsheet_is_refused_with_the_way_to_a_csv(tmp_path):
    with pytest.raises(DataError, match=r"pandas.read_excel\('log.xlsx'\).to_csv\('log.csv'"):
        read_log(write(tmp_path, "x", "log.xlsx"))


def test_one_user_with_ten_thousand_events_is_reported_and_can_be_capped(tmp_path):
    rows = [("bot", f"i{n}", n) for n in range(10_000)] + [("ann", "i1", 5), ("ben", "i2", 6)]
    log = pl.DataFrame(rows, schema=["user", "item", "time"], orient="row")
    notes = prepare(log, tmp_path / "data", Recipe(split="none")).notes
    assert any("user 'bot' has 10,000 of the 10,002 rows" in note for note in notes)
    report = prepare(log, tmp_path / "capped", Recipe(split="none", max_user=100))
    train = Dataset.load(tmp_path / "capped").split.train
    assert report.over_the_cap == 9_900 and len(train) == 102
    assert not any("'bot'" in note for note in report.notes)
    assert train.timestamps is not None and sorted(train.timestamps)[2] == 9_900


def test_weights_too_small_or_too_large_to_count_do_not_become_nan():
    tiny = Interactions.build(
        np.array([0, 1]), np.array([0, 1]), 2, 2, weights=np.array([1e-30, 3e38], dtype=np.float32)
    )
    assert tiny.strengths is not None
    assert np.isfinite(tiny.strengths).all() and (tiny.strengths > 0).all()
    twice = np.array([3e38, 3e38], dtype=np.float32)
    both = Interactions.build(np.array([0, 0]), np.array([0, 0]), 1, 1, weights=twice)
    assert both.weights is not None and np.isfinite(both.weights).all()
    with pytest.raises(DataError, match="finite numbers above 0"):
        Interactions.build(np.array([0]), np.array([0]), 1, 1, weights=np.array([np.nan], "f4"))


def test_every_pair_of_a_temporal_split_is_learned_in_the_end(tmp_path):
    rows = [(f"u{n % 7}", f"i{n % 5}", n) for n in range(20)]
    rows += [("late", "i1", 100), ("u1", "fresh", 101), ("late", "fresh", 102), ("u2", "i4", 103)]
    log = pl.DataFrame(rows, schema=["user", "item", "time"], orient="row")
    prepare(log, tmp_path / "data", Recipe(split="temporal", ratio=0.8))
    data = Dataset.load(tmp_path / "data")
    assert "late" not in data.split.train.user_ids.ids
    assert data.rest is not None and data.rest.height == 3
    whole = with_every_pair(data).split.train
    assert pairs(whole) == pairs(read_log(log).interactions)
    prepare(log, tmp_path / "kept", Recipe(split="temporal", ratio=0.8, unknown="keep"))
    kept = Dataset.load(tmp_path / "kept")
    assert "late" in kept.split.train.user_ids.ids and kept.rest is None


def test_a_log_is_known_by_what_it_holds_and_not_by_its_name(tmp_path, monkeypatch):
    runs = tmp_path / "runs"
    for shop, item in (("a", "apple"), ("b", "bread")):
        (tmp_path / shop).mkdir()
        rows = "".join(f"u{n % 4},{item}{n % 7}\n" for n in range(28))
        write(tmp_path / shop, "user,item\n" + rows, "events.csv")
    monkeypatch.chdir(tmp_path / "a")
    first, _ = dataset_beside("events.csv", runs)
    monkeypatch.chdir(tmp_path / "b")
    second, _ = dataset_beside("events.csv", runs)
    assert first != second
    assert "bread0" in Dataset.load(second).split.train.item_ids.ids
    again, said = dataset_beside(tmp_path / "b" / "events.csv", runs)
    assert again == second and "taken as it is" in said[0]
    write(
        tmp_path / "b",
        "user,item\n" + "".join(f"u{n % 4},x{n % 7}\n" for n in range(28)),
        "events.csv",
    )
    changed, _ = dataset_beside("events.csv", runs)
    assert changed == second and "x0" in Dataset.load(second).split.train.item_ids.ids
    other, _ = dataset_beside("events.csv", runs, given={"ratio": 0.5})
    assert other == second and Dataset.load(second).origin["options"]["ratio"] == 0.5
    assert "apple0" in Dataset.load(first).split.train.item_ids.ids


def test_a_data_set_may_lie_in_a_folder_with_brackets(tmp_path):
    folder = tmp_path / "shop [1]"
    folder.mkdir()
    log = write(folder, "user,item\n" + "".join(f"u{n % 4},i{n % 7}\n" for n in range(28)))
    prepare(log, folder / "data [2]")
    assert len(Dataset.load(folder / "data [2]").split.train)


@pytest.mark.parametrize("odd", ["007", str(2**63)])
def test_an_id_that_no_integer_is_written_as_is_refused_by_name(odd):
    old = as_dataset(pl.DataFrame({"user": [1, 2], "item": [1, 2]}))
    news = read_more(old, pl.DataFrame({"user": [odd, "5"], "item": ["1", "2"]})).interactions
    with pytest.raises(DataError, match=rf"user id '{odd}' is not a whole number of 64 bits"):
        enlarge(old, news)
    grown, _ = enlarge(old, news, text_ids=True)
    assert grown.split.train.user_ids.ids.to_list() == ["1", "2", *sorted([odd, "5"])]


def test_forgetting_somebody_leaves_nothing_in_the_rest(tmp_path):
    from ltocf.data.ingest.leaving import forget_users

    old = as_dataset(pl.DataFrame({"user": ["u", "v"], "item": ["a", "b"]}))
    rest = pl.DataFrame({"user": ["late"], "item": ["a"]})
    left, _ = forget_users(replace(old, rest=rest), ["late"])
    assert left.rest is None
