#include "experiments/frame/tensor_files/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "experiments/frame/crc32.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/tensor_files/inflate.h"
#include "experiments/frame/tensor_files/npy.h"

namespace experiments::tensor_files {
namespace {

constexpr std::uint32_t end_mark = 0x06054b50, end64_mark = 0x06064b50, locator64_mark = 0x07064b50;
constexpr std::uint32_t member_mark = 0x02014b50, local_mark = 0x04034b50;
constexpr std::size_t end_size = 22, end64_size = 56, locator64_size = 20, member_size = 46, local_size = 30;
constexpr std::uint32_t in_zip64 = 0xffffffff;

/// Little-endian fields of a part of the file that is known to be there.
class Fields {
 public:
  Fields(Bytes bytes) : bytes_(bytes) {}

  std::uint64_t at(std::size_t offset, std::size_t count) const {
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes_[offset + i]);
    return value;
  }

 private:
  Bytes bytes_;
};

struct Directory {
  std::uint64_t members;
  Bytes bytes;
};

struct Member {
  std::string name;
  Packing packing;
  std::uint64_t packed_bytes, unpacked_bytes, local_offset;
  std::uint64_t checksum;  ///< CRC-32 of the unpacked bytes
};

class Archive {
 public:
  Archive(Bytes bytes, const std::filesystem::path& file) : bytes_(bytes), file_(file) {}

  std::vector<Member> members() const {
    const Directory directory = this->directory();
    std::vector<Member> members;
    Bytes rest = directory.bytes;
    for (std::uint64_t i = 0; i < directory.members; ++i) members.push_back(member(rest));
    return members;
  }

  /// The member's bytes, still packed.
  Bytes data_of(const Member& member) const {
    const Fields local(part(member.local_offset, local_size));
    if (local.at(0, 4) != local_mark)
      damaged(fmt::format("member '{}' does not begin where the directory says", one_line(member.name)));
    return part(member.local_offset + local_size + local.at(26, 2) + local.at(28, 2), member.packed_bytes);
  }

 private:
  [[noreturn]] void damaged(std::string_view problem) const {
    refuse(file_, fmt::format("is no readable .npz file: {}", problem));
  }

  Bytes part(std::uint64_t offset, std::uint64_t count) const {
    if (offset > bytes_.size() || count > bytes_.size() - offset)
      damaged(fmt::format("{} bytes at {} are not all there; it has {}", count, offset, bytes_.size()));
    return bytes_.subspan(offset, count);
  }

  /// The last record of the archive, before a comment of at most 65,535 bytes.
  std::uint64_t end_of_directory() const {
    if (bytes_.size() >= end_size) {
      const std::uint64_t last = bytes_.size() - end_size;
      for (std::uint64_t back = 0; back <= std::min<std::uint64_t>(last, 0xffff); ++back) {
        const Fields end(part(last - back, end_size));
        if (end.at(0, 4) == end_mark && end.at(20, 2) == back) return last - back;
      }
    }
    damaged("the directory at its end is missing, as in a file that is cut off");
  }

  Directory directory() const {
    const std::uint64_t place = end_of_directory();
    const Fields end(part(place, end_size));
    std::uint64_t count = end.at(10, 2), size = end.at(12, 4), offset = end.at(16, 4);
    if (place >= locator64_size) {
      const Fields locator(part(place - locator64_size, locator64_size));
      if (locator.at(0, 4) == locator64_mark) {
        const Fields end64(part(locator.at(8, 8), end64_size));
        if (end64.at(0, 4) != end64_mark) damaged("its ZIP64 directory is not where it says");
        count = end64.at(32, 8), size = end64.at(40, 8), offset = end64.at(48, 8);
      }
    }
    if (count > size / member_size)
      damaged(fmt::format("a directory of {} bytes cannot name {} members", size, count));
    return {.members = count, .bytes = part(offset, size)};
  }

  /// The next member; what is left of the directory after it.
  Member member(Bytes& rest) const {
    const auto take = [&](std::size_t count) {
      if (rest.size() < count) damaged("its directory is cut off");
      const Bytes taken = rest.first(count);
      rest = rest.subspan(count);
      return taken;
    };
    const Fields fields(take(member_size));
    if (fields.at(0, 4) != member_mark) damaged("its directory is damaged");
    const Bytes name = take(fields.at(28, 2));
    Member member{.name = std::string(reinterpret_cast<const char*>(name.data()), name.size()),
                  .packing = Packing::none,
                  .packed_bytes = fields.at(20, 4),
                  .unpacked_bytes = fields.at(24, 4),
                  .local_offset = fields.at(42, 4),
                  .checksum = fields.at(16, 4)};
    read_zip64(take(fields.at(30, 2)), member);
    take(fields.at(32, 2));
    const std::uint64_t method = fields.at(10, 2);
    if (fields.at(8, 2) & 1) damaged(fmt::format("member '{}' is encrypted", one_line(member.name)));
    if (method != 0 && method != 8)
      damaged(fmt::format("member '{}' is compressed by method {}; allowed: 0 (stored), 8 (deflate)",
                          one_line(member.name), method));
    if (method == 8) member.packing = Packing::deflate;
    if (method == 0 && member.packed_bytes != member.unpacked_bytes)
      damaged(fmt::format("member '{}' is stored, yet has two sizes", one_line(member.name)));
    return member;
  }

  /// Sizes and offset from the extra field where 32 bits did not hold them.
  void read_zip64(Bytes extra, Member& member) const {
    constexpr std::uint64_t zip64 = 1;
    while (extra.size() >= 4) {
      const Fields fields(extra);
      const std::uint64_t id = fields.at(0, 2), size = fields.at(2, 2);
      if (size > extra.size() - 4) damaged("an extra field of its directory is cut off");
      std::size_t position = 4;
      for (std::uint64_t* const field :
           {&member.unpacked_bytes, &member.packed_bytes, &member.local_offset}) {
        if (id != zip64 || *field != in_zip64) continue;
        if (position + 8 > size + 4) damaged("a ZIP64 field of its directory is cut off");
        *field = fields.at(position, 8);
        position += 8;
      }
      extra = extra.subspan(4 + size);
    }
  }

  Bytes bytes_;
  const std::filesystem::path& file_;
};

/// Inputs of a fuzzer seldom have the right checksum; what comes behind it is to be fuzzed, too.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
constexpr bool believes_every_checksum = true;
#else
constexpr bool believes_every_checksum = false;
#endif

/// Whether the unpacked bytes are as many as the directory says, and have its CRC-32.
bool has_told_bytes(const Member& member, Bytes data, const std::filesystem::path& place) {
  std::uint32_t checksum = 0;
  std::uint64_t size = 0;
  const auto add = [&](Bytes bytes) {
    checksum = crc32(bytes, checksum);
    size += bytes.size();
  };
  if (member.packing == Packing::none) {
    add(data);
  } else {
    Inflater inflater(data, place);
    std::vector<std::byte> piece(std::size_t{1} << 16);
    std::size_t count = 1;
    while (count > 0 && size <= member.unpacked_bytes) {
      count = inflater.read(piece);
      add(std::span(piece).first(count));
    }
  }
  return size == member.unpacked_bytes && (checksum == member.checksum || believes_every_checksum);
}

StoredTensor tensor_of(const Member& member, Bytes data, Bytes whole, const std::filesystem::path& file,
                       const RawLayout& raw) {
  const std::filesystem::path place = fmt::format("{}:{}", file.string(), one_line(member.name));
  std::optional<Inflater> inflater;
  if (member.packing == Packing::deflate) inflater.emplace(data, place);
  std::size_t position = 0;
  const auto read = [&](std::size_t count) {
    if (!inflater) count = std::min<std::size_t>(count, data.size() - position);
    std::string bytes(count, '\0');
    if (inflater) {
      bytes.resize(inflater->read(std::as_writable_bytes(std::span(bytes))));
    } else {
      std::ranges::copy(data.subspan(position, count), reinterpret_cast<std::byte*>(bytes.data()));
    }
    position += bytes.size();
    return bytes;
  };
  const NpyHeader header = read_npy_header(read, place, raw);
  StoredTensor tensor{.name = one_line(std::string_view(member.name).substr(0, member.name.size() - 4)),
                      .shape = header.shape,
                      .type = header.type,
                      .data = data,
                      .packing = member.packing,
                      .columns_first = header.columns_first,
                      .big_endian = header.big_endian,
                      .byte_each = header.type->bits < 8,
                      .file = file,
                      .offset = static_cast<std::uint64_t>(data.data() - whole.data())};
  tensor.elements = element_count(tensor.shape, tensor.place());
  if (member.unpacked_bytes < header.bytes || member.unpacked_bytes - header.bytes != tensor.stored_bytes())
    throw std::runtime_error(fmt::format("{} has {} bytes where its shape {}, type and header want {}",
                                         tensor.place(), member.unpacked_bytes, text_of(tensor.shape),
                                         header.bytes + tensor.stored_bytes()));
  if (!has_told_bytes(member, data, place)) refuse(place, "is damaged: its checksum is that of other bytes");
  if (member.packing == Packing::none) {
    tensor.data = data.subspan(header.bytes);
    tensor.offset += header.bytes;
  } else {
    tensor.skipped = header.bytes;
  }
  return tensor;
}

}  // namespace

Contents parse_npz(Bytes bytes, const std::filesystem::path& file, const RawLayout& raw) {
  const Archive archive(bytes, file);
  Contents contents;
  for (const Member& member : archive.members()) {
    if (!member.name.ends_with(".npy")) continue;
    contents.tensors.push_back(tensor_of(member, archive.data_of(member), bytes, file, raw));
  }
  return contents;
}

}  // namespace experiments::tensor_files
