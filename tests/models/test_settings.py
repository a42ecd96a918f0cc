"""What `ltocf models NAME` shows is what the classes take, without torch."""

import json
from importlib.resources import files

from ltocf.models import CLASSES, check_settings, usual_settings


def test_the_listed_settings_are_those_of_the_classes():
    """If not: python tools/model_settings.py"""
    listed = json.loads((files("ltocf.models") / "settings.json").read_text("utf-8"))
    assert listed == {name: check_settings(name, {}).model_dump(mode="json") for name in CLASSES}, (
        "run python tools/model_settings.py"
    )


def test_the_usual_settings_of_a_model_come_from_that_list():
    assert usual_settings("ltocf")["dim"] == 64
