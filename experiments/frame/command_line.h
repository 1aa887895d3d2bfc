#pragma once
/// Options bound to the fields of a struct: parsing, ranges, --quick defaults, configuration file, --help,
/// --list. A field's value at the time of binding is the option's default.

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "experiments/frame/families.h"
#include "experiments/frame/help_text.h"
#include "experiments/frame/json.h"

namespace CLI {
class App;
}  // namespace CLI

namespace experiments {

/// A wrong command line or configuration file; what() is one line: option or file, what was found, what is
/// allowed.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// A program as its --help presents it, and what it writes as its --help-outputs does.
struct Program {
  std::string name;
  std::string question;  ///< the question it answers, or what it does, in one sentence
  std::string example;   ///< a command line worth trying
  Outputs outputs = {};
  std::string details;  ///< what else a reader of --help must know to trust the answer
};

template <typename T>
concept OptionNumber = std::same_as<T, int> || std::same_as<T, std::int64_t> ||
    std::same_as<T, std::uint64_t> || std::same_as<T, float> || std::same_as<T, double>;

/// What a number may be, and its default under --quick. Numbers that are not finite are never allowed.
template <OptionNumber T>
struct Numeric {
  T minimum = std::numeric_limits<T>::lowest();
  T maximum = std::numeric_limits<T>::max();
  bool minimum_excluded = false;
  std::optional<T> quick = std::nullopt;
  /// It is computed with in binary32 and must keep its precision there (fp16/names.h).
  bool in_binary32 = false;
};

/// Defaults that suit one purpose, under one name.
struct Preset {
  std::string name;
  std::string meaning;
  std::vector<std::pair<std::string, std::string>> values;  ///< option, as "--steps", and what it then is
};

class CommandLine {
 public:
  enum class Outcome {
    parsed,    ///< the bound fields are set
    answered,  ///< --help, --help-outputs or --list was asked for and printed; there is nothing more to do
  };

  /// Choices and `--list` are of these families, which must outlive the object.
  explicit CommandLine(Program program, Families families = {});

  /// Names are given as "--steps". The bound fields must outlive the object.
  template <OptionNumber T>
  void add(std::string name, T& value, std::string help, Numeric<std::type_identity_t<T>> numeric = {});
  /// Without a default of its own: stays empty unless given (or, with numeric.quick, unless --quick is).
  template <OptionNumber T>
  void add(std::string name, std::optional<T>& value, std::string help,
           Numeric<std::type_identity_t<T>> numeric = {});
  void add(std::string name, std::string& value, std::string help, std::string type_name);
  void add_flag(std::string name, bool& value, std::string help);
  /// One name of a family, with or without options after it (fp16/names.h).
  void add_choice(std::string name, std::string& value, std::string_view family, std::string help);
  /// One of the presets, whose values stand in the place of the defaults of options that are bound, too.
  void add_presets(std::string name, std::string& chosen, std::vector<Preset> presets, std::string help);
  /// Several of these, separated by commas, each at most once; or `all`.
  void add_choices(std::string name, std::vector<std::string>& values, std::string_view family,
                   std::string help);
  /// One name of a family, or an existing directory or file, which `paths` describes: "a directory of IDX files".
  void add_choice_or_path(std::string name, std::string& value, std::string_view family, std::string paths);
  /// The words that belong to no option, at least so many.
  void add_words(std::string type_name, std::vector<std::string>& words, std::string help,
                 std::size_t at_least = 1);

  // The options that mean the same in every experiment; each binds those that have a meaning for it. Those of
  // training are in experiments/training/options.h.
  void add_steps(int& steps, std::optional<int> quick = std::nullopt);
  void add_steps(std::optional<int>& steps, std::optional<int> quick = std::nullopt);
  void add_seed(std::uint64_t& seed);
  void add_seeds(int& seeds, std::optional<int> quick = std::nullopt);
  void add_checkpoint_every(int& checkpoint_every);
  void add_quick();
  void add_config();
  void add_list();

  /// Command line before configuration file before --quick default before preset before default.
  /// Throws UsageError.
  Outcome parse(int argc, const char* const* argv, std::ostream& out);

  /// Option name without dashes -> its bound field's present value; null for an empty optional.
  Json effective_options() const;

 private:
  struct Binding {
    std::string name;
    std::string type_name;  ///< as --help shows it; empty for a flag
    std::string help;
    std::string allowed;                                  ///< "an integer from 1 to 100", for errors
    std::function<bool(const std::string& text)> assign;  ///< false: not allowed
    std::function<Json()> value;
    std::vector<std::string> choices;  ///< the names that errors suggest
    std::string quick_default;
    bool in_manifest = true;
    bool given = false;  ///< on the command line or in the configuration file
  };

  template <OptionNumber T, typename Field>
  void bind_number(std::string name, Field& field, std::string help, const Numeric<T>& numeric);
  void bind_choice(std::string name, std::string& value, std::vector<std::string> names, std::string help);
  std::vector<std::string> option_names() const;
  std::vector<std::string> config_keys() const;
  Binding* find(std::string_view name);
  void set(Binding& binding, const std::string& text, std::string_view origin);
  void require_values(std::span<const char* const> words);
  void declare(CLI::App& app) const;
  /// What stands behind "--" are words, whatever they begin with.
  void collect(const CLI::App& app, std::span<const char* const> after_options);
  void print_list(std::ostream& out) const;
  void read_config();
  void set_quick_defaults();
  void require_distinct_seeds() const;
  void set_preset();
  bool has_outputs() const {
    return !program_.outputs.tables.empty() || !program_.outputs.summary_keys.empty();
  }
  std::string footer() const;

  Program program_;
  Families families_;
  std::vector<Binding> bindings_;
  std::vector<std::string>* words_ = nullptr;
  std::size_t fewest_words_ = 0;
  std::string words_type_name_;
  std::string words_help_;
  std::vector<Preset> presets_;
  const std::string* preset_ = nullptr;  ///< the name of the chosen one
  const std::uint64_t* seed_ = nullptr;
  const int* seeds_ = nullptr;
  bool quick_ = false;
  std::string config_file_;
  std::string listed_;
};

/// What `make` makes; errors begin with the option that what is wrong was given by.
template <class Make>
auto from_option(std::string_view option, Make&& make) {
  try {
    return make();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string(option) + ": " + error.what());
  }
}

}  // namespace experiments
