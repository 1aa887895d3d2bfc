#include "experiments/training/gradient_record.h"

#include <array>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz.h"

namespace {

/// A record on disk whose files are whole but for one.
class Record {
 public:
  Record() {
    experiments::write_gradient_record(
        folder_, {.source = "", .scaler = "", .exponents_every = 1, .steps = {{.step = 0}}});
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::ifstream stream(folder_ / names[i], std::ios::binary);
      whole_[i].assign(std::istreambuf_iterator<char>(stream), {});
    }
  }

  void read_with(std::size_t chosen, std::string_view text) const {
    write(chosen, text);
    fuzz::allow_refusal([&] { experiments::read_gradient_record(folder_); });
    write(chosen, whole_[chosen]);
  }

  static constexpr std::array names{"manifest.json", "steps.csv", "exponents.csv"};

 private:
  void write(std::size_t file, std::string_view text) const {
    std::ofstream(folder_ / names[file], std::ios::binary) << text;
  }

  std::filesystem::path folder_ = fuzz::folder("record");
  std::array<std::string, names.size()> whole_;
};

}  // namespace

/// The input's first byte says which of the three files it is; the others are whole.
HALFLAB_FUZZ(input) {
  if (input.empty()) return;
  static const Record record;
  const std::string_view text(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  record.read_with(static_cast<std::size_t>(input.front()) % Record::names.size(), text);
}
