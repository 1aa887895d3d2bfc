#include "experiments/frame/command_line.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/training/families.h"
#include "experiments/training/options.h"
#include "tests/temporary_directory.h"

namespace {

struct Options {
  int steps = 300;
  int seeds = 2;
  double learning_rate = 0.5;
  std::uint64_t seed = 1;
  std::optional<double> scale, limit;
  std::string format = "binary16";
  std::vector<std::string> formats = {"binary16"};
  bool verbose = false;
};

struct Parsed {
  Options options = {};
  std::string out;
  std::string error;
  nlohmann::ordered_json effective = {};
};

Parsed parse(std::vector<const char*> arguments) {
  Parsed parsed;
  Options& options = parsed.options;
  experiments::CommandLine command_line({.name = "probe",
                                         .question = "What?",
                                         .example = "probe --steps 3",
                                         .outputs = {.summary_keys = {{"loss", "the loss"}}}},
                                        experiments::families());
  command_line.add_steps(options.steps, 20);
  command_line.add_seeds(options.seeds, 1);
  command_line.add("--lr", options.learning_rate, "learning rate",
                   {.minimum = 0, .maximum = 1000, .minimum_excluded = true, .in_binary32 = true});
  command_line.add_seed(options.seed);
  command_line.add("--scale", options.scale, "loss scale", {.minimum = 0, .minimum_excluded = true});
  command_line.add("--limit", options.limit, "largest norm",
                   {.minimum = 0, .minimum_excluded = true, .in_binary32 = true});
  command_line.add_choice("--format", options.format, "formats", "the format");
  command_line.add_choices("--formats", options.formats, "formats", "formats to compare");
  command_line.add_flag("--verbose", options.verbose, "say more");
  command_line.add_quick();
  command_line.add_config();
  command_line.add_list();
  arguments.insert(arguments.begin(), "probe");
  std::ostringstream out;
  try {
    command_line.parse(static_cast<int>(arguments.size()), arguments.data(), out);
  } catch (const experiments::UsageError& error) {
    parsed.error = error.what();
  }
  parsed.out = out.str();
  parsed.effective = nlohmann::ordered_json::parse(command_line.effective_options().to_text());
  return parsed;
}

/// A configuration file of its own for every test case, gone afterwards.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& content) { std::ofstream(path_) << content; }
  const std::string& path() const { return path_; }
  Parsed parse(std::vector<const char*> arguments = {}) const {
    arguments.insert(arguments.end(), {"--config", path_.c_str()});
    return ::parse(arguments);
  }

 private:
  test::TemporaryDirectory directory_;
  std::string path_ = (directory_ / "config.toml").string();
};

}  // namespace

TEST_CASE("options reach the fields they are bound to, in both spellings") {
  const Parsed parsed =
      parse({"--steps", "12", "--lr=1e-3", "--seed", "18446744073709551615", "--seeds", "1", "--format",
             "binary32", "--formats", "binary64,binary16", "--verbose", "--scale", "1024"});
  CHECK(parsed.error == "");
  CHECK(parsed.options.steps == 12);
  CHECK(parsed.options.learning_rate == 1e-3);
  CHECK(parsed.options.seed == 18446744073709551615u);
  CHECK(parsed.options.format == "binary32");
  CHECK(parsed.options.formats == std::vector<std::string>{"binary64", "binary16"});
  CHECK(parsed.options.verbose);
  CHECK(parsed.options.scale == 1024.0);
  CHECK(parsed.options.seeds == 1);
}

TEST_CASE("all names every member of a family") {
  const Parsed parsed = parse({"--formats", "all"});
  std::istringstream listed(parse({"--list", "formats"}).out);
  std::vector<std::string> names;
  for (std::string line; std::getline(listed, line);) names.push_back(line.substr(0, line.find(' ')));
  CHECK(parsed.options.formats == names);
  CHECK(std::ranges::find(names, "binary16") != names.end());
}

TEST_CASE("a choice may carry options, which distinguish it from the same one with others") {
  const Parsed parsed =
      parse({"--format", "binary16:a=1", "--formats", "binary16:a=1,binary16:a=2,binary32"});
  CHECK(parsed.error == "");
  CHECK(parsed.options.format == "binary16:a=1");
  CHECK(parsed.options.formats == std::vector<std::string>{"binary16:a=1", "binary16:a=2", "binary32"});
  CHECK(parse({"--formats", "binary16:a=1,binary16:a=1"}).error.starts_with("--formats:"));
  CHECK(parse({"--format", "half:a=1"}).error.starts_with("--format: 'half:a=1' is not allowed"));
}

TEST_CASE("steps without a default stay empty unless given or --quick sets them") {
  const auto steps_after = [](std::vector<const char*> arguments) {
    std::optional<int> steps;
    experiments::CommandLine command_line({.name = "probe", .question = "What?", .example = "probe"});
    command_line.add_steps(steps, 20);
    command_line.add_quick();
    arguments.insert(arguments.begin(), "probe");
    std::ostringstream out;
    command_line.parse(static_cast<int>(arguments.size()), arguments.data(), out);
    return steps;
  };
  CHECK(steps_after({}) == std::nullopt);
  CHECK(steps_after({"--quick"}) == 20);
  CHECK(steps_after({"--quick", "--steps", "7"}) == 7);
}

TEST_CASE("a wrong value is answered by option, value and what is allowed") {
  CHECK(parse({"--steps", "-3"}).error ==
        "--steps: '-3' is not allowed; must be an integer from 1 to 1000000");
  for (const char* bad : {"0", "1000001", "3.5", "3x", "x", "1e3", "99999999999999999999", " 3"}) {
    const std::string error = parse({"--steps", bad}).error;
    CHECK(error ==
          "--steps: '" + std::string(bad) + "' is not allowed; must be an integer from 1 to 1000000");
  }
  for (const char* bad : {"0", "1e-320", "1e-40"}) {
    CHECK(parse({"--lr", bad}).error ==
          "--lr: '" + std::string(bad) +
              "' is not allowed; must be a number above 0 and at most 1000, normal in "
              "binary32 (2^-126 and more)");
  }
  for (const char* bad : {"1e39", "1e-40"}) {
    CHECK(parse({"--limit", bad}).error ==
          "--limit: '" + std::string(bad) +
              "' is not allowed; must be a number above 0, normal in binary32 (2^-126 to 3.4e38)");
  }
  CHECK(parse({"--scale", "-1"}).error == "--scale: '-1' is not allowed; must be a number above 0");
  for (const char* bad : {"nan", "inf", "1e999"}) {
    CHECK(parse({"--scale", bad}).error ==
          "--scale: '" + std::string(bad) + "' is not allowed; must be a number above 0");
  }
  CHECK(parse({"--seed", "-1"}).error ==
        "--seed: '-1' is not allowed; must be an integer from 0 to 18446744073709551615");
  CHECK(parse({"--format", "half"})
            .error.starts_with("--format: 'half' is not allowed; must be one of binary64,"));
  CHECK(parse({"--format", "binari16"})
            .error.starts_with(
                "--format: 'binari16' is not allowed; did you mean 'binary16'? must be one of "));
  CHECK(parse({"--formats", "binary16:a=1,bfloat61:b=2,half"})
            .error.starts_with("--formats: 'binary16:a=1,bfloat61:b=2,half' is not allowed; did you mean "
                               "'bfloat16'? must be all, or "));
  CHECK(parse({"--list", "scaler"})
            .error.starts_with("--list: 'scaler' is not allowed; did you mean 'scalers'? must be "));
  for (const char* bad : {"binary16,half", "binary16,binary16", "binary16,", ","}) {
    CHECK(parse({"--formats", bad})
              .error.starts_with("--formats: '" + std::string(bad) +
                                 "' is not allowed; must be all, or names separated by commas, each once"));
  }
  CHECK(parse({"--verbose=perhaps"}).error == "--verbose: 'perhaps' is not allowed; must be true or false");
  CHECK(parse({"--list", "things"})
            .error.starts_with("--list: 'things' is not allowed; must be one of formats"));
}

TEST_CASE("seeds do not go round: the last of them is 2^64 - 1") {
  CHECK(parse({"--seed", "18446744073709551615", "--seeds", "1"}).error == "");
  CHECK(parse({"--seed", "18446744073709551613", "--seeds", "3"}).options.seed == 18446744073709551613u);
  CHECK(parse({"--seed", "18446744073709551614", "--seeds", "3"}).error ==
        "--seed: '18446744073709551614' is not allowed with --seeds 3; must be an integer from 0 to "
        "18446744073709551613");
}

TEST_CASE("a missing value, an unknown option, a repeated one and a stray word are errors") {
  CHECK(parse({"--steps"}).error == "--steps: a value is missing; must be an integer from 1 to 1000000");
  CHECK(parse({"--steps", "--quick"}).error ==
        "--steps: a value is missing before '--quick'; must be an integer from 1 to 1000000");
  CHECK(parse({"--steps", "--seed", "3"}).error ==
        "--steps: a value is missing before '--seed'; must be an integer from 1 to 1000000");
  for (const std::vector<const char*>& arguments :
       {std::vector{"--steps="}, {"--steps=", "5"}, {"--steps=", "--seed", "3"}, {"--quick", "--steps"}}) {
    CHECK(parse(arguments).error == "--steps: a value is missing; must be an integer from 1 to 1000000");
  }
  CHECK(parse({"--stpes", "3"}).error == "unknown option --stpes; did you mean --steps?");
  CHECK(parse({"--stpes=3"}).error == "unknown option --stpes; did you mean --steps?");
  CHECK(parse({"--something-else"})
            .error.starts_with("unknown option --something-else; allowed: --steps, --seeds, "));
  CHECK(parse({"-x"}).error.starts_with("unknown option -x; "));
  CHECK(parse({"--steps", "3", "--steps", "4"}).error == "--steps: given 2 times; must be given once");
  CHECK(parse({"cnn"}).error ==
        "unexpected argument 'cnn'; values follow the option they belong to, as in 'probe --steps 3'");
}

TEST_CASE("--quick changes defaults and never a given value") {
  CHECK(parse({"--quick"}).options.steps == 20);
  CHECK(parse({"--quick"}).options.seeds == 1);
  CHECK(parse({"--quick"}).options.learning_rate == 0.5);
  CHECK(parse({"--quick", "--steps", "300"}).options.steps == 300);
  CHECK(parse({"--steps", "300", "--quick"}).options.seeds == 1);
  const ConfigFile config("steps = 77\n");
  CHECK(config.parse({"--quick"}).options.steps == 77);
  CHECK(config.parse({"--quick"}).options.seeds == 1);
}

TEST_CASE("a preset stands in the place of defaults, after what is given and after --quick") {
  int steps = 300, seeds = 2;
  std::string figure = "plain";
  const auto parse_with = [&](std::vector<const char*> arguments) {
    steps = 300, seeds = 2, figure = "plain";
    experiments::CommandLine command_line({.name = "test", .question = "?", .example = "test"});
    command_line.add_presets(
        "--figure", figure,
        {{"plain", "nothing else", {}}, {"paper", "as printed, by", {{"--steps", "250"}, {"--seeds", "7"}}}},
        "what to draw");
    command_line.add_steps(steps, 20);
    command_line.add_seeds(seeds);
    command_line.add_quick();
    arguments.insert(arguments.begin(), "test");
    std::ostringstream out;
    command_line.parse(static_cast<int>(arguments.size()), arguments.data(), out);
    return out.str();
  };
  parse_with({});
  CHECK(steps == 300);
  parse_with({"--figure", "paper"});
  CHECK(steps == 250);
  CHECK(seeds == 7);
  parse_with({"--steps", "9", "--figure", "paper"});
  CHECK(steps == 9);
  CHECK(seeds == 7);
  parse_with({"--figure", "paper", "--quick"});
  CHECK(steps == 20);
  CHECK(seeds == 7);
  CHECK(parse_with({"--help"}).find("paper: as printed, by --steps 250 --seeds 7") != std::string::npos);
  CHECK_THROWS_WITH_AS(parse_with({"--figure", "papr"}),
                       "--figure: 'papr' is not allowed; did you mean 'paper'? must be one of plain, paper",
                       experiments::UsageError);
}

TEST_CASE("a configuration file is overruled by the command line") {
  const ConfigFile config(
      "# a comment\nsteps = 7\nlr = 0.25\nformat = \"binary64\"\nverbose = true\n"
      "formats = [\"binary32\", \"binary16\"]\n");
  const Parsed parsed = config.parse({"--steps", "9"});
  CHECK(parsed.error == "");
  CHECK(parsed.options.steps == 9);
  CHECK(parsed.options.learning_rate == 0.25);
  CHECK(parsed.options.format == "binary64");
  CHECK(parsed.options.formats == std::vector<std::string>{"binary32", "binary16"});
  CHECK(parsed.options.verbose);
  CHECK(ConfigFile("quick = true\n").parse().options.steps == 20);
}

TEST_CASE("errors in a configuration file name the file, the line and the key") {
  const auto error_of = [](const std::string& content) {
    const ConfigFile config(content);
    const std::string error = config.parse().error;
    REQUIRE_MESSAGE(error.starts_with(config.path() + ":"), error);
    return error.substr(config.path().size() + 1);
  };
  CHECK(error_of("steps = -3\n") == "1: steps: '-3' is not allowed; must be an integer from 1 to 1000000");
  CHECK(error_of("# steps\n\nlr = 1\nstpes = 3\n") == "4: unknown key stpes; did you mean steps?");
  CHECK(error_of("config = \"other.toml\"\n").starts_with("1: unknown key config; "));
  CHECK(error_of("training.steps = 3\n").starts_with("1: unknown key training.steps; "));
  CHECK(error_of("steps = 2024-01-02\n") ==
        "1: steps: '2024-01-02' is not allowed; must be an integer from 1 to 1000000");
  CHECK(error_of("formats = [{ a = 3 }, 07:32:00]\n")
            .starts_with("1: formats: '{ a = 3 },07:32:00' is not allowed; must be all, or "));
  CHECK(error_of("steps = [3,\n  4]\n") ==
        "1: steps: '3,4' is not allowed; must be an integer from 1 to 1000000");
  CHECK(error_of("formats = [ # two\n  \"binary32\",\n  \"binari16\"]\nsteps = 0\n")
            .starts_with("1: formats: 'binary32,binari16' is not allowed; did you mean 'binary16'? "));
  for (const char* bad : {"steps = 4", "steps = = 5", "steps", "steps =", "= 3", "a=", "format = \"x",
                          "lr = [3", "lr = 3]", "[training"}) {
    const ConfigFile config(std::string("steps = 3\n\n") + bad + "\n");
    const std::string error = config.parse().error;
    INFO(error);
    // What is not closed is missed at the end of the file at the latest.
    CHECK((error.starts_with("--config: " + config.path() + ":3: ") ||
           error.starts_with("--config: " + config.path() + ":4: ")));
    CHECK(error.ends_with("; must be a TOML file of KEY = VALUE"));
    CHECK(std::ranges::count(error, '\n') == 0);
  }
  CHECK(parse({"--config", "/nowhere.toml"}).error ==
        "--config: file '/nowhere.toml' cannot be read (No such file or directory); must be a TOML file of "
        "KEY = VALUE");
  CHECK(parse({"--config", "/tmp"}).error ==
        "--config: file '/tmp' cannot be read (it is a directory, a regular file is needed); must be a TOML "
        "file of KEY = VALUE");
}

TEST_CASE("effective options are what the body runs with") {
  const nlohmann::ordered_json effective = parse({"--quick", "--lr", "0.25"}).effective;
  CHECK(effective["steps"] == 20);
  CHECK(effective["lr"] == 0.25);
  CHECK(effective["scale"].is_null());
  CHECK(effective["formats"] == nlohmann::ordered_json{"binary16"});
  CHECK(effective["quick"] == true);
  CHECK_FALSE(effective.contains("config"));
}

TEST_CASE("--help shows question, options with defaults and example, --help-outputs what is written") {
  const std::string help = parse({"--help"}).out;
  for (const char* part : {"What?", "--steps N", "default 300; 20 with --quick", "probe --steps 3",
                           "--help-outputs", "--format NAME", "default binary16", "Exit code"}) {
    CHECK_MESSAGE(help.find(part) != std::string::npos, part);
  }
  CHECK(help.find("the loss") == std::string::npos);
  CHECK(parse({"-h"}).out == help);
  CHECK(parse({"--steps", "3", "--help-outputs"}).out == "Keys of summary.json:\n  loss  the loss\n");
}

TEST_CASE("--help keeps to 100 columns and puts the scalers of each kind on lines of their own") {
  std::vector<std::string> scalers{"none"};
  experiments::CommandLine command_line({.name = "probe", .question = "What?", .example = "probe"},
                                        experiments::families());
  add_scalers(command_line, scalers);
  command_line.add_list();
  const std::vector<const char*> arguments{"probe", "--help"};
  std::ostringstream out;
  command_line.parse(2, arguments.data(), out);
  for (const char* start :
       {" global: none, static, dynamic, ", " layer: ada_loss, ", " tensor: delayed, current\n",
        " parametrisation: unit_scaling\n", " (default none)\n"})
    CHECK_MESSAGE(out.str().find(start) != std::string::npos, start);
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 100, line);
}

TEST_CASE("--list prints names first, then what the registry says of them") {
  const std::string scalers = parse({"--list", "scalers"}).out;
  CHECK(
      scalers.starts_with("none                  global           no scaling: S = 1, never skips a step\n"));
  CHECK(scalers.find("\ndelayed               tensor           Transformer Engine") != std::string::npos);
  CHECK(parse({"--list", "schedules"}).out.starts_with("constant  the optimizer's learning rate"));
  CHECK(parse({"--list", "formats"}).out.starts_with("binary64\nbinary32\n"));
}

TEST_CASE("--list of one name prints its options with defaults and what is allowed") {
  CHECK(parse({"--list", "models:mlp"}).out ==
        "mlp  classifier inputs-512-256-classes with ReLU and softmax cross entropy\n"
        "  hidden1  512  whole numbers in [1, 65536]\n"
        "  hidden2  256  whole numbers in [1, 65536]\n");
  CHECK(parse({"--list", "scalers:static"}).out.find("  scale           1024  numbers in (0, ") !=
        std::string::npos);
  CHECK(parse({"--list", "scalers:none"}).out ==
        "none  global  no scaling: S = 1, never skips a step\n  no options\n");
  CHECK(parse({"--list", "policies:O2"}).out.find("\n  weights              binary32\n") !=
        std::string::npos);
  CHECK(parse({"--list", "scalers:dinamic"})
            .error.starts_with("--list: unknown scalers 'dinamic'; did you mean 'dynamic'? allowed: none, "));
  for (const experiments::Family& family : experiments::families()) {
    for (const std::string& name : experiments::names_in(experiments::families(), family.name)) {
      INFO(family.name, ":", name);
      const std::string text =
          experiments::listing(experiments::families(), std::string(family.name) + ":" + name);
      CHECK(text.starts_with(name));
      if (family.details == nullptr || family.name == "policies") continue;
      for (const experiments::VariantDetail& option : family.details(name)) {
        const bool has_interval =
            option.allowed.starts_with("numbers in ") || option.allowed.starts_with("whole numbers in ");
        const bool is_among_names = option.allowed.find(option.value) != std::string::npos;
        CHECK_MESSAGE((has_interval || is_among_names), option.name, ": ", option.allowed);
      }
    }
  }
}

TEST_CASE("words are collected where a program takes them") {
  std::vector<std::string> words;
  std::string title;
  experiments::CommandLine command_line({.name = "probe", .question = "What?", .example = "probe a"});
  CHECK_THROWS_AS(command_line.add_words("RUN DIR", words, "directories"), std::logic_error);
  command_line.add_words("RUN_DIR", words, "directories");
  command_line.add("--title", title, "title", "TEXT");
  std::ostringstream out;
  const std::vector<const char*> arguments{"probe", "a", "--title", "A title", "b", "c"};
  command_line.parse(static_cast<int>(arguments.size()), arguments.data(), out);
  CHECK(words == std::vector<std::string>{"a", "b", "c"});
  CHECK(title == "A title");
  const std::vector<const char*> brackets{"probe", "[a,b]", "--title", "[c,d]", "[]"};
  command_line.parse(static_cast<int>(brackets.size()), brackets.data(), out);
  CHECK(words == std::vector<std::string>{"[a,b]", "[]"});
  CHECK(title == "[c,d]");
  const std::vector<const char*> dashes{"probe", "--title", "t", "a", "--", "-b", "--title", "--"};
  command_line.parse(static_cast<int>(dashes.size()), dashes.data(), out);
  CHECK(words == std::vector<std::string>{"a", "-b", "--title", "--"});
  CHECK(title == "t");
  CHECK_THROWS_WITH_AS(command_line.parse(1, arguments.data(), out),
                       "RUN_DIR is missing; at least one must be given", experiments::UsageError);
}
