/// The benchmarks' work on plain MPI, for comparison: `headway-peer-MPI randomaccess|stream [options]` under mpirun.
#include "peer.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <iostream>
#include <message/message.hpp>
#include <randomaccess/table.hpp>
#include <record/command_line.hpp>

namespace headway::peers {

double slowest(double seconds) {
  double most = 0;
  MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

std::uint64_t total(std::uint64_t count) {
  std::uint64_t sum = 0;
  MPI_Allreduce(&count, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

bench::Json make_peer_record(const Arguments& arguments, std::size_t message_bytes, std::uint64_t messages,
                             double seconds, std::uint64_t errors) {
  int pes = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  const bench::Case measured{
      arguments.bench, "peer:" + arguments.mode, HEADWAY_PEER_MPI, std::size_t(pes), std::size_t(pes), 1, message_bytes,
      messages};
  bench::Json record = bench::make_record(measured, seconds, errors == 0);
  record["options"] = bench::Json::object();
  if (arguments.mode == "mpi-alltoallv") record["options"]["buffer_bytes"] = arguments.buffer_bytes;
  return record;
}

namespace {

const std::vector<std::string> benches = {"randomaccess", "stream"};
const std::vector<std::string> modes = {"mpi-direct", "mpi-alltoallv"};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CLI::App app("The benchmarks' work on plain MPI (" HEADWAY_PEER_MPI "); start it under that MPI's mpirun.",
               "headway-peer-" HEADWAY_PEER_MPI);
  app.add_option_function<std::string>(
         "bench", [&](const std::string& t) { arguments.bench = bench::parse_choice("bench", t, benches); },
         "randomaccess or stream")
      ->required();
  const auto add = [&](const char* name, const char* value, const char* help,
                       std::function<void(const std::string&)> store) {
    bench::add_value(app, name, std::move(store), value, help);
  };
  add("--mode", "NAME", "mpi-direct or mpi-alltoallv",
      [&](const std::string& t) { arguments.mode = bench::parse_choice("--mode", t, modes); });
  add("--log2", "K", "randomaccess: 2^K words in all", [&](const std::string& t) {
    arguments.log2 = unsigned(bench::parse_count("--log2", t, 1, randomaccess::log2_max));
  });
  add("--updates-per-word", "N", "randomaccess: updates in all are N * 2^K [4]",
      [&](const std::string& t) { arguments.updates_per_word = bench::parse_number("--updates-per-word", t, 0, 1e9); });
  add("--bytes", "N", "stream: bytes of a message [8]",
      [&](const std::string& t) { arguments.bytes = bench::parse_count("--bytes", t, 1, bench::peer_bytes_max); });
  add("--messages", "M", "stream: messages of each rank [by size]",
      [&](const std::string& t) { arguments.messages = bench::parse_count("--messages", t, 1, 1ull << 40); });
  add("--buffer-bytes", "SIZE", "mpi-alltoallv: bytes of a bucket [64K]", [&](const std::string& t) {
    arguments.buffer_bytes = parse_bytes("--buffer-bytes", t);
    if (arguments.buffer_bytes < 8 || arguments.buffer_bytes > 64_MiB) {
      throw SettingError(fmt::format("--buffer-bytes: '{}' is not allowed; allowed is 8 to 64M", t));
    }
  });
  add("--json", "FILE", "write the record to FILE, or - for standard output",
      [&](const std::string& t) { arguments.json = t; });
  const auto status = bench::parse_command_line(app, argc, argv);
  if (arguments.messages == 0) arguments.messages = bench::default_messages(arguments.bench, arguments.bytes);
  return status;
}

int run(const Arguments& arguments) {
  int me = 0, pes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  if (arguments.bench == "stream" && pes % 2 != 0) {
    if (me == 0)
      std::cerr << "headway-peer-" HEADWAY_PEER_MPI ": stream pairs its ranks and needs an even number of them\n";
    return exit_status::unusable_arguments;
  }
  const bench::Json record = arguments.bench == "stream" ? run_stream(arguments) : run_randomaccess(arguments);
  const bool verified = record["verified"];
  if (me == 0 && !arguments.json.empty()) bench::write_json(arguments.json, record);
  if (me == 0 && arguments.json.empty()) {
    std::cout << fmt::format("{} {} {}: {} ranks, {:.2f} M messages/s in all, {:.3f} ms, {}\n", arguments.bench,
                             arguments.mode, HEADWAY_PEER_MPI, pes, record["messages_per_second"].get<double>() / 1e6,
                             record["seconds"]["median"].get<double>() * 1e3, verified ? "verified" : "WRONG")
              << std::flush;
  }
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace headway::peers

int main(int argc, char** argv) {
  headway::peers::Arguments arguments;
  if (const auto status = headway::peers::parse(argc, argv, arguments)) return *status;
  MPI_Init(&argc, &argv);
  const int status = headway::peers::run(arguments);
  MPI_Finalize();
  return status;
}
