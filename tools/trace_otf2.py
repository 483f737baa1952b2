# SPDX-License-Identifier: BSD-3-Clause
"""Writes an archive of OTF2: trace_otf2.py EVENTS FOLDER. `headway trace --otf2` contains this script and runs it.

EVENTS has a line for each thing, fields separated by tabs, numbers counted from 0 in the order of the lines:
  attribute NAME VALUE     of the run
  process HOST NAME        of host number HOST
  pe PROCESS LOST          the next PE; LOST: its lost records
  region KIND NAME
  at PE                    the events that follow are of this PE, and ascend in time
  B TIME REGION            enter
  E TIME REGION            leave
  S TIME PEER BYTES        a frame is sent
  R TIME PEER BYTES        a frame is received
The last line of the output is the number of events that were written."""

import sys

import otf2
from otf2.enums import GroupType, LocationType, Paradigm, RegionRole

ROLES = {"program": RegionRole.CODE, "phase": RegionRole.CODE, "wait": RegionRole.BARRIER,
         "handler": RegionRole.FUNCTION, "mark": RegionRole.ARTIFICIAL}


def convert(lines, writer) -> int:
    """Returns the number of events."""
    definitions = writer.definitions
    root = definitions.system_tree_node("run", class_name="run")
    hosts, processes, pes, regions = {}, [], [], []
    group = communicator = current = None
    events = 0
    for line in lines:
        kind, *fields = line.rstrip("\n").split("\t")
        if kind == "B" or kind == "E":
            (current.enter if kind == "B" else current.leave)(int(fields[0]), regions[int(fields[1])])
            events += 1
        elif kind == "S" or kind == "R":
            time, peer, size = map(int, fields)
            (current.mpi_send if kind == "S" else current.mpi_recv)(time, peer, communicator, 0, size)
            events += 1
        elif kind == "at":
            if communicator is None:
                definitions.group("PEs", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=pes)
                group = definitions.group("all PEs", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI,
                                          members=tuple(range(len(pes))))
                communicator = definitions.comm("all PEs", group=group)
            current = writer.event_writer_from_location(pes[int(fields[0])])
        elif kind == "process":
            number = int(fields[0])
            if number not in hosts:
                hosts[number] = definitions.system_tree_node(f"host {number}", class_name="host", parent=root)
            processes.append(definitions.location_group(fields[1], system_tree_parent=hosts[number]))
        elif kind == "pe":
            pes.append(definitions.location(f"PE {len(pes)}", type=LocationType.CPU_THREAD,
                                            group=processes[int(fields[0])]))
            if int(fields[1]) != 0:
                definitions.location_property(pes[-1], "records_lost", value=int(fields[1]))
        elif kind == "region":
            regions.append(definitions.region(fields[1], region_role=ROLES[fields[0]], paradigm=Paradigm.USER))
        elif kind == "attribute":
            definitions.system_tree_node_property(root, fields[0], value=fields[1])
    return events


def main(argv: list[str]) -> int:
    with open(argv[1], encoding="utf-8", errors="replace") as lines:
        with otf2.writer.open(argv[2], timer_resolution=1_000_000_000) as writer:
            events = convert(lines, writer)
    print(events)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
