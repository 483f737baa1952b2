#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/type_text.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/collective/gather.hpp>
#include <headway/collective/reduce.hpp>
#include <headway/object/checkpoint.hpp>
#include <string_view>
#include <system_error>

// path/
//   manifest          which generation is complete, and its files: their lengths and checksums. Replaced by rename().
//   G.K.elements      what PE K of the run that wrote it had, of generation G
// Both: magic, version, content, checksum.

namespace headway::object {

void throw_unfinished(const std::string& collection, const char* what) {
  throw UsageError(fmt::format("checkpoint(): {} of {}: they would be lost", what, short_type_names(collection)));
}
void throw_wrong_address(const std::string& address) {
  throw FormatError(fmt::format("an element has an address that is none: {}", address));
}
std::string extents_text(std::span<const std::int32_t> extents) {
  return fmt::format(" of {}", fmt::join(extents, " x "));
}

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t version = 1;
using Magic = std::array<char, 8>;
constexpr Magic of_manifest = {'h', 'w', '-', 'c', 'h', 'e', 'c', 'k'};
constexpr Magic of_elements = {'h', 'w', '-', 'e', 'l', 'e', 'm', 's'};
constexpr std::size_t head_bytes = sizeof(Magic) + sizeof version, tail_bytes = sizeof(std::uint64_t);

/// Of a stream of bytes. Any change within 8 bytes changes it for sure: each step can be undone.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    length_ += bytes.size();
    while (!bytes.empty()) {
      const std::size_t taken = std::min(bytes.size(), sizeof(word_) - held_);
      std::memcpy(reinterpret_cast<std::byte*>(&word_) + held_, bytes.data(), taken);
      held_ += taken;
      bytes = bytes.subspan(taken);
      if (held_ == sizeof(word_)) next();
    }
  }
  std::uint64_t value() const {
    Checksum last = *this;
    last.next();
    last.word_ = length_;
    last.next();
    return last.sum_ ^ last.sum_ >> 32;
  }

 private:
  void next() {
    sum_ = std::rotl((sum_ ^ word_) * 0x9e3779b97f4a7c15, 29);
    word_ = 0;
    held_ = 0;
  }

  std::uint64_t sum_ = 0x243f6a8885a308d3, word_ = 0, length_ = 0;
  std::size_t held_ = 0;
};

struct Part {
  std::uint64_t bytes = 0, checksum = 0;
};
struct Manifest {
  std::uint64_t generation = 0;
  std::vector<Part> files;
  std::vector<std::string> signatures;
  std::vector<std::uint64_t> elements;  // of each collection

  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, files, signatures, elements);
  }
};
/// What an element file begins with; then, for each element, its lengths, address and content.
struct FileHead {
  std::uint64_t generation = 0, pe = 0;
  std::vector<std::uint64_t> elements;  // of each collection

  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, pe, elements);
  }
};
struct Lengths {
  std::uint64_t address, content;
};

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(serialized_bytes(value));
  serialize(bytes.data(), value);
  return bytes;
}

[[noreturn]] void throw_system(const char* call, const std::string& name) {
  const int error = errno;
  throw SystemError(fmt::format("{} '{}': {} (errno {})", call, name, std::strerror(error), error));
}
[[noreturn]] void throw_damaged(const std::string& name, const std::string& why) {
  throw FormatError(fmt::format("checkpoint file '{}' {}", name, why));
}

std::string manifest_name(const std::string& path) { return path + "/manifest"; }
std::string elements_name(const std::string& path, std::uint64_t generation, std::uint64_t pe) {
  return fmt::format("{}/{}.{}.elements", path, generation, pe);
}
/// Of an element file's name; nothing for other files.
std::optional<std::uint64_t> generation_of(std::string_view name) {
  std::uint64_t numbers[2] = {};
  for (std::uint64_t& number : numbers) {
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
    name.remove_prefix(std::size_t(end - name.data()) + 1);
  }
  if (name != "elements") return std::nullopt;
  return numbers[0];
}

class Descriptor {
 public:
  Descriptor(const std::string& name, int flags) : number_(::open(name.c_str(), flags | O_CLOEXEC, 0666)) {
    if (number_ < 0) throw_system("open", name);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(number_); }
  int number() const { return number_; }

 private:
  int number_;
};

void sync_folder(const std::string& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  if (::fsync(folder.number()) != 0) throw_system("fsync", path);
}

/// A file that is new. Removed where it is not finished.
class Writer {
 public:
  Writer(std::string name, const Magic& magic) : name_(std::move(name)), file_(name_, O_CREAT | O_EXCL | O_WRONLY) {
    buffer_.reserve(buffer_bytes);
    add(bytes_of(magic));
    add(bytes_of(version));
  }
  ~Writer() {
    if (!finished_) ::unlink(name_.c_str());
  }
  void add(std::span<const std::byte> bytes) {
    checksum_.add(bytes);
    put(bytes);
  }
  /// On the disc.
  Part finish() {
    const std::uint64_t checksum = checksum_.value();
    put(bytes_of(checksum));
    flush();
    if (::fsync(file_.number()) != 0) throw_system("fsync", name_);
    finished_ = true;
    return {bytes_, checksum};
  }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t(1) << 20;

  void put(std::span<const std::byte> bytes) {
    bytes_ += bytes.size();
    if (buffer_.size() + bytes.size() > buffer_bytes) flush();
    if (bytes.size() >= buffer_bytes)
      write(bytes);
    else
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  void flush() {
    write(buffer_);
    buffer_.clear();
  }
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_.number(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw_system("write", name_);
      bytes = bytes.subspan(std::size_t(written));
    }
  }

  std::string name_;
  Descriptor file_;
  std::vector<std::byte> buffer_;
  Checksum checksum_;
  std::uint64_t bytes_ = 0;
  bool finished_ = false;
};

/// `expected`: its length. FormatError for another one.
std::vector<std::byte> read_file(const std::string& name, std::optional<std::uint64_t> expected) {
  if (::access(name.c_str(), F_OK) != 0 && errno == ENOENT) throw_damaged(name, "is missing");
  const Descriptor file(name, O_RDONLY);
  struct stat status;
  if (::fstat(file.number(), &status) != 0) throw_system("fstat", name);
  const auto bytes = std::uint64_t(status.st_size);
  if (expected && bytes != *expected)
    throw_damaged(name, fmt::format("has {} where {} {} written", counted(bytes, "byte"), *expected,
                                    by_number(*expected, "was", "were")));
  std::vector<std::byte> content(bytes);
  std::size_t read = 0;
  while (read < content.size()) {
    const ssize_t got = ::read(file.number(), content.data() + read, content.size() - read);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system("read", name);
    if (got == 0) throw_damaged(name, "became shorter while it was read");
    read += std::size_t(got);
  }
  return content;
}

/// What lies between head and checksum, which are as they should be.
std::span<const std::byte> checked(const std::string& name, std::span<const std::byte> bytes, const Magic& magic,
                                   std::uint64_t* checksum = nullptr) {
  if (bytes.size() < head_bytes + tail_bytes)
    throw_damaged(name, fmt::format("has {}, which is too short", counted(bytes.size(), "byte")));
  if (std::memcmp(bytes.data(), magic.data(), sizeof magic) != 0)
    throw_damaged(name, "is no such file: it begins otherwise");
  std::uint32_t its_version = 0;
  std::memcpy(&its_version, bytes.data() + sizeof magic, sizeof its_version);
  if (its_version != version)
    throw_damaged(name, fmt::format("has version {} of the format, where {} is known", its_version, version));
  Checksum sum;
  sum.add(bytes.first(bytes.size() - tail_bytes));
  std::uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - tail_bytes, tail_bytes);
  if (stored != sum.value())
    throw_damaged(name, fmt::format("is damaged: its checksum is {:016x}, and {:016x} was written", sum.value(), stored));
  if (checksum != nullptr) *checksum = stored;
  return bytes.subspan(head_bytes, bytes.size() - head_bytes - tail_bytes);
}

Manifest manifest_of(const std::string& name, std::span<const std::byte> bytes) {
  ByteReader reader(checked(name, bytes, of_manifest));
  auto manifest = deserialize<Manifest>(reader);
  if (reader.remaining() != 0 || manifest.signatures.size() != manifest.elements.size())
    throw_damaged(name, "does not hold what it should");
  return manifest;
}

// --- all PEs alike

enum class Kind : std::uint32_t { none, usage, setting, format, system };

/// Runs f() on each PE; where it throws on some, all throw what the first of them has. f() must not wait.
template <class F>
void together(Pe& pe, F f) {
  Kind kind = Kind::none;
  std::string text;
  const auto caught = [&](Kind what, const std::exception& error) {
    kind = what;
    text = error.what();
  };
  try {
    f();
  } catch (const UsageError& error) {
    caught(Kind::usage, error);
  } catch (const SettingError& error) {
    caught(Kind::setting, error);
  } catch (const FormatError& error) {
    caught(Kind::format, error);
  } catch (const std::exception& error) {
    caught(Kind::system, error);
  }
  struct First {
    std::uint32_t pe;
    Kind kind;
  };
  const First first = allreduce(pe, First{kind == Kind::none ? ~std::uint32_t(0) : std::uint32_t(pe.id()), kind},
                                [](const First& a, const First& b) { return a.pe <= b.pe ? a : b; });
  if (first.kind == Kind::none) return;
  const std::vector<char> letters = broadcast(pe, std::span<const char>(text), first.pe);
  text.assign(letters.begin(), letters.end());
  switch (first.kind) {
    case Kind::usage: throw UsageError(text);
    case Kind::setting: throw SettingError(text);
    case Kind::format: throw FormatError(text);
    default: throw SystemError(text);
  }
}

// --- writing

/// Of the last complete checkpoint; 0: there is none that could be read.
std::uint64_t complete_generation(const std::string& path) {
  try {
    return manifest_of(manifest_name(path), read_file(manifest_name(path), std::nullopt)).generation;
  } catch (const FormatError&) {
    return 0;
  }
}
/// Removes element files of all generations but one, and returns the highest that there were.
std::uint64_t remove_others(const std::string& path, std::uint64_t kept) {
  std::uint64_t highest = kept;
  std::error_code ignored;
  std::vector<fs::path> others;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const std::optional<std::uint64_t> generation = generation_of(entry.path().filename().string());
    if (!generation) continue;
    highest = std::max(highest, *generation);
    if (*generation != kept) others.push_back(entry.path());
  }
  for (const fs::path& other : others) fs::remove(other, ignored);
  fs::remove(manifest_name(path) + ".new", ignored);
  return highest;
}

std::uint64_t begin_generation(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!fs::is_directory(path))
    throw SettingError(fmt::format("checkpoints go to a folder, and '{}' cannot be one: {}", path,
                                   error ? error.message() : "it is a file"));
  return remove_others(path, complete_generation(path)) + 1;
}

Part write_elements(const std::string& name, std::uint64_t generation, std::size_t pe, const StoredList& collections) {
  FileHead head{generation, pe, {}};
  for (const auto& collection : collections) head.elements.push_back(collection->local_size());
  Writer writer(name, of_elements);
  writer.add(bytes_of(head));
  for (const auto& collection : collections) {
    collection->write([&](const StoredElement& element) {
      writer.add(bytes_of(Lengths{element.address.size(), element.content.size()}));
      writer.add(element.address);
      writer.add(element.content);
    });
  }
  return writer.finish();
}

void write_manifest(const std::string& path, const Manifest& manifest) {
  const std::string name = manifest_name(path);
  sync_folder(path);  // the element files have their names before anything speaks of them
  Writer writer(name + ".new", of_manifest);
  writer.add(bytes_of(manifest));
  writer.finish();
  if (::rename((name + ".new").c_str(), name.c_str()) != 0) throw_system("rename", name);
  sync_folder(path);
}

// --- reading

void require_same(const std::string& name, const Manifest& manifest, const StoredList& collections) {
  if (manifest.signatures.size() != collections.size())
    throw_damaged(name, fmt::format("is of {}, where {} {} given", counted(manifest.signatures.size(), "collection"),
                                    collections.size(), by_number(collections.size(), "is", "are")));
  for (std::size_t i = 0; i < collections.size(); ++i) {
    const std::string given = collections[i]->signature();
    if (manifest.signatures[i] != given)
      throw_damaged(name, fmt::format("is of another program: collection {} is {}, where {} is given", i,
                                      short_type_names(manifest.signatures[i]), short_type_names(given)));
    const std::optional<std::uint64_t> size = collections[i]->complete_size();
    if (size && *size != manifest.elements[i])
      throw_damaged(name, fmt::format("holds {} of collection {}, which has {}",
                                      counted(manifest.elements[i], "element"), i, *size));
  }
}

struct ElementFile {
  std::vector<std::byte> bytes;
  std::vector<std::vector<StoredElement>> elements;  // by collection
};

ElementFile read_elements(const std::string& name, const Manifest& manifest, std::size_t number,
                          const StoredList& collections) {
  const Part& part = manifest.files[number];
  ElementFile file{read_file(name, part.bytes), std::vector<std::vector<StoredElement>>(collections.size())};
  std::uint64_t checksum = 0;
  ByteReader reader(checked(name, file.bytes, of_elements, &checksum));
  if (checksum != part.checksum) throw_damaged(name, "is of another checkpoint than the manifest");
  try {
    const auto head = deserialize<FileHead>(reader);
    if (head.generation != manifest.generation || head.pe != number || head.elements.size() != collections.size())
      throw FormatError("it is another part of it");
    for (std::size_t i = 0; i < collections.size(); ++i) {
      for (std::uint64_t element = 0; element < head.elements[i]; ++element) {
        const auto lengths = deserialize<Lengths>(reader);
        const std::byte* const address = reader.take(lengths.address);
        const std::byte* const content = reader.take(lengths.content);
        file.elements[i].push_back({{address, lengths.address}, {content, lengths.content}});
        collections[i]->check(file.elements[i].back());
      }
    }
    if (reader.remaining() != 0) throw FormatError(fmt::format("{} {} left", counted(reader.remaining(), "byte"),
                                                                     by_number(reader.remaining(), "is", "are")));
  } catch (const FormatError& error) {
    throw_damaged(name, fmt::format("does not hold what it should: {}", error.what()));
  }
  return file;
}

}  // namespace

void write_checkpoint(Pe& pe, const std::string& path, const StoredList& collections) {
  pe.quiesce();
  Manifest manifest;
  together(pe, [&] {
    for (const auto& collection : collections) collection->require_quiet();
    if (pe.id() == 0) manifest.generation = begin_generation(path);
  });
  manifest.generation = broadcast(pe, manifest.generation, 0);
  const std::string name = elements_name(path, manifest.generation, pe.id());
  Part part;
  try {
    together(pe, [&] { part = write_elements(name, manifest.generation, pe.id(), collections); });
  } catch (...) {
    ::unlink(name.c_str());
    throw;
  }
  manifest.files = gather(pe, part, 0);
  for (const auto& collection : collections) {
    manifest.signatures.push_back(collection->signature());
    manifest.elements.push_back(allreduce(pe, collection->local_size(), std::plus<>()));
  }
  together(pe, [&] {
    if (pe.id() != 0) return;
    write_manifest(path, manifest);
    remove_others(path, manifest.generation);
  });
}

void read_checkpoint(Pe& pe, const std::string& path, const StoredList& collections) {
  pe.quiesce();
  for (std::size_t i = 0; i < collections.size(); ++i) {
    const std::uint64_t elements = allreduce(pe, collections[i]->local_size(), std::plus<>());
    if (elements != 0)
      throw UsageError(fmt::format("restart(): collection {} has {}: make it with CollectionOptions::empty", i,
                                   counted(elements, "element")));
  }
  const std::string name = manifest_name(path);
  std::vector<std::byte> bytes;
  together(pe, [&] {
    if (pe.id() != 0) return;
    if (::access(name.c_str(), F_OK) != 0)
      throw SettingError(fmt::format("there is no complete checkpoint in '{}': no file manifest ({})", path,
                                     std::strerror(errno)));
    bytes = read_file(name, std::nullopt);
  });
  bytes = broadcast(pe, std::span<const std::byte>(bytes), 0);
  Manifest manifest;
  std::vector<ElementFile> files;
  together(pe, [&] {
    manifest = manifest_of(name, bytes);
    require_same(name, manifest, collections);
    for (std::size_t file = pe.id(); file < manifest.files.size(); file += pe.size()) {
      files.push_back(read_elements(elements_name(path, manifest.generation, file), manifest, file, collections));
    }
  });
  for (const auto& collection : collections) collection->begin_restart();
  barrier(pe);
  for (const ElementFile& file : files) {
    for (std::size_t i = 0; i < collections.size(); ++i) {
      for (const StoredElement& element : file.elements[i]) collections[i]->send_home(element);
    }
  }
  pe.quiesce();
  together(pe, [&] {
    for (const auto& collection : collections) collection->end_restart();
  });
  for (std::size_t i = 0; i < collections.size(); ++i) {
    const std::uint64_t elements = allreduce(pe, collections[i]->local_size(), std::plus<>());
    if (elements != manifest.elements[i])
      throw_damaged(name, fmt::format("promises {} of collection {}, and {} came",
                                      counted(manifest.elements[i], "element"), i, elements));
    collections[i]->count_all();
  }
}

}  // namespace headway::object
