"""The coordinator's side of Flower: the SuperLink, and the app that relays messages."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from isthmus.errors import FederationError
from isthmus.parties.certificates import write_private
from isthmus.parties.transport.flower.programs import flower_environment, flower_program
from isthmus.parties.transport.sockets import LENGTH, socket_path
from isthmus.parties.transport.supervised_process import SupervisedProcess

NAME = "isthmus"
STARTUP = 60.0
"""Seconds for Flower's programs to start."""

PIECE = 2**20


@final
class FlowerSuperLink:
    """Runs ``flower-superlink`` with TLS and authenticated nodes, and the relay app on it.

    A process that ended is restarted. Nodes stay registered, and the app is started again. Messages
    in transit are lost, which the protocol tolerates.

    Parameters
    ----------
    state
        A folder for Flower's database, the keys of nodes, and logs.
    host, port
        The address to listen on.
    certificates
        Files of the authority's certificate, the server's certificate, and its private key.
    nodes
        The public key of each site's node, in OpenSSH format.
    """

    def __init__(
        self,
        state: Path,
        host: str,
        port: int,
        certificates: tuple[Path, Path, Path],
        nodes: Mapping[str, str],
    ) -> None:
        self._state = state = state.absolute()
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._port = port
        self._authority, certificate, key = (p.resolve() for p in certificates)
        self._keys = dict(nodes)
        self._environment = flower_environment(state / "flower")
        self.nodes = self._known()
        self._secret = state / "secret"
        self._secret.unlink(missing_ok=True)
        write_private(self._secret, secrets.token_bytes(32))
        self._relay: SupervisedProcess | None = None
        self._server = SupervisedProcess(
            [
                flower_program("flower-superlink"),
                *("--isolation", "process"),
                *("--superexec-auth-secret-file", str(self._secret)),
                *("--host", host, "--port", str(port)),
                *("--ssl-ca-certfile", str(self._authority)),
                *("--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)),
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
        self._listener.listen(1)
        self._listener.settimeout(0.0)
        self._connection: socket.socket | None = None
        self._buffer = bytearray()
        self._retry = 0.0

    def _known(self) -> dict[str, str]:
        """Return the ids of registered nodes; unless all are known, clear the database."""
        file, database = self._state / "nodes.json", self._state / "superlink.db"
        if file.exists() and database.exists():
            registered: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
            if {n: v["key"] for n, v in registered.items()} == self._keys:
                return {n: v["node"] for n, v in registered.items()}
        for path in (file, database):
            path.unlink(missing_ok=True)
        return {}

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
            self._retry = 0.0
        if self._server.running and self._connection is None and time.monotonic() > self._retry:
            self._retry = time.monotonic() + STARTUP
            self._run()

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
                    "Create new ones with 'isthmus coordinator new', and send ca.crt to the sites."
                ) from error
            except OSError:
                time.sleep(0.2)
        raise FederationError(
            f"The program flower-superlink did not start (exit code {self._server.code}). Check "
            f"that the port {self._port} is free, and read {self._state / 'superlink.log'}."
        )

    def _greet(self) -> None:
        """Connect as a site does, to verify the certificate."""
        context = ssl.create_default_context(cafile=str(self._authority))
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
            f"root-certificates = {json.dumps(str(self._authority))}\n",
            encoding="utf-8",
        )
        done = subprocess.run(
            [flower_program("flwr"), *arguments, NAME, "--format", "json"],
            env=self._environment,
            cwd=self._state,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=2 * STARTUP,
            check=False,
        )
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
        shutil.copytree(
            Path(__file__).parent / "relay", app, ignore=shutil.ignore_patterns("__pycache__")
        )
        number = self._flwr("run", str(app))["run-id"]
        if self._relay is not None:
            self._relay.stop()
        beside = self._environment | {"PYTHONPATH": str(Path(__file__).parent / "relay")}
        command = [
            sys.executable,
            "-m",
            "isthmus_relay.coordinator_runner",
            f"127.0.0.1:{self._port}",
        ]
        command += [str(self._authority), str(self._secret), str(self._path), str(number)]
        self._relay = SupervisedProcess(command, beside, self._state / "relay.log")
        self._relay.ensure_running()

    def stop(self) -> None:
        """Stop all processes."""
        if self._connection is not None:
            self.send({"stop": True})
        self._drop()
        if self._relay is not None:
            self._relay.stop()
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
        self._drop()
        self._connection = connection

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
        """Return messages of the relay app, as soon as there are any or after so many seconds."""
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
