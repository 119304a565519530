"""Engines for the tests of sources: one fixture runs a test over every backend."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Table = dict[str, Any]
Constructor = Callable[[Table], Any]

NUMBERS = count()

# Ibis warns about what it does with pandas and DuckDB inside; nothing we do would change that.
IBIS = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
    pytest.mark.filterwarnings("ignore:fetch_arrow_table"),
]

EAGER = ["pandas", "pandas-pyarrow", "pandas-nullable", "polars", "pyarrow", "dict"]
LAZY = [
    pytest.param("polars-lazy"),
    pytest.param("duckdb"),
    pytest.param("pyspark", marks=pytest.mark.spark),
    pytest.param("ibis-duckdb", marks=IBIS),
    pytest.param("ibis-postgres", marks=[*IBIS, pytest.mark.postgres]),
]


@pytest.fixture(params=[*EAGER, *LAZY])
def constructor(request: pytest.FixtureRequest) -> Constructor:
    """Makes a table of each backend from columns."""
    found: Constructor = request.getfixturevalue(f"make_{request.param.replace('-', '_')}")
    return found


@pytest.fixture(params=LAZY)
def lazy_constructor(request: pytest.FixtureRequest) -> Constructor:
    """Makes a table of each engine from columns."""
    found: Constructor = request.getfixturevalue(f"make_{request.param.replace('-', '_')}")
    return found


@pytest.fixture(scope="session")
def make_dict() -> Constructor:
    return dict


@pytest.fixture(scope="session")
def make_pyarrow() -> Constructor:
    pa = pytest.importorskip("pyarrow")
    return lambda data: pa.table(data)


@pytest.fixture(scope="session")
def make_pandas() -> Constructor:
    pd = pytest.importorskip("pandas")
    return lambda data: pd.DataFrame(data)


@pytest.fixture(scope="session")
def make_pandas_pyarrow(make_pyarrow: Constructor) -> Constructor:
    pd = pytest.importorskip("pandas")
    return lambda data: make_pyarrow(data).to_pandas(types_mapper=pd.ArrowDtype)


@pytest.fixture(scope="session")
def make_pandas_nullable() -> Constructor:
    pd = pytest.importorskip("pandas")
    return lambda data: pd.DataFrame({name: pd.array(v) for name, v in data.items()})


@pytest.fixture(scope="session")
def make_polars() -> Constructor:
    pl = pytest.importorskip("polars")
    return lambda data: pl.DataFrame(data)


@pytest.fixture(scope="session")
def make_polars_lazy() -> Constructor:
    pl = pytest.importorskip("polars")
    return lambda data: pl.LazyFrame(data)


@pytest.fixture(scope="session")
def make_duckdb(make_pyarrow: Constructor) -> Iterator[Constructor]:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()

    def make(data: Table) -> Any:
        name = f"t{next(NUMBERS)}"
        arrow = make_pyarrow(data)
        connection.register("given", arrow)
        connection.execute(f"CREATE TABLE {name} AS FROM given")
        connection.unregister("given")
        return connection.table(name)

    yield make
    connection.close()


@pytest.fixture(scope="session")
def make_ibis_duckdb(make_pyarrow: Constructor) -> Iterator[Constructor]:
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("duckdb")
    connection = ibis.duckdb.connect()

    def make(data: Table) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return connection.create_table(f"t{next(NUMBERS)}", make_pyarrow(data))

    yield make
    connection.disconnect()


@pytest.fixture(scope="session")
def make_ibis_sqlite(make_pyarrow: Constructor) -> Iterator[Constructor]:
    """A database that has neither NaN nor a path of its own: it answers in SQL."""
    ibis = pytest.importorskip("ibis")
    connection = ibis.sqlite.connect()

    def make(data: Table) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return connection.create_table(f"t{next(NUMBERS)}", make_pyarrow(data))

    yield make
    connection.disconnect()


@pytest.fixture(scope="session")
def make_pyspark(make_pyarrow: Constructor) -> Iterator[Constructor]:
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers must have NumPy and PyArrow
    session = (
        sql.SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        # For a minute of small queries, compiling well costs more than it saves: half of all time.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")

    def make(data: Table) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return session.createDataFrame(signed(make_pyarrow(data)))

    yield make
    session.stop()


@pytest.fixture(scope="session")
def make_ibis_postgres(postgres: str, make_pyarrow: Constructor) -> Iterator[Constructor]:
    ibis = pytest.importorskip("ibis")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        connection = ibis.connect(postgres)

    def make(data: Table) -> Any:
        # Ibis cannot insert into columns with odd names: they are renamed afterwards.
        plain = [name if name.isidentifier() else f"odd{i}" for i, name in enumerate(data)]
        table = f"t{next(NUMBERS)}"
        arrow = signed(make_pyarrow(data)).rename_columns(plain)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            connection.create_table(table, arrow)
            for old, new in zip(plain, data, strict=True):
                if old != new:
                    quoted = new.replace('"', '""')
                    connection.raw_sql(
                        f'ALTER TABLE {table} RENAME COLUMN "{old}" TO "{quoted}"'
                    ).close()
            connection.con.commit()
            return connection.table(table)

    yield make
    connection.disconnect()


def signed(table: Any) -> Any:
    """The same table without unsigned integers, which Spark and PostgreSQL do not have."""
    import pyarrow as pa

    fields = [
        pa.field(f.name, pa.int64() if pa.types.is_unsigned_integer(f.type) else f.type)
        for f in table.schema
    ]
    return table.cast(pa.schema(fields))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a real PostgreSQL server on loopback, with nothing in it."""
    pytest.importorskip("psycopg")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    path = Path(shutil.which("postgres") or (found[-1] if found else ""))
    if not path.is_file():
        pytest.skip("PostgreSQL is not installed")
    from isthmus_joint.transport.certificates import free_port

    # The server refuses to run as root, and must not outlive tests that are killed.
    become = [] if shutil.which("setpriv") is None else ["setpriv", "--pdeathsig=INT"]
    home = Path(tempfile.mkdtemp(prefix="isthmus-postgres-"))
    try:
        if os.getuid() == 0:
            shutil.chown(home, "postgres")
            become += ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
        data, port = str(home / "data"), free_port()
        make = [*become, str(path.with_name("initdb")), "-D", data, "-U", "tester", "-A", "trust"]
        subprocess.run([*make, "-N"], cwd=home, check=True, capture_output=True, timeout=120)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": home,
            "fsync": "off",
            "shared_buffers": "64MB",
            "max_connections": 20,
        }
        options = [text for key, value in settings.items() for text in ("-c", f"{key}={value}")]
        with (home / "log").open("wb") as log:
            server = subprocess.Popen(
                [*become, str(path), "-D", data, *options], cwd=home, stdout=log, stderr=log
            )
        address = f"postgres://tester@127.0.0.1:{port}/postgres"
        try:
            wait_for(address, server, home / "log")
            yield address
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=60)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers."""
    import psycopg

    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"PostgreSQL did not start: {log.read_text()}")


@pytest.fixture
def discrete_data() -> Table:
    """Columns of every discrete type."""
    rng, n = np.random.default_rng(1), 300
    return {
        "text": rng.choice(["b", "a", "ç", "it's"], n, p=[0.4, 0.3, 0.2, 0.1]),
        "zahl": rng.integers(-2, 2, n),
        "truth": rng.random(n) < 0.3,
        "code": rng.integers(0, 3, n).astype(np.uint8),
    }


@pytest.fixture
def continuous_data() -> Table:
    """Columns of every continuous type, some far from zero."""
    rng, n = np.random.default_rng(2), 300
    x = rng.normal(size=n)
    return {
        "x": 1e6 + 1e-2 * x,
        "y é": 2 * x + rng.normal(size=n),
        "small": rng.normal(size=n).astype(np.float32),
        "many": rng.integers(0, 1000, n),
    }


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A shell has its background jobs ignore SIGINT; then Python does so too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
