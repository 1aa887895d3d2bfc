#pragma once
/// The wire between ranks that an MPI library is.

#include <string>
#include <string_view>

#include "experiments/training/mpi/module.h"
#include "experiments/training/mpi/supervisor.h"
#include "sim/trainer/wire.h"

namespace experiments {

/// Opens the module of an MPI library and starts that. One in a process.
class MpiWire final : public sim::Wire {
 public:
  /// `library`: "openmpi" or "mpich"; `progress` is told of its calls and must outlive it. Throws std::runtime_error, one
  /// line, where there is none.
  MpiWire(const std::string& library, RankProgress& progress);
  /// Ends the library, after which no rank is waited for.
  ~MpiWire() override;
  MpiWire(const MpiWire&) = delete;
  MpiWire& operator=(const MpiWire&) = delete;

  std::string vendor() const { return module_->vendor; }
  /// The first line of what the library says of itself.
  std::string version() const;
  /// Ends all ranks with this exit code.
  [[noreturn]] void abort(int exit_code);

  std::size_t rank() const override { return rank_; }
  std::size_t ranks() const override { return ranks_; }
  void send_receive(std::span<const std::byte> out, std::optional<std::size_t> to, std::span<std::byte> in,
                    std::optional<std::size_t> from) override;
  std::vector<double> gather(std::span<const double> own) override;
  double maximum(double own) override;
  std::string broadcast(std::string bytes, std::size_t from) override;
  void sum(std::span<std::uint16_t> halves) override;
  void sum(std::span<float> floats) override;

 private:
  void require(int code, std::string_view what) const;

  const MpiModule* module_;
  RankProgress& progress_;
  std::size_t rank_, ranks_;
};

}  // namespace experiments
