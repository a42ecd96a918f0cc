"""Rules about lists: what may be listed, what counts more, and conditions on a list as a whole."""

from ltocf.recommend.rules.conditions import Condition as Condition
from ltocf.recommend.rules.conditions import Shelf as Shelf
from ltocf.recommend.rules.rules import ItemRules as ItemRules
from ltocf.recommend.rules.rules import Rules as Rules
