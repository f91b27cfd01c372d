// How many strings a regex takes, and within how many bytes, against a list of them all.
#include <algorithm>
#include <string>
#include <vector>

#include "../../src/core/char_decoder.h"
#include "../../src/core/regex_count.h"
#include "support.h"

namespace {

using namespace support;
using mw::DfaState;
using mw::RegexDfa;
using mw::StringCounts;

constexpr std::u32string_view kLetters = U"ab\"\né€😀\x01";

// A regex of finitely many strings over the letters.
rx::Program random_program(Rng& rng, int depth) {
  const auto letter = [&] { return rx::one(static_cast<int64_t>(pick(rng, kLetters))); };
  if (depth == 0) return letter();
  const auto part = [&] { return random_program(rng, depth - 1); };
  switch (roll(rng, 5)) {
    case 0: return rx::cat({part(), part()});
    case 1: return rx::alt({part(), part(), letter()});
    case 2: return rx::rep(letter(), roll(rng, 2), 2);
    case 3: return rx::both({rx::negate(part()), rx::alt({part(), letter()})});
    default: return letter();
  }
}

// The bytes in JSON of each string that is taken from a state, by a search over all texts of letters.
void list_bytes(RegexDfa& dfa, DfaState s, uint32_t bytes, std::vector<uint32_t>& out) {
  if (s == 0) return;
  if (dfa.accepting(s)) out.push_back(bytes);
  for (const char32_t c : kLetters) list_bytes(dfa, dfa.next(s, c), bytes + mw::json_bytes(c), out);
}

void check(const rx::Program& program) {
  const auto dfa = rx::compile(program);
  if (dfa->start() == 0) return;
  std::vector<uint32_t> bytes;
  list_bytes(*dfa, dfa->start(), 0, bytes);
  std::sort(bytes.begin(), bytes.end());
  StringCounts up(*dfa), down(*dfa);
  CHECK(up.within(dfa->start(), StringCounts::kNever).size() == bytes.size(), "all %zu", bytes.size());
  const auto some = static_cast<size_t>(std::count_if(bytes.begin(), bytes.end(), [](uint32_t b) { return b <= 4; }));
  CHECK(up.within(dfa->start(), 4).size() == some, "%zu of %zu", some, bytes.size());
  for (size_t n = 0; n < bytes.size() + 3; ++n) {
    const size_t back = bytes.size() + 2 - n;
    const auto within = [&](size_t k) { return k < bytes.size() ? bytes[k] : StringCounts::kNever; };
    CHECK(up.exceeds(dfa->start(), n) == (bytes.size() > n), "more than %zu of %zu", n, bytes.size());
    CHECK(down.exceeds(dfa->start(), back) == (bytes.size() > back), "more than %zu of %zu", back, bytes.size());
    CHECK(up.bytes_beyond(dfa->start(), n) == within(n), "bytes of %zu of %zu", n, bytes.size());
    CHECK(down.bytes_beyond(dfa->start(), back) == within(back), "bytes of %zu of %zu", back, bytes.size());
  }
}

void endless() {
  const auto any = rx::compile(rx::all());
  StringCounts counts(*any);
  CHECK(counts.exceeds(any->start(), 1'000'000), "all texts");
  CHECK(counts.bytes_beyond(any->start(), 0) == 0, "the empty text");
  CHECK(counts.bytes_beyond(any->start(), 1) == 1 && counts.bytes_beyond(any->start(), 94) == 1, "printable, but two");
  CHECK(counts.bytes_beyond(any->start(), 95) == 2, "and those that are escaped");
  const auto chain = rx::compile(rx::cat({rx::rep(rx::one('x'), 1000, 1000), rx::rep(rx::one('y'), 0)}));
  StringCounts chains(*chain);
  CHECK(chains.exceeds(chain->start(), 5), "one of each length");
  CHECK(chains.bytes_beyond(chain->start(), 5) == 1005, "the sixth");
}

}  // namespace

int main() {
  Rng rng(1);
  for (int i = 0; i < 600; ++i) check(random_program(rng, 3));
  endless();
}
