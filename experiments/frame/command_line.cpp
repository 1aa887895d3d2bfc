#include "experiments/frame/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cassert>
#include <ranges>

#include "experiments/frame/config_file.h"
#include "fp16/names.h"

namespace experiments {
namespace {

constexpr const char* help_outputs = "--help-outputs";

std::string shown(const Json& value) {
  if (value.is_string()) return value.string();
  if (!value.is_array()) return value.to_text();
  std::vector<std::string> parts;
  for (const Json& part : value.elements()) parts.push_back(shown(part));
  return fmt::format("{}", fmt::join(parts, ","));
}

/// "unknown option --stpes; did you mean --steps?", or all that are known where no name is near.
std::string unknown_message(std::string_view what, std::string_view name,
                            const std::vector<std::string>& known) {
  const std::optional<std::string> nearest = names::nearest_name(name, known);
  return nearest ? fmt::format("unknown {} {}; did you mean {}?", what, name, *nearest)
                 : fmt::format("unknown {} {}; allowed: {}", what, name, fmt::join(known, ", "));
}

/// "did you mean 'dynamic'? " for the first of the specs in `text` whose name is not one of `choices`; nothing
/// where no name is near.
std::string suggestion(const std::string& text, const std::vector<std::string>& choices) {
  for (const auto& part : std::views::split(text, ',')) {
    const std::string_view name = names::name_in({part.begin(), part.end()});
    if (std::ranges::find(choices, name) != choices.end()) continue;
    const std::optional<std::string> nearest = names::nearest_name(name, choices);
    return nearest ? fmt::format("did you mean '{}'? ", *nearest) : std::string();
  }
  return {};
}

}  // namespace

CommandLine::CommandLine(Program program, Families families)
    : program_(std::move(program)), families_(families) {}

CommandLine::Outcome CommandLine::parse(int argc, const char* const* argv, std::ostream& out) {
  const auto* const last = argv + argc;
  const auto* const end = std::find(argv + std::min(argc, 1), last, std::string_view("--"));  // of options
  require_values({argv + std::min(argc, 1), end});
  const std::string details = program_.details.empty() ? "" : fmt::format("\n\n{}\n", program_.details);
  CLI::App app(wrapped(program_.question + details, help_width), program_.name);
  declare(app);
  try {
    app.parse(static_cast<int>(end - argv), argv);
  } catch (const CLI::CallForHelp&) {
    out << app.help();
    return Outcome::answered;
  }
  if (has_outputs() && app.count(help_outputs) > 0) {
    out << text_of(program_.outputs);
    return Outcome::answered;
  }
  collect(app, {end == last ? last : end + 1, last});
  if (!listed_.empty()) {
    print_list(out);
    return Outcome::answered;
  }
  if (!config_file_.empty()) read_config();
  set_preset();
  if (quick_) set_quick_defaults();
  require_distinct_seeds();
  if (words_ != nullptr && words_->size() < fewest_words_) {
    throw UsageError(fewest_words_ == 1
                         ? fmt::format("{} is missing; at least one must be given", words_type_name_)
                         : fmt::format("{}: {} given; must be at least {}", words_type_name_,
                                       words_->size() == 1 ? "1 is" : fmt::format("{} are", words_->size()),
                                       fewest_words_));
  }
  return Outcome::parsed;
}

/// CLI11 would take the next word for a missing value, whatever it is.
void CommandLine::require_values(std::span<const char* const> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::size_t equals = word.find('=');
    const Binding* const binding = find(word.substr(0, equals));
    if (binding == nullptr || binding->type_name.empty()) continue;
    const bool joined = equals != std::string_view::npos;
    if (joined && equals + 1 < word.size()) continue;
    const char* const next = joined || i + 1 == words.size() ? nullptr : words[++i];
    if (next != nullptr && !std::string_view(next).starts_with("--")) continue;
    throw UsageError(fmt::format("{}: a value is missing{}; must be {}", binding->name,
                                 next == nullptr ? "" : fmt::format(" before '{}'", next), binding->allowed));
  }
}

void CommandLine::print_list(std::ostream& out) const {
  try {
    out << listing(families_, listed_);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--list: {}", error.what()));
  }
}

Json CommandLine::effective_options() const {
  Json options = Json::object();
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
  constexpr std::size_t help_column = 26, width = help_width - help_column;
  app.set_help_flag("-h,--help", "print this and exit");
  if (has_outputs())
    app.add_flag(help_outputs)->description("print what the names in the results mean, and exit");
  app.allow_extras();
  app.footer(footer());
  app.get_formatter()->column_width(help_column);
  // For --help only: an option that took the words would split "[a,b]" at the comma.
  if (words_ != nullptr)
    app.add_option(words_type_name_)->expected(0, -1)->description(wrapped(words_help_, width));
  for (const Binding& binding : bindings_) {
    if (binding.type_name.empty()) {
      app.add_flag(binding.name)->description(wrapped(binding.help, width));
      continue;
    }
    const Json value = binding.value();
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
            width));
  }
}

void CommandLine::collect(const CLI::App& app, std::span<const char* const> after_options) {
  if (words_ != nullptr) words_->clear();
  std::vector<std::string> words = app.remaining();
  for (const std::string& word : words) {
    if (word.starts_with('-'))
      throw UsageError(unknown_message("option", word.substr(0, word.find('=')), option_names()));
  }
  words.insert(words.end(), after_options.begin(), after_options.end());
  for (const std::string& word : words) {
    if (words_ == nullptr) {
      throw UsageError(
          fmt::format("unexpected argument '{}'; values follow the option they belong to, as in '{}'", word,
                      program_.example));
    }
    words_->push_back(word);
  }
  for (Binding& binding : bindings_) {
    const std::vector<std::string>& given = app.get_option(binding.name)->results();
    if (given.empty()) continue;
    if (given.size() > 1 && !binding.type_name.empty()) {
      throw UsageError(fmt::format("{}: given {} times; must be given once", binding.name, given.size()));
    }
    set(binding, given.back(), binding.name);
  }
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

void CommandLine::set_preset() {
  for (const Preset& preset : presets_) {
    if (preset.name != *preset_) continue;
    for (const auto& [option, value] : preset.values) {
      Binding* const binding = find(option);
      assert(binding != nullptr);
      if (!binding->given) binding->assign(value);
    }
  }
}

void CommandLine::set_quick_defaults() {
  for (Binding& binding : bindings_) {
    if (!binding.given && !binding.quick_default.empty()) binding.assign(binding.quick_default);
  }
}

/// Seeds are counted up from the first one, and there is none after 2^64 - 1.
void CommandLine::require_distinct_seeds() const {
  if (seed_ == nullptr || seeds_ == nullptr) return;
  const std::uint64_t last_first =
      std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(*seeds_ - 1);
  if (*seed_ <= last_first) return;
  throw UsageError(fmt::format("--seed: '{}' is not allowed with --seeds {}; must be an integer from 0 to {}",
                               *seed_, *seeds_, last_first));
}

std::string CommandLine::footer() const {
  const std::string example = fmt::format("Example:\n  {}\n", program_.example);
  return has_outputs()
             ? example + "\nExit code: 0 done, 1 a check failed, 2 wrong option or input, 130 interrupted."
             : example;
}

}  // namespace experiments
