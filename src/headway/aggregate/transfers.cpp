#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <headway/aggregate/aggregator.hpp>
#include <headway/aggregate/pipeline.hpp>
#include <headway/aggregate/transfer.hpp>
#include <headway/aggregate/transfers.hpp>
#include <headway/base/copy_large.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/machine.hpp>
#include <optional>
#include <thread>
#include <utility>

namespace headway::aggregate {
namespace {

const std::size_t extension = [] {
  Transfers::if_linked = &Transfers::of;
  return am::register_extension(&Transfers::make);
}();

/// A key, its entry here, and the answer, in the time of both PEs.
constexpr std::int64_t key_ns = 150;
/// From here on a receiver that copies content has it sooner in pieces, or by attaching, than out of one frame.
constexpr std::size_t posted_by_key_bytes_min = 32_KiB;
/// What is shorter is copied through the caches where it is mapped: who looks at what came past them waits for memory.
constexpr std::size_t learned_bytes_min = 32_KiB;
constexpr std::size_t network_bytes_max = 256_MiB;

enum SendWay : std::size_t { with_message, by_key };
constexpr LargeCopy write_ways[] = {copy_bytes, copy_past_caches};
enum GetWay : std::size_t { by_loads, past_caches, by_attach, by_pieces };

/// Whether who uses content of so many bytes after it has come may find any of it in a core's caches.
bool stays_in_caches(std::uint64_t bytes) {
  static const std::size_t share = cache_sizes().share;
  return share == 0 || bytes <= share;
}

std::uint64_t checksum(std::span<const std::byte> content) {
  std::uint64_t hash = content.size();
  const auto mix = [&hash](std::uint64_t word) { hash = std::rotl(hash ^ word, 27) * 0x9e3779b97f4a7c15; };
  std::size_t at = 0;
  for (std::uint64_t word; at + sizeof word <= content.size(); at += sizeof word) {
    std::memcpy(&word, content.data() + at, sizeof word);
    mix(word);
  }
  for (; at < content.size(); ++at) mix(std::uint64_t(content[at]));
  return hash | 1;
}

const char* name_of(Given as) {
  switch (as) {
    case Given::sent: return "the content of a message";
    case Given::to_get: return "a Source";
    default: return "a Destination";
  }
}

enum class Word : std::uint64_t {
  want,      // number: a Source or content; offset, bytes: of it; asker: number of the pull
  piece,     // number: of the pull; offset
  put,       // number: a Destination; offset, bytes: of the whole; asker: number of the push
  in_place,  // number: of the push; bytes; offset: 1 if the network refuses to move it
  open,      // number: a Source; bytes: of it; asker: number of the pull
  opened,    // number: of the pull; content: the network's key, empty if there is none
  put_all,   // number: a Destination; content: all of a put
  take,      // number: a Destination; bytes; asker: number of the push; content: the network's key
  used,      // number; bytes: nanoseconds that it took; offset: 1 if attaching is refused; asker: as what it was given
  pipelined,  // number: of the pull; offset, bytes: of the content; asker: where it is being written, in its owner's pool
};

}  // namespace

struct Transfers::Note {
  Word word;
  std::uint64_t number, offset, bytes, asker;
};

struct Transfers::Mail {
  using Notes = Aggregator<Note, std::span<const std::byte>>;
  Notes notes;
  Notes pieces;  // within the host, and what asks for them: each leaves at once
};

Transfers& Transfers::of(Pe& pe) { return static_cast<Transfers&>(pe.engine().extension(extension)); }

std::unique_ptr<am::Extension> Transfers::make(Pe& pe) { return std::make_unique<Transfers>(pe); }

Transfers::Transfers(Pe& pe)
    : pe_(&pe),
      host_pes_(pe.size()),
      checks_(pe.engine().transfer_settings().check),
      stages_(pe),
      pipeline_(new Pipeline(pe)),
      mail_(new Mail{Mail::Notes(pe, {.flush_when_idle = true, .name = "transfers"}),
                     Mail::Notes(pe, {.topology = direct(), .name = "pieces"})}) {
  const std::span<const std::size_t> hosts = pe.engine().endpoint().host_firsts();
  for (std::size_t host = 0; host < hosts.size() && hosts[host] <= pe.id(); ++host) {
    host_first_ = hosts[host];
    host_pes_ = (host + 1 == hosts.size() ? pe.size() : hosts[host + 1]) - host_first_;
  }
  const TransferWay way = pe.engine().transfer_settings().way;
  takes_over_ = !checks_ && (way == TransferWay::frames || (way == TransferWay::fastest && host_pes_ != pe.size()));
  const auto take = [this](PeId source, const Note& note, std::span<const std::byte> content) {
    take_note(source, note, content);
  };
  mail_->notes.on(take);
  mail_->pieces.on(take);
}

Transfers::~Transfers() = default;

void Transfers::end() noexcept {
  mail_.reset();
  exposures_ = {};
  pulls_ = {};
  pushes_ = {};
}

void Transfers::send_note(std::size_t to, const Note& note, std::span<const std::byte> content) {
  mail_->notes.send(to, note, content);
}

/// What others wait for within a host does not gather. Between hosts a frame costs more than the wait.
void Transfers::send_piece(std::size_t to, const Note& note, std::span<const std::byte> content) {
  (is_on_host(to) ? mail_->pieces : mail_->notes).send(to, note, content);
}

void Transfers::take_note(PeId source, const Note& note, std::span<const std::byte> content) {
  switch (note.word) {
    case Word::want: return send_pieces(source, note);
    case Word::piece: return take_piece(source, note, content);
    case Word::pipelined: return begin_reading(source, note);
    case Word::put: return take_put(source, note, content);
    case Word::put_all: return take_small_put(source, note, content);
    case Word::in_place: return note_in_place(source, note);
    case Word::used: return end_use(source, note);
    case Word::open: return open(source, note);
    case Word::opened: return read_opened(source, note, content);
    case Word::take: return take_over_network(source, note, content);
  }
  throw FormatError("a note on a transfer says what none says");
}

// --- of this PE's own memory

rma::BufferKey Transfers::give(Given as, std::span<const std::byte> memory, std::uint64_t times, WhenDone done) {
  const std::uint64_t sum = as == Given::to_put ? 0 : checksum_of(memory);
  const auto added = exposures_.emplace(as, memory, times, sum, std::move(done));
  Exposure& exposure = added.thing;
  if (as != Given::to_get || rma::Reach::of(*pe_).is_in_pool(memory.data(), memory.size())) return key_of(added, false);
  if (memory.size() > Stages::stage_bytes) {
    // Of a begin alone nothing is learned: who gets it may attach to the rest.
    exposure.stage = stages_.put(memory, write_ways[long_writes_]);
    return key_of(added, false);
  }
  const auto pick = writes_.pick(memory.size(), 0b11);
  const std::int64_t begin = pick.timed ? now() : 0;
  exposure.stage = stages_.put(memory, write_ways[pick.way]);
  const bool timed = pick.timed && exposure.stage != nullptr;
  if (timed) {
    exposure.learns = &writes_;
    exposure.way = pick.way;
    exposure.own_ns = now() - begin;
  }
  return key_of(added, timed);
}

rma::BufferKey Transfers::give_content(SendWay way, std::span<const std::byte> content, std::uint64_t sum, WhenDone done) {
  const auto added = exposures_.emplace(Given::sent, content, std::uint64_t(1), sum, std::move(done));
  if (way.timed) {
    added.thing.learns = &mapped_sends_;
    added.thing.way = by_key;
    added.thing.own_ns = key_ns;
  }
  return key_of(added, way.timed);
}

rma::BufferKey Transfers::key_of(const NumberedTable<Exposure>::Added& added, bool timed) const {
  const std::span<const std::byte> memory = added.thing.memory;
  return rma::Reach::of(*pe_).key(memory.data(), memory.size(), added.number, added.thing.stage, timed);
}

/// Nobody uses it any more.
void Transfers::end(std::uint64_t number, Exposure& exposure) {
  close(exposure.exposed);
  if (exposure.stage != nullptr) stages_.free(exposure.stage);
  exposures_.remove(number);
}

void Transfers::withdraw(std::uint64_t number) {
  if (Exposure* const found = exposures_.find(number)) end(number, *found);
}

void Transfers::close(ExposedMemory*& exposed) {
  if (exposed != nullptr) pe_->engine().endpoint().withdraw(std::exchange(exposed, nullptr));
}

Transfers::Exposure& Transfers::exposure(PeId source, const Note& note, Given as) {
  Exposure* const found = exposures_.find(note.number);
  if (found == nullptr && exposures_.is_gone(note.number)) {
    const char* what = as == Given::to_put   ? "puts to a Destination of"
                       : as == Given::to_get ? "gets from a Source of"
                                             : "takes the content of a message of";
    throw UsageError(fmt::format("PE {} {} PE {} that is gone: it was destroyed, or made for fewer", source.value, what,
                                 pe_->id().value));
  }
  const bool fits = found != nullptr && (found->as == Given::to_put) == (as == Given::to_put);
  if (!fits) throw FormatError("a transfer names memory that was not given");
  return *found;
}

void Transfers::end_use(PeId source, const Note& note) {
  Exposure* found = exposures_.find(note.number);
  if (found == nullptr) found = &exposure(source, note, Given(note.asker));
  if ((found->as == Given::to_put) != (Given(note.asker) == Given::to_put)) {
    throw FormatError("a transfer names memory that was given for another");
  }
  if (found->learns != nullptr && note.bytes != not_timed) {
    constexpr std::uint64_t ns_max = 1'000'000'000'000;
    found->learns->learn(found->way, found->memory.size(), found->own_ns + std::int64_t(std::min(note.bytes, ns_max)));
  }
  if (note.offset != 0) rma::Reach::of(*pe_).refused_by(source);
  if (found->checksum != 0 && checksum(found->memory) != found->checksum) {
    throw UsageError(fmt::format("{} of {} bytes on PE {} was changed before PE {} was done with it", name_of(found->as),
                                 found->memory.size(), pe_->id().value, source.value));
  }
  if (--found->left != 0) return;
  WhenDone done = std::move(found->done);
  end(note.number, *found);
  done();
}

// --- content of messages

bool Transfers::is_mapped_by(std::size_t destination, std::span<const std::byte> content) const {
  return rma::Reach::of(*pe_).is_mapped_by(destination, content.data(), content.size());
}

/// Content that its receiver would have to attach for is copied into its frame in less time, at any size; but one that copies
/// it out of the frame again waits for lines that lie in the sender's cache.
Transfers::SendWay Transfers::send_way(std::size_t destination, std::span<const std::byte> content, bool posts) {
  if (content.size() < keyed_bytes_min(posts)) return {};
  const TransferWay way = pe_->engine().transfer_settings().way;
  if (!is_mapped_by(destination, content)) {
    if (way == TransferWay::cma) return {rma::Reach::of(*pe_).may_attach_to_this(destination), false};
    return {way == TransferWay::fastest && posts && content.size() >= posted_by_key_bytes_min && is_on_host(destination),
            false};
  }
  if (way != TransferWay::fastest) return {true, false};
  const auto pick = mapped_sends_.pick(content.size(), 1u << with_message | 1u << by_key);
  return {pick.way == by_key, pick.timed};
}

void Transfers::learn_sent(std::span<const std::byte> content, std::int64_t ns) {
  mapped_sends_.learn(with_message, content.size(), ns);
}

std::uint64_t Transfers::checksum_of(std::span<const std::byte> content) const { return checks_ ? checksum(content) : 0; }

void Transfers::require_unchanged(const rma::BufferKey& key, std::span<const std::byte> content, std::uint64_t sum) const {
  if (sum == 0 || checksum(content) == sum) return;
  throw UsageError(fmt::format("{} bytes of PE {} were changed between send and their arrival on PE {}", key.bytes, key.pe,
                               pe_->id().value));
}

void Transfers::check(const rma::BufferKey& key) { rma::Reach::of(*pe_).check(key); }

const std::byte* Transfers::mapped(const rma::BufferKey& key) {
  check(key);
  return rma::Reach::of(*pe_).mapped(key);
}

/// Now, or not at all: where it cannot be, or (with `may_pull`) where pieces have been faster. `timed`: then they are.
Transfers::Copied Transfers::copy_in(const rma::BufferKey& key, std::byte* to, bool may_pull) {
  rma::Reach& reach = rma::Reach::of(*pe_);
  reach.check(key);
  if (key.bytes == 0) return {.done = true};
  rma::FastestWay<4>::Pick pick{by_attach, true};
  const std::byte* const from = reach.mapped(key);
  if (from != nullptr) {
    pick = {by_loads, false};
    if (key.bytes >= learned_bytes_min) pick = gets_.pick(key.bytes, 1u << by_loads | 1u << past_caches);
  } else {
    const bool attaches = reach.may_attach(key);
    if (may_pull && pe_->engine().transfer_settings().way != TransferWay::cma)
      pick = gets_.pick(key.bytes, unsigned(attaches) << by_attach | 1u << by_pieces);
    if (!attaches || pick.way == by_pieces) return {.timed = pick.timed};
  }
  const bool timed = pick.timed || key.is_timed();
  const std::int64_t begin = timed ? now() : 0;
  if (from == nullptr) {
    if (!reach.copy_from(key, 0, to, key.bytes)) return {.timed = true};
  } else if (pick.way == by_loads) {
    copy_bytes(to, from, key.bytes);
  } else {
    copy_past_caches(to, from, key.bytes);
  }
  if (!timed) return {.done = true};
  const std::int64_t ns = std::max<std::int64_t>(now() - begin, 1);
  gets_.learn(pick.way, key.bytes, ns);
  return {.done = true, .timed = true, .ns = ns};
}

std::optional<std::int64_t> Transfers::fetch_now(const rma::BufferKey& key, std::byte* to, bool may_pull) {
  const Copied copied = copy_in(key, to, may_pull);
  return copied.done ? std::optional(copied.ns) : std::nullopt;
}

void Transfers::tell_taken(const rma::BufferKey& key, std::int64_t ns) { tell_used(key, Given::sent, ns); }

void Transfers::tell_used(const rma::BufferKey& key, Given as, std::int64_t ns, bool refused) {
  send_note(key.pe, {Word::used, key.number, refused, std::uint64_t(ns), std::uint64_t(as)});
}

// --- gets

void Transfers::get(const rma::BufferKey& from, std::span<std::byte> to, WhenDone done) {
  if (to.size() < from.bytes) refuse_get(from.pe, from.bytes, to.size());
  const Copied copied = copy_in(from, to.data(), true);
  if (copied.done) {
    done();  // first: who waits for it may have an answer to send
    return tell_used(from, Given::to_get, copied.ns);
  }
  const std::byte* const head = rma::Reach::of(*pe_).head(from);
  const std::uint64_t number =
      pull({.key = from,
            .scope = pe_->engine().scope(),
            .for_message = false,
            .owner = {},
            .begin = [to] { return to.data(); },
            .finished = std::move(done),
            .wanted = head == nullptr ? 0 : rma::BufferKey::head_bytes,
            .timed = copied.timed});
  if (head == nullptr) return;
  copy_bytes(to.data(), head, rma::BufferKey::head_bytes);  // while the owner sends the rest
  Pull& pull = *pulls_.find(number);
  pull.received += rma::BufferKey::head_bytes;
  if (pull.received == from.bytes) end_pull(number);
}

void Transfers::fetch_later(const rma::BufferKey& key, std::weak_ptr<void> owner, std::function<std::byte*()> begin,
                            std::function<void()> finished) {
  pull({.key = key,
        .scope = pe_->engine().scope(),
        .for_message = true,
        .owner = std::move(owner),
        .begin = std::move(begin),
        .finished = std::move(finished)});
}

void Transfers::begin_waiting(am::ScopeId scope) { ++pe_->engine().scopes()[scope].continuations; }
void Transfers::end_waiting(am::ScopeId scope) { --pe_->engine().scopes()[scope].continuations; }

/// Else `more` runs in that scope, at the next progress: what a transfer sends belongs to the scope of who asked for it.
bool Transfers::is_in_scope(am::ScopeId scope, bool& comes_later, void (Transfers::*more)()) {
  am::Engine& engine = pe_->engine();
  if (scope == engine.scope()) return true;
  if (!std::exchange(comes_later, true)) {
    begin_waiting(scope);
    engine.run_later(scope, [this, scope, &comes_later, more] {
      end_waiting(scope);
      comes_later = false;
      (this->*more)();
    });
  }
  return false;
}

void Transfers::refuse_late_content(const Pull& pull) {
  pe_->engine().fail(am::FailureKind::failed,
                     fmt::format("{} bytes of PE {} are for an aggregator that was destroyed: quiesce() first", pull.key.bytes,
                                 pull.key.pe));
}

std::uint64_t Transfers::pull(Pull pull) {
  begin_waiting(pull.scope);
  const std::size_t owner = pull.key.pe;
  const std::uint64_t number = pulls_.add(std::move(pull));
  pulls_to_ask_.add(number, owner);
  want_more();
  return number;
}

/// A quarter of the window at a time. Sending may run handlers, and so this again: what is asked for is counted before.
void Transfers::want_more() {
  const auto next_bytes = [this](std::uint64_t number) {
    const Pull& pull = *pulls_.find(number);
    return std::min<std::uint64_t>(ask_bytes, pull.key.bytes - pull.wanted);
  };
  while (const std::optional<std::uint64_t> first = pulls_to_ask_.first(next_bytes)) {
    const std::uint64_t number = *first, n = next_bytes(number);
    Pull& pull = *pulls_.find(number);
    if (!is_in_scope(pull.scope, asks_later_, &Transfers::want_more)) return;
    if (!std::exchange(pull.begun, true)) {
      if (pull.for_message && pull.owner.expired()) refuse_late_content(pull);
      pull.to = pull.begin();
      if (pull.timed) pull.begin_ns = now();
      pull.by_network = !pull.for_message && goes_by_network(pull.key.pe, pull.key.bytes);
    }
    const std::uint64_t from = std::exchange(pull.wanted, pull.by_network ? pull.key.bytes : pull.wanted + n);
    const bool last = pull.wanted == pull.key.bytes;
    const am::ScopeId scope = pull.scope;
    pulls_to_ask_.begin(n, last);
    if (pull.by_network)
      send_note(pull.key.pe, {Word::open, pull.key.number, 0, pull.key.bytes, number});
    else
      send_piece(pull.key.pe, {Word::want, pull.key.number, from, n, number});
    if (last) end_waiting(scope);
  }
}

void Transfers::send_pieces(PeId source, const Note& note) {
  Exposure& given = exposure(source, note, Given::to_get);
  const std::span<const std::byte> memory = given.memory;
  if (note.bytes > window_bytes || note.offset > memory.size() || note.bytes > memory.size() - note.offset) {
    throw FormatError("a get wants what lies beyond its Source");
  }
  if (PipelinedContent* const content = is_on_host(source) ? pipeline_->begin(note.bytes) : nullptr) {
    send_piece(source, {Word::pipelined, note.asker, note.offset, note.bytes, pipeline_->offset(*content)});
    if (given.learns == nullptr) {
      given.learns = &writes_;
      given.way = long_writes_ = writes_.pick(memory.size(), 0b11).way;
    }
    return PipelineRing::write(*content, memory.subspan(note.offset, note.bytes), write_ways[given.way]);
  }
  for (std::uint64_t done = 0; done < note.bytes;) {
    const std::uint64_t n = std::min(piece_bytes(source), note.bytes - done);
    send_piece(source, {Word::piece, note.asker, note.offset + done, 0, 0}, memory.subspan(note.offset + done, n));
    done += n;
  }
}

/// Where so many bytes of a pull, that come from there, belong.
std::byte* Transfers::wanted(PeId source, const Note& note, std::uint64_t bytes) {
  Pull* const pull = pulls_.find(note.number);
  if (pull == nullptr || pull->by_network || pull->key.pe != source || note.offset > pull->wanted ||
      bytes > pull->wanted - note.offset || bytes > pull->wanted - pull->received) {
    throw FormatError("a piece comes that nobody wants");
  }
  if (pull->for_message && pull->owner.expired()) refuse_late_content(*pull);
  return pull->to + note.offset;
}

void Transfers::received(std::uint64_t number, std::uint64_t bytes) {
  Pull& pull = *pulls_.find(number);
  pull.received += bytes;
  pulls_to_ask_.end(pull.key.pe, bytes);
  if (pull.received == pull.key.bytes) end_pull(number);
  want_more();
}

void Transfers::take_piece(PeId source, const Note& note, std::span<const std::byte> content) {
  copy_bytes(wanted(source, note, content.size()), content.data(), content.size());
  received(note.number, content.size());
}

void Transfers::begin_reading(PeId source, const Note& note) {
  std::byte* const to = wanted(source, note, note.bytes);
  const std::span<std::byte> pool = pe_->engine().endpoint().pool(source);
  constexpr std::size_t before = sizeof(PipelinedContent);
  if (note.asker % alignof(PipelinedContent) != 0 || pool.size() < before || note.asker > pool.size() - before ||
      note.bytes > pool.size() - before - note.asker) {
    throw FormatError("content is said to come where it cannot be");
  }
  auto& content = *reinterpret_cast<PipelinedContent*>(pool.data() + note.asker);
  const LargeCopy copy = stays_in_caches(pulls_.find(note.number)->key.bytes) ? copy_bytes : copy_past_caches;
  go_on_reading(note.number, note.bytes, PipelinedRead(content, note.bytes, to, copy));
}

/// Its owner is writing: who has a core of its own waits a little for each step, in this handler; others leave theirs to the
/// owner, which may have been interrupted by the very note that it writes. Then this is looked at again with each progress.
void Transfers::go_on_reading(std::uint64_t number, std::uint64_t bytes, PipelinedRead read) {
  am::Engine& engine = pe_->engine();
  constexpr unsigned looks_max = 1000;
  const bool has_core = engine.idle() == am::Idle::spin;
  if (read.read(has_core ? looks_max : 0)) return received(number, bytes);
  if (!has_core) std::this_thread::yield();
  const am::ScopeId scope = engine.scope();
  begin_waiting(scope);
  engine.run_later(scope, [this, scope, number, bytes, read] {
    end_waiting(scope);
    go_on_reading(number, bytes, read);
  });
}

void Transfers::end_pull(std::uint64_t number) {
  Pull ended = pulls_.take(number);
  const std::int64_t ns = ended.timed ? std::max<std::int64_t>(now() - ended.begin_ns, 1) : not_timed;
  if (ns != not_timed) gets_.learn(by_pieces, ended.key.bytes, ns);
  tell(std::move(ended.finished));  // first, as in get()
  const bool refused = ended.for_message && !rma::Reach::of(*pe_).may_attach(ended.key);
  tell_used(ended.key, ended.for_message ? Given::sent : Given::to_get, ns, refused);
}

/// At once in a handler, as most transfers end; else as one, at the next progress.
void Transfers::tell(WhenDone done) {
  am::Engine& engine = pe_->engine();
  if (engine.in_handler()) return done();
  const am::ScopeId scope = engine.scope();
  begin_waiting(scope);
  engine.run_later(scope, [this, scope, done = std::make_shared<WhenDone>(std::move(done))] {
    end_waiting(scope);
    (*done)();
  });
}

// --- by the network

/// Only where the user says so: UCX 1.13 ends an owner's process when one that gets from it dies (docs/decisions/0027). Of
/// what is very long pieces can be seen to move.
bool Transfers::goes_by_network(std::size_t other, std::uint64_t bytes) const {
  const am::Engine& engine = pe_->engine();
  return engine.transfer_settings().way == TransferWay::network && !network_refuses_ && bytes <= network_bytes_max &&
         pe_->engine().endpoint().network_reads(other);
}

void Transfers::open(PeId source, const Note& note) {
  Exposure& given = exposure(source, note, Given::to_get);
  if (note.bytes != given.memory.size()) throw FormatError("a get opens what is no Source");
  if (given.exposed == nullptr) given.exposed = pe_->engine().endpoint().expose(given.memory, given.network_key);
  if (given.exposed == nullptr) given.network_key.clear();
  send_note(source, {Word::opened, note.asker, 0, 0, 0}, given.network_key);
}

void Transfers::read_opened(PeId source, const Note& note, std::span<const std::byte> key) {
  Pull* const pull = pulls_.find(note.number);
  if (pull == nullptr || !pull->by_network || pull->key.pe != source || pull->received != 0) {
    throw FormatError("a key comes that nobody wants");
  }
  const std::uint64_t number = note.number, bytes = counted(pull->key);
  const bool reads = read_over_network(source, key, {pull->to, pull->key.bytes}, [this, source, number, bytes] {
    pulls_to_ask_.end(source, bytes);
    end_pull(number);
    want_more();
  });
  if (reads) {
    pull->received = pull->key.bytes;
    return;
  }
  network_refuses_ = true;
  pull->by_network = false;
  pull->wanted = 0;
  pulls_to_ask_.end(source, bytes);
  begin_waiting(pull->scope);
  pulls_to_ask_.add(number, source);
  want_more();
}

void Transfers::take_over_network(PeId source, const Note& note, std::span<const std::byte> key) {
  const std::span<const std::byte> memory = exposure(source, note, Given::to_put).memory;
  if (note.bytes > memory.size()) throw FormatError("a put goes beyond its Destination");
  const Note in_place{Word::in_place, note.asker, 0, note.bytes, 0}, refused{Word::in_place, note.asker, 1, 0, 0};
  const std::span<std::byte> to(const_cast<std::byte*>(memory.data()), note.bytes);
  if (!read_over_network(source, key, to, [this, source, in_place] { send_note(source, in_place); })) {
    send_note(source, refused);
  }
}

/// `then` runs in the scope in which this is called, which stays open for it. False where the network refuses the key.
bool Transfers::read_over_network(PeId source, std::span<const std::byte> key, std::span<std::byte> to,
                                  std::function<void()> then) {
  am::Engine& engine = pe_->engine();
  const am::ScopeId scope = engine.scope();
  const auto done = [this, scope, then = std::move(then)] {
    pe_->engine().run_later(scope, [this, scope, then] {
      end_waiting(scope);
      then();
    });
  };
  if (key.empty() || !engine.endpoint().read_over_network(source, key, to.data(), to.size(), done)) return false;
  begin_waiting(scope);
  return true;
}

// --- puts

void Transfers::put(std::span<const std::byte> from, const rma::BufferKey& to, WhenDone done) {
  rma::Reach& reach = rma::Reach::of(*pe_);
  reach.check(to);
  if (from.size() > to.bytes) {
    throw UsageError(fmt::format("put of {} bytes into {} of PE {}: they do not fit", from.size(), to.bytes, to.pe));
  }
  bool is_there = from.empty();
  if (std::byte* const mapped = is_there ? nullptr : reach.mapped(to)) {
    copy_bytes(mapped, from.data(), from.size());
    is_there = true;
  }
  if (!is_there && from.size() <= small_put_bytes_max && pe_->engine().transfer_settings().way != TransferWay::cma) {
    send_note(to.pe, {Word::put_all, to.number, 0, 0, 0}, from);
    return done();
  }
  if (!is_there && !(reach.may_attach(to) && reach.copy_to(to, 0, from.data(), from.size()))) {
    rma::BufferKey key = to;
    key.bytes = from.size();
    const am::ScopeId scope = pe_->engine().scope();
    begin_waiting(scope);
    const auto number = pushes_.add({.key = key, .scope = scope, .from = from.data(), .done = std::move(done)});
    pushes_to_send_.add(number, key.pe);
    return push_more();
  }
  tell_used(to, Given::to_put, 0);
  done();
}

void Transfers::push_more() {
  const auto next_bytes = [this](std::uint64_t number) {
    const Push& push = *pushes_.find(number);
    return std::min(piece_bytes(push.key.pe), push.key.bytes - push.sent);
  };
  while (const std::optional<std::uint64_t> first = pushes_to_send_.first(next_bytes)) {
    const std::uint64_t number = *first, n = next_bytes(number);
    Push& push = *pushes_.find(number);
    if (!is_in_scope(push.scope, pushes_later_, &Transfers::push_more)) return;
    std::vector<std::byte> network_key;
    if (push.sent == 0 && goes_by_network(push.key.pe, push.key.bytes)) {
      push.exposed = pe_->engine().endpoint().expose({push.from, push.key.bytes}, network_key);
      network_refuses_ = push.exposed == nullptr;
    }
    const bool by_network = push.exposed != nullptr;
    const std::uint64_t from = std::exchange(push.sent, by_network ? push.key.bytes : push.sent + n);
    const bool last = push.sent == push.key.bytes;
    const am::ScopeId scope = push.scope;
    pushes_to_send_.begin(by_network ? counted(push.key) : n, last);
    if (by_network)
      send_note(push.key.pe, {Word::take, push.key.number, 0, push.key.bytes, number}, network_key);
    else
      send_piece(push.key.pe, {Word::put, push.key.number, from, 0, number}, {push.from + from, n});
    if (last) end_waiting(scope);
  }
}

void Transfers::take_put(PeId source, const Note& note, std::span<const std::byte> content) {
  const std::span<const std::byte> memory = exposure(source, note, Given::to_put).memory;
  if (note.offset > memory.size() || content.size() > memory.size() - note.offset) {
    throw FormatError("a put goes beyond its Destination");
  }
  copy_bytes(const_cast<std::byte*>(memory.data()) + note.offset, content.data(), content.size());
  send_piece(source, {Word::in_place, note.asker, 0, content.size(), 0});
}

void Transfers::take_small_put(PeId source, const Note& note, std::span<const std::byte> content) {
  const std::span<const std::byte> memory = exposure(source, note, Given::to_put).memory;
  if (content.size() > memory.size()) throw FormatError("a put goes beyond its Destination");
  copy_bytes(const_cast<std::byte*>(memory.data()), content.data(), content.size());
  end_use(source, {Word::used, note.number, 0, 0, std::uint64_t(Given::to_put)});
}

void Transfers::note_in_place(PeId source, const Note& note) {
  Push* const push = pushes_.find(note.number);
  if (push == nullptr || push->key.pe != source || note.bytes > push->sent - push->in_place) {
    throw FormatError("a piece is in place that was not put");
  }
  const bool by_network = push->exposed != nullptr;
  if (by_network && note.offset == 0 && note.bytes != push->key.bytes) throw FormatError("a part of a put is in place");
  pushes_to_send_.end(source, by_network ? counted(push->key) : note.bytes);
  if (by_network && note.offset != 0) {  // in pieces then
    close(push->exposed);
    network_refuses_ = true;
    push->sent = 0;
    begin_waiting(push->scope);
    pushes_to_send_.add(note.number, source);
    return push_more();
  }
  push->in_place += note.bytes;
  if (push->in_place == push->key.bytes) {
    Push ended = pushes_.take(note.number);
    close(ended.exposed);
    tell_used(ended.key, Given::to_put, 0);
    ended.done();
  }
  push_more();
}

void refuse_get(std::size_t pe, std::size_t bytes, std::size_t room) {
  throw UsageError(fmt::format("get of {} bytes of PE {} into {}: they do not fit", bytes, pe, room));
}

void refuse_no_uses(const char* what) {
  throw UsageError(fmt::format("{}: it is for 1 or more", what));
}

}  // namespace headway::aggregate
