"""TLS whose certificate ends while a dataset is read or written, as the server's next connections show."""

from __future__ import annotations

import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

pytest.importorskip("cryptography")
pytest.importorskip("obstore")
pytest.importorskip("pyarrow")
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

sys.path.insert(0, str(Path(__file__).parents[2] / "faults"))

from servers import operations, trials
from servers.objects import Answer, Objects, Request
from servers.server import LyingServer, Wire

ENDED = timedelta(seconds=-2)
NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "penstock's test")])


class Authority:
    """An authority of the test: its own certificate is a file, and it signs others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = self._begun(NAME, self._key.public_key(), timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file = folder / "ca.pem"
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _begun(self, subject: Any, key: Any, lasts: timedelta) -> Any:
        now = datetime.now(UTC)
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(NAME).public_key(key)
        made = made.serial_number(x509.random_serial_number())
        return made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + lasts)

    def certify(self, lasts: timedelta, host: str = "127.0.0.1") -> Path:
        """A file with a key and its certificate, for so long."""
        import ipaddress

        key = ec.generate_private_key(ec.SECP256R1())
        made = self._begun(x509.Name([]), key.public_key(), lasts)
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
        signed = made.add_extension(names, critical=True).sign(self._key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = self.folder / "server.pem"
        file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
        return file


def ends(wire: Wire, request: Request, answer: Answer) -> None:
    """Each request has a connection of its own."""
    wire.reply(Answer(answer.status, {**answer.headers, "Connection": "close"}, answer.body))
    wire.end()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def context(authority: Authority) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(authority.certify(timedelta(hours=1)))
    made.num_tickets = 0  # a session that is resumed shows no certificate
    return made


@pytest.mark.parametrize("reader", ["http", "python"])
def test_a_certificate_that_ends_is_told_and_a_new_one_is_taken(
    authority: Authority, context: ssl.SSLContext, reader: str
) -> None:
    with LyingServer(Objects(trials.files()), context).running() as server:
        server.lie = lambda request: ends
        storage = penstock.Storage(ca_file=authority.file, deadline=1)
        view = penstock.open(f"{server.address}/data/corpus", storage=storage).windows(64)
        with penstock.Loader(view, 4, seed=1, reader=reader, prefetch=1, framework="numpy") as loader:
            next(loader)
            context.load_cert_chain(authority.certify(ENDED))
            with pytest.raises(penstock.IoError, match="xpired") as error:
                for _ in range(20):
                    next(loader)
            assert f"{server.address}/data/corpus/" in str(error.value)
            position = loader.position
            context.load_cert_chain(authority.certify(timedelta(hours=1)))
            assert len(next(loader).indices) == 4 and loader.position == position + 4


def test_a_certificate_that_ends_is_told_by_a_writer(
    authority: Authority, context: ssl.SSLContext, tmp_path: Path
) -> None:
    with LyingServer(Objects({}), context).running() as server:
        server.lie = lambda request: ends
        at = operations.At(server.address, 1.0, tmp_path, server.objects, str(authority.file))
        out, options = "s3://data/out", {"storage": at.bucket(), "scratch": tmp_path}
        writer = penstock.Writer(out, {"token": "u2"}, metadata="json", **options)
        writer.append(token=np.arange(100), metadata={"n": 1})
        context.load_cert_chain(authority.certify(ENDED))
        with pytest.raises(penstock.IoError, match="xpired") as error:
            writer.commit()
        writer.abort()
        assert "s3://data/out" in str(error.value) and not server.objects.below("data/")
        context.load_cert_chain(authority.certify(timedelta(hours=1)))
        with penstock.Writer(out, {"token": "u2"}, metadata="json", overwrite=True, **options) as writer:
            writer.append(token=np.arange(100), metadata={"n": 1})
        assert penstock.verify(out, storage=at.bucket())


def test_a_certificate_of_another_host_and_of_nobody_are_told(authority: Authority, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.certify(timedelta(hours=1), host="127.0.0.2"))
    with LyingServer(Objects(trials.files()), context).running() as server:
        for ca_file, words in ((authority.file, "match"), (None, "self-signed|issuer|unknown authority|certificate")):
            storage = penstock.Storage(ca_file=ca_file, deadline=1)
            with pytest.raises(penstock.IoError, match=words) as error:
                penstock.open(f"{server.address}/data/corpus", storage=storage)
            assert f"{server.address}/data/corpus/dataset.json" in str(error.value)
    with LyingServer(Objects(trials.files())).running() as plain:
        address = plain.address.replace("http://", "https://")
        with pytest.raises(penstock.IoError, match=r"no connection|no answer that will do") as error:
            penstock.open(f"{address}/data/corpus", storage=penstock.Storage(deadline=1))
        assert f"{address}/data/corpus/dataset.json" in str(error.value)
