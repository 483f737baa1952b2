// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/random.hpp>
#include <headway/rma/pool.hpp>
#include <headway/rma/reach.hpp>

namespace headway::rma {
namespace {

const std::size_t extension = am::register_extension(&Reach::make);

bool is_refusal(int error) { return error == EPERM || error == EACCES || error == ENOSYS; }

template <bool reads>
ssize_t attach_copy(std::uint32_t process, std::uint64_t there, std::byte* here, std::size_t bytes) {
  const iovec local{here, bytes};
  const iovec remote{reinterpret_cast<void*>(std::uintptr_t(there)), bytes};
  if constexpr (reads)
    return process_vm_readv(pid_t(process), &local, 1, &remote, 1, 0);
  else
    return process_vm_writev(pid_t(process), &local, 1, &remote, 1, 0);
}

}  // namespace

Reach& Reach::of(Pe& pe) { return static_cast<Reach&>(pe.engine().extension(extension)); }

Reach::Reach(Pe& pe)
    : pe_(&pe),
      process_(pe.engine().endpoint().host_map().own_process()),
      host_(pe.engine().endpoint().host_map().own_host()),
      path_(pe.engine().transfer_settings().path),
      attach_(pe.size()),
      refused_by_(pe.size()) {}

BufferKey Reach::key(std::span<const std::byte> memory, std::uint64_t number, bool timed) {
  if (token_ == 0) {
    // Yama lets only a process's ancestors attach to it unless it says otherwise; elsewhere this does nothing.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    Random random(std::uint64_t(getpid()) << 32 ^ std::uint64_t(pe_->engine().now()) ^ pe_->id());
    token_ = random.next() | 1;
    system_process_ = std::uint32_t(getpid());
  }
  std::uint64_t offset = offset_in_pool(memory.data(), memory.size());
  if (timed) offset |= BufferKey::timed;
  BufferKey key{reinterpret_cast<std::uintptr_t>(memory.data()),
                memory.size(),
                offset,
                number,
                token_,
                reinterpret_cast<std::uintptr_t>(&token_),
                std::uint32_t(pe_->id()),
                system_process_,
                0};
  // Stored as one word: a reader of whole words would wait for two stores of half a word.
  auto halves = std::bit_cast<std::uint64_t>(std::array{std::uint32_t(pe_->id()), system_process_});
  asm("" : "+r"(halves));
  static_assert(offsetof(BufferKey, process) == offsetof(BufferKey, pe) + sizeof key.pe);
  std::memcpy(reinterpret_cast<std::byte*>(&key) + offsetof(BufferKey, pe), &halves, sizeof halves);
  key.check = key.expected_check();
  return key;
}

void Reach::check(const BufferKey& key) const {
  if (key.pe >= pe_->size() || key.check != key.expected_check()) {
    throw FormatError(fmt::format(
        "a key names {} of PE {}, which is no key of this run: its check value is {:x} instead of {:x}, and the run "
        "has {}",
        base::counted(key.bytes, "byte"), key.pe, key.check, key.expected_check(), base::counted(pe_->size(), "PE")));
  }
}

std::uint64_t Reach::offset_in_pool(const std::byte* data, std::size_t bytes) const {
  if (pool_ == nullptr) pool_ = &Pool::of(*pe_);
  const std::span<const std::byte> pool = pool_->memory_in_use();
  const auto offset = reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(pool.data());
  return offset <= pool.size() && bytes <= pool.size() - offset ? offset : BufferKey::no_offset;
}

std::byte* Reach::mapped(const BufferKey& key) {
  if (path_ != base::TransferPath::fastest && path_ != base::TransferPath::mapped) return nullptr;
  if (in_this_process(key.pe)) return reinterpret_cast<std::byte*>(std::uintptr_t(key.address));
  if (key.pool_offset() == BufferKey::no_offset) return nullptr;
  return in_pool(key.pe, key.pool_offset(), key.bytes);
}

std::byte* Reach::in_pool(std::size_t pe, std::uint64_t offset, std::uint64_t bytes) {
  const std::span<std::byte> pool = pe_->engine().endpoint().shared_memory().pool(pe);
  if (pool.empty()) return nullptr;
  if (offset > pool.size() || bytes > pool.size() - offset) {
    throw FormatError(fmt::format("a key names {} at offset {} of PE {}'s pool, which has {}",
                                  base::counted(bytes, "byte"), offset, pe, base::counted(pool.size(), "byte")));
  }
  return pool.data() + offset;
}

bool Reach::may_attach(const BufferKey& key) const {
  return (path_ == base::TransferPath::fastest || path_ == base::TransferPath::cma) && on_this_host(key.pe) &&
         attach_[key.pe] != Attach::refused;
}

bool Reach::may_attach_to_this(std::size_t other) const {
  return (path_ == base::TransferPath::fastest || path_ == base::TransferPath::cma) && on_this_host(other) &&
         !refused_by_[other];
}

bool Reach::is_mapped_by(std::size_t other, const std::byte* data, std::size_t bytes) const {
  if (path_ != base::TransferPath::fastest && path_ != base::TransferPath::mapped) return false;
  return in_this_process(other) || (on_this_host(other) && offset_in_pool(data, bytes) != BufferKey::no_offset);
}

bool Reach::is_mapped_by_all(const std::byte* data, std::size_t bytes) const {
  if (path_ != base::TransferPath::fastest && path_ != base::TransferPath::mapped) return false;
  return process_.count == pe_->size() ||
         (host_.count == pe_->size() && offset_in_pool(data, bytes) != BufferKey::no_offset);
}

bool Reach::others_map_pool() const {
  if (path_ != base::TransferPath::fastest && path_ != base::TransferPath::mapped) return false;
  const std::size_t other = in_this_process(host_.first) ? process_.end() : host_.first;
  try {
    return on_this_host(other) && !pe_->engine().endpoint().shared_memory().pool(other).empty();
  } catch (const SystemError&) {  // the process's address space is too small
    return false;
  }
}

/// Checks that the process with this number has made the key: in another namespace it is another process.
bool Reach::attach(const BufferKey& key) {
  Attach& state = attach_[key.pe];
  if (state == Attach::untried) {
    std::uint64_t token = 0;
    const ssize_t got =
        attach_copy<true>(key.process, key.token_address, reinterpret_cast<std::byte*>(&token), sizeof token);
    state = got == sizeof token && token == key.token ? Attach::works : Attach::refused;
  }
  return state == Attach::works;
}

template <bool reads>
bool Reach::copy(const BufferKey& key, std::uint64_t offset, std::byte* here, std::size_t bytes) {
  if (!may_attach(key) || !attach(key)) return false;
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = attach_copy<reads>(key.process, key.address + offset + done, here + done,
                                         std::min(bytes - done, pe_->engine().sizes().attached_bytes_max));
    if (n > 0) {
      done += std::size_t(n);
      continue;
    }
    if (n < 0 && is_refusal(errno)) {
      attach_[key.pe] = Attach::refused;
      return false;
    }
    if (n == 0 || errno == EFAULT) {
      throw UsageError(
          fmt::format("{} that PE {} {} cannot be {} any more: {} of the machine's", base::counted(key.bytes, "byte"),
                      key.pe, reads ? "sends" : "receives", reads ? "read" : "written",
                      base::by_number(key.bytes, "it was freed before the transfer was done, or is no memory",
                                      "they were freed before the transfer was done, or are no memory")));
    }
    base::throw_errno(reads ? "process_vm_readv" : "process_vm_writev");
  }
  return true;
}

bool Reach::copy_from(const BufferKey& key, std::uint64_t offset, std::byte* to, std::size_t bytes) {
  return copy<true>(key, offset, to, bytes);
}

bool Reach::copy_to(const BufferKey& key, std::uint64_t offset, const std::byte* from, std::size_t bytes) {
  return copy<false>(key, offset, const_cast<std::byte*>(from), bytes);
}

}  // namespace headway::rma
