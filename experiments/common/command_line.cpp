#include "experiments/common/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ranges>

#include "experiments/common/config_file.h"
#include "experiments/common/families.h"
#include "sim/registry.h"

namespace experiments {
namespace {

using nlohmann::ordered_json;

template <OptionNumber T>
std::optional<T> parse_number(std::string_view text, const Numeric<T>& numeric) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  const bool in_range = number <= numeric.maximum &&
                        (numeric.minimum_excluded ? number > numeric.minimum : number >= numeric.minimum);
  return in_range ? std::optional(number) : std::nullopt;
}

template <OptionNumber T>
std::string describe(const Numeric<T>& numeric) {
  const std::string noun = std::integral<T> ? "an integer" : "a number";
  const bool has_minimum = numeric.minimum != std::numeric_limits<T>::lowest() || std::unsigned_integral<T>;
  const bool has_maximum =
      numeric.maximum != std::numeric_limits<T>::max() || (std::integral<T> && has_minimum);
  if (has_minimum && has_maximum && !numeric.minimum_excluded) {
    return fmt::format("{} from {} to {}", noun, numeric.minimum, numeric.maximum);
  }
  std::string text = noun;
  if (has_minimum)
    text += fmt::format(" {} {}", numeric.minimum_excluded ? "above" : "of at least", numeric.minimum);
  if (has_maximum) text += fmt::format("{} at most {}", has_minimum ? " and" : " of", numeric.maximum);
  return text;
}

std::string shown(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> parts;
  for (const ordered_json& part : value) parts.push_back(shown(part));
  return fmt::format("{}", fmt::join(parts, ","));
}

/// "dynamic" of "dynamic:growth_interval=20".
std::string_view name_in(std::string_view spec) {
  return spec.substr(0, spec.find(':'));
}

/// The specs in a comma-separated list; nothing when the name of one is not in `allowed` or a spec stands
/// there twice.
std::optional<std::vector<std::string>> parse_names(const std::string& text,
                                                    const std::vector<std::string>& allowed) {
  if (text == "all") return allowed;
  std::vector<std::string> names;
  for (const auto& part : std::views::split(text, ',')) {
    const std::string spec(part.begin(), part.end());
    const bool known = std::ranges::find(allowed, name_in(spec)) != allowed.end();
    const bool repeated = std::ranges::find(names, spec) != names.end();
    if (!known || repeated) return std::nullopt;
    names.push_back(spec);
  }
  if (names.empty()) return std::nullopt;
  return names;
}

/// "unknown option --stpes; did you mean --steps?", or all that are known where no name is near.
std::string unknown_message(std::string_view what, std::string_view name,
                            const std::vector<std::string>& known) {
  const std::optional<std::string> nearest = sim::nearest_name(name, known);
  return nearest ? fmt::format("unknown {} {}; did you mean {}?", what, name, *nearest)
                 : fmt::format("unknown {} {}; allowed: {}", what, name, fmt::join(known, ", "));
}

/// "did you mean 'dynamic'? " for the first of the specs in `text` whose name is not one of `choices`; nothing
/// where no name is near.
std::string suggestion(const std::string& text, const std::vector<std::string>& choices) {
  for (const auto& part : std::views::split(text, ',')) {
    const std::string_view name = name_in(std::string_view(part.begin(), part.end()));
    if (std::ranges::find(choices, name) != choices.end()) continue;
    const std::optional<std::string> nearest = sim::nearest_name(name, choices);
    return nearest ? fmt::format("did you mean '{}'? ", *nearest) : std::string();
  }
  return {};
}

/// Lines of at most `width` characters, as far as words allow, none of which ends in a space.
std::string wrapped(std::string_view text, std::size_t width) {
  std::string result;
  for (const auto& line : std::views::split(text, '\n')) {
    std::size_t length = 0;
    for (const auto& word : std::views::split(std::string_view(line.begin(), line.end()), ' ')) {
      const std::string_view letters(word.begin(), word.end());
      if (letters.empty()) continue;
      const bool fits = length == 0 || length + 1 + letters.size() <= width;
      if (length > 0) result += fits ? ' ' : '\n';
      length = fits && length > 0 ? length + 1 + letters.size() : letters.size();
      result += letters;
    }
    result += '\n';
  }
  result.pop_back();
  return result;
}

}  // namespace

CommandLine::CommandLine(Program program) : program_(std::move(program)) {}

template <OptionNumber T, typename Field>
void CommandLine::bind_number(std::string name, Field& field, std::string help, const Numeric<T>& numeric) {
  bindings_.push_back({
      .name = std::move(name),
      .type_name = std::integral<T> ? "N" : "X",
      .help = std::move(help),
      .allowed = describe(numeric),
      .assign =
          [&field, numeric](const std::string& text) {
            const std::optional<T> number = parse_number(text, numeric);
            if (number) field = *number;
            return number.has_value();
          },
      .value = [&field]() -> ordered_json {
        if constexpr (std::same_as<Field, T>) {
          return field;
        } else {
          return field ? ordered_json(*field) : ordered_json();
        }
      },
      .quick_default = numeric.quick ? fmt::format("{}", *numeric.quick) : std::string(),
  });
}

template <OptionNumber T>
void CommandLine::add(std::string name, T& value, std::string help,
                      Numeric<std::type_identity_t<T>> numeric) {
  bind_number<T>(std::move(name), value, std::move(help), numeric);
}

template <OptionNumber T>
void CommandLine::add(std::string name, std::optional<T>& value, std::string help,
                      Numeric<std::type_identity_t<T>> numeric) {
  bind_number<T>(std::move(name), value, std::move(help), numeric);
}

template void CommandLine::add(std::string, int&, std::string, Numeric<int>);
template void CommandLine::add(std::string, std::int64_t&, std::string, Numeric<std::int64_t>);
template void CommandLine::add(std::string, std::uint64_t&, std::string, Numeric<std::uint64_t>);
template void CommandLine::add(std::string, float&, std::string, Numeric<float>);
template void CommandLine::add(std::string, double&, std::string, Numeric<double>);
template void CommandLine::add(std::string, std::optional<int>&, std::string, Numeric<int>);
template void CommandLine::add(std::string, std::optional<std::int64_t>&, std::string, Numeric<std::int64_t>);
template void CommandLine::add(std::string, std::optional<std::uint64_t>&, std::string,
                               Numeric<std::uint64_t>);
template void CommandLine::add(std::string, std::optional<float>&, std::string, Numeric<float>);
template void CommandLine::add(std::string, std::optional<double>&, std::string, Numeric<double>);

void CommandLine::add(std::string name, std::string& value, std::string help, std::string type_name) {
  const std::string allowed = fmt::format("given as {} {}", name, type_name);
  bindings_.push_back({
      .name = std::move(name),
      .type_name = std::move(type_name),
      .help = std::move(help),
      .allowed = allowed,
      .assign =
          [&value](const std::string& text) {
            value = text;
            return !text.empty();
          },
      .value = [&value] { return ordered_json(value); },
  });
}

void CommandLine::add_flag(std::string name, bool& value, std::string help) {
  bindings_.push_back({
      .name = std::move(name),
      .type_name = "",
      .help = std::move(help),
      .allowed = "true or false",
      .assign =
          [&value](const std::string& text) {
            value = text == "true";
            return value || text == "false";
          },
      .value = [&value] { return ordered_json(value); },
  });
}

void CommandLine::bind_choice(std::string name, std::string& value, std::vector<std::string> names,
                              std::string help) {
  bindings_.push_back({
      .name = std::move(name),
      .type_name = "NAME",
      .help = std::move(help),
      .allowed = fmt::format("one of {}", fmt::join(names, ", ")),
      .assign =
          [&value, names](const std::string& text) {
            value = text;
            return std::ranges::find(names, name_in(text)) != names.end();
          },
      .value = [&value] { return ordered_json(value); },
      .choices = names,
  });
}

void CommandLine::add_choice(std::string name, std::string& value, std::string_view family,
                             std::string help) {
  bind_choice(std::move(name), value, names_in(family), fmt::format("{}: {}", help, names_by_kind(family)));
}

void CommandLine::add_choices(std::string name, std::vector<std::string>& values, std::string_view family,
                              std::string help) {
  const std::vector<std::string> names = names_in(family);
  bindings_.push_back({
      .name = std::move(name),
      .type_name = "A,B|all",
      .help = fmt::format("{}: {}", help, names_by_kind(family)),
      .allowed =
          fmt::format("all, or names separated by commas, each once, out of {}", fmt::join(names, ", ")),
      .assign =
          [&values, names](const std::string& text) {
            const std::optional<std::vector<std::string>> parsed = parse_names(text, names);
            if (parsed) values = *parsed;
            return parsed.has_value();
          },
      .value = [&values] { return ordered_json(values); },
      .choices = names,
  });
}

void CommandLine::add_words(std::string type_name, std::vector<std::string>& words, std::string help) {
  words_ = &words;
  words_type_name_ = std::move(type_name);
  words_help_ = std::move(help);
}

void CommandLine::add_data(std::string& data) {
  const std::vector<std::string> names = names_in("data");
  bindings_.push_back({
      .name = "--data",
      .type_name = "NAME|PATH",
      .help = fmt::format("{}; or a directory of IDX files, named as MNIST's, .gz or not; or a text file",
                          fmt::join(names, ", ")),
      .allowed = fmt::format("one of {}, or an existing directory or file", fmt::join(names, ", ")),
      .assign =
          [&data, names](const std::string& text) {
            data = text;
            std::error_code error;
            return std::ranges::find(names, text) != names.end() || std::filesystem::exists(text, error);
          },
      .value = [&data] { return ordered_json(data); },
      .choices = names,
  });
}

void CommandLine::add_model(std::string& model) {
  add_choice("--model", model, "models", "network to train, with options as mlp:hidden1=64");
}

void CommandLine::add_policy(std::string& policy) {
  add_choice("--policy", policy, "policies",
             "precision policy, with overrides as O2:keep_batchnorm_fp32=false");
}

void CommandLine::add_scalers(std::vector<std::string>& scalers) {
  add_choices("--scalers", scalers, "scalers",
              "loss scalers to compare, with options as dynamic:growth_interval=20:init_scale=256");
}

void CommandLine::add_optimizer(std::string& optimizer) {
  add_choice("--optimizer", optimizer, "optimizers",
             "optimizer, with options as adamw:weight_decay=0.1 (default: the model's own)");
}

void CommandLine::add_schedule(std::string& schedule) {
  add_choice("--schedule", schedule, "schedules",
             "learning rate over the run, as cosine:warmup_steps=50 (default: the model's own)");
}

void CommandLine::add_batch(std::optional<int>& batch) {
  add("--batch", batch, "examples in a batch (default: the model's own)", {.minimum = 1, .maximum = 65536});
}

void CommandLine::add_learning_rate(std::optional<double>& learning_rate) {
  add("--lr", learning_rate,
      "learning rate (default: the model's own, or its default for an optimizer of another kind)",
      {.minimum = 0, .maximum = 1000, .minimum_excluded = true});
}

void CommandLine::add_steps(int& steps, std::optional<int> quick) {
  add("--steps", steps, "training steps", {.minimum = 1, .maximum = 1'000'000, .quick = quick});
}

void CommandLine::add_steps(std::optional<int>& steps, std::optional<int> quick) {
  add("--steps", steps, "training steps (default: the model's own)",
      {.minimum = 1, .maximum = 1'000'000, .quick = quick});
}

void CommandLine::add_seed(std::uint64_t& seed) {
  add("--seed", seed, "key of all random numbers");
}

void CommandLine::add_seeds(int& seeds, std::optional<int> quick) {
  add("--seeds", seeds, "runs with different seeds", {.minimum = 1, .maximum = 1000, .quick = quick});
}

void CommandLine::add_twin_every(int& twin_every, std::optional<int> quick) {
  add("--twin-every", twin_every, "steps from one comparison with the FP32 twin to the next",
      {.minimum = 1, .maximum = 1'000'000, .quick = quick});
}

void CommandLine::add_checkpoint_every(int& checkpoint_every) {
  add("--checkpoint-every", checkpoint_every,
      "steps from one checkpoint to the next, from which the same command goes on after a kill; 0 = none",
      {.minimum = 0, .maximum = 1'000'000});
}

void CommandLine::add_quick() {
  add_flag("--quick", quick_, "a run of seconds: smaller defaults, given values stay");
}

void CommandLine::add_config() {
  add("--config", config_file_, "TOML file with option names as keys; the command line goes first",
      "FILE.toml");
  bindings_.back().in_manifest = false;
}

void CommandLine::add_list() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  const std::string help =
      fmt::format("print a family, or of one of its names the options, as models:mlp, and exit: {}",
                  fmt::join(names, ", "));
  bind_choice("--list", listed_, std::move(names), help);
  bindings_.back().type_name = "FAMILY[:NAME]";
  bindings_.back().in_manifest = false;
}

CommandLine::Outcome CommandLine::parse(int argc, const char* const* argv, std::ostream& out) {
  CLI::App app(program_.question, program_.name);
  declare(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    out << app.help();
    return Outcome::answered;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();
    const std::string name = message.substr(0, message.find(':'));
    throw UsageError(fmt::format("{}: a value is missing; must be {}", name, find(name)->allowed));
  }
  collect(app);
  if (!listed_.empty()) {
    print_list(out);
    return Outcome::answered;
  }
  if (!config_file_.empty()) read_config();
  if (quick_) set_quick_defaults();
  if (words_ != nullptr && words_->empty()) {
    throw UsageError(fmt::format("{} is missing; at least one must be given", words_type_name_));
  }
  return Outcome::parsed;
}

void CommandLine::print_list(std::ostream& out) const {
  try {
    out << listing(listed_);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--list: {}", error.what()));
  }
}

ordered_json CommandLine::effective_options() const {
  ordered_json options = ordered_json::object();
  for (const Binding& binding : bindings_) {
    if (binding.in_manifest) options[binding.name.substr(2)] = binding.value();
  }
  return options;
}

CommandLine::Binding* CommandLine::find(std::string_view name) {
  const auto binding = std::ranges::find(bindings_, name, &Binding::name);
  return binding == bindings_.end() ? nullptr : &*binding;
}

void CommandLine::set(Binding& binding, const std::string& text, std::string_view origin) {
  if (!binding.assign(text)) {
    throw UsageError(fmt::format("{}: '{}' is not allowed; {}must be {}", origin, text,
                                 suggestion(text, binding.choices), binding.allowed));
  }
  binding.given = true;
}

std::vector<std::string> CommandLine::option_names() const {
  std::vector<std::string> names;
  for (const Binding& binding : bindings_) names.push_back(binding.name);
  return names;
}

std::vector<std::string> CommandLine::config_keys() const {
  std::vector<std::string> keys;
  for (const Binding& binding : bindings_) {
    if (binding.in_manifest) keys.push_back(binding.name.substr(2));
  }
  return keys;
}

/// CLI11 sees every option as text: it splits the command line and lays out --help, the bindings judge the
/// values.
void CommandLine::declare(CLI::App& app) const {
  constexpr std::size_t help_column = 26, help_width = 100 - help_column;
  app.set_help_flag("-h,--help", "print this and exit");
  app.allow_extras();
  app.footer(footer());
  app.get_formatter()->column_width(help_column);
  if (words_ != nullptr)
    app.add_option(words_type_name_)->expected(1, -1)->allow_extra_args()->description(words_help_);
  for (const Binding& binding : bindings_) {
    if (binding.type_name.empty()) {
      app.add_flag(binding.name)->description(wrapped(binding.help, help_width));
      continue;
    }
    const ordered_json value = binding.value();
    std::string defaults =
        value.is_null() || shown(value).empty() ? "" : fmt::format("default {}", shown(value));
    if (!binding.quick_default.empty()) {
      defaults += fmt::format("{}{} with --quick", defaults.empty() ? "" : "; ", binding.quick_default);
    }
    const char separator = binding.help.find('\n') == std::string::npos ? ' ' : '\n';
    app.add_option(binding.name)
        ->type_name(binding.type_name)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->description(wrapped(
            defaults.empty() ? binding.help : fmt::format("{}{}({})", binding.help, separator, defaults),
            help_width));
  }
}

void CommandLine::collect(const CLI::App& app) {
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with('-')) {
      throw UsageError(
          fmt::format("unexpected argument '{}'; values follow the option they belong to", word));
    }
    throw UsageError(unknown_message("option", word.substr(0, word.find('=')), option_names()));
  }
  for (Binding& binding : bindings_) {
    const std::vector<std::string>& given = app.get_option(binding.name)->results();
    if (given.empty()) continue;
    if (given.size() > 1 && !binding.type_name.empty()) {
      throw UsageError(fmt::format("{}: given {} times; must be given once", binding.name, given.size()));
    }
    if (!binding.type_name.empty() && given.back().starts_with("--")) {
      throw UsageError(fmt::format("{}: a value is missing before '{}'; must be {}", binding.name,
                                   given.back(), binding.allowed));
    }
    set(binding, given.back(), binding.name);
  }
  if (words_ != nullptr) *words_ = app.get_option(words_type_name_)->results();
}

void CommandLine::read_config() {
  std::vector<ConfigEntry> entries;
  try {
    entries = read_config_file(config_file_);
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("--config: {}; must be a TOML file of KEY = VALUE", error.what()));
  }
  for (const ConfigEntry& entry : entries) {
    const std::string place = fmt::format("{}:{}", config_file_, entry.line);
    Binding* const binding = find("--" + entry.key);
    if (binding == nullptr || !binding->in_manifest)
      throw UsageError(fmt::format("{}: {}", place, unknown_message("key", entry.key, config_keys())));
    if (!binding->given) set(*binding, entry.value, fmt::format("{}: {}", place, entry.key));
  }
}

void CommandLine::set_quick_defaults() {
  for (Binding& binding : bindings_) {
    if (!binding.given && !binding.quick_default.empty()) binding.assign(binding.quick_default);
  }
}

std::string CommandLine::footer() const {
  std::string text = fmt::format("Example:\n  {}\n", program_.example);
  if (program_.summary_keys.empty()) return text;
  std::size_t width = 0;
  for (const auto& [name, meaning] : program_.summary_keys) width = std::max(width, name.size());
  text += "\nKeys of summary.json:\n";
  for (const auto& [name, meaning] : program_.summary_keys)
    text += fmt::format("  {:<{}}  {}\n", name, width, meaning);
  text += "\nExit code: 0 done, 1 a check failed, 2 wrong option or input, 130 interrupted.";
  return text;
}

}  // namespace experiments
