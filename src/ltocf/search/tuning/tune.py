"""Search for good settings: a resumable Optuna study that prunes on validation recall."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ltocf.config import RunConfig, find_config, read_toml, to_toml
from ltocf.data.dataset import Dataset
from ltocf.data.sources.catalog import load_dataset
from ltocf.errors import ConfigError
from ltocf.models import MODELS, check_settings
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import evaluate
from ltocf.runs.settings import make_config
from ltocf.scorers.complete import complete_for
from ltocf.search.tuning.dimensions import SearchDimension
from ltocf.storage.files import replacing, writing
from ltocf.training.fitting import choose_epochs
from ltocf.training.protocol import with_validation
from ltocf.training.records import SELECT_BY, EpochRecord, TrainState

if TYPE_CHECKING:
    import optuna

TRAINED = ("learning_rate=0.001:0.03", "l2=1e-5:0.1", "negatives=1|8|32|64")
# What the paper and the authors' code vary: every combination is a trial, in an order drawn once.
GRIDS = {
    "paper": (
        "solver=euler|rk4|adams_moulton|dormand_prince", "end_time=1.0|2.0|3.0|4.0",
        "time_points=1|2|3|4", "learn_times=training|false", "learning_rate=1e-3|1e-4|1e-5",
    ),
}  # fmt: skip
GRID_RECIPES = {"paper": "gowalla-ltocf-paper"}  # the config whose settings stay as they are
SPACES = {
    "ltocf": (*TRAINED, "end_time=2.0:6.0", "time_points=1:4"),
    "lightgcn": (*TRAINED, "layers=1:5"),
    "gfcf": ("ideal_weight=0.0:1.0", "rank=32:512"),
    "bspm": ("ideal_weight=0.0:1.0", "rank=32:512", "end_time=0.5:4.0"),
    "chebycf": ("rank=32:512",),
    "ease": ("l2=1.0:2000.0",),
    "sparse_ease": ("l2=1.0:2000.0",),
}


@dataclass(frozen=True)
class TuneReport:
    best: RunConfig
    found: dict[str, Any]  # the best values of the settings that were searched
    recall: float  # Recall@20 on validation
    trials: int
    pruned: int
    resumed: int  # trials that the study had before


def tune(
    dataset: Dataset | str | Path,
    config: RunConfig | str,
    output: str | Path,
    *,
    trials: int = 20,
    space: Sequence[str] = (),
    exhaustive: bool = False,
    progress: Progress = silent,
) -> TuneReport:
    """Tune a model, known by its name or by its settings.

    Add `trials` to the study in OUTPUT/study.db, made if it is not there, and write the best
    settings so far to OUTPUT/best.toml. The test pairs are never looked at.

    `space` lists choices as key=low:high or key=a|b|c; SPACES holds those of the usual models. The
    first trial of a study takes the settings as they are, so that the best is never worse. If
    `exhaustive`, the trials are the combinations of the choices, each of them once.
    """
    output = Path(output)
    if not isinstance(dataset, Dataset):
        dataset = load_dataset(str(dataset))
    if isinstance(config, str):
        config = make_config({}, {"model": config})
    choices = [SearchDimension.parse(text) for text in space or _usual_space(config.model_name)]
    first = _settings(config, {choice.key: (*choice.options, choice.low)[0] for choice in choices})
    check_settings(first.model_name, first.model_options)
    with writing(output, error=ConfigError), _database(output):
        return _search(dataset, config, output, trials, choices, exhaustive, progress)


@contextmanager
def _database(output: Path) -> Iterator[None]:
    """Turns errors of SQLite, such as a full disk or a damaged file, into one line."""
    _optuna()
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except SQLAlchemyError as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise ConfigError(f"{output / 'study.db'}: cannot be used ({reason})") from None


def _search(
    dataset: Dataset,
    config: RunConfig,
    output: Path,
    trials: int,
    choices: Sequence[SearchDimension],
    exhaustive: bool,
    progress: Progress,
) -> TuneReport:
    study = _open_study(output, dataset, config, choices, exhaustive)
    resumed = len(study.trials)
    if exhaustive:
        trials = min(trials, math.prod(len(choice.options) for choice in choices) - resumed)
    cut = with_validation(dataset.split, config.train, config.seed, fewest=1)
    data = replace(dataset, split=cut)

    def objective(trial: optuna.Trial) -> float:
        searched = choices if trial.number or exhaustive else []
        settings = _settings(config, {choice.key: choice.suggest(trial) for choice in searched})
        once = settings.train.model_copy(update={"refit": False})
        settings = settings.model_copy(update={"train": once})
        watch = Reporter(trial)
        chosen = choose_epochs(data, settings, after_epoch=watch)
        if chosen.epochs is not None:
            return watch.best
        train, valid = data.split.train, data.split.valid
        scorer = complete_for(valid, chosen.model.scorer(), train)
        return evaluate(scorer, valid, train)[SELECT_BY]

    def after_trial(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        best = _best(study)
        if best is not None:
            with replacing(output / "best.toml") as temporary:
                temporary.write_text(to_toml(_settings(config, best.params)), encoding="utf-8")
        values = " ".join(f"{key}={_short(value)}" for key, value in trial.params.items())
        recall = "given up" if trial.value is None else f"Recall@20 {trial.value:.4f}"
        note = f"{values or 'as it is'}: {recall}"
        note += "" if best is None else f" (best {best.value:.4f})"
        progress("trial", len(study.trials) - resumed, trials, note)

    if trials > 0:
        study.optimize(objective, n_trials=trials, callbacks=[after_trial])
    states = [trial.state.name for trial in study.trials]
    return TuneReport(
        _settings(config, study.best_params),
        study.best_params,
        study.best_value,
        len(states),
        states.count("PRUNED"),
        resumed,
    )


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _best(study: optuna.Study) -> optuna.trial.FrozenTrial | None:
    try:
        return study.best_trial
    except ValueError:  # no trial has been completed
        return None


class Reporter:
    """Reports each validation recall to the study, and ends the trial if the study prunes it."""

    def __init__(self, trial: optuna.Trial) -> None:
        self.trial, self.best, self.reported = trial, 0.0, 0

    def __call__(self, state: TrainState, record: EpochRecord) -> None:
        if not record.metrics:
            return
        self.best = max(self.best, record.metrics[SELECT_BY])
        # A training that was restarted: an epoch is reported once.
        if record.epoch <= self.reported:
            return
        self.reported = record.epoch
        self.trial.report(record.metrics[SELECT_BY], record.epoch)
        if self.trial.should_prune():
            raise _optuna().TrialPruned


def _open_study(
    output: Path,
    dataset: Dataset,
    config: RunConfig,
    choices: Sequence[SearchDimension],
    exhaustive: bool,
) -> optuna.Study:
    """The study of these choices on these data, in OUTPUT; another one is refused."""
    library = _optuna()
    output.mkdir(parents=True, exist_ok=True)
    library.logging.set_verbosity(library.logging.WARNING)
    study: optuna.Study = library.create_study(
        storage=f"sqlite:///{output / 'study.db'}",
        study_name="ltocf",
        direction="maximize",
        load_if_exists=True,
        sampler=_sampler(choices, exhaustive, config.seed),
        pruner=library.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=2),
    )
    about = {
        "config": to_toml(config),
        "space": [repr(choice) for choice in choices],
        "data": dataset.digest,
    }
    # A study whose process was killed at its start has only some of them.
    if any(about[key] != value for key, value in study.user_attrs.items()):
        raise ConfigError(
            f"{output}: holds a study of other data, settings or ranges; choose another output"
        )
    for key, value in about.items():
        study.set_user_attr(key, value)
    for trial in study.trials:
        # We hold the lock, so the process that ran this trial was killed.
        if not trial.state.is_finished():
            study.tell(trial.number, state=library.trial.TrialState.FAIL)
    return study


def _sampler(choices: Sequence[SearchDimension], exhaustive: bool, seed: int) -> Any:
    samplers = _optuna().samplers
    if not exhaustive:
        return samplers.TPESampler(seed=seed)
    return samplers.GridSampler({choice.key: choice.options for choice in choices}, seed=seed)


def grid_of(name: str, dataset: str, fixed: Sequence[str]) -> tuple[RunConfig, list[str]]:
    """The fixed settings of a grid, and its choices."""
    if name not in GRIDS:
        raise ConfigError(f"unknown grid {name!r}; choose one of: {', '.join(GRIDS)}")
    values = read_toml(find_config(GRID_RECIPES[name])) | {"dataset": dataset}
    keys = {change.partition("=")[0] for change in fixed}
    choices = [choice for choice in GRIDS[name] if choice.partition("=")[0] not in keys]
    if not choices:
        raise ConfigError(f"grid {name!r} has nothing to vary: {', '.join(fixed)} fix everything")
    return make_config(values, fixed), choices


def _usual_space(model: str) -> Sequence[str]:
    if model in SPACES:
        return SPACES[model]
    if model in MODELS and MODELS[model].losses:
        return TRAINED
    if model in MODELS and not MODELS[model].solved():
        return TRAINED[:1]  # the model has a fixed loss
    raise ConfigError(
        f"say what to search for {model!r}, such as space=['key=low:high'] (--space key=low:high)"
    )


def _settings(config: RunConfig, values: dict[str, Any]) -> RunConfig:
    return make_config(_validating(config).model_dump(exclude_none=True), values)


def _validating(config: RunConfig) -> RunConfig:
    train = config.train.model_copy(update={"protocol": "validation"})
    return config.model_copy(update={"train": train})


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ConfigError("tuning needs optuna: pip install 'ltocf[tune]'") from None
    return optuna
