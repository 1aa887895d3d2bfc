#include "experiments/training/mpi/wire.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "experiments/frame/installation.h"
#include "experiments/frame/machine_information.h"
#include "fp16/bulk.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;

/// In lib/halflab/ below the prefix where it was installed, in a build in lib/.
fs::path file_of_module(const std::string& library) {
  const fs::path libraries = prefix_of(program_folder()) / "lib";
  const std::string name = fmt::format("halflab_mpi_{}.so", library);
  const fs::path installed = libraries / "halflab" / name;
  return fs::exists(installed) ? installed : libraries / name;
}

[[noreturn]] void throw_unavailable(const std::string& library, const std::string& reason) {
  throw std::runtime_error(
      fmt::format("--mpi: {} cannot be loaded on {} ({})", library, host_name(), reason));
}

/// An MPI library looks its own symbols up in all that is loaded, and stays until the process ends.
const MpiModule* open_module(const std::string& library) {
  const fs::path file = file_of_module(library);
  if (!fs::exists(file))
    throw_unavailable(library,
                      fmt::format("there is no '{}'; must be a Halflab built in a checkout or installed "
                                  "from that build, as packages and wheels have no MPI",
                                  file.string()));
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (handle == nullptr) throw_unavailable(library, ::dlerror());
  const auto module = reinterpret_cast<decltype(&halflab_mpi_module)>(::dlsym(handle, "halflab_mpi_module"));
  const MpiModule* const found = module == nullptr ? nullptr : module();
  if (found == nullptr)
    throw_unavailable(
        library,
        "it was not found when this Halflab was configured; must be installed with its development "
        "files, and Halflab built again");
  return found;
}

void add_halves(const std::uint16_t* term, std::uint16_t* sum, std::size_t count) {
  fp16::add<fp16::binary16>({sum, count}, {term, count}, {sum, count});
}

int rank_or_nobody(std::optional<std::size_t> rank) {
  return rank ? static_cast<int>(*rank) : -1;
}

}  // namespace

MpiWire::MpiWire(const std::string& library, RankProgress& progress)
    : module_(open_module(library)), progress_(progress) {
  require(module_->start(add_halves), "starting");
  rank_ = static_cast<std::size_t>(module_->rank());
  ranks_ = static_cast<std::size_t>(module_->ranks());
}

MpiWire::~MpiWire() {
  const CallUnderWay call(progress_);
  module_->end();
}

std::string MpiWire::version() const {
  const std::string_view text = module_->version();
  std::string line(text.substr(0, text.find('\n')));
  std::ranges::replace(line, '\t', ' ');
  return line;
}

void MpiWire::abort(int exit_code) {
  module_->abort(exit_code);
  std::_Exit(exit_code);
}

void MpiWire::send_receive(std::span<const std::byte> out, std::optional<std::size_t> to,
                           std::span<std::byte> in, std::optional<std::size_t> from) {
  const CallUnderWay call(progress_);
  require(module_->send_receive(out.data(), out.size(), rank_or_nobody(to), in.data(), in.size(),
                                rank_or_nobody(from)),
          "exchanging gradients");
}

std::vector<double> MpiWire::gather(std::span<const double> own) {
  const CallUnderWay call(progress_);
  std::vector<double> all(own.size() * ranks_);
  require(module_->gather(own.data(), own.size(), all.data()), "gathering numbers");
  return all;
}

double MpiWire::maximum(double own) {
  const CallUnderWay call(progress_);
  require(module_->maximum(&own), "comparing numbers");
  return own;
}

std::string MpiWire::broadcast(std::string bytes, std::size_t from) {
  const CallUnderWay call(progress_);
  std::uint64_t size = bytes.size();
  require(module_->broadcast(&size, sizeof size, static_cast<int>(from)), "sharing bytes");
  bytes.resize(size);
  require(module_->broadcast(bytes.data(), bytes.size(), static_cast<int>(from)), "sharing bytes");
  return bytes;
}

void MpiWire::sum(std::span<std::uint16_t> halves) {
  const CallUnderWay call(progress_);
  require(module_->sum_halves(halves.data(), halves.size()), "summing halves");
}

void MpiWire::sum(std::span<float> floats) {
  const CallUnderWay call(progress_);
  require(module_->sum_floats(floats.data(), floats.size()), "summing floats");
}

void MpiWire::require(int code, std::string_view what) const {
  if (code == 0) return;
  std::array<char, 512> text{};
  module_->error_text(code, text.data(), text.size());
  throw std::runtime_error(fmt::format("{} failed in {}: {}", what, module_->vendor, text.data()));
}

}  // namespace experiments
