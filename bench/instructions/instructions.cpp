// SPDX-License-Identifier: BSD-3-Clause
// The work per message, for an instruction counter: runs N messages of one kind through one PE, in this process,
// sending and delivering together. Run it with N and 2N under `valgrind --tool=callgrind` and subtract; check.py does.
//
//   headway-instructions CASE N      prints the checksum of the table and the calls of operator new
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "cases.hpp"

namespace {
std::uint64_t allocations = 0;
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace instructions;

namespace {

void local_8(Table& table, std::size_t n, unsigned) {
  std::uint64_t* words = table.data();
  std::uint64_t a = 1;
  for (std::size_t i = 0; i < n; ++i) {
    a = next(a);
    words[a & mask] ^= a;
  }
}

// The loop that a careful programmer writes by hand: a buffer per destination, applied when it is full.
void hand_8(Table& table, std::size_t n, unsigned shift) {
  constexpr std::size_t capacity = 2000;
  struct Buffer {
    std::uint64_t* at;
    std::uint64_t* limit;
  };
  std::vector<std::uint64_t> memory(capacity);
  std::vector<Buffer> buffers{{memory.data(), memory.data() + capacity}};
  std::uint64_t* words = table.data();
  auto apply = [&](Buffer& buffer) {
    std::uint64_t* const end = buffer.at;
    std::uint64_t* from = memory.data();
#pragma GCC unroll 4
    for (; from != end; ++from) words[*from & mask] ^= *from;
    buffer.at = memory.data();
  };
  std::uint64_t a = 1;
  Buffer* const all = buffers.data();
  asm volatile("" ::"r"(all) : "memory");
  for (std::size_t i = 0; i < n; ++i) {
    a = next(a);
    Buffer& buffer = all[owner(a, shift)];
    if (buffer.at == buffer.limit) apply(buffer);
    *buffer.at++ = a;
  }
  apply(buffers[0]);
}

// 32 bytes a message, as a local loop over them.
void local_32(Table& table, std::size_t n, unsigned) {
  std::uint64_t* words = table.data();
  Small payload{};
  std::uint64_t a = 1;
  for (std::size_t i = 0; i < n; ++i) {
    a = next(a);
    payload.values[i & 3] = a;
    asm volatile("" : "+m"(payload));
    apply_32(words, payload.values);
  }
}

void fixed_8(Table& table, std::size_t n, unsigned shift, headway::Topology topology) {
  on_one_pe([&](Pe& pe) {
    Aggregator<std::uint64_t> updates(pe,
                                      {.buffer_bytes = 16384, .timeout = headway::no_timeout, .topology = topology});
    std::uint64_t* const words = table.data();
    const unsigned top = shift;  // copies, so that the loop below is like a user program's loop
    const std::size_t count = n;
    updates.on([words](const std::uint64_t& a) { words[a & mask] ^= a; });
    std::uint64_t a = 1;
    for (std::size_t i = 0; i < count; ++i) {
      a = next(a);
      updates.send(owner(a, top), a);
    }
    pe.quiesce();
  });
}

void variable_32(Table& table, std::size_t n, unsigned shift) {
  on_one_pe([&](Pe& pe) {
    Aggregator<std::span<const std::uint64_t>> messages(pe, {.buffer_bytes = 16384, .timeout = headway::no_timeout});
    std::uint64_t* const words = table.data();
    const unsigned top = shift;
    const std::size_t count = n;
    messages.on([words](std::span<const std::uint64_t> values) { apply_32(words, values.data()); });
    Small payload{};
    std::uint64_t a = 1;
    std::size_t length = 4;  // NOLINT(misc-const-correctness): the next line writes it
    asm volatile("" : "+r"(length));
    for (std::size_t i = 0; i < count; ++i) {
      a = next(a);
      payload.values[i & 3] = a;
      messages.send(owner(a, top), std::span<const std::uint64_t>(payload.values, length));
    }
    pe.quiesce();
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc == 3 ? argv[1] : "";
  const std::size_t n = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  Table table(mask + 1);
  unsigned shift = table_log2;  // NOLINT(misc-const-correctness): the next line writes it
  asm volatile("" : "+r"(shift));
  const std::uint64_t before = allocations;
  if (name == "local-8")
    local_8(table, n, shift);
  else if (name == "hand-8")
    hand_8(table, n, shift);
  else if (name == "fixed-8-1d")
    fixed_8(table, n, shift, headway::grid(1));
  else if (name == "fixed-8-direct")
    fixed_8(table, n, shift, headway::direct());
  else if (name == "fixed-8-2d")
    fixed_8(table, n, shift, headway::grid(2));
  else if (name == "local-32")
    local_32(table, n, shift);
  else if (name == "variable-32-1d")
    variable_32(table, n, shift);
  else if (name == "fixed-32-1d")
    fixed_32(table, n, shift);
  else if (name == "element-32-1d")
    element_32(table, n);
  else {
    std::fprintf(stderr,
                 "usage: headway-instructions local-8|hand-8|fixed-8-1d|fixed-8-2d|fixed-8-direct|local-32|"
                 "variable-32-1d|fixed-32-1d|element-32-1d N\n");
    return 2;
  }
  std::uint64_t checksum = 0;
  for (const std::uint64_t word : table) checksum ^= word * 0x9e3779b97f4a7c15;
  std::printf("%016llx %llu\n", static_cast<unsigned long long>(checksum),
              static_cast<unsigned long long>(allocations - before));
}
