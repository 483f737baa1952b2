#include <fmt/format.h>

#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/collective/allreduce.hpp>
#include <map>
#include <optional>
#include <vector>

namespace headway::collective {
namespace {

using Bytes = std::vector<std::byte>;

/// A PE's place in the binomial tree over all PEs: the subtree of a PE holds consecutive PEs, its own first, so that
/// folding the children in ascending order combines all values in the order of the PEs.
class ReductionState final : public am::Extension {
 public:
  explicit ReductionState(Pe& pe) {
    am::Engine& engine = pe.engine();
    const std::size_t id = engine.id();
    parent = id & (id - 1);
    for (std::size_t bit = 1; (id & bit) == 0 && id + bit < engine.size(); bit <<= 1) children.push_back(id + bit);
    from_child.resize(children.size());
    contribution = engine.add_control([this](std::size_t source, std::span<const std::byte> bytes) {
      const auto child = std::size_t(std::ranges::find(children, source) - children.begin());
      if (child == children.size()) throw FormatError("a contribution comes from a child in the tree");
      if (from_child[child]) throw FormatError("a child has contributed already");
      from_child[child].emplace(bytes.begin(), bytes.end());
    });
    outcome = engine.add_control([this, id](std::size_t source, std::span<const std::byte> bytes) {
      if (id == 0 || source != parent) throw FormatError("an outcome comes from the parent in the tree alone");
      if (result) throw FormatError("an outcome came already");
      result.emplace(bytes.begin(), bytes.end());
    });
  }

  void add_waits_for(std::vector<std::uint32_t>& pes) const override {
    if (!inside) return;
    for (std::size_t c = 0; c < children.size(); ++c) {
      if (!given && !from_child[c]) pes.push_back(std::uint32_t(children[c]));
    }
    if (given) pes.push_back(std::uint32_t(parent));
  }

  bool children_in() const {
    for (const auto& value : from_child) {
      if (!value) return false;
    }
    return true;
  }

  std::size_t parent = 0;
  std::vector<std::size_t> children;
  // A child contributes to the next reduction only after its parent has sent it the outcome of this one, and so has
  // taken this contribution: one place for each is enough.
  std::vector<std::optional<Bytes>> from_child;
  std::optional<Bytes> result;
  bool inside = false;  // a call is waiting
  bool given = false;   // to the parent, whose result is to come
  std::uint16_t contribution = 0, outcome = 0;
};

const std::size_t extension = am::register_extension(
    [](Pe& pe) -> std::unique_ptr<am::Extension> { return std::make_unique<ReductionState>(pe); });

}  // namespace

void allreduce(Pe& pe, std::span<std::byte> value,
               const std::function<void(std::byte*, const std::byte*)>& combine) {
  am::Engine& engine = pe.engine();
  auto& state = static_cast<ReductionState&>(engine.extension(extension));
  state.inside = true;
  engine.wait_until([&] { return state.children_in(); }, am::Phase::collective);
  for (std::size_t c = 0; c < state.children.size(); ++c) {
    std::optional<Bytes>& child = state.from_child[c];
    if (child->size() != value.size()) {
      throw UsageError(
          fmt::format("allreduce() with values of different sizes, {} bytes on PE {} and {} on PE {}: all PEs call the "
                      "same collectives in the same order",
                      value.size(), engine.id(), child->size(), state.children[c]));
    }
    combine(value.data(), child->data());
    child.reset();
  }
  if (engine.id() != 0) {
    engine.send_control(state.parent, state.contribution, value);
    state.given = true;
    engine.wait_until([&] { return state.result.has_value(); }, am::Phase::collective, std::uint32_t(state.parent));
    state.given = false;
    if (state.result->size() != value.size()) {
      throw FormatError(fmt::format("the outcome of allreduce() that came from PE {} to PE {} has {} bytes instead of {}",
                                    state.parent, engine.id(), state.result->size(), value.size()));
    }
    if (!value.empty()) std::memcpy(value.data(), state.result->data(), value.size());
    state.result.reset();
  }
  for (auto child = state.children.rbegin(); child != state.children.rend(); ++child) {
    engine.send_control(*child, state.outcome, value);
  }
  state.inside = false;
}

}  // namespace headway::collective
