#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/text_table.h"
#include "experiments/memory_anatomy/findings.h"

namespace experiments::memory_anatomy {
namespace {

std::string gib(std::uint64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / 0x1p30);
}

/// "9.77 GiB", in three digits.
std::string size_text(std::uint64_t bytes) {
  const bool is_small = bytes < std::uint64_t{1} << 30;
  return fmt::format("{:.3g} {}", static_cast<double>(bytes) / (is_small ? 0x1p20 : 0x1p30),
                     is_small ? "MiB" : "GiB");
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  return percent(static_cast<double>(part) / static_cast<double>(whole));
}

/// "335 million", in three digits.
std::string count_text(std::uint64_t count) {
  const auto number = static_cast<double>(count);
  if (count < 1'000'000) return fmt::format("{}", count);
  return count < 1'000'000'000 ? fmt::format("{:.3g} million", number / 1e6)
                               : fmt::format("{:.3g} billion", number / 1e9);
}

/// "cast weights" of "cast_weights".
std::string spaced(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', ' ');
  return text;
}

/// A parameter under the policies that the step's memory is told for.
std::string parameter_table(const std::vector<ParameterCost>& costs, const std::vector<PolicyMemory>& shown,
                            std::string_view optimizer) {
  TextTable table{.columns = {"bytes per parameter"}, .rows = {}};
  for (const sim::MemoryRoleOfStep& role : parameter_roles()) table.columns.push_back(spaced(role.name));
  table.columns.insert(table.columns.end(), {"total", "inference"});
  for (const ParameterCost& cost : costs) {
    if (cost.optimizer != optimizer ||
        std::ranges::find(shown, cost.policy, &PolicyMemory::policy) == shown.end())
      continue;
    std::vector<std::string>& row = table.rows.emplace_back(std::vector{cost.policy});
    const auto add = [&](std::uint64_t bytes) { row.push_back(fmt::format("{:.4g}", cost.bytes(bytes))); };
    for (const sim::MemoryRoleOfStep& role : parameter_roles()) add(cost.memory.*role.bytes);
    add(cost.memory.total());
    add(cost.memory.inference());
  }
  return table.text();
}

std::string batch_text(std::uint64_t batch) {
  if (batch == 0) return "none; 1 takes";
  return fmt::format("{}{}", batch, batch == sim::largest_tried_batch ? " or more" : "");
}

std::string batch_table(const std::vector<Fit>& fits) {
  TextTable table{.columns = {"policy", "recomputation", "largest batch", "GiB", "of these activations"},
                  .rows = {}};
  for (const Fit& fit : fits) {
    table.rows.push_back({fit.policy, std::string(name_of(fit.recomputation)), batch_text(fit.found.batch),
                          gib(fit.found.memory.total()), gib(fit.found.memory.activations)});
  }
  return table.text();
}

/// With what is published of BERT's encoder beside it, or without.
std::string class_table(const ClassShares& network, const std::optional<ClassShares>& encoder) {
  TextTable table{.columns = {"operator class", "FLOP", "time"}, .rows = {}};
  if (encoder)
    table.columns.insert(table.columns.end(), {"BERT encoder: FLOP", "published", "time", "published"});
  for (std::size_t i = 0; i < network.size(); ++i) {
    std::vector<std::string>& row =
        table.rows.emplace_back(std::vector{std::string(name_of(sim::operator_classes[i])),
                                            percent(network[i].flop_share), percent(network[i].time_share)});
    if (encoder)
      row.insert(row.end(), {percent((*encoder)[i].flop_share), percent(published_flop_percent[i] / 100),
                             percent((*encoder)[i].time_share), percent(published_time_percent[i] / 100)});
  }
  return table.text();
}

/// Where the bytes and the time of the step go.
std::string answer(const Step& step, const Options& options) {
  const sim::StepMemory memory = sim::step_memory(step.typed, names::parse_spec(options.optimizer));
  const ClassShares shares = class_shares(step.typed, step.card);
  return fmt::format(
      "A training step of {}, {} parameters, under {} with {} holds {}, {} of it activations. Contractions "
      "are {} of its "
      "operations and, "
      "by the roofline of {}, {} of its time.",
      step.setting, count_text(step.network.parameter_count()), options.policy, options.optimizer,
      size_text(memory.total()), share(memory.activations, memory.total()), percent(shares[0].flop_share),
      card_text(options), percent(shares[0].time_share));
}

/// What 16 bits save.
std::string saving_sentence(const std::vector<PolicyMemory>& memories) {
  const auto against_fp32 = [&](auto bytes) {
    const auto of = [&](std::string_view policy) {
      return bytes(std::ranges::find(memories, policy, &PolicyMemory::policy)->memory);
    };
    return fmt::format("{}, {} and {}", share(of("O1"), of("fp32")), share(of("O2"), of("fp32")),
                       share(of("O3"), of("fp32")));
  };
  using Memory = sim::StepMemory;
  return fmt::format(
      "Of the bytes of FP32 a step takes {} under O1, O2 and O3: of what it keeps for each weight {}, of "
      "activations {}. Casts count beside what is cast, masters beside the model's weights.",
      against_fp32([](const Memory& memory) { return memory.total(); }),
      against_fp32([](const Memory& memory) { return memory.fixed(); }),
      against_fp32([](const Memory& memory) { return memory.activations; }));
}

/// What the published figures say of the formulas.
std::string published_sentence(const std::vector<PublishedRow>& rows) {
  const PublishedRow& bert = *std::ranges::find(rows, "bert_large.step_mib", &PublishedRow::key);
  return fmt::format(
      "The formulas give {} of the memory published for BERT-large in FP32 at batch 4 and 512 tokens. Left "
      "out are "
      "temporaries, gradients of activations on their way and what the allocator keeps. Between "
      "normalisations and "
      "element-wise work the roofline divides the time otherwise than was measured, as it lets both run at "
      "full "
      "bandwidth.",
      percent(bert.ratio()));
}

std::string allocation_sentence(const std::vector<Allocation>& rows) {
  const auto exact = std::ranges::count_if(
      rows, [](const Allocation& row) { return row.predicted_bytes == row.allocated_bytes; });
  std::uint64_t activations = 0, needed = 0;
  for (const Allocation& row : rows) {
    if (row.role != sim::MemoryRole::activations) continue;
    activations += row.allocated_bytes;
    needed += row.needed_bytes;
  }
  return fmt::format(
      "Training steps of the simulator: {} of {} peaks by model, policy and role are to the byte what the "
      "formulas for its tape predict. It keeps {:.2f} times the activations that backward needs.",
      exact, rows.size(), static_cast<double>(activations) / static_cast<double>(needed));
}

}  // namespace

void write_verdict(RunRecord& record, const Step& step, const Options& options, const Findings& found) {
  record.verdict(answer(step, options));
  record.verdict(parameter_table(found.costs, found.memories, names::name_in(options.optimizer)));
  record.verdict(saving_sentence(found.memories));
  if (!found.fits.empty()) {
    record.verdict(
        fmt::format("What fits on {} beside {:.0f} MiB of the device's own kernels, at most, as temporaries "
                    "are left out:",
                    card_text(options), options.context_mib));
    record.verdict(batch_table(found.fits));
  }
  const ClassShares shares = class_shares(step.typed, step.card);
  if (std::ranges::count(shipped_networks(), names::name_in(options.network)) == 0)
    return record.verdict(class_table(shares, std::nullopt));
  // What makes the formulas worth believing.
  record.verdict(class_table(shares, encoder_shares()));
  record.verdict(published_sentence(found.published));
  record.verdict(allocation_sentence(found.allocations));
}

}  // namespace experiments::memory_anatomy
