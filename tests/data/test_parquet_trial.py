import polars as pl
import pytest

from ltocf.data.ingest.read_log import read_log
from ltocf.data.parquet_trial import refuse_unreadable
from ltocf.errors import DataError


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.parquet"
    pl.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "note": ["k", "l"]}).write_parquet(path)
    return path


def test_a_good_file_passes(log):
    refuse_unreadable({log: "the log"})
    assert len(read_log(log).interactions) == 2


def test_a_file_that_would_crash_this_process_is_one_clear_error(log, capfd):
    content = bytearray(log.read_bytes())
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for position in (end // 3, end + 40):  # in a page, and in the footer
        damaged = bytearray(content)
        damaged[position : position + 8] = b"\xfe" * 8
        log.write_bytes(damaged)
        with pytest.raises(DataError, match=r"^the log: cannot be read \([^\n]*$"):
            refuse_unreadable({log: "the log"})
    assert capfd.readouterr().err == ""


def test_columns_that_are_not_read_are_not_tried(tmp_path):
    path = tmp_path / "log.parquet"
    frame = pl.DataFrame({"User-ID": ["a"], "item": ["x"], "note": ["some text here"]})
    frame.write_parquet(path, compression="uncompressed")
    content = path.read_bytes().replace(b"some text here", b"\xff" * 14)
    path.write_bytes(content)
    refuse_unreadable({path: "the log"}, ["userid", "2"])
    with pytest.raises(DataError, match="the log: cannot be read"):
        refuse_unreadable({path: "the log"})
