/// Checkpoints: collections in files, from which they are restarted on any number of PEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <headway/call/calls.hpp>
#include <headway/base/serialize.hpp>
#include <headway/object/collection.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headway {

namespace object {

/// An element in a file: where the parts of it begin that the collection reads.
struct StoredElement {
  std::span<const std::byte> address, content;
};

/// A collection, for what writes and reads files, whatever its type is.
class Stored {
 public:
  virtual ~Stored() = default;
  /// What must be equal for a restart: types and extents.
  virtual std::string signature() const = 0;
  virtual std::uint64_t local_size() const = 0;
  /// How many there are to be, of a dense one.
  virtual std::optional<std::uint64_t> complete_size() const = 0;
  /// UsageError: something of it could not be written.
  virtual void require_quiet() const = 0;
  virtual void write(const std::function<void(const StoredElement&)>& take) = 0;

  /// FormatError for an address that is none here.
  virtual void check(const StoredElement& element) const = 0;
  virtual void begin_restart() = 0;
  virtual void send_home(const StoredElement& element) = 0;
  /// After quiescence: throws what an element that came here could not be made for.
  virtual void end_restart() = 0;
  /// All are there, everywhere.
  virtual void count_all() = 0;
};

[[noreturn]] void throw_unfinished(const std::string& collection, const char* what);
[[noreturn]] void throw_wrong_address(const std::string& address);
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
  static_assert(Traits::moves, "headway: groups are not checkpointed: there is one element for each PE, or process");

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
      throw_unfinished(signature(), "some elements have given to a reduction, and others not");
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
    if (reader.remaining() != 0) throw_wrong_address("longer than its type says");
    if constexpr (Traits::dense) {
      if (address >= collection_->size()) throw_wrong_address(std::to_string(address));
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
  static_assert(sizeof...(T) > 0, "headway: give the collections that are to be written, or read");
  StoredList list;
  (list.push_back(std::make_unique<StoredCollection<T>>(collections)), ...);
  return list;
}

void write_checkpoint(Pe& pe, const std::string& path, const StoredList& collections);
void read_checkpoint(Pe& pe, const std::string& path, const StoredList& collections);

}  // namespace object

/// Writes all elements of the collections to files in the folder `path`, which all PEs see. Collective, from the main
/// program; quiesces before. When it returns they are on the disc, and the checkpoint before it is gone; if the run
/// ends at any moment before, that one can be read still. UsageError where a coroutine of an element lives, or a
/// reduction is not over; SettingError for a path that is no folder; SystemError for what the system refuses, and then
/// the one before is there still. All PEs throw alike. Messages that wait for a later step, or for an element to be
/// inserted, end the run (123), as in any quiescence.
template <class... T>
void checkpoint(Pe& pe, const std::string& path, Collection<T>&... collections) {
  if constexpr ((object::require_migratable<T>() && ...))
    object::write_checkpoint(pe, path, object::stored(collections...));
}

/// Makes all elements that a checkpoint holds, each on its home, in collections of the same types and extents, in the
/// same order, that are empty: CollectionOptions::empty, or sparse ones. Any number of PEs. Collective, from the main
/// program; quiesces. An element has what its serialize() writes, and its steps; broadcasts and reductions count from
/// there on as for one that is made now. SettingError where there is no checkpoint; FormatError for one that is
/// damaged, or of others, before any element is made. All PEs throw alike, and say which file and why.
template <class... T>
void restart(Pe& pe, const std::string& path, Collection<T>&... collections) {
  if constexpr ((object::require_migratable<T>() && ...))
    object::read_checkpoint(pe, path, object::stored(collections...));
}

}  // namespace headway
