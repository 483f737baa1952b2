// SPDX-License-Identifier: BSD-3-Clause
/// Objects that the PEs of one process have in common.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace headway::transport {

/// Objects by key. The first PE that asks makes an object; it lives while any PE holds it. From any thread. For set-up,
/// not for the data path.
class SharedByProcess {
 public:
  /// make() returns a std::shared_ptr<T>. T must be the same for all calls with one key.
  template <class T, class Make>
  std::shared_ptr<T> find_or_make(std::uint64_t key, Make make) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(things_, [](const auto& thing) { return thing.second.expired(); });
    std::weak_ptr<void>& known = things_[key];
    if (const std::shared_ptr<void> thing = known.lock()) return std::static_pointer_cast<T>(thing);
    std::shared_ptr<T> made = make();
    known = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<void>> things_;
};

}  // namespace headway::transport
