// SPDX-License-Identifier: BSD-3-Clause
/// The plug-in for MPI, linked into a program for SMPI: every process sends one frame to each other, in a ring of
/// steps, and gets one. MPI has begun before this main().
#include <headway/transport/wire/wire.h>

#include <cstdint>
#include <cstdio>
#include <vector>

extern "C" const headway_wire_functions* headway_wire_plugin();

namespace {

struct Frame {
  std::uint64_t from, to;
};

}  // namespace

int main(int, char**) {
  const headway_wire_functions& functions = *headway_wire_plugin();
  headway_wire* wire = nullptr;
  headway_wire_facts facts{};
  char reason[256] = "";
  if (functions.start(nullptr, &wire, &facts, reason, sizeof reason) != 0) {
    std::printf("start: %s\n", reason);
    return 1;
  }
  const std::uint64_t processes = facts.processes, me = facts.process;
  std::vector<std::uint32_t> all(processes);
  const std::uint32_t mine = facts.process * 3;
  functions.exchange(wire, &mine, sizeof mine, all.data());
  int errors = 0;
  for (std::uint64_t p = 0; p < processes; ++p) errors += all[p] != p * 3;

  std::vector<Frame> out(processes), in(processes);
  for (std::uint64_t i = 1; i < processes; ++i)
    functions.receive(wire, headway_wire_frames, 0, &in[i], sizeof(Frame), i);
  std::uint64_t sent = 0, arrived = 0;
  for (std::uint64_t i = 1; i < processes; ++i) {
    const std::uint64_t to = (me + i) % processes;
    out[to] = {me, to};
    sent += functions.send(wire, std::uint32_t(to), headway_wire_frames, &out[to], sizeof(Frame), to) == 1;
  }
  while (sent + 1 < processes || arrived + 1 < processes) {
    headway_wire_event events[16];
    const int count = functions.progress(wire, events, 16);
    for (int i = 0; i < count; ++i) {
      if (events[i].kind == headway_wire_sent) {
        ++sent;
      } else {
        ++arrived;
        const Frame& frame = in[events[i].cookie];
        errors += frame.to != me || frame.from != events[i].process || events[i].bytes != sizeof(Frame);
      }
    }
  }
  std::uint64_t coming = 0;
  while (functions.settle(wire, &coming) == 0) continue;
  errors += coming != arrived;
  functions.leave(wire);
  if (me == 0 || errors != 0) std::printf("process %d of %d: %d errors\n", int(me), int(processes), errors);
  return errors != 0;
}
