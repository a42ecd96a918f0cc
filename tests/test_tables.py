import gc

import numpy as np
import torch

from ltocf.tables import Tables


def test_an_array_that_is_no_longer_used_is_reused():
    tables = Tables()
    first = tables.empty((3, 4), np.float32)
    address = first.ctypes.data
    del first
    assert tables.empty((4, 3), np.int32).ctypes.data == address


def test_an_array_that_a_slice_or_a_tensor_refers_to_is_left_alone():
    tables = Tables()
    table = tables.empty((3, 4), np.float32)
    table[:] = 1
    part, tensor = table[:1], torch.from_numpy(tables.empty((3, 4), np.float32)).fill_(2)
    del table
    gc.collect()
    for _ in range(3):
        tables.empty((3, 4), np.float32)[:] = 9
    assert (part == 1).all()
    assert (tensor == 2).all()


def test_arrays_begin_on_a_cache_line():
    tables = Tables()
    kept = [tables.empty((5, 7), np.float64) for _ in range(5)]
    assert all(table.ctypes.data % 64 == 0 for table in kept)
    assert len({table.ctypes.data for table in kept}) == 5
