// SPDX-License-Identifier: BSD-3-Clause
/// Copies of one size: within a process, and out of another process's memory.
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "copies.hpp"
#include "measure.hpp"

namespace headway::limit {
namespace {

/// Fills with what tells the reader which pass it was written for.
void fill(std::byte* memory, std::size_t bytes, Word seed) {
  for (std::size_t i = 0; i + word_bytes <= bytes; i += word_bytes) store(memory + i, pattern_word(seed, i));
  for (std::size_t i = bytes / word_bytes * word_bytes; i < bytes; ++i) memory[i] = std::byte(seed + i);
}

std::uint64_t differences(const std::byte* memory, std::size_t bytes, Word seed) {
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i + word_bytes <= bytes; i += word_bytes) wrong += load(memory + i) != pattern_word(seed, i);
  for (std::size_t i = bytes / word_bytes * word_bytes; i < bytes; ++i) wrong += memory[i] != std::byte(seed + i);
  return wrong;
}

std::uint64_t some_copies(const Options& options) {
  return std::clamp<std::uint64_t>((std::size_t(64) << 20) / options.bytes, 1,
                                   std::min<std::uint64_t>(options.messages, 20'000));
}

}  // namespace

void read_memory_of(pid_t owner, std::byte* to, std::byte* from, std::size_t bytes, std::size_t piece) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t now = std::min(piece, bytes - done);
    const iovec here{to + done, now}, there{from + done, now};
    const ssize_t got = ::process_vm_readv(owner, &here, 1, &there, 1, 0);
    if (got <= 0) throw std::runtime_error(std::string("process_vm_readv: ") + std::strerror(errno));
    done += std::size_t(got);
  }
}

Job copy_job(const Options& options) {
  Job job;
  for (const CopyFormulation& formulation : copies) job.formulations.emplace_back(formulation.name);
  job.body = [options](Pe& pe, std::byte*, std::optional<std::size_t> only, Outcome& outcome) {
    const std::size_t bytes = options.bytes, room = bytes + cache_line;  // wide copies write a little too much
    const Memory source(Memory::Kind::own, room), target(Memory::Kind::own, room);
    std::uint64_t errors = 0;
    Word seed = pe.id();
    const auto pass = [&](std::size_t formulation, std::uint64_t times) {
      fill(source.data(), bytes, ++seed);
      pe.meet_all();
      const double begin = now();
      for (std::uint64_t i = 0; i < times; ++i) copies[formulation].copy(target.data(), source.data(), bytes);
      const double seconds = now() - begin;
      errors += differences(target.data(), bytes, seed);
      return seconds;
    };
    const std::uint64_t tried = some_copies(options);
    measure_best(pe, std::size(copies), only, tried, options.messages, outcome, pass);
    errors = pe.sum_of_all(errors);
    if (pe.id() != 0) return;
    outcome.messages = options.messages * pe.size();
    outcome.tried_messages = tried * pe.size();
    outcome.errors = errors;
  };
  return job;
}

/// PE 0 owns the memory, PE 1 reads it.
Job cma_job(const Options& options) {
  Job job;
  for (const CmaFormulation& formulation : reads) job.formulations.emplace_back(formulation.name);
  job.shared_bytes = sizeof(Owner);
  job.body = [options](Pe& pe, std::byte* shared, std::optional<std::size_t> only, Outcome& outcome) {
    const std::size_t bytes = options.bytes;
    const Memory memory(Memory::Kind::own, bytes);
    auto& owner = *reinterpret_cast<Owner*>(shared);
    if (pe.id() == 0) owner = {::getpid(), memory.data()};
    pe.meet_all();
    bool refused = false;
    if (pe.id() == 1) {
      try {
        read_memory_of(owner.process, memory.data(), owner.memory, std::min<std::size_t>(bytes, 1), 1);
      } catch (const std::exception& error) {
        refused = true;
        std::strncpy(outcome.unavailable, error.what(), sizeof outcome.unavailable - 1);
      }
    }
    if (pe.sum_of_all(refused) > 0) return;

    std::uint64_t errors = 0;
    Word seed = 0;
    const auto pass = [&](std::size_t formulation, std::uint64_t times) {
      ++seed;
      if (pe.id() == 0) fill(memory.data(), bytes, seed);
      pe.meet_all();
      double seconds = 0;
      if (pe.id() == 1) {
        const double begin = now();
        for (std::uint64_t i = 0; i < times; ++i) {
          read_memory_of(owner.process, memory.data(), owner.memory, bytes, reads[formulation].piece);
        }
        seconds = now() - begin;
        errors += differences(memory.data(), bytes, seed);
      }
      pe.meet_all();
      return seconds;
    };
    const std::uint64_t tried = some_copies(options);
    measure_best(pe, std::size(reads), only, tried, options.messages, outcome, pass);
    errors = pe.sum_of_all(errors);
    if (pe.id() != 0) return;
    outcome.messages = options.messages;
    outcome.tried_messages = tried;
    outcome.errors = errors;
  };
  return job;
}

}  // namespace headway::limit
