"""The coordinator's end of Flower: a SuperLink, and the app that carries frames."""

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
from isthmus.parties.transport.children import Child, flower_environment, flower_program
from isthmus.parties.transport.sockets import LENGTH, socket_path

NAME = "isthmus"
STARTUP = 60.0
"""Seconds that Flower's programs have to start."""

PIECE = 2**20


@final
class Link:
    """Runs ``flower-superlink`` with TLS and authentication of nodes, and the app on it.

    What ended is started again: nodes stay registered, and the app is run anew. Frames that were
    under way are lost; the protocol knows how to live with that.

    Parameters
    ----------
    state
        A folder for Flower's database, keys of nodes and logs.
    host, port
        Where to listen.
    certificates
        Files of the authority's certificate, the server's, and its private key.
    nodes
        The public key of each site's node, in OpenSSH's form.
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
        self._leader: Child | None = None
        self._child = Child(
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
        """The numbers of nodes that were registered; without all of them, all begins anew."""
        file, database = self._state / "nodes.json", self._state / "superlink.db"
        if file.exists() and database.exists():
            found: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
            if {n: v["key"] for n, v in found.items()} == self._keys:
                return {n: v["node"] for n, v in found.items()}
        for path in (file, database):
            path.unlink(missing_ok=True)
        return {}

    # --- processes ----------------------------------------------------------------------------

    def tend(self) -> None:
        """Start what is not there: the SuperLink, and the app on it."""
        self._accept()
        fresh = self._child.tend()
        if fresh:
            self._drop()
            self._await_port()
            if not self.nodes:
                self._register()
            self._retry = 0.0
        if self._child.running and self._connection is None and time.monotonic() > self._retry:
            self._retry = time.monotonic() + STARTUP
            self._run()

    def _await_port(self) -> None:
        end = time.monotonic() + STARTUP
        while time.monotonic() < end:
            if not self._child.running:
                break
            try:
                self._greet()
                return
            except ssl.SSLCertVerificationError as error:
                raise FederationError(
                    f"The certificate of this coordinator cannot be used: {error.verify_message}. "
                    "Make new ones with 'isthmus coordinator new', and send the sites ca.crt."
                ) from error
            except OSError:
                time.sleep(0.2)
        raise FederationError(
            f"The program flower-superlink did not start (it ended with {self._child.code}). "
            f"Its log is {self._state / 'superlink.log'}; is the port {self._port} free?"
        )

    def _greet(self) -> None:
        """Connect as a site does, and see that the certificate is good."""
        context = ssl.create_default_context(cafile=str(self._authority))
        with (
            socket.create_connection(("127.0.0.1", self._port), 5.0) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1"),
        ):
            return

    def _flwr(self, *arguments: str) -> dict[str, Any]:
        """Run Flower's command line and read what it says."""
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
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            found = {}
        if not found.get("success"):
            said = (done.stdout + done.stderr).decode(errors="replace")[-500:]
            raise FederationError(f"Flower's command {arguments[0]!r} failed: {said}")
        return found

    def _register(self) -> None:
        found = {}
        for name, key in self._keys.items():
            file = self._state / "node.pub"
            file.write_text(key + "\n", encoding="utf-8")
            node = self._flwr("supernode", "register", str(file))["node-id"]
            found[name] = {"key": key, "node": str(node)}
        beside = self._state / "nodes.new"
        beside.write_text(json.dumps(found), encoding="utf-8")
        beside.replace(self._state / "nodes.json")
        self.nodes = {n: v["node"] for n, v in found.items()}

    def _run(self) -> None:
        app = self._state / "app"
        shutil.rmtree(app, ignore_errors=True)
        shutil.copytree(
            Path(__file__).parent / "relay", app, ignore=shutil.ignore_patterns("__pycache__")
        )
        number = self._flwr("run", str(app))["run-id"]
        if self._leader is not None:
            self._leader.stop()
        beside = self._environment | {"PYTHONPATH": str(Path(__file__).parent / "relay")}
        command = [sys.executable, "-m", "isthmus_relay.leader", f"127.0.0.1:{self._port}"]
        command += [str(self._authority), str(self._secret), str(self._path), str(number)]
        self._leader = Child(command, beside, self._state / "leader.log")
        self._leader.tend()

    def stop(self) -> None:
        """End all."""
        if self._connection is not None:
            self.say({"stop": True})
        self._drop()
        if self._leader is not None:
            self._leader.stop()
        self._listener.close()
        self._path.unlink(missing_ok=True)
        self._child.stop()

    # --- the app's connection -------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the app is there."""
        return self._connection is not None

    def _accept(self) -> None:
        try:
            found, _ = self._listener.accept()
        except (BlockingIOError, TimeoutError):
            return
        self._drop()
        self._connection = found

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._buffer.clear()

    def say(self, head: Mapping[str, object], data: bytes = b"") -> bool:
        """Tell the app; whether it was there."""
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

    def hear(self, seconds: float) -> Sequence[tuple[dict[str, Any], bytes]]:
        """What the app says within so many seconds, or earlier as soon as it says something."""
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
        found = []
        start = 2 * LENGTH.size
        while len(self._buffer) >= start:
            head, body = (LENGTH.unpack_from(self._buffer, at)[0] for at in (0, LENGTH.size))
            end = start + head + body
            if len(self._buffer) < end:
                break
            plain = json.loads(self._buffer[start : start + head])
            found.append((plain, bytes(self._buffer[start + head : end])))
            del self._buffer[:end]
        return found
