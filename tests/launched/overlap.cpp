// SPDX-License-Identifier: BSD-3-Clause
/// overlap FILE SECONDS: PE 0 sends each PE of other processes a large message, and the PEs of its process compute for
/// at most so long, without calling the library, until the last PE has made the file, which it does when it has its
/// message. PE 0 says whether it saw it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <headway/headway.hpp>
#include <span>
#include <vector>

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    namespace fs = std::filesystem;
    if (argc != 3) return 2;
    const fs::path file = argv[1];
    const std::chrono::duration<double> longest(std::atof(argv[2]));
    const bool is_last = pe.id() + 1 == pe.size();
    headway::Aggregator<std::span<const std::byte>> messages(pe);
    bool has_come = false, good = true;
    messages.on([&](std::span<const std::byte> message) {
      has_come = true;
      for (std::size_t i = 0; i < message.size(); ++i) good &= message[i] == std::byte(i % 251);
    });
    pe.quiesce();
    const std::size_t senders = pe.engine().endpoint().host_map().pes_per_process;  // of one process: one alone sends
    if (pe.id() < senders) {
      std::vector<std::byte> message(2 << 20);
      for (std::size_t i = 0; i < message.size(); ++i) message[i] = std::byte(i % 251);
      for (std::size_t other = senders; other < pe.size() && pe.id() == 0; ++other) messages.send(other, message);
      const auto begin = std::chrono::steady_clock::now();
      bool seen = false;
      while (!seen && std::chrono::steady_clock::now() - begin < longest) seen = fs::exists(file);
      const std::chrono::duration<double, std::milli> computed = std::chrono::steady_clock::now() - begin;
      if (pe.id() == 0)
        std::printf("%s while PE 0 computed, for %.1f ms\n", seen ? "seen" : "not seen", computed.count());
    } else {
      headway::wait_until(pe, [&] { return has_come; });
      if (is_last) std::ofstream(file) << "here\n";
    }
    pe.quiesce();
    return good ? 0 : 1;
  });
}
