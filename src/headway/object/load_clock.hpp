/// The clock by which the loads of elements are measured: read twice for each method that runs.
#pragma once

#include <cstdint>
#include <headway/am/engine.hpp>

namespace headway::object {

/// The processor's counter where it runs at one rate and the engine's time goes on as it does; else the engine's time,
/// which on a simulated network stands still while a method runs.
class LoadClock {
 public:
  /// Compares the two for a fifth of a millisecond, if it is `wanted`.
  LoadClock(am::Engine& engine, bool wanted);

  std::uint64_t read() const {
#if defined(__x86_64__)
    if (counts_) [[likely]]
      return __builtin_ia32_rdtsc();
#endif
    return std::uint64_t(engine_->now());
  }
  double seconds(std::uint64_t from, std::uint64_t to) const {
    return to > from ? double(to - from) * seconds_each_ : 0;  // cores may differ a little
  }
  /// Whether it is the processor's.
  bool counts() const { return counts_; }

 private:
  am::Engine* engine_;
  bool counts_ = false;
  double seconds_each_ = 1e-9;
};

}  // namespace headway::object
