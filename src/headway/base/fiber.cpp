// SPDX-License-Identifier: BSD-3-Clause
#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/fiber.hpp>
#include <utility>
#include <vector>

// Sanitizers must know each stack, and the running one.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace headway::base {
namespace {

namespace context = boost::context::detail;

/// The C++ runtime's state of a thread's caught and uncaught exceptions. Each fiber has its own.
struct Exceptions {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

void exchange_exceptions(Exceptions& exceptions) {
  Exceptions before;
  void* globals = abi::__cxa_get_globals();
  std::memcpy(&before, globals, sizeof before);
  std::memcpy(globals, &exceptions, sizeof exceptions);
  exceptions = before;
}

/// Memory of a stack. Stacks are reused, because mmap takes longer than a short fiber.
struct Stack {
  std::byte* base = nullptr;  // the guard page
  std::size_t bytes = 0;      // with the guard page
};

struct StackPool {
  std::vector<Stack> free;

  Stack take(std::size_t bytes) {
    for (std::size_t i = free.size(); i-- > 0;) {
      if (free[i].bytes != bytes) continue;
      const Stack stack = free[i];
      free[i] = free.back();
      free.pop_back();
      return stack;
    }
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) throw_errno("mmap of a fiber's stack");
    mprotect(memory, std::size_t(sysconf(_SC_PAGESIZE)), PROT_NONE);
    return {static_cast<std::byte*>(memory), bytes};
  }

  ~StackPool() {
    for (const Stack& stack : free) munmap(stack.base, stack.bytes);
  }
};

StackPool& stack_pool() {
  static thread_local StackPool pool;
  return pool;
}

thread_local Fiber* running = nullptr;

}  // namespace

struct Fiber::State {
  std::function<void()> body;
  Stack stack;
  context::fcontext_t self = nullptr;    // its suspended context
  context::fcontext_t caller = nullptr;  // while it runs: the context of resume()
  Fiber* resumed_by = nullptr;           // the fiber that called resume(), if any
  Exceptions exceptions;
  void* local = nullptr;  // its fiber_local; while it runs, that of the caller of resume()
  bool done = false;
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  void* caller_fake_stack = nullptr;
  const void* caller_stack = nullptr;
  std::size_t caller_stack_bytes = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* tsan = nullptr;
  void* caller_tsan = nullptr;
#endif

  static void enter(context::transfer_t from) {
    State& state = *static_cast<State*>(from.data);
    state.caller = from.fctx;
    state.arrived();
    state.body();
    state.done = true;
    state.leave();
  }

  /// Runs on the fiber's stack after each switch to it.
  void arrived() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, &caller_stack, &caller_stack_bytes);
#endif
  }

  void leave() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(done ? nullptr : &fake_stack, caller_stack, caller_stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(caller_tsan, 0);
#endif
    const context::transfer_t from = context::jump_fcontext(caller, this);
    caller = from.fctx;
    arrived();
  }
};

Fiber::Fiber(std::function<void()> body, std::size_t stack_bytes) : state_(std::make_unique<State>()) {
  const auto page = std::size_t(sysconf(_SC_PAGESIZE));
  state_->body = std::move(body);
  state_->stack = stack_pool().take(align_up(stack_bytes, page) + page);
  state_->self =
      context::make_fcontext(state_->stack.base + state_->stack.bytes, state_->stack.bytes - page, &State::enter);
#if defined(__SANITIZE_THREAD__)
  state_->tsan = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(state_->tsan);
#endif
#if defined(__SANITIZE_ADDRESS__)
  // Functions of an abandoned fiber may have left poisoned memory.
  __asan_unpoison_memory_region(state_->stack.base, state_->stack.bytes);
#endif
  stack_pool().free.push_back(state_->stack);
}

void Fiber::resume() {
  State& state = *state_;
  state.resumed_by = std::exchange(running, this);
  exchange_exceptions(state.exceptions);
  std::swap(fiber_local, state.local);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&state.caller_fake_stack, state.stack.base, state.stack.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  state.caller_tsan = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(state.tsan, 0);
#endif
  const context::transfer_t from = context::jump_fcontext(state.self, &state);
  state.self = from.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(state.caller_fake_stack, nullptr, nullptr);
#endif
  exchange_exceptions(state.exceptions);
  std::swap(fiber_local, state.local);
  running = state.resumed_by;
}

bool Fiber::done() const { return state_->done; }

void Fiber::suspend() { running->state_->leave(); }

Fiber* Fiber::current() { return running; }

}  // namespace headway::base
