// Laws of the regex automaton, by brute force against a naive matcher on random expressions; hostile inputs.
//   test_regex            the laws
//   test_regex --times    also prints what the hostile inputs cost
//   test_regex --more     many more random expressions (a minute)
//   test_regex --threads  only the shared automaton (for the thread sanitiser)
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../../src/core/regex_dfa.h"

namespace {

using mw::DfaState;
using mw::RegexDfa;
using Program = std::vector<int64_t>;
using Text = std::u32string;

bool g_times = false;
bool g_more = false;

#define CHECK(cond, ...)                                        \
  do {                                                          \
    if (!(cond)) {                                              \
      std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
      std::fprintf(stderr, __VA_ARGS__);                        \
      std::fprintf(stderr, "\n");                               \
      std::exit(1);                                             \
    }                                                           \
  } while (false)

// ---- building programs ----------------------------------------------------------------------------------

constexpr int64_t kTop = 0x10ffff;

Program chars(std::vector<std::pair<int64_t, int64_t>> ranges) {
  Program p{2, static_cast<int64_t>(ranges.size())};
  for (const auto& [lo, hi] : ranges) p.insert(p.end(), {lo, hi});
  return p;
}

Program group(int64_t code, const std::vector<Program>& parts) {
  Program p;
  for (const Program& x : parts) p.insert(p.end(), x.begin(), x.end());
  p.insert(p.end(), {code, static_cast<int64_t>(parts.size())});
  return p;
}
Program cat(const std::vector<Program>& parts) { return group(3, parts); }
Program alt(const std::vector<Program>& parts) { return group(4, parts); }
Program both(const std::vector<Program>& parts) { return group(6, parts); }
Program rep(Program p, int64_t lo, int64_t hi) {
  p.insert(p.end(), {5, lo, hi});
  return p;
}
Program negate(Program p) {
  p.push_back(7);
  return p;
}
Program lit(const std::string& s) {
  std::vector<Program> parts;
  for (const char c : s) parts.push_back(chars({{c, c}}));
  return cat(parts);
}
Program any() { return chars({{0, 0xd7ff}, {0xe000, kTop}}); }
Program word_char() { return chars({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}); }
Program space() { return chars({{9, 13}, {' ', ' '}}); }
Program non_space() { return chars({{0, 8}, {14, 31}, {33, 0xd7ff}, {0xe000, kTop}}); }

std::shared_ptr<RegexDfa> compile(const Program& p) {
  std::string error;
  auto dfa = RegexDfa::from_program(p, &error);
  CHECK(dfa != nullptr, "%s", error.c_str());
  return dfa;
}

DfaState run(RegexDfa& dfa, DfaState s, const Text& text) {
  for (const char32_t c : text) s = dfa.next(s, c);
  return s;
}
DfaState run(RegexDfa& dfa, const std::string& text) { return run(dfa, dfa.start(), Text(text.begin(), text.end())); }
bool matches(RegexDfa& dfa, const std::string& text) { return dfa.accepting(run(dfa, text)); }

// ---- the naive matcher ----------------------------------------------------------------------------------

// Membership straight from the definition of each operator, over a tree of its own.
struct Tree {
  int64_t code;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  int64_t lo = 0, hi = 0;
  std::vector<Tree> kids;
};

Program program_of(const Tree& t) {
  std::vector<Program> kids;
  for (const Tree& k : t.kids) kids.push_back(program_of(k));
  switch (t.code) {
    case 0:
    case 1: return {t.code};
    case 2: return chars(t.ranges);
    case 5: return rep(kids[0], t.lo, t.hi);
    case 7: return negate(kids[0]);
    default: return group(t.code, kids);
  }
}

std::string show(const Tree& t) {
  static const char* const names[] = {"EMPTY", "EPS", "CHARS", "CAT", "ALT", "REP", "AND", "NOT"};
  std::string s = names[t.code];
  const auto add = [&](const char* before, int64_t n) {
    s += before;
    s += std::to_string(n);
  };
  for (const auto& [lo, hi] : t.ranges) add(" ", lo), add("-", hi);
  if (t.code == 5) add(" ", t.lo), add("..", t.hi);
  for (const Tree& k : t.kids) {
    s += " (";
    s += show(k);
    s += ")";
  }
  return s;
}

class Naive {
 public:
  Naive(const Tree& tree, const Text& text) : tree_(tree), text_(text) {}
  bool matches() { return match(tree_, 0, text_.size()); }

 private:
  bool match(const Tree& t, size_t i, size_t j) {
    const auto key = std::make_tuple(&t, i, j);
    const auto it = memo_.find(key);
    if (it != memo_.end()) return it->second;
    const bool r = compute(t, i, j);
    memo_[key] = r;
    return r;
  }
  bool compute(const Tree& t, size_t i, size_t j) {
    switch (t.code) {
      case 0: return false;
      case 1: return i == j;
      case 2: {
        if (j != i + 1) return false;
        const int64_t c = text_[i];
        return std::any_of(t.ranges.begin(), t.ranges.end(), [&](auto r) { return r.first <= c && c <= r.second; });
      }
      case 3: return sequence(t, 0, i, j);
      case 4: return std::any_of(t.kids.begin(), t.kids.end(), [&](const Tree& k) { return match(k, i, j); });
      case 5: return rounds(t, i, j);
      case 6: return std::all_of(t.kids.begin(), t.kids.end(), [&](const Tree& k) { return match(k, i, j); });
      default: return !match(t.kids[0], i, j);
    }
  }
  bool sequence(const Tree& t, size_t k, size_t i, size_t j) {
    if (k == t.kids.size()) return i == j;
    for (size_t m = i; m <= j; ++m) {
      if (match(t.kids[k], i, m) && sequence(t, k + 1, m, j)) return true;
    }
    return false;
  }
  // Set of positions reachable after n rounds, for n up to hi (or until nothing new can come).
  bool rounds(const Tree& t, size_t i, size_t j) {
    std::set<size_t> at{i};
    const int64_t last = t.hi == -1 ? t.lo + static_cast<int64_t>(j - i) + 1 : t.hi;
    for (int64_t n = 0; n <= last && !at.empty(); ++n) {
      if (n >= t.lo && at.contains(j)) return true;
      std::set<size_t> to;
      for (const size_t a : at) {
        for (size_t b = a; b <= j; ++b) {
          if (match(t.kids[0], a, b)) to.insert(b);
        }
      }
      at = to;
    }
    return false;
  }

  const Tree& tree_;
  const Text& text_;
  std::map<std::tuple<const Tree*, size_t, size_t>, bool> memo_;
};

// ---- random expressions ---------------------------------------------------------------------------------

using Rng = std::mt19937;

int64_t roll(Rng& rng, int64_t n) { return static_cast<int64_t>(rng() % static_cast<uint64_t>(n)); }

Tree random_tree(Rng& rng, int size, bool boolean) {
  if (size <= 1) {
    switch (roll(rng, 12)) {
      case 0: return {.code = 1, .ranges = {}, .kids = {}};
      case 1: return {.code = roll(rng, 3) == 0 ? 0 : 1, .ranges = {}, .kids = {}};
      case 2: return {.code = 2, .ranges = {{0, 0xd7ff}, {0xe000, kTop}}, .kids = {}};
      case 3: return {.code = 2, .ranges = {{'b', 'b'}, {0x80, 0xd7ff}}, .kids = {}};
      case 4: return {.code = 2, .ranges = {{0, 'a' - 1}, {'c', 0xd7ff}, {0xe000, kTop}}, .kids = {}};
      case 5: return {.code = 2, .ranges = {{0xe9, 0xe9}}, .kids = {}};
      case 6: return {.code = 2, .ranges = {{'a', 'b'}}, .kids = {}};
      default: {
        const int64_t c = 'a' + roll(rng, 2);
        return {.code = 2, .ranges = {{c, c}}, .kids = {}};
      }
    }
  }
  const int64_t kind = roll(rng, boolean ? 12 : 9);
  if (kind >= 6 && kind < 9) {
    const int64_t lo = roll(rng, 4);
    const int64_t hi = roll(rng, 3) == 0 ? -1 : lo + roll(rng, 4);
    return {.code = 5, .ranges = {}, .lo = lo, .hi = hi, .kids = {random_tree(rng, size - 1, boolean)}};
  }
  if (kind == 11) return {.code = 7, .ranges = {}, .kids = {random_tree(rng, size - 1, boolean)}};
  Tree t{.code = kind < 3 ? 3 : kind < 6 ? 4 : 6, .ranges = {}, .kids = {}};
  const int64_t n = 2 + roll(rng, 2);
  for (int64_t i = 0; i < n; ++i) t.kids.push_back(random_tree(rng, std::max(1, (size - 1) / static_cast<int>(n)), boolean));
  return t;
}

const Text kLetters = U"abé";

void for_all_texts(size_t max_len, const std::function<void(const Text&)>& f) {
  std::vector<Text> level{U""};
  for (size_t n = 0; n <= max_len; ++n) {
    std::vector<Text> longer;
    for (const Text& t : level) {
      f(t);
      for (const char32_t c : kLetters) longer.push_back(t + c);
    }
    level = longer;
  }
}

// Some text leading from s to acceptance, or false: best first by the length still needed, which finds a
// shortest one when greed is 1 and min_length is exact.
bool complete(RegexDfa& dfa, DfaState s, int64_t greed, Text& out) {
  std::map<DfaState, Text> seen{{s, U""}};
  std::set<std::tuple<int64_t, size_t, DfaState>> queue{{0, 0, s}};
  for (int i = 0; !queue.empty() && i < 20000; ++i) {
    const DfaState at = std::get<2>(*queue.begin());
    queue.erase(queue.begin());
    const Text text = seen[at];
    if (dfa.accepting(at)) {
      out = text;
      return true;
    }
    for (const char32_t c : {U'a', U'b', U'é', U'~', U'一', U'\U00010000'}) {
      const DfaState to = dfa.next(at, c);
      if (to == 0 || !seen.emplace(to, text + c).second) continue;
      queue.emplace(static_cast<int64_t>(text.size()) + greed * dfa.min_length(to), seen.size(), to);
    }
  }
  return false;
}

// ---- laws -----------------------------------------------------------------------------------------------

void check_widest(RegexDfa& dfa, DfaState s) {
  std::map<DfaState, int> ascii;
  for (uint32_t c = 0; c < 128; ++c) {
    if (const DfaState to = dfa.next(s, c)) ++ascii[to];
  }
  std::set<DfaState> others;
  for (const uint32_t c : {0x80U, 0xe8U, 0xe9U, 0xeaU, 0x4e00U, 0xd7ffU, 0xe000U, 0x10ffffU}) others.insert(dfa.next(s, c));
  const mw::Chain& w = dfa.widest(s);
  int most = 0;
  for (const auto& [to, n] : ascii) most = std::max(most, n);
  CHECK(std::popcount(w.set.lo) + std::popcount(w.set.hi) == most, "widest is not the largest");
  CHECK((w.next == 0) == (most == 0 && !w.set.other), "widest of a state without successors");
  for (uint32_t c = 0; c < 128; ++c) {
    const bool in = (((c < 64 ? w.set.lo : w.set.hi) >> (c & 63)) & 1) != 0;
    CHECK(in == (w.next != 0 && dfa.next(s, c) == w.next), "widest: ASCII %u", c);
  }
  if (w.next != 0) CHECK(w.set.other == (others == std::set<DfaState>{w.next}), "widest: others");
  if (w.next == 0) CHECK(others.size() > 1 || others.contains(0), "widest missed the others");
}

void check_live_sets(RegexDfa& dfa, DfaState s) {
  uint64_t live[2];
  dfa.live_ascii(s, live);
  bool any = false;
  for (uint32_t c = 0; c < 128; ++c) {
    const bool in = dfa.next(s, c) != 0;
    any |= in;
    CHECK((((live[c / 64] >> (c & 63)) & 1) != 0) == in, "live_ascii %u", c);
    CHECK(dfa.any_live_in(s, c, c) == in, "any_live_in one");
  }
  bool other = false;
  for (const uint32_t c : {0x80U, 0xe9U, 0x4e00U, 0xe000U, 0x10ffffU}) {
    const bool in = dfa.next(s, c) != 0;
    other |= in;
    if (in) CHECK(dfa.any_live_in(s, c - 1, c) && dfa.any_live_in(s, 0x80, kTop), "any_live_in around %x", c);
  }
  CHECK(dfa.any_live_in(s, 0x80, 0x10ffff) == other, "any_live_in others");
  CHECK(dfa.any_live_in(s, 0, 0x10ffff) == (any || other) && dfa.has_next(s) == (any || other), "has_next");
  CHECK(!dfa.any_live_in(s, 0xd800, 0xdfff) && dfa.next(s, 0xd900) == 0 && dfa.next(s, 0x110000) == 0, "surrogates");
}

// Within so many code points both states say the same, of what is taken and of what can go on.
void check_near(RegexDfa& dfa, DfaState s, const Tree& tree) {
  for (uint32_t most = 0; most <= 3; ++most) {
    const DfaState near = dfa.near(s, most);
    for_all_texts(most, [&](const Text& text) {
      const DfaState one = run(dfa, s, text), other = run(dfa, near, text);
      CHECK((one == 0) == (other == 0), "%s: near %u within %u, dead after %zu", show(tree).c_str(), s, most, text.size());
      CHECK(dfa.accepting(one) == dfa.accepting(other), "%s: near %u within %u, after %zu", show(tree).c_str(), s, most, text.size());
    });
  }
}

void check_random(Rng& rng, int number) {
  const bool boolean = number % 2 == 1;
  const Tree tree = random_tree(rng, 2 + static_cast<int>(roll(rng, 12)), boolean);
  const auto dfa = compile(program_of(tree));
  std::map<DfaState, Text> reached;
  std::map<Text, bool> in_language;
  for_all_texts(5, [&](const Text& text) {
    const bool expected = Naive(tree, text).matches();
    in_language[text] = expected;
    const DfaState s = run(*dfa, dfa->start(), text);
    CHECK(dfa->accepting(s) == expected, "%s, text of %zu", show(tree).c_str(), text.size());
    if (s != 0) reached.emplace(s, text);
    for (size_t i = 0; expected && i <= text.size(); ++i) {
      const DfaState p = run(*dfa, dfa->start(), text.substr(0, i));
      const auto left = static_cast<int64_t>(text.size() - i);
      CHECK(p != 0, "%s: dead before a match", show(tree).c_str());
      CHECK(dfa->min_length(p) <= left, "%s: min_length", show(tree).c_str());
      CHECK(dfa->max_length(p) == -1 || dfa->max_length(p) >= left, "%s: max_length", show(tree).c_str());
    }
  });
  for (const auto& [s, text] : reached) {
    Text rest;
    CHECK(complete(*dfa, s, boolean ? 4 : 1, rest), "%s: live state %u without a completion", show(tree).c_str(), s);
    const Text whole = text + rest;
    // The naive matcher takes the cube of the length and more.
    CHECK(whole.size() > 40 || Naive(tree, whole).matches(), "%s: wrong completion", show(tree).c_str());
    if (!boolean) CHECK(dfa->min_length(s) == static_cast<int64_t>(rest.size()), "%s: min_length not exact", show(tree).c_str());
    if (dfa->is_universal(s)) CHECK(dfa->accepting(s) && dfa->next(s, U'~') == s, "universal");
    check_widest(*dfa, s);
    check_live_sets(*dfa, s);
    check_near(*dfa, s, tree);
  }
  const bool some = dfa->start() != 0;
  CHECK(dfa->is_empty_within(100000) == (some ? 0 : 1), "is_empty");
  CHECK(compile(program_of(tree))->is_empty_within(100000) == (some ? 0 : 1), "is_empty asked first");
  const auto other = compile(program_of(tree));
  mw::EmptinessSearch slices(*other, 100000);
  for (uint32_t c = 'a'; !slices.verdict(); c = c == 'c' ? 'a' : c + 1) {
    slices.run(std::chrono::nanoseconds(0));
    if (!slices.verdict() && c == 'b') other->next(other->start(), c);  // others search the same automaton in between
  }
  CHECK(*slices.verdict() == (some ? 0 : 1), "is_empty in slices");
}

void test_random() {
  Rng rng(20261130);
  for (int i = 0; i < (g_more ? 20000 : 800); ++i) check_random(rng, i);
}

void test_malformed() {
  const std::vector<Program> bad = {
      {},           {9},          {-1},          {3, 2},      {1, 1},       {2, 1, 5},  {2, 1, 5, 4}, {2, -1},
      {5, 0, 1},    {1, 5, 2, 1}, {1, 5, -1, 2}, {1, 5, 0},   {7},          {1, 3, -1}, {1, 4, 2},    {2, 1, 0, 0x110000},
      {8, 3, 0, 3, 0, 0, 0, -1}, {8, 0, 0, 0, 0, 0, 0, -1}, {8, 3, 2, 0, 0, 0, 1, -1}, {8, 3, 0, 0, 2, 1, 0, -1},
      {8, 3, 0, 0, 1, 1, 0, 0}, {8, 3, 0, 0, 0, 0, 0, -2}, {8, 3, 0, 0, 0, 0}, {2, 1LL << 60}, {1, 5, INT64_MAX, -1}, {1, 5, 0, -2}, {1, 6, 1LL << 40},
  };
  for (const Program& p : bad) {
    std::string error;
    CHECK(RegexDfa::from_program(p, &error) == nullptr && !error.empty(), "accepted a malformed program");
    CHECK(RegexDfa::from_program(p, nullptr) == nullptr, "accepted a malformed program");
  }
}

void test_known() {
  CHECK(compile(alt({}))->start() == 0, "EMPTY");
  for (const Program& p : {both({}), negate(alt({})), alt({rep(any(), 0, -1), lit("a")})}) {
    const auto dfa = compile(p);
    CHECK(dfa->is_universal(dfa->start()), "everything");
  }
  const auto search = compile(cat({rep(any(), 0, -1), lit("foo"), rep(any(), 0, -1)}));
  CHECK(search->is_universal(run(*search, "xxfoo")), "universal collapse");
  CHECK(!search->is_universal(run(*search, "xxfo")), "not yet");
  CHECK(search->state_count() < 12, "search automaton is small");
  const auto hole = compile(chars({{0xd800, 0xdfff}}));
  CHECK(hole->start() == 0, "surrogates only");
  const auto edge = compile(chars({{0xd800, 0xe000}}));
  CHECK(edge->next(edge->start(), 0xe000) != 0 && !edge->any_live_in(edge->start(), 0, 0xdfff), "surrogates and one");
  const auto twice = compile(rep(alt({rep(lit("a"), 2, -1), lit("b")}), 0, -1));
  CHECK(!matches(*twice, "a") && !matches(*twice, "bab") && matches(*twice, "baab"), "star of a{2,}");
  const auto pairs = compile(both({rep(lit("ab"), 1, -1), rep(any(), 0, 5)}));
  CHECK(matches(*pairs, "abab") && run(*pairs, "ababa") == 0 && !matches(*pairs, "ababab"), "bounded length");
  const auto huge = compile(rep(rep(lit("ab"), 0, INT64_MAX / 2), 3, INT64_MAX / 2));
  CHECK(huge->max_length(huge->start()) == -1 && matches(*huge, "abababab"), "counts beyond 64 bits");
  const auto gaps = compile(rep(rep(lit("a"), 3, 3), 0, -1));
  CHECK(matches(*gaps, "aaa") && !matches(*gaps, "aaaa") && matches(*gaps, "aaaaaa"), "counts with gaps");
  const auto words = compile(both({rep(word_char(), 0, -1), negate(alt({lit("if"), lit("else")})), rep(any(), 1, 20)}));
  CHECK(!matches(*words, "if") && matches(*words, "iff") && !matches(*words, ""), "identifiers");
}

void test_many_classes() {
  std::vector<Program> singles;
  for (int64_t i = 0; i < 3000; ++i) singles.push_back(cat({chars({{0x4e00 + i, 0x4e00 + i}}), lit(std::to_string(i))}));
  const auto dfa = compile(alt(singles));
  for (uint32_t i = 0; i < 3000; i += 7) {
    const DfaState s = dfa->next(dfa->start(), 0x4e00 + i);
    const std::string digits = std::to_string(i);
    CHECK(dfa->accepting(run(*dfa, s, Text(digits.begin(), digits.end()))), "class %u", i);
    CHECK(dfa->next(s, 'x') == 0 && dfa->next(s, 0x4e00 + i) == 0, "class %u", i);
  }
  CHECK(dfa->any_live_in(dfa->start(), 0x80, kTop) && !dfa->has_next(0), "many classes");
}

// ---- hostile inputs -------------------------------------------------------------------------------------

// Time of this thread: the machine may be busy.
double now_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

// Builds, walks the text, and says what it cost.
std::shared_ptr<RegexDfa> measure(const char* name, const Program& p, const std::string& text) {
  const double t0 = now_us();
  auto dfa = compile(p);
  DfaState s = dfa->start();
  const double t1 = now_us();
  size_t steps = 0;
  for (const char c : text) {
    s = dfa->next(s, static_cast<unsigned char>(c));
    ++steps;
    if (s == 0) break;
  }
  const double t2 = now_us();
  if (g_times) {
    std::printf("%-46s build %9.1f us  %7zu steps %7.3f us each  %7zu states%s\n", name, t1 - t0, steps,
                steps == 0 ? 0.0 : (t2 - t1) / static_cast<double>(steps), dfa->state_count(), s == 0 ? "  DEAD" : "");
  }
  CHECK(s != 0, "%s: dead after %zu steps", name, steps);
  return dfa;
}

std::string repeated(const std::string& s, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += s;
  return out;
}

void test_counters() {
  const Program az = chars({{'a', 'z'}});
  const Program nl = chars({{'\n', '\n'}});
  const Program dot = chars({{0, 9}, {11, 0xd7ff}, {0xe000, kTop}});
  measure("[a-z]{1,2000}", rep(az, 1, 2000), repeated("a", 2000));
  measure("[a-z]{1,1000000000}", rep(az, 1, 1000000000), repeated("az", 1000));
  measure("(\\S+\\s+){0,199}", rep(cat({rep(non_space(), 1, -1), rep(space(), 1, -1)}), 0, 199), repeated("word  and ", 99));
  measure("(.|\\n){1,2000}", rep(alt({dot, nl}), 1, 2000), repeated("x\n", 1000));
  measure("(\\w+ ?){0,100}", rep(cat({rep(word_char(), 1, -1), rep(lit(" "), 0, 1)}), 0, 100), repeated("word ", 100));
  measure("(\\w+ ?){0,100} one word", rep(cat({rep(word_char(), 1, -1), rep(lit(" "), 0, 1)}), 0, 100), repeated("w", 2000));
  const Program host = chars({{'-', '.'}, {'0', '9'}, {'a', 'z'}});
  const Program tld = chars({{'.', '.'}, {'a', 'z'}});
  const Program path = chars({{' ', ' '}, {'-', '/'}, {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  measure("([\\da-z.-]+)\\.([a-z.]{2,6})([/\\w .-]*)*",
          cat({rep(host, 1, -1), lit("."), rep(tld, 2, 6), rep(rep(path, 0, -1), 0, -1)}),
          repeated("www.example.com/a.b/c d", 40));
  const Program label = cat({rep(word_char(), 1, 1), rep(cat({rep(alt({word_char(), lit("-")}), 0, 61), word_char()}), 0, 1)});
  measure("label(.label)*", cat({label, rep(cat({lit("."), label}), 0, -1)}), repeated("www.exa-mple.", 200) + "com");
  measure("(a{0,50}b?){0,50}c", cat({rep(cat({rep(lit("a"), 0, 50), rep(lit("b"), 0, 1)}), 0, 50), lit("c")}), repeated("aab", 40));
  measure("((a|b){1,9}c?){3,60}", rep(cat({rep(alt({lit("a"), lit("b")}), 1, 9), rep(lit("c"), 0, 1)}), 3, 60), repeated("abcaa", 40));
}

// Far from its ends, a count is one state as far as short texts can tell.
void test_near() {
  const auto alike = [](const Program& p, const std::string& one, const std::string& other, uint32_t most, bool expected) {
    const auto dfa = compile(p);
    const DfaState a = run(*dfa, one), b = run(*dfa, other);
    CHECK(a != b && (dfa->near(a, most) == dfa->near(b, most)) == expected, "after %zu and %zu, within %u", one.size(), other.size(), most);
  };
  const Program az = chars({{'a', 'z'}});
  const auto as = [](size_t n) { return std::string(n, 'a'); };
  alike(rep(az, 1, 500), as(100), as(300), 128, true);
  alike(rep(az, 1, 500), as(370), as(371), 128, true);
  alike(rep(az, 1, 500), as(371), as(372), 128, false);
  alike(rep(az, 500, 500), as(100), as(371), 128, true);
  alike(rep(az, 500, -1), as(10), as(20), 128, true);
  alike(rep(az, 0, 20), as(1), as(2), 128, false);
  const Program words = cat({rep(cat({rep(az, 1, -1), lit(" ")}), 0, 199), rep(az, 1, -1)});
  alike(words, "a a ", "a a a a ", 20, true);
  alike(both({rep(az, 1, 500), negate(cat({rep(any(), 0, -1), lit("b")}))}), as(100), as(300), 128, false);
}

void test_ambiguous() {
  std::string text;
  Rng rng(7);
  for (int i = 0; i < 4000; ++i) text += roll(rng, 2) == 0 ? 'a' : 'b';
  const Program ab = chars({{'a', 'b'}});
  const Program a = lit("a");
  measure("[ab]*a[ab]{24}", cat({rep(ab, 0, -1), a, rep(ab, 24, 24)}), text);
  measure("[ab]*a[ab]{10,24}", cat({rep(ab, 0, -1), a, rep(ab, 10, 24)}), text);
  std::vector<Program> options;
  for (int i = 0; i < 300; ++i) options.push_back(rep(a, 0, 1));
  for (int i = 0; i < 300; ++i) options.push_back(a);
  measure("(a?){300}a{300}", cat(options), repeated("a", 600));
  measure("(a*)*b", cat({rep(rep(a, 0, -1), 0, -1), lit("b")}), repeated("a", 1000));
  measure("((a|aa)+)+b", cat({rep(rep(alt({a, lit("aa")}), 1, -1), 1, -1), lit("b")}), repeated("a", 1000));
}

void test_size() {
  Rng rng(11);
  std::vector<Program> words;
  std::string longest;
  for (int i = 0; i < 20000; ++i) {
    std::string w;
    for (int64_t n = 3 + roll(rng, 20); n > 0; --n) w += static_cast<char>('a' + roll(rng, 26));
    words.push_back(lit(w));
    longest = w.size() > longest.size() ? w : longest;
  }
  measure("6,000 words", alt(words), longest);
  measure("(6,000 words ){1,50}", rep(cat({alt(words), lit(" ")}), 1, 50), repeated(longest + " ", 49));
  words.clear();
  for (size_t i = 1; i <= 1500; ++i) words.push_back(lit(repeated("a", i)));
  measure("a|aa|...|a^1500", alt(words), repeated("a", 1500));
  measure("100,000 literal characters", lit(repeated("abcdefghij", 10000)), repeated("abcdefghij", 10000));
  measure("(100,000 literal characters)*", rep(lit(repeated("abcdefghij", 10000)), 0, -1), repeated("abcdefghij", 20000));
  std::vector<Program> parts;
  for (int64_t i = 0; i < 100000; ++i) parts.push_back(rep(chars({{'a' + i % 26, 'a' + i % 26}}), 0, 1));
  measure("a?b?c?...: 100,000 optional parts", cat(parts), "abcabcabc");
}

void test_nesting() {
  constexpr int kDepth = 50000;
  const auto nest = [](const Program& seed, const std::function<void(Program&)>& wrap) {
    Program p = seed;
    for (int i = 0; i < kDepth; ++i) wrap(p);
    return p;
  };
  const auto append = [](Program& p, std::initializer_list<int64_t> tail) { p.insert(p.end(), tail); };
  const Program a = lit("a");
  measure("50,000 x (...)", nest(a, [&](Program& p) { append(p, {3, 1}); }), "a");
  measure("50,000 x (...)*", nest(a, [&](Program& p) { append(p, {5, 0, -1}); }), "aaa");
  measure("50,000 x (...){2,3}", nest(a, [&](Program& p) { append(p, {5, 2, 3}); }), "aaa");
  measure("50,000 x (...b)", nest(a, [&](Program& p) { append(p, {2, 1, 'b', 'b', 3, 2}); }), "abb");
  measure("50,000 x (...|b)", nest(a, [&](Program& p) { append(p, {2, 1, 'b', 'b', 4, 2}); }), "b");
  measure("50,000 x (...b)?", nest(a, [&](Program& p) { append(p, {2, 1, 'b', 'b', 3, 2, 5, 0, 1}); }), "abb");
  measure("50,000 x (...b)+", nest(a, [&](Program& p) { append(p, {2, 1, 'b', 'b', 3, 2, 5, 1, -1}); }), "abb");
  measure("50,000 x (b...)", nest(a, [&](Program& p) {
            append(p, {2, 1, 'b', 'b'});
            append(p, {4, 2, 2, 1, 'c', 'c', 3, 2});
          }), "bccc");
  measure("50,000 x not", nest(a, [&](Program& p) { append(p, {7}); }), "a");
  Program deep = a;
  const auto nest_complements = [&](int n) {
    for (int i = 0; i < n; ++i) append(deep, {2, 1, 'b', 'b', 4, 2, 7, 2, 1, 'a', 'a', 5, 0, -1, 3, 2});
  };
  nest_complements(501);  // not(... | b)a*: everything but b, and an even number nothing
  measure("501 nested complements", deep, "abab");
  nest_complements(499);
  std::string error;
  CHECK(RegexDfa::from_program(deep, &error) == nullptr && !error.empty(), "complements nested without limit");
}

void test_boolean_cost() {
  const Program az = rep(chars({{'a', 'z'}}), 0, -1);
  const Program all = rep(any(), 0, -1);
  measure(".*foo.* and .{0,1000}", both({cat({all, lit("foo"), all}), rep(any(), 0, 1000)}), repeated("x", 997));
  measure("[a-z]*-[a-z]* and .{5000,}", both({cat({az, lit("-"), az}), rep(any(), 5000, -1)}), repeated("ab", 100) + "-" + repeated("ab", 100));
  measure("not .*foo.*", negate(cat({all, lit("foo"), all})), repeated("fofo-", 200));
  measure(".*a.* and .*b.* and ... .*h.*, 12 long",
          both({cat({all, lit("a"), all}), cat({all, lit("b"), all}), cat({all, lit("c"), all}), cat({all, lit("d"), all}),
                cat({all, lit("e"), all}), cat({all, lit("f"), all}), cat({all, lit("g"), all}), cat({all, lit("h"), all}),
                rep(any(), 0, 12)}), "xxxxhgfedcba");
  std::vector<Program> primes;
  for (const int64_t n : {2, 3, 5, 7, 11, 13, 17}) primes.push_back(rep(rep(lit("a"), n, n), 1, -1));
  const auto dfa = compile(both(primes));
  CHECK(dfa->is_empty_within(1000) == -1, "510510 a's are not found within 1000 states");
}

void test_threads() {
  const Program word = cat({rep(non_space(), 1, -1), rep(space(), 1, -1)});
  const Program p = both({rep(word, 0, 199), negate(cat({rep(any(), 0, -1), lit("zz"), rep(any(), 0, -1)}))});
  const auto shared = compile(p);
  const auto walk = [&](RegexDfa& dfa, uint32_t seed) {
    Rng rng(seed);
    uint64_t digest = 0;
    for (int i = 0; i < 60; ++i) {
      DfaState s = dfa.start();
      for (int k = 0; k < 60 && s != 0; ++k) {
        const auto c = static_cast<uint32_t>("abz  \n"[roll(rng, 6)]);
        s = dfa.next(s, roll(rng, 20) == 0 ? 0x4e00 : c);
        const mw::Chain& w = dfa.widest(s);
        digest = digest * 31 + (dfa.accepting(s) ? 1U : 0U) + static_cast<uint64_t>(dfa.min_length(s)) * 5;
        digest = digest * 31 + w.set.lo + w.set.hi * 3 + (dfa.any_live_in(s, 0x80, 0x10ffff) ? 7U : 0U);
      }
    }
    return digest;
  };
  std::vector<uint64_t> found(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { found[i] = walk(*shared, static_cast<uint32_t>(i / 2)); });
  for (std::thread& t : threads) t.join();
  for (size_t i = 0; i < 4; ++i) CHECK(found[i] == walk(*compile(p), static_cast<uint32_t>(i / 2)), "thread %zu", i);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--threads") == 0) {
    test_threads();
    return 0;
  }
  g_more = argc > 1 && std::strcmp(argv[1], "--more") == 0;
  g_times = argc > 1 && std::strcmp(argv[1], "--times") == 0;
  test_malformed();
  test_known();
  test_random();
  test_many_classes();
  test_counters();
  test_near();
  test_ambiguous();
  test_size();
  test_nesting();
  test_boolean_cost();
  test_threads();
  std::puts("regex: ok");
  return 0;
}
