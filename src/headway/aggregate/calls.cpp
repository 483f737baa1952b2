#include <fmt/format.h>

#include <algorithm>
#include <headway/aggregate/calls.hpp>

namespace headway {

/// What a PE keeps for calls: its default aggregator, all aggregators of calls, and its part of every DistObject.
class CallState final : public am::Extension {
 public:
  std::vector<void*> objects;  // by number; nullptr: destroyed
  std::vector<CallAggregator*> aggregators;
  std::unique_ptr<CallAggregator> default_calls;

  static CallState& of(Pe& pe);
  static std::unique_ptr<am::Extension> make(Pe& pe) {
    auto state = std::make_unique<CallState>();
    state->default_calls.reset(new CallAggregator(pe, {.name = "rpc_ff"}, *state));
    return state;
  }
  ~CallState() override { default_calls.reset(); }
};

namespace {
const std::size_t extension = am::register_extension(&CallState::make);
}

CallState& CallState::of(Pe& pe) { return static_cast<CallState&>(pe.engine().extension(extension)); }

CallAggregator& default_calls(Pe& pe) { return *CallState::of(pe).default_calls; }

void aggregate::image_anchor() {}

CallAggregator::CallAggregator(Pe& pe, const AggregatorOptions& options) : CallAggregator(pe, options, CallState::of(pe)) {}

CallAggregator::CallAggregator(Pe& pe, const AggregatorOptions& options, CallState& state)
    : pe_(&pe), state_(&state), aggregator_(pe, options) {
  aggregator_.on([this](PeId source, Words words) { run(source, words); });
  state_->aggregators.push_back(this);
}

CallAggregator::~CallAggregator() { std::erase(state_->aggregators, this); }

void CallAggregator::run(PeId source, Words words) {
  CallHeader header;
  if (words.empty()) throw FormatError("a call is shorter than its header");
  std::memcpy(&header, words.data(), sizeof header);
  const std::size_t bytes = words.size_bytes() - sizeof header;
  if (header.padding >= sizeof(std::uint64_t) || header.padding > bytes) throw FormatError("a call's padding is not valid");
  const auto stub = aggregate::function_at<std::remove_pointer_t<Stub>>(header.code);
  std::uint32_t missing = 0;
  if (stub(*pe_, source, reinterpret_cast<const std::byte*>(words.data() + 1), bytes - header.padding, missing)) return;
  waiting_[missing].emplace_back(source, std::vector<std::uint64_t>(words.begin(), words.end()));
  pe_->engine().count_handled(~std::uint64_t(0));  // not handled yet after all
  aggregator_.set_waiting_messages(aggregator_.waiting_messages() + 1);
}

void CallAggregator::object_made(std::uint32_t number) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return;
  aggregator_.set_waiting_messages(aggregator_.waiting_messages() - found->second.size());
  for (auto& [source, words] : found->second) {
    pe_->engine().run_later([this, source = source, words = std::move(words)] {
      pe_->engine().count_handled(1);
      run(source, words);
    });
  }
  waiting_.erase(found);
}

void* CallAggregator::find_object(Pe& pe, std::uint32_t number) {
  const CallState& state = CallState::of(pe);
  if (number >= state.objects.size()) return nullptr;
  if (state.objects[number] == nullptr) {
    throw UsageError(fmt::format("a call came to PE {} for DistObject number {}, which was destroyed there: quiesce() "
                                 "before destroying it",
                                 pe.id().value, number));
  }
  return state.objects[number];
}

std::uint32_t CallAggregator::add_object(Pe& pe, void* object) {
  CallState& state = CallState::of(pe);
  state.objects.push_back(object);
  const auto number = std::uint32_t(state.objects.size() - 1);
  for (CallAggregator* calls : state.aggregators) calls->object_made(number);
  return number;
}

void CallAggregator::remove_object(Pe& pe, std::uint32_t number) { CallState::of(pe).objects[number] = nullptr; }

}  // namespace headway
