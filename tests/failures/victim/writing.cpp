// SPDX-License-Identifier: BSD-3-Clause
#include <iostream>

#include "scenarios.hpp"

namespace victim {
namespace {

/// lines COUNT BYTES [ended]: from every PE to both outputs, "<PE:NUMBER:aaaa...>"; the odd PEs' last one lacks its
/// end, unless it is to have one.
int lines(int argc, char** argv) {
  const std::size_t count = number(argv[2]), bytes = number(argv[3]);
  const bool ended = argc > 4;
  return headway::run(argc, argv, [&](Pe& pe) {
    for (std::size_t i = 0; i < count; ++i) {
      std::string line = "<" + std::to_string(pe.id()) + ":" + std::to_string(i) + ":";
      line.append(bytes > line.size() + 1 ? bytes - line.size() - 1 : 0, char('a' + pe.id() % 26));
      line += ">";
      if (ended || i + 1 != count || pe.id() % 2 == 0) line += "\n";
      std::fputs(line.c_str(), stdout);
      std::fputs(line.c_str(), stderr);
    }
  });
}

/// prints_for_ever: PE 0 does, and the others do nothing; all make progress.
int prints_for_ever(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    std::fprintf(stderr, "PE %zu is pid %d\n", std::size_t(pe.id()), int(getpid()));
    for (std::uint64_t i = 0;; ++i) {
      if (pe.id() == 0) std::printf("line %llu\n", static_cast<unsigned long long>(i));
      pe.progress();
    }
  });
}

/// prints_and_dies: some lines, the last one without end, and then a crash.
int prints_and_dies(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    pe.quiesce();
    if (pe.id() != 0) {
      for (;;) pe.progress();
    }
    for (int i = 0; i < 1000; ++i) std::printf("result %d\n", i);
    std::printf("last words");
    std::fflush(stdout);
    std::abort();
  });
}

/// text_before: text in the output buffers before run() is written once.
int text_before(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::cout << "once by cout\n";
  std::printf("once by printf\n");
  return headway::run(argc, argv, [](Pe&) {});
}

int by_cout(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return headway::run(argc, argv, [](Pe& pe) {
    for (int i = 0; i < 1000; ++i) std::cout << "PE " << pe.id() << " says " << i << "\n";
  });
}

/// reads [LINE]: every PE counts the bytes it can read from standard input; with LINE the caller has read a line
/// before.
int reads(int argc, char** argv) {
  char line[100];
  if (argc > 2 && std::fgets(line, sizeof line, stdin) == nullptr) return 1;
  return headway::run(argc, argv, [](Pe& pe) {
    std::size_t bytes = 0;
    while (std::getchar() != EOF) ++bytes;
    std::printf("PE %zu read %zu bytes\n", std::size_t(pe.id()), bytes);
  });
}

/// asks: PE 0 asks a question on one line and reads the answer.
int asks(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    if (pe.id() != 0) return;
    std::printf("how many? ");
    std::fflush(stdout);
    char answer[100];
    if (std::fgets(answer, sizeof answer, stdin) != nullptr) std::printf("so many: %s", answer);
  });
}

struct AtEnd {
  ~AtEnd() { std::printf("a static destructor\n"); }
};

int at_exit(int argc, char** argv) {
  static const AtEnd at_end;
  std::atexit([] { std::printf("an exit handler\n"); });
  return headway::run(argc, argv, [](Pe& pe) { pe.quiesce(); });
}

}  // namespace

Scenarios writing() {
  return {{"lines", lines},
          {"prints_for_ever", prints_for_ever},
          {"prints_and_dies", prints_and_dies},
          {"text_before", text_before},
          {"by_cout", by_cout},
          {"reads", reads},
          {"asks", asks},
          {"at_exit", at_exit}};
}

}  // namespace victim
