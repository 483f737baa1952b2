// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <fuzz/fuzz.hpp>
#include <headway/base/bytes.hpp>
#include <map>
#include <new>
#include <string_view>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// --- allocations are counted

namespace {
std::uint64_t allocated = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  allocated += bytes;
  void* memory = alignment == 0 ? std::malloc(bytes == 0 ? 1 : bytes)
                                : std::aligned_alloc(alignment, headway::base::align_up(bytes, alignment));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 0); }
void* operator new[](std::size_t bytes) { return counted(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return counted(bytes, std::size_t(alignment)); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return counted(bytes, std::size_t(alignment)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {  // of std::stable_sort
  allocated += bytes;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

// --- edges are counted where the build has -fsanitize-coverage=trace-pc

namespace {
constexpr std::size_t places = 1 << 16;
bool edge_seen[places];  // no std::array: its functions would be traced themselves
std::size_t edges = 0;
std::uintptr_t last_place = 0;
}  // namespace

#ifdef __clang__
#define HEADWAY_NOT_COUNTED __attribute__((no_sanitize("coverage")))
#else
#define HEADWAY_NOT_COUNTED __attribute__((no_sanitize_coverage))
#endif
extern "C" HEADWAY_NOT_COUNTED void __sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  bool& seen = edge_seen[(place ^ last_place << 3) % places];
  if (!seen) ++edges;
  seen = true;
  last_place = place;
}

namespace headway::fuzz {

std::uint64_t allocated_bytes() { return allocated; }

// --- memory

namespace {
constexpr std::size_t page_bytes = 4096;

void close_region([[maybe_unused]] const std::byte* at, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(at, bytes);
#endif
}
void open_region([[maybe_unused]] const std::byte* at, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(at, bytes);
#endif
}
}  // namespace

FencedMemory::FencedMemory(std::size_t bytes_max) : bytes_(base::align_up(bytes_max + 128, page_bytes)) {
  void* memory = mmap(nullptr, bytes_ + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::byte*>(memory);
  mprotect(base_ + bytes_, page_bytes, PROT_NONE);
  close_region(base_, bytes_);
}

FencedMemory::~FencedMemory() {
  open_region(base_, bytes_);
  munmap(base_, bytes_ + page_bytes);
}

std::byte* FencedMemory::hold(std::span<const std::byte> bytes, std::size_t alignment, std::size_t offset,
                              std::size_t readable_before) {
  let_go();
  const std::size_t most = bytes_ - bytes.size();
  std::byte* const at = base_ + (most - offset) / alignment * alignment + offset;
  held_ = at - base::align_up(readable_before, 8);
  open_region(held_, std::size_t(at - held_) + bytes.size());
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at;
}

void FencedMemory::let_go() {
  if (held_ != nullptr) close_region(held_, std::size_t(base_ + bytes_ - held_));
  held_ = nullptr;
}

// --- mutations

std::uint64_t boundary_value(Random& random, std::uint64_t size) {
  switch (random.below(8)) {
    case 0: return random.below(4);
    case 1: return size - 2 + random.below(5);
    case 2: return (std::uint64_t(1) << random.below(64)) - 2 + random.below(4);
    case 3: return ~random.below(4);
    case 4: return 0xffffffff - random.below(40);
    case 5: return random.below(2 * size + 2);
    case 6: return random.below(256);
    default: return random.next();
  }
}

namespace {

std::byte random_byte(Random& random) {
  constexpr std::array<unsigned, 8> likely{0, 1, 2, 8, 127, 128, 254, 255};
  return std::byte(random.one_in(2) ? likely[random.below(likely.size())] : random.below(256));
}

void put_number(Bytes& input, std::size_t first, Random& random) {
  const std::size_t bytes = std::size_t(1) << random.below(4);
  if (input.size() - first < bytes) return;
  const std::size_t at = first + random.below(input.size() - first - bytes + 1);
  const std::uint64_t value = boundary_value(random, input.size() - at);
  std::memcpy(input.data() + at, &value, bytes);
}

}  // namespace

void change_bytes(Bytes& input, std::size_t first, const Bytes& other, Random& random) {
  const std::size_t length = input.size() > first ? input.size() - first : 0;
  const std::size_t at = first + (length == 0 ? 0 : random.below(length));
  const auto place = input.begin() + std::ptrdiff_t(at);
  switch (length == 0 ? 5 : random.below(8)) {
    case 0: *place ^= std::byte(1 << random.below(8)); return;
    case 1: *place = random_byte(random); return;
    case 2:
    case 3: put_number(input, first, random); return;
    case 4: input.resize(at); return;
    case 5: {
      Bytes more(1 + random.size(0, 40));
      for (std::byte& byte : more) byte = random_byte(random);
      input.insert(place, more.begin(), more.end());
      return;
    }
    case 6: {
      const std::size_t bytes = std::min(length - (at - first), 1 + random.size(0, 64));
      const Bytes piece(place, place + std::ptrdiff_t(bytes));
      if (random.one_in(2))
        input.erase(place, place + std::ptrdiff_t(bytes));
      else
        input.insert(place, piece.begin(), piece.end());
      return;
    }
    default:
      if (other.size() > first) {
        const std::size_t from = first + random.below(other.size() - first);
        const std::size_t bytes = std::min(other.size() - from, random.size(1, 64));
        const auto piece = other.begin() + std::ptrdiff_t(from);
        if (random.one_in(2)) input.resize(at);
        input.insert(input.begin() + std::ptrdiff_t(at), piece, piece + std::ptrdiff_t(bytes));
      }
  }
}

// --- running

namespace {

constexpr std::size_t inputs_per_round = 2048;
constexpr std::size_t input_bytes_max = 6000;
constexpr std::size_t kept_bytes_max = 320;  // the corpus stays small, and has frames by value and what follows them

constexpr const char* help = R"(usage: %s [options]
  --runs N       how many inputs to decode (default 100000)
  --seed S       another seed gives other inputs (default 1)
  --round R      the first round of that seed (default 0): a hole says which one repeats it
  --corpus DIR   start from the inputs in DIR/NAME.txt too
  --grow         add short inputs that reach new edges to that file (a build with -fsanitize-coverage=trace-pc)
  --replay FILE  decode the inputs of FILE, one after the other, and nothing else
  --seconds N    a round of %zu inputs takes no longer (default 120)
  --verbose      say which refusals there were, and how often
)";

char hex_digit(unsigned value) { return "0123456789abcdef"[value]; }

void write_hex(std::FILE* file, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    std::fputc(hex_digit(std::to_integer<unsigned>(byte) >> 4), file);
    std::fputc(hex_digit(std::to_integer<unsigned>(byte) & 15), file);
  }
  std::fputc('\n', file);
}

/// One input a line, as hexadecimal digits; lines that start with # are none.
std::vector<Bytes> read_inputs(const std::string& path) {
  std::vector<Bytes> inputs;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    Bytes input(line.size() / 2);
    for (std::size_t i = 0; i < input.size(); ++i) {
      input[i] = std::byte(std::stoul(line.substr(2 * i, 2), nullptr, 16));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

class Fuzzer {
 public:
  Fuzzer(const char* name, Target& target) : name_(name), target_(&target) { current_ = this; }

  int run(int argc, char** argv);

 private:
  void read_arguments(int argc, char** argv);
  void watch();
  void fuzz();
  void replay();
  void begin_round(std::uint64_t round);
  const Bytes& pick(Random& random);
  void decode(std::span<const std::byte> input);
  void note_refusal(const std::string& refusal);
  void keep(const Bytes& input);
  void report();
  [[noreturn]] void hole(const char* what);

  static void on_signal(int signal);

  const char* name_;
  Target* target_;
  std::uint64_t runs_ = 100'000, seed_ = 1, first_round_ = 0;
  std::string corpus_, replay_;
  unsigned seconds_per_round_max_ = 120;
  bool grow_ = false, verbose_ = false;

  std::vector<Bytes> pool_;
  std::size_t picked_ = 0;
  std::uint64_t round_ = 0, done_ = 0, refused_ = 0;
  std::vector<Bytes> inputs_;  // of this round; the first used_ ones
  std::size_t used_ = 0;
  struct Refusal {
    std::string text;
    std::uint64_t times = 0;
  };
  std::map<std::uint64_t, Refusal> refusals_;  // by text without its numbers
  std::uint64_t kept_ = 0;
  bool reported_ = false;

  static Fuzzer* current_;
};

Fuzzer* Fuzzer::current_ = nullptr;

void Fuzzer::read_arguments(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--grow") {
      grow_ = true;
    } else if (option == "--verbose") {
      verbose_ = true;
    } else if (i + 1 < argc && option == "--runs") {
      runs_ = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && option == "--seed") {
      seed_ = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && option == "--round") {
      first_round_ = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && option == "--corpus") {
      corpus_ = std::string(argv[++i]) + "/" + name_ + ".txt";
    } else if (i + 1 < argc && option == "--seconds") {
      seconds_per_round_max_ = unsigned(std::strtoul(argv[++i], nullptr, 10));
    } else if (i + 1 < argc && option == "--replay") {
      replay_ = argv[++i];
    } else {
      std::fprintf(option == "--help" ? stdout : stderr, help, name_, inputs_per_round);
      std::exit(option == "--help" ? 0 : 2);
    }
  }
}

void Fuzzer::on_signal(int signal) {
  const std::string what = std::string("ended by signal ") + std::to_string(signal) +
                           (signal == SIGALRM ? ": a round takes longer than any may" : "");
  current_->hole(what.c_str());
}

/// Whatever ends the process says which input it was.
void Fuzzer::watch() {
  static std::array<std::byte, 1 << 16> stack;  // the usual stack may be exhausted
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGABRT, &action, nullptr);
  sigaction(SIGALRM, &action, nullptr);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback([] {
    if (!current_->reported_) current_->report();
  });
#else
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(signal, &action, nullptr);
#endif
}

void Fuzzer::report() {
  reported_ = true;
  const std::string path = std::string(name_) + ".hole.txt";
  if (std::FILE* file = std::fopen(path.c_str(), "w")) {
    for (std::size_t i = 0; i < used_; ++i) write_hex(file, inputs_[i]);
    std::fclose(file);
  }
  std::fprintf(stderr,
               "%s: a hole, found by input %zu of round %llu, seed %llu; repeat it with --replay %s, or with "
               "--seed %llu --round %llu --runs %zu%s; the input:\n",
               name_, used_, static_cast<unsigned long long>(round_), static_cast<unsigned long long>(seed_),
               path.c_str(), static_cast<unsigned long long>(seed_), static_cast<unsigned long long>(round_), used_,
               corpus_.empty() ? "" : " and the same corpus");
  if (used_ != 0) write_hex(stderr, inputs_[used_ - 1]);
  std::fflush(stderr);
}

void Fuzzer::hole(const char* what) {
  if (!reported_) {
    std::fprintf(stderr, "%s: %s\n", name_, what);
    report();
  }
  _exit(1);
}

void Fuzzer::begin_round(std::uint64_t round) {
  round_ = round;
  used_ = 0;
  alarm(seconds_per_round_max_);
  target_->begin_round(round);
}

/// Mostly any, but often the one behind the last, since some belong together.
const Bytes& Fuzzer::pick(Random& random) {
  picked_ = random.one_in(4) ? (picked_ + 1) % pool_.size() : random.below(pool_.size());
  return pool_[picked_];
}

void Fuzzer::note_refusal(const std::string& refusal) {
  ++refused_;
  const std::size_t colon = refusal.rfind(": ");
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : std::string_view(refusal).substr(colon == refusal.npos ? 0 : colon)) {
    if (c < '0' || c > '9') hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
  }
  Refusal& entry = refusals_[hash];
  if (entry.times++ == 0) entry.text = refusal;
}

void Fuzzer::decode(std::span<const std::byte> input) {
  const std::uint64_t before = allocated;
  try {
    const std::string& refusal = target_->decode(input);
    const std::uint64_t taken = allocated - before;
    if (taken > target_->allocated_bytes_max(input.size())) {
      hole(("decoding " + std::to_string(input.size()) + " bytes allocated " + std::to_string(taken)).c_str());
    }
    if (!refusal.empty()) note_refusal(refusal);
  } catch (const std::exception& error) {
    hole((std::string("it threw what is no refusal: ") + error.what()).c_str());
  }
  ++done_;
}

void Fuzzer::keep(const Bytes& input) {
  pool_.push_back(input);
  if (std::FILE* file = std::fopen(corpus_.c_str(), "a")) {
    write_hex(file, input);
    std::fclose(file);
  }
  ++kept_;
}

void Fuzzer::fuzz() {
  pool_ = target_->valid_inputs();
  for (Bytes& input : read_inputs(corpus_)) pool_.push_back(std::move(input));
  if (pool_.empty()) throw std::runtime_error("there is no input to start from");
  inputs_.resize(inputs_per_round);

  // All that is there comes first as it is, so that edges are new only where an input goes further.
  begin_round(~std::uint64_t(0));
  for (const Bytes& input : pool_) {
    if (used_ == inputs_per_round || target_->exhausted()) begin_round(~std::uint64_t(0));
    inputs_[used_++] = input;
    decode(input);
  }
  const std::uint64_t runs = done_ + runs_;
  for (std::uint64_t round = first_round_; done_ < runs; ++round) {
    Random random(Random(seed_ ^ Random(round).next()).next());
    picked_ = 0;
    begin_round(round);
    while (used_ < inputs_per_round && done_ < runs && !target_->exhausted()) {
      Bytes& input = inputs_[used_++];
      const Bytes& origin = pick(random);
      input.assign(origin.begin(), origin.end());
      for (std::uint64_t changes = random.below(5); changes > 0; --changes) {
        target_->mutate(input, pool_[random.below(pool_.size())], random);
      }
      if (input.size() > input_bytes_max) input.resize(input_bytes_max);
      const std::size_t edges_before = edges;
      decode(input);
      if (grow_ && edges != edges_before && input.size() <= kept_bytes_max) keep(input);
    }
  }
}

void Fuzzer::replay() {
  inputs_ = read_inputs(replay_);
  if (inputs_.empty()) throw std::runtime_error("there are no inputs in " + replay_);
  begin_round(first_round_);
  for (const Bytes& input : inputs_) {
    ++used_;
    decode(input);
  }
}

int Fuzzer::run(int argc, char** argv) {
  read_arguments(argc, argv);
  watch();
  const auto start = std::chrono::steady_clock::now();
  if (replay_.empty())
    fuzz();
  else
    replay();
  alarm(0);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double processor_seconds = double(std::clock()) / CLOCKS_PER_SEC;
  std::printf(
      "%s: %llu inputs in %llu rounds clean in %.1f s (%.1f s of processor time, %.0f a second of it); seed %llu, %zu "
      "to start "
      "from, %.1f %% refused for %zu different reasons, %zu edges\n",
      name_, static_cast<unsigned long long>(done_), static_cast<unsigned long long>(round_ + 1 - first_round_),
      seconds, processor_seconds, double(done_) / processor_seconds, static_cast<unsigned long long>(seed_),
      pool_.size() - kept_, 100.0 * double(refused_) / double(done_), refusals_.size(), edges);
  if (verbose_) {
    for (const auto& [hash, refusal] : refusals_) {
      std::printf("%12llu  %s\n", static_cast<unsigned long long>(refusal.times), refusal.text.c_str());
    }
  }
  return 0;
}

}  // namespace

int run(int argc, char** argv, const char* name, Target& target) {
  try {
    return Fuzzer(name, target).run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  }
}

}  // namespace headway::fuzz
