"""The errors that a user can fix. Any other exception that reaches them is a bug in ltocf.

LtocfError
    ConfigError      a setting: an unknown key, model or value
    DataError        an input file, an id, a split
    RunError         a run directory that is damaged, foreign or occupied; a training that ended
"""


class LtocfError(Exception):
    """One clear line: what was wrong, where, and what to do. The command line exits with 2."""


class ConfigError(LtocfError):
    pass


class DataError(LtocfError):
    pass


class RunError(LtocfError):
    pass
