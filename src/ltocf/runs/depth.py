"""Learn the times of LT-OCF on pairs that its embeddings do not train on.

On the pairs that the embeddings fit, times learn to fit them too, which asks for less smoothing
than generalising does. On held-out pairs they find a depth that generalises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltocf.config import Loss, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.models.base import Model
from ltocf.models.ltocf import LTOCF
from ltocf.models.pair_scores import pair_scores
from ltocf.ode.times import TimePoints
from ltocf.progress import Progress, silent
from ltocf.runs.records import SELECT_BY
from ltocf.runs.training import train
from ltocf.threads import threads_for

EPOCHS = 2  # more, and on dense data the times overshoot as the embeddings begin to overfit
MOST_ROUNDS, SETTLED = 5, 0.1  # from the spectrum each, until the end time moves less than that
# Beyond it a step of RK4 is little more than its highest power: the response hardly changes with
# the times any more, which then drift, and takes twice as many products.
DEEPEST = 12.0
EVERY = 2  # steps of the embeddings to one of the times
TIME_RATE, TEMPERATURE_RATE = 5e-2, 0.1
NEGATIVES = 64  # uniform: against the hardest, a response that makes all items alike would win
MOST_PAIRS = 16384  # of a step
FEWEST_PAIRS = 500  # fewer say more about themselves than about the depth
USUAL_DEPTH, TRIAL_EPOCHS = 4.0, 3
# As a logarithm: an end time that went further has to prove itself. Where there is little to learn
# from, embeddings overfit within an epoch, more smoothing hides it, and the times run away.
FAR = 0.4


@dataclass(frozen=True)
class Lesson:
    """What the times learn on, and how the embeddings train beside them."""

    held_out: Interactions
    config: TrainConfig
    loss: Loss
    seed: int
    progress: Progress

    def epochs(self, model: LTOCF) -> int:
        """Of a whole training."""
        return self.config.epochs_for(model.graph.interactions.pairs_per_user)


class Gaps(nn.Module):
    """Times by the logarithms of the gaps between them: any real numbers are times in order."""

    def __init__(self, times: Tensor) -> None:
        super().__init__()
        self.logs = nn.Parameter(times.diff().log())

    def forward(self) -> Tensor:
        return F.pad(self.logs.exp().cumsum(0), (1, 0))


def learners(model: Model) -> list[LTOCF]:
    """The model, or the parts of it, whose times learn on held-out pairs."""
    found = [part for part in model.modules() if isinstance(part, LTOCF)]
    return [part for part in found if part.config.learn_times == "held-out"]


def learn_depth_(
    model: Model,
    held_out: Interactions,
    config: TrainConfig,
    loss: Loss,
    *,
    seed: int,
    progress: Progress = silent,
) -> None:
    """Leave each learner in the model with the times by which it ranks `held_out` best, the end
    time among them. Its embeddings are used up: they have to be drawn anew."""
    if len(held_out) < FEWEST_PAIRS:
        return
    lesson = Lesson(held_out, config, loss, seed, progress)
    for part in learners(model):
        _begin(part, lesson)
        begun = _as_they_are(part)
        with threads_for(part.weight.numel()):
            for _ in range(MOST_ROUNDS):
                before = float(part.times.end)
                _learn(part, lesson)
                if float(part.times.end) > DEEPEST:
                    part.times.stretch_(DEEPEST / float(part.times.end))
                    break
                if abs(math.log(float(part.times.end) / before)) < SETTLED:
                    break
        if abs(math.log(float(part.times.end) / float(begun.end))) > FAR:
            # Whole trainings: the deeper, the slower, so the first epochs would mislead.
            _choose(part, [begun, _as_they_are(part)], lesson, lesson.epochs(part))


def _begin(model: LTOCF, lesson: Lesson) -> None:
    """Begin with the usual depth if a short training ranks the held-out pairs better with it than
    with the one that was asked for: from far too deep, the times do not find back."""
    asked = _as_they_are(model)
    if float(asked.end) == USUAL_DEPTH or not lesson.epochs(model):
        return
    usual = _as_they_are(model)
    usual.stretch_(USUAL_DEPTH / float(asked.end))
    # The first epochs of a whole training: at its rate, what overfits does so at once.
    _choose(model, [asked, usual], lesson, min(lesson.epochs(model), TRIAL_EPOCHS))


def _choose(model: LTOCF, times: list[TimePoints], lesson: Lesson, last_epoch: int) -> None:
    """Leave the model with those of the times by which a training ranks the held-out pairs best."""
    found = list[float]()
    for tried in times:
        model.times = tried
        model.draw_(lesson.seed)
        records = train(
            model,
            lesson.config,
            lesson.loss,
            seed=lesson.seed,
            held_out=lesson.held_out,
            last_epoch=last_epoch,
            stage=f"trying end time {float(tried.end):.2f}",
            progress=lesson.progress,
        )
        found.append(max((record.metrics.get(SELECT_BY, 0.0) for record in records), default=0.0))
    model.times = times[int(np.argmax(found))]


def _as_they_are(model: LTOCF) -> TimePoints:
    _, *inner, end = model.times().tolist()
    return TimePoints(inner, end, learn=False)


def _learn(model: LTOCF, lesson: Lesson) -> None:
    config, loss, seed = lesson.config, lesson.loss, lesson.seed
    model.draw_(seed)
    gaps = Gaps(model.times().detach())
    model.times = gaps  # type: ignore[assignment]
    sharpness = nn.Parameter(torch.zeros((), dtype=torch.float64))
    embeddings = torch.optim.Adam([model.weight], lr=model.learning_rate(config), fused=True)
    times = torch.optim.Adam(
        [
            {"params": [gaps.logs], "lr": TIME_RATE},
            {"params": [sharpness], "lr": TEMPERATURE_RATE},
        ]
    )
    decay = torch.optim.lr_scheduler.LambdaLR(times, lambda epoch: 1 - epoch / EPOCHS)
    step, size = 0, config.batch_size_for(len(model.graph.interactions))
    for epoch in range(1, EPOCHS + 1):
        batches = model.batches(
            loss, batch_size=size, draw_by=config.draw_by, seed=seed, epoch=epoch
        )
        for batch in batches:
            gaps.logs.requires_grad_(False)
            model.weight.requires_grad_(True)
            model.add_gradients_(batch, loss)
            embeddings.step()
            embeddings.zero_grad()
            if step % EVERY == 0:
                gaps.logs.requires_grad_(True)
                model.weight.requires_grad_(False)
                random = np.random.default_rng([seed, step])
                _held_out_loss(model, lesson.held_out, sharpness, random).backward()  # type: ignore[no-untyped-call]
                times.step()
                times.zero_grad()
            step += 1
        decay.step()
        found = " ".join(f"{time:.2f}" for time in gaps()[1:].tolist())
        lesson.progress("learning the times", epoch, EPOCHS, f"times {found}")
    model.weight.requires_grad_(True)
    model.times = _as_they_are(model)


def _held_out_loss(
    model: LTOCF, held_out: Interactions, sharpness: Tensor, random: np.random.Generator
) -> Tensor:
    """Cross-entropy of held-out items among uniform ones, at a learned temperature: a proper score,
    which no scaling and no collapse of the embeddings can lower."""
    drawn = random.integers(0, len(held_out), min(len(held_out), MOST_PAIRS))
    users = torch.from_numpy(held_out.users[drawn].astype(np.int64))
    items = random.integers(0, held_out.n_items, (len(drawn), 1 + NEGATIVES))
    items[:, 0] = held_out.items[drawn]
    rows = torch.from_numpy(items) + model.graph.n_users
    table = model.embeddings()
    scores = pair_scores(table, users.to(table.device), rows.to(table.device))
    return F.cross_entropy(scores * sharpness.exp(), torch.zeros_like(rows[:, 0]).to(table.device))
