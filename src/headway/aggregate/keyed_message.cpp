// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstring>
#include <headway/aggregate/keyed_message.hpp>
#include <headway/aggregate/posted.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>

namespace headway::aggregate {

void refuse_content(std::uint64_t bytes, std::size_t element_bytes) {
  throw FormatError(fmt::format("zero-copy content has {}, which is no multiple of its elements of {}",
                                base::counted(bytes, "byte"), base::counted(element_bytes, "byte")));
}

void KeyedMessage::keep() {
  kept.resize((bytes + sizeof(Line) - 1) / sizeof(Line));
  if (bytes != 0) std::memcpy(kept.data(), at, bytes);
  at = reinterpret_cast<const std::byte*>(kept.data());
}

void refuse_destination(PeId source, std::size_t wanted, std::size_t given) {
  throw UsageError(fmt::format("room for {} was posted for {} that PE {} sends: they do not fit",
                               base::counted(given, "element"), wanted, source.value));
}

}  // namespace headway::aggregate
