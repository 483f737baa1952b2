# SPDX-License-Identifier: BSD-3-Clause
"""Checks what `headway trace` wrote against the trace itself: trace_check.py DIR [--perfetto FILE] [--otf2 DIR EVENTS].

Perfetto's own classes parse the file, packet by packet. The arrows must be exactly the pairs of records `posted` and
`taken` with equal sender, receiver, hops and sequence. Records are read here by themselves, not by the command's code:
only traces of one host without lost records are allowed. Prints one line with counts."""

import argparse
import gzip
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

RECORD = struct.Struct("<qIIIIHBBBBBB")
POSTED, TAKEN = 2, 3
HOP_CLASSES = 8


class Arrow(NamedTuple):
    sender: int
    posted_ns: int
    receiver: int
    taken_ns: int


class Mismatch(Exception):
    pass


def arrows_of(folder: Path) -> tuple[Counter, int]:
    """All frames that were posted and taken, and the number of records."""
    posted, taken, records, begin = {}, {}, 0, None
    for path in folder.glob("pe-*.trace"):
        data = path.read_bytes()
        pe, _, header_bytes, record_bytes = struct.unpack_from("<IIII", data, 12)
        count = (len(data) - header_bytes) // record_bytes
        records += count
        for i in range(count):
            record = RECORD.unpack_from(data, header_bytes + i * record_bytes)
            time, sequence, _, _, _, peer, kind, _, hops, _, _, _ = record
            begin = time if begin is None else min(begin, time)
            hops = min(hops, HOP_CLASSES - 1)
            if kind == POSTED:
                posted[pe, peer, hops, sequence] = time
            elif kind == TAKEN:
                taken[peer, pe, hops, sequence] = time
    return Counter(Arrow(key[0], time - begin, key[1], taken[key] - begin)
                   for key, time in posted.items() if key in taken), records


class Perfetto:
    """The events of a file, and what must hold for each of them."""

    def __init__(self, path: Path) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
        self.schema = schema
        self.packets = 0
        self.pes, self.threads, self.counters = {}, {}, {}  # by uuid
        self.names, self.tracks = {}, {}  # by sequence
        self.depth, self.last = Counter(), {}  # by track
        self.begins, self.ends = {}, {}  # of arrows, by their number
        self.slices = Counter()
        trace = schema.Trace()
        trace.ParseFromString(gzip.decompress(path.read_bytes()))
        for packet in trace.packet:
            self.add(packet)
        self.known(trace, "the file")
        if open_tracks := [track for track, depth in self.depth.items() if depth != 0]:
            raise Mismatch(f"slices without an end on tracks {open_tracks}")

    def known(self, message, where: str) -> None:
        """No field has a number that the schema lacks."""
        from google.protobuf import unknown_fields
        for field in unknown_fields.UnknownFieldSet(message):
            raise Mismatch(f"{where} has an unknown field {field.field_number}")

    def add(self, packet) -> None:
        self.packets += 1
        self.known(packet, f"packet {self.packets}")
        sequence = packet.trusted_packet_sequence_id
        if packet.HasField("trace_packet_defaults"):
            self.tracks[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        for name in packet.interned_data.event_names:
            self.names[sequence, name.iid] = name.name
        if packet.HasField("track_descriptor"):
            self.add_track(packet.track_descriptor)
        if packet.HasField("track_event"):
            self.add_event(packet, sequence)

    def add_track(self, descriptor) -> None:
        self.known(descriptor, "a track")
        if descriptor.HasField("thread"):
            self.pes[descriptor.uuid] = int(descriptor.thread.thread_name.removeprefix("PE "))
        if descriptor.HasField("counter"):
            self.counters[descriptor.uuid] = descriptor.name

    def add_event(self, packet, sequence: int) -> None:
        event, kind = packet.track_event, self.schema.TrackEvent
        self.known(event, f"the event of packet {self.packets}")
        if not packet.HasField("timestamp"):
            raise Mismatch(f"packet {self.packets} has no time")
        track = event.track_uuid if event.HasField("track_uuid") else self.tracks[sequence]
        if packet.timestamp < self.last.get(track, 0):
            raise Mismatch(f"packet {self.packets} precedes the one before on its track")
        self.last[track] = packet.timestamp
        if event.type == kind.TYPE_SLICE_BEGIN:
            self.depth[track] += 1
            self.slices[self.names[sequence, event.name_iid]] += 1
        elif event.type == kind.TYPE_SLICE_END:
            self.depth[track] -= 1
            if self.depth[track] < 0:
                raise Mismatch(f"packet {self.packets} ends a slice that has not begun")
        elif event.type == kind.TYPE_COUNTER and track not in self.counters:
            raise Mismatch(f"packet {self.packets} counts on a track that is no counter")
        for numbers, ends in (event.flow_ids, self.begins), (event.terminating_flow_ids, self.ends):
            for number in numbers:
                if number in ends:
                    raise Mismatch(f"arrow {number} has two ends of one kind")
                ends[number] = (self.pes[track], packet.timestamp)

    def arrows(self) -> Counter:
        if self.begins.keys() != self.ends.keys():
            raise Mismatch("an arrow has one end alone")
        return Counter(Arrow(*self.begins[number], *self.ends[number]) for number in self.begins)


def events_of_otf2(folder: Path) -> Counter:
    """Events by their class."""
    import otf2
    with otf2.reader.open(str(folder / "traces.otf2")) as trace:
        return Counter(type(event).__name__ for _, event in trace.events)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--perfetto", type=Path)
    parser.add_argument("--otf2", nargs=2, metavar=("DIR", "EVENTS"))
    arguments = parser.parse_args(argv)
    expected, records = arrows_of(arguments.folder)
    try:
        if arguments.perfetto:
            file = Perfetto(arguments.perfetto)
            missing, extra = expected - file.arrows(), file.arrows() - expected
            if missing or extra:
                raise Mismatch(f"arrows: {len(missing)} missing, {len(extra)} too many: {[*missing, *extra][:3]}")
            print(f"{records} records, {file.packets} packets, {len(file.pes)} PEs, {expected.total()} arrows, "
                  f"slices {dict(sorted(file.slices.items()))}, counters {sorted(set(file.counters.values()))}")
        if arguments.otf2:
            events = events_of_otf2(Path(arguments.otf2[0]))
            if events.total() != int(arguments.otf2[1]):
                raise Mismatch(f"OTF2 has {events.total()} events, and {arguments.otf2[1]} were written")
            if events["MpiSend"] != expected.total() or events["MpiRecv"] != expected.total():
                raise Mismatch(f"OTF2 has {events['MpiSend']} sends and {events['MpiRecv']} receives, "
                               f"and {expected.total()} frames were joined")
            print(f"{events.total()} events of OTF2")
    except Mismatch as mismatch:
        print(f"trace_check: {mismatch}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
