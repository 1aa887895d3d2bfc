#pragma once
/// Bytes of tensor files, made without the code under test.

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace test {

inline std::string little_endian(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i < sizeof(value) ? value >> 8 * i : 0);
  return bytes;
}

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

inline std::string npy_dictionary(const std::string& type, const std::string& order,
                                  const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

/// A file as numpy.save writes it, of the version whose major number is given.
inline std::string npy_file(const std::string& dictionary, const std::string& data, int major = 1) {
  std::string header = dictionary;
  const std::size_t before = major == 1 ? 10 : 12;
  while ((before + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  return std::string("\x93NUMPY") + static_cast<char>(major) + '\0' +
         little_endian(header.size(), before - 8) + header + data;
}

inline std::string safetensors_file(const std::string& header, const std::string& data) {
  return little_endian(header.size(), 8) + header + data;
}

inline std::string deflated(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

struct ZipMember {
  std::string name;
  std::string contents;
  bool is_deflated = false;
};

/// An archive as Python's zipfile writes it; with `zip64` all sizes and offsets stand in ZIP64 fields, as numpy.savez does
/// for its local headers.
inline std::string zip_file(const std::vector<ZipMember>& members, bool zip64 = false) {
  std::string file, directory;
  for (const ZipMember& member : members) {
    const std::string data = member.is_deflated ? deflated(member.contents) : member.contents;
    const std::uint64_t offset = file.size(), none = 0xffffffff;
    const std::string method = little_endian(member.is_deflated ? 8 : 0, 2);
    const std::string checksum =
        little_endian(::crc32(0, reinterpret_cast<const Bytef*>(member.contents.data()),
                              static_cast<uInt>(member.contents.size())),
                      4);
    const std::string extra = !zip64 ? ""
                                     : little_endian(1, 2) + little_endian(24, 2) +
                                           little_endian(member.contents.size(), 8) +
                                           little_endian(data.size(), 8) + little_endian(offset, 8);
    const std::string sizes = little_endian(zip64 ? none : data.size(), 4) +
                              little_endian(zip64 ? none : member.contents.size(), 4);
    file += "PK\3\4" + little_endian(45, 2) + little_endian(0, 2) + method + little_endian(0, 4) + checksum +
            sizes + little_endian(member.name.size(), 2) + little_endian(extra.size(), 2) + member.name +
            extra + data;
    directory += "PK\1\2" + little_endian(45, 2) + little_endian(45, 2) + little_endian(0, 2) + method +
                 little_endian(0, 4) + checksum + sizes + little_endian(member.name.size(), 2) +
                 little_endian(extra.size(), 2) + little_endian(0, 10) +
                 little_endian(zip64 ? none : offset, 4) + member.name + extra;
  }
  const std::uint64_t count = members.size(), begin = file.size();
  std::string end64;
  if (zip64) {
    end64 = "PK\6\6" + little_endian(44, 8) + little_endian(45, 2) + little_endian(45, 2) +
            little_endian(0, 8) + little_endian(count, 8) + little_endian(count, 8) +
            little_endian(directory.size(), 8) + little_endian(begin, 8) + "PK\6\7" + little_endian(0, 4) +
            little_endian(begin + directory.size(), 8) + little_endian(1, 4);
  }
  return file + directory + end64 + "PK\5\6" + little_endian(0, 4) + little_endian(count, 2) +
         little_endian(count, 2) + little_endian(zip64 ? 0xffffffff : directory.size(), 4) +
         little_endian(zip64 ? 0xffffffff : begin, 4) + little_endian(0, 2);
}

}  // namespace test
