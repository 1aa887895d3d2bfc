#include "experiments/memory_anatomy/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "experiments/frame/text_table.h"

namespace experiments::memory_anatomy {
namespace {

std::string gib(std::uint64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / 0x1p30);
}

std::string size_text(std::uint64_t bytes) {
  return bytes < std::uint64_t{1} << 30 ? fmt::format("{:.2f} MiB", static_cast<double>(bytes) / 0x1p20)
                                        : gib(bytes) + " GiB";
}

/// Of the policies that the step's memory is told for.
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

std::string batch_table(const std::vector<Fit>& fits) {
  TextTable table{.columns = {"policy", "recomputation", "largest batch", "GiB", "of these activations"},
                  .rows = {}};
  for (const Fit& fit : fits) {
    table.rows.push_back({fit.policy, std::string(name_of(fit.recomputation)),
                          fmt::format("{}", fit.found.batch), gib(fit.found.memory.total()),
                          gib(fit.found.memory.activations)});
  }
  return table.text();
}

std::string class_table(const ClassShares& network, const ClassShares& encoder) {
  TextTable table{
      .columns = {"operator class", "FLOP", "time", "BERT encoder: FLOP", "published", "time", "published"},
      .rows = {}};
  for (std::size_t i = 0; i < network.size(); ++i) {
    table.rows.push_back({std::string(name_of(sim::operator_classes[i])), percent(network[i].flop_share),
                          percent(network[i].time_share), percent(encoder[i].flop_share),
                          percent(published_flop_percent[i] / 100), percent(encoder[i].time_share),
                          percent(published_time_percent[i] / 100)});
  }
  return table.text();
}

std::string step_sentence(const Step& step, const Options& options) {
  const auto tera = [](std::uint64_t flop) { return static_cast<double>(flop) / 1e12; };
  const sim::StepMemory memory = sim::step_memory(step.typed, names::parse_spec(options.optimizer));
  return fmt::format(
      "{}: {} parameters. A step under {} with {} holds {}, of which {} are activations, and takes "
      "{:.4g} TFLOP of products forward and {:.4g} backward.",
      step.setting, step.network.parameter_count(), options.policy, options.optimizer,
      size_text(memory.total()), size_text(memory.activations), tera(step.flop.forward),
      tera(step.flop.backward));
}

/// Whether 16 bits halve the memory.
std::string saving_sentence(const std::vector<PolicyMemory>& memories) {
  const auto of = [&](std::string_view policy) -> const sim::StepMemory& {
    return std::ranges::find(memories, policy, &PolicyMemory::policy)->memory;
  };
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return percent(static_cast<double>(part) / static_cast<double>(whole));
  };
  const sim::StepMemory& fp32 = of("fp32");
  std::string text = "Of the bytes of FP32 a step takes";
  for (const char* policy : {"O1", "O2", "O3"}) {
    const sim::StepMemory& memory = of(policy);
    text +=
        fmt::format("{} {} under {} (activations {})", text.ends_with(')') ? "," : "",
                    share(memory.total(), fp32.total()), policy, share(memory.activations, fp32.activations));
  }
  return text +
         ": activations shrink with the format, while a policy with FP32 masters keeps more for each weight "
         "than "
         "FP32 does.";
}

/// What the published figures say of the formulas.
std::string published_sentence(const std::vector<PublishedRow>& rows, const ClassShares& encoder) {
  const PublishedRow& bert = *std::ranges::find(rows, "bert_large.step_mib", &PublishedRow::key);
  return fmt::format(
      "BERT-large in FP32 at batch 4 and 512 tokens: {:.0f} MiB predicted with CUDA's kernels, {:.0f} "
      "published. Left out, and so to be sought in the {} between them, are temporaries, gradients of "
      "activations on their way and what the allocator keeps. All but contractions have {} of its encoder's "
      "FLOP and by the roofline {} of the time ({} published, measured); between normalisations and "
      "element-wise work the roofline divides it otherwise, as it lets both run at full bandwidth.",
      bert.ours, bert.published, percent(1 - bert.ratio()), percent(1 - encoder[0].flop_share),
      percent(1 - encoder[0].time_share), percent(1 - published_time_percent[0] / 100));
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
  const ClassShares encoder = encoder_shares();
  record.verdict(step_sentence(step, options));
  record.verdict(parameter_table(found.costs, found.memories, names::name_in(options.optimizer)));
  record.verdict(saving_sentence(found.memories));
  if (!found.fits.empty()) {
    record.verdict(
        fmt::format("What fits on {} beside {:.0f} MiB of the device's own kernels, at most, as temporaries "
                    "are left out:",
                    step.card.description, options.context_mib));
    record.verdict(batch_table(found.fits));
  }
  record.verdict(class_table(class_shares(step.typed, step.card), encoder));
  record.verdict(published_sentence(found.published, encoder));
  record.verdict(allocation_sentence(found.allocations));
}

}  // namespace experiments::memory_anatomy
