#include "experiments/pages/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "experiments/frame/toml_file.h"
#include "experiments/pages/blocks.h"
#include "experiments/pages/figures_in_text.h"
#include "experiments/pages/links.h"
#include "experiments/pages/toml_rows.h"

namespace experiments::pages {
namespace {

constexpr std::string_view not_yet = "not measured yet";

struct Answer {
  std::string verdict, finding;
};

Answer answer_of(const Claim& claim, const Records& records) {
  try {
    return {claim.verdict, filled(claim.finding, records)};
  } catch (const NotKept& missing) {
    return {std::string(not_yet), missing.what()};
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("claim '{}': {}", claim.name, error.what()));
  }
}

std::string section(const Claim& claim, const Answer& answer, const Records& records) {
  std::string text = fmt::format("### {}\n\n", claim.name);
  text += wrapped(fmt::format("*{}* ({})", claim.claim, claim.source)) + '\n';
  text += wrapped(fmt::format("**{}**: {}", answer.verdict, answer.finding)) + '\n';
  std::string commands = claim.command.empty() ? "" : claim.command + '\n', kept;
  for (const std::string& name : claim.records) {
    commands += records.entry(name).command + '\n';
    if (!records.is_kept(name)) continue;
    kept += fmt::format("{}[{}](../experiments/records/claims/{})", kept.empty() ? "" : ", ", name, name);
  }
  text += fmt::format("```\n{}```\n\n", commands);
  if (!claim.files.empty())
    text +=
        wrapped(fmt::format("It writes {}.{}", claim.files, kept.empty() ? "" : " Record: " + kept + "."));
  return text;
}

}  // namespace

std::vector<Claim> read_claims(const std::filesystem::path& file) {
  const toml::table table = read_toml_file(file.string());
  std::vector<Claim> claims;
  std::set<std::string> names;
  for (const Row& row :
       rows_of(table, "claim", file,
               {"name", "claim", "source", "records", "command", "files", "finding", "verdict", "holds"})) {
    claims.push_back({.name = row.text("name"),
                      .claim = row.text("claim"),
                      .source = row.text("source"),
                      .records = row.texts("records"),
                      .command = row.text_or_nothing("command"),
                      .files = row.text_or_nothing("files"),
                      .finding = row.text("finding"),
                      .verdict = row.text("verdict"),
                      .holds = row.texts("holds")});
    const Claim& claim = claims.back();
    if (!names.insert(claim.name).second)
      throw std::runtime_error(fmt::format("{}: name '{}' is given twice", row.name(), claim.name));
    if (claim.records.empty() == claim.command.empty())
      throw std::runtime_error(
          fmt::format("{}: must have 'records', or a 'command' where there is none yet", row.name()));
  }
  return claims;
}

std::vector<std::string> broken_verdicts(const std::vector<Claim>& claims, const Records& records) {
  std::vector<std::string> broken;
  for (const Claim& claim : claims) {
    if (!std::ranges::all_of(claim.records, [&](const std::string& name) { return records.is_kept(name); }))
      continue;
    for (const std::string& condition : claim.holds) {
      if (!holds(condition, records)) broken.push_back(fmt::format("{}: {}", claim.name, condition));
    }
  }
  return broken;
}

std::string claims_text(const std::vector<Claim>& claims, const Records& records) {
  std::string table = "| claim | source | verdict |\n|---|---|---|\n", sections;
  for (const Claim& claim : claims) {
    const Answer answer = answer_of(claim, records);
    table += fmt::format("| [{}](#{}): {} | {} | {} |\n", claim.name, anchor_of(claim.name), claim.claim,
                         claim.source, answer.verdict);
    sections += '\n' + section(claim, answer, records);
  }
  return table + sections;
}

}  // namespace experiments::pages
