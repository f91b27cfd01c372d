// The bases of a vocabulary against brute force: every token by itself, byte by byte.
#include <algorithm>
#include <cstring>
#include <array>
#include <functional>
#include <numeric>
#include <set>
#include <tuple>

#include "../../src/core/white_space.h"
#include "problems.h"

namespace {

using mw::CountedTokens;
using mw::Decoded;
using mw::DfaState;
using mw::ExitTrie;
using mw::Sub;
using mw::TokenId;
using mw::TokenTrie;
using mw::Transport;
using mw::TrieNode;
using support::Rng;
using support::roll;

using Counted = std::multiset<std::pair<TokenId, uint32_t>>;
using Followers = std::multiset<std::tuple<std::string, TokenId, uint32_t>>;  // what comes behind an exit

Counted counted(const CountedTokens& tokens) {
  Counted out;
  for (const uint32_t k : tokens.counts())
    for (const TokenId t : tokens.between(k, k)) out.emplace(t, k);
  return out;
}

std::multiset<TokenId> ids_of(const mw::TokenSet& set, size_t vocab_size) {
  std::multiset<TokenId> out(set.list().begin(), set.list().end());
  CHECK(set.dense() == set.list().empty() || set.empty(), "a set is a list or a bitset");
  for (TokenId t = 0; set.dense() && t < vocab_size; ++t)
    if (mw::test_bit(set.words().data(), t)) out.insert(t);
  return out;
}

template <class T>
std::set<T> distinct(const std::multiset<T>& all) {
  return {all.begin(), all.end()};
}

// All tokens in an exit trie, by a walk over it.
Followers followers(ExitTrie& trie) {
  Followers out;
  const std::function<void(ExitTrie::Node&, const std::string&)> walk = [&](ExitTrie::Node& node, const std::string& path) {
    CHECK(std::is_sorted(node.bytes.begin(), node.bytes.end()) && node.bytes.size() == node.children.size(), "children of an exit node");
    for (const ExitTrie::Token& t : node.tokens) out.emplace(path, t.id, t.chars);
    for (const uint8_t b : node.bytes) {
      ExitTrie::Node* child = trie.child(node, b);
      CHECK(child != nullptr && child->expanded, "child of an exit node");
      walk(*child, path + static_cast<char>(b));
    }
  };
  if (!trie.empty()) walk(trie.root(), "");
  return out;
}

// Tokens strictly below a node, with the bytes from there.
void for_tokens_below(const mw::Vocab& vocab, TrieNode node, const std::function<void(TokenId, const std::string&)>& f) {
  std::vector<uint8_t> path;
  vocab.trie().path(node, path);
  const std::string prefix(path.begin(), path.end());
  for (TokenId t = 0; t < vocab.size(); ++t)
    if (vocab.is_text(t) && vocab.bytes(t).size() > prefix.size() && vocab.bytes(t).starts_with(prefix)) f(t, std::string(vocab.bytes(t).substr(prefix.size())));
}

std::vector<TrieNode> some_nodes(const TokenTrie& trie, Rng& rng, int count) {
  std::vector<TrieNode> nodes{TokenTrie::kRoot};
  std::vector<TrieNode> inner;
  for (TrieNode n = 1; n < trie.size(); ++n)
    if (trie.child_count(n)) inner.push_back(n);
  for (int i = 0; i < count && !inner.empty(); ++i) nodes.push_back(support::pick(rng, inner));
  return nodes;
}

// ---- counted tokens and sets

void test_counted() {
  Rng rng(20261204);
  for (int round = 0; round < 100; ++round) {
    const auto size = static_cast<size_t>(1 + roll(rng, 3000));
    std::vector<CountedTokens::Entry> entries;
    std::vector<TokenId> ids(size);
    std::iota(ids.begin(), ids.end(), 0u);
    std::shuffle(ids.begin(), ids.end(), rng);
    ids.resize(std::min(size, static_cast<size_t>(roll(rng, 300))));
    for (const TokenId t : ids) entries.push_back({static_cast<uint32_t>(roll(rng, 9) * roll(rng, 3)), t});
    const CountedTokens tokens(entries, size);
    uint32_t most = 0;
    for (const auto& e : entries) most = std::max(most, e.chars);
    CHECK(tokens.max_chars() == most, "max_chars");
    std::vector<uint32_t> bounds(20);  // in any order: sets are made of others that are known
    std::iota(bounds.begin(), bounds.end(), 0u);
    std::shuffle(bounds.begin(), bounds.end(), rng);
    for (uint32_t lo = 0; lo < 20; ++lo)
      for (const uint32_t hi : bounds) {
        std::multiset<TokenId> expected, found;
        for (const auto& e : entries)
          if (lo <= e.chars && e.chars <= hi) expected.insert(e.token);
        const auto span = tokens.between(lo, hi);
        found.insert(span.begin(), span.end());
        CHECK(found == expected, "between %u and %u", lo, hi);
        if (lo == 0) CHECK(distinct(ids_of(tokens.up_to(hi), size)) == distinct(expected), "up to %u", hi);
      }
  }
}

// ---- strings

void check_string(mw::Vocab& vocab, TrieNode node, Sub sub, bool any) {
  Counted stay, close, cut;
  std::multiset<std::tuple<TokenId, Sub, uint32_t>> cuts;
  Followers behind;
  for_tokens_below(vocab, node, [&](TokenId t, const std::string& bytes) {
    Sub at = sub;
    uint32_t chars = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const Decoded d = mw::decode_json(at, static_cast<uint8_t>(bytes[i]), any);
      if (d.kind == Decoded::Dead) return;
      if (d.kind == Decoded::Quote) {
        if (i + 1 == bytes.size()) close.emplace(t, chars);
        else behind.emplace(bytes.substr(i + 1), t, chars);
        return;
      }
      if (at == 0) ++chars;
      at = d.kind == Decoded::Partial ? d.value : 0;
    }
    if (at == 0) stay.emplace(t, chars);
    else cut.emplace(t, chars), cuts.emplace(t, at, chars);
  });
  mw::StringBase& base = vocab.bases().string(node, sub, any);
  CHECK(&base == &vocab.bases().string(node, sub, any), "made once");
  CHECK(counted(base.stay) == stay && counted(base.close) == close && counted(base.cut) == cut, "string at %u, %x", node, sub);
  std::multiset<std::tuple<TokenId, Sub, uint32_t>> found;
  for (const auto& c : base.cuts) found.emplace(c.token, c.sub, c.chars);
  CHECK(found == cuts, "cut characters at %u, %x", node, sub);
  std::multiset<TokenId> all;
  for (const auto* part : {&stay, &close, &cut})
    for (const auto& [t, k] : *part) all.insert(t);
  CHECK(ids_of(base.all, vocab.size()) == all, "all of a string");
  CHECK(followers(base.exits) == behind, "behind the quotes at %u, %x", node, sub);
}

std::vector<Sub> some_subs() {
  std::vector<Sub> subs{0};
  for (const char* text : {"\xc3", "\xe2", "\xe2\x82", "\xf0", "\xf0\x9f", "\\", "\\u", "\\u0", "\\u00", "\\u001", "\\ud83d", "\\ud83d\\"}) {
    Sub at = 0;
    for (const char* c = text; *c != 0; ++c) at = mw::decode_json(at, static_cast<uint8_t>(*c), true).value;
    subs.push_back(at);
  }
  return subs;
}

// ---- runs of a class

bool in_class(const mw::CharSet129& set, uint8_t b) {
  return b >= 0x80 ? set.other : (((b < 64 ? set.lo : set.hi) >> (b & 63)) & 1u) != 0;
}

void check_run(mw::Vocab& vocab, TrieNode node, const mw::CharSet129& set) {
  const TokenTrie& trie = vocab.trie();
  Counted stay;
  std::set<std::tuple<TrieNode, uint32_t>> between, exits;
  between.emplace(node, 0);
  for_tokens_below(vocab, node, [&](TokenId t, const std::string& bytes) {
    Sub at = 0;
    uint32_t chars = 0;
    TrieNode n = node;
    for (const char c : bytes) {
      const auto b = static_cast<uint8_t>(c);
      n = trie.child(n, b);
      if (at == 0 && !in_class(set, b)) {
        exits.emplace(n, chars);
        return;
      }
      const Decoded d = mw::decode_utf8(at, b);
      if (d.kind == Decoded::Dead) return;
      if (at == 0) ++chars;
      at = d.kind == Decoded::Partial ? d.value : 0;
      if (at == 0) between.emplace(n, chars);
    }
    stay.emplace(t, chars);
  });
  const std::shared_ptr<const mw::ClassBase> base = vocab.bases().run(node, set);
  for (uint32_t most = 0; most <= base->deepest() + 1; ++most) {
    std::multiset<TokenId> within;
    for (const auto& [token, k] : stay)
      if (k <= most) within.insert(token);
    CHECK(ids_of(base->stay_up_to(most), vocab.size()) == within, "run at %u, up to %u", node, most);
  }
  std::set<std::tuple<TrieNode, uint32_t>> found{{node, 0}}, left;
  base->each_end([&](TrieNode n, uint32_t k) { found.emplace(n, k); });
  std::bitset<256> bytes;  // all at once, and one by one: that is done in two ways
  for (unsigned b = 0; b < 256; ++b) bytes[b] = !in_class(set, static_cast<uint8_t>(b));
  base->each_exit(bytes, [&](TrieNode c, uint8_t b, uint32_t k) {
    CHECK(trie.byte(c) == b && bytes[b], "exit by another byte");
    left.emplace(c, k);
  });
  for (unsigned b = 0; b < 256; ++b)
    if (bytes[b])
      base->each_exit(std::bitset<256>().set(b), [&](TrieNode c, uint8_t, uint32_t k) {
        CHECK(left.contains({c, k}), "exit by byte %u alone", b);
      });
  CHECK(found == between && left == exits, "ends of a run at %u", node);
}

// ---- white space

void check_space(mw::Vocab& vocab, mw::Whitespace policy, uint32_t state) {
  std::multiset<TokenId> stay;
  Followers behind;
  for_tokens_below(vocab, TokenTrie::kRoot, [&](TokenId t, const std::string& bytes) {
    uint32_t at = state;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const uint32_t next = mw::next_space(policy, at, static_cast<uint8_t>(bytes[i]));
      if (next == mw::kSpaceDead) return;
      at = next;
      // Whatever follows a run that could go on is an exit too: the machine decides.
      if (i + 1 < bytes.size()) behind.emplace(bytes.substr(i + 1), t, 0);
    }
    stay.insert(t);
  });
  mw::SpaceBase& base = vocab.bases().space(static_cast<int>(policy), state);
  CHECK(ids_of(base.stay, vocab.size()) == stay, "white space, state %u", state);
  CHECK(followers(base.exits) == behind, "behind white space, state %u", state);
}

// The policy of the design: nothing, a space, or 1-2 newlines followed by at most 20 blanks.
void test_space_policy() {
  Rng rng(20261205);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int64_t n = roll(rng, 26); n > 0; --n) text += text.size() < 2 && roll(rng, 2) ? '\n' : " \t\n\r"[roll(rng, 20) ? roll(rng, 2) : roll(rng, 4)];
    uint32_t at = 0;
    for (const char c : text) at = at == mw::kSpaceDead ? at : mw::next_space(mw::Whitespace::Bounded, at, static_cast<uint8_t>(c));
    size_t lines = 0;
    while (lines < text.size() && text[lines] == '\n') ++lines;
    const std::string blanks = text.substr(lines);
    const bool blank = std::all_of(blanks.begin(), blanks.end(), [](char c) { return c == ' ' || c == '\t'; });
    const bool good = text.empty() || text == " " || (lines >= 1 && lines <= 2 && blank && blanks.size() <= 20);
    CHECK((at != mw::kSpaceDead) == good, "'%s'", support::show(text).c_str());
    if (!good) continue;
    bool more = false;
    for (const char c : {' ', '\t', '\n', '\r'}) more = more || mw::next_space(mw::Whitespace::Bounded, at, static_cast<uint8_t>(c)) != mw::kSpaceDead;
    CHECK(mw::space_may_follow(mw::Whitespace::Bounded, at) == more, "after '%s'", support::show(text).c_str());
  }
}

// ---- regexes

void check_regex(mw::Vocab& vocab, mw::Automaton& automaton, Transport transport, TrieNode node, DfaState state) {
  mw::RegexDfa& dfa = automaton.dfa();
  const bool json = transport != Transport::Raw, any = transport == Transport::JsonAny;
  std::set<TokenId> stay, close;
  std::set<std::tuple<std::string, TokenId>> behind;
  for_tokens_below(vocab, node, [&](TokenId t, const std::string& bytes) {
    Sub sub = 0;
    DfaState at = state;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const auto b = static_cast<uint8_t>(bytes[i]);
      const Decoded d = json ? mw::decode_json(sub, b, any) : mw::decode_utf8(sub, b);
      if (d.kind == Decoded::Dead) return;
      if (d.kind == Decoded::Quote) {
        if (!dfa.accepting(at)) return;
        if (i + 1 == bytes.size()) close.insert(t);
        else behind.emplace(bytes.substr(i + 1), t);
        return;
      }
      sub = d.kind == Decoded::Partial ? d.value : 0;
      if (d.kind == Decoded::Char) at = dfa.next(at, d.value);
      if (at == 0) return;
      if (sub != 0 && !mw::partial_is_live(sub, any, [&](uint32_t lo, uint32_t hi) { return dfa.any_live_in(at, lo, hi); })) return;
      if (!json && sub == 0 && dfa.accepting(at) && i + 1 < bytes.size()) behind.emplace(bytes.substr(i + 1), t);
    }
    stay.insert(t);
  });
  const std::shared_ptr<const mw::RegexBase> held = automaton.bases(vocab, transport).get(vocab.bases(), node, state);
  const mw::RegexBase& base = *held;
  std::set<TokenId> found = distinct(ids_of(base.stay, vocab.size()));
  for (const mw::TokenSet* set : base.shared) found.merge(distinct(ids_of(*set, vocab.size())));
  CHECK(found == stay, "inside the regex at node %u, state %u: %zu tokens, not %zu", node, state, found.size(), stay.size());
  CHECK(distinct(ids_of(base.close, vocab.size())) == close, "closing the regex at node %u, state %u", node, state);
  std::set<std::tuple<std::string, TokenId>> left;
  for (const auto& [path, t, chars] : followers(base.exits(vocab.trie()))) left.emplace(path, t);
  CHECK(left == behind, "behind the regex at node %u, state %u", node, state);
}

// States that some text leads to.
std::vector<DfaState> some_states(mw::RegexDfa& dfa, Rng& rng, int count) {
  static const std::u32string letters = U"ab1-. xéz\"\\\n\U0001f600";
  std::vector<DfaState> states{dfa.start()};
  for (int i = 0; i < count; ++i) {
    const DfaState to = dfa.next(support::pick(rng, states), support::pick(rng, letters));
    if (to != 0) states.push_back(to);
  }
  std::sort(states.begin(), states.end());
  states.erase(std::unique(states.begin(), states.end()), states.end());
  return states;
}

// Counts beyond what a token reaches, beside those that other tests take.
std::vector<support::rx::Program> patterns() {
  using namespace support::rx;
  std::vector<Program> all = support::regexes();
  const Program az = chars({{'a', 'z'}});
  all.push_back(rep(alt({lit(U"ab"), rep(one(' '), 1)}), 50, 60));
  all.push_back(cat({rep(cat({rep(az, 1, 80), one(' ')}), 40, 200), rep(az, 0, 40)}));
  all.push_back(both({rep(any(), 1), negate(alt({lit(U"name"), lit(U"na"), lit(U"ab")}))}));
  all.push_back(negate(alt({lit(U"name"), lit(U"aab")})));
  all.push_back(negate(cat({support::rx::all(), lit(U"aaabaaab"), support::rx::all()})));
  all.push_back(cat({rep(chars({{'a', 'z'}, {' ', ' '}}), 1), one('a'), rep(chars({{'a', 'n'}}), 0, 3)}));
  return all;
}

void check_vocab(mw::Vocab& vocab, Rng& rng) {
  const std::vector<TrieNode> nodes = some_nodes(vocab.trie(), rng, 6);
  for (const bool any : {false, true})
    for (const Sub sub : some_subs())
      for (const TrieNode node : nodes) check_string(vocab, node, sub, any);
  const std::vector<mw::CharSet129> sets = {{0, 0x07fffffe00000000ull >> 0, false}, {~uint64_t{0}, ~uint64_t{0}, true}, {1ull << ' ', 0, false},
                                            {0x03ff000000000000ull, 0x07fffffe07fffffeull, true}, {0, 0, true}};
  for (const auto& set : sets)
    for (const TrieNode node : nodes) check_run(vocab, node, set);
  for (const auto policy : {mw::Whitespace::Bounded, mw::Whitespace::Any})
    for (const uint32_t state : {0u, 1u, 2u, 5u, 22u, 23u, 43u, mw::kSpaceOver}) check_space(vocab, policy, policy == mw::Whitespace::Any ? 0 : state);
  for (const auto& program : patterns())
    for (const auto transport : {Transport::Raw, Transport::JsonMinimal, Transport::JsonAny}) {
      const auto automaton = support::automaton_over(vocab, transport, program);
      for (const DfaState state : some_states(automaton->dfa(), rng, 5))
        for (const TrieNode node : nodes)
          if (state != 0) check_regex(vocab, *automaton, transport, node, state);
    }
}

// ---- images

std::shared_ptr<mw::Vocab> from_image(const support::TokenList& list, std::span<const char> image, std::string_view key) {
  std::string blob;
  std::vector<uint32_t> lengths;
  for (const std::string& t : list.tokens) {
    blob += t;
    lengths.push_back(static_cast<uint32_t>(t.size()));
  }
  return std::make_shared<mw::Vocab>(blob, lengths, list.kinds, list.eos, image, key);
}

// What is no image of these tokens is not used, wherever it is damaged; one whose sum was made right again is not read beyond its
// end, whatever it says.
void check_damage(const support::TokenList& list, const std::string& image, Rng& rng) {
  const auto taken = [&](std::span<const char> bytes, std::string_view key) { return from_image(list, bytes, key)->is_from_image(); };
  CHECK(taken(image, "key") && !taken(image, "kez") && !taken(image, "") && !taken({}, "key"), "keys of an image");
  for (int round = 0; round < 60; ++round) {
    std::string other = image;
    const auto at = static_cast<size_t>(roll(rng, static_cast<int64_t>(image.size())));
    other[at] = static_cast<char>(other[at] ^ (1 << roll(rng, 8)));
    CHECK(!taken(other, "key"), "byte %zu of an image changed", at);
    const uint64_t sum = mw::image::checksum(std::span(other).subspan(16));
    std::memcpy(other.data() + 8, &sum, sizeof sum);
    taken(other, "key");
    CHECK(!taken(std::span(image).first(at), "key"), "an image of %zu bytes", at);
  }
}

void check_images(const support::TokenList& list, Rng& rng) {
  const std::string image = list.build()->to_image("key");
  const auto mapped = from_image(list, image, "key");
  CHECK(mapped->is_from_image() && mapped->to_image("key") == image, "image of an image");
  check_vocab(*mapped, rng);
  check_damage(list, image, rng);
}

}  // namespace

int main() {
  Rng rng(20261206);
  test_counted();
  test_space_policy();
  using support::Coverage;
  for (const auto coverage : {Coverage::Complete, Coverage::Characters, Coverage::Pieces}) check_vocab(*support::random_tokens(rng, coverage, 700).build(), rng);
  for (const auto coverage : {Coverage::Complete, Coverage::Holes}) check_images(support::random_tokens(rng, coverage, 300), rng);
  std::puts("bases: ok");
  return 0;
}
