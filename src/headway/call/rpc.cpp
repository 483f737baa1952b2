// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/base/format_error.hpp>
#include <headway/call/rpc.hpp>

namespace headway::call {
namespace {

const std::size_t extension =
    am::register_extension([](Pe&) -> std::unique_ptr<am::Extension> { return std::make_unique<PendingCalls>(); });

/// The same as TakeAnswer for an exception.
struct TakeFailure {
  void operator()(Pe& pe, PeId source, CallNumber number, const std::string& text) const {
    const am::Hold<am::Completion> hold = PendingCalls::of(pe).take_failed(number, source);
    hold->error = std::make_exception_ptr(RemoteError(source, text));
    hold->state = am::Completion::State::failed;
    hold->owner->complete(*hold);
  }
};

}  // namespace

PendingCalls& PendingCalls::of(Pe& pe) { return static_cast<PendingCalls&>(pe.engine().extension(extension)); }

CallNumber PendingCalls::add(am::Hold<am::Completion> completion, const void* type, PeId destination) {
  if (first_free_ == none) {
    if (places_.size() == none) throw UsageError("more than 4294967294 calls wait for their answers");
    places_.emplace_back().next_free = none;
    first_free_ = std::uint32_t(places_.size() - 1);
  }
  const std::uint32_t at = first_free_;
  Place& place = places_[at];
  first_free_ = place.next_free;
  place.completion = std::move(completion);
  place.type = type;
  place.destination = std::uint32_t(destination);
  ++size_;
  return {at, place.uses};
}

am::Hold<am::Completion> PendingCalls::take(CallNumber number) {
  Place& place = places_[number.place];
  ++place.uses;
  place.next_free = std::exchange(first_free_, number.place);
  --size_;
  return std::move(place.completion);
}

am::Hold<am::Completion> PendingCalls::take(CallNumber number, const void* type, PeId source) {
  if (number.place >= places_.size() || !places_[number.place].completion ||
      places_[number.place].uses != number.uses) {
    throw FormatError(fmt::format("PE {} answers call {} (use {}): no call that waits for one", source.value,
                                  number.place, number.uses));
  }
  const Place& place = places_[number.place];
  if (place.destination != any_pe && place.destination != source) {
    throw FormatError(
        fmt::format("PE {} answers call {}, which went to PE {}", source.value, number.place, place.destination));
  }
  if (type != nullptr && place.type != type) {
    throw FormatError(fmt::format("PE {} answers call {} with a value of another type than its function returns",
                                  source.value, number.place));
  }
  return take(number);
}

std::string text_of_failure() {
  try {
    throw;
  } catch (const am::RunFailed&) {
    throw;
  } catch (const transport::InvalidFrame&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

void send_failure(Pe& pe, PeId source, CallNumber number, FunctionName function, const std::string& text) {
  rpc_ff(pe, source, TakeFailure(), number, fmt::format("{} on PE {} threw: {}", function(), pe.id().value, text));
}

}  // namespace headway::call
