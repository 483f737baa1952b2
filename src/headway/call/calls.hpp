// SPDX-License-Identifier: BSD-3-Clause
/// Calls of any function on any PE, many to a frame; and DistObject, of which each PE has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <headway/aggregate/aggregator.hpp>
#include <headway/aggregate/call_function.hpp>
#include <headway/am/task.hpp>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway {

template <class T>
class DistObject;

namespace call {

class CallState;

/// A DistObject in a message: its number, which is the same on every PE.
template <class T>
struct DistReference {
  std::uint32_t number;
};

template <class T>
inline constexpr bool is_dist_object = false;
template <class T>
inline constexpr bool is_dist_object<DistObject<T>> = true;

/// The type as which an argument of a call travels.
template <class Arg>
struct WireOf {
  using Type = Arg;
  static const Arg& convert(const Arg& arg) { return arg; }
};
template <class T>
struct WireOf<std::span<T>> {
  using Type = std::span<const std::remove_const_t<T>>;
  static Type convert(std::span<T> arg) { return arg; }
};
template <std::size_t n>
struct WireOf<char[n]> {
  using Type = std::string_view;
  static Type convert(const char (&text)[n]) { return text; }
};
template <class T>
struct WireOf<DistObject<T>> {
  using Type = DistReference<T>;
  static Type convert(const DistObject<T>& object) { return {object.number()}; }
};
template <class Arg>
using Wire = typename WireOf<Arg>::Type;

/// Runs a call with the arguments at `at`. False if a DistObject among them does not exist on this PE yet: `missing` is
/// its number.
using RunCall = bool(Pe&, PeId source, const std::byte* at, std::size_t bytes, std::uint32_t& missing);

/// One for each type of call, at the same offset of the program's image in all processes of a run. `self` is its own
/// address, which tells a stub from other bytes of the image.
struct CallStub {
  const CallStub* self;
  RunCall* run;
};
template <RunCall* run>
struct CallStubOf {
  static const CallStub stub;
};
template <RunCall* run>
constinit const CallStub CallStubOf<run>::stub{&CallStubOf<run>::stub, run};

/// The library's own stub. Offsets of stubs count from it, those of functions from its code.
RunCall no_call;

/// UsageError if `to` is not in the program's image.
inline std::int32_t offset_in_image(std::uintptr_t from, std::uintptr_t to) {
  const auto offset = std::intptr_t(to - from);
  if (offset != std::int32_t(offset))
    throw UsageError("a function outside the program's image cannot be called remotely");
  return std::int32_t(offset);
}
inline std::int32_t offset_of_stub(const CallStub& stub) {
  return offset_in_image(reinterpret_cast<std::uintptr_t>(&CallStubOf<&no_call>::stub),
                         reinterpret_cast<std::uintptr_t>(&stub));
}
template <class Function>
std::int32_t offset_of_function(Function* function) {
  return offset_in_image(reinterpret_cast<std::uintptr_t>(&no_call), reinterpret_cast<std::uintptr_t>(function));
}
/// The stub and the function at an offset. FormatError if there is no stub, or no code.
const CallStub& stub_at(std::int32_t offset);
std::uintptr_t function_at(std::int32_t offset);

/// A plain function in a message. `check` is a hash of the offset and the function's type, so that invalid bytes do not
/// lead to a call.
struct FunctionReference {
  std::int32_t offset;
  std::uint32_t check;
};
template <class Function>
std::uint32_t check_of(std::int32_t offset) {
  constexpr std::uint64_t type = [] {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : aggregate::pretty_name<Function>()) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
    return hash;
  }();
  return std::uint32_t(((type ^ std::uint32_t(offset)) * 0x9e3779b97f4a7c15) >> 32);
}
template <class Function>
FunctionReference reference_to(Function* function) {
  const std::int32_t offset = offset_of_function(function);
  return {offset, check_of<Function>(offset)};
}
/// FormatError: the check of `reference` is not that of the function's type.
[[noreturn]] void refuse_function_check(const FunctionReference& reference, std::uint32_t expected);
/// FormatError: a call's arguments have a wrong length. `fixed`: `expected` is the length, not a minimum.
[[noreturn]] void refuse_call_length(std::size_t bytes, std::size_t expected, bool fixed);

template <class Function>
Function* function_of(const FunctionReference& reference) {
  if (reference.check != check_of<Function>(reference.offset)) {
    refuse_function_check(reference, check_of<Function>(reference.offset));
  }
  return reinterpret_cast<Function*>(function_at(reference.offset));
}

/// Its address identifies the type T.
template <class T>
inline constexpr char type_tag = 0;

/// Whether the arguments of rpc() or rpc_ff() begin with a destination and a function.
template <class... Given>
inline constexpr bool begins_as_call = false;
template <class Destination, class Function, class... Given>
inline constexpr bool begins_as_call<Destination, Function, Given...> = std::is_convertible_v<Destination, PeId>;

template <class... Given>
constexpr void refuse_call() {
  static_assert(begins_as_call<Given...>,
                "headway: rpc() and rpc_ff() take the PE to run on, a number, then the function, then its arguments");
}

}  // namespace call

/// An aggregator of calls: rpc_ff(destination, fn, args...) runs fn(args...) on `destination`, without an answer.
///
/// `fn` is a plain function or has no captures, because only its offset in the program's image travels. It may take
/// Pe&, and then PeId source, before the arguments. Arguments are those of Aggregator, and DistObject<T>, which arrives
/// as the receiver's T&. Collective, like every aggregator.
class CallAggregator {
 public:
  explicit CallAggregator(Pe& pe, const AggregatorOptions& options = {});
  ~CallAggregator();
  CallAggregator(const CallAggregator&) = delete;
  CallAggregator& operator=(const CallAggregator&) = delete;

  template <class F, class... Args>
  void rpc_ff(PeId destination, F, const Args&... args) {
    constexpr bool captureless = std::is_empty_v<F> && std::is_default_constructible_v<F>;
    static_assert(
        captureless,
        "headway: a function called on another PE is a plain function or one without captures (no std::function, "
        "no member): pass its data as arguments");
    if constexpr (captureless && (aggregate::require_argument<call::Wire<Args>>() && ...)) {
      send_call(destination, call::CallStubOf<&run_call<F, call::Wire<Args>...>>::stub,
                call::WireOf<Args>::convert(args)...);
    }
  }
  template <class Result, class... Parameters, class... Args>
  void rpc_ff(PeId destination, Result (*function)(Parameters...), const Args&... args) {
    if constexpr ((aggregate::require_argument<call::Wire<Args>>() && ...)) {
      using Function = Result(Parameters...);
      send_call(destination, call::CallStubOf<&run_function<Function, call::Wire<Args>...>>::stub,
                call::reference_to<Function>(function), call::WireOf<Args>::convert(args)...);
    }
  }

  template <class Result, class... Parameters, class... Args>
  void rpc_ff(PeId destination, Result (*function)(Parameters...) noexcept, const Args&... args) {
    rpc_ff(destination, static_cast<Result (*)(Parameters...)>(function), args...);
  }

  /// A compile error in one line for wrong arguments.
  template <class... Given>
  requires(!call::begins_as_call<Given...>) void rpc_ff(const Given&...) { call::refuse_call<Given...>(); }

  Pe& pe() const { return *pe_; }

  /// For a layer above, in a handler: postpones the message being handled until take_up(). Until then it counts as one
  /// that waits for a missing object, and keeps its epoch open. Returns its scope.
  am::ScopeId set_aside();
  /// Ends the wait of a postponed message: `run` handles it at the next progress.
  void take_up(am::ScopeId scope, std::function<void()> run);
  /// A postponed message leaves for another PE to wait there (-1), or has arrived to wait on this PE (1).
  void count_waiting(am::ScopeId scope, int messages);

  void flush() { aggregator_.flush(); }
  AggregatorStatistics statistics() const { return aggregator_.statistics(); }
  const AggregatorOptions& options() const { return aggregator_.options(); }

 private:
  template <class T>
  friend class DistObject;
  friend class call::CallState;

  ///   | offset of the stub, 4 bytes | bytes that pad the last word, 4 bytes | arguments |
  struct CallHeader {
    std::int32_t stub;
    std::uint32_t padding;
  };
  using Words = std::span<const std::uint64_t>;

  template <class... W>
  void send_call(PeId destination, const call::CallStub& stub, const W&... args) {
    using Format = aggregate::MessageFormat<W...>;
    const std::size_t bytes = sizeof(CallHeader) + (Format::fixed ? Format::prefix_bytes : Format::bytes(args...));
    const std::size_t padded = base::align_up(bytes, sizeof(std::uint64_t));
    const CallHeader header{call::offset_of_stub(stub), std::uint32_t(padded - bytes)};
    const auto fill = [&]<aggregate::Into into>(std::byte* at) {
      std::memcpy(at, &header, sizeof header);
      Format::template pack<into>(at + sizeof header, args...);
    };
    const auto fill_frame = [&](std::byte* at) { fill.template operator()<aggregate::Into::frame>(at); };
    if (aggregator_.template send_packed<Format::owning>(destination, padded, fill_frame)) return;
    std::uint64_t few[8]{};  // a small call that is sent alone needs no allocation
    std::vector<std::uint64_t> many;
    std::uint64_t* words = few;
    if (padded > sizeof few) {
      many.resize(padded / sizeof(std::uint64_t));
      words = many.data();
    }
    fill.template operator()<aggregate::Into::memory>(reinterpret_cast<std::byte*>(words));
    aggregator_.send(destination, Words(words, padded / sizeof(std::uint64_t)));
  }

  template <class F, class... W>
  static bool run_call(Pe& pe, PeId source, const std::byte* at, std::size_t bytes, std::uint32_t& missing) {
    return with_arguments<W...>(at, bytes, [&](const auto&... args) {
      if (!(exists(pe, args, missing) && ...)) return false;
      run_here(pe, source, F{}, resolve(pe, args)...);
      return true;
    });
  }

  template <class Function, class... W>
  static bool run_function(Pe& pe, PeId source, const std::byte* at, std::size_t bytes, std::uint32_t& missing) {
    using Reference = call::FunctionReference;
    return with_arguments<Reference, W...>(at, bytes, [&](const Reference& function, const auto&... args) {
      if (!(exists(pe, args, missing) && ...)) return false;
      run_here(pe, source, call::function_of<Function>(function), resolve(pe, args)...);
      return true;
    });
  }

  template <class... W, class Body>
  static bool with_arguments(const std::byte* at, std::size_t bytes, Body body) {
    using Format = aggregate::MessageFormat<W...>;
    if (bytes < Format::prefix_bytes || (Format::fixed && bytes != Format::prefix_bytes)) [[unlikely]]
      call::refuse_call_length(bytes, Format::prefix_bytes, Format::fixed);
    std::vector<std::byte> copy;
    if constexpr (Format::alignment > sizeof(std::uint64_t)) {  // calls are aligned for words only
      copy.resize(bytes + Format::alignment);
      const auto address = reinterpret_cast<std::uintptr_t>(copy.data());
      std::byte* aligned = copy.data() + (base::align_up(address, Format::alignment) - address);
      std::memcpy(aligned, at, bytes);
      at = aligned;
    }
    typename Format::Scratch scratch;
    bool done = false;
    Format::apply(at, bytes, scratch, [&](const auto&... args) { done = body(args...); });
    return done;
  }

  template <class Arg>
  static bool exists(Pe&, const Arg&, std::uint32_t&) {
    return true;
  }
  template <class T>
  static bool exists(Pe& pe, const call::DistReference<T>& reference, std::uint32_t& missing) {
    missing = reference.number;
    return find_object(pe, reference.number, &call::type_tag<T>) != nullptr;
  }
  template <class Arg>
  static const Arg& resolve(Pe&, const Arg& arg) {
    return arg;
  }
  template <class T>
  static T& resolve(Pe& pe, const call::DistReference<T>& reference) {
    return *static_cast<T*>(find_object(pe, reference.number, &call::type_tag<T>));
  }

  /// One that is a coroutine has been spawned when this returns.
  template <class F, class... A>
  static void run_here(Pe& pe, PeId source, F function, A&&... args) {
    if constexpr (aggregate::require_callable<F, A...>()) {
      using Result = aggregate::CallResult<F, A...>;
      if constexpr (am::is_task<Result>) {
        if constexpr (aggregate::require_kept_arguments<F>()) {
          spawn(pe, aggregate::call_function(pe, source, function, std::forward<A>(args)...));
        }
      } else {
        aggregate::call_function(pe, source, function, std::forward<A>(args)...);
      }
    }
  }

  /// nullptr if this PE has not made it yet. UsageError if it was destroyed, FormatError if its type is another.
  static void* find_object(Pe& pe, std::uint32_t number, const void* type);
  static std::uint32_t add_object(Pe& pe, void* object, const void* type);
  static void remove_object(Pe& pe, std::uint32_t number);

  CallAggregator(Pe& pe, const AggregatorOptions& options, call::CallState& state);
  void run(PeId source, Words words);
  am::ScopeId make_wait();
  void run_again(am::ScopeId scope, std::function<void()> run);
  void object_made(std::uint32_t number);

  struct Waiting {
    PeId source;
    am::ScopeId scope;
    std::vector<std::uint64_t> words;
  };

  Pe* pe_;
  call::CallState* state_;
  Aggregator<Words> aggregator_;
  std::map<std::uint32_t, std::vector<Waiting>> waiting_;  // by missing object
};

namespace call {

/// The PE's own aggregator of calls, with default options.
CallAggregator& default_calls(Pe& pe);

}  // namespace call

/// Runs fn(args...) on `destination`, aggregated, without an answer: see CallAggregator.
template <class F, class... Args>
void rpc_ff(Pe& pe, PeId destination, F fn, const Args&... args) {
  call::default_calls(pe).rpc_ff(destination, fn, args...);
}
template <class... Given>
requires(!call::begins_as_call<Given...>) void rpc_ff(Pe&, const Given&...) { call::refuse_call<Given...>(); }

/// One T on each PE, known by the same number everywhere: as an argument of a call it arrives as the receiver's own T&.
/// Made collectively, in the same order on every PE; calls that come before it is made wait for it. quiesce() before it
/// is destroyed.
template <class T>
class DistObject {
 public:
  template <class... Args>
  explicit DistObject(Pe& pe, Args&&... args)
      : pe_(&pe),
        value_(std::forward<Args>(args)...),
        number_(CallAggregator::add_object(pe, &value_, &call::type_tag<T>)) {}
  DistObject(const DistObject&) = delete;
  DistObject& operator=(const DistObject&) = delete;
  ~DistObject() { CallAggregator::remove_object(*pe_, number_); }

  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  /// That of this number on this PE; nullptr if it has not been made yet. UsageError if it was destroyed, FormatError
  /// if it is none of a T.
  static T* find(Pe& pe, std::uint32_t number) {
    return static_cast<T*>(CallAggregator::find_object(pe, number, &call::type_tag<T>));
  }

  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }

  std::uint32_t number() const { return number_; }

 private:
  Pe* pe_;
  T value_;
  std::uint32_t number_;
};

}  // namespace headway
