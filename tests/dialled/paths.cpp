// SPDX-License-Identifier: BSD-3-Clause
/// Everything that moves data between PEs takes the time of the dials: on two PEs or more, each call waits for a frame
/// of another PE. Only lower bounds are checked. paths.cpp runs its PEs itself, or with the argument `attach` as a
/// program that attaches. It needs HEADWAY_DIAL=L=2ms,G=20ns.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <headway/halo/grid.hpp>
#include <headway/headway.hpp>
#include <string>
#include <vector>

namespace {

constexpr const char* dials = "L=2ms,G=20ns";
constexpr double latency_s = 2e-3, seconds_per_byte = 20e-9;
constexpr int calls = 6;
constexpr std::size_t content_bytes = 1 << 20;

/// Checks the time and the value of each path on one PE.
class Paths {
 public:
  explicit Paths(headway::Pe& pe) : pe_(pe), next_((pe.id() + 1) % pe.size()) {}

  /// The calls need each other's data, in turn: all but the first wait for at least `each_s`.
  void take(const char* name, double each_s, const std::function<bool(std::size_t call)>& call) {
    headway::barrier(pe_);
    const double begin = headway::wtime(pe_);
    bool good = true;
    for (std::size_t i = 0; i < calls; ++i) good &= call(i);
    const double took = headway::wtime(pe_) - begin, least = (calls - 1) * each_s;
    if (good && took >= least) return;
    std::printf("PE %zu: %s: %d calls took %.6f s, expected at least %.6f s%s\n", std::size_t(pe_.id()), name, calls,
                took, least, good ? "" : "; WRONG VALUES");
    ok = false;
  }

  void run() {
    const std::size_t me = pe_.id(), all = pe_.size();
    take("barrier", latency_s, [&](std::size_t) { return headway::barrier(pe_), true; });
    take("allreduce", latency_s, [&](std::size_t i) {
      return headway::allreduce(pe_, me + i, std::plus<>()) == all * (all - 1) / 2 + all * i;
    });
    words();
    halo();
    contents();
  }

  bool ok = true;

 private:
  void words() {
    headway::GlobalMemory memory(pe_);
    headway::DistArray<std::uint64_t> array(pe_, pe_.size(), 1);
    array.local()[0] = 100 + pe_.id();
    headway::barrier(pe_);
    take("read of a word", latency_s, [&](std::size_t) { return memory.read(array[next_]) == 100 + next_; });
    take("fetch_add of a word", latency_s,
         [&](std::size_t i) { return memory.fetch_add(array[next_], std::uint64_t(1)) == 100 + next_ + i; });
    take("write of a word", latency_s, [&](std::size_t i) { return memory.write(array[next_], i), true; });
    pe_.quiesce();
  }

  /// Each PE has one element, and needs that of the next PE.
  void halo() {
    const std::uint64_t needed = next_;
    const auto plan =
        headway::halo::Plan::needed(pe_, 1, std::span(&needed, 1), headway::Block(pe_.size(), pe_.size()));
    headway::halo::Field<std::uint64_t> values(pe_, 2);
    headway::halo::Exchange exchange(pe_, plan, {headway::halo::field(values)});
    values[0] = pe_.id();
    // Around the ring a PE may be ahead of the next but one; of two PEs each waits for the other.
    take("halo exchange", pe_.size() == 2 ? latency_s : 0, [&](std::size_t i) {
      exchange();
      const bool good = values[1] == next_ + i;
      ++values[0];
      return good;
    });
    pe_.quiesce();
  }

  /// The even PEs send, and the next ones answer.
  void contents() {
    std::vector<char> data(content_bytes, char(pe_.id()));
    headway::Aggregator<headway::RemoteSource<char>> sources(pe_);
    std::vector<char> got(content_bytes);
    headway::Aggregator<std::size_t, std::span<const char>> buffers(pe_);
    std::size_t arrived = 0;
    buffers.on([&](std::size_t, std::span<const char> content) {
      arrived += content.size() == content_bytes && content.back() == char((pe_.id() + pe_.size() - 1) % pe_.size());
    });
    take("send_buffer of 1 MiB", content_bytes * seconds_per_byte, [&](std::size_t i) {
      buffers.send(next_, i, headway::send_buffer(std::span<const char>(data), [] {}));
      headway::wait_until(pe_, [&] { return arrived > i; });
      return true;
    });
    pe_.quiesce();
    std::size_t copied = 0;
    sources.on([&](const headway::RemoteSource<char>& source) {
      headway::get(pe_, source, std::span(got), [&] { ++copied; });
    });
    take("get of 1 MiB", content_bytes * seconds_per_byte, [&](std::size_t i) {
      headway::Source<char> source(pe_, std::span<const char>(data), [] {});
      sources.send(next_, source.remote());
      headway::wait_until(pe_, [&] { return copied > i; });
      pe_.quiesce();
      return got.back() == char((pe_.id() + pe_.size() - 1) % pe_.size());
    });
    pe_.quiesce();
  }

  headway::Pe& pe_;
  std::size_t next_;
};

bool check(headway::Pe& pe) {
  Paths paths(pe);
  paths.run();
  return paths.ok;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const given = std::getenv("HEADWAY_DIAL");
  if (given == nullptr || std::strcmp(given, dials) != 0) {
    std::printf("HEADWAY_DIAL=%s: allowed is %s\n", given == nullptr ? "" : given, dials);
    return 2;
  }
  if (argc > 1 && std::string(argv[1]) == "attach") {
    headway::Pe& pe = headway::attach();
    const bool ok = check(pe);
    return headway::detach(ok ? 0 : 1);
  }
  return headway::run(argc, argv, [](headway::Pe& pe) { return check(pe) ? 0 : 1; });
}
