// SPDX-License-Identifier: BSD-3-Clause
/// Index gather: result[i] = table[wanted[i]], where the table is spread over all PEs. A read is a request and a reply.
#include <vector>

#include "program.hpp"

using headway::Aggregator;
using headway::Block;
using headway::Pe;
using headway::PeId;

constexpr std::size_t words = 5000, reads = 100'000;

std::uint64_t word_at(std::size_t index) { return program::random(index); }

using Words = std::vector<std::uint64_t>;
using Indices = std::vector<std::size_t>;

/// An aggregator for requests, and one for replies.
Words gather_by_two(Pe& pe, const headway::AggregatorOptions& options, const Block& layout, const Words& table,
                    const Indices& wanted) {
  struct Request {
    std::size_t local, position;
  };
  struct Reply {
    std::size_t position;
    std::uint64_t word;
  };
  Words result(wanted.size());
  Aggregator<Reply> replies(pe, options);
  replies.on([&](const Reply& reply) { result[reply.position] = reply.word; });
  Aggregator<Request> requests(pe, options);
  requests.on([&](PeId source, const Request& request) {
    replies.send(source, {request.position, table[request.local]});
  });
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    requests.send(layout.owner(wanted[i]), {layout.local(wanted[i]), i});
  }
  pe.quiesce();  // replies to requests count, too
  return result;
}

/// One aggregator for both directions: its handler sends the reply.
Words gather_by_one(Pe& pe, const headway::AggregatorOptions& options, const Block& layout, const Words& table,
                    const Indices& wanted) {
  enum class Kind : std::uint8_t { request, reply };
  Words result(wanted.size());
  // The last argument is the place to read in a request, and the value read in a reply.
  Aggregator<Kind, std::size_t, std::uint64_t> messages(pe, options);
  messages.on([&](PeId source, Kind kind, std::size_t position, std::uint64_t word) {
    if (kind == Kind::reply) {
      result[position] = word;
    } else {
      messages.send(source, Kind::reply, position, table[word]);
    }
  });
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    messages.send(layout.owner(wanted[i]), Kind::request, i, layout.local(wanted[i]));
  }
  pe.quiesce();
  return result;
}

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    const Block layout(words, pe.size());
    Words table(layout.count(pe.id()));
    for (std::size_t at = 0; at < table.size(); ++at) table[at] = word_at(layout.global(pe.id(), at));
    Indices wanted;
    for (std::size_t i = pe.id(); i < reads; i += pe.size()) wanted.push_back(program::random(i) % words);
    Words expected;
    for (const std::size_t index : wanted) expected.push_back(word_at(index));

    const headway::AggregatorOptions options = program::options(argc, argv);
    const bool right = gather_by_two(pe, options, layout, table, wanted) == expected &&
                       gather_by_one(pe, options, layout, table, wanted) == expected;
    return program::finish(pe, right, "words read", program::sum(pe, wanted.size()));
  });
}
