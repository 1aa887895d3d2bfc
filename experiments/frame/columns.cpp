#include "experiments/frame/columns.h"

#include <algorithm>
#include <stdexcept>

namespace experiments {

void SummaryValue::write(RunRecord& record, const std::string& key) const {
  if (const Value* const value = std::get_if<Value>(&content_)) record.summary(key, *value);
  const Estimate* const estimate = std::get_if<Estimate>(&content_);
  if (estimate == nullptr) return;
  record.summary(key, estimate->mean);
  if (estimate->count == 1) return;
  record.summary(key + "_std", estimate->deviation);
  record.summary(key + "_lower", estimate->lower());
  record.summary(key + "_upper", estimate->upper());
}

std::string filled(std::string_view pattern, std::initializer_list<std::string_view> words) {
  std::string result;
  auto word = words.begin();
  for (std::size_t begin = pattern.find('<'); begin != std::string_view::npos; begin = pattern.find('<')) {
    if (word == words.end()) break;
    result.append(pattern.substr(0, begin)).append(*word++);
    pattern.remove_prefix(pattern.find('>') + 1);
  }
  if (word != words.end() || pattern.find('<') != std::string_view::npos)
    throw std::logic_error("a key has not as many places as there are words: " + result.append(pattern));
  return result.append(pattern);
}

SummaryKey spread_note() {
  return {"<key>_std, <key>_lower, <key>_upper",
          "sample standard deviation and 95 % t-interval of a mean over several seeds", "several seeds"};
}

void add_to(Outputs& outputs, const TableNote& table) {
  outputs.tables.push_back(table);
}

void add_to(Outputs& outputs, const std::vector<SummaryKey>& keys) {
  std::vector<SummaryKey>& all = outputs.summary_keys;
  for (const SummaryKey& key : keys) {
    if (std::ranges::find(all, key.name, &SummaryKey::name) == all.end()) all.push_back(key);
  }
  const auto spread = std::ranges::find(all, spread_note().name, &SummaryKey::name);
  if (spread != all.end()) std::rotate(spread, spread + 1, all.end());
}

void add_to(Outputs& outputs, const Outputs& more) {
  outputs.words += more.words;
  for (const TableNote& table : more.tables) add_to(outputs, table);
  add_to(outputs, more.summary_keys);
}

}  // namespace experiments
