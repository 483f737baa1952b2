// SPDX-License-Identifier: BSD-3-Clause
/// A PE's part of the image: tiles of 16 x 16 pixels, dealt out along diagonals.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <span>
#include <utility>
#include <vector>

#include "vector.hpp"

namespace headway::p_ray {

inline constexpr std::size_t tile_side = 16;

/// A rectangle of pixels.
struct Tile {
  std::size_t x = 0, y = 0, width = 0, height = 0;
  std::size_t pixels() const { return width * height; }
};

class Tiles {
 public:
  Tiles(std::size_t width, std::size_t height)
      : width_(width), height_(height), columns_((width + tile_side - 1) / tile_side) {}

  std::size_t count() const { return columns_ * ((height_ + tile_side - 1) / tile_side); }
  std::size_t owner(std::size_t tile, std::size_t pes) const { return (tile % columns_ + tile / columns_) % pes; }
  /// Smaller at the right and at the bottom.
  Tile operator[](std::size_t tile) const {
    const std::size_t x = tile % columns_ * tile_side, y = tile / columns_ * tile_side;
    return {x, y, std::min(tile_side, width_ - x), std::min(tile_side, height_ - y)};
  }
  std::size_t width() const { return width_; }

 private:
  std::size_t width_, height_, columns_;
};

/// Adds up, in any order, to a checksum of an image.
inline std::uint64_t checksum_of(std::size_t pixel, const Colour& colour) {
  std::uint64_t mixed = Random(pixel).next();
  for (const double part : {colour.x, colour.y, colour.z}) {
    mixed = Random(mixed ^ std::bit_cast<std::uint64_t>(part)).next();
  }
  return mixed;
}
inline std::uint64_t checksum_of(std::size_t pixel, std::span<const std::uint8_t> rgb) {
  return Random(pixel << 24 | std::size_t(rgb[0]) << 16 | std::size_t(rgb[1]) << 8 | rgb[2]).next();
}

/// The pixels of a PE, tile by tile, in three bytes each; the colours of some of them in full.
class Picture {
 public:
  struct Place {
    std::size_t pixel = 0;  // of the image
    std::size_t index = 0;  // within the part
  };
  struct Sample {
    std::size_t pixel;
    Colour colour;
  };

  /// Keeps the colours of the pixels of `sample`, which is sorted.
  Picture(std::size_t width, std::size_t height, std::size_t id, std::size_t pes, std::vector<std::size_t> sample)
      : tiles_(width, height), sample_(std::move(sample)) {
    std::size_t pixels = 0;
    for (std::size_t tile = 0; tile < tiles_.count(); ++tile) {
      if (tiles_.owner(tile, pes) != id) continue;
      own_.push_back(tile);
      pixels += tiles_[tile].pixels();
    }
    rgb_.resize(3 * pixels);
  }

  /// Gives each of the part's pixels once; false at the end.
  bool next(Place& place) {
    if (tile_ == own_.size()) return false;
    const Tile tile = tiles_[own_[tile_]];
    place = {(tile.y + within_ / tile.width) * tiles_.width() + tile.x + within_ % tile.width, index_++};
    if (++within_ == tile.pixels()) {
      ++tile_;
      within_ = 0;
    }
    return true;
  }

  void set(const Place& place, const Colour& colour) {
    const auto byte = [](double part) { return std::uint8_t(std::lround(std::clamp(part, 0.0, 1.0) * 255)); };
    std::uint8_t* const rgb = &rgb_[3 * place.index];
    rgb[0] = byte(colour.x), rgb[1] = byte(colour.y), rgb[2] = byte(colour.z);
    checksum_ += checksum_of(place.pixel, colour);
    image_checksum_ += checksum_of(place.pixel, std::span(rgb, 3));
    if (std::ranges::binary_search(sample_, place.pixel)) samples_.push_back({place.pixel, colour});
  }

  /// Calls f(tile, bytes) for each tile of the part.
  template <class F>
  void for_each_tile(F f) const {
    std::span<const std::uint8_t> rest = rgb_;
    for (const std::size_t tile : own_) {
      const std::size_t bytes = 3 * tiles_[tile].pixels();
      f(tile, rest.first(bytes));
      rest = rest.subspan(bytes);
    }
  }

  /// Of the full colours, and of the bytes, that were set.
  std::uint64_t checksum() const { return checksum_; }
  std::uint64_t image_checksum() const { return image_checksum_; }
  std::vector<Sample>& samples() { return samples_; }

 private:
  Tiles tiles_;
  std::vector<std::size_t> own_;  // tiles
  std::vector<std::uint8_t> rgb_;
  std::size_t tile_ = 0, within_ = 0, index_ = 0;  // of next(): within own_, within the tile, within the part
  std::vector<std::size_t> sample_;
  std::vector<Sample> samples_;
  std::uint64_t checksum_ = 0, image_checksum_ = 0;
};

/// A whole image, put together from tiles.
class Image {
 public:
  Image(std::size_t width, std::size_t height) : tiles_(width, height), rgb_(3 * width * height) {}

  void set(std::size_t tile, std::span<const std::uint8_t> bytes) {
    const Tile at = tiles_[tile];
    for (std::size_t y = 0; y < at.height; ++y) {
      std::ranges::copy(bytes.subspan(3 * y * at.width, 3 * at.width),
                        rgb_.begin() + std::ptrdiff_t(3 * ((at.y + y) * tiles_.width() + at.x)));
    }
  }
  std::uint64_t checksum() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < rgb_.size(); i += 3) sum += checksum_of(i / 3, std::span(rgb_).subspan(i, 3));
    return sum;
  }
  std::span<std::uint8_t> rgb() { return rgb_; }

 private:
  Tiles tiles_;
  std::vector<std::uint8_t> rgb_;
};

}  // namespace headway::p_ray
