// Matchers: what is taken and refused, rollback, forks, reset, the end of a text, forgetting nothing and leaving no trace.
#include <set>

#include "../../src/core/matcher.h"
#include "problems.h"

namespace {

using mw::Matcher;
using mw::TokenId;
using support::chance;
using support::Coverage;
using support::RandomProgram;
using support::Rng;
using support::roll;
using Verdict = Matcher::Verdict;
using Row = std::vector<uint32_t>;

// A matcher that lowers what it needs.
class Driver {
 public:
  explicit Driver(RandomProgram& random) : random_(&random), m_(random.program()) {}

  bool accept(TokenId t) {
    return complete([&] { return m_.accept(t); });
  }
  bool accept_bytes(std::string_view bytes) {
    return complete([&] { return m_.accept_bytes(bytes); });
  }
  Row mask(uint32_t budget = Matcher::kNoBudget) {
    Row row(mw::words_for(m_.request().vocab().size()), 0xdeadbeefu);
    complete([&] { return m_.fill(row, budget, false); });
    return row;
  }
  Driver fork() const { return Driver(*random_, m_.fork()); }
  Matcher& matcher() { return m_; }

 private:
  Driver(RandomProgram& random, Matcher m) : random_(&random), m_(std::move(m)) {}
  template <class Step>
  bool complete(Step step) {
    for (;;) {
      const Verdict v = step();
      if (v != Verdict::Needs) return v == Verdict::Yes;
      random_->lower(std::vector<mw::NodeId>(m_.request().needs()));
    }
  }

  RandomProgram* random_;
  Matcher m_;
};

// What can be seen of a matcher.
struct View {
  Row mask;
  bool accepting, finished;
  uint32_t tokens;
  bool operator==(const View&) const = default;
};
View view(Driver& d) {
  Row mask = d.mask();
  return {std::move(mask), d.matcher().is_accepting(), d.matcher().is_finished(), d.matcher().num_tokens()};
}

std::vector<TokenId> ids(const Row& row) {
  std::vector<TokenId> out;
  for (TokenId t = 0; t < row.size() * 32; ++t)
    if (mw::test_bit(row.data(), t)) out.push_back(t);
  return out;
}

TokenId choose(const mw::Vocab& vocab, const std::vector<TokenId>& allowed, Rng& rng) {
  std::vector<TokenId> longer;
  for (const TokenId t : allowed)
    if (!vocab.is_eos(t) && vocab.bytes(t).size() > 1) longer.push_back(t);
  return !longer.empty() && chance(rng, 70) ? support::pick(rng, longer) : support::pick(rng, allowed);
}

// ---- laws over random walks

// Refused tokens, ids that are none, special ones and refused texts leave no trace.
void check_refusals(Driver& d, const mw::Vocab& vocab, const View& before, Rng& rng) {
  for (int i = 0; i < 12; ++i) {
    const auto t = static_cast<TokenId>(roll(rng, static_cast<int64_t>(vocab.size()) + 3));
    const bool allowed = t < vocab.size() && mw::test_bit(before.mask.data(), t);
    Driver fork = d.fork();
    CHECK(fork.accept(t) == allowed, "token %u", t);
    if (allowed) CHECK(fork.matcher().num_tokens() == before.tokens + 1, "a step is counted");
    else CHECK(view(fork) == before, "a refused token left a trace");
    if (t < vocab.size() && !vocab.is_text(t) && !vocab.is_eos(t)) CHECK(!allowed, "a special token");
  }
  for (const char* text : {"\xff", "}}}}}}}}", "\"\"\"\"", "\x01"}) {
    Driver fork = d.fork();
    if (!fork.accept_bytes(text)) CHECK(view(fork) == before, "a refused text left a trace");
  }
  CHECK(!d.accept(0xfffffff0u) && view(d) == before, "no such token");
  Driver same = d.fork();
  const bool lives = before.accepting || before.finished || !ids(before.mask).empty();
  CHECK(same.accept_bytes("") == lives && same.mask() == before.mask, "the empty text changes nothing");
}

// The bytes of a token and the token lead to the same place.
void check_bytes(Driver& d, const mw::Vocab& vocab, TokenId t) {
  if (vocab.is_eos(t)) return;
  Driver by_token = d.fork(), by_bytes = d.fork();
  CHECK(by_token.accept(t) && by_bytes.accept_bytes(vocab.bytes(t)), "token %u", t);
  CHECK(by_token.matcher().config() == by_bytes.matcher().config(), "token %u and its bytes", t);
}

void check_end(Driver& d, const mw::Vocab& vocab, Rng& rng) {
  if (d.matcher().is_finished()) return;
  if (!d.matcher().is_accepting()) {
    for (const TokenId t : vocab.eos()) CHECK(!d.fork().accept(t), "EOS too early");
    return;
  }
  Driver fork = d.fork();
  const View before = view(fork);
  CHECK(fork.accept(support::pick(rng, vocab.eos())), "EOS");
  CHECK(fork.matcher().is_finished() && !fork.matcher().is_accepting(), "finished");
  const std::vector<TokenId> after = ids(fork.mask());
  CHECK(after == vocab.eos(), "after the end there is EOS alone");
  CHECK(ids(fork.mask(1)) == vocab.eos(), "after the end, with a budget");
  for (int i = 0; i < 6; ++i) {
    const auto t = static_cast<TokenId>(roll(rng, static_cast<int64_t>(vocab.size())));
    if (!vocab.is_eos(t)) CHECK(!fork.accept(t), "text after the end");
  }
  CHECK(!fork.accept_bytes("a") && fork.accept_bytes(""), "bytes after the end");
  const uint32_t steps = fork.matcher().num_tokens();
  CHECK(fork.accept(vocab.eos()[0]) && fork.matcher().num_tokens() == steps + 1, "EOS again is padding");
  fork.matcher().rollback(2);
  CHECK(view(fork) == before, "rolled back over the end");
}

void check_budget_corners(Driver& d, const mw::Vocab& vocab) {
  CHECK(ids(d.mask(0)).empty(), "no token left");
  const std::vector<TokenId> last = ids(d.mask(1));
  CHECK(d.matcher().is_accepting() ? last == vocab.eos() : last.empty(), "one token left: EOS or nothing");
}

void walk(RandomProgram& random, const mw::Vocab& vocab, Rng& rng) {
  Driver d(random);
  std::vector<View> history{view(d)};
  std::vector<TokenId> taken;
  const auto take = [&] {
    if (d.matcher().is_finished()) return;
    const std::vector<TokenId> allowed = ids(history.back().mask);
    if (allowed.empty()) return;
    const TokenId t = choose(vocab, allowed, rng);
    check_bytes(d, vocab, t);
    CHECK(d.accept(t), "an allowed token");
    taken.push_back(t);
    history.push_back(view(d));
    CHECK(history.back().tokens == taken.size(), "steps");
  };
  for (int i = 0; i < 14; ++i) {
    take();
    check_refusals(d, vocab, history.back(), rng);
    check_end(d, vocab, rng);
    if (!d.matcher().is_finished()) check_budget_corners(d, vocab);
    if (chance(rng, 30)) {  // back, and possibly another way
      const auto n = static_cast<uint32_t>(roll(rng, static_cast<int64_t>(taken.size()) + 1));
      Driver stays = d.fork();
      d.matcher().rollback(n);
      CHECK(view(stays) == history.back(), "a fork does not go back");
      taken.resize(taken.size() - n);
      history.resize(history.size() - n);
      CHECK(view(d) == history.back(), "rollback by %u", n);
    }
  }
  // Another matcher, another request: the same history shows the same.
  Driver again(random);
  for (size_t i = 0; i <= taken.size(); ++i) {
    CHECK(view(again) == history[i], "the same tokens on a fresh matcher, step %zu", i);
    if (i < taken.size()) CHECK(again.accept(taken[i]), "step %zu", i);
  }
  Driver fork = d.fork();
  d.matcher().reset();
  CHECK(view(d) == history[0], "reset");
  CHECK(view(fork) == history.back(), "a fork is not reset");
  while (fork.matcher().num_tokens() > 0) fork.matcher().rollback(1);
  CHECK(view(fork) == history[0], "rolled back to the start");
}

void test_walks(Coverage coverage, uint32_t first, uint32_t count) {
  for (uint32_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    const auto vocab = support::random_tokens(rng, coverage, 150).build();
    RandomProgram random(seed, vocab);
    walk(random, *vocab, rng);
  }
}

// ---- known corners


std::shared_ptr<mw::Program> program_over(std::shared_ptr<mw::Vocab> vocab, const std::vector<std::string>& texts) {
  auto program = std::make_shared<mw::Program>(vocab, mw::Whitespace::Compact);
  program->define_machine(program->new_node(), std::make_unique<mw::ChoiceMachine>(texts, *vocab), mw::ChoiceMachine::start());
  return program;
}

std::vector<TokenId> allowed(Matcher& m, uint32_t budget = Matcher::kNoBudget) {
  Row row(mw::words_for(m.request().vocab().size()) + 1, ~0u);
  CHECK(m.fill(row, budget, false) == Verdict::Yes, "fill");
  return ids(row);
}

void test_small_vocabularies() {
  const auto one = std::make_shared<mw::Vocab>(std::vector<std::string>{"a"}, std::vector<uint8_t>{0}, std::vector<TokenId>{});
  Matcher m(program_over(one, {"aaa"}));
  for (int i = 0; i < 3; ++i) CHECK(allowed(m) == std::vector<TokenId>{0} && m.accept(0) == Verdict::Yes, "one token");
  CHECK(m.is_accepting() && allowed(m).empty() && m.accept(0) == Verdict::No, "no EOS, no way on");

  const auto none = std::make_shared<mw::Vocab>(std::vector<std::string>{}, std::vector<uint8_t>{}, std::vector<TokenId>{});
  Matcher empty(program_over(none, {"a"}));
  CHECK(allowed(empty).empty() && empty.accept(0) == Verdict::No && !empty.is_accepting(), "no tokens");

  const auto eos = std::make_shared<mw::Vocab>(std::vector<std::string>{"<s>", ""}, std::vector<uint8_t>{1, 0}, std::vector<TokenId>{0});
  Matcher nothing(program_over(eos, {"", "a"}));
  CHECK(allowed(nothing) == std::vector<TokenId>{0}, "EOS alone");
  CHECK(nothing.is_accepting() && nothing.accept(1) == Verdict::No && nothing.accept(0) == Verdict::Yes, "EOS alone");
  Matcher dead(program_over(eos, {"a"}));
  CHECK(allowed(dead).empty() && dead.accept(0) == Verdict::No, "nothing can be spelled");
}

void test_duplicates() {
  support::TokenList list;
  for (int i = 0; i < 40; ++i) list.add(i % 2 ? "ab" : "a");
  list.add("ab", 1);
  list.add_eos("ab");
  list.add("b");
  Matcher m(program_over(list.build(), {"ab"}));
  CHECK(allowed(m).size() == 40, "all duplicates");
  CHECK(m.fork().accept(40) == Verdict::No, "the text of a special token is not its");
  CHECK(m.fork().accept(41) == Verdict::No, "EOS is no text");
  uint32_t cost = 0;
  CHECK(m.cost(cost) == Verdict::Yes && cost == 1, "cost %u", cost);
  CHECK(allowed(m, 2).size() == 20 && allowed(m, 3).size() == 40, "budgets");
}

// A token of many bytes: through the walk of a mask, and through plain steps.
void test_long_tokens() {
  constexpr size_t kLength = 50000;
  const std::string brackets(kLength, '['), letters(kLength, 'a');
  support::TokenList list;
  for (unsigned b = 0; b < 256; ++b) list.add(std::string(1, static_cast<char>(b)));
  list.add(brackets);
  list.add("\"" + letters + "\"");
  list.add(letters);
  list.add("[" + std::string(kLength, ' ') + "[");
  list.add_eos("<eos>");
  const auto vocab = list.build();
  auto program = std::make_shared<mw::Program>(vocab, mw::Whitespace::Any);
  const mw::NodeId root = program->new_node(), text = program->new_node();
  const mw::NodeId items = program->new_node();
  program->uses_json();
  program->define_machine(root, std::make_unique<mw::ArrayMachine>(std::vector<mw::NodeId>{}, items, 0, mw::ArrayMachine::kNoMax, mw::Whitespace::Any), mw::ArrayMachine::start());
  program->define_machine(text, std::make_unique<mw::StringMachine>(0, mw::StringMachine::kNoMax, false), mw::StringMachine::start());
  program->define_union(items, {root, text});
  Matcher m(program);
  CHECK(allowed(m) == (std::vector<TokenId>{'[', 256, 259}), "long tokens");
  CHECK(m.accept(256) == Verdict::Yes, "a long token");
  const std::vector<TokenId> next = allowed(m);
  CHECK(std::count(next.begin(), next.end(), 257u) == 1 && std::count(next.begin(), next.end(), 258u) == 0, "inside");
  uint32_t cost = 0;
  CHECK(m.cost(cost) == Verdict::Yes && cost == kLength, "cost of a deep stack: %u", cost);
  CHECK(allowed(m, kLength + 1) == std::vector<TokenId>{']'}, "a deep stack near the budget");
  CHECK(m.accept_bytes(std::string(kLength, ']')) == Verdict::Yes && m.is_accepting(), "all closed");

  Matcher choice(program_over(vocab, {letters, "b"}));
  CHECK(allowed(choice) == (std::vector<TokenId>{'a', 'b', 258}), "a long choice");
}

}  // namespace

int main() {
  test_walks(Coverage::Complete, 1, 20);
  test_walks(Coverage::Characters, 1001, 12);
  test_walks(Coverage::Holes, 2001, 2);
  test_walks(Coverage::Pieces, 3001, 4);
  test_small_vocabularies();
  test_duplicates();
  test_long_tokens();
  std::puts("matcher: ok");
  return 0;
}
