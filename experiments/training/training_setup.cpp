#include "experiments/training/training_setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "experiments/frame/command_line.h"
#include "experiments/frame/parallel.h"
#include "experiments/training/data_parallel_options.h"
#include "experiments/training/gradient_record.h"
#include "experiments/training/memory_need.h"
#include "experiments/training/options.h"
#include "experiments/training/tensor_dump.h"
#include "sim/data/registry.h"
#include "sim/optimizers/registry.h"
#include "sim/schedules/registry.h"

namespace experiments {
namespace {

/// That of the model, where the optimizer is of the kind that it was chosen for.
double default_learning_rate(const sim::ModelRow& model, std::string_view optimizer) {
  const std::string own = names::parse_spec(std::string(model.optimizer)).name;
  const bool suits =
      sim::find_optimizer(own).normalises_gradients == sim::find_optimizer(optimizer).normalises_gradients;
  return suits ? model.learning_rate : sim::make_optimizer(optimizer)->learning_rate();
}

/// "images mlp, cnn; text lstm": the networks by the data they take.
std::string models_by_data() {
  std::string text;
  for (const sim::DataKind kind : {sim::DataKind::images, sim::DataKind::text, sim::DataKind::scenes}) {
    std::vector<std::string_view> names;
    for (const sim::ModelRow& row : sim::models()) {
      if (row.data == kind) names.push_back(row.name);
    }
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", sim::name_of(kind), fmt::join(names, ", "));
  }
  return text;
}

std::unique_ptr<sim::Dataset> load_data(const TrainingOptions& options, sim::DataKind kind) {
  try {
    return while_doing(fmt::format("reading --data '{}'", options.data), [&] {
      return sim::load_dataset(options.data,
                               {.kind = kind, .context = static_cast<std::size_t>(options.context)});
    });
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(
        fmt::format("--data: {}; models by data: {}", error.what(), models_by_data()));
  }
}

/// A model's own schedule may be cut short by few steps; what is asked for by name is meant.
void reject_endless_warmup(const TrainingOptions& options) {
  const auto [name, given] = names::parse_numeric_spec(options.schedule);
  for (const auto& [option, value] : sim::make_schedule(name, given)->options()) {
    if (option != "warmup_steps" || value <= *options.steps) continue;
    throw std::invalid_argument(fmt::format(
        "schedule '{}': warmup_steps = {} is longer than the run; allowed with --steps {}: at most {}", name,
        value, *options.steps, *options.steps));
  }
}

std::string_view name_of(const sim::AnyScaler& scaler) {
  return std::visit(
      [](const auto& kind) -> std::string_view {
        if constexpr (requires { kind.name(); })
          return kind.name();
        else
          return kind->name();
      },
      scaler);
}

/// Another one with the same options; one without a name in the registry is of an experiment's own, and takes what
/// none takes.
sim::AnyScaler same_again(const sim::AnyScaler& scaler) {
  if (const auto* unit = std::get_if<sim::UnitScaling>(&scaler)) return *unit;
  const names::NamedValues options = sim::options_of(scaler);
  try {
    return sim::make_any_scaler(name_of(scaler), {options.begin(), options.end()});
  } catch (const std::invalid_argument&) {
    return sim::make_any_scaler("none");
  }
}

void require_equal_parts(const TrainingBudget& budget, const sim::DataParallel& parallel) {
  if (static_cast<std::size_t>(budget.batch) % parallel.ranks == 0) return;
  throw std::invalid_argument(
      fmt::format("--batch: {} examples are not the same number on each of {} ranks; "
                  "allowed with --ranks {}: its multiples",
                  budget.batch, parallel.ranks, parallel.ranks));
}

void require_batch_norm(const sim::Model& model, std::string_view name, const sim::DataParallel& parallel) {
  if (!parallel.sync_batch_norm || !model.buffers().empty()) return;
  throw std::invalid_argument(fmt::format(
      "--sync-batch-norm: model '{}' has no batch norm; must be left out, or with one that has", name));
}

/// What there was before any run of this process took some of it.
const sim::AvailableMemory& memory_at_first() {
  static const sim::AvailableMemory available = sim::available_memory();
  return available;
}

/// What decides a run's memory besides the setup and the batch. Policies of one name may differ in their formats.
std::string kind_of_run(const RunChoice& choice, const sim::PrecisionPolicy& policy,
                        const sim::AnyScaler& scaler) {
  std::string kind = fmt::format("{} {} {} {} {} {}", choice.accumulation_steps > 1, choice.twin_every != 0,
                                 fp16::name_of(choice.twin_format), name_of(scaler), choice.parallel.ranks,
                                 choice.parallel.sync_batch_norm);
  for (const auto& [option, value] : sim::options_of(scaler)) kind += fmt::format(" {} {}", option, value);
  for (const auto& [role, value] : sim::roles_of(policy)) kind += fmt::format(" {} {}", role, value);
  return kind;
}

}  // namespace

void TrainingOptions::bind(CommandLine& command_line, int quick_steps) {
  add_model(command_line, model);
  bind_without_model(command_line, quick_steps);
}

void TrainingOptions::bind_without_model(CommandLine& command_line, int quick_steps) {
  add_data(command_line, data);
  add_optimizer(command_line, optimizer);
  add_schedule(command_line, schedule);
  add_learning_rate(command_line, learning_rate);
  add_batch(command_line, batch);
  command_line.add_steps(steps, quick_steps);
  command_line.add("--context", context, "tokens in a window of text", {.minimum = 2, .maximum = 65536});
  command_line.add_seed(seed);
  command_line.add_flag("--record", record,
                        "keep scale, overflow and largest gradient of every step, for halflab replay; with "
                        "micro-batches, ranks or several losses each backward pass is made in FP32, too");
  command_line.add(
      "--record-every", record_every,
      "steps from one to the next whose exponents a record keeps, at the cost of a backward pass in FP32",
      {.minimum = 1, .maximum = 1000000});
  command_line.add("--dump-tensors", dump_tensors,
                   "steps, such as 0,10,100, whose weights, gradients and batch are written as safetensors",
                   "STEPS");
}

sim::PrecisionPolicy policy_from_option(const std::string& policy) {
  return from_option("--policy", [&] { return sim::make_precision_policy(policy); });
}

void reject_loss_scale(const std::string& policy) {
  if (from_option("--policy", [&] { return names::parse_spec(policy); }).options.contains("loss_scale"))
    throw UsageError(fmt::format(
        "--policy: '{}' has a loss_scale, and --scalers is in force; must be one of them", policy));
}

TrainingSetup::TrainingSetup(TrainingOptions& options)
    : options_(options),
      model_spec_(from_option(options.model_option, [&] { return names::parse_spec(options.model); })),
      row_(*from_option(options.model_option, [&] { return &sim::find_model(model_spec_.name); })) {
  if (!options.record && options.record_every != TrainingOptions{}.record_every)
    throw UsageError("--record-every: is given without --record; must come with it");
  const names::GivenOptions model_options = from_option(options.model_option, [&] {
    names::GivenOptions given = names::numeric_options(model_spec_);
    row_.options(given);  // rejects them before data are loaded
    return given;
  });
  dataset_ = load_data(options, row_.data);
  model_ = from_option(options.model_option, [&] { return row_.make(*dataset_, model_options); });
  if (options.optimizer.empty()) options.optimizer = row_.optimizer;
  const bool schedule_given = !options.schedule.empty();
  if (!schedule_given) options.schedule = row_.schedule;
  const auto [optimizer, optimizer_options] =
      from_option("--optimizer", [&] { return names::parse_numeric_spec(options.optimizer); });
  if (const auto given = optimizer_options.find("learning_rate"); given != optimizer_options.end()) {
    if (options.learning_rate && *options.learning_rate != given->second)
      throw UsageError(fmt::format("--lr: {} is given beside --optimizer {}; must be given once",
                                   *options.learning_rate, options.optimizer));
    options.learning_rate = given->second;
  } else if (!options.learning_rate) {
    options.learning_rate =
        from_option("--optimizer", [&] { return default_learning_rate(row_, optimizer); });
  }
  if (!options.batch) options.batch = row_.batch;
  if (!options.steps) options.steps = row_.steps;
  if (schedule_given) from_option("--schedule", [&] { reject_endless_warmup(options); });
  if (options.dump_tensors.empty()) return;
  if (const std::uint64_t last = dumped_steps(options.dump_tensors).back();
      last >= static_cast<std::uint64_t>(*options.steps))
    throw UsageError(fmt::format("--dump-tensors: step {} is given; allowed: 0 to {}, by --steps {}", last,
                                 *options.steps - 1, *options.steps));
}

sim::Trainer TrainingSetup::trainer(const RunChoice& choice) const {
  return trainer(choice, policy_from_option(choice.policy));
}

sim::Trainer TrainingSetup::trainer(const RunChoice& choice, const sim::PrecisionPolicy& policy) const {
  auto scaler = from_option("--scalers", [&] {
    const auto [name, given] = names::parse_numeric_spec(choice.scaler);
    return sim::make_any_scaler(name, given);
  });
  return trainer(choice, policy, std::move(scaler), budget());
}

sim::Trainer TrainingSetup::trainer(const RunChoice& choice, const sim::PrecisionPolicy& policy,
                                    sim::AnyScaler scaler, const TrainingBudget& budget) const {
  require_equal_parts(budget, choice.parallel);
  require_batch_norm(*model_, row_.name, choice.parallel);
  require_memory(choice, policy, scaler, budget);
  sim::Trainer trainer = unchecked_trainer(choice, policy, std::move(scaler), budget);
  observe(trainer, choice, policy, budget);
  return trainer;
}

void TrainingSetup::observe(sim::Trainer& trainer, const RunChoice& choice,
                            const sim::PrecisionPolicy& policy, const TrainingBudget& budget) const {
  const std::vector<std::uint64_t> dumped =
      options_.dump_tensors.empty() ? std::vector<std::uint64_t>() : dumped_steps(options_.dump_tensors);
  const auto folder = [&](const char* name) { return options_.directory / *choice.keep_in / name; };
  const bool has_several_passes =
      choice.accumulation_steps > 1 || choice.parallel.ranks > 1 || model_->num_losses() > 1;
  const bool joins_in = !choice.keep_in && choice.exchange != nullptr;
  if (options_.record && (choice.keep_in || joins_in))
    trainer.observe(make_gradient_recorder(
        joins_in ? std::nullopt : std::optional(folder("record")),
        {.source = fmt::format("{}, policy {}, scaler {}, seed {}", description(choice), policy.name,
                               choice.scaler, choice.seed),
         .scaler = choice.scaler,
         .exponents_every = options_.record_every},
        has_several_passes));
  if (choice.keep_in && !dumped.empty())
    trainer.observe(
        make_tensor_dump(folder("tensors"), dumped,
                         sim::BatchSampler(*dataset_, choice.seed, static_cast<std::size_t>(budget.batch)),
                         choice.accumulation_steps));
}

void TrainingSetup::require_memory(const RunChoice& choice, const sim::PrecisionPolicy& policy,
                                   const sim::AnyScaler& scaler, const TrainingBudget& budget) const {
  const std::scoped_lock lock(forecasts_mutex_);
  const MemoryDemand demand{.run = fmt::format("{} under {}", options_.model, policy.name),
                            .batch = static_cast<std::uint64_t>(budget.batch),
                            .side_by_side = SideBySide::count(),
                            .available = memory_at_first()};
  const std::string kind = kind_of_run(choice, policy, scaler);
  auto known = forecasts_.find(kind);
  if (known == forecasts_.end()) {
    require_parameters_fit(demand, from_option("--optimizer", [&] {
                             return parameter_bytes(*model_, policy, options_.optimizer);
                           }));
    known = while_doing(
        fmt::format("trying a step of {} with two examples, where {} {}; allowed: a smaller network",
                    demand.run, bytes_text(demand.available.bytes), demand.available.bound),
        [&] { return forecasts_.emplace(kind, forecast(choice, policy, scaler, budget)).first; });
  }
  require_steps_fit(demand, known->second);
}

sim::MemoryForecast TrainingSetup::forecast(const RunChoice& given, const sim::PrecisionPolicy& policy,
                                            const sim::AnyScaler& scaler,
                                            const TrainingBudget& budget) const {
  RunChoice choice = given;
  // The third micro-batch finds what the second one found, and a twin what every other one does.
  choice.accumulation_steps = std::min<std::size_t>(choice.accumulation_steps, 2);
  choice.twin_every = std::min<std::size_t>(choice.twin_every, 1);
  // Nobody waits for a trial.
  sim::TrialWire nobody(given.exchange ? given.exchange->first_own() : 0, given.parallel.ranks);
  sim::OneRank alone(nobody);
  if (given.exchange) choice.exchange = &alone;
  const auto trainer_of = [&](std::size_t batch) {
    return unchecked_trainer(
        choice, policy, same_again(scaler),
        {.batch = static_cast<int>(batch), .steps = budget.steps, .learning_rate = budget.learning_rate});
  };
  return sim::MemoryForecast(trainer_of, choice.parallel.ranks);
}

sim::Trainer TrainingSetup::unchecked_trainer(const RunChoice& choice, const sim::PrecisionPolicy& policy,
                                              sim::AnyScaler scaler, const TrainingBudget& budget) const {
  auto optimizer = from_option("--optimizer", [&] {
    auto [name, given] = names::parse_numeric_spec(options_.optimizer);
    given.insert_or_assign("learning_rate", budget.learning_rate);
    return sim::make_optimizer(name, given, policy.update_arithmetic(choice.seed, choice.threads));
  });
  auto schedule = from_option("--schedule", [&] {
    auto [name, given] = names::parse_numeric_spec(options_.schedule);
    if (const auto warmup = given.find("warmup_steps"); warmup != given.end())
      warmup->second = std::round(warmup->second * budget.schedule_stretch);
    if (const auto period = given.find("period"); period != given.end())
      period->second = std::max(1.0, std::round(period->second * budget.schedule_stretch));
    return sim::make_schedule(name, given);
  });
  return sim::Trainer(*model_, *dataset_, policy, std::move(scaler), std::move(optimizer),
                      std::move(schedule),
                      {.batch = static_cast<std::size_t>(budget.batch),
                       .accumulation_steps = choice.accumulation_steps,
                       .steps = static_cast<std::uint64_t>(budget.steps),
                       .seed = choice.seed,
                       .twin_every = choice.twin_every,
                       .twin_format = choice.twin_format,
                       .statistics_every = choice.statistics_every,
                       .record_skips = choice.record_skips,
                       .clipping = choice.clipping,
                       .clip_before_unscale = choice.clip_before_unscale,
                       .threads = choice.threads,
                       .parallel = choice.parallel,
                       .exchange = choice.exchange});
}

std::string TrainingSetup::description(const RunChoice& choice) const {
  // The last part of a folder's path says enough, and is the same on every machine.
  const std::string data =
      std::filesystem::path(std::string(dataset_->name()) + "/").parent_path().filename().string();
  std::string text = fmt::format("{} on {}, {}, learning rate {}", options_.model, data, options_.optimizer,
                                 *options_.learning_rate);
  if (options_.schedule != "constant") text += fmt::format(", schedule {}", options_.schedule);
  text += fmt::format(", batch {}", *options_.batch);
  if (row_.data == sim::DataKind::text && options_.context != TrainingOptions{}.context)
    text += fmt::format(", context {}", options_.context);
  if (choice.accumulation_steps > 1)
    text += fmt::format(", {} micro-batches a step", choice.accumulation_steps);
  if (choice.clipping.max_norm) text += fmt::format(", norm clipped at {}", *choice.clipping.max_norm);
  if (choice.clipping.max_value) text += fmt::format(", values clipped at {}", *choice.clipping.max_value);
  if (choice.clip_before_unscale) text += " before unscaling";
  if (choice.parallel.ranks > 1) text += ", " + in_words(choice.parallel);
  return text;
}

std::string TrainingSetup::quality(const sim::Evaluation& evaluation) const {
  return model_->is_classifier() ? fmt::format("test accuracy {:.1f} %", 100 * evaluation.accuracy)
                                 : fmt::format("test loss {:.4f}", evaluation.loss);
}

std::string seeds_text(std::uint64_t first, int count) {
  if (count == 1) return fmt::format("seed {}", first);
  return fmt::format("seeds {} to {}", first, first + static_cast<std::uint64_t>(count - 1));
}

void train(sim::Trainer& trainer, int steps, Progress& progress) {
  for (int step = 0; step < steps; ++step) {
    while_doing(fmt::format("training, at step {} of {}", step + 1, steps), [&] { trainer.step(); });
    progress.tick();
  }
}

void record_settings(RunRecord& record, std::string_view kind, std::string_view name,
                     const names::NamedValues& options) {
  for (const auto& [option, value] : options)
    record.setting(fmt::format("{}.{}.{}", kind, name, option), value);
}

}  // namespace experiments
