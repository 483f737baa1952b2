// SPDX-License-Identifier: BSD-3-Clause
/// Checkpoints: collections written to files, and read by a later run on any number of PEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <headway/base/serialize.hpp>
#include <headway/call/calls.hpp>
#include <headway/object/collection.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headway {

namespace object {

/// The address and the content of an element in a file.
struct StoredElement {
  std::span<const std::byte> address, content;
};

/// A collection of any class, for the functions that write and read files.
class Stored {
 public:
  virtual ~Stored() = default;
  /// Types and extents: they must be equal for a restart.
  virtual std::string signature() const = 0;
  virtual std::uint64_t local_size() const = 0;
  /// The number of elements that a dense collection must have; nothing for a sparse one.
  virtual std::optional<std::uint64_t> complete_size() const = 0;
  /// UsageError if it has state that cannot be written: a coroutine or an unfinished reduction.
  virtual void require_quiet() const = 0;
  virtual void write(const std::function<void(const StoredElement&)>& take) = 0;

  /// FormatError if the address is not one of this collection.
  virtual void check(const StoredElement& element) const = 0;
  virtual void begin_restart() = 0;
  virtual void send_home(const StoredElement& element) = 0;
  /// After quiescence: throws the first error of an element that could not be made on this PE.
  virtual void end_restart() = 0;
  /// Called when all elements exist on all PEs: counts those of a sparse collection.
  virtual void count_all() = 0;
};

[[noreturn]] void throw_unfinished(const std::string& collection, const char* what);
[[noreturn]] void throw_wrong_address(std::uint64_t address, std::uint64_t size);
[[noreturn]] void throw_address_bytes_left(std::size_t bytes, std::size_t left);
std::string extents_text(std::span<const std::int32_t> extents);

template <class T>
class StoredCollection;

template <class T>
struct Restore {
  template <class Address>
  void operator()(StoredCollection<T>* there, const Address& address, std::span<const std::byte> content) const {
    there->restore(address, content);
  }
};

template <class T>
class StoredCollection final : public Stored {
 public:
  using Traits = typename Collection<T>::Traits;
  using Address = typename Collection<T>::Address;
  static_assert(Traits::moves, "headway: groups cannot be checkpointed: their size depends on the number of PEs");

  explicit StoredCollection(Collection<T>& collection) : collection_(&collection) {}

  std::string signature() const override {
    std::string text =
        aggregate::raw_type_name<T>() + " by " + aggregate::raw_type_name<typename Collection<T>::Naming>();
    if constexpr (requires { collection_->extents().at; }) text += extents_text(collection_->extents().at);
    return text;
  }
  std::uint64_t local_size() const override { return collection_->local_size(); }
  std::optional<std::uint64_t> complete_size() const override {
    if constexpr (Traits::dense) return collection_->size();
    return std::nullopt;
  }

  void require_quiet() const override {
    if (collection_->reducing() != 0)
      throw_unfinished(signature(), "some elements have contributed to a reduction, and others have not,");
    collection_->for_each_local([&](T& element) {
      if (Collection<T>::state(element).coroutines != 0)
        throw_unfinished(signature(), "a coroutine of an element lives");
    });
  }
  void write(const std::function<void(const StoredElement&)>& take) override {
    std::vector<std::byte> address_bytes;
    collection_->for_each_local([&](T& element) {
      const Address& address = Collection<T>::address_of_element(element);
      address_bytes.resize(serialized_bytes(address));
      serialize(address_bytes.data(), address);
      const std::vector<std::byte> content = Collection<T>::pack(element);
      take({address_bytes, content});
    });
  }

  void check(const StoredElement& element) const override { address_of(element); }
  void begin_restart() override { me_.emplace(collection_->pe(), this); }
  void send_home(const StoredElement& element) override {
    const Address address = address_of(element);
    collection_->calls().rpc_ff(collection_->home_of(address), Restore<T>(), *me_, address, element.content);
  }
  void end_restart() override {
    me_.reset();
    if (failure_) std::rethrow_exception(failure_);
  }
  void count_all() override {
    if constexpr (Traits::sparse) collection_->done_inserting();
  }

  void restore(const Address& address, std::span<const std::byte> content) {
    try {
      collection_->restore(address, content);
    } catch (const std::exception&) {
      if (!failure_) failure_ = std::current_exception();
    }
  }

 private:
  Address address_of(const StoredElement& element) const {
    ByteReader reader(element.address);
    Address address = deserialize<Address>(reader);
    if (reader.remaining() != 0) throw_address_bytes_left(element.address.size(), reader.remaining());
    if constexpr (Traits::dense) {
      if (address >= collection_->size()) throw_wrong_address(address, collection_->size());
    }
    return address;
  }

  Collection<T>* collection_;
  std::optional<DistObject<StoredCollection*>> me_;
  std::exception_ptr failure_;
};

using StoredList = std::vector<std::unique_ptr<Stored>>;

template <class... T>
StoredList stored(Collection<T>&... collections) {
  static_assert(sizeof...(T) > 0, "headway: checkpoint() and restart() need at least one collection");
  StoredList list;
  (list.push_back(std::make_unique<StoredCollection<T>>(collections)), ...);
  return list;
}

void write_checkpoint(Pe& pe, const std::string& path, const StoredList& collections);
void read_checkpoint(Pe& pe, const std::string& path, const StoredList& collections);

}  // namespace object

/// Writes all elements of the collections to files in the folder `path`, which all PEs must see. Collective, from the
/// main program; quiesces before. When it returns, the new checkpoint is on the disc and the previous one is removed.
/// If the run ends earlier, the previous checkpoint remains readable. UsageError if a coroutine of an element lives or
/// a reduction is not finished; SettingError if `path` is not a folder; SystemError if a system call fails, and the
/// previous checkpoint remains. All PEs throw the same error. Messages that wait for a later step or for the insertion
/// of their element end the run (123), as in any quiescence.
template <class... T>
void checkpoint(Pe& pe, const std::string& path, Collection<T>&... collections) {
  if constexpr ((object::require_migratable<T>() && ...))
    object::write_checkpoint(pe, path, object::stored(collections...));
}

/// Makes all elements of a checkpoint, each on its home, in collections of the same types and extents and in the same
/// order. The collections must be empty: sparse ones, or dense ones made with CollectionOptions::empty. The number of
/// PEs may differ. Collective, from the main program; quiesces. An element has the state that its serialize() wrote,
/// and its steps. Numbers of broadcasts and reductions start anew. SettingError if there is no checkpoint; FormatError
/// if it is damaged or of other collections, before any element is made. All PEs throw the same error, which names the
/// file and the reason.
template <class... T>
void restart(Pe& pe, const std::string& path, Collection<T>&... collections) {
  if constexpr ((object::require_migratable<T>() && ...))
    object::read_checkpoint(pe, path, object::stored(collections...));
}

}  // namespace headway
