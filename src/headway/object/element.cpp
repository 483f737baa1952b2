#include <fmt/format.h>

#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/object/collection_parts.hpp>
#include <headway/object/element.hpp>
#include <string>
#include <string_view>

namespace headway::object {

void throw_wrong_place() {
  throw SettingError("place<Name>() is for other names than the collection's: give it the collection's Name (Index<d>, the key)");
}

void throw_place_of_sparse() {
  throw SettingError("elements of a sparse array have no numbers for block() or cyclic(): place them by hashed() or place<Key>()");
}

void throw_no_entry(std::string_view method) {
  throw SettingError(fmt::format("options are set for a method that the class lists in no entry of its aggregation: {}", method));
}

void throw_key_exists() { throw UsageError("an element is inserted whose key has one already: erase() that before"); }

void throw_late_step(std::int64_t step, std::int64_t current) {
  throw UsageError(fmt::format("a message of step {} came where step {} is the current one: more came than were expected",
                               step, current));
}

void throw_nothing_expected(std::int64_t step) {
  throw UsageError(fmt::format("a trigger expects no messages in step {}: it must expect at least one", step));
}

void throw_waits_already() { throw UsageError("when(): a coroutine of this element waits for the same method already"); }

void throw_not_made_by_collection() {
  throw UsageError("an element is made by its collection only: it has no place of its own");
}

void throw_no_collection(std::uint32_t number) {
  throw UsageError(number == ~std::uint32_t(0)
                       ? std::string("a Proxy that was made from no collection names none")
                       : fmt::format("a Proxy names collection number {}, which this PE has not made", number));
}

void throw_no_such_pe(std::size_t pe, std::size_t pes) {
  throw UsageError(fmt::format("an element cannot migrate to PE {}: this run has {}", pe, counted(pes, "PE")));
}

}  // namespace headway::object
