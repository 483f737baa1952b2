// SPDX-License-Identifier: BSD-3-Clause
// Buffers that are too small, gone too early, or changed too early: an error that says so.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/epoch.hpp>
#include <headway/am/wait.hpp>
#include <headway/base/bytes.hpp>
#include <headway/transfer/transfer.hpp>
#include <iterator>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <support/transfers.hpp>
#include <vector>

namespace headway {
namespace {

using namespace literals;
using testing::are_words_of;
using testing::can_attach;
using testing::catch_run;
using testing::expect_run;
using testing::expect_usage_error;
using testing::Outcome;
using testing::Settings;
using testing::words_of;

using Words = std::span<const std::uint64_t>;

void expect_failure(const Outcome& outcome, const std::string& text) {
  EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
  EXPECT_NE(outcome.text.find(text), std::string::npos) << outcome.text;
}

/// PE 0 offers; then(pe, words, remote, own) is PE 1's part, while PE 0 does what `meanwhile` says and quiesces.
template <class Meanwhile, class Then>
Outcome source_of_pe_0(const Settings& settings, Meanwhile meanwhile, Then then, std::size_t size = 100'000) {
  return catch_run(
      {2, 1},
      [&](Pe& pe) {
        std::vector<std::uint64_t> words = words_of(1, size);
        std::optional<Source<std::uint64_t>> source;
        std::optional<RemoteSource<std::uint64_t>> remote;
        Aggregator<RemoteSource<std::uint64_t>> offers(pe);
        offers.on([&](const RemoteSource<std::uint64_t>& offered) { remote = offered; });
        if (pe.id() == 0) {
          source.emplace(pe, words, [] {});
          offers.send(1, source->remote());
        }
        pe.quiesce();
        if (pe.id() == 0) meanwhile(source, words);
        pe.quiesce();
        if (pe.id() == 1) then(pe, *remote);
        pe.quiesce();
      },
      settings);
}

TEST(TransferMisuse, a_destroyed_source) {
  for (const char* way : {"auto", "mapped", "cma", "frames"}) {
    const Outcome outcome = source_of_pe_0(
        {{"HEADWAY_TRANSFER", way}}, [](auto& source, auto&) { source.reset(); },
        [](Pe& pe, const RemoteSource<std::uint64_t>& remote) {
          std::vector<std::uint64_t> to(remote.size());
          get(pe, remote, to).get();
        });
    expect_failure(outcome, "PE 1 gets from a Source of PE 0 that is gone");
  }
}

/// With HEADWAY_CHECK=on a key names small content, too. The owner finds the error when the getter asks for the
/// content, or reports that it has it.
TEST(TransferMisuse, a_small_source_that_is_destroyed_or_changed_too_early) {
  const auto get_it = [](Pe& pe, const RemoteSource<std::uint64_t>& remote) {
    std::vector<std::uint64_t> to(remote.size());
    get(pe, remote, to).get();
  };
  for (const char* way : {"auto", "mapped", "cma", "frames"}) {
    const Outcome gone = source_of_pe_0(
        {{"HEADWAY_TRANSFER", way}, {"HEADWAY_CHECK", "on"}}, [](auto& source, auto&) { source.reset(); }, get_it,
        1000);
    expect_failure(gone, "PE 1 gets from a Source of PE 0 that is gone");
    const Outcome changed = source_of_pe_0(
        {{"HEADWAY_TRANSFER", way}, {"HEADWAY_CHECK", "on"}}, [](auto&, auto& words) { words[77] = 1; }, get_it, 100);
    expect_failure(changed, "a Source of 800 bytes on PE 0 was changed before PE 1 was done with it");
  }
}

TEST(TransferMisuse, more_gets_than_a_source_is_for) {
  const Outcome outcome = source_of_pe_0(
      {}, [](auto&, auto&) {},
      [](Pe& pe, const RemoteSource<std::uint64_t>& remote) {
        std::vector<std::uint64_t> to(remote.size());
        get(pe, remote, to).get();
        get(pe, remote, to).get();
      });
  expect_failure(outcome, "PE 1 gets from a Source of PE 0 that is gone");
}

TEST(TransferMisuse, memory_that_was_freed_while_others_may_get_it) {
  if (!can_attach()) GTEST_SKIP() << "the system does not let processes attach to others";
  const Outcome outcome =
      catch_run({2, 1},
                [](Pe& pe) {
                  const std::size_t bytes = 1_MiB;
                  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  std::optional<RemoteSource<std::byte>> remote;
                  std::optional<Source<std::byte>> source;
                  Aggregator<RemoteSource<std::byte>> offers(pe);
                  offers.on([&](const RemoteSource<std::byte>& offered) { remote = offered; });
                  if (pe.id() == 0) {
                    source.emplace(pe, std::span(static_cast<const std::byte*>(memory), bytes), [] {});
                    offers.send(1, source->remote());
                    mprotect(memory, bytes, PROT_NONE);  // as if unmapped, but nothing else can come to lie there
                  }
                  pe.quiesce();
                  std::vector<std::byte> to(bytes);
                  if (pe.id() == 1) get(pe, *remote, to).get();
                  pe.quiesce();
                },
                {{"HEADWAY_TRANSFER", "cma"}});
  expect_failure(outcome, "1048576 bytes that PE 0 sends cannot be read any more: they were freed");
}

TEST(TransferMisuse, a_buffer_that_is_changed_too_early_is_found_where_that_is_checked) {
  for (const char* way : {"cma", "frames"}) {
    const Outcome outcome = source_of_pe_0(
        {{"HEADWAY_TRANSFER", way}, {"HEADWAY_CHECK", "on"}}, [](auto&, auto& words) { words[77] = 1; },
        [](Pe& pe, const RemoteSource<std::uint64_t>& remote) {
          std::vector<std::uint64_t> to(remote.size());
          get(pe, remote, to).get();
        });
    expect_failure(outcome, "a Source of 800000 bytes on PE 0 was changed before PE 1 was done with it");
  }
  for (const char* way : {"mapped", "cma"}) {
    if (way == std::string("cma") && !can_attach()) continue;
    const Outcome outcome = catch_run({2, 1},
                                      [](Pe& pe) {
                                        Aggregator<Words> blocks(pe);
                                        blocks.on([](Words) {});
                                        PooledArray<std::uint64_t> words(pe, 5000);
                                        std::ranges::copy(words_of(1, 5000), words.begin());
                                        if (pe.id() == 0) {
                                          blocks.send(1, send_buffer(words, [] {}));
                                          words[100] = 0;
                                        }
                                        pe.quiesce();
                                      },
                                      {{"HEADWAY_TRANSFER", way}, {"HEADWAY_CHECK", "on"}});
    expect_failure(outcome, "40000 bytes");
    expect_failure(outcome, "changed");
  }
}

TEST(TransferMisuse, a_destroyed_destination) {
  const std::pair<const char*, int> cases[] = {{"cma", 100'000}, {"frames", 100'000}, {"auto", 100}, {"cma", 100}};
  for (const auto& [way, size] : cases) {
    const Outcome outcome =
        catch_run({2, 1},
                  [size = size](Pe& pe) {
                    std::vector<std::uint64_t> memory(static_cast<std::size_t>(size));
                    const auto words = words_of(1, memory.size());
                    std::optional<RemoteDestination<std::uint64_t>> remote;
                    Aggregator<RemoteDestination<std::uint64_t>> offers(pe);
                    offers.on([&](const RemoteDestination<std::uint64_t>& offered) { remote = offered; });
                    if (pe.id() == 0) {
                      const Destination<std::uint64_t> destination(pe, memory, [] {});
                      offers.send(1, destination.remote());
                    }
                    pe.quiesce();
                    if (pe.id() == 1) put(pe, words, *remote).get();
                    pe.quiesce();
                  },
                  {{"HEADWAY_TRANSFER", way}});
    expect_failure(outcome, "PE 1 puts to a Destination of PE 0 that is gone");
  }
}

TEST(TransferMisuse, memory_that_is_too_small) {
  expect_run({2, 1}, [](Pe& pe) {
    const auto words = words_of(1, 100);
    std::vector<std::uint64_t> less(99);
    const Source<std::uint64_t> source(pe, words, [] {});
    const Destination<std::uint64_t> destination(pe, less, [] {});
    expect_usage_error([&] { (void)get(pe, source.remote(), less); }, "get of 800 bytes of PE");
    expect_usage_error([&] { (void)put(pe, words, destination.remote()); }, "put of 800 bytes into 792");
    expect_usage_error(
        [&] {
          const Source<std::uint64_t> none(
              pe, words, [] {}, 0);
        },
        "a Source for 0 gets");
    pe.quiesce();
  });
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    std::vector<std::uint64_t> memory(10);
    Aggregator<Words> blocks(pe);
    blocks.on_posted([&](std::size_t) { return std::span(memory); }, [](Words) {});
    const auto words = words_of(1, 11);
    if (pe.id() == 0) blocks.send(1, words);
    pe.quiesce();
  });
  expect_failure(outcome, "room for 10 elements was posted for 11 that PE 0 sends");
}

TEST(TransferMisuse, an_invalid_key) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    std::vector<std::uint64_t> to(100);
    RemoteSource<std::uint64_t> source{};
    source.hold(rma::BufferKey{});
    if (pe.id() == 0) (void)get(pe, source, to);
    pe.quiesce();
  });
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.text.find("is no key of this run"), std::string::npos) << outcome.text;
}

/// From now on the system does not let this process attach to others.
void refuse_attaching() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/// Several messages wait for their content, in epochs that overlap.
TEST(TransferMisuse, where_attaching_is_refused_messages_of_two_epochs_wait_for_their_content) {
  expect_run({2, 1},
             [](Pe& pe) {
               Aggregator<Words> blocks(pe);
               const auto words = words_of(pe.id(), 200'000);
               std::size_t handled = 0, done = 0;
               blocks.on([&](Words content) {
                 EXPECT_EQ(content.size(), words.size());
                 ++handled;
               });
               refuse_attaching();
               pe.quiesce();
               const auto send = [&] { blocks.send(1 - pe.id(), send_buffer(words, [&] { ++done; })); };
               for (int i = 0; i < 3; ++i) send();
               Epoch epoch(pe);
               for (int i = 0; i < 3; ++i) send();
               epoch.wait();
               for (int i = 0; i < 3; ++i) send();
               pe.quiesce();
               EXPECT_EQ(handled, 9);
               EXPECT_EQ(done, 9);
             },
             {{"HEADWAY_TRANSFER", "cma"}});
}

TEST(TransferMisuse, where_attaching_is_refused_in_the_middle_content_comes_by_frames) {
  expect_run({2, 1},
             [](Pe& pe) {
               Aggregator<std::uint64_t, Words> blocks(pe);
               Aggregator<RemoteSource<std::uint64_t>> offers(pe);
               const auto words = words_of(pe.id(), 300'000);
               std::size_t handled = 0, got = 0, done = 0;
               blocks.on([&](std::uint64_t number, Words content) {
                 EXPECT_EQ(content.size(), words.size());
                 EXPECT_TRUE(are_words_of(number, content));
                 if (++handled == 2) refuse_attaching();
               });
               std::vector<std::uint64_t> to(words.size());
               offers.on([&](PeId from, const RemoteSource<std::uint64_t>& source) {
                 get(pe, source, to, [&, from] {
                   EXPECT_TRUE(are_words_of(from, to));
                   ++got;
                 });
               });
               for (int i = 0; i < 6; ++i) {
                 blocks.send(1 - pe.id(), std::uint64_t(pe.id()), send_buffer(words, [&] { ++done; }));
               }
               pe.quiesce();
               const Source<std::uint64_t> source(pe, words, [&] { ++done; });
               offers.send(1 - pe.id(), source.remote());
               pe.quiesce();
               EXPECT_EQ(handled, 6);
               EXPECT_EQ(got, 1);
               EXPECT_EQ(done, 7);
             },
             {{"HEADWAY_TRANSFER", "cma"}});
}

/// Content of posted messages in epochs that overlap.
TEST(TransferMisuse, where_attaching_is_refused_posted_content_of_two_epochs_is_read_as_it_is_written) {
  expect_run({2, 1}, [](Pe& pe) {
    Aggregator<std::uint64_t, Words> blocks(pe);
    const auto words = words_of(pe.id(), 200'000);
    std::size_t handled = 0, done = 0;
    std::vector<std::vector<std::uint64_t>> received(30);
    blocks.on_posted(
        [&](std::uint64_t number, std::size_t size) {
          received[number].resize(size);
          return std::span(received[number]);
        },
        [&](PeId from, std::uint64_t, Words content) {
          EXPECT_TRUE(are_words_of(from, content));
          ++handled;
        });
    refuse_attaching();
    pe.quiesce();
    std::uint64_t number = 0;
    const auto send_some = [&] {
      for (const std::size_t size : {100u, 500u, 2048u, 2049u, 5000u, 32'768u, 32'769u, 200'000u}) {
        blocks.send(1 - pe.id(), number++, send_buffer(std::span(words).first(size), [&] { ++done; }));
      }
    };
    send_some();
    Epoch epoch(pe);
    send_some();
    epoch.wait();
    send_some();
    pe.quiesce();
    EXPECT_EQ(handled, 24);
    EXPECT_EQ(done, 24);
  });
}

TEST(TransferMisuse, an_aggregator_destroyed_before_its_posted_content_has_arrived) {
  void* const shared =
      mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& destroyed = *new (shared) std::atomic<bool>(false);
  const Outcome outcome = catch_run({2, 1}, [&destroyed](Pe& pe) {
    std::optional<Aggregator<Words>> blocks(std::in_place, pe);
    const auto words = words_of(1, 20'000);
    std::vector<std::uint64_t> received(words.size());
    bool posted = false;
    blocks->on_posted(
        [&](std::size_t size) {
          posted = true;
          return std::span(received).first(size);
        },
        [](Words) { ADD_FAILURE() << "it is gone"; });
    refuse_attaching();
    pe.quiesce();
    if (pe.id() == 0) {
      blocks->send(1, send_buffer(words, [] {}));
      const std::int64_t until = pe.engine().now() + 30'000'000'000;
      while (!destroyed && pe.engine().now() < until) continue;  // no progress: only the begin is written
    } else {
      while (!posted) pe.progress();
      blocks.reset();
      destroyed = true;
    }
    pe.quiesce();
  });
  expect_failure(outcome, "160000 bytes of PE 0 are for an aggregator that was destroyed: quiesce() first");
  munmap(shared, sizeof(std::atomic<bool>));
}

TEST(TransferMisuse, a_sender_that_dies_ends_the_run) {
  const Outcome outcome = source_of_pe_0(
      {{"HEADWAY_TRANSFER", "cma"}}, [](auto&, auto&) { _exit(7); },
      [](Pe& pe, const RemoteSource<std::uint64_t>& remote) {
        std::vector<std::uint64_t> to(remote.size());
        get(pe, remote, to).get();
      });
  expect_failure(outcome, "exited with status 7");
}

}  // namespace
}  // namespace headway
