// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/object/directory.hpp>
#include <headway/object/placement.hpp>

namespace headway::object {

DenseHomes::DenseHomes(std::uint32_t size, std::size_t pes, Placement::Kind kind,
                       std::function<PeId(std::uint32_t)> own)
    : size_(size),
      pes_(pes),
      kind_(kind == Placement::Kind::automatic ? Placement::Kind::block : kind),
      own_(std::move(own)) {
  // ceil() adds less than 1 / size for each number, since number * size < 2^64.
  if (is_block() && pes < size) {
    const auto whole = __extension__(unsigned __int128)(pes) << 64;
    factor_ = std::uint64_t((whole + size - 1) / size);
  }
}

void throw_place(std::size_t pe, std::size_t pes) {
  throw UsageError(fmt::format("place() gave PE {} for an element: this run has {}", pe, base::counted(pes, "PE")));
}

PeId DenseHomes::elsewhere(std::uint32_t number) const {
  switch (kind_) {
    case Placement::Kind::block: return std::uint64_t(number) * pes_ / size_;
    case Placement::Kind::cyclic: return number % pes_;
    case Placement::Kind::hashed: return mixed(number) % pes_;
    default: break;
  }
  const PeId pe = own_(number);
  if (pe >= pes_) throw_place(pe, pes_);
  return pe;
}

}  // namespace headway::object
