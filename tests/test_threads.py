import numba
import torch

from ltocf.threads import SMALL, threads_for


def test_small_work_has_one_thread_and_large_work_all():
    before = torch.get_num_threads(), numba.get_num_threads()
    with threads_for(SMALL - 1):
        assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)
    with threads_for(SMALL):
        assert (torch.get_num_threads(), numba.get_num_threads()) == before
    assert (torch.get_num_threads(), numba.get_num_threads()) == before
