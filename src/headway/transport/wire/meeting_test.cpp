// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <headway/base/error.hpp>
#include <headway/transport/wire/meeting.hpp>
#include <memory>
#include <thread>
#include <vector>

namespace headway::wire {
namespace {

/// A place with a thread that serves it.
struct Served {
  MeetingPlace place;
  std::atomic<bool> over{false};
  std::thread server;

  explicit Served(std::uint32_t processes)
      : place(processes, false), server([this] {
          while (!over) place.serve(5);
        }) {}
  ~Served() {
    over = true;
    server.join();
  }
  Invitation invitation(std::uint32_t process) { return place.invitation("127.0.0.1", process); }
};

int connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

/// True if the place has closed the connection.
bool is_closed(int fd) {
  char byte;
  return recv(fd, &byte, 1, 0) <= 0;
}

TEST(Invitations, are_read_as_they_were_written) {
  for (const char* host : {"node7", "10.0.0.1", "fe80::1"}) {
    const Invitation written{host, 4711, 0xfedcba9876543210, 3, 8};
    const Invitation read = Invitation::parse(written.text());
    EXPECT_EQ(read.host, host);
    EXPECT_EQ(read.port, 4711);
    EXPECT_EQ(read.token, 0xfedcba9876543210);
    EXPECT_EQ(read.process, 3u);
    EXPECT_EQ(read.processes, 8u);
  }
}

TEST(Invitations, that_are_invalid_are_refused_with_the_allowed_form) {
  for (const char* text :
       {"", "a", "a:b:c:d:e", ":1:2:0:1", "host:70000:1:0:1", "host:1:1:2:2", "host:1:1:0:1x", "1:2:3:4"}) {
    try {
      Invitation::parse(text);
      ADD_FAILURE() << text;
    } catch (const SettingError& error) {
      EXPECT_NE(std::string(error.what()).find("allowed is HOST:PORT:TOKEN:PROCESS:PROCESSES"), std::string::npos);
    }
  }
}

TEST(Meeting, gathers_what_each_process_says_time_and_again) {
  for (const std::uint32_t processes : {1u, 2u, 7u}) {
    Served served(processes);
    std::vector<std::thread> threads;
    for (std::uint32_t process = 0; process < processes; ++process) {
      threads.emplace_back([&, process] {
        Meeting meeting(served.invitation(process));
        for (std::size_t round = 0; round < 20; ++round) {
          const std::size_t bytes = round * round * 13;  // also none, and more than is read at once
          const std::vector<unsigned char> mine(bytes, static_cast<unsigned char>(process + round));
          std::vector<unsigned char> all(bytes * processes);
          ASSERT_TRUE(meeting.exchange(mine.data(), bytes, all.data()));
          for (std::size_t i = 0; i < all.size(); ++i)
            ASSERT_EQ(all[i], static_cast<unsigned char>(i / bytes + round)) << i;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(served.place.arrived(), processes);
    EXPECT_EQ(served.place.aborted(), -1);
    EXPECT_TRUE(served.place.lost().empty());
  }
}

TEST(Meeting, of_other_programs_is_refused_and_disturbs_no_process) {
  Served served(1);
  const std::uint16_t port = served.invitation(0).port;
  std::vector<std::vector<std::uint64_t>> words = {
      {0, 16, 12345, 0},                       // the wrong token
      {0, 16, served.invitation(0).token, 1},  // no process of this run
      {1, 8, 0},                               // before its hello
      {0, ~std::uint64_t(0)},                  // longer than anything may be
      {0, 8, served.invitation(0).token},      // shorter than a greeting
  };
  for (const auto& said : words) {
    const int fd = connect_to(port);
    ASSERT_EQ(write(fd, said.data(), said.size() * 8), ssize_t(said.size() * 8));
    EXPECT_TRUE(is_closed(fd));
    close(fd);
  }
  Meeting meeting(served.invitation(0));
  std::uint64_t mine = 7, all = 0;
  EXPECT_TRUE(meeting.exchange(&mine, sizeof mine, &all));
  EXPECT_EQ(all, 7u);
  EXPECT_EQ(served.place.arrived(), 1u);
}

TEST(Meeting, tells_the_place_of_an_abort) {
  Served served(2);
  Meeting meeting(served.invitation(1));
  meeting.abort(122);
  for (int i = 0; i < 500 && served.place.aborted() < 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(served.place.aborted(), 122);
}

TEST(MeetingDeath, a_process_whose_place_has_gone_ends) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        auto served = std::make_unique<Served>(2);
        Meeting meeting(served->invitation(0));
        while (served->place.arrived() == 0) std::this_thread::yield();
        served.reset();
        std::this_thread::sleep_for(std::chrono::seconds(30));
      },
      ::testing::ExitedWithCode(exit_status::failed), "");
}

}  // namespace
}  // namespace headway::wire
