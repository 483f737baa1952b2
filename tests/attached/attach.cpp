// SPDX-License-Identifier: BSD-3-Clause
/// A program with a main program of its own: attach.cpp CASE. Each case prints its outcome and ends with 0 if it is
/// right, or does what must end the run.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <headway/headway.hpp>
#include <numeric>
#include <stdexcept>
#include <thread>

namespace {

/// Messages around the ring and a sum, in a run of their own.
bool values() {
  headway::Pe& pe = headway::attach();
  const std::size_t me = pe.id(), all = pe.size();
  std::size_t sum = 0;
  {
    headway::Aggregator<std::size_t> messages(pe);
    messages.on([&](std::size_t value) { sum += value; });
    for (std::size_t i = 0; i != 10'000; ++i) messages.send((me + 1) % all, me);
    pe.quiesce();
  }
  const std::size_t left = (me + all - 1) % all;
  const std::size_t total = headway::allreduce(pe, me, std::plus<>());
  return headway::detach() == 0 && sum == 10'000 * left && total == all * (all - 1) / 2;
}

template <class Error, class Call>
bool refuses(Call call, const char* text) {
  try {
    call();
  } catch (const Error& error) {
    if (std::strstr(error.what(), text) != nullptr) return true;
    std::printf("another text: %s\n", error.what());
  }
  return false;
}

/// The root of broadcasts then waits for the file, outside the library, until the others have received all of them.
bool settles(const std::filesystem::path& file) {
  headway::Pe& pe = headway::attach();
  const std::size_t root = pe.size() - 1;
  if (pe.id() == root) std::filesystem::remove(file);
  headway::barrier(pe);
  bool good = true;
  for (int i = 1; i <= 100; ++i) good &= headway::broadcast(pe, pe.id() == root ? i : 0, root) == i;
  if (pe.id() == root) {
    headway::settle(pe);
    for (int i = 0; i != 2000 && !std::filesystem::exists(file); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    good &= std::filesystem::exists(file);
  } else {
    std::ofstream(file) << "received";
  }
  return headway::detach() == 0 && good;
}

bool misuse() {
  bool good = refuses<headway::UsageError>([] { headway::detach(); }, "detach() without attach()");
  headway::Pe& pe = headway::attach();
  good &= refuses<headway::UsageError>([] { headway::attach(); }, "attach() twice");
  std::thread([&] {
    good &= refuses<headway::UsageError>([] { headway::detach(); }, "on another thread than attach()");
  }).join();
  good &= headway::run(0, nullptr, [](headway::Pe&) {}) == 120;
  good &= headway::attached() == &pe;
  const int status = headway::detach(int(pe.id()) == int(pe.size()) - 1 ? 7 : 0);
  return good && status == 7 && headway::attached() == nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  bool good = false;
  if (what == "values") {
    good = values() && values();  // a program may attach again
  } else if (what == "settles" && argc > 2) {
    good = settles(argv[2]);
  } else if (what == "misuse") {
    good = misuse();
  } else if (what == "settings") {
    good = refuses<headway::SettingError>([] { headway::attach(); }, argc > 2 ? argv[2] : "");
  } else if (what == "inside") {
    return headway::run(argc, argv, [](headway::Pe&) {
      return refuses<headway::UsageError>([] { headway::attach(); }, "attach() inside run()") ? 0 : 1;
    });
  } else {
    headway::Pe& pe = headway::attach();
    headway::Aggregator<int> messages(pe);
    messages.on([](int) { throw std::runtime_error("a handler's own error"); });
    if (what == "exit" && pe.id() == pe.size() - 1) std::exit(0);
    if (what == "throw" && pe.id() == 0) messages.send(pe.size() - 1, 1);
    for (;;) pe.quiesce();
  }
  if (!good) std::printf("%s is wrong\n", what.c_str());
  return good ? 0 : 1;
}
