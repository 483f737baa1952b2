// SPDX-License-Identifier: BSD-3-Clause
/// The contract of each kind of collection: names and homes, insertion and erasure, groups, proxies and calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <headway/am/epoch.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/object/object.hpp>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::expect_setting_error;
using testing::expect_usage_error;
using testing::Outcome;
using testing::Shape;
using testing::shapes;

// --- dense arrays

template <unsigned d>
class Box : public Element<Box<d>, Index<d>> {
 public:
  void take(const Index<d>& name) {
    EXPECT_EQ(name, this->index());
    ++taken;
  }
  int count() const { return taken; }
  int taken = 0;
};

template <unsigned d>
void expect_all_named(Pe& pe, const Index<d>& extents) {
  Collection<Box<d>> boxes(pe, extents);
  EXPECT_EQ(boxes.extents(), extents);
  std::vector<Index<d>> names(1);
  for (unsigned k = 0; k < d; ++k) {
    std::vector<Index<d>> longer;
    for (Index<d> name : names) {
      for (name[k] = 0; name[k] < extents[k]; ++name[k]) longer.push_back(name);
    }
    names = longer;
  }
  EXPECT_EQ(boxes.size(), names.size());
  for (const Index<d>& name : names) boxes[name].template send<&Box<d>::take>(name);
  pe.quiesce();
  std::size_t here = 0;
  for (const Index<d>& name : names) {
    Box<d>* const box = boxes.find_local(name);
    if (box == nullptr) continue;
    ++here;
    EXPECT_EQ(box->index(), name);
    EXPECT_EQ(box->taken, int(pe.size()));
  }
  EXPECT_EQ(here, boxes.local_size());
  EXPECT_EQ(allreduce(pe, here, std::plus<>()), names.size());
}

TEST(Dense, elements_of_one_to_six_dimensions_are_found_by_their_names) {
  for (const Shape shape : {Shape{1, 1}, Shape{3, 3}, Shape{8, 4}}) {
    expect_run(shape, [](Pe& pe) {
      expect_all_named<1>(pe, 11);
      expect_all_named<2>(pe, {3, 5});
      expect_all_named<3>(pe, {2, 3, 4});
      expect_all_named<4>(pe, {2, 1, 3, 2});
      expect_all_named<5>(pe, {1, 2, 2, 3, 2});
      expect_all_named<6>(pe, {2, 2, 1, 2, 3, 1});
      expect_all_named<2>(pe, {0, 5});
      expect_all_named<1>(pe, 2);  // fewer elements than PEs
    });
  }
}

TEST(Dense, names_outside_and_extents_that_cannot_be_are_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    Array<Box<2>> boxes(pe, {3, 4});
    Array<Box<1>> row(pe, 5);
    expect_usage_error([&] { boxes[{3, 0}]; }, "no element (3, 0) in an array of 3 x 4");
    expect_usage_error([&] { boxes[{0, -1}]; }, "no element (0, -1)");
    expect_usage_error([&] { row[5].send<&Box<1>::take>(Index<1>(5)); }, "no element (5) in an array of 5");
    expect_usage_error([&] { row[-1].send<&Box<1>::take>(Index<1>(0)); }, "no element (-1)");
    expect_usage_error([&] { row[7].rpc<&Box<1>::count>().get(); }, "no element (7)");
    expect_usage_error([&] { row.section({1, 5}); }, "no element (5)");
    EXPECT_EQ(row.find_local(5), nullptr);
    EXPECT_EQ(call::PendingCalls::of(pe).size(), 0u);
    expect_setting_error([&] { Array<Box<2>>(pe, {3, -1}); }, "3 x -1");
    expect_setting_error([&] { Array<Box<2>>(pe, {1 << 20, 1 << 20}); }, "too many elements");
    pe.quiesce();
  });
}

TEST(Dense, elements_are_made_where_their_placement_says) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      const std::size_t pes = pe.size();
      Array<Box<1>> in_blocks(pe, 20), in_turn(pe, 20, {.placement = cyclic()}),
          anywhere(pe, 20, {.placement = hashed()});
      Array<Box<2>> own(pe, {4, 5},
                        {.placement = place<Index<2>>([pes](const Index<2>& at) { return std::size_t(at[1]) % pes; })});
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(in_blocks.home_of(std::uint32_t(i)), std::size_t(i) * pes / 20);
        EXPECT_EQ(in_turn.home_of(std::uint32_t(i)), std::size_t(i) % pes);
        EXPECT_EQ(own.home_of(std::uint32_t(i)), std::size_t(i % 5) % pes);
        EXPECT_EQ(in_turn.find_local(i) != nullptr, std::size_t(i) % pes == pe.id());
      }
      std::uint64_t all = 0;
      anywhere.for_each_local([&](Box<1>& box) { all += std::uint64_t(box.index()[0]); });
      EXPECT_EQ(allreduce(pe, all, std::plus<>()), 190u);
    });
  }
  expect_run({2, 1}, [](Pe& pe) {
    expect_usage_error(
        [&] { Array<Box<1>>(pe, 3, {.placement = place<Index<1>>([](const Index<1>&) { return 2u; })}); },
        "place() gave PE 2 for an element: this run has 2 PEs");
    expect_setting_error([&] { Array<Box<1>>(pe, 3, {.placement = place<int>([](int) { return 0u; })}); },
                         "another type of names");
  });
}

// --- sparse arrays

template <class Key>
class Keyed : public Element<Keyed<Key>, Sparse<Key>> {
 public:
  Keyed() = default;
  Keyed(int begin, const std::string& text) : sum_(begin), text_(text) {}
  void add(int value) { sum_ += value; }
  void add_typed(int value) { sum_ += value; }
  void go(std::size_t pe) { this->migrate_to(pe); }
  int sum() const { return sum_; }
  std::string text() const { return text_; }
  template <class A>
  void serialize(A& archive) {
    archive(sum_, text_);
  }
  static constexpr auto aggregation = entries(entry<&Keyed::add_typed>{});

 private:
  int sum_ = 0;
  std::string text_;
};

template <class Key>
void expect_sparse(Pe& pe, const std::vector<Key>& keys) {
  using Item = Keyed<Key>;
  const std::size_t pes = pe.size();
  SparseArray<Item> items(pe);
  const auto mine = [&](std::size_t i) { return i % pes == pe.id(); };
  for (std::size_t i = 0; i < keys.size(); ++i) {
    items[keys[i]].template send<&Item::add>(1);  // most arrive before the insertion
    items[keys[i]].template send<&Item::add_typed>(1);
    if (mine(i)) items[keys[i]].insert(100, std::string("text"));
    if (mine(i + 1)) items[keys[i]].template send<&Item::go>(i * 7 % pes);
  }
  pe.quiesce();
  expect_usage_error([&] { items.template reduce<&Item::sum>(std::plus<>()).get(); }, "done_inserting()");
  items.done_inserting();
  EXPECT_EQ(items.size(), keys.size());
  for (const Key& key : keys) {
    EXPECT_EQ(items[key].template rpc<&Item::sum>().get(), 100 + 2 * int(pes));
    EXPECT_EQ(items[key].template rpc<&Item::text>().get(), "text");
  }
  EXPECT_EQ(items.template reduce<&Item::sum>(std::plus<>()).get(), int(keys.size()) * (100 + 2 * int(pes)));
  pe.quiesce();
  if (pe.id() == 0) items[keys[0]].erase();
  pe.quiesce();
  EXPECT_EQ(items.find_local(keys[0]), nullptr);
  EXPECT_EQ(allreduce(pe, items.local_size(), std::plus<>()), keys.size() - 1);  // a PE that has returned inserts again
  items[keys[0]].template send<&Item::add>(5);
  if (mine(1)) items[keys[0]].insert(0, std::string());
  pe.quiesce();
  EXPECT_EQ(items[keys[0]].template rpc<&Item::sum>().get(), 5 * int(pes));
  pe.quiesce();
}

TEST(SparseArrays, elements_come_and_go_by_keys_of_any_type) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      expect_sparse<int>(pe, {3, -7, 1'000'000'000, 0});
      expect_sparse<std::string>(pe, {"", "a key", std::string(100, 'k')});
      expect_sparse<Index<3>>(pe, {{1, 2, 3}, {-1, 0, 5}});
    });
  }
}

TEST(SparseArrays, a_key_is_inserted_once_until_it_is_erased) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    SparseArray<Keyed<int>> items(pe);
    items[7].insert(1, std::string());  // by both PEs
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, 121);
  EXPECT_NE(outcome.text.find("has an element with this key already"), std::string::npos) << outcome.text;
}

TEST(SparseArrays, a_message_to_a_key_that_is_never_inserted_is_undelivered) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    SparseArray<Keyed<int>> items(pe, {.name = "items"});
    if (pe.id() == 0) items[7].send<&Keyed<int>::add>(1);
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, 123) << outcome.text;
  EXPECT_NE(outcome.text.find("1 message is undelivered"), std::string::npos) << outcome.text;
}

TEST(SparseArrays, placements_by_number_are_refused) {
  expect_run({1, 1}, [](Pe& pe) {
    expect_setting_error([&] { SparseArray<Keyed<int>>(pe, {.placement = cyclic()}); },
                         "allowed are hashed() and place<Key>()");
    SparseArray<Keyed<int>>(pe, {.placement = place<int>([](int) { return 0u; })});
  });
}

// --- groups

class Branch : public Element<Branch, PerPe> {
 public:
  explicit Branch(int begin = 0) : sum_(begin) {}
  void add(int value) { sum_ += value; }
  void add_typed(int value) { sum_ += value; }
  void tick() { sum_ += 1000; }
  int sum() const { return sum_; }
  static constexpr auto aggregation = entries(entry<&Branch::add_typed>{}, entry<&Branch::tick>{});

 private:
  int sum_;
};
class OfProcess : public Element<OfProcess, PerProcess> {
 public:
  void add(int value) { sum_ += value; }
  std::size_t where() const { return pe().id(); }
  int sum_ = 0;
  static constexpr auto aggregation = entries(entry<&OfProcess::add>{});
};
class Only : public Element<Only> {
 public:
  void add(int value) { sum_ += value; }
  void go(std::size_t pe) { migrate_to(pe); }
  int sum() const { return sum_; }
  std::size_t where() const { return pe().id(); }
  template <class A>
  void serialize(A& archive) {
    archive(sum_);
  }
  static constexpr auto aggregation = entries(entry<&Only::add>{});

 private:
  int sum_ = 0;
};

TEST(Groups, have_an_element_on_each_pe_in_each_process_or_in_all) {
  for (const Shape shape : shapes) {
    expect_run(shape, [&](Pe& pe) {
      const int pes = int(pe.size());
      Group<Branch> group(pe, {}, 5);
      group[(pe.id() + 1) % pe.size()].send<&Branch::add>(1);
      group[(pe.id() + 1) % pe.size()].send<&Branch::add_typed>(10);
      group[(pe.id() + 1) % pe.size()].send<&Branch::tick>();
      if (pe.id() == 0) group.broadcast<&Branch::add_typed>(100);
      pe.quiesce();
      EXPECT_EQ(group.local().sum(), 1116);
      EXPECT_EQ(group.local().index(), pe.id());
      EXPECT_EQ(group.reduce<&Branch::sum>(std::plus<>()).get(), 1116 * pes);
      expect_usage_error([&] { group[pe.size()].send<&Branch::add>(1); }, "no element");

      const std::size_t each = pe.engine().endpoint().host_map().pes_per_process;
      ProcessGroup<OfProcess> processes(pe);
      EXPECT_EQ(processes.size(), (pe.size() + each - 1) / each);
      for (std::size_t i = 0; i < processes.size(); ++i) {
        processes[i].send<&OfProcess::add>(1);
        EXPECT_EQ(processes[i].rpc<&OfProcess::where>().get(), i * each);
      }
      pe.quiesce();
      processes.for_each_local([&](OfProcess& process) { EXPECT_EQ(process.sum_, pes); });

      Singleton<Only> only(pe, {.placement = place<std::size_t>([pes](std::size_t) { return std::size_t(pes - 1); })});
      only.send<&Only::add>(2);
      EXPECT_EQ(only.rpc<&Only::where>().get(), std::size_t(pes - 1));
      pe.quiesce();
      only.send<&Only::go>(0u);
      only.proxy().send<&Only::add>(3);
      pe.quiesce();
      EXPECT_EQ(only.rpc<&Only::where>().get(), 0u);
      EXPECT_EQ(only.proxy().rpc<&Only::sum>().get(), 5 * pes);
      pe.quiesce();
    });
  }
}

// --- proxies

class Friend : public Element<Friend, Index<1>> {
 public:
  void meet(const Proxy<Branch>& group, const Proxy<Friend>& others) {
    group_ = group;
    EXPECT_EQ(others, proxy());
    migrate_to((pe().id() + 1) % pe().size());
  }
  void greet() { group_[(pe().id() + 1) % pe().size()].send<&Branch::add>(index()[0]); }
  template <class A>
  void serialize(A& archive) {
    archive(group_);
  }

 private:
  Proxy<Branch> group_;
};

TEST(Proxies, travel_in_messages_and_with_elements_that_keep_them) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Group<Branch> group(pe);
      Array<Friend> friends(pe, 10);
      if (pe.id() == 0) {
        for (int i = 0; i < 10; ++i) friends[i].send<&Friend::meet>(group.proxy(), friends.proxy());
      }
      pe.quiesce();
      if (pe.id() == 0) friends.proxy().broadcast<&Friend::greet>();
      pe.quiesce();
      EXPECT_EQ(group.proxy().reduce<&Branch::sum>(std::plus<>()).get(), 45);
      expect_usage_error([] { Proxy<Branch>().collection(); }, "made without a collection");
      pe.quiesce();
    });
  }
}

// --- calls

class Called : public Element<Called, Index<1>> {
 public:
  int twice(int value) { return 2 * value; }
  void nothing() {}
  int fails(const std::string& why) { throw std::runtime_error(why); }
  /// Calls the next element, and so on.
  Task<int> sum_from_here(int left) {
    const int mine = index()[0];
    if (left == 0) co_return mine;
    const int rest = co_await all()[(mine + 1) % int(all().size())].rpc<&Called::sum_from_here>(left - 1);
    co_return mine + rest;
  }
  Task<> fails_later(int value) {
    co_await all()[0].rpc<&Called::twice>(value);
    throw std::runtime_error("later");
  }
  void go(std::size_t pe) { migrate_to(pe); }
  template <class A>
  void serialize(A&) {}
};

template <class F>
void expect_remote_error(F f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "no RemoteError says: " << part;
  } catch (const RemoteError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Calls, give_results_of_methods_and_coroutines_and_what_they_throw_also_of_elements_that_move) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Called> called(pe, 6, {.placement = cyclic()});
      for (std::size_t round = 0; round < 3; ++round) {
        for (int i = 0; i < 6; ++i) {
          if (round != 0) called[i].send<&Called::go>((round * 5 + std::size_t(i)) % pe.size());
          EXPECT_EQ(called[i].rpc<&Called::twice>(i).get(), 2 * i);
        }
        called[2].rpc<&Called::nothing>().get();
        EXPECT_EQ(called[4].rpc<&Called::sum_from_here>(3).get(), 4 + 5 + 0 + 1);
        expect_remote_error([&] { called[3].rpc<&Called::fails>("why not").get(); }, "why not");
        expect_remote_error([&] { called[3].rpc<&Called::fails_later>(1).get(); }, "later");
      }
      pe.quiesce();
    });
  }
}

// --- the main program visits elements

class Restless : public Element<Restless, Index<1>> {
 public:
  Restless() = default;
  /// Sends to the first element and asks to move, while the collection is not complete.
  explicit Restless(int) {
    all()[0].send<&Restless::tell>(1);
    migrate_to((pe().id() + 1) % pe().size());
  }
  void tell(int value) { told_ += value; }
  void hear() { ++heard_; }
  void leave_and_send(int messages) {
    migrate_to((pe().id() + 1) % pe().size());
    for (int i = 0; i < messages; ++i) all()[i % int(all().size())].send<&Restless::tell>(1);
    left_ = pe().id();  // the move happens after the method
  }
  void arrived() { ++moves_; }
  int told_ = 0, heard_ = 0, moves_ = 0;
  std::size_t left_ = 0;
  template <class A>
  void serialize(A& archive) {
    archive(told_, heard_, moves_, left_);
  }
};

TEST(Collections, elements_that_send_and_move_while_they_are_made_miss_nothing) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      constexpr int elements = 3000;
      Array<Restless> restless(pe, elements, {}, 1);
      if (pe.id() == 0) restless.broadcast<&Restless::hear>();
      pe.quiesce();
      int told = 0, heard = 0, moves = 0;
      restless.for_each_local([&](Restless& one) { told += one.told_, heard += one.heard_, moves += one.moves_; });
      EXPECT_EQ(allreduce(pe, told, std::plus<>()), elements);
      EXPECT_EQ(allreduce(pe, heard, std::plus<>()), elements);
      EXPECT_EQ(allreduce(pe, moves, std::plus<>()), pe.size() == 1 ? 0 : elements);
    });
  }
}

TEST(Collections, elements_stay_while_the_main_program_goes_through_them) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      constexpr int elements = 64, messages = 500;
      Array<Restless> restless(pe, elements);
      int visited = 0;
      restless.for_each_local([&](Restless& one) {
        if (one.moves_ != 0) return;
        one.leave_and_send(messages);
        ++visited;
        pe.progress();
        EXPECT_EQ(one.index(), restless.find_local(one.index())->index());
      });
      pe.quiesce();
      EXPECT_EQ(allreduce(pe, visited, std::plus<>()), elements);
      int told = 0, moves = 0;
      restless.for_each_local([&](Restless& one) { told += one.told_, moves += one.moves_; });
      EXPECT_EQ(allreduce(pe, told, std::plus<>()), elements * messages);
      EXPECT_EQ(allreduce(pe, moves, std::plus<>()), pe.size() == 1 ? 0 : elements);
    });
  }
}

}  // namespace
}  // namespace headway
