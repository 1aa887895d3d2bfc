#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <ranges>
#include <span>
#include <stdexcept>
#include <utility>

#include "experiments/frame/command_line.h"
#include "fp16/names.h"

namespace experiments {
namespace {

template <OptionNumber T>
std::optional<T> parse_number(std::string_view text, const Numeric<T>& numeric) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  const bool in_range = number <= numeric.maximum &&
                        (numeric.minimum_excluded ? number > numeric.minimum : number >= numeric.minimum);
  const bool is_precise =
      !numeric.in_binary32 || names::keeps_precision_in_binary32(static_cast<double>(number));
  return in_range && is_precise ? std::optional(number) : std::nullopt;
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
  if (numeric.in_binary32)
    text +=
        has_maximum ? ", normal in binary32 (2^-126 and more)" : ", normal in binary32 (2^-126 to 3.4e38)";
  return text;
}

/// The specs in a comma-separated list; nothing when the name of one is not in `allowed` or a spec stands
/// there twice.
std::optional<std::vector<std::string>> parse_names(const std::string& text,
                                                    const std::vector<std::string>& allowed) {
  if (text == "all") return allowed;
  std::vector<std::string> names;
  for (const auto& part : std::views::split(text, ',')) {
    const std::string spec(part.begin(), part.end());
    const bool known = std::ranges::find(allowed, names::name_in(spec)) != allowed.end();
    const bool repeated = std::ranges::find(names, spec) != names.end();
    if (!known || repeated) return std::nullopt;
    names.push_back(spec);
  }
  if (names.empty()) return std::nullopt;
  return names;
}

}  // namespace

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
      .value = [&field]() -> Json {
        if constexpr (std::same_as<Field, T>) {
          return field;
        } else {
          return field ? Json(*field) : Json();
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
      .value = [&value] { return Json(value); },
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
      .value = [&value] { return Json(value); },
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
            return std::ranges::find(names, names::name_in(text)) != names.end();
          },
      .value = [&value] { return Json(value); },
      .choices = names,
  });
}

void CommandLine::add_choice(std::string name, std::string& value, std::string_view family,
                             std::string help) {
  bind_choice(std::move(name), value, names_in(families_, family),
              fmt::format("{}: {}", help, names_by_kind(families_, family)));
}

void CommandLine::add_presets(std::string name, std::string& chosen, std::vector<Preset> presets,
                              std::string help) {
  for (const Preset& preset : presets) {
    help += fmt::format("\n{}: {}", preset.name, preset.meaning);
    for (const auto& [option, value] : preset.values) help += fmt::format(" {} {}", option, value);
  }
  bind_choice(std::move(name), chosen, names::names_of(std::span(std::as_const(presets))), std::move(help));
  presets_ = std::move(presets);
  preset_ = &chosen;
}

void CommandLine::add_choices(std::string name, std::vector<std::string>& values, std::string_view family,
                              std::string help) {
  const std::vector<std::string> names = names_in(families_, family);
  bindings_.push_back({
      .name = std::move(name),
      .type_name = "A,B|all",
      .help = fmt::format("{}: {}", help, names_by_kind(families_, family)),
      .allowed =
          fmt::format("all, or names separated by commas, each once, out of {}", fmt::join(names, ", ")),
      .assign =
          [&values, names](const std::string& text) {
            const std::optional<std::vector<std::string>> parsed = parse_names(text, names);
            if (parsed) values = *parsed;
            return parsed.has_value();
          },
      .value = [&values] { return Json(values); },
      .choices = names,
  });
}

void CommandLine::add_words(std::string type_name, std::vector<std::string>& words, std::string help,
                            std::size_t at_least) {
  if (type_name.find(' ') != std::string::npos)
    throw std::logic_error(type_name + ": has a blank, which CLI11 refuses from 2.4 on");
  words_ = &words;
  fewest_words_ = at_least;
  words_type_name_ = std::move(type_name);
  words_help_ = std::move(help);
}

void CommandLine::add_choice_or_path(std::string name, std::string& value, std::string_view family,
                                     std::string paths) {
  const std::vector<std::string> names = names_in(families_, family);
  bindings_.push_back({
      .name = std::move(name),
      .type_name = "NAME|PATH",
      .help = fmt::format("{}; or {}", fmt::join(names, ", "), paths),
      .allowed = fmt::format("one of {}, or an existing directory or file", fmt::join(names, ", ")),
      .assign =
          [&value, names](const std::string& text) {
            value = text;
            std::error_code error;
            return std::ranges::find(names, text) != names.end() || std::filesystem::exists(text, error);
          },
      .value = [&value] { return Json(value); },
      .choices = names,
  });
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
  seed_ = &seed;
}

void CommandLine::add_seeds(int& seeds, std::optional<int> quick) {
  add("--seeds", seeds, "runs with different seeds", {.minimum = 1, .maximum = 1000, .quick = quick});
  seeds_ = &seeds;
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
  for (const Family& family : families_) names.emplace_back(family.name);
  const bool have_options = std::ranges::any_of(families_, [](auto& family) { return family.details; });
  const std::string help = fmt::format(
      "print a family{} and exit: {}",
      have_options ? ", or the options of one of its names, as in models:mlp," : "", fmt::join(names, ", "));
  bind_choice("--list", listed_, std::move(names), help);
  bindings_.back().type_name = have_options ? "FAMILY[:NAME]" : "FAMILY";
  bindings_.back().in_manifest = false;
}

}  // namespace experiments
