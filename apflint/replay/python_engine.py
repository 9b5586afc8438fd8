"""The engine without dependencies: it reads events with `json`, and stores requests in SQLite.

The other engines must give the same results.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_AUDIT_VALUE_BYTES, MAX_AUDIT_VALUE_PARTS, MAX_LINES_WITHOUT_EVENTS
from apflint.interrupts import defer_interrupt
from apflint.named_tuple import NamedTuple
from apflint.replay.bare_lines import LineUnwrapper
from apflint.replay.database_tables import close_on_error, create_log_tables
from apflint.replay.events import (
    DECISION,
    LATER_STAGES,
    QUEUE_WAIT,
    RECEIVED,
    STARTED,
    TOO_MANY_REQUESTS,
    AttributeTuple,
    find_problem,
    make_attributes,
    parse_time,
    parse_wait,
    read_attributes,
)
from apflint.replay.fast_lines import CanonicalLines, scan
from apflint.replay.found_instead import describe_found
from apflint.replay.loaded_log import Coverage, Log, UnreadableLine
from apflint.replay.request_timeouts import find_timeout
from apflint.replay.uri_namespace import find_namespace
from apflint.requests.json_lines import NO_EVENTS, describe_json_error
from apflint.requests.lenient_json import SPACES
from apflint.requests.log_wrappers import (
    MAX_DEPTH,
    PLAIN,
    find_field,
    find_list,
    find_prefix,
    is_bare,
    is_other_log,
    parse_json,
    split_batches,
    strip_prefix,
    unwrap,
    unwrap_list,
)
from apflint.requests.server_log import require_not_logged_request
from apflint.requests.split_lines import INCOMPLETE, SplitLines, is_part
from apflint.sources.audit_logs import Block, read_blocks
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

    from apflint.replay.database_tables import Row
    from apflint.replay.loaded_log import Wanted
    from apflint.requests.log_wrappers import Wrapper
    from apflint.sources.audit_logs import AuditLogFile

_ROWS_PER_INSERT = 10_000
_VALUES_PER_STATEMENT = 900
"""Maximum number of values in an INSERT statement. SQLite before 3.32 allows 999.

A statement with many rows takes half of the time of single statements.
"""
_MAX_REMEMBERED_SECONDS = 1_000_000
_CACHE_KIBIBYTES = 65_536
_SAMPLE_LINES = 100
_MAX_DESCRIBED_CHARACTERS = 100_000
_EVENT_START = b'{"kind":"Event"'


class OddRecord(NamedTuple):
    """A record of a list that another engine could not read."""

    text: str
    """JSON text of the record, in as many lists as there are wrappers around the record."""
    server: str
    """Name of the API server that the list states, or ""."""
    checksum: int
    """CRC-32 of the line that contains the list."""


class SqliteDatabase:
    """A temporary SQLite database. If the database exceeds the cache, SQLite writes it to a temporary file."""

    has_fast_windows = False
    is_distributed = False

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None)
        self.query(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
        self.query("PRAGMA synchronous = OFF")
        self.query("PRAGMA journal_mode = OFF")
        self.query("PRAGMA case_sensitive_like = ON")  # as in DuckDB and Spark
        self.query("BEGIN")  # never committed, because a COMMIT would write each page

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Run a statement, and return its rows."""
        return self._connection.execute(sql).fetchall()

    def stream(self, sql: str) -> Iterator[tuple[object, ...]]:
        """Run a statement, and return an iterator over its rows.

        The iterator is the cursor itself. A generator would try to close the cursor after an interrupt, which fails if
        the database is already closed.
        """
        return self._connection.execute(sql)

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Append rows to a table. If rows are shorter than the table, the remaining columns are NULL."""
        rows = list(rows)
        if rows:
            names = [f'"{name}"' for (name,) in self.query(f"SELECT name FROM pragma_table_info('{table}')")]
            width = len(rows[0])
            insert, row = f"INSERT INTO {table} ({', '.join(names[:width])}) VALUES ", f"({', '.join('?' * width)})"
            step = _VALUES_PER_STATEMENT // width
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                self._connection.execute(insert + ", ".join([row] * len(some)), [*chain.from_iterable(some)])

    def close(self) -> None:
        """Delete the database."""
        self._connection.close()


class EventReader:
    """Reads audit events from files. `store` receives the rows of the tables `request` and `received`."""

    def __init__(
        self,
        wanted: Wanted,
        namespaces: Collection[str],
        store: Callable[[str, list[Row]], object],
        hash_id: Callable[[str], object] = hash,
    ) -> None:
        """Create a reader. `namespaces` are the namespaces that FlowSchemas name.

        `hash_id` returns the stored value of an audit ID.
        """
        self.coverage = Coverage()
        self.tuples: list[AttributeTuple] = []
        self.servers: list[str] = []
        self._wanted = wanted
        self._wants_texts = any(wanted.texts) or wanted.calls
        self._counts = self.coverage.stages
        self.namespaces = namespaces
        self._hash_id = hash_id
        self._store = store
        self._rows: list[Row] = []
        self._received: list[Row] = []
        self._numbers: dict[Hashable, int] = {}
        """Index in `tuples` for each result of `read_attributes`."""
        self._canonical_lines = CanonicalLines(namespaces, self._find_number, hash_id, has_options=wanted.list_options)
        self._known_tuples: dict[AttributeTuple, int] = {}
        self._server_numbers: dict[str, int] = {}
        self._seconds: dict[str, int] = {}
        self._versions: set[tuple[object, object]] = set()
        """Pairs of `kind` and `apiVersion` that were validated."""
        self._file, self._line = "", 0
        self._first_number, self._first_line = 0, ""
        """The number and the beginning of the first line of the file that is not an event in a common form."""
        self._split_lines = SplitLines()
        self._unwrapper = LineUnwrapper(wanted.event_field)

    def read_file(
        self, file: AuditLogFile, report: Callable[[int], object] = lambda _: None, *, max_bytes: int | None = None
    ) -> None:
        """Read the events of a file. If `max_bytes` is given, read about this many bytes of an uncompressed file.

        `report` is called with the number of bytes of the file, before decompression, that were read since the previous
        call. Call `flush` after the last file: the last rows of a file stay in a buffer, so that one statement stores the
        rows of many small files.
        """
        self.read_file_blocks(file, read_blocks(file, report), max_bytes=max_bytes)

    def read_file_blocks(self, file: AuditLogFile, blocks: Iterator[Block], *, max_bytes: int | None = None) -> None:
        """Read the events in the blocks of a file, as `read_file` does."""
        self._file = file.name
        size = useless = 0
        self.coverage.files += 1
        server = self.server_number(file.server)
        blocks = self._join_value(blocks, server)
        number = 1
        self._first_line = ""
        records, rejected = self._count_records(), self.coverage.unreadable
        for block in blocks:
            before, unreadable, first = self._count_records(), self.coverage.unreadable, number
            if block.is_file_problem:
                self.coverage.damaged.append(UnreadableLine(file.name, number, block.problem))
            elif block.problem:
                self.coverage.reject(file.name, number, block.problem)
                number += 1
            else:
                number += self._read_lines(number, block.data, server)
                size += len(block.data)
            if self._count_records() > before:
                useless = 0
            else:  # a line may be a list with many unreadable items, so also consider the number of unreadable items
                useless += max(number - first, self.coverage.unreadable - unreadable)
            if useless > MAX_LINES_WITHOUT_EVENTS:
                reason = NO_EVENTS
                self.coverage.damaged.append(UnreadableLine(file.name, number, reason))
                break
            if max_bytes is not None and size >= max_bytes:
                self.coverage.beginning_of = file.name
                break
        for _ in range(self._split_lines.clear()):
            self._reject(INCOMPLETE)
        if self._count_records() == records and self.coverage.unreadable > rejected and self._first_line:
            self.coverage.without_events.append(
                UnreadableLine(file.name, self._first_number, describe_found(self._first_line))
            )

    def _count_records(self) -> int:
        """Return the number of values read so far: audit events, and other log records."""
        return self.coverage.stages.total() + self.coverage.other_records

    def read_odd_lines(self, file: AuditLogFile, lines: Iterable[str], records: Iterable[OddRecord] = ()) -> None:
        """Read lines, and records of lists, that another engine could not read. All of them are from `file`, in any order."""
        coverage = self.coverage
        self._file = file.name
        coverage.files += 1
        server, first = self.server_number(file.server), coverage.take_first_unreadable()
        reasons: dict[str, str] = {}
        for line in lines:
            self._read_line(0, line, server)
            if problem := coverage.take_first_unreadable():
                reasons[line] = problem.reason
        checksums: set[int] = set()
        for record in records:
            self._read_line(0, record.text, self.server_number(record.server) if record.server else server)
            if coverage.take_first_unreadable():
                checksums.add(record.checksum)
        coverage.unreadable += self._split_lines.clear()
        coverage.first_unreadable = first or self._find_first_unreadable(file, reasons, checksums)
        self.flush()

    def _find_first_unreadable(
        self, file: AuditLogFile, reasons: Mapping[str, str], checksums: Collection[int]
    ) -> UnreadableLine | None:
        """Return the first line of a file that is in `reasons`, or that has a checksum and contains an unreadable record.

        `reasons` maps unreadable lines to reasons.
        """
        texts = {line.encode(): reason for line, reason in reasons.items()}
        first = 1
        for block in read_blocks(file) if texts or checksums else ():
            for number, line in enumerate(block.data.split(b"\n"), first):
                reason = texts.get(line) or (self._find_problem(line) if zlib.crc32(line) in checksums else "")
                if reason:
                    return UnreadableLine(file.name, number, reason)
            first += 1 if block.problem else block.data.count(b"\n")
        return None

    def _find_problem(self, line: bytes) -> str:
        """Return why the first record of a line that is not an event is unreadable, or "" if there is no such record."""
        reader = EventReader(self._wanted, self.namespaces, lambda _table, _rows: None)
        reader._read_line(1, line, reader.server_number(""))
        problem = reader.coverage.first_unreadable
        return problem.reason if problem else ""

    def flush(self) -> None:
        """Store the rows that are still in the buffer.

        An interrupt is delayed, because otherwise rows could be both in the database and in the buffer.
        """
        for table, rows in (("request", self._rows), ("received", self._received)):
            if rows:
                with defer_interrupt():
                    self._store(table, rows)
                    rows.clear()

    def server_number(self, name: str) -> int:
        """Return the index of an API server in `servers`. If the server is new, append it."""
        number = self._server_numbers.setdefault(name, len(self.servers))
        if number == len(self.servers):
            self.servers.append(name)
        return number

    def _join_value(self, blocks: Iterator[Block], server: int) -> Iterator[Block]:
        """Read the file if its content is a single JSON value over several lines. Then yield no blocks.

        If the file has any other content, do not read it, but yield all of its blocks.
        """
        head: list[Block] = []
        size = 0
        for block in blocks:
            head.append(block)
            size += len(block.data)
            if (len(head) == 1 and not is_beginning(block.data)) or block.problem or size > MAX_AUDIT_VALUE_BYTES:
                break
        else:
            if head:
                head = [Block(b"".join(block.data for block in head))]
                try:
                    _check_size(head[0].data)
                    value = json.loads(head[0].data)
                except (UserError, ValueError, RecursionError):
                    pass
                else:
                    self._line = 1
                    self._read_value(value, server)
                    return
        yield from chain(head, blocks)

    def _read_lines(self, number: int, data: bytes, server: int) -> int:
        """Read the events of complete lines. `number` is the number of the first line. Return the number of lines."""
        if not data.endswith(b"\n"):
            data += b"\n"
        if data.startswith(_EVENT_START) or not self._read_wrapped(number, data, server):
            position, line = 0, number
            for start in self._read_events(data, server):
                line += data.count(b"\n", position, start)
                position = start
                self._read_line(line, data[start : data.index(b"\n", start)], server)
        if max(len(self._rows), len(self._received)) >= _ROWS_PER_INSERT:
            self.flush()
        return data.count(b"\n")

    def _read_wrapped(self, number: int, data: bytes, server: int) -> bool:
        """Read the lines if most lines are events in wrappers, and no line has only a part of an event.

        Return whether the lines were read.
        """
        lines = data.split(b"\n")[:-1]
        if self._unwrapper.unwrap(lines[:1]) == [None] or not self._split_lines.is_empty:
            return False
        found = self._unwrapper.unwrap(lines)
        left = [at for at, bare in enumerate(found) if bare is None]
        if any(is_part(lines[at].decode("utf-8", "replace")) for at in left):
            return False
        for name in dict.fromkeys(bare.server for bare in found if bare is not None):
            chosen = [(at, bare.text) for at, bare in enumerate(found) if bare is not None and bare.server == name]
            text = b"".join(line for _, event in chosen for line in (event, b"\n"))
            odd = self._read_events(text, self.server_number(name) if name else server)
            if odd:
                starts = accumulate((len(event) + 1 for _, event in chosen), initial=0)
                places = dict(zip(starts, (at for at, _ in chosen), strict=False))
                left += (places[start] for start in odd)
        for at in sorted(left):
            self._read_line(number + at, lines[at], server)
        return True

    def _read_events(self, data: bytes, server: int) -> list[int]:
        """Read lines that are events in the most common forms. Return the offsets of all other lines."""
        if self._wants_texts:  # the wanted strings differ in each line, so caches would not help
            starts = find_lines(data)
        else:
            starts, _ = self._canonical_lines.read(data, server, self._rows, self._received, self._counts)
        odd = []
        for start in starts:
            line = data[start : data.index(b"\n", start)]
            try:
                if len(line) <= MAX_AUDIT_VALUE_PARTS and self._read_plain(line, server):
                    continue
            except (UserError, ValueError, LookupError, AttributeError, TypeError, StopIteration, RecursionError):
                pass
            odd.append(start)
        return odd

    def _read_plain(self, line: bytes, server: int) -> bool:
        """Read a line if it is an event in the most common form. Return whether the line was read."""
        text = line.decode()
        event: Any
        event, end = scan(text, 0)
        if (
            end != len(text)
            or (event.get("kind"), event.get("apiVersion")) not in self._versions
            # Lone surrogates are not valid Unicode text. `_read_line` reads the rare lines with escapes of surrogates.
            or ("\\u" in text and ("\\ud" in text or "\\uD" in text))
        ):
            return False
        stage = event["stage"]
        if stage == RECEIVED:
            self._counts[RECEIVED] += 1
            self._add_received(event)
        elif stage in LATER_STAGES:
            self._add(event, stage, server)
        else:
            return False
        return True

    def _read_line(self, number: int, line: str | bytes, server: int) -> None:
        """Read any line: a blank line, an event, an event in an envelope, a list, or text that is not an event."""
        self._line = number
        try:
            decoded = _decode(line)
            if not self._first_line:
                self._first_number, self._first_line = number, decoded.strip()[:_MAX_DESCRIBED_CHARACTERS]
            text = self._split_lines.join_line(decoded)
            for value in _parse_line(text) if text is not None else ():
                for record in self._split_lines.join_record(value):
                    self._read_value(record, server)
        except UserError as error:
            self._reject(str(error))

    def _read_value(self, value: object, server: int, depth: int = 0) -> None:
        """Read an event, or a list or log record that contains events. `depth` is the number of wrappers around the value."""
        if depth > MAX_DEPTH:
            self._reject(f"the event is nested in more than {MAX_DEPTH} wrappers")
            return
        if is_other_log(value):
            self.coverage.other_records += 1
            return
        try:
            content = unwrap(value, self._wanted.event_field)
        except UserError as error:
            self._reject(str(error))
            return
        if content is not None:
            self._read_value(content.value, self.server_number(content.server) if content.server else server, depth + 1)
            return
        records = unwrap_list(value)
        if records is not None:
            for record in records:
                self._read_value(
                    record.value, self.server_number(record.server) if record.server else server, depth + 1
                )
            return
        problem = find_problem(value)
        if problem is not None:
            self._reject(problem)
            return
        event: Any = value
        self._versions.add((event.get("kind"), event.get("apiVersion")))
        stage = event["stage"]
        if stage == RECEIVED:
            self.coverage.stages[RECEIVED] += 1
            self._add_received(event)
            return
        try:
            self._add(event, stage, server)
        except UserError as error:
            self._reject(str(error))

    def _reject(self, reason: str) -> None:
        self.coverage.reject(self._file, self._line, reason)

    def _add(self, event: dict[str, Any], stage: str, server: int) -> None:
        """Add the row of an event. Raises an exception for events that `find_problem` rejects.

        This method runs for every event, so it avoids function calls.
        """
        get = event.get
        key = read_attributes(event, self.namespaces, has_options=self._wanted.list_options)
        number = self._numbers.get(key)
        if number is None:
            number = self._number_tuple(event, key)
        received, ended = get("requestReceivedTimestamp"), get("stageTimestamp")
        ended = self._time(ended) if ended else None
        received = self._time(received) if received else ended
        if received is None:
            raise ValueError("the event has no time")
        status, annotations = get("responseStatus"), get("annotations")
        code = status.get("code") if status else None
        if code is not None and not (type(code) is int and 0 <= code <= 9999):
            raise ValueError("not an HTTP status")
        wait, is_decided = None, 0
        if status and code == TOO_MANY_REQUESTS and status.get("reason") is not None:
            is_decided = 1
        if annotations:
            if annotations.get(DECISION) is not None:
                is_decided = 1
            if QUEUE_WAIT in annotations:
                wait = parse_wait(annotations[QUEUE_WAIT])
        audit_id = get("auditID")
        if audit_id is not None and type(audit_id) is not str:
            raise TypeError("the audit ID is not a string")
        rows = self._rows
        rows.append(
            (
                number,
                server,
                self._hash_id(audit_id) if audit_id else None,
                1 if stage == STARTED else 0,
                received,
                ended,
                code,
                is_decided,
                wait,
                *(self._read_texts(event) if self._wants_texts else ()),
            )
        )
        self._counts[stage] += 1
        if len(rows) >= _ROWS_PER_INSERT:
            self.flush()

    def _add_received(self, event: dict[str, Any]) -> None:
        audit_id = event.get("auditID")
        if audit_id and type(audit_id) is str:
            self._received.append((self._hash_id(audit_id),))

    def _read_texts(self, event: dict[str, Any]) -> list[object]:
        reference = event.get("objectRef") if self._wanted.namespace else None
        namespace = find_namespace(event.get("requestURI"), reference.get("namespace")) if reference else None
        texts = namespace, event.get("userAgent"), event.get("auditID")
        values: list[object] = [
            text if is_wanted and isinstance(text, str) else None
            for text, is_wanted in zip(texts, self._wanted.texts, strict=True)
        ]
        if self._wanted.calls:
            uri = event.get("requestURI")
            values += (self._hash_id(uri), find_timeout(uri)) if uri else (None, None)
        return values

    def _number_tuple(self, event: dict[str, Any], key: Hashable) -> int:
        """Return the index in `tuples` of the attributes of an event (user, verb, resource and others).

        This method handles the first event with `key`, and validates this event. Raises UserError if the
        event is invalid. `_find_number` returns the same index for later events with `key`, without a
        validation.
        """
        problem = find_problem(event)
        if problem is not None:
            raise UserError(problem)
        number = self._numbers[key] = self.number_attributes(make_attributes(key))
        return number

    def _find_number(self, event: dict[str, Any], key: Hashable) -> int:
        number = self._numbers.get(key)
        return self._number_tuple(event, key) if number is None else number

    def number_attributes(self, attributes: AttributeTuple) -> int:
        """Return the index of an attribute tuple in `tuples`. If the tuple is new, append it."""
        number = self._known_tuples.setdefault(attributes, len(self.tuples))
        if number == len(self.tuples):
            self.tuples.append(attributes)
        return number

    def _time(self, text: Any) -> int:
        """Convert a time to microseconds since 1970. Raises ValueError if the text is not a time.

        Times such as `2026-11-22T05:49:20.123456Z`, the form that kube-apiserver writes, have a fast path.
        """
        if len(text) == 27 and text[26] == "Z" and text[19] == "." and text[20:26].isdigit() and text.isascii():
            second = self._seconds.get(text[:19])
            if second is None:
                start = parse_time(f"{text[:19]}Z")
                if start is None:
                    raise ValueError(text)
                if len(self._seconds) > _MAX_REMEMBERED_SECONDS:
                    self._seconds.clear()
                second = self._seconds[text[:19]] = start
            return second + int(text[20:26])
        time = parse_time(text)
        if time is None:
            raise ValueError(text)
        return time


def find_lines(data: bytes) -> list[int]:
    """Return the offset of each line. All lines must end with a newline."""
    starts, start = [], 0
    while start < len(data):
        starts.append(start)
        start = data.index(b"\n", start) + 1
    return starts


def _decode(line: str | bytes) -> str:
    """Return the text of a line. Raises UserError if the line is not UTF-8, or has too many commas, colons and brackets."""
    _check_size(line)
    try:
        return line if isinstance(line, str) else line.decode()
    except UnicodeError:
        raise UserError("this is not UTF-8") from None


def _parse_line(text: str) -> list[object]:
    """Return the JSON values in a line. A line with several CloudWatch batches has several values, a blank line none.

    Raises UserError if the line is not JSON.
    """
    if not text.strip(SPACES):
        return []
    try:
        return [parse_json(strip_prefix(text))]
    except UnicodeError:
        raise UserError("this is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        if batches := split_batches(text):
            return batches
        require_not_logged_request(text)
        raise describe_json_error(error) from None


def _check_size(data: str | bytes) -> None:
    """Raise UserError if a JSON text has so many commas, colons and brackets that the parsed value would not fit into memory."""
    if len(data) <= MAX_AUDIT_VALUE_PARTS:
        return
    text = data if isinstance(data, bytes) else data.encode("utf-8", "replace")
    if sum(map(text.count, (b",", b":", b"[", b"{"))) > MAX_AUDIT_VALUE_PARTS:
        raise UserError(
            f"the JSON text has more than {MAX_AUDIT_VALUE_PARTS:,} commas, colons and brackets, so apflint does not parse it"
        )


def find_format(file: AuditLogFile, event_field: Sequence[str] = ()) -> Wrapper | None:
    """Return the wrapper of the events in the first lines of a file, or `PLAIN` if the events have no wrapper.

    Return None if fewer than half of these lines are events in the same format. `event_field` are the keys of
    `--event-field`.
    """
    for block in read_blocks(file):
        lines = [line for line in block.data.split(b"\n", _SAMPLE_LINES)[:_SAMPLE_LINES] if line.strip()]
        found = Counter(filter(None, (_find_wrapper(line, event_field) for line in lines)))
        return next((wrapper for wrapper, number in found.most_common(1) if number * 2 >= len(lines)), None)
    return None


def _find_wrapper(line: bytes, event_field: Sequence[str]) -> Wrapper | None:
    """Return the wrapper of the audit event in a line, or `PLAIN` if the event has no wrapper.

    Return None if the line does not contain an audit event, or if the event has several wrappers, one
    inside of another.
    """
    try:
        text = _decode(line)
        values = _parse_line(text)
        if not values:
            return None
        if (prefix := find_prefix(text)) is not None:
            return prefix if find_problem(values[0]) is None else None
        field = find_field(values[0], event_field)
        if field is None:
            return find_list(values[0]) or (PLAIN if find_problem(values[0]) is None else None)
        content = unwrap(values[0], event_field)
    except UserError:
        return None
    if not is_bare(values[0], field):
        return None
    return field if content is not None and find_problem(content.value) is None else None


def is_beginning(data: bytes) -> bool:
    """Return whether the first line of a block is an incomplete JSON value."""
    line = next((line for line in data.split(b"\n", 100) if line.strip()), b"").decode("utf-8", "replace").strip()
    try:
        _check_size(line)
        json.loads(line)
    except json.JSONDecodeError as error:
        return error.pos >= len(line)
    except (UserError, ValueError, RecursionError):
        pass
    return False


def read_log(
    files: Iterable[AuditLogFile],
    wanted: Wanted,
    namespaces: Collection[str],
    report: Callable[[int], object] = lambda _: None,
) -> Log:
    """Read files into SQLite. After an interrupt, the result has the events that were read so far.

    Raises KeyboardInterrupt after an interrupt if `wanted.whole_log` is true.
    """
    database = SqliteDatabase()
    with close_on_error(database):
        create_log_tables(database)
        reader = EventReader(wanted, namespaces, database.insert)
        try:
            for file in files:
                reader.read_file(file, report)
            reader.flush()
        except KeyboardInterrupt:
            if wanted.whole_log:
                raise
            reader.coverage.interrupted = True
            reader.flush()
    return Log(database, reader.tuples, reader.servers, reader.coverage, "python")
