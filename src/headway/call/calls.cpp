// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <headway/base/counted.hpp>
#include <headway/base/creation_table.hpp>
#include <headway/call/calls.hpp>

namespace headway {

namespace call {

/// A PE's default aggregator of calls, all its aggregators of calls, and its part of every DistObject.
class CallState final : public am::Extension {
 public:
  struct Object {
    void* value;
    const void* type;
  };
  base::CreationTable<Object> objects;
  std::vector<CallAggregator*> aggregators;
  std::unique_ptr<CallAggregator> default_calls;
  std::array<std::uint64_t, am::scopes_max> set_aside{};  // postponed messages of layers above, by scope

  /// The object that they wait for may be made by messages of other scopes, so they are not undelivered yet.
  bool holds_back(am::ScopeId epoch) const override { return set_aside[epoch] != 0; }

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

bool no_call(Pe&, PeId, const std::byte*, std::size_t, std::uint32_t&) {
  throw FormatError("a call names the stub at offset 0, which is the library's own and runs no function");
}

void refuse_function_check(const FunctionReference& reference, std::uint32_t expected) {
  throw FormatError(
      fmt::format("a call names the function at offset {} with check {:#x}; the check of its type is {:#x}",
                  reference.offset, reference.check, expected));
}

void refuse_call_length(std::size_t bytes, std::size_t expected, bool fixed) {
  throw FormatError(fmt::format("a call has arguments of {}; its function takes {}{}", base::counted(bytes, "byte"),
                                fixed ? "" : "at least ", expected));
}

namespace {

/// The address range of one segment of the program's image.
struct Extent {
  std::uintptr_t begin = 0, end = 0;

  bool holds(std::uintptr_t at, std::size_t bytes) const { return at >= begin && at < end && bytes <= end - at; }
};

Extent segment_around(std::uintptr_t address) {
  struct Search {
    std::uintptr_t address;
    Extent found;
  } search{address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
          const auto& header = object->dlpi_phdr[i];
          const std::uintptr_t begin = object->dlpi_addr + header.p_vaddr;
          if (header.p_type != PT_LOAD || s.address < begin || s.address - begin >= header.p_memsz) continue;
          s.found = {begin, begin + header.p_memsz};
          return 1;
        }
        return 0;
      },
      &search);
  return search.found;
}

}  // namespace

namespace {

/// Not sanitized: `stub` may be between objects of the program, in readable memory of the image.
__attribute__((no_sanitize_address, noinline)) bool names_itself(const CallStub* stub) { return stub->self == stub; }

}  // namespace

const CallStub& stub_at(std::int32_t offset) {
  const auto anchor = reinterpret_cast<std::uintptr_t>(&CallStubOf<&no_call>::stub);
  static const Extent stubs = segment_around(anchor);
  const std::uintptr_t at = anchor + std::uintptr_t(std::intptr_t(offset));
  const auto* stub = reinterpret_cast<const CallStub*>(at);
  if (at % alignof(CallStub) != 0 || !stubs.holds(at, sizeof(CallStub)) || !names_itself(stub)) {
    throw FormatError(fmt::format("a call names the stub at offset {}; this program has none there", offset));
  }
  return *stub;
}

std::uintptr_t function_at(std::int32_t offset) {
  const auto anchor = reinterpret_cast<std::uintptr_t>(&no_call);
  static const Extent code = segment_around(anchor);
  const std::uintptr_t at = anchor + std::uintptr_t(std::intptr_t(offset));
  if (!code.holds(at, 1)) {
    throw FormatError(fmt::format("a call names the function at offset {}; the program's code has offsets {} to {}",
                                  offset, std::intptr_t(code.begin - anchor), std::intptr_t(code.end - anchor - 1)));
  }
  return at;
}

}  // namespace call

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void refuse_padding(std::uint32_t padding, std::size_t bytes) {
  throw FormatError(fmt::format("a call of {} after its header states {} of padding; at most {}",
                                base::counted(bytes, "byte"), base::counted(padding, "byte"),
                                std::min(bytes, sizeof(std::uint64_t) - 1)));
}

}  // namespace

CallAggregator::CallAggregator(Pe& pe, const AggregatorOptions& options)
    : CallAggregator(pe, options, call::CallState::of(pe)) {}

CallAggregator::CallAggregator(Pe& pe, const AggregatorOptions& options, call::CallState& state)
    : pe_(&pe), state_(&state), aggregator_(pe, options) {
  aggregator_.on([this](PeId source, Words words) { run(source, words); });
  state_->aggregators.push_back(this);
}

CallAggregator::~CallAggregator() { std::erase(state_->aggregators, this); }

void CallAggregator::run(PeId source, Words words) {
  CallHeader header;
  if (words.empty()) throw FormatError(fmt::format("a call has 0 bytes; its header alone has {}", sizeof header));
  std::memcpy(&header, words.data(), sizeof header);
  const std::size_t bytes = words.size_bytes() - sizeof header;
  if (header.padding >= sizeof(std::uint64_t) || header.padding > bytes) [[unlikely]]
    refuse_padding(header.padding, bytes);
  std::uint32_t missing = 0;
  if (call::stub_at(header.stub)
          .run(*pe_, source, reinterpret_cast<const std::byte*>(words.data() + 1), bytes - header.padding, missing))
    return;
  waiting_[missing].push_back({source, make_wait(), std::vector<std::uint64_t>(words.begin(), words.end())});
}

am::ScopeId CallAggregator::set_aside() {
  const am::ScopeId scope = make_wait();
  ++state_->set_aside[scope];
  return scope;
}

void CallAggregator::take_up(am::ScopeId scope, std::function<void()> run) {
  --state_->set_aside[scope];
  run_again(scope, std::move(run));
}

void CallAggregator::count_waiting(am::ScopeId scope, int messages) {
  aggregator_.count_waiting(scope, messages);
  state_->set_aside[scope] += std::uint64_t(std::int64_t(messages));
}

am::ScopeId CallAggregator::make_wait() {
  am::Engine& engine = pe_->engine();
  engine.count_handled(~std::uint64_t(0));  // not handled yet after all
  aggregator_.count_waiting(engine.scope(), 1);
  return engine.scope();
}

void CallAggregator::run_again(am::ScopeId scope, std::function<void()> run) {
  aggregator_.count_waiting(scope, -1);
  pe_->engine().run_later(scope, [this, run = std::move(run)] {
    pe_->engine().count_handled(1);
    run();
  });
}

void CallAggregator::object_made(std::uint32_t number) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return;
  for (Waiting& call : found->second) {
    const am::ScopeId scope = call.scope;
    run_again(scope, [this, call = std::move(call)] {
      try {
        run(call.source, call.words);
      } catch (const FormatError& error) {
        throw FormatError(fmt::format("a call from PE {} is not valid: {}", call.source.value, error.what()));
      }
    });
  }
  waiting_.erase(found);
}

void* CallAggregator::find_object(Pe& pe, std::uint32_t number, const void* type) {
  call::CallState& state = call::CallState::of(pe);
  const call::CallState::Object* const object = state.objects.find(number);
  if (object == nullptr) [[unlikely]] {
    if (!state.objects.was_made(number)) return nullptr;
    throw UsageError(
        fmt::format("a call came to PE {} for DistObject number {}, which was destroyed there: quiesce() "
                    "before destroying it",
                    pe.id().value, number));
  }
  if (object->type != type) {
    throw FormatError(
        fmt::format("a call names DistObject number {} of PE {} as one of another type", number, pe.id().value));
  }
  return object->value;
}

std::uint32_t CallAggregator::add_object(Pe& pe, void* object, const void* type) {
  call::CallState& state = call::CallState::of(pe);
  const std::uint32_t number = state.objects.add({object, type});
  for (CallAggregator* calls : state.aggregators) calls->object_made(number);
  return number;
}

void CallAggregator::remove_object(Pe& pe, std::uint32_t number) { call::CallState::of(pe).objects.remove(number); }

}  // namespace headway
