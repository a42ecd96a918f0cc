"""How the times of LT-OCF learn on pairs that its embeddings do not train on.

On the pairs that the embeddings fit, times learn to fit them too, which asks for less smoothing
than generalising does. On held-out pairs they find a depth that generalises.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltocf.data.interactions import Interactions
from ltocf.distributed import Columns
from ltocf.models.base import ParameterGroup
from ltocf.models.pair_scores import pair_scores
from ltocf.ode.times import Times

# Of a training, in the first of which times learn. With more, on dense data they overshoot as the
# embeddings begin to overfit.
EPOCHS = 2
MOST, SETTLED = 5, 0.1  # lessons, each from the start, until the end time moves less than that
EVERY = 2  # steps of the embeddings to one of the times
TIME_RATE, TEMPERATURE_RATE = 5e-2, 0.1
NEGATIVES = 64  # uniform: against the hardest, a response that makes all items alike would win
MOST_PAIRS = 16384  # of a step
# An end time beyond it is hardly a depth that generalises: where there is little to learn from, the
# embeddings overfit within an epoch, and ever more smoothing hides it.
DEEPEST = 6.3


class TimesLesson(nn.Module):
    """What a lesson of the times has come to: saved with the model, so that one that is interrupted
    goes on from there."""

    def __init__(self, times: Times) -> None:
        super().__init__()
        # If the start is much too deep, optimisation does not recover.
        if times.end > DEEPEST:
            times.stretch_(DEEPEST / times.end)
        self.sharpness = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.left: Tensor
        self.given: Tensor
        self.began: Tensor
        self.register_buffer("left", torch.tensor(MOST))  # lessons
        self.register_buffer("given", times().detach())  # the times before any lesson
        self.register_buffer("began", torch.tensor(times.end))  # the end time before this lesson
        # Of times that ran away: which are on trial (1: they, 2: those given), and how they did.
        self.trying: Tensor
        self.deep: Tensor
        self.deep_merit: Tensor
        self.register_buffer("trying", torch.tensor(0))
        self.register_buffer("deep", times().detach())
        self.register_buffer("deep_merit", torch.tensor(0.0, dtype=torch.float64))

    def groups(self, times: Times) -> dict[str, ParameterGroup]:
        return {
            "times": ParameterGroup(times.learned(), TIME_RATE, self._has_turn, on_held_out=True),
            "temperature": ParameterGroup(
                [self.sharpness], TEMPERATURE_RATE, self._has_turn, on_held_out=True
            ),
        }

    def _has_turn(self, step: int) -> bool:
        return step % EVERY == 0 and int(self.left) > 0

    def loss(
        self,
        table: Tensor,
        n_users: int,
        held_out: Interactions,
        random: np.random.Generator,
        columns: Columns,
    ) -> Tensor:
        """Cross-entropy of some held-out items among uniform ones, at a learned temperature: a
        proper score, which no scaling and no collapse of the embeddings can lower. The table has
        the final embeddings, users' rows first."""
        drawn = random.integers(0, len(held_out), min(len(held_out), MOST_PAIRS))
        users = torch.from_numpy(held_out.users[drawn].astype(np.int64))
        items = random.integers(0, held_out.n_items, (len(drawn), 1 + NEGATIVES))
        items[:, 0] = held_out.items[drawn]
        rows = torch.from_numpy(items) + n_users
        scores = columns.total(pair_scores(table, users.to(table.device), rows.to(table.device)))
        wanted = torch.zeros_like(rows[:, 0]).to(table.device)
        return F.cross_entropy(scores * self.sharpness.exp(), wanted)

    @torch.no_grad()
    def end_(self, times: Times, merit: float) -> bool:
        """End a lesson or a trial, if there was one: whether training must begin anew. `merit` is
        what validation makes of it so far.

        After a lesson it must, since embeddings do not follow a response that moves. Times that
        moved little rest from then on. Those that ran away are stopped at the deepest, and have to
        be better than those before any lesson: each of the two is tried for as long as a lesson.
        """
        if int(self.trying):
            return self._judge_(times, merit)
        if not int(self.left):
            return False
        moved = abs(math.log(times.end / float(self.began)))
        ran_away = times.end > DEEPEST
        if ran_away:
            times.stretch_(DEEPEST / times.end)
            self.deep.copy_(times())
            self.trying.fill_(1)
        self.left.copy_(torch.tensor(0 if ran_away or moved < SETTLED else int(self.left) - 1))
        self.began.fill_(times.end)
        self.sharpness.zero_()
        return True

    def _judge_(self, times: Times, merit: float) -> bool:
        if int(self.trying) == 1:  # the deep ones had their trial, now those that were given
            self.deep_merit.fill_(merit)
            self.trying.fill_(2)
            times.move_to_(self.given)
            return True
        self.trying.zero_()
        if merit >= float(self.deep_merit):
            return False
        times.move_to_(self.deep)
        return True
