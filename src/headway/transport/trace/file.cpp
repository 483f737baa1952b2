// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <headway/base/error.hpp>
#include <headway/transport/trace/file.hpp>
#include <system_error>

namespace headway::trace {
namespace {

using model::trace::Header;
using model::trace::NameEntry;
using model::trace::Record;

constexpr std::size_t header_bytes = sizeof(Header) + model::trace::names_max * sizeof(NameEntry);
static_assert(header_bytes % sizeof(Record) == 0);
constexpr std::size_t piece = std::size_t(1) << 15;  // 1 MiB of records: disk blocks are reserved for so many
constexpr std::size_t prefaulted_together = piece / 8;
constexpr std::size_t prefaulted_first_by_all = 64 * piece;  // before the run begins, by all PEs together

std::size_t prefaulted_first(std::size_t pes) {
  return std::clamp(prefaulted_first_by_all / pes, prefaulted_together, 4 * piece);
}

/// Takes the writer's errno.
[[noreturn]] void refuse(const std::string& folder, const std::string& name, const char* what) {
  throw SystemError(
      fmt::format("HEADWAY_TRACE={}: {} cannot be {}: {}", folder, name, what, std::generic_category().message(errno)));
}

}  // namespace

TraceFile::TraceFile(const std::string& folder, const Header& header, std::size_t records_max)
    : bytes_(header_bytes + records_max * sizeof(Record)) {
  const std::string name = folder + "/" + fmt::format(model::trace::file_name_format, header.pe);
  // Another run may still have the old file mapped.
  if (unlink(name.c_str()) != 0 && errno != ENOENT) refuse(folder, name, "replaced");
  file_ = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) refuse(folder, name, "written");
  auto refuse_and_close = [&](const char* what) {
    const int error = errno;
    close(file_);
    errno = error;
    refuse(folder, name, what);
  };
  // Beyond this limit the system would send a signal.
  if (rlimit limit{}; getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes_) {
    errno = EFBIG;
    refuse_and_close("made so long");
  }
  if (ftruncate(file_, off_t(bytes_)) != 0) refuse_and_close("made so long");
  places_ = std::min(prefaulted_first(header.pes), records_max);
  if (!reserve(places_)) refuse_and_close("written");
  void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (at == MAP_FAILED) refuse_and_close("mapped");
  header_ = static_cast<Header*>(at);
  *header_ = header;
  std::memcpy(header_->magic, model::trace::magic, sizeof header_->magic);
  header_->version = model::trace::version;
  header_->header_bytes = header_bytes;
  header_->record_bytes = sizeof(Record);
  header_->records_max = records_max;
  header_->names_begin = sizeof(Header);
  ring_ = reinterpret_cast<Record*>(static_cast<std::byte*>(at) + header_bytes);
  prefault(places_);
}

TraceFile::~TraceFile() {
  const std::uint64_t used = std::min(written_, header_->records_max);
  munmap(header_, bytes_);
  [[maybe_unused]] const int cut =
      ftruncate(file_, off_t(header_bytes + used * sizeof(Record)));  // readers go by `written`
  close(file_);
}

/// False without space. Where a file system cannot reserve, the blocks come with the first write.
bool TraceFile::reserve(std::size_t places) {
  const std::size_t bytes = header_bytes + places * sizeof(Record);
  for (;;) {
    if (fallocate(file_, 0, 0, off_t(bytes)) == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return true;
    if (errno != EINTR) return false;
  }
}

/// The page fault of a first write to a file takes microseconds; many pages in one call take a third of that each.
void TraceFile::prefault(std::size_t places) {
  const auto page = std::size_t(sysconf(_SC_PAGESIZE));
  auto* const file = reinterpret_cast<std::byte*>(header_);
  const std::size_t from = (header_bytes + prefaulted_ * sizeof(Record)) / page * page;
  const std::size_t end = std::min(header_bytes + places * sizeof(Record), bytes_);
#ifdef MADV_POPULATE_WRITE
  madvise(file + from, end - from, MADV_POPULATE_WRITE);  // an older kernel refuses it, and pages come as they are used
#endif
  prefaulted_ = places;
}

/// All places with pages are used: gets more pages, reserves more blocks, or begins again at the first place.
void TraceFile::go_on() {
  if (place_ < places_) return prefault(std::min(place_ + prefaulted_together, places_));
  const std::size_t more = std::min<std::size_t>(places_ + piece, header_->records_max);
  if (place_ < header_->records_max && reserve(more)) {
    places_ = more;
    return prefault(std::min(place_ + prefaulted_together, places_));
  }
  header_->records_max = places_;
  place_ = 0;
}

void TraceFile::add_name(model::trace::NameKind kind, std::uint16_t number, std::string_view text) {
  const std::uint32_t names = header_->names;
  if (names == model::trace::names_max) return;
  NameEntry& entry = reinterpret_cast<NameEntry*>(header_ + 1)[names];
  entry.kind = kind;
  entry.number = number;
  text.copy(entry.text, sizeof entry.text - 1);
  std::atomic_ref(header_->names).store(names + 1, std::memory_order_release);
}

}  // namespace headway::trace
