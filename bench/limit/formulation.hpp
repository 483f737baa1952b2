// SPDX-License-Identifier: BSD-3-Clause
/// The formulations of the rings' cases: every way to build with every way to deliver and every choice of buffers.
#pragma once

#include <string>
#include <vector>

#include "comparison.hpp"
#include "deliver.hpp"
#include "measure.hpp"
#include "send.hpp"
#include "traffic.hpp"

namespace headway::limit {

struct Formulation {
  std::string name;
  Format format;
  Send send;
  Deliver deliver, check;
  std::size_t buffer_bytes;  // whole messages, where their size is fixed
  std::size_t depth;         // of a ring, in buffers
};

struct NamedSend {
  std::string name;
  Send send;
};
struct NamedDeliver {
  std::string name;
  Deliver deliver;
  Deliver check = compare;
};

/// What can be combined.
struct Kind {
  std::string name;  // empty where there is but one
  Format format;
  std::vector<NamedSend> builds;
  std::vector<NamedDeliver> deliveries;
  std::size_t needed;  // by a message in a buffer
};

/// Of messages that are objects with memory of their own.
std::vector<Kind> owning_kinds(const Options& options);

}  // namespace headway::limit
