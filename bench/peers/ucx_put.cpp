// SPDX-License-Identifier: BSD-3-Clause
/// headway-peer-ucx-put: headway-put's work between two processes on UCX's puts, as UCX is when told nothing.
#include <fmt/format.h>

#include <array>
#include <headway/base/clock.hpp>
#include <headway/base/counted.hpp>
#include <iostream>
#include <put/work.hpp>
#include <record/command_line.hpp>
#include <record/record.hpp>
#include <span>
#include <string>
#include <vector>

#include "ucx_endpoint.hpp"

namespace headway::peers {
namespace {

const std::array<std::string, 2> ways = {"write", "put"}, memories = {"mapped", "heap"};

struct Arguments {
  unsigned log2 = 16;
  std::uint64_t puts = 0;
  std::string way = "put", memory = "mapped";
  std::string json;  // a file, "-", or empty for a line on standard output

  std::uint64_t puts_or_default() const { return puts != 0 ? puts : 1'000'000; }
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("headway-put's work between two processes on UCX's puts.", "headway-peer-ucx-put");
  app.add_count("--log2", "K", "2^K words that are put to [16]", arguments.log2, 1, 30);
  app.add_count("--puts", "N", "words that are put [10^6]", arguments.puts, 1, 1ull << 40);
  app.add_choice("--way", "NAME", "write (ucp_put and a flush, each), put (many ucp_put, then one flush) [put]",
                 arguments.way, ways);
  app.add_choice("--memory", "NAME", "of who is put to: mapped (that UCX has allocated, which both map), heap [mapped]",
                 arguments.memory, memories);
  app.add_json(arguments.json);
  return app.parse(argc, argv);
}

/// Words that the other process may put to.
class Exposed {
 public:
  Exposed(const UcxEndpoint& ucx, const Line& line, std::size_t words, bool heap) : ucx_(ucx), heap_(heap ? words : 0) {
    ucp_mem_map_params_t params{};
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.address = heap ? heap_.data() : nullptr;
    params.length = words * sizeof(std::uint64_t);
    params.flags = heap ? 0 : UCP_MEM_MAP_ALLOCATE;
    check("ucp_mem_map", ucp_mem_map(ucx.context(), &params, &memory_));
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    check("ucp_mem_query", ucp_mem_query(memory_, &attributes));
    words_ = {static_cast<std::uint64_t*>(attributes.address), words};
    std::fill(words_.begin(), words_.end(), 0);
    void* key = nullptr;
    std::size_t bytes = 0;
    check("ucp_rkey_pack", ucp_rkey_pack(ucx.context(), memory_, &key, &bytes));
    line.put(std::uint64_t(reinterpret_cast<std::uintptr_t>(words_.data())));
    line.put(bytes);
    line.put(key, bytes);
    ucp_rkey_buffer_release(key);
  }
  ~Exposed() { ucp_mem_unmap(ucx_.context(), memory_); }
  Exposed(const Exposed&) = delete;
  Exposed& operator=(const Exposed&) = delete;

  std::span<std::uint64_t> words() const { return words_; }

 private:
  const UcxEndpoint& ucx_;
  std::vector<std::uint64_t> heap_;
  ucp_mem_h memory_ = nullptr;
  std::span<std::uint64_t> words_;
};

/// The other process's words.
class Remote {
 public:
  Remote(UcxEndpoint& ucx, const Line& line) : ucx_(ucx), address_(line.get<std::uint64_t>()) {
    std::vector<std::byte> key(line.get<std::size_t>());
    line.get(key.data(), key.size());
    check("ucp_ep_rkey_unpack", ucp_ep_rkey_unpack(ucx.endpoint(), key.data(), &key_));
  }
  ~Remote() { ucp_rkey_destroy(key_); }
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  /// `from` stays as it is until flush() has returned.
  void put(std::uint64_t place, const std::uint64_t* from) {
    const ucp_request_param_t param{};
    const ucs_status_ptr_t request =
        ucp_put_nbx(ucx_.endpoint(), from, sizeof *from, address_ + place * sizeof *from, key_, &param);
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) check("ucp_put_nbx", UCS_PTR_STATUS(request));
    ucp_request_free(request);  // goes on all the same
  }
  void flush() {
    const ucp_request_param_t param{};
    ucx_.wait(ucp_ep_flush_nbx(ucx_.endpoint(), &param));
  }

 private:
  UcxEndpoint& ucx_;
  std::uint64_t address_;
  ucp_rkey_h key_ = nullptr;
};

/// The seconds that it took.
double put_all(const Line& line, const Arguments& arguments) {
  UcxEndpoint ucx(line, UCP_FEATURE_RMA);
  double seconds = 0;
  {
    Remote remote(ucx, line);
    const bool each = arguments.way == "write";
    for (const bool timed : {false, true}) {
      const std::vector<std::uint64_t> mine = bench::words_to_put(arguments.log2, timed);
      bench::PutPlaces places(arguments.log2);
      const std::uint64_t puts = timed ? arguments.puts_or_default() : bench::warming_puts(arguments.puts_or_default());
      const std::int64_t begin = base::monotonic_ns();
      for (std::uint64_t i = 0; i < puts; ++i) {
        const std::uint64_t place = places.next();
        remote.put(place, &mine[place]);
        if (each) remote.flush();
      }
      remote.flush();
      seconds = double(base::monotonic_ns() - begin) * 1e-9;
    }
    line.put(true);
  }
  line.get<bool>();  // neither closes before both are done
  return seconds;
}

/// Makes progress until all words have arrived. Returns how many of them are wrong.
std::uint64_t be_put_to(const Line& line, const Arguments& arguments) {
  const UcxEndpoint ucx(line, UCP_FEATURE_RMA);
  std::uint64_t errors = 0;
  {
    const Exposed exposed(ucx, line, std::size_t(1) << arguments.log2, arguments.memory == "heap");
    constexpr std::uint32_t looks = 1 << 12;
    for (std::uint32_t look = 1; look % looks != 0 || !line.has_news(); ++look) ucp_worker_progress(ucx.worker());
    line.get<bool>();
    errors = bench::wrong_puts(exposed.words(), arguments.log2, arguments.puts_or_default());
  }
  line.put(true);
  return errors;
}

int run(const Arguments& arguments) {
  double seconds = 0;
  std::uint64_t errors = 0;
  const bool ended_well = run_two(
      "headway-peer-ucx-put",
      [&](const Line& line) {
        seconds = put_all(line, arguments);
        errors = line.get<std::uint64_t>();
      },
      [&](const Line& line) { line.put(be_put_to(line, arguments)); });
  const bench::Case measured{"put", "peer:ucx", "ucx", 2, 2, 1, sizeof(std::uint64_t), arguments.puts_or_default()};
  bench::Json record = bench::make_record(measured, seconds, errors == 0 && ended_well);
  record["options"] = bench::Json::object();
  record["options"]["way"] = arguments.way;
  record["options"]["mapped"] = arguments.memory == "mapped";
  const bool verified = record["verified"];
  if (!arguments.json.empty()) {
    bench::write_json(arguments.json, record);
  } else {
    std::cout << fmt::format("put ucx: {}, {}, {}\n", base::counted(arguments.puts_or_default(), "put"),
                             bench::speed_of(record), verified ? "verified" : "WRONG")
              << std::flush;
  }
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace headway::peers

int main(int argc, char** argv) {
  headway::peers::Arguments arguments;
  if (const auto status = headway::peers::parse(argc, argv, arguments)) return *status;
  try {
    return headway::peers::run(arguments);
  } catch (const std::exception& error) {
    std::cerr << "headway-peer-ucx-put: " << error.what() << '\n';
    return 1;
  }
}
