#include "sim/data/generated_text.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace sim {
namespace {

using Words = std::vector<std::string>;

/// "<name.a>|<name.b>": any of the rules {name.$, ..., words}.
std::string any_of(std::string_view name, const Words& words) {
  std::string alternatives;
  for (const std::string& word : words)
    alternatives += fmt::format("{}<{}.{}>", alternatives.empty() ? "" : "|", name, word);
  return alternatives;
}

/// "one plus two makes three|3 x 4 = 12": sums in words, products in digits.
std::string equations() {
  constexpr std::array<std::string_view, 21> numbers{
      "zero",     "one",     "two",     "three",     "four",     "five",     "six",
      "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",   "thirteen",
      "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"};
  std::string alternatives;
  for (std::size_t a = 0; a <= 10; ++a) {
    for (std::size_t b = 0; b <= 10; ++b) {
      alternatives += fmt::format("{}{} plus {} makes {}", alternatives.empty() ? "" : "|", numbers[a],
                                  numbers[b], numbers[a + b]);
    }
  }
  for (int a = 2; a <= 12; ++a) {
    for (int b = 2; b <= 12; ++b) alternatives += fmt::format("|{} x {} = {}", a, b, a * b);
  }
  return alternatives;
}

std::vector<GrammarRule> tale_rules() {
  const Words genders{"f", "m"};
  return {
      {"tale.$", "<name.$> <did> <object>.<more.$>\n\n", genders},
      {"more.$",
       "3*|3* <They.$> <did> <object>.<more.$>|2* <Their.$> <noun> <did> <object>.<more.$>|"
       "2* T<clause>.<more.$>| \"T<clause>,\" said <they.$>.<more.$>| (T<clause><square>.)<more.$>",
       genders},
      {"square", "2*| [t<clause><curly>]"},
      {"curly", "2*| {t<clause>}"},
      {"They.f", "She"},
      {"They.m", "He"},
      {"they.f", "she"},
      {"they.m", "he"},
      {"Their.f", "Her"},
      {"Their.m", "His"},
      {"name.f", "Anna|Clara|Edith|Ida|Lena|Marta|Nora|Ruth"},
      {"name.m", "Arne|Bruno|Emil|Gustav|Jonas|Leo|Oskar|Viktor"},
      {"did", "found|lost|sold|drew|hid|kept|moved|washed|praised|dropped|carried|borrowed"},
  };
}

/// A clause without its initial t, which is small or capital. Singular nouns take verbs with s, plural nouns
/// have the s themselves.
std::vector<GrammarRule> clause_rules() {
  const Words numbers{"s", "p"};
  return {
      {"clause", "<clause.s>|<clause.p>"},
      {"clause.$", "he <group.$> <act.$>", numbers},
      {"object", "the <group.s>|the <group.p>"},
      {"group.$", "2*<thing.$><tail.$>|<adjective> <thing.$><tail.$>", numbers},
      {"tail.$",
       "6*|2* <near> <object>| that <act.$>| that the <group.s> <deal.s>| that the <group.p> <deal.p>",
       numbers},
      {"act.$", "2*<move.$>|<deal.$> <object>", numbers},
      {"thing.s", "<noun>"},
      {"thing.p", "<noun>s"},
      {"move.s", "<move>s"},
      {"move.p", "<move>"},
      {"deal.s", "<deal>s"},
      {"deal.p", "<deal>"},
      {"near", "near|behind|under|beside|above"},
      {"adjective", "old|young|red|blue|green|quiet|heavy|clever|hungry|golden|crooked|sleepy"},
      {"noun",
       "farmer|sailor|baker|miller|teacher|singer|soldier|doctor|neighbour|stranger|dog|cat|goat|duck|"
       "horse|rabbit|spider|garden|river|bridge|window|table|ladder|basket|lantern|candle|wagon|kettle"},
      {"move", "sleep|wait|sing|laugh|fall|hide|grow"},
      {"deal", "see|fear|follow|like|need|help|avoid"},
  };
}

std::vector<GrammarRule> couplet_rules() {
  const Words rhymes{"ing", "ight", "ay", "own", "ill", "ook", "all", "ain", "oat", "ound"};
  return {
      {"couplet", any_of("couplet", rhymes)},
      {"couplet.$", "<first><rhyme.$>,\n<second><rhyme.$>.\n\n", rhymes},
      {"first",
       "I walked all day to reach the |We sang a song about the |Nobody came to see the |"
       "They asked me twice about the |At dawn we left the |The wind was blowing round the "},
      {"second",
       "and in the end we found the |but no one spoke about the |for everybody loved the |"
       "and all we had was half a |so bring it back and fetch the |but you had never seen a "},
      {"rhyme.ing", "king|ring|spring|string|wing"},
      {"rhyme.ight", "night|light|knight|sight|flight"},
      {"rhyme.ay", "day|way|bay|hay|tray"},
      {"rhyme.own", "town|crown|gown|clown"},
      {"rhyme.ill", "hill|mill|bill|quill"},
      {"rhyme.ook", "book|brook|cook|hook"},
      {"rhyme.all", "ball|hall|wall|stall"},
      {"rhyme.ain", "rain|train|grain|chain|plain"},
      {"rhyme.oat", "boat|coat|goat|note|throat"},
      {"rhyme.ound", "ground|hound|sound|pound"},
  };
}

std::vector<GrammarRule> talk_rules() {
  const Words things{"key", "spoon", "letter", "hammer", "mirror", "pencil", "saddle", "bottle"};
  return {
      {"talk", any_of("talk", things)},
      {"talk.$", "\"<Where> the $?\" asked <name>. \"<There> the $,\" said <name>.\n\n", things},
      {"Where", "Where is|Who has got|Have you seen|Can I use"},
      {"There", "I have just sold|Look <near> the <noun> for|A <noun> took|You forgot"},
      {"name", "<name.f>|<name.m>"},
  };
}

void append(std::vector<GrammarRule>& rules, std::vector<GrammarRule> others) {
  rules.insert(rules.end(), others.begin(), others.end());
}

}  // namespace

std::vector<GrammarRule> text_rules() {
  std::vector<GrammarRule> rules{
      {"paragraph", "3*<tale.f>|3*<tale.m>|3*<couplet>|2*<talk>|2*<sums>\n"},
      {"sums", "<equation>.\n|<equation>.\n<sums>"},
      {"equation", equations()},
  };
  append(rules, tale_rules());
  append(rules, clause_rules());
  append(rules, couplet_rules());
  append(rules, talk_rules());
  return rules;
}

TextDataset generate_text(const TextOptions& options) {
  const Grammar grammar(text_rules());
  const RandomStream stream(options.seed, "text");
  RandomSequence random(stream, 0);
  std::string text;
  while (text.size() < options.size) grammar.write(text, random);
  return TextDataset({.name = "text",
                      .text = std::move(text),
                      .context = options.context,
                      .entropy_rate = grammar.entropy_rate()});
}

}  // namespace sim
