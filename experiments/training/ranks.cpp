#include "experiments/training/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>

#include "experiments/frame/crc32.h"
#include "experiments/frame/machine_information.h"
#include "sim/tensor/fingerprint.h"

namespace experiments {
namespace {

/// The exit code of a rank that is ready to train.
constexpr int ready = -1;

/// Characters of a host's name that other ranks hear of, and a zero.
constexpr std::size_t longest_name = 64;

/// Numbers that are as many for all.
std::array<double, longest_name / sizeof(double)> numbers_of_host() {
  std::array<char, longest_name> name{};
  host_name().copy(name.data(), name.size() - 1);
  return std::bit_cast<std::array<double, longest_name / sizeof(double)>>(name);
}

std::uint32_t checksum_of(const RunIdentity& run) {
  std::string text;
  for (const auto& [name, value] : run) text += fmt::format("{}\n{}\n", name, value);
  return crc32(std::as_bytes(std::span(text)));
}

/// "has batch '8', and rank 0 has '16'": in what they differ first; empty where in nothing.
std::string difference_in(const RunIdentity& run, const RunIdentity& of_rank_0) {
  if (run.empty() != of_rank_0.empty())
    return run.empty() ? "has nothing to train, and rank 0 has a run"
                       : "has a run, and rank 0 nothing to train";
  const auto difference = first_difference(run, of_rank_0);
  if (!difference) return {};
  return fmt::format("has {} {}, and rank 0 has {}", difference->name, difference->first, difference->second);
}

double fingerprint_of(const sim::Trainer& trainer) {
  sim::Fingerprint fingerprint;
  for (const sim::Tensor& weight : trainer.state().weights) fingerprint.add(weight);
  return fingerprint.value();
}

}  // namespace

Ranks::Ranks(sim::Wire& wire, Carrier carrier, Watch watch)
    : wire_(wire), carrier_(std::move(carrier)), exchange_(wire), watch_(std::move(watch)) {
  const auto own = numbers_of_host();
  const std::vector<double> all = wire.gather(own);
  for (std::size_t first = 0; first < all.size(); first += own.size()) {
    std::array<char, longest_name> name{};
    std::memcpy(name.data(), all.data() + first, name.size());
    hosts_.emplace_back(name.data());
  }
}

std::size_t Ranks::on_this_host() const {
  return static_cast<std::size_t>(std::ranges::count(hosts_, hosts_[rank()]));
}

std::string Ranks::hosts() const {
  std::map<std::string, std::size_t> counts;
  for (const std::string& host : hosts_) ++counts[host];
  std::vector<std::string> texts;
  for (const auto& [host, ranks] : counts) texts.push_back(fmt::format("{} {}", host, ranks));
  return fmt::format("{}", fmt::join(texts, ", "));
}

void Ranks::agree(const RunIdentity& run, int compare_every) {
  const Outcome outcome = meet(ready, "", run);
  stage_ = outcome.exit_code == 0 ? Stage::training : Stage::refused;
  if (outcome.exit_code != 0) throw std::invalid_argument(outcome.problem);
  compare_every_ = static_cast<std::uint64_t>(compare_every);
}

Ranks::Outcome Ranks::decline(int exit_code, const std::string& said) {
  stage_ = Stage::refused;
  return meet(exit_code, said, {});
}

Ranks::Outcome Ranks::meet(int exit_code, const std::string& said, const RunIdentity& run) {
  const std::string own = bytes_of(Checkpoint{.run = run});
  const std::vector<double> all =
      wire_.gather(std::vector{static_cast<double>(exit_code), static_cast<double>(checksum_of(run))});
  for (std::size_t rank = 0; rank < count(); ++rank) {
    if (all[2 * rank] <= 0) continue;
    const std::string problem = wire_.broadcast(said, rank);
    const int code = static_cast<int>(all[2 * rank]);
    return {code, rank == 0 ? problem : fmt::format("rank {} on {}: {}", rank, host_of(rank), problem)};
  }
  for (std::size_t rank = 1; rank < count(); ++rank) {
    if (all[2 * rank] == all[0] && all[2 * rank + 1] == all[1]) continue;
    const std::string others = wire_.broadcast(own, rank), first = wire_.broadcast(own, 0);
    return {2, fmt::format("rank {} on {} {}; allowed: the same on all ranks", rank, host_of(rank),
                           difference_in(checkpoint_from(others, "").run, checkpoint_from(first, "").run))};
  }
  return {0, ""};
}

sim::RevealedOrder Ranks::reveal(std::size_t elements, sim::AllReducePrecision precision) {
  try {
    return sim::reveal(wire_, elements, precision);
  } catch (const sim::NoOrder&) {
    stage_ = Stage::refused;
    throw;
  }
}

std::optional<sim::TrainerState> Ranks::share(const std::optional<sim::TrainerState>& state) {
  const std::string bytes = wire_.broadcast(state ? bytes_of(Checkpoint{.trainer = *state}) : "", 0);
  if (bytes.empty()) return std::nullopt;
  return checkpoint_from(bytes, "rank 0").trainer;
}

sim::StepRecord Ranks::step(sim::Trainer& trainer) {
  step_under_way_ = trainer.steps_done();
  if (watch_.begins) watch_.begins(step_under_way_);
  try {
    return trainer.step();
  } catch (const sim::RanksDiffer&) {
    stage_ = Stage::differing;
    throw;
  }
}

Interruption Ranks::after_step(const sim::Trainer& trainer, Interruption own, bool is_kept) {
  const auto interruption = static_cast<Interruption>(wire_.maximum(static_cast<double>(own)));
  if (is_kept || interruption == Interruption::checkpoint || trainer.steps_done() % compare_every_ == 0)
    compare(trainer);
  if (interruption != Interruption::none) stage_ = Stage::interrupted;
  return interruption;
}

void Ranks::compare(const sim::Trainer& trainer) {
  const std::uint64_t step = trainer.steps_done() - 1;
  const std::vector<std::size_t> odd = sim::odd_ranks(wire_.gather(std::vector{fingerprint_of(trainer)}));
  if (!odd.empty()) {
    stage_ = Stage::differing;
    throw sim::RanksDiffer(
        fmt::format("{} on {} {} other weights than the others after step {}{}", sim::ranks_text(odd),
                    host_of(odd.front()), odd.size() == 1 ? "has" : "have", step,
                    last_same_ ? fmt::format("; after step {} all had the same", *last_same_) : ""));
  }
  last_same_ = step;
}

}  // namespace experiments
