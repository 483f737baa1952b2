#include <gtest/gtest.h>

#include <headway/am/future.hpp>
#include <headway/am/task.hpp>
#include <memory>
#include <optional>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <utility>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::expect_usage_error;
using testing::Outcome;

/// Runs f() as a handler of this PE, at its next progress.
template <class F>
void in_handler(Pe& pe, F f) {
  pe.engine().run_later(pe.engine().scope(), std::move(f));
  while (pe.progress()) {
  }
}

TEST(Future, gives_what_its_promise_was_set_to_once) {
  expect_run({1, 1}, [](Pe& pe) {
    Promise<std::string> promise(pe);
    Future<std::string> future = promise.future();
    EXPECT_FALSE(future.ready());
    promise.set("a text that is too long to lie in the string itself");
    EXPECT_TRUE(future.ready());
    EXPECT_EQ(future.get(), "a text that is too long to lie in the string itself");
    expect_usage_error([&] { (void)future.get(); }, "taken once");
    expect_usage_error([&] { promise.set("again"); }, "set before");
    expect_usage_error([&] { promise.fail(nullptr); }, "set before");
    expect_usage_error([&] { (void)promise.future(); }, "one future");
    Promise<> nothing(pe);
    nothing.set();
    nothing.future().get();
  });
}

}  // namespace
}  // namespace headway
