"""SQLite and PostgreSQL behind one SQLAlchemy engine, where a commit is on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ltocf.errors import ConfigError, DataError

LOCK = 7_305_186  # an arbitrary number that identifies our lock in PostgreSQL
# The wait for another writer: shorter than a client waits, so that the client gets the failure.
WAIT_SECONDS = 5


def display_name(where: str | Path) -> str:
    """The file or the URL without its password."""
    text = str(where)
    return sa.make_url(text).render_as_string(hide_password=True) if "://" in text else text


def insert_into(table: sa.Table, dialect: sa.Dialect) -> Any:
    """An insert that can define what happens if the row exists already."""
    if dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql  # imported here, since it takes long

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def connect(where: str | Path) -> sa.Engine:
    """A SQLite file, made if it is not there, or a postgresql:// URL."""
    text = str(where)
    if "://" not in text:
        return _sqlite(Path(text))
    url = sa.make_url(text)
    if url.get_backend_name() != "postgresql":
        raise ConfigError(
            f"{display_name(text)}: unknown kind of event store; "
            "give a file or postgresql://user@host/database"
        )
    try:
        return sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,
            pool_pre_ping=True,  # reconnects after the database was restarted
            connect_args={"connect_timeout": WAIT_SECONDS},
        )
    except ModuleNotFoundError:
        raise ConfigError(
            "PostgreSQL needs psycopg: install it with pip install 'ltocf[postgres]'"
        ) from None


def _sqlite(path: Path) -> sa.Engine:
    if not path.parent.is_dir():
        raise DataError(f"{path}: the directory {str(path.parent)!r} does not exist; create it")
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path.resolve())),
        isolation_level="AUTOCOMMIT",
        pool_reset_on_return=None,
        connect_args={"timeout": WAIT_SECONDS},
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a commit waits for the disk
        connection.execute("PRAGMA secure_delete = ON")  # what is removed is overwritten

    return engine


class DirectQuery:
    """A query without SQLAlchemy's own work around each execution, which takes several times as
    long as finding a few rows by an index. Failures are SQLAlchemy's, as always."""

    def __init__(self, engine: sa.Engine, query: sa.Select[Any]) -> None:
        compiled = query.compile(dialect=engine.dialect)
        self._engine, self._text = engine, str(compiled)
        self._defaults, self._order = compiled.params, compiled.positiontup

    def all(self, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows with these values for the query's parameters."""
        bound = self._defaults | values
        given = bound if self._order is None else [bound[name] for name in self._order]
        connection = self._engine.raw_connection()
        try:
            cursor = connection.cursor()
            try:
                cursor.execute(self._text, given)
                return list(cursor.fetchall())
            finally:
                cursor.close()
        except self._engine.dialect.loaded_dbapi.Error as failure:
            connection.invalidate(failure)
            raise DBAPIError(self._text, None, failure) from failure
        finally:
            connection.close()


@contextmanager
def exclusive(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that no other writer overlaps; on leaving, it is on disk."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {1000 * WAIT_SECONDS}")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
        try:
            yield connection
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            with suppress(SQLAlchemyError):  # report the first failure, not what followed from it
                connection.exec_driver_sql("ROLLBACK")
            raise
