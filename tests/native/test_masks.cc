// Masks of random constraints over random vocabularies against brute force: every token by itself; no dead ends; token
// budgets; vocabularies that lack bytes against a search over token sequences.
//   test_masks                   the laws
//   test_masks FIRST COUNT       other random programs
#include <functional>
#include <set>

#include "../../src/core/matcher.h"
#include "../../src/core/spelling.h"
#include "problems.h"

namespace {

using mw::ConfigId;
using mw::Matcher;
using mw::Request;
using mw::TokenId;
using support::chance;
using support::Coverage;
using support::RandomProgram;
using support::Rng;
using support::roll;
using Ids = std::vector<TokenId>;

constexpr uint32_t kUnlimited = Matcher::kNoBudget;

// One random problem and what is asked of it.
struct Problem {
  uint32_t seed;
  std::shared_ptr<mw::Vocab> vocab;
  RandomProgram random;
  bool whole_characters = false;  // each token is a byte or whole characters
  std::vector<std::string> taken;

  Problem(uint32_t number, std::shared_ptr<mw::Vocab> v) : seed(number), vocab(v), random(number, std::move(v)) {}

  // Repeats a step until the nodes that it reaches are defined.
  template <class Step>
  bool complete(Matcher& m, Step step) {
    for (;;) {
      const Matcher::Verdict v = step();
      if (v != Matcher::Verdict::Needs) return v == Matcher::Verdict::Yes;
      CHECK(!m.request().needs().empty(), "%s: needs nothing", name().c_str());
      random.lower(std::vector<mw::NodeId>(m.request().needs()));
    }
  }
  Ids allowed(Matcher& m, uint32_t budget = kUnlimited) {
    std::vector<uint32_t> row(mw::words_for(vocab->size()) + 2, 0xffffffffu);
    complete(m, [&] { return m.fill(row, budget, false); });
    Ids out;
    for (TokenId t = 0; t < row.size() * 32; ++t)
      if (mw::test_bit(row.data(), t)) out.push_back(t);
    CHECK(out.empty() || out.back() < vocab->size(), "%s: bits beyond the vocabulary", name().c_str());
    return out;
  }
  bool accept(Matcher& m, TokenId t) {
    return complete(m, [&] { return m.accept(t); });
  }
  uint32_t cost(Matcher& m) {
    uint32_t n = 0;
    complete(m, [&] { return m.cost(n); });
    return n;
  }
  std::string name() const {
    std::string out = "program " + std::to_string(seed) + " after";
    for (const std::string& t : taken) out += " '" + support::show(t) + "'";
    return out;
  }
  std::string show(const Ids& ids) const {
    std::string out;
    for (size_t i = 0; i < ids.size() && i < 8; ++i) out += " '" + support::show(vocab->bytes(ids[i])) + "'";
    return out;
  }
};

Ids without(const Ids& a, const Ids& b) {
  Ids out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

void check_same(const Problem& p, const char* what, const Ids& mask, const Ids& expected) {
  CHECK(mask == expected, "%s: %s: too much:%s; missing:%s", p.name().c_str(), what, p.show(without(mask, expected)).c_str(),
        p.show(without(expected, mask)).c_str());
}

// Every token by itself, by the bytes.
Ids by_advance(Problem& p, Matcher& m, const std::function<bool(ConfigId)>& lives) {
  Request& r = m.request();
  Ids out;
  for (TokenId t = 0; t < p.vocab->size(); ++t) {
    if (p.vocab->is_eos(t)) {
      if (r.config(m.config()).accepting) out.push_back(t);
      continue;
    }
    if (!p.vocab->is_text(t)) continue;
    const ConfigId to = r.advance(m.config(), p.vocab->bytes(t));
    r.take_doubt();
    if (to != Request::kNoConfig && lives(to)) out.push_back(t);
  }
  return out;
}

// ---- budgets

// After each token that a budget lets through, what is left suffices; and if the budget suffices, some token is let through.
void check_budget(Problem& p, Matcher& m, const Ids& all, uint32_t cost, uint32_t budget) {
  const Ids ids = p.allowed(m, budget);
  const Ids extra = without(ids, all);
  CHECK(extra.empty(), "%s: budget %u lets through%s", p.name().c_str(), budget, p.show(extra).c_str());
  for (const TokenId t : ids) {
    if (p.vocab->is_eos(t)) {
      CHECK(budget >= 1, "%s: EOS without a budget", p.name().c_str());
      continue;
    }
    Matcher after = m.fork();
    CHECK(p.accept(after, t), "%s: token in the mask refused", p.name().c_str());
    const uint32_t rest = p.cost(after);
    CHECK(rest + 2 <= budget, "%s: budget %u lets '%s' through, which needs %u more", p.name().c_str(), budget,
          support::show(p.vocab->bytes(t)).c_str(), rest);
  }
  CHECK(!ids.empty() || cost + 1 > budget, "%s: nothing fits into a budget of %u, yet %u tokens suffice", p.name().c_str(), budget, cost);
}

void check_budgets(Problem& p, Matcher& m, const Ids& all, Rng& rng) {
  const uint32_t cost = p.cost(m);
  CHECK(cost < mw::kNoCost, "%s: cannot be finished", p.name().c_str());
  CHECK((cost == 0) == m.is_accepting(), "%s: costs %u", p.name().c_str(), cost);
  check_budget(p, m, all, cost, cost + 1);
  check_budget(p, m, all, cost, cost + 2 + static_cast<uint32_t>(roll(rng, 5)));
  if (chance(rng, 20)) check_budget(p, m, all, cost, static_cast<uint32_t>(roll(rng, cost + 1)));
  check_same(p, "a large budget", p.allowed(m, 1000000), all);
}

// ---- vocabularies that lack bytes

// Whether some sequence of tokens completes the text, by search over configurations; -1 = gave up.
class TokenSearch {
 public:
  TokenSearch(Problem& p, Request& r) : p_(p), r_(r) {}

  int lives(ConfigId from) {
    const int length = shortest(from);
    return length == kGaveUp ? -1 : length == kNever ? 0 : 1;
  }
  static constexpr int kGaveUp = -1, kNever = -2;
  // Tokens to the nearest end.
  int shortest(ConfigId from) {
    if (const auto it = known_.find(from); it != known_.end()) return it->second;
    return known_[from] = search(from);
  }

 private:
  int search(ConfigId from) {
    std::vector<ConfigId> layer{from};
    std::set<ConfigId> seen{from};
    for (int length = 0; !layer.empty(); ++length) {
      std::vector<ConfigId> next;
      for (const ConfigId id : layer) {
        if (r_.config(id).accepting) return length;
        for (const ConfigId to : successors(id))
          if (seen.insert(to).second) next.push_back(to);
        if (seen.size() > 400) return kGaveUp;
      }
      layer.swap(next);
    }
    return kNever;
  }
  const std::vector<ConfigId>& successors(ConfigId id) {
    const auto [it, fresh] = successors_.try_emplace(id);
    if (!fresh) return it->second;
    std::set<ConfigId> to;
    for (TokenId t = 0; t < p_.vocab->size(); ++t)
      if (p_.vocab->is_text(t)) to.insert(r_.advance(id, p_.vocab->bytes(t)));
    r_.take_doubt();
    to.erase(Request::kNoConfig);
    it->second.assign(to.begin(), to.end());
    return it->second;
  }

  Problem& p_;
  Request& r_;
  std::map<ConfigId, int> known_;
  std::map<ConfigId, std::vector<ConfigId>> successors_;
};

// ---- walks

struct Counts {
  int masks = 0, finished = 0, budgets = 0, least = 0, unspellable = 0, undecided = 0;
} g_counts;

TokenId choose(const Problem& p, const Ids& ids, Rng& rng) {
  Ids longer;
  for (const TokenId t : ids)
    if (!p.vocab->is_eos(t) && p.vocab->bytes(t).size() > 1) longer.push_back(t);
  return !longer.empty() && chance(rng, 60) ? support::pick(rng, longer) : support::pick(rng, ids);
}

// The least number of tokens, unless some tokens join one character's end to another's beginning.
void check_least(Problem& p, Matcher& m, TokenSearch& search, bool exact) {
  const int least = search.shortest(m.config());
  const auto cost = static_cast<int>(p.cost(m));
  if (least == TokenSearch::kGaveUp) return;
  CHECK(exact ? cost == least : cost >= least, "%s: costs %d, not %d", p.name().c_str(), cost, least);
  ++g_counts.least;
}

// Nodes are lowered as the walk meets them, so masks come before brute force, which wants them all.
void walk(Problem& p, Rng& rng, int steps) {
  p.taken.clear();
  Matcher m(p.random.program());
  p.complete(m, [&] { return m.prepare(); });
  std::unique_ptr<TokenSearch> search;
  const bool spells = p.random.program()->spells_freely();
  for (int i = 0; i < steps; ++i) {
    const Ids ids = p.allowed(m);
    ++g_counts.masks;
    p.random.lower_all();
    bool decided = true;
    if (!search) search = std::make_unique<TokenSearch>(p, m.request());
    const auto lives = [&](ConfigId to) {
      if (spells) return true;
      const int verdict = search->lives(to);
      decided = decided && verdict >= 0;
      if (verdict >= 0) CHECK(mw::can_be_spelled(m.request(), to) == (verdict == 1), "%s: can_be_spelled", p.name().c_str());
      if (verdict == 0) ++g_counts.unspellable;
      return verdict == 1;
    };
    const Ids expected = by_advance(p, m, lives);
    if (decided) check_same(p, "mask", ids, expected);
    else ++g_counts.undecided;
    if (ids.empty() && i == 0 && !p.vocab->is_byte_complete()) return;  // no text can be spelled: refused when compiled
    CHECK(!ids.empty(), "%s: a dead end", p.name().c_str());
    if ((spells || decided) && chance(rng, 70)) {
      check_budgets(p, m, ids, rng);
      ++g_counts.budgets;
      if (p.random.is_regular() || !spells) check_least(p, m, *search, !spells || p.whole_characters);
    }
    const TokenId t = choose(p, ids, rng);
    CHECK(p.accept(m, t), "%s: '%s' is in the mask and refused", p.name().c_str(), support::show(p.vocab->bytes(t)).c_str());
    if (p.vocab->is_eos(t)) {
      ++g_counts.finished;
      return;
    }
    p.taken.emplace_back(p.vocab->bytes(t));
  }
}

// From anywhere, the budget of the closing cost leads to the end by whatever token it lets through.
void close_in_time(Problem& p, Rng& rng) {
  p.taken.clear();
  Matcher m(p.random.program());
  p.complete(m, [&] { return m.prepare(); });
  for (int64_t i = roll(rng, 6); i > 0; --i) {
    const Ids ids = p.allowed(m);
    if (ids.empty()) return;
    const TokenId t = choose(p, ids, rng);
    if (p.vocab->is_eos(t)) return;
    CHECK(p.accept(m, t), "%s: refused", p.name().c_str());
    p.taken.emplace_back(p.vocab->bytes(t));
  }
  if (p.cost(m) >= mw::kNoCost) return;  // no text can be spelled
  for (uint32_t left = p.cost(m) + 1 + static_cast<uint32_t>(roll(rng, 3)); !m.is_finished(); --left) {
    const Ids ids = p.allowed(m, left);
    CHECK(!ids.empty(), "%s: not closed in time, %u left", p.name().c_str(), left);
    const TokenId t = support::pick(rng, ids);
    CHECK(p.accept(m, t), "%s: refused", p.name().c_str());
    p.taken.emplace_back(p.vocab->bytes(t));
  }
}

void test_programs(uint32_t first, uint32_t count, Coverage coverage, int vocab_size) {
  std::shared_ptr<mw::Vocab> vocab;
  bool plain = false;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    if (!vocab || seed % 8 == 0) {
      plain = chance(rng, 50);
      vocab = support::random_tokens(rng, coverage, vocab_size, plain).build();
    }
    Problem p(seed, vocab);
    p.whole_characters = plain;
    const bool free = vocab->is_byte_complete() || vocab->is_character_closed();
    walk(p, rng, free ? 12 : 6);
    if (free) close_in_time(p, rng);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto first = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1);
  const auto count = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 60);
  test_programs(first * 8, count, Coverage::Complete, 250);
  test_programs(first * 8 + 1000000, count / 2, Coverage::Characters, 250);
  test_programs(first * 8 + 2000000, count / 3, Coverage::Holes, 60);
  test_programs(first * 8 + 3000000, count / 3, Coverage::Pieces, 80);
  std::printf("masks: ok; %d masks, %d of them with budgets, %d against the least cost, %d texts finished, %d dead by spelling, %d undecided\n", g_counts.masks, g_counts.budgets,
              g_counts.least, g_counts.finished, g_counts.unspellable, g_counts.undecided);
  return 0;
}
