#include <message/message.hpp>

#include "buckets.hpp"
#include "direct.hpp"
#include "peer.hpp"

namespace headway::peers {
namespace {

/// Writes message `index` at `to`, where it stays: the pattern, then the number over it. A message stamped first and
/// then copied would be loaded in wider pieces than it was stored in, which no store buffer forwards.
template <class Message>
struct Writer {
  Message pattern;
  std::size_t bytes;
  void operator()(std::byte* to, std::uint64_t index) const {
    std::memcpy(to, pattern.data(), sizeof pattern);
    bench::stamp(to, sizeof pattern, index);
  }
};

template <>
struct Writer<std::vector<std::byte>> {
  std::vector<std::byte> pattern;
  std::size_t bytes;
  void operator()(std::byte* to, std::uint64_t index) const {
    std::memcpy(to, pattern.data(), bytes);
    bench::stamp(to, bytes, index);
  }
};

template <class Message>
struct Adder {
  std::size_t bytes;
  void operator()(bench::Sum& sum, const std::byte* message) const {
    if constexpr (std::is_same_v<Message, std::vector<std::byte>>) {
      bench::add(sum, message, bytes);
    } else {
      bench::add(sum, *reinterpret_cast<const Message*>(message));
    }
  }
};

template <class Writer, class Handle>
void send_by_buckets(Writer writer, std::size_t partner, std::uint64_t messages, std::size_t bytes,
                     std::size_t bucket_bytes, Handle handle) {
  Buckets<std::byte> buckets(MPI_COMM_WORLD, bytes, bucket_bytes);
  const auto apply = [&](const std::byte* items, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) handle(items + i * bytes);
  };
  std::uint64_t sent = 0;
  do {
    const std::size_t now = std::min<std::uint64_t>(buckets.capacity(), messages - sent);
    std::byte* cursor = buckets.cursors()[partner];
    for (std::size_t i = 0; i < now; ++i, cursor += bytes) writer(cursor, sent + i);
    buckets.cursors()[partner] = cursor;
    sent += now;
  } while (!buckets.exchange(sent == messages, apply));
}

template <class Writer, class Handle>
void send_directly(Writer writer, std::size_t partner, std::uint64_t messages, std::size_t bytes, Handle handle) {
  DirectMessages direct(MPI_COMM_WORLD, bytes, handle);
  for (std::uint64_t i = 0; i < messages; ++i) {
    writer(direct.next(), i);
    direct.send(partner);
  }
  direct.finish();
  MPI_Barrier(MPI_COMM_WORLD);
}

template <class Message>
bench::Json measure(const Arguments& arguments, Message message) {
  int me = 0, pes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  const std::size_t partner = std::size_t(me) ^ 1;
  bench::fill_pattern(std::as_writable_bytes(std::span(message)), std::size_t(me));
  const Writer<Message> writer{message, arguments.bytes};

  const auto pass = [&](std::uint64_t messages, auto handle) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (arguments.mode == "mpi-direct") {
      send_directly(writer, partner, messages, arguments.bytes, handle);
    } else {
      send_by_buckets(writer, partner, messages, arguments.bytes, arguments.buffer_bytes, handle);
    }
    return slowest(MPI_Wtime() - begin);
  };
  // Every byte of some messages, which also warms caches and MPI's memory; then all of them, timed, by their sums.
  const std::uint64_t checked = std::min<std::uint64_t>(arguments.messages, 1 << 16);
  bench::Checker checker(arguments.bytes, checked, partner);
  pass(checked, [&](const std::byte* item) { checker(item, arguments.bytes); });
  bench::Sum sum;
  const Adder<Message> adder{arguments.bytes};
  const double seconds = pass(arguments.messages, [&sum, adder](const std::byte* item) { adder(sum, item); });

  const bool wrong = sum != bench::expected_sum(arguments.messages, arguments.bytes);
  const std::uint64_t errors = total(checker.errors() + (wrong ? 1 : 0));
  return make_peer_record(arguments, arguments.bytes, arguments.messages * std::uint64_t(pes), seconds, errors);
}

}  // namespace

bench::Json run_stream(const Arguments& arguments) {
  bench::Json record;
  const bool fixed = bench::with_fixed_size<1000>(
      arguments.bytes, [&]<class Message>(std::type_identity<Message>) { record = measure(arguments, Message{}); });
  if (!fixed) record = measure(arguments, std::vector<std::byte>(arguments.bytes));
  return record;
}

}  // namespace headway::peers
