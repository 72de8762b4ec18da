"""The wire protocol by hand: messages that no driver would send, and a look at every byte that comes back."""

import itertools
import socket
import struct
import zlib

import bson
from bson import SON

OP_REPLY, OP_UPDATE, OP_INSERT, OP_QUERY, OP_GET_MORE, OP_DELETE, OP_KILL_CURSORS = 1, 2001, 2002, 2004, 2005, 2006, 2007
OP_COMPRESSED, OP_MSG = 2012, 2013
CHECKSUM_PRESENT, MORE_TO_COME, EXHAUST_ALLOWED = 1, 2, 1 << 16
NOOP, SNAPPY, ZLIB, ZSTD = 0, 1, 2, 3

_ids = itertools.count(1000)

_table = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = (_c >> 1) ^ (0x82F63B78 if _c & 1 else 0)
    _table.append(_c)


def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c = (c >> 8) ^ _table[(c ^ b) & 0xFF]
    return c ^ 0xFFFFFFFF


def message(opcode, body, request_id=None, response_to=0, length=None):
    """A message with its header; `length` lies about the size."""
    request_id = next(_ids) if request_id is None else request_id
    return struct.pack("<iiii", 16 + len(body) if length is None else length, request_id, response_to, opcode) + body


def cstring(text):
    return text.encode() + b"\0"


def kind0(document):
    return b"\0" + (document if isinstance(document, bytes) else bson.encode(document))


def kind1(name, documents):
    body = cstring(name) + b"".join(bson.encode(d) for d in documents)
    return b"\1" + struct.pack("<i", len(body) + 4) + body


def op_msg(document=None, sequences=(), flags=0, checksum=None, sections=None, request_id=None):
    """`sections` replaces document and sequences by raw bytes. `checksum`: True computes it, a number is sent as it is."""
    if sections is None:
        sections = (kind0(document) if document is not None else b"") + b"".join(kind1(n, d) for n, d in sequences)
    if checksum is not None:
        flags |= CHECKSUM_PRESENT
    body = struct.pack("<I", flags) + sections
    request_id = next(_ids) if request_id is None else request_id
    if checksum is None:
        return message(OP_MSG, body, request_id)
    whole = message(OP_MSG, body, request_id, length=16 + len(body) + 4)
    return whole + struct.pack("<I", crc32c(whole) if checksum is True else checksum)


def op_query(ns, query, flags=0, skip=0, count=-1, request_id=None):
    body = struct.pack("<i", flags) + cstring(ns) + struct.pack("<ii", skip, count)
    return message(OP_QUERY, body + (query if isinstance(query, bytes) else bson.encode(query)), request_id)


def compress(kind, data):
    if kind == NOOP:
        return data
    if kind == SNAPPY:
        import snappy

        return bytes(snappy.compress(data))
    if kind == ZLIB:
        return zlib.compress(data)
    from backports import zstd

    return zstd.compress(data)


def decompress(kind, data):
    if kind == NOOP:
        return data
    if kind == SNAPPY:
        import snappy

        return bytes(snappy.uncompress(data))
    if kind == ZLIB:
        return zlib.decompress(data)
    from backports import zstd

    return zstd.decompress(data)


def op_compressed(inner, kind, size=None, payload=None, opcode=None):
    """Wraps a whole message. `size` and `opcode` lie about the original, `payload` replaces the compressed bytes."""
    _, request_id, response_to, original = struct.unpack_from("<iiii", inner)
    body = inner[16:]
    head = struct.pack("<iiB", original if opcode is None else opcode, len(body) if size is None else size, kind)
    return message(OP_COMPRESSED, head + (compress(kind, body) if payload is None else payload), request_id, response_to)


class Reply:
    """A message from the server, taken apart. `compressor` is None if it came uncompressed."""

    def __init__(self, data):
        self.length, self.request_id, self.response_to, self.opcode = struct.unpack_from("<iiii", data)
        self.compressor = None
        body = data[16:]
        if self.opcode == OP_COMPRESSED:
            self.opcode, size, self.compressor = struct.unpack_from("<iiB", body)
            body = decompress(self.compressor, body[9:])
            assert len(body) == size
        if self.opcode == OP_MSG:
            (self.flags,) = struct.unpack_from("<I", body)
            end = len(body)
            if self.flags & CHECKSUM_PRESENT:
                end -= 4
                assert struct.unpack_from("<I", body, end)[0] == crc32c(data[:-4])
            assert body[4] == 0, "a reply has one section of kind 0"
            self.raw = body[5:end]
            assert struct.unpack_from("<i", self.raw)[0] == len(self.raw), "nothing behind the document"
            self.documents = [bson.decode(self.raw, bson.CodecOptions(document_class=SON))]
        elif self.opcode == OP_REPLY:
            self.flags, self.cursor_id, self.starting_from, self.returned = struct.unpack_from("<iqii", body)
            self.documents = bson.decode_all(body[20:], bson.CodecOptions(document_class=SON))
            assert len(self.documents) == self.returned
        else:
            raise AssertionError(f"a reply with opcode {self.opcode}")

    @property
    def doc(self):
        return self.documents[0]

    @property
    def more_to_come(self):
        return bool(self.flags & MORE_TO_COME)


class Closed(Exception):
    """The server closed the connection."""


class Wire:
    """One connection. Nothing is sent that a test does not ask for."""

    def __init__(self, port, timeout=10):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # seen by receive()

    def _exactly(self, n):
        data = b""
        while len(data) < n:
            try:
                piece = self.sock.recv(n - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise Closed(f"after {len(data)} of {n} bytes")
            data += piece
        return data

    def receive(self):
        head = self._exactly(16)
        (length,) = struct.unpack_from("<i", head)
        assert 16 <= length <= 48000000 + 16384 + 16
        return Reply(head + self._exactly(length - 16))

    def silent(self, seconds=0.3):
        """True if nothing comes for that long."""
        old = self.sock.gettimeout()
        self.sock.settimeout(seconds)
        try:
            return len(self.sock.recv(1, socket.MSG_PEEK)) < 0
        except TimeoutError:
            return True
        finally:
            self.sock.settimeout(old)

    def closed(self):
        """True once the server has closed the connection without another byte."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True

    def ask(self, data):
        self.send(data)
        return self.receive()

    def command(self, db, document, **kw):
        document = SON(document)
        document["$db"] = db
        return self.ask(op_msg(document, **kw)).doc
