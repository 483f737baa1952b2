// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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
#include <headway/object/checkpoint_file.hpp>
#include <string_view>
#include <system_error>

// path/
//   manifest          which generation is complete, and its files: their lengths and checksums. Replaced by rename().
//   G.K.elements      what PE K of the run that wrote it had, of generation G
// checkpoint_file.hpp has the format of both.

namespace headway::object {

void throw_unfinished(const std::string& collection, const char* what) {
  throw UsageError(fmt::format("checkpoint(): {} in the collection of {}: wait until it has ended", what,
                               base::short_type_names(collection)));
}
void throw_wrong_address(std::uint64_t address, std::uint64_t size) {
  throw FormatError(
      fmt::format("an element has the address {}: the collection has {}", address, base::counted(size, "element")));
}
void throw_address_bytes_left(std::size_t bytes, std::size_t left) {
  throw FormatError(
      fmt::format("the address of an element has {}: its type takes {}", base::counted(bytes, "byte"), bytes - left));
}
std::string extents_text(std::span<const std::int32_t> extents) {
  return fmt::format(" of {}", fmt::join(extents, " x "));
}

namespace {

namespace fs = std::filesystem;
using namespace checkpoint_file;

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
/// The first part of an element file. For each element its lengths, address and content follow.
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

std::string manifest_name(const std::string& path) { return path + "/manifest"; }
std::string elements_name(const std::string& path, std::uint64_t generation, std::uint64_t pe) {
  return fmt::format("{}/{}.{}.elements", path, generation, pe);
}
/// The generation in the name of an element file; nothing for other files.
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

Manifest manifest_of(const std::string& name, std::span<const std::byte> bytes) {
  ByteReader reader(checked(name, bytes, manifest_magic));
  auto manifest = deserialize<Manifest>(reader);
  if (reader.remaining() != 0 || manifest.signatures.size() != manifest.elements.size())
    throw_damaged(
        name, fmt::format("has wrong content: {} {} left, and there are {} for {}",
                          base::counted(reader.remaining(), "byte"), base::by_number(reader.remaining(), "is", "are"),
                          base::counted(manifest.signatures.size(), "signature"),
                          base::counted(manifest.elements.size(), "collection")));
  return manifest;
}

// --- the same error on all PEs

enum class Kind : std::uint32_t { none, usage, setting, format, system };

/// Runs f() on each PE. If it throws on some PEs, all throw the error of the first of them. f() must not wait.
template <class F>
void on_all_pes(Pe& pe, F f) {
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

/// The generation of the last complete checkpoint; 0 if there is none.
std::uint64_t complete_generation(const std::string& path) {
  try {
    return manifest_of(manifest_name(path), read_file(manifest_name(path), std::nullopt)).generation;
  } catch (const FormatError&) {
    return 0;
  }
}
/// Removes element files of all generations but `kept`. Returns the highest generation found.
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
    throw SettingError(fmt::format("checkpoint(): '{}' cannot be used as a folder: {}", path,
                                   error ? error.message() : "it is a file: give a folder"));
  return remove_others(path, complete_generation(path)) + 1;
}

Part write_elements(const std::string& name, std::uint64_t generation, std::size_t pe, const StoredList& collections) {
  FileHead head{generation, pe, {}};
  for (const auto& collection : collections) head.elements.push_back(collection->local_size());
  Writer writer(name, elements_magic);
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
  sync_folder(path);  // the names of the element files are on the disc before the manifest names them
  Writer writer(name + ".new", manifest_magic);
  writer.add(bytes_of(manifest));
  writer.finish();
  if (::rename((name + ".new").c_str(), name.c_str()) != 0) throw_system("rename", name);
  sync_folder(path);
}

// --- reading

void require_same(const std::string& name, const Manifest& manifest, const StoredList& collections) {
  if (manifest.signatures.size() != collections.size())
    throw_damaged(name, fmt::format("is of {}: {} {} given", base::counted(manifest.signatures.size(), "collection"),
                                    collections.size(), base::by_number(collections.size(), "is", "are")));
  for (std::size_t i = 0; i < collections.size(); ++i) {
    const std::string given = collections[i]->signature();
    if (manifest.signatures[i] != given)
      throw_damaged(name, fmt::format("is of another program: its collection {} is {}, but {} is given", i,
                                      base::short_type_names(manifest.signatures[i]), base::short_type_names(given)));
    const std::optional<std::uint64_t> size = collections[i]->complete_size();
    if (size && *size != manifest.elements[i])
      throw_damaged(name, fmt::format("has {} of collection {}: the given collection has {}",
                                      base::counted(manifest.elements[i], "element"), i, *size));
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
  ByteReader reader(checked(name, file.bytes, elements_magic, &checksum));
  if (checksum != part.checksum)
    throw_damaged(name, fmt::format("is of another checkpoint: its checksum is {:016x}, the manifest has {:016x}",
                                    checksum, part.checksum));
  try {
    const auto head = deserialize<FileHead>(reader);
    if (head.generation != manifest.generation || head.pe != number || head.elements.size() != collections.size())
      throw FormatError(fmt::format("it is file {} of generation {} with {}, expected file {} of generation {} with {}",
                                    head.pe, head.generation, base::counted(head.elements.size(), "collection"), number,
                                    manifest.generation, collections.size()));
    for (std::size_t i = 0; i < collections.size(); ++i) {
      for (std::uint64_t element = 0; element < head.elements[i]; ++element) {
        const auto lengths = deserialize<Lengths>(reader);
        const std::byte* const address = reader.take(lengths.address);
        const std::byte* const content = reader.take(lengths.content);
        file.elements[i].push_back({{address, lengths.address}, {content, lengths.content}});
        collections[i]->check(file.elements[i].back());
      }
    }
    if (reader.remaining() != 0)
      throw FormatError(fmt::format("{} {} left after the last element", base::counted(reader.remaining(), "byte"),
                                    base::by_number(reader.remaining(), "is", "are")));
  } catch (const FormatError& error) {
    throw_damaged(name, fmt::format("has wrong content: {}", error.what()));
  }
  return file;
}

}  // namespace

void write_checkpoint(Pe& pe, const std::string& path, const StoredList& collections) {
  pe.quiesce();
  Manifest manifest;
  on_all_pes(pe, [&] {
    for (const auto& collection : collections) collection->require_quiet();
    if (pe.id() == 0) manifest.generation = begin_generation(path);
  });
  manifest.generation = broadcast(pe, manifest.generation, 0);
  const std::string name = elements_name(path, manifest.generation, pe.id());
  Part part;
  try {
    on_all_pes(pe, [&] { part = write_elements(name, manifest.generation, pe.id(), collections); });
  } catch (...) {
    ::unlink(name.c_str());
    throw;
  }
  manifest.files = gather(pe, part, 0);
  for (const auto& collection : collections) {
    manifest.signatures.push_back(collection->signature());
    manifest.elements.push_back(allreduce(pe, collection->local_size(), std::plus<>()));
  }
  on_all_pes(pe, [&] {
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
      throw UsageError(
          fmt::format("restart(): collection {} has {}, expected none: make it with CollectionOptions::empty", i,
                      base::counted(elements, "element")));
  }
  const std::string name = manifest_name(path);
  std::vector<std::byte> bytes;
  on_all_pes(pe, [&] {
    if (pe.id() != 0) return;
    if (::access(name.c_str(), F_OK) != 0)
      throw SettingError(
          fmt::format("restart(): there is no complete checkpoint in '{}': its file manifest is missing ({})", path,
                      std::strerror(errno)));
    bytes = read_file(name, std::nullopt);
  });
  bytes = broadcast(pe, std::span<const std::byte>(bytes), 0);
  Manifest manifest;
  std::vector<ElementFile> files;
  on_all_pes(pe, [&] {
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
  on_all_pes(pe, [&] {
    for (const auto& collection : collections) collection->end_restart();
  });
  for (std::size_t i = 0; i < collections.size(); ++i) {
    const std::uint64_t elements = allreduce(pe, collections[i]->local_size(), std::plus<>());
    if (elements != manifest.elements[i])
      throw_damaged(name, fmt::format("has {} of collection {}, but {} were made",
                                      base::counted(manifest.elements[i], "element"), i, elements));
    collections[i]->count_all();
  }
}

}  // namespace headway::object
