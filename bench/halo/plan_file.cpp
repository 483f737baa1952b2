// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <halo/lists.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <sstream>

namespace headway::bench {
namespace {

constexpr std::uint64_t plan_pes_max = 4096, plan_elements_max = 1 << 24;

/// Reads a plan file line by line. Errors name the line.
class PlanReader {
 public:
  explicit PlanReader(const std::string& path) : path_(&path) {}

  std::vector<HaloRule> read() {
    std::ifstream file(*path_);
    if (!file) throw SettingError(fmt::format("--plan: '{}' cannot be read", *path_));
    for (std::string line; std::getline(file, line);) {
      ++line_;
      line.resize(std::min(line.find('#'), line.size()));
      std::ranges::replace(line, ':', ' ');
      std::istringstream words(line);
      std::string statement;
      if (words >> statement) read_statement(statement, words);
    }
    if (rules_.empty()) throw SettingError(fmt::format("--plan: '{}' has no line 'pes N'", *path_));
    for (std::size_t pe = 0; pe < rules_.size(); ++pe) {
      if (rules_[pe].owned == 0) rules_[pe].owned = used_[pe];
      if (rules_[pe].owned < used_[pe]) {
        throw SettingError(fmt::format("--plan: '{}' sends element {} of PE {}, which owns {}", *path_, used_[pe] - 1,
                                       pe, base::counted(rules_[pe].owned, "element")));
      }
    }
    return std::move(rules_);
  }

 private:
  std::string what() const { return fmt::format("--plan: line {} of {}", line_, *path_); }

  std::uint64_t number(std::istringstream& words, std::uint64_t min, std::uint64_t max) const {
    std::string word;
    words >> word;
    return parse_count(what(), word, min, max);
  }

  void read_statement(const std::string& statement, std::istringstream& words) {
    parse_choice(what(), statement, std::vector<std::string>{"pes", "owned", "send"});
    if ((statement == "pes") != rules_.empty())
      throw SettingError(what() + ": 'pes N' is the first statement, and appears once");
    if (statement == "pes") {
      rules_.resize(number(words, 1, plan_pes_max));
      used_.resize(rules_.size());
      return;
    }
    const std::size_t pe = number(words, 0, rules_.size() - 1);
    if (statement == "owned") {
      rules_[pe].owned = number(words, 1, plan_elements_max);
      return;
    }
    std::vector<std::uint64_t>& indices = rules_[number(words, 0, rules_.size() - 1)].needs[pe];
    for (std::string word; words >> word;) {
      const std::size_t dash = std::min(word.find('-'), word.size());
      const std::uint64_t first = parse_count(what(), word.substr(0, dash), 0, plan_elements_max - 1);
      const std::uint64_t last =
          dash == word.size() ? first : parse_count(what(), word.substr(dash + 1), first, plan_elements_max - 1);
      for (std::uint64_t i = first; i <= last; ++i) indices.push_back(i);
      used_[pe] = std::max(used_[pe], last + 1);
    }
  }

  const std::string* path_;
  std::size_t line_ = 0;
  std::vector<HaloRule> rules_;
  std::vector<std::uint64_t> used_;  // one more than the largest index, by PE
};

}  // namespace

std::vector<HaloRule> read_halo_plan(const std::string& path, std::size_t pes) {
  std::vector<HaloRule> rules = PlanReader(path).read();
  if (rules.size() == pes) return rules;
  throw SettingError(fmt::format("--plan: '{}' is a plan for {}; this run has {}", path,
                                 base::counted(rules.size(), "PE"), base::counted(pes, "PE")));
}

}  // namespace headway::bench
