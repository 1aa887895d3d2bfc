#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "experiments/frame/build_information.h"
#include "experiments/frame/columns.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/text_table.h"
#include "fp16/vector_path.h"
#include "tools/halflab/selftest/findings.h"

namespace halflab::selftest {
namespace {

using namespace experiments;

std::string hash_text(const std::optional<std::uint64_t>& hash) {
  return hash ? fmt::format("{:016x}", *hash) : "";
}

const TableOf<HashRow> hashes_table{
    .name = "hashes",
    .rows = "each hash",
    .columns = {{"group", "", &HashRow::group},
                {"name", "", &HashRow::name},
                {"hash", "", [](auto& row) { return hash_text(row.hash); }},
                {"expected", "", [](auto& row) { return hash_text(row.expected); }},
                {"state", "", [](auto& row) { return name_of(row.state); }}}};

const SummaryOf<Findings> summary{
    {{"against", "what it was compared with", &Findings::against},
     {"hashes_compared", "those that are in both", &Findings::compared},
     {"hashes_equal", "of these", [](auto& f) { return f.count(State::equal); }},
     {"hashes_different", "of these", [](auto& f) { return f.count(State::different); }},
     {"hashes_missing", "of results that this build does not have",
      [](auto& f) { return f.count(State::missing); }},
     {"hashes_new", "of results that there is nothing to compare with",
      [](auto& f) { return f.count(State::fresh); }},
     {"hashes_not_run", "of results that cannot be made here",
      [](auto& f) { return f.count(State::not_run); }},
     {"version", "of this build", [](auto&) { return build_information().version; }},
     {"git_revision", "of this build", [](auto&) { return build_information().git_revision; }},
     {"compiler", "of this build", [](auto&) { return build_information().compiler; }},
     {"vector_path", "that the arrays took",
      [](auto&) { return fp16::name_of(fp16::active_vector_path()); }}}};

std::string answer(const Findings& found) {
  const std::size_t different = found.count(State::different), missing = found.count(State::missing),
                    fresh = found.count(State::fresh);
  std::string text;
  if (found.compared() == 0) {
    text = fmt::format("Nothing was compared: {} has none of the hashes.", found.against);
  } else if (found.holds()) {
    text = fmt::format("This build has the bits of {}: {} of {} {} equal.", found.against,
                       found.count(State::equal), counted(found.compared(), "hash"),
                       found.compared() == 1 ? "is" : "are");
  } else {
    text = fmt::format("This build does not have the bits of {}: {} of {} {}", found.against, different,
                       counted(found.compared(), "hash"), different == 1 ? "differs" : "differ");
    text += missing > 0 ? fmt::format(", and {} {} missing.", missing, missing == 1 ? "is" : "are") : ".";
  }
  if (fresh > 0 && found.compared() > 0)
    text += fmt::format(" {} new since {} and not compared.",
                        counted(fresh, "hash") + (fresh == 1 ? " is" : " are"), found.version);
  return text;
}

std::vector<std::string> obstacles(const Findings& found) {
  std::set<std::string> reasons;
  for (const HashRow& row : found.rows)
    if (row.state == State::not_run) reasons.insert(row.obstacle);
  return {reasons.begin(), reasons.end()};
}

TextTable groups_table(const Findings& found) {
  TextTable table{.columns = {"group", "hashes", "equal", "different", "missing", "new", "what is hashed"},
                  .rows = {},
                  .notes = {}};
  for (const Group& group : groups()) {
    const std::size_t rows =
        static_cast<std::size_t>(std::ranges::count(found.rows, std::string(group.name), &HashRow::group));
    if (rows == 0) continue;
    const auto count = [&](State state) { return fmt::format("{}", found.count(state, group.name)); };
    table.rows.push_back({std::string(group.name), fmt::format("{}", rows), count(State::equal),
                          count(State::different), count(State::missing), count(State::fresh),
                          std::string(group.what)});
  }
  const BuildInformation& build = build_information();
  table.notes.push_back(fmt::format("Halflab {}, revision {}{}, vector path {}, compiler {}.", build.version,
                                    build.git_revision.substr(0, 12), build.git_dirty ? " with changes" : "",
                                    fp16::name_of(fp16::active_vector_path()), build.compiler));
  if (const auto reasons = obstacles(found); !reasons.empty())
    table.notes.push_back(fmt::format("Not run: {}.", fmt::join(reasons, "; ")));
  return table;
}

/// The first of those that are not as they should be, and what to do.
std::string differences(const Findings& found) {
  constexpr std::size_t most = 20;
  std::string text;
  std::size_t all = 0;
  for (const HashRow& row : found.rows) {
    if (row.state != State::different && row.state != State::missing) continue;
    if (++all > most) continue;
    text += fmt::format("{}: {}, {}: {} instead of {}\n", name_of(row.state), row.group, row.name,
                        row.hash ? hash_text(row.hash) : "nothing", hash_text(row.expected));
  }
  if (all > most) text += fmt::format("... and {} more, which --json lists\n", all - most);
  return text +
         "Does HALFLAB_VECTOR_PATH=portable halflab selftest --numbers find the same? Report both outputs by "
         "the form \"Wrong bits\" of the issue tracker.";
}

}  // namespace

Outputs outputs() {
  return outputs_of(hashes_table, summary);
}

void report(Run& run, const Findings& found) {
  RunRecord& record = run.record();
  hashes_table.write(record, found.rows);
  summary.write(record, found);
  record.verdict(answer(found));
  if (!found.holds() && found.compared() > 0) record.verdict(differences(found));
  record.verdict(groups_table(found).text());
}

}  // namespace halflab::selftest
