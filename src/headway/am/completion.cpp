// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/am/completion.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace headway::am {
namespace {

constexpr std::size_t origins_listed_max = 4;

const std::size_t extension =
    register_extension([](Pe& pe) -> std::unique_ptr<Extension> { return std::make_unique<Completions>(pe.engine()); });

std::string text_of(const Origin& origin) {
  const std::string_view file = origin.place.file_name();
  const std::size_t slash = file.rfind('/');  // npos + 1 is 0
  return fmt::format("{} at {}:{}", origin.what, file.substr(slash + 1), origin.place.line());
}

}  // namespace

Completions& Completions::of(Pe& pe) { return static_cast<Completions&>(pe.engine().extension(extension)); }

void destroy(Completion& completion) noexcept { delete &completion; }

// --- continuing

void Completions::List::push(Completion& completion) {
  ++completion.holders;
  completion.next = nullptr;
  (last == nullptr ? first : last->next) = &completion;
  last = &completion;
}

Hold<Completion> Completions::List::pop() {
  Hold<Completion> hold(first);
  --first->holders;  // the list's reference
  first = first->next;
  if (first == nullptr) last = nullptr;
  return hold;
}

/// The waiting coroutine may have been destroyed meanwhile.
void Completions::resume(Completion& completion) {
  if (completion.waiter) std::exchange(completion.waiter, nullptr).resume();
}

void Completions::complete(Completion& completion) {
  if (!completion.waiter || ended_) return;
  if (!engine_->in_handler()) return complete_later(completion);
  if (continuing_) return next_.push(completion);
  const struct Continuing {
    bool& flag;
    explicit Continuing(bool& f) : flag(f) { flag = true; }
    ~Continuing() { flag = false; }
  } continuing(continuing_);
  resume(completion);
  while (next_.first != nullptr) resume(*next_.pop());
}

void Completions::complete_later(Completion& completion) {
  if (!completion.waiter || ended_) return;
  deferred_.push(completion);
  engine_->keep_open_and_run_later(engine_->scope(), [this] { complete(*deferred_.pop()); });
}

// --- waiting

void Completions::require_may_wait(const char* call) const {
  if (engine_->in_handler()) {
    throw UsageError(fmt::format(
        "{} inside a handler: a handler may not wait; make it a coroutine, which returns headway::Task, and co_await",
        call));
  }
  engine_->require_may_block(report::Phase::future);
}

void throw_taken() {
  throw UsageError(
      "the value of a future or task is taken once, and only when it is ready: it was taken before, or is still "
      "pending");
}

// --- detached coroutines

Detached::promise_type::~promise_type() {
  (before_ == nullptr ? owner_->detached_ : before_->after_) = after_;
  if (after_ != nullptr) after_->before_ = before_;
}

void Detached::promise_type::unhandled_exception() { owner_->fail(origin_); }

void Completions::fail(const Origin& origin) {
  try {
    throw;
  } catch (const RunFailed&) {
    throw;
  } catch (const std::exception& error) {
    engine_->fail(report::FailureKind::failed, fmt::format("{} threw: {}", text_of(origin), error.what()));
  } catch (...) {
    engine_->fail(report::FailureKind::failed,
                  fmt::format("{} threw something that is no std::exception", text_of(origin)));
  }
}

std::string Completions::unfinished() const {
  using Key = std::tuple<std::string_view, std::string_view, std::uint32_t>;
  std::map<Key, std::pair<const Origin*, std::size_t>> by_origin;
  std::size_t all = 0;
  for (const auto* promise = detached_; promise != nullptr; promise = promise->after_, ++all) {
    const Origin& origin = promise->origin_;
    auto& [first, count] = by_origin[{origin.what, origin.place.file_name(), origin.place.line()}];
    first = &origin;
    ++count;
  }
  if (all == 0) return {};
  std::string text = fmt::format("{} on PE {} still {} at the end of the run: ", base::counted(all, "coroutine"),
                                 engine_->id(), base::by_number(all, "waits", "wait"));
  std::size_t listed = 0;
  for (const auto& [key, entry] : by_origin) {
    if (listed++ == origins_listed_max) return text + ", and " + base::counted(by_origin.size() - listed + 1, "other");
    text += fmt::format("{}{} ({})", listed == 1 ? "" : ", ", text_of(*entry.first), entry.second);
  }
  return text;
}

void Completions::end() noexcept {
  ended_ = true;
  while (detached_ != nullptr) std::coroutine_handle<Detached::promise_type>::from_promise(*detached_).destroy();
  while (next_.first != nullptr) next_.pop();
  while (deferred_.first != nullptr) deferred_.pop();
}

}  // namespace headway::am
