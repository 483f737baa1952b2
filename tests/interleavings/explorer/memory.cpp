// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include <algorithm>
#include <stdexcept>

namespace headway::explore {
namespace {

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_consume ||
         order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

}  // namespace

void View::join(const View& other) {
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other.clock[i]);
  join_earliest(other);
}

void View::join_earliest(const View& other) {
  for (std::size_t i = 0; i < earliest.size(); ++i) earliest[i] = std::max(earliest[i], other.earliest[i]);
}

void Memory::clear() {
  for (std::size_t i = 0; i < atomics_count_; ++i) atomics_[i].clear();
  atomics_count_ = 0;
  step_ = 0;
  plains_.clear();
  threads_ = {};
  for (unsigned t = 0; t < threads_.size(); ++t) threads_[t].now.clock[t] = 1;
  sequential_ = {};
  kernel_ = {};
}

std::size_t Memory::add_atomic(std::uint64_t value) {
  if (atomics_count_ == locations_max) throw std::length_error("a program has too many atomic locations");
  if (atomics_count_ == atomics_.size()) atomics_.emplace_back().reserve(32);
  atomics_[atomics_count_].push_back({value, 0, {}});
  return atomics_count_++;
}

std::size_t Memory::add_plain() {
  plains_.emplace_back();
  return plains_.size() - 1;
}

StoreIndex Memory::earliest(unsigned thread, std::size_t location, std::memory_order order) const {
  const Thread& t = threads_[thread];
  if (thread == test_itself) return newest(location);
  const StoreIndex earliest = std::max(t.now.earliest[location], t.hurried[location]);
  return order == std::memory_order_seq_cst ? std::max(earliest, sequential_.earliest[location]) : earliest;
}

void Memory::take_over(unsigned thread, std::size_t location, StoreIndex store, std::memory_order order) {
  Thread& t = threads_[thread];
  const View& view = atomics_[location][store].view;
  t.now.earliest[location] = std::max(t.now.earliest[location], store);
  (acquires(order) ? t.now : t.acquired).join(view);
}

std::uint64_t Memory::load(unsigned thread, std::size_t location, StoreIndex store, std::memory_order order) {
  take_over(thread, location, store, order);
  tick(thread);
  return value(location, store);
}

void Memory::append(unsigned thread, std::size_t location, std::uint64_t value, std::memory_order order,
                    const View* continued) {
  Thread& t = threads_[thread];
  const StoreIndex index = StoreIndex(atomics_[location].size());
  t.now.earliest[location] = index;
  Store store{value, step_, releases(order) ? t.now : t.released};
  store.view.earliest[location] = index;
  if (continued != nullptr) store.view.join(*continued);
  if (order == std::memory_order_seq_cst) sequential_.earliest[location] = index;
  atomics_[location].push_back(store);
  tick(thread);
}

void Memory::store(unsigned thread, std::size_t location, std::uint64_t value, std::memory_order order) {
  append(thread, location, value, order, nullptr);
}

void Memory::read_modify_write(unsigned thread, std::size_t location, std::uint64_t value, std::memory_order order) {
  take_over(thread, location, newest(location), order);
  const View read = atomics_[location].back().view;  // it continues the release sequence of the store it read
  append(thread, location, value, order, &read);
}

void Memory::fence(unsigned thread, std::memory_order order) {
  Thread& t = threads_[thread];
  if (acquires(order)) t.now.join(t.acquired);
  if (order == std::memory_order_seq_cst) {
    t.now.join_earliest(sequential_);
    sequential_.join_earliest(t.now);
  }
  if (releases(order)) t.released = t.now;
  tick(thread);
}

void Memory::hurry(unsigned thread, std::size_t location, StoreIndex store) {
  threads_[thread].hurried[location] = std::max(threads_[thread].hurried[location], store);
}

void Memory::hurry(unsigned thread) {
  for (std::size_t location = 0; location < atomics_count_; ++location) hurry(thread, location, newest(location));
}

void Memory::kernel_release(unsigned thread, std::size_t location) {
  kernel_[location].join_earliest(threads_[thread].now);
  tick(thread);
}

StoreIndex Memory::kernel_earliest(unsigned thread, std::size_t location) const {
  return std::max(earliest(thread, location, std::memory_order_relaxed), kernel_[location].earliest[location]);
}

bool Memory::read_plain(unsigned thread, std::size_t location) {
  Plain& plain = plains_[location];
  const View& now = threads_[thread].now;
  plain.read[thread] = now.clock[thread];
  return plain.writer == thread || plain.written <= now.clock[plain.writer];
}

bool Memory::write_plain(unsigned thread, std::size_t location) {
  Plain& plain = plains_[location];
  const View& now = threads_[thread].now;
  bool alone = plain.writer == thread || plain.written <= now.clock[plain.writer];
  for (unsigned t = 0; t < plain.read.size(); ++t) alone &= t == thread || plain.read[t] <= now.clock[t];
  plain.writer = thread;
  plain.written = now.clock[thread];
  return alone;
}

}  // namespace headway::explore
