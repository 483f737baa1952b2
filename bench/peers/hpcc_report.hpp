// SPDX-License-Identifier: BSD-3-Clause
/// Reads hpcc's report on MPIRandomAccess from hpccoutf.txt, and makes the input that gives its table the wanted size.
/// Source: HPCC 1.5.0, RandomAccess/MPIRandomAccess.c and src/io.c.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headway::peers {

/// MPIRandomAccess is the first part of hpcc; all others come after this line.
inline constexpr std::string_view hpcc_section_end = "End of MPIRandomAccess section.";

/// Below, no matrix has the size.
inline constexpr unsigned hpcc_log2_min = 4;

struct HpccReport {
  unsigned log2 = 0;
  std::uint64_t updates = 0;  // fewer than 4 a word where it expected to take longer than a minute
  double seconds = 0;
  std::uint64_t errors = 0;
  bool passed = false;  // at most 1 % of the words are wrong
};

/// hpccinf.txt for `ranks` ranks. The table is the largest power of two of words that fit in HPL's matrix of N x N
/// words; of HPL and all that stands below, nothing is run.
inline std::string hpcc_input(unsigned log2, std::size_t ranks) {
  const auto n = std::uint64_t(std::ceil(std::sqrt(1.4 * std::ldexp(1.0, int(log2)))));
  return fmt::format(
      "\n\n\n\n1\n{}\n1\n80\n0\n1\n1\n{}\n16.0\n1\n2\n1\n4\n1\n2\n1\n1\n1\n1\n1\n1\n2\n64\n0\n0\n1\n8\n\n0\n0\n0\n0\n",
      n, ranks);
}

/// The number behind `label` at the start of a line.
template <class Number>
std::optional<Number> number_after(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(fmt::format("\n{}", label));
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + 1 + label.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  Number number{};
  if (std::from_chars(rest.data(), rest.data() + rest.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

/// The report on MPIRandomAccess, or nothing where the output is incomplete.
inline std::optional<HpccReport> read_hpcc(std::string_view output) {
  const std::string_view text = output.substr(0, output.find(hpcc_section_end));
  const auto log2 = number_after<unsigned>(text, "Total Main table size = 2^");
  auto updates = number_after<std::uint64_t>(text, "Number of updates EXECUTED =");
  if (!updates) updates = number_after<std::uint64_t>(text, "Default number of updates (RECOMMENDED) =");
  const auto seconds = number_after<double>(text, "Real time used =");
  const auto errors = number_after<std::uint64_t>(text, "Found ");
  if (text.size() == output.size() || !log2 || !updates || !seconds || !errors) return std::nullopt;
  return HpccReport{*log2, *updates, *seconds, *errors, text.find(" locations (passed).") != std::string_view::npos};
}

}  // namespace headway::peers
