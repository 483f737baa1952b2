// SPDX-License-Identifier: BSD-3-Clause
/// The memory of many elements, and many moves without losses.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <headway/base/random.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/object/object.hpp>
#include <support/run_pes.hpp>

namespace headway {
namespace {

using testing::expect_run;

/// The smallest possible element.
class Bit : public Element<Bit, Index<1>> {
 public:
  void set() { set_ = true; }
  std::uint64_t is_set() const { return set_ ? 1 : 0; }
  template <class A>
  void serialize(A& archive) {
    archive(set_);
  }

 private:
  bool set_ = false;
};

std::uint64_t allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(Scale, a_million_elements_on_8_pes_are_made_told_and_counted) {
  expect_run({8, 1}, [](Pe& pe) {
    constexpr int elements = 1'000'000;
    constexpr std::uint64_t bytes_most = 128;  // of each element, with all state: see the README
    const std::uint64_t before = allocated_bytes();
    Array<Bit> bits(pe, elements);
    const double bytes = double(allreduce(pe, allocated_bytes() - before, std::plus<>())) / elements;
    if (pe.id() == 0) std::printf("%.1f bytes an element\n", bytes);
    EXPECT_LE(bytes, double(bytes_most));
    if (pe.id() == 3) bits.broadcast<&Bit::set>();
    pe.quiesce();
    EXPECT_EQ(bits.reduce<&Bit::is_set>(std::plus<>()).get(), std::uint64_t(elements));
    pe.quiesce();
  });
}

/// Each message makes the element move.
class Nomad : public Element<Nomad, Index<1>> {
 public:
  void take(std::uint64_t id, int left) {
    ++taken_;
    Random random(id);
    migrate_to(random.below(pe().size()));
    if (left > 0) all()[int(random.below(all().size()))].send<&Nomad::take>(random.next(), left - 1);
  }
  void arrived() { ++moves_; }
  std::uint64_t taken() const { return taken_; }
  std::uint64_t moves() const { return moves_; }
  template <class A>
  void serialize(A& archive) {
    archive(taken_, moves_);
  }
  static constexpr auto aggregation = entries(entry<&Nomad::take>{});

 private:
  std::uint64_t taken_ = 0, moves_ = 0;
};

TEST(Scale, no_message_is_lost_or_doubled_in_a_hundred_thousand_moves_under_traffic) {
  for (const testing::Shape shape : {testing::Shape{4, 1}, testing::Shape{5, 5}}) {
    expect_run(shape, [](Pe& pe) {
      constexpr int elements = 300, chains = 250, hops = 200;
      Array<Nomad> nomads(pe, elements);
      for (int i = 0; i < chains; ++i) {
        const std::uint64_t id = pe.id() * chains + std::size_t(i);
        nomads[int(id) % elements].send<&Nomad::take>(id, hops - 1);
      }
      pe.quiesce();
      std::uint64_t taken = 0, moves = 0;
      nomads.for_each_local([&](Nomad& nomad) { taken += nomad.taken(), moves += nomad.moves(); });
      taken = allreduce(pe, taken, std::plus<>());
      moves = allreduce(pe, moves, std::plus<>());
      if (pe.id() == 0) std::printf("%llu moves\n", static_cast<unsigned long long>(moves));
      EXPECT_EQ(taken, std::uint64_t(chains * hops) * pe.size());
      EXPECT_GE(moves, 100'000u);
      EXPECT_EQ(allreduce(pe, nomads.local_size(), std::plus<>()), std::size_t(elements));
    });
  }
}

}  // namespace
}  // namespace headway
