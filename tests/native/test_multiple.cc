// Numerals by value: the multiples of a number, against the definition, and their shortest completions.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "../../src/core/regex_dfa.h"
#include "support.h"

namespace {

using mw::DfaState;
using mw::RegexDfa;
using support::rx::both;
using support::rx::compile;
using support::rx::negate;
using support::rx::Program;
using Text = std::u32string;

DfaState run(RegexDfa& dfa, const Text& text) {
  DfaState s = dfa.start();
  for (const char32_t c : text) s = dfa.next(s, c);
  return s;
}
bool matches(RegexDfa& dfa, const Text& text) { return dfa.accepting(run(dfa, text)); }

int64_t power(int64_t exponent) { return exponent == 0 ? 1 : 10 * power(exponent - 1); }

// The texts that complete a numeral, straight from the definition: the digits read stand for their remainder.
bool completes(const Program& p, const Text& text) {
  const int64_t modulus = p[1], scale = p[2], remainder = p[3], least = p[4], most = p[5], room = p[6], read = p[7];
  const size_t point = read >= 0 ? 0 : std::min(text.find(U'.'), text.size());
  const bool pointed = read < 0 && point < text.size();
  const Text fraction = read >= 0 ? text : pointed ? text.substr(point + 1) : Text();
  if (fraction.find(U'.') != Text::npos) return false;
  const auto digits = static_cast<int64_t>(point);
  const int64_t places = std::max<int64_t>(read, 0) + static_cast<int64_t>(fraction.size());
  if (digits < least || (most >= 0 && digits > most) || (room >= 0 && places > room)) return false;
  if ((pointed || read == 0) && fraction.empty()) return false;
  if (pointed && room == 0) return false;
  int64_t value = remainder;  // in units of 10^-scale
  for (const char32_t c : text.substr(0, point)) value = value * 10 + static_cast<int64_t>(c - U'0') * power(scale);
  for (size_t i = 0; i < fraction.size(); ++i) {
    const int64_t place = scale - std::max<int64_t>(read, 0) - static_cast<int64_t>(i) - 1;
    if (place < 0 && fraction[i] != U'0') return false;
    if (place >= 0) value += static_cast<int64_t>(fraction[i] - U'0') * power(place);
  }
  return value % modulus == 0;
}

void check_multiple(const Program& p) {
  const auto dfa = compile(p);
  const Text letters = U"0123456789.";
  std::map<DfaState, Text> reached;
  std::vector<Text> level{Text()};
  for (int n = 0; n <= 4; ++n) {
    std::vector<Text> longer;
    for (const Text& text : level) {
      const DfaState s = run(*dfa, text);
      CHECK(dfa->accepting(s) == completes(p, text), "multiples of %lld, text of %zu", static_cast<long long>(p[1]), text.size());
      if (s != 0) reached.emplace(s, text);
      for (const char32_t c : letters) longer.push_back(text + c);
    }
    level = std::move(longer);
  }
  for (const auto& [s, text] : reached) {
    // Down the least lengths: they are exact, and every state has a completion.
    DfaState at = s;
    Text whole = text;
    while (!dfa->accepting(at)) {
      const auto c = std::find_if(letters.begin(), letters.end(), [&](char32_t l) {
        const DfaState to = dfa->next(at, l);
        return to != 0 && dfa->min_length(to) == dfa->min_length(at) - 1;
      });
      CHECK(c != letters.end(), "multiples of %lld: min_length not exact", static_cast<long long>(p[1]));
      whole += *c;
      at = dfa->next(at, *c);
    }
    CHECK(completes(p, whole) && dfa->min_length(at) == 0, "multiples of %lld: wrong completion", static_cast<long long>(p[1]));
  }
}

void test_multiples() {
  for (const int64_t modulus : {1, 2, 3, 7, 10, 15, 64, 125, 12345, 1000003}) {
    for (int64_t scale = 0; scale <= 3; ++scale) {
      const int64_t remainder = modulus / 2;
      check_multiple({8, modulus, scale, 0, 1, -1, -1, -1});
      check_multiple({8, modulus, scale, remainder, 0, -1, scale, -1});
      check_multiple({8, modulus, scale, remainder, 2, 3, scale + 1, -1});
      check_multiple({8, modulus, scale, modulus - 1, 0, 0, -1, 0});
      if (scale > 0) check_multiple({8, modulus, scale, remainder, 0, 0, scale, 1});
    }
  }
  // No table of remainders: as quick for a modulus that fills a word.
  const int64_t large = 9223372036854775783;
  const auto dfa = compile({8, large, 9, 0, 1, -1, -1, -1});
  CHECK(matches(*dfa, U"9223372036.854775783") && !matches(*dfa, U"9223372036.854775784"), "a large modulus");
  CHECK(dfa->next(run(*dfa, U"9223372036.85477578"), U'4') == 0 && dfa->state_count() < 40, "no dead end");
  // A multiple of one number and not of another, and one that is left out.
  const auto apart = compile(both({{8, 1000000007, 0, 0, 1, -1, 0, -1}, negate({8, 999999937, 0, 0, 1, -1, 0, -1})}));
  CHECK(!matches(*apart, U"0") && matches(*apart, U"1000000007"), "apart");
  CHECK(compile(both({{8, 12, 0, 0, 1, 4, 0, -1}, negate({8, 4, 0, 0, 1, -1, 0, -1})}))->start() == 0, "none is left");
}

}  // namespace

int main() {
  test_multiples();
  return 0;
}
