"""How the times of LT-OCF learn on held-out pairs, which its embeddings do not train on.

On the training pairs, times would learn to fit what the embeddings fit, which takes less smoothing
than generalising does. On held-out pairs they find a depth that generalises.

A *lesson* is a short training of `EPOCHS` epochs in which the times learn. After it, training
restarts from scratch with the new times. Lessons repeat until the times settle.
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

# The length of a lesson. With more epochs, on dense data the times overshoot, because the
# embeddings begin to overfit.
EPOCHS = 2
# There are at most five lessons; they end once a lesson moves the log of the end time by less.
MOST, SETTLED = 5, 0.1
EVERY = 2  # steps of the embeddings per step of the times
TIME_RATE, TEMPERATURE_RATE = 5e-2, 0.1  # learning rates
# Drawn uniformly: against the hardest negatives, a response that makes all items alike would win.
NEGATIVES = 64
MOST_PAIRS = 16384  # held-out pairs per step
# A larger end time hardly generalises. Where there is little data, the embeddings overfit within
# an epoch, and more and more smoothing hides it; so the times would grow without end.
DEEPEST = 6.3


class TimesLesson(nn.Module):
    """The state of the lessons. It is saved with the model, so that an interrupted training
    continues where it stopped."""

    def __init__(self, times: Times) -> None:
        super().__init__()
        # From a start that is much too deep, optimisation does not recover.
        if times.end > DEEPEST:
            times.stretch_(DEEPEST / times.end)
        # The logarithm of the inverse temperature of the loss.
        self.sharpness = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.left: Tensor
        self.given: Tensor
        self.began: Tensor
        self.register_buffer("left", torch.tensor(MOST))  # lessons that may still follow
        self.register_buffer("given", times().detach())  # the times before any lesson
        self.register_buffer("began", torch.tensor(times.end))  # the end time before this lesson
        # If the end time passed DEEPEST, two trainings are compared on validation: one with the
        # deep times (trying = 1), then one with the given times (trying = 2).
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
        """Cross-entropy of some held-out items among random ones, at a learned temperature.

        The temperature makes it a proper score: neither scaling nor collapsing the embeddings can
        lower it. `table` holds the final embeddings, users' rows first."""
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
        """End the current lesson or trial, if there is one. Return whether training must restart
        from scratch. `merit` is the validation metric so far.

        After a lesson it must restart, since embeddings that were trained with one response do not
        suit another. Times that moved little are fixed from then on. If the end time passed
        DEEPEST, the times are shrunk to it, and are used only if they validate better than the
        times given before any lesson: each of the two gets a trial as long as a lesson.
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
        if int(self.trying) == 1:  # the deep times had their trial; next come the given ones
            self.deep_merit.fill_(merit)
            self.trying.fill_(2)
            times.move_to_(self.given)
            return True
        self.trying.zero_()
        if merit >= float(self.deep_merit):
            return False  # training simply continues with the given times
        times.move_to_(self.deep)
        return True
