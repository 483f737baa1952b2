// SPDX-License-Identifier: BSD-3-Clause
#include "recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace headway::mpi_report {
namespace {

HEADWAY_REAL(Comm_rank);
HEADWAY_REAL(Comm_size);
HEADWAY_REAL(Bcast);

std::int64_t clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

const std::uint64_t first_ticks = ticks_now();
const std::int64_t first_ns = clock_ns();

std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 31;
  value *= 0x9e3779b97f4a7c15;
  value ^= value >> 29;
  value *= 0xbf58476d1ce4e5b9;
  return value ^ value >> 32;
}

std::uint64_t bit_of(int tag) { return std::uint64_t(1) << (unsigned(tag) % 64); }

void copy_text(char* to, std::size_t bytes, const char* from) { std::snprintf(to, bytes, "%s", from); }

/// The file as shared memory, or null with a line on standard error.
RankFile* make_file(const char* folder, std::uint64_t world, int rank, int size) {
  char path[4096];
  std::snprintf(path, sizeof path, "%s/%016llx-%d.rank", folder, static_cast<unsigned long long>(world), rank);
  const int descriptor = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  const std::size_t bytes = RankFile::bytes_of(std::size_t(size));
  void* memory = MAP_FAILED;
  if (descriptor >= 0 && ::ftruncate(descriptor, off_t(bytes)) == 0)
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (memory != MAP_FAILED) return static_cast<RankFile*>(memory);
  std::fprintf(stderr, "headway mpi-report: rank %d counts nothing: %s: %s\n", rank, path, std::strerror(error));
  return nullptr;
}

}  // namespace

Recorder recorder;
std::atomic_flag lock;

void Recorder::begin(int threads_level) {
  const char* const folder = std::getenv("HEADWAY_MPI_REPORT_DIR");
  if (file_ != nullptr || folder == nullptr) return;
  int rank = 0, size = 1;
  real_Comm_rank(MPI_COMM_WORLD, &rank);
  real_Comm_size(MPI_COMM_WORLD, &size);
  unsigned long long world = (static_cast<unsigned long long>(clock_ns()) << 16) ^ static_cast<unsigned>(::getpid());
  real_Bcast(&world, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
  file_ = make_file(folder, world, rank, size);
  if (file_ == nullptr) return;
  file_->world = world;
  file_->rank = rank;
  file_->size = size;
  file_->threads = std::uint32_t(threads_level);
  copy_text(file_->mpi, sizeof file_->mpi, HEADWAY_MPI);
  ::gethostname(file_->host, sizeof file_->host - 1);
  if (const ssize_t n = ::readlink("/proc/self/exe", file_->program, sizeof file_->program - 1); n > 0)
    file_->program[n] = '\0';
  file_->start_ns = clock_ns();
  file_->start_ticks = file_->last_ticks = ticks_now();
  // MPI_Init takes milliseconds, so the rate is exact to 10^-4 and better.
  file_->ticks_per_second =
      double(file_->start_ticks - first_ticks) * 1e9 / double(std::max<std::int64_t>(file_->start_ns - first_ns, 1));
  idle_ticks_ = std::uint64_t(file_->ticks_per_second * 1e-6 * idle_us);
  file_->version = rank_file_version;
  threads_ = threads_level == MPI_THREAD_MULTIPLE;
  recording_ = true;
}

void Recorder::end() {
  if (!recording_) return;
  close_exchange();
  recording_ = false;
  file_->last_ticks = ticks_now();
  file_->finalized = 1;
}

Partner& Recorder::enter(Partner& partner) {
  if (partner.exchange != exchange_) {
    partner.exchange = exchange_;
    partner.open_messages = partner.open_sources = 0;
    partner.tags = partner.source_tags = 0;
    active_.push_back(int(&partner - file_->partners()));
  }
  return partner;
}

void Recorder::sends(std::uint64_t count, MPI_Datatype type, int target, int tag, MPI_Comm comm, FunctionRow& row) {
  if (target == MPI_PROC_NULL) return;
  const TypeInfo& info = type_of(type);
  sends_bytes(count * info.bytes, info.layout, ranks_of(comm).world_of(target), tag, row);
}

void Recorder::sends_bytes(std::uint64_t bytes, Layout layout, int world, int tag, FunctionRow& row) {
  row.bytes += bytes;
  count_size(point_to_point, bytes);
  ++file_->layout_messages[layout];
  file_->layout_bytes[layout] += bytes;
  Partner* const partner = partner_of(world);
  if (partner == nullptr) return;  // of another MPI_COMM_WORLD
  begin_burst();
  // The same message again, in another burst: the next exchange.
  if (partner->exchange == exchange_ && (partner->tags & bit_of(tag)) != 0 && partner->sent_burst != burst_)
    close_exchange();
  enter(*partner).tags |= bit_of(tag);
  partner->sent_burst = burst_;
  ++partner->open_messages;
  has_sent_ = true;
  // Sums do not depend on the order of the messages.
  partner->open_bytes = partner->open_messages == 1 ? mixed(bytes + 1) : partner->open_bytes + mixed(bytes + 1);
  ++partner->messages;
  partner->bytes += bytes;
  if (partner->phase != phase_) {
    partner->phase = phase_;
    partner->phase_bytes = 0;
    ++partner->frames;
  }
  partner->phase_bytes += bytes;
  while (partner->phase_bytes > frame_bytes) {
    const std::uint64_t whole = (partner->phase_bytes - 1) / frame_bytes;
    partner->frames += whole;
    partner->phase_bytes -= whole * frame_bytes;
  }
  if (partner->first == 0) partner->first = 1;
  if (partner->turn != 0) ++partner->answers;
  if (partner->turn == 2) ++partner->answers_to_any;
  partner->turn = 0;
}

void Recorder::posts_receive(int source, int tag, MPI_Comm comm) {
  if (source == MPI_PROC_NULL) return;
  begin_burst();
  if (source == MPI_ANY_SOURCE)
    ++file_->any_source;
  else if (Partner* const partner = partner_of(ranks_of(comm).world_of(source)))
    enter_source(*partner, tag);
}

void Recorder::enter_source(Partner& partner, int tag) {
  const bool again = partner.exchange == exchange_ && (partner.source_tags & bit_of(tag)) != 0;
  if (again && has_sent_ && partner.source_burst != burst_) close_exchange();
  enter(partner).source_tags |= bit_of(tag);
  partner.source_burst = burst_;
  ++partner.open_sources;
}

void Recorder::received(const Ranks& ranks, int source, bool any_source) {
  Partner* const partner = partner_of(ranks.world_of(source));
  if (partner == nullptr) return;
  if (any_source) ++enter(*partner).open_sources;
  ++partner->received;
  if (partner->first == 0) partner->first = 2;
  partner->turn = any_source || int(partner - file_->partners()) == probed_ ? 2 : 1;
  probed_ = -1;
}

void Recorder::probed(MPI_Comm comm, int source) {
  ++file_->any_source;
  probed_ = ranks_of(comm).world_of(source);
}

void Recorder::neighbour_blocks(MPI_Comm comm, FunctionRow& row, const std::vector<std::uint64_t>& bytes) {
  const Ranks& ranks = ranks_of(comm);
  const std::size_t n = std::min(bytes.size(), ranks.neighbours.size());
  if (outstanding_ == 0) close_exchange();
  for (std::size_t i = 0; i < n; ++i) {
    if (ranks.neighbours[i] < 0) continue;
    if (Partner* const partner = partner_of(ranks.neighbours[i])) ++enter(*partner).open_sources;
    ++outstanding_;  // so that two blocks to one neighbour stay in one exchange
    sends_bytes(bytes[i], named, ranks.neighbours[i], 0, row);
    --outstanding_;
  }
}

void Recorder::close_exchange() {
  if (has_sent_) {
    List list{};
    for (const int world : active_) {
      const Partner& partner = file_->partners()[world];
      list.sources += partner.open_sources > 0;
      if (partner.open_messages == 0) continue;
      ++list.partners;
      list.both += partner.open_sources > 0;
      list.messages += partner.open_messages;
      list.fingerprint += mixed(partner.open_bytes + std::uint64_t(world) * 0x10001);
      list.partner_fingerprint += mixed(std::uint64_t(world) + 0x5555);
      ++file_->partners()[world].exchanges;
    }
    list.fingerprint |= 1;
    list.partner_fingerprint |= 1;
    enter_list(list);
  }
  active_.clear();
  has_sent_ = false;
  ++exchange_;
}

void Recorder::enter_list(const List& list) {
  ++file_->exchanges;
  file_->exchange_messages += list.messages;
  file_->exchange_partners += list.partners;
  file_->exchange_sources += list.sources;
  file_->exchange_both += list.both;
  constexpr std::size_t sets = lists_max / lists_of_set;
  std::uint64_t* const partners = file_->partner_sets + mixed(list.partner_fingerprint) % sets * lists_of_set;
  std::uint64_t* const known = std::find(partners, partners + lists_of_set, list.partner_fingerprint);
  if (known != partners + lists_of_set)
    ++file_->repeated_partners;
  else
    partners[exchange_ % lists_of_set] = list.partner_fingerprint;

  List* const entries = file_->lists + mixed(list.fingerprint) % sets * lists_of_set;
  List* least = entries;
  for (List* entry = entries; entry != entries + lists_of_set; ++entry) {
    if (entry->fingerprint == list.fingerprint) {
      ++entry->times;
      ++file_->repeated;
      file_->repeated_messages += list.messages;
      return;
    }
    if (entry->times < least->times) least = entry;
  }
  *least = list;
  least->times = 1;
}

void Recorder::synchronized() {
  ++phase_;
  if (outstanding_ > 0 || !has_sent_) return;
  ++file_->closed_by_collective;
  close_exchange();
}

}  // namespace headway::mpi_report
