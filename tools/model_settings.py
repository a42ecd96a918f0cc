"""Write src/ltocf/models/settings.json: the settings of each model and their defaults.

python tools/model_settings.py

`ltocf models NAME` reads them there, as the classes themselves take torch to load, which lasts
seconds. tests/models/test_settings.py says when the file is out of date.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ltocf.models import CLASSES, check_settings

FILE = Path(__file__).parent.parent / "src" / "ltocf" / "models" / "settings.json"


def settings_of_models() -> dict[str, dict[str, Any]]:
    return {name: check_settings(name, {}).model_dump(mode="json") for name in CLASSES}


if __name__ == "__main__":
    FILE.write_text(json.dumps(settings_of_models(), indent=1) + "\n", encoding="utf-8")
