"""The coordinator's side of Flower: the SuperLink, and the app that relays messages."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from isthmus.errors import FederationError
from isthmus.joint.records.private_files import write_private
from isthmus_flower.programs import (
    APP,
    app_environment,
    flower_environment,
    flower_program,
)
from isthmus_flower.sockets import LENGTH, receive, socket_path
from isthmus_flower.supervised_process import SupervisedProcess

NAME = "isthmus"
STARTUP = 180.0
"""Seconds for a program of Flower to start, on a machine that does much else."""

ANOTHER_RUN = 60.0
"""Seconds until the app is started once more if it does not connect."""

PIECE = 2**20
GREETING = 5.0
"""Seconds for an app that has connected to tell the number of its run."""

LONGEST_NUMBER = 64
REMOVED = {"unregistered", "deleted"}
"""States of nodes that Flower lists and does not let in."""

REVIEW = 60.0
"""Seconds between two checks of whether missing nodes are still registered."""


@final
class FlowerSuperLink:
    """Runs ``flower-superlink`` with TLS and authenticated nodes, and our app on it.

    Anyone who can connect to a SuperLink can submit an app. ``flower-superexec`` starts a process
    for each, but the only app that runs in it is our own, and only our own runs are listened to.

    A process that ended is restarted. Nodes stay registered, and the app is started again. Messages
    in transit are lost, which the protocol tolerates. Flower does not register the key of a node
    that somebody has removed a second time. The SuperLink then starts with an empty database.

    Parameters
    ----------
    state
        A folder for Flower's database, the keys of nodes, and logs.
    host, port
        The address to listen on.
    certificates
        Files of the certificate of the coordinator, and of its private key.
    nodes
        The public key of each site's node, in OpenSSH format.
    """

    def __init__(
        self,
        state: Path,
        host: str,
        port: int,
        certificates: tuple[Path, Path],
        nodes: Mapping[str, str],
    ) -> None:
        self._state = state = state.absolute()
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._port = port
        self._certificate, key = (p.resolve() for p in certificates)
        self._keys = dict(nodes)
        self._environment = flower_environment(state / "flower")
        self.nodes = self._known()
        self._secret = state / "secret"
        self._secret.unlink(missing_ok=True)
        write_private(self._secret, secrets.token_bytes(32))
        self._server = SupervisedProcess(
            [
                flower_program("flower-superlink"),
                *("--isolation", "process"),
                *("--superexec-auth-secret-file", str(self._secret)),
                *("--host", host, "--port", str(port)),
                *("--ssl-ca-certfile", str(self._certificate)),
                *("--ssl-certfile", str(self._certificate), "--ssl-keyfile", str(key)),
                "--enable-supernode-auth",
                "--disable-runtime-dependency-installation",
                *("--database", str(state / "superlink.db")),
            ],
            self._environment,
            state / "superlink.log",
        )
        self._path = socket_path(state)
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._path))
        self._path.chmod(0o600)
        self._listener.listen(8)
        self._listener.settimeout(0.0)
        self._executor = SupervisedProcess(
            [
                flower_program("flower-superexec"),
                *("--runtime-api-address", f"127.0.0.1:{port}"),
                *("--root-certificates", str(self._certificate)),
                *("--superexec-auth-secret-file", str(self._secret)),
            ],
            app_environment(state / "flower", "flwr-serverapp", self._path),
            state / "relay.log",
        )
        self._runs: set[str] = set()
        self._connection: socket.socket | None = None
        self._buffer = bytearray()
        self._retry = 0.0
        self._reviewed = time.monotonic()

    def _known(self) -> dict[str, str]:
        """Return the ids of registered nodes; unless all are known, clear the database."""
        file, database = self._state / "nodes.json", self._state / "superlink.db"
        if file.exists() and database.exists():
            registered: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
            if {n: v["key"] for n, v in registered.items()} == self._keys:
                return {n: v["node"] for n, v in registered.items()}
        self._forget()
        return {}

    def _forget(self) -> None:
        """Delete what Flower knows about nodes and runs."""
        for path in (self._state / "nodes.json", *self._state.glob("superlink.db*")):
            path.unlink(missing_ok=True)

    # --- processes ----------------------------------------------------------------------------

    def ensure_running(self) -> None:
        """Start the SuperLink and the app on it, if they are not running."""
        self._accept()
        fresh = self._server.ensure_running()
        if fresh:
            self._drop()
            self._await_port()
            if not self.nodes:
                self._register()
            elif not self._all_registered():
                self.start_over()
                return
            self._retry = 0.0
        if self._server.running:
            self._executor.ensure_running()
        if self._server.running and self._connection is None and time.monotonic() > self._retry:
            self._run()
            self._retry = time.monotonic() + ANOTHER_RUN

    def review(self) -> None:
        """Start over if a node that does not connect was removed, checked once in a while."""
        if self._server.running and time.monotonic() > self._reviewed + REVIEW:
            self._reviewed = time.monotonic()
            with suppress(FederationError):  # Flower was too busy to tell
                if not self._all_registered():
                    self.start_over()

    def _all_registered(self) -> bool:
        listed = self._flwr("supernode", "list")["nodes"]
        present = {str(n["node-id"]) for n in listed if n["status"] not in REMOVED}
        return set(self.nodes.values()) <= present

    def start_over(self) -> None:
        """Stop the SuperLink and forget all nodes; `ensure_running` registers them again."""
        self._drop()
        self._server.stop()
        self._forget()
        self.nodes = {}

    def _await_port(self) -> None:
        end = time.monotonic() + STARTUP
        while time.monotonic() < end:
            if not self._server.running:
                break
            try:
                self._greet()
                return
            except ssl.SSLCertVerificationError as error:
                raise FederationError(
                    f"The certificate of this coordinator is not valid: {error.verify_message}. "
                    "Create a new one with 'isthmus coordinator new', and draft a new study."
                ) from error
            except OSError:
                time.sleep(0.2)
        raise FederationError(
            f"The program flower-superlink did not start (exit code {self._server.code}). Check "
            f"that the port {self._port} is free, and read {self._state / 'superlink.log'}."
        )

    def _greet(self) -> None:
        """Connect as a site does, to verify the certificate."""
        context = ssl.create_default_context(cafile=str(self._certificate))
        with (
            socket.create_connection(("127.0.0.1", self._port), 5.0) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1"),
        ):
            return

    def _flwr(self, *arguments: str) -> dict[str, Any]:
        """Run a command of Flower and return its output."""
        home = self._state / "flower"
        home.mkdir(exist_ok=True)
        address = f"127.0.0.1:{self._port}"
        (home / "config.toml").write_text(
            f"[superlink.{NAME}]\naddress = {json.dumps(address)}\n"
            f"root-certificates = {json.dumps(str(self._certificate))}\n",
            encoding="utf-8",
        )
        try:
            done = subprocess.run(
                [flower_program("flwr"), *arguments, NAME, "--format", "json"],
                env=self._environment,
                cwd=self._state,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=STARTUP,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise FederationError(
                f"The command 'flwr {arguments[0]}' did not end within {STARTUP:.0f} seconds."
            ) from error
        try:
            output: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            output = {}
        if not output.get("success"):
            text = (done.stdout + done.stderr).decode(errors="replace")[-500:]
            raise FederationError(f"The command 'flwr {arguments[0]}' failed: {text}")
        return output

    def _register(self) -> None:
        registered = {}
        for name, key in self._keys.items():
            file = self._state / "node.pub"
            file.write_text(key + "\n", encoding="utf-8")
            node = self._flwr("supernode", "register", str(file))["node-id"]
            registered[name] = {"key": key, "node": str(node)}
        beside = self._state / "nodes.new"
        beside.write_text(json.dumps(registered), encoding="utf-8")
        beside.replace(self._state / "nodes.json")
        self.nodes = {n: v["node"] for n, v in registered.items()}

    def _run(self) -> None:
        app = self._state / "app"
        shutil.rmtree(app, ignore_errors=True)
        shutil.copytree(APP, app, ignore=shutil.ignore_patterns("__pycache__"))
        self._runs.add(str(self._flwr("run", str(app))["run-id"]))

    def stop(self) -> None:
        """Stop all processes."""
        if self._connection is not None:
            self.send({"stop": True})
        self._drop()
        self._executor.stop()
        self._listener.close()
        self._path.unlink(missing_ok=True)
        self._server.stop()

    # --- the connection of the relay app ------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the relay app is connected."""
        return self._connection is not None

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, TimeoutError):
            return
        if self._is_ours(connection):
            self._drop()
            self._connection = connection
        else:
            connection.close()

    def _is_ours(self, connection: socket.socket) -> bool:
        """Return whether an app belongs to a run that this coordinator has started."""
        connection.settimeout(GREETING)
        try:
            number = receive(connection, LONGEST_NUMBER)
        except (OSError, ValueError):
            return False
        return number is not None and number.decode(errors="replace") in self._runs

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._buffer.clear()

    def send(self, head: Mapping[str, object], data: bytes = b"") -> bool:
        """Send a message to the relay app; return whether it is connected."""
        if self._connection is None:
            return False
        text = json.dumps(head).encode()
        self._connection.settimeout(STARTUP)
        try:
            self._connection.sendall(LENGTH.pack(len(text)) + LENGTH.pack(len(data)) + text + data)
        except OSError:
            self._drop()
            return False
        return True

    def receive(self, seconds: float) -> Sequence[tuple[dict[str, Any], bytes]]:
        """Return messages of the relay app; wait for at most this many seconds."""
        self._accept()
        if self._connection is None:
            time.sleep(min(seconds, 0.2))
            return ()
        self._connection.settimeout(max(seconds, 0.001))
        try:
            part = self._connection.recv(PIECE)
            if not part:
                self._drop()
            self._buffer += part
        except TimeoutError:
            pass
        except OSError:
            self._drop()
        return self._items()

    def _items(self) -> list[tuple[dict[str, Any], bytes]]:
        items = []
        start = 2 * LENGTH.size
        while len(self._buffer) >= start:
            head, body = (LENGTH.unpack_from(self._buffer, at)[0] for at in (0, LENGTH.size))
            end = start + head + body
            if len(self._buffer) < end:
                break
            plain = json.loads(self._buffer[start : start + head])
            items.append((plain, bytes(self._buffer[start + head : end])))
            del self._buffer[:end]
        return items
