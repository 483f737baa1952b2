// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "cache.hpp"
#include "picture.hpp"
#include "png.hpp"
#include "serial.hpp"
#include "trace.hpp"

namespace headway::p_ray {
namespace {

bool is_same(const Colour& a, const Colour& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

TEST(PRay, scenes_have_the_published_numbers_of_objects) {
  const std::array<std::size_t, 4> spheres = {10, 91, 820, 7381};
  for (std::size_t level = 1; level <= 4; ++level) {
    const Objects objects = make_scene("balls" + std::to_string(level), 0, 1);
    EXPECT_EQ(std::ranges::count(objects, Shape::sphere, &Object::shape), spheres[level - 1]);
    EXPECT_EQ(objects.size(), spheres[level - 1] + 2);
  }
  const Objects objects = make_scene("random", 16384, 1);
  EXPECT_EQ(objects.size(), 16384u);
  EXPECT_EQ(std::ranges::count(objects, Shape::sphere, &Object::shape), 8191);
}

TEST(PRay, smaller_balls_touch_the_ball_below_and_no_other) {
  const Objects objects = make_scene("balls1", 0, 1);
  for (std::size_t i = 3; i < objects.size(); ++i) {
    const Object &small = objects[i], &large = objects[2];
    EXPECT_NEAR(length(small.points[0] - large.points[0]), small.radius + large.radius, 1e-12);
    EXPECT_NEAR(small.radius, large.radius / 3, 1e-12);
    for (std::size_t k = 3; k < i; ++k) {
      EXPECT_GE(length(small.points[0] - objects[k].points[0]), 2 * small.radius - 1e-12) << i << " " << k;
    }
  }
}

TEST(PRay, a_ray_hits_a_sphere_where_geometry_says) {
  const Object sphere = make_sphere({0, 0, 5}, 2, {}, 0);
  EXPECT_DOUBLE_EQ(hit(sphere, {{0, 0, 0}, {0, 0, 1}}), 3);
  EXPECT_DOUBLE_EQ(hit(sphere, {{0, 0, 5}, {0, 0, 1}}), 2);  // from within
  EXPECT_DOUBLE_EQ(hit(sphere, {{0, 0, 3}, {0, 0, 1}}), 4);  // from its surface: the other side
  EXPECT_EQ(hit(sphere, {{0, 0, 8}, {0, 0, 1}}), no_hit);
  EXPECT_EQ(hit(sphere, {{2.001, 0, 0}, {0, 0, 1}}), no_hit);
  EXPECT_DOUBLE_EQ(hit(sphere, {{2, 0, 0}, {0, 0, 1}}), 5);  // touches
}

TEST(PRay, a_ray_hits_a_triangle_within_its_edges) {
  const Object triangle = make_triangle({0, 0, 4}, {1, 0, 4}, {0, 1, 4}, {}, 0);
  EXPECT_DOUBLE_EQ(hit(triangle, {{0.25, 0.25, 0}, {0, 0, 1}}), 4);
  EXPECT_DOUBLE_EQ(hit(triangle, {{0.25, 0.25, 9}, {0, 0, -1}}), 5);
  EXPECT_DOUBLE_EQ(hit(triangle, {{0, 0, 0}, {0, 0, 1}}), 4);  // a corner
  EXPECT_EQ(hit(triangle, {{0.51, 0.51, 0}, {0, 0, 1}}), no_hit);
  EXPECT_EQ(hit(triangle, {{-0.01, 0.5, 0}, {0, 0, 1}}), no_hit);
  EXPECT_EQ(hit(triangle, {{0.5, -0.01, 0}, {0, 0, 1}}), no_hit);
  EXPECT_EQ(hit(triangle, {{-1, 0.2, 4}, {1, 0, 0}}), no_hit);  // along its plane
}

/// Traces pixels through the tree. Every `missing`th time that an object is wanted it is not there.
class Tracer {
 public:
  Tracer(Objects objects, unsigned bounces, unsigned missing)
      : serial_(objects), objects_(std::move(objects)), tree_(objects_), missing_(missing) {
    setting_.bounces = bounces;
  }
  Colour traced(const Ray& ray) {
    const World world{setting_, tree_};
    Path path;
    path.begin(world, ray, counts_);
    std::uint64_t wanted = 0;
    const auto find = [&](std::uint32_t i) -> const Object* {
      return missing_ != 0 && ++wanted % missing_ == 0 ? nullptr : &objects_[i];
    };
    while (!path.go_on(world, find, counts_)) ++stops_;
    return path.colour();
  }
  Colour expected(const Ray& ray) const { return colour_of(serial_, setting_, ray); }
  const RayCounts& counts() const { return counts_; }
  std::uint64_t stops() const { return stops_; }
  const Tree& tree() const { return tree_; }

 private:
  Objects serial_, objects_;
  Tree tree_;
  Setting setting_;
  unsigned missing_;
  RayCounts counts_;
  std::uint64_t stops_ = 0;
};

TEST(PRay, the_tree_finds_what_a_test_of_all_objects_finds) {
  const Camera camera = camera_of(37, 23);
  for (const auto& [scene, count] : std::map<std::string, std::size_t>{{"balls1", 0}, {"balls3", 0}, {"random", 700}}) {
    for (const unsigned missing : {0, 2, 7}) {
      Tracer tracer(make_scene(scene, count, 5), 3, missing);
      for (std::size_t pixel = 0; pixel < camera.pixels(); pixel += missing == 0 ? 1 : 3) {
        ASSERT_TRUE(is_same(tracer.traced(camera.ray(pixel)), tracer.expected(camera.ray(pixel))))
            << scene << ", pixel " << pixel << ", missing " << missing;
      }
      EXPECT_EQ(tracer.stops() > 0, missing != 0);
    }
  }
}

TEST(PRay, the_tree_saves_most_tests) {
  const Camera camera = camera_of(40, 40);
  const Objects objects = make_scene("random", 2000, 1);
  Tracer tracer(objects, 2, 0);
  for (std::size_t pixel = 0; pixel < camera.pixels(); ++pixel) tracer.traced(camera.ray(pixel));
  EXPECT_LT(tracer.counts().tests, tracer.counts().rays * objects.size() / 20);
}

TEST(PRay, of_two_objects_at_one_place_the_lower_number_counts) {
  Objects objects;
  for (const double red : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7})
    objects.push_back(make_sphere({0, 0, 0}, 0.5, {red, 0, 0}, 0));
  for (std::uint32_t first = 0; first < objects.size(); ++first) {
    for (std::uint32_t i = 0; i < objects.size(); ++i) objects[i].number = (i + first) % std::uint32_t(objects.size());
    Tracer tracer(objects, 0, 3);
    const Ray ray = camera_of(1, 1).ray(0);
    const Colour colour = tracer.traced(ray);
    EXPECT_TRUE(is_same(colour, tracer.expected(ray)));
    Tracer alone({objects[(objects.size() - first) % objects.size()]}, 0, 0);
    EXPECT_TRUE(is_same(colour, alone.traced(ray))) << first;
  }
}

TEST(PRay, leaves_name_each_object_once) {
  for (const std::size_t count : {2, 3, 4, 5, 9, 100, 1023}) {
    Objects objects = make_scene("random", count, 1);
    const Tree tree(objects);
    std::vector<std::uint32_t> named(count);
    for (const Node& node : tree.nodes()) {
      for (std::uint32_t i = 0; i < node.count; ++i) ++named[node.at + i];
    }
    EXPECT_EQ(named, std::vector<std::uint32_t>(count, 1));
    std::set<std::uint32_t> all;
    for (const Object& object : objects) all.insert(object.number);
    EXPECT_EQ(all.size(), count);
  }
}

TEST(PRay, the_cache_is_bounded_and_replaces_what_was_used_longest_ago) {
  Cache cache(3);
  EXPECT_EQ(cache.entries(), 4u);  // one set
  for (std::uint32_t object = 0; object < 4; ++object) {
    EXPECT_EQ(cache.find(object), Cache::none);
    const std::uint32_t entry = cache.claim(object);
    EXPECT_FALSE(cache.is_ready(entry));
    cache.set_ready(entry);
  }
  EXPECT_NE(cache.find(0), Cache::none);
  cache.claim(7);  // in the place of 1
  EXPECT_EQ(cache.find(1), Cache::none);
  for (const std::uint32_t object : {0, 2, 3, 7}) EXPECT_NE(cache.find(object), Cache::none);
}

TEST(PRay, pinned_entries_stay) {
  Cache cache(4);
  for (std::uint32_t object = 0; object < 4; ++object) cache.pin(cache.claim(object));
  EXPECT_EQ(cache.claim(9), Cache::none);
  cache.pin(cache.find(2));
  cache.unpin(cache.find(2));
  EXPECT_EQ(cache.claim(9), Cache::none);  // another ray waits for it still
  const std::uint32_t entry = cache.find(2);
  cache.unpin(entry);
  EXPECT_EQ(cache.claim(9), entry);
}

TEST(PRay, tiles_cover_each_pixel_once) {
  for (const auto& [width, height] : std::map<std::size_t, std::size_t>{{1, 1}, {16, 16}, {17, 50}, {100, 33}}) {
    for (const std::size_t pes : {1, 2, 3, 8, 16}) {
      std::vector<int> times(width * height);
      Image image(width, height);
      std::uint64_t checksum = 0;
      for (std::size_t id = 0; id < pes; ++id) {
        Picture picture(width, height, id, pes, {});
        for (Picture::Place place; picture.next(place);) {
          ++times[place.pixel];
          picture.set(place, {double(place.pixel % 256) / 255, double(place.pixel / 256) / 255, 1.5});
        }
        checksum += picture.image_checksum();
        picture.for_each_tile([&](std::size_t tile, std::span<const std::uint8_t> bytes) { image.set(tile, bytes); });
      }
      EXPECT_EQ(times, std::vector<int>(width * height, 1));
      EXPECT_EQ(image.checksum(), checksum);
      for (std::size_t pixel = 0; pixel < width * height; ++pixel) {
        const auto rgb = image.rgb().subspan(3 * pixel, 3);
        EXPECT_EQ(rgb[0] + 256 * rgb[1], pixel);
        EXPECT_EQ(rgb[2], 255);
      }
    }
  }
}

TEST(PRay, checksums_are_those_of_the_standards) {
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(crc32("IEND"), 0xae426082u);
  EXPECT_EQ(adler32("Wikipedia"), 0x11e60398u);
}

/// Reads back what PngWriter wrote: the pixels, or "" where a length or a checksum is wrong.
class PngReader {
 public:
  explicit PngReader(std::string_view file) : rest_(file) {}

  std::string rgb(std::size_t width, std::size_t height) {
    if (take(8) != "\x89PNG\r\n\x1a\n") return "";
    const std::string_view header = chunk("IHDR");
    if (header.size() != 13 || number(header) != width || number(header.substr(4)) != height) return "";
    if (header.substr(8) != std::string_view("\x08\x02\0\0\0", 5)) return "";
    const std::string rows = inflated(chunk("IDAT"));
    if (!chunk("IEND").empty() || !rest_.empty() || !is_right_ || rows.size() != height * (3 * width + 1)) return "";
    std::string rgb;
    for (std::size_t y = 0; y < height; ++y) {
      if (rows[y * (3 * width + 1)] != 0) return "";
      rgb += rows.substr(y * (3 * width + 1) + 1, 3 * width);
    }
    return rgb;
  }

 private:
  static std::uint32_t number(std::string_view bytes) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < 4; ++i) number = number << 8 | std::uint8_t(bytes[i]);
    return number;
  }
  std::string_view take(std::size_t bytes) {
    is_right_ &= bytes <= rest_.size();
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view chunk(std::string_view type) {
    const std::uint32_t bytes = number(take(4));
    const std::string_view checked = take(4 + bytes);
    is_right_ &= checked.starts_with(type) && number(take(4)) == crc32(checked);
    return checked.substr(4);
  }
  std::string inflated(std::string_view stream) {
    is_right_ &= stream.size() > 11 && (number(stream) >> 16) % 31 == 0 && (stream[0] & 15) == 8;
    std::string bytes;
    std::size_t at = 2;
    for (bool last = false; is_right_ && !last;) {
      last = stream[at] == 1;
      is_right_ &= stream[at] == 0 || last;
      const std::size_t length = std::uint8_t(stream[at + 1]) | std::size_t(std::uint8_t(stream[at + 2])) << 8;
      const std::size_t inverse = std::uint8_t(stream[at + 3]) | std::size_t(std::uint8_t(stream[at + 4])) << 8;
      is_right_ &= (length ^ inverse) == 0xffff && at + 5 + length + 4 <= stream.size();
      if (is_right_) bytes += stream.substr(at + 5, length);
      at += 5 + length;
    }
    is_right_ &= is_right_ && at + 4 == stream.size() && number(stream.substr(at)) == adler32(bytes);
    return bytes;
  }

  std::string_view rest_;
  bool is_right_ = true;
};

TEST(PRay, a_png_is_read_back_as_it_was) {
  for (const auto& [width, height] :
       std::map<std::size_t, std::size_t>{{1, 1}, {3, 2}, {145, 151}, {200, 111}, {300, 400}}) {
    std::string rgb(3 * width * height, '\0');
    for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = char(Random(i).next());
    const std::string file = PngWriter::png(width, height, rgb);
    EXPECT_TRUE(PngReader(file).rgb(width, height) == rgb) << width << " x " << height;
    for (const std::size_t at : {std::size_t(20), file.size() / 2, file.size() - 20}) {
      std::string wrong = file;
      wrong[at] = char(wrong[at] ^ 4);
      EXPECT_TRUE(PngReader(wrong).rgb(width, height).empty()) << at;
    }
  }
}

}  // namespace
}  // namespace headway::p_ray
