#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/am/quiescence.hpp>

namespace headway::am {

Quiescence::Quiescence(Engine& engine) : engine_(&engine) {
  const std::size_t id = engine.id();
  parent_ = id & (id - 1);
  for (std::size_t bit = 1; (id & bit) == 0 && id + bit < engine.size(); bit <<= 1) children_.push_back(id + bit);
  control_counts_ = engine.add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    take_counts(source, Engine::control_value<Counts>(bytes));
  });
  control_verdict_ = engine.add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    if (engine_->id() == 0 || source != parent_) throw FormatError("a verdict comes from the parent in the tree alone");
    if (!given_) throw FormatError("a verdict comes after the counts");
    take_verdict(Engine::control_value<VerdictMessage>(bytes));
  });
}

void Quiescence::take_counts(std::size_t source, const Counts& counts) {
  if (std::ranges::find(children_, source) == children_.end()) throw FormatError("counts come from a child in the tree");
  if (children_in_ == children_.size()) throw FormatError("the counts of all children have come already");
  sum_.created += counts.created;
  sum_.handled += counts.handled;
  sum_.undeliverable += counts.undeliverable;
  ++children_in_;
}

void Quiescence::contribute() {
  sum_.created += engine_->created_;
  sum_.handled += engine_->handled_;
  sum_.undeliverable += engine_->undeliverable_messages();
  given_ = true;
  if (engine_->id() != 0) {
    engine_->send_control(parent_, control_counts_, std::as_bytes(std::span(&sum_, 1)));
    return;
  }
  take_verdict({judge(), 0, sum_.handled});
}

Quiescence::Verdict Quiescence::judge() {
  const bool stable = have_previous_ && previous_ == sum_;
  previous_ = sum_;
  have_previous_ = true;
  if (!stable) return Verdict::again;
  if (sum_.created == sum_.handled) {
    have_previous_ = false;
    return Verdict::done;
  }
  return sum_.created == sum_.handled + sum_.undeliverable ? Verdict::undelivered : Verdict::again;
}

void Quiescence::take_verdict(const VerdictMessage& message) {
  if (message.verdict > Verdict::undelivered) throw FormatError("it holds no verdict that there is");
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    engine_->send_control(*child, control_verdict_, std::as_bytes(std::span(&message, 1)));
  }
  sum_ = {};
  children_in_ = 0;
  given_ = false;
  switch (message.verdict) {
    case Verdict::again: return;
    case Verdict::done:
      handled_between_ = message.handled - handled_total_;
      handled_total_ = message.handled;
      done_ = true;
      return;
    case Verdict::undelivered: {
      const std::string text = engine_->undelivered();
      if (!text.empty()) engine_->fail(FailureKind::undelivered, text);
      return;  // another PE holds them; it ends the run
    }
  }
}

}  // namespace headway::am
