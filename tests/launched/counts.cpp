// SPDX-License-Identifier: BSD-3-Clause
/// Every PE sends to every one; prints how many frames went over the wire between processes, and how many PEs there
/// are.
#include <cstdio>
#include <headway/headway.hpp>
#include <headway/transport/wire/endpoint.hpp>

int main(int argc, char** argv) {
  return headway::run(argc, argv, [](headway::Pe& pe) {
    headway::Aggregator<std::size_t> messages(pe);
    std::size_t sum = 0;
    messages.on([&](std::size_t value) { sum += value; });
    for (std::size_t i = 0; i < 100'000; ++i) messages.send((pe.id() + i) % pe.size(), 1);
    pe.quiesce();
    // The first PE of a process has the counts of all of it.
    const auto* endpoint = dynamic_cast<const headway::wire::WireEndpoint*>(&pe.engine().endpoint());
    const bool counts = endpoint != nullptr && pe.id() % endpoint->host_map().pes_per_process == 0;
    const std::uint64_t frames = counts ? endpoint->port().counts().frames_sent : 0;
    const std::uint64_t all = headway::allreduce(pe, frames, std::plus<>());
    const bool good = headway::allreduce(pe, sum, std::plus<>()) == 100'000 * pe.size();
    if (pe.id() == 0) std::printf("%zu PEs, %s over the wire\n", pe.size(), all == 0 ? "no frames" : "frames");
    return good ? 0 : 1;
  });
}
