// SPDX-License-Identifier: BSD-3-Clause
/// Checkpoints with several shapes of runs: elements are equal after a restart, and damaged files are refused with the
/// reason.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <headway/collective/allreduce.hpp>
#include <headway/object/object.hpp>
#include <iterator>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

namespace fs = std::filesystem;
using testing::expect_run;
using testing::Shape;
using testing::shapes;

/// A folder that is removed after the test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "headway-checkpoint-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) base::throw_errno("mkdtemp");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  std::string checkpoint() const { return path_ / "checkpoint"; }

 private:
  fs::path path_;
};

class Cell : public Element<Cell, Index<2>> {
 public:
  void add(std::int64_t value) {
    values_.resize(std::size_t(index()[0] * 7 + index()[1]) % 5, 3);
    sum_ += value;
  }
  void move_on(int step) { migrate_to((pe().id() + std::size_t(step)) % pe().size()); }
  std::int64_t sum() const { return sum_; }
  std::int64_t state() const { return sum_ + 1000 * std::int64_t(values_.size()); }
  template <class A>
  void serialize(A& archive) {
    archive(sum_, values_);
  }

 private:
  std::int64_t sum_ = 0;
  std::vector<std::int32_t> values_;
};

class Word : public Element<Word, Sparse<std::string>> {
 public:
  Word() = default;
  explicit Word(const std::string& text) : text_(text) {}
  const std::string& text() const { return text_; }
  std::int64_t letters() const { return std::int64_t(text_.size()); }
  template <class A>
  void serialize(A& archive) {
    archive(text_);
  }

 private:
  std::string text_;
};

/// Expects two messages in each step.
class Stepper : public Element<Stepper, Index<1>> {
 public:
  void take(std::int64_t, std::int64_t value) { sum_ += value; }
  void done() { ++steps_; }
  std::int64_t steps() const { return steps_; }
  std::int64_t sum() const { return sum_; }
  template <class A>
  void serialize(A& archive) {
    archive(sum_, steps_);
  }
  static constexpr auto triggers = headway::triggers(headway::trigger<&Stepper::done, &Stepper::take>(2));

 private:
  std::int64_t sum_ = 0, steps_ = 0;
};

constexpr int rows = 6, columns = 11, words = 40;

std::int64_t value_of(int i, int j) { return 100 * i + j; }
std::string word_of(int i) { return "word " + std::to_string(i); }

void write(Pe& pe, const std::string& path, std::int64_t round = 1) {
  Array<Cell> cells(pe, {rows, columns}, {});
  SparseArray<Word> dictionary(pe);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      if (std::size_t(i * columns + j) % pe.size() != pe.id()) continue;
      cells[{i, j}].send<&Cell::add>(round * value_of(i, j));
      if ((i + j) % 3 == 0) cells[{i, j}].send<&Cell::move_on>(1 + i);
    }
  }
  for (int i = int(pe.id()); i < words; i += int(pe.size())) dictionary[word_of(i)].insert(word_of(i * int(round)));
  checkpoint(pe, path, cells, dictionary);
}

/// Compares all state, and checks that restarted collections work as others do.
void read(Pe& pe, const std::string& path, std::int64_t round = 1) {
  Array<Cell> cells(pe, {rows, columns}, {.placement = cyclic(), .empty = true});
  SparseArray<Word> dictionary(pe);
  restart(pe, path, cells, dictionary);
  EXPECT_EQ(cells.size(), std::uint64_t(rows * columns));
  EXPECT_EQ(allreduce(pe, std::uint64_t(cells.local_size()), std::plus<>()), std::uint64_t(rows * columns));
  EXPECT_EQ(dictionary.size(), std::uint64_t(words));
  std::int64_t sum = 0;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) sum += round * value_of(i, j);
  }
  cells.for_each_local([&](Cell& cell) {
    const Index<2> at = cell.index();
    EXPECT_EQ(cell.state(), round * value_of(at[0], at[1]) + 1000 * ((at[0] * 7 + at[1]) % 5));
  });
  EXPECT_EQ(cells.reduce<&Cell::sum>(std::plus<>()).get(), sum);
  std::int64_t letters = 0;
  for (int i = 0; i < words; ++i) {
    letters += std::int64_t(word_of(i * int(round)).size());
    if (Word* const word = dictionary.find_local(word_of(i))) {
      EXPECT_EQ(word->text(), word_of(i * int(round)));
    }
  }
  EXPECT_EQ(dictionary.reduce<&Word::letters>(std::plus<>()).get(), letters);
  if (pe.id() == 0) cells.broadcast<&Cell::add>(1);
  pe.quiesce();
  for (int i = 0; i < rows; ++i) cells[{i, 2}].send<&Cell::move_on>(1);
  EXPECT_EQ((cells[{1, 2}].rpc<&Cell::sum>().get()), round * value_of(1, 2) + 1);
  pe.quiesce();
}

TEST(Checkpoint, is_restarted_on_another_number_of_pes) {
  const Folder folder;
  expect_run({4, 2}, [&](Pe& pe) { write(pe, folder.checkpoint()); });
  for (const Shape shape : shapes) expect_run(shape, [&](Pe& pe) { read(pe, folder.checkpoint()); });
}

TEST(Checkpoint, is_written_on_any_number_of_pes) {
  for (const Shape shape : shapes) {
    const Folder folder;
    expect_run(shape, [&](Pe& pe) {
      write(pe, folder.checkpoint(), 2);
      write(pe, folder.checkpoint(), 3);
    });
    std::size_t files = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder.checkpoint()))
      files += entry.is_regular_file();
    EXPECT_EQ(files, shape.pes + 1) << "the one before is gone";
    expect_run({3, 1}, [&](Pe& pe) { read(pe, folder.checkpoint(), 3); });
  }
}

TEST(Checkpoint, keeps_the_step_of_triggers) {
  const Folder folder;
  expect_run({3, 1}, [&](Pe& pe) {
    Array<Stepper> steppers(pe, {9}, {});
    for (int i = int(pe.id()); i < 9; i += 3) {
      for (const std::int64_t step : {0, 0, 1}) steppers[{i}].send<&Stepper::take>(step, 5);
    }
    checkpoint(pe, folder.checkpoint(), steppers);
  });
  expect_run({2, 1}, [&](Pe& pe) {
    Array<Stepper> steppers(pe, {9}, {.empty = true});
    restart(pe, folder.checkpoint(), steppers);
    for (int i = int(pe.id()); i < 9; i += 2) steppers[{i}].send<&Stepper::take>(1, 5);
    pe.quiesce();
    steppers.for_each_local([](Stepper& stepper) {
      EXPECT_EQ(stepper.steps(), 2);
      EXPECT_EQ(stepper.sum(), 20);
    });
    testing::expect_usage_error([&] { restart(pe, folder.checkpoint(), steppers); }, "has 9 elements");
  });
}

TEST(Checkpoint, a_run_with_messages_that_wait_ends_and_keeps_the_one_before) {
  const Folder folder;
  expect_run({4, 1}, [&](Pe& pe) { write(pe, folder.checkpoint()); });
  const testing::Outcome outcome = testing::catch_run({2, 1}, [&](Pe& pe) {
    Array<Stepper> steppers(pe, {9}, {});
    if (pe.id() == 0) steppers[{4}].send<&Stepper::take>(2, 5);
    checkpoint(pe, folder.checkpoint(), steppers);
  });
  EXPECT_EQ(outcome.status, exit_status::undelivered) << outcome.text;
  expect_run({3, 1}, [&](Pe& pe) { read(pe, folder.checkpoint()); });
}

/// Waits, and contributes, when a message tells it to.
class Waiter : public Element<Waiter, Index<1>> {
 public:
  Task<> wait() { co_await when<&Waiter::take>(0, 1); }
  void take(std::int64_t) {}
  void give() { contribute(1, std::plus<>(), to<&Waiter::got>(all()[{0}])); }
  void got(int value) { got_ = value; }
  template <class A>
  void serialize(A& archive) {
    archive(got_);
  }
  static constexpr auto awaited = headway::awaited<&Waiter::take>;

 private:
  int got_ = 0;
};

TEST(Checkpoint, refuses_coroutines_that_live_and_reductions_that_are_not_over) {
  const Folder folder;
  expect_run({3, 1}, [&](Pe& pe) {
    Array<Waiter> waiters(pe, {5}, {});
    if (pe.id() == 0) waiters[{3}].send<&Waiter::wait>();
    testing::expect_usage_error([&] { checkpoint(pe, folder.checkpoint(), waiters); },
                                "a coroutine of an element lives");
    if (pe.id() == 0) waiters[{3}].send<&Waiter::take>(0);
    if (pe.id() == 0) waiters[{2}].send<&Waiter::give>();
    testing::expect_usage_error([&] { checkpoint(pe, folder.checkpoint(), waiters); },
                                "have contributed to a reduction");
    for (const int i : {0, 1, 3, 4}) {
      if (pe.id() == 0) waiters[{i}].send<&Waiter::give>();
    }
    checkpoint(pe, folder.checkpoint(), waiters);
  });
}

// --- damage

std::string content_of(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
void put_content(const std::string& name, const std::string& content) {
  std::ofstream(name, std::ios::binary | std::ios::trunc) << content;
}

/// restart() throws the error on every PE. Its text names the file and the reason. No element is made.
template <class Error>
void expect_refused(const std::string& path, const std::string& file, const std::string& reason) {
  for (const Shape shape : {Shape{1, 1}, Shape{3, 1}, Shape{7, 4}}) {
    expect_run(shape, [&](Pe& pe) {
      Array<Cell> cells(pe, {rows, columns}, {.empty = true});
      SparseArray<Word> dictionary(pe);
      try {
        restart(pe, path, cells, dictionary);
        ADD_FAILURE() << "no error says: " << reason;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(file), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
      }
      EXPECT_EQ(cells.local_size(), 0u);
      EXPECT_EQ(dictionary.local_size(), 0u);
    });
  }
}

TEST(CheckpointDamage, is_refused_with_its_reason) {
  const Folder folder;
  const std::string path = folder.checkpoint();
  expect_refused<SettingError>(path, path, "no complete checkpoint");
  expect_run({4, 1}, [&](Pe& pe) { write(pe, path); });
  const std::string file = path + "/1.2.elements", other = path + "/1.3.elements", manifest = path + "/manifest";
  for (const std::string& name : {file, manifest}) {
    const std::string good = content_of(name);
    ASSERT_GT(good.size(), 40u);
    for (const std::size_t at : {std::size_t(12), good.size() / 2, good.size() - 9, good.size() - 1}) {
      std::string flipped = good;
      flipped[at] = char(flipped[at] ^ 4);
      put_content(name, flipped);
      expect_refused<FormatError>(path, name, "is damaged: its checksum");
    }
    std::string foreign = good;
    foreign[0] = 'X';
    put_content(name, foreign);
    expect_refused<FormatError>(path, name, "begins with other bytes");
    std::string later = good;
    later[8] = 2;
    put_content(name, later);
    expect_refused<FormatError>(path, name, "version 2 of the format");
    put_content(name, "");
    expect_refused<FormatError>(path, name, "has 0 bytes");
    put_content(name, good);
  }
  const std::string good = content_of(file);
  put_content(file, good.substr(0, good.size() - 5));
  expect_refused<FormatError>(path, file, "bytes: " + std::to_string(good.size()) + " were written");
  put_content(file, std::string(good.size(), '\0'));
  expect_refused<FormatError>(path, file, "begins with other bytes");
  put_content(file, good + "x");
  expect_refused<FormatError>(path, file, "bytes: " + std::to_string(good.size()) + " were written");
  fs::remove(file);
  expect_refused<FormatError>(path, file, "is missing");
  put_content(file, good);
  expect_run({3, 1}, [&](Pe& pe) { read(pe, path); });
}

TEST(CheckpointDamage, files_of_another_checkpoint_are_refused) {
  const Folder folder, second;
  const auto write_one = [](const std::string& path, int count, std::int64_t value) {
    expect_run({2, 1}, [&](Pe& pe) {
      Array<Cell> cells(pe, {count, 3}, {});
      if (pe.id() == 0) cells.broadcast<&Cell::add>(value);
      checkpoint(pe, path, cells);
    });
  };
  write_one(folder.checkpoint(), 5, 1);
  write_one(second.checkpoint(), 5, 2);
  fs::copy_file(second.checkpoint() + "/1.1.elements", folder.checkpoint() + "/1.1.elements",
                fs::copy_options::overwrite_existing);
  const auto refused = [&](const std::string& path, int count, bool two, const std::string& reason) {
    expect_run({3, 1}, [&](Pe& pe) {
      Array<Cell> cells(pe, {count, 3}, {.empty = true});
      SparseArray<Word> dictionary(pe);
      try {
        if (two)
          restart(pe, path, cells, dictionary);
        else
          restart(pe, path, cells);
        ADD_FAILURE() << "no error says: " << reason;
      } catch (const FormatError& error) {
        EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
      }
    });
  };
  refused(folder.checkpoint(), 5, false, "1.1.elements' is of another checkpoint");
  refused(second.checkpoint(), 6, false, "of 5 x 3, but ");
  refused(second.checkpoint(), 5, true, "is of 1 collection: 2 are given");
  expect_run({3, 1}, [&](Pe& pe) {
    SparseArray<Word> dictionary(pe);
    EXPECT_THROW(restart(pe, second.checkpoint(), dictionary), FormatError);
  });
}

TEST(Checkpoint, what_a_run_left_that_was_killed_is_removed) {
  const Folder folder;
  const std::string path = folder.checkpoint();
  expect_run({2, 1}, [&](Pe& pe) { write(pe, path); });
  put_content(path + "/7.1.elements", "half");
  put_content(path + "/manifest.new", "half");
  put_content(path + "/notes.txt", "of the user");
  expect_run({3, 1}, [&](Pe& pe) { read(pe, path); });
  expect_run({2, 1}, [&](Pe& pe) { write(pe, path, 4); });
  EXPECT_FALSE(fs::exists(path + "/7.1.elements"));
  EXPECT_FALSE(fs::exists(path + "/1.1.elements"));
  EXPECT_FALSE(fs::exists(path + "/manifest.new"));
  EXPECT_TRUE(fs::exists(path + "/8.1.elements"));
  EXPECT_TRUE(fs::exists(path + "/notes.txt"));
  expect_run({3, 1}, [&](Pe& pe) { read(pe, path, 4); });
}

TEST(Checkpoint, a_path_that_cannot_be_a_folder_is_refused) {
  const Folder folder;
  put_content(folder.checkpoint(), "a file");
  expect_run({3, 1}, [&](Pe& pe) {
    Array<Cell> cells(pe, {4, 4}, {});
    EXPECT_THROW(checkpoint(pe, folder.checkpoint(), cells), SettingError);
    EXPECT_THROW(checkpoint(pe, folder.checkpoint() + "/below", cells), SettingError);
  });
}

}  // namespace
}  // namespace headway
