// SPDX-License-Identifier: BSD-3-Clause
/// A ray tracer with its scene in global memory: each PE renders tiles of the image, and fetches the objects of other
/// PEs when a ray needs them (p-ray of the study of 1998). The image is the same to the bit on any number of PEs.
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <headway/headway.hpp>
#include <memory>
#include <options.hpp>
#include <support/scale.hpp>
#include <support/work.hpp>
#include <vector>

#include "png.hpp"
#include "render.hpp"
#include "serial.hpp"

namespace headway::p_ray {
namespace {

const std::array<std::string, 5> scenes = {"random", "balls1", "balls2", "balls3", "balls4"};
const std::array<std::string, 2> ways = {"rays", "blocking"};
const std::array<std::string, 4> spoils = {"none", "pixel", "object", "image"};

struct Arguments {
  std::string scene = "random", way = "rays", spoil = "none", image;
  double scale = 0.5, work_us = 0;
  std::size_t width = 0, height = 0, objects = 0;  // 0: as `scale` says
  std::size_t cache = 1024, in_flight = 256, checked = 200;
  unsigned bounces = 2;
  std::uint64_t seed = 1;
  GlobalOptions memory;
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("A ray tracer on Headway's global memory; verified.", "headway-p-ray");
  apps::add_scale(app, "1 M pixels and 16384 objects", arguments.scale);
  apps::add_work(app, "test of a ray against an object", arguments.work_us);
  app.add_choice("--scene", "NAME", "random, or balls1 to balls4, of 12, 93, 822 or 7383 objects [random]",
                 arguments.scene, scenes);
  app.add_count("--objects", "N", "of the scene random [by --scale]", arguments.objects, 2, 1 << 22);
  app.add_count("--width", "N", "pixels of a row [by --scale]", arguments.width, 1, 1 << 15);
  app.add_count("--height", "N", "rows of pixels [by --scale]", arguments.height, 1, 1 << 15);
  app.add_count("--bounces", "N", "mirrored rays of a pixel at most [2]", arguments.bounces, 0, 64);
  app.add_choice("--way", "NAME",
                 "rays: many pixels at once, and those with missing objects wait together; blocking: one pixel, and a "
                 "read that waits for each missing object [rays]",
                 arguments.way, ways);
  app.add_count("--in-flight", "N", "pixels at once, with --way rays [256]", arguments.in_flight, 1, 1 << 14);
  app.add_count("--cache", "N", "objects of other PEs that a PE keeps, rounded up to fours [1024]", arguments.cache, 1,
                1 << 22);
  app.add_count("--checked", "N", "pixels that are traced once more without tree and cache [200]", arguments.checked, 0,
                1 << 20);
  app.add_text("--image", "FILE", "write the image to FILE, as PNG", arguments.image);
  app.add_choice("--spoil", "NAME", "change a pixel, PE 0's objects, or the image, to test the check [none]",
                 arguments.spoil, spoils);
  bench::add_global_options(app, arguments.memory);
  app.add_json(arguments.json);
  const auto complete = [&] {
    if (arguments.scene != "random" && arguments.objects != 0) {
      throw SettingError(fmt::format("--objects: '{}' is not allowed; allowed is none with --scene {}",
                                     arguments.objects, arguments.scene));
    }
    const std::size_t side = apps::scaled(std::sqrt(arguments.scale), 1024);
    if (arguments.width == 0) arguments.width = side;
    if (arguments.height == 0) arguments.height = side;
    if (arguments.objects == 0) arguments.objects = apps::scaled(arguments.scale, 16384, 2);
    arguments.seed = base::Settings::from_environment().seed;
  };
  return app.parse(argc, argv, complete);
}

/// `count` pixels of the image, sorted; fewer where one was drawn twice.
std::vector<std::size_t> draw_pixels(std::size_t count, std::size_t pixels, std::uint64_t seed) {
  Random random(~seed);
  std::vector<std::size_t> drawn(count);
  for (std::size_t& pixel : drawn) pixel = random.below(pixels);
  std::ranges::sort(drawn);
  drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  return drawn;
}

bool is_same(const Colour& a, const Colour& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

/// How many of the samples differ, in any bit, from what one program finds alone.
std::uint64_t count_errors(const Objects& objects, const Setting& setting, const Camera& camera,
                           const std::vector<Picture::Sample>& samples) {
  std::uint64_t errors = 0;
  for (const auto& [pixel, colour] : samples) {
    errors += !is_same(colour_of(objects, setting, camera.ray(pixel)), colour);
  }
  return errors;
}

/// The most memory that this process has had so far.
std::uint64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::uint64_t(usage.ru_maxrss) * 1024;
}

/// One PE's run.
class Run {
 public:
  /// Collective.
  Run(Pe& pe, const Arguments& arguments)
      : pe_(pe),
        arguments_(arguments),
        camera_(camera_of(arguments.width, arguments.height)),
        scene_(make_scene(arguments.scene, arguments.objects, arguments.seed)),
        tree_(scene_),
        memory_(pe, arguments.memory),
        objects_(pe, memory_, scene_, arguments.cache),
        picture_(arguments.width, arguments.height, pe.id(), pe.size(),
                 draw_pixels(arguments.checked, camera_.pixels(), arguments.seed)),
        tiles_(pe, arguments.memory.aggregation) {
    setting_.bounces = arguments.bounces;
    objects_in_all_ = scene_.size();
    scene_ = {};
    if (pe.id() == 0) image_.emplace(arguments.width, arguments.height);
    tiles_.on([this](std::uint64_t tile, std::span<const std::uint8_t> bytes) { image_->set(tile, bytes); });
    if (arguments.spoil == "object" && pe.id() == 0) {
      for (Object& object : objects_.own()) object.colour = object.colour * 0.5;
    }
  }

  int measure(std::ofstream* file);

 private:
  using Counts = std::array<std::uint64_t, 8>;

  void render() {
    const World world{setting_, tree_};
    const apps::Work work(pe_, arguments_.work_us);
    if (arguments_.way == "blocking") {
      render_blocking(pe_, world, camera_, objects_, picture_, rays_, work);
    } else {
      render_in_flight(pe_, world, camera_, objects_, picture_, rays_, arguments_.in_flight, work);
    }
    picture_.for_each_tile([&](std::size_t tile, std::span<const std::uint8_t> bytes) {
      if (image_) return image_->set(tile, bytes);
      tiles_.send(0, tile, bytes);
      ++tiles_sent_;
    });
  }
  /// Makes the errors that --spoil asks for.
  void spoil() {
    if (arguments_.spoil == "pixel" && !picture_.samples().empty()) {
      double& red = picture_.samples().front().colour.x;
      red = std::nextafter(red, 2.0);
    }
    if (arguments_.spoil == "image" && image_) image_->rgb().back() ^= 1;
  }
  bench::Json record(double seconds, const bench::FrameCounts& frames, const Counts& sums, std::uint64_t errors);

  Pe& pe_;
  const Arguments& arguments_;
  Camera camera_;
  Setting setting_;
  Objects scene_;
  Tree tree_;
  std::size_t objects_in_all_ = 0;
  GlobalMemory memory_;
  SharedObjects objects_;
  Picture picture_;
  std::optional<Image> image_;  // on PE 0
  Aggregator<std::uint64_t, std::span<const std::uint8_t>> tiles_;
  std::uint64_t tiles_sent_ = 0;
  RayCounts rays_;
};

int Run::measure(std::ofstream* file) {
  pe_.quiesce();
  const auto before = memory_.statistics();
  const auto tiles_before = tiles_.statistics();
  const std::int64_t begin = pe_.engine().now();
  render();
  pe_.quiesce();
  const double seconds = bench::max_over_pes(pe_, double(pe_.engine().now() - begin) * 1e-9);
  const auto after = memory_.statistics();
  const bench::FrameCounts frames = bench::sum_over_pes(
      pe_, bench::joined(bench::growth(before, after), bench::growth(tiles_before, tiles_.statistics())));

  spoil();
  const ObjectCounts& uses = objects_.counts();
  const Objects all = make_scene(arguments_.scene, arguments_.objects, arguments_.seed);
  const std::uint64_t wrong = count_errors(all, setting_, camera_, picture_.samples());
  const std::uint64_t miscounted = rays_.tests != uses.own + uses.from_cache;
  const Counts own = {rays_.rays,  rays_.tests, uses.own,    uses.from_cache,
                      uses.misses, uses.joined, tiles_sent_, picture_.samples().size()};
  const Counts sums = allreduce(pe_, own, [](Counts a, const Counts& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  });
  const std::uint64_t pixels_wrong = bench::sum_over_pes(pe_, wrong);
  const std::uint64_t pes_miscounted = bench::sum_over_pes(pe_, miscounted);
  const std::uint64_t checksum = bench::sum_over_pes(pe_, picture_.checksum());
  const std::uint64_t image_checksum = bench::sum_over_pes(pe_, picture_.image_checksum());
  const auto peak = std::uint64_t(bench::max_over_pes(pe_, double(peak_memory_bytes())));
  std::uint64_t errors = pixels_wrong + pes_miscounted;
  if (image_) {
    const bool image_wrong = image_->checksum() != image_checksum;
    errors += image_wrong;
    const auto say = [](const std::string& what) { fmt::print(stderr, "headway-p-ray: {}\n", what); };
    if (pixels_wrong > 0) say(fmt::format("{} of {} checked pixels differ from a serial trace", pixels_wrong, sums[7]));
    if (pes_miscounted > 0) say(fmt::format("{} PEs used other objects than rays were tested against", pes_miscounted));
    if (image_wrong) say("the gathered image is not the one that was rendered");
    bench::Json result = record(seconds, frames, sums, errors);
    result["checksum"] = fmt::format("{:016x}", checksum);
    result["image_checksum"] = fmt::format("{:016x}", image_checksum);
    result["peak_memory_bytes"] = peak;
    bench::report(result, arguments_.json);
    if (file != nullptr) {
      const auto rgb = image_->rgb();
      const std::string png =
          PngWriter::png(arguments_.width, arguments_.height, {reinterpret_cast<const char*>(rgb.data()), rgb.size()});
      if (!file->write(png.data(), std::streamsize(png.size())).flush()) {
        say(fmt::format("--image: '{}' cannot be written", arguments_.image));
        ++errors;
      }
    }
  }
  return broadcast(pe_, errors, 0) == 0 ? 0 : 1;
}

bench::Json Run::record(double seconds, const bench::FrameCounts& frames, const Counts& sums, std::uint64_t errors) {
  const auto& [rays, tests, own, from_cache, misses, joined, tiles, checked] = sums;
  const AggregatorOptions& effective = memory_.aggregation();
  const std::uint64_t messages = 2 * misses + tiles;  // a request and an answer for each object
  bench::Json record =
      bench::make_record(bench::make_case(pe_, "p-ray", effective, sizeof(Object), messages), seconds, errors == 0);
  bench::add_frames(record, frames);
  record["scene"] = arguments_.scene;
  record["objects"] = objects_in_all_;
  record["width"] = arguments_.width;
  record["height"] = arguments_.height;
  record["pixels"] = camera_.pixels();
  record["rays"] = rays;
  record["tests"] = tests;
  record["own"] = own;
  record["hits"] = from_cache - misses - joined;
  record["joined"] = joined;
  record["misses"] = misses;
  record["tiles"] = tiles;
  record["reads_share"] = messages == 0 ? 0 : double(misses) / double(messages);
  record["bulk_share"] = messages == 0 ? 0 : double(misses + tiles) / double(messages);
  record["cache_bytes"] = objects_.cache().bytes();
  record["tree_bytes"] = tree_.nodes().size_bytes();
  record["checked"] = checked;
  record["errors"] = errors;
  record["options"] = bench::options_record(effective);
  record["options"]["way"] = arguments_.way;
  record["options"]["mapped"] = arguments_.memory.mapped;
  record["options"]["bounces"] = arguments_.bounces;
  record["options"]["cache"] = objects_.cache().entries();
  record["options"]["in_flight"] = arguments_.way == "rays" ? arguments_.in_flight : 1;
  return record;
}

int run_pe(Pe& pe, const Arguments& arguments) {
  std::ofstream file;
  const bool writes = pe.id() == 0 && !arguments.image.empty();
  if (writes) {
    file.open(arguments.image, std::ios::binary);
    if (!file) {
      throw SettingError(
          fmt::format("--image: '{}' cannot be opened; allowed is a file that can be written", arguments.image));
    }
  }
  Run run(pe, arguments);
  return run.measure(writes ? &file : nullptr);
}

}  // namespace
}  // namespace headway::p_ray

int main(int argc, char** argv) {
  using namespace headway::p_ray;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return run_pe(pe, arguments); });
}
