// Laws of the trie against a std::map of strings: layout, duplicates, lookup, collection, paths.
#include <algorithm>
#include <map>

#include "../../src/core/token_trie.h"
#include "support.h"

namespace {

using mw::kNoNode;
using mw::TokenId;
using mw::TokenTrie;
using mw::TrieNode;
using support::chance;
using support::Rng;
using support::roll;
using Ids = std::vector<TokenId>;

struct Built {
  TokenTrie trie;
  std::map<std::string, Ids> model;  // without the empty string
};

void build(Built& b, const std::vector<std::string>& strings, const Ids& ids) {
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  b.trie.build(views, ids);
  for (size_t i = 0; i < strings.size(); ++i)
    if (!strings[i].empty()) b.model[strings[i]].push_back(ids[i]);
  for (auto& [text, list] : b.model) std::sort(list.begin(), list.end());
}

std::string path_of(const TokenTrie& trie, TrieNode n) {
  std::vector<uint8_t> bytes{'x'};  // path() appends
  trie.path(n, bytes);
  CHECK(bytes[0] == 'x', "path overwrote");
  return {bytes.begin() + 1, bytes.end()};
}

TrieNode find(const TokenTrie& trie, std::string_view text) {
  TrieNode n = TokenTrie::kRoot;
  for (size_t i = 0; i < text.size() && n != kNoNode; ++i) n = trie.child(n, static_cast<uint8_t>(text[i]));
  return n;
}

Ids ids_at(const TokenTrie& trie, TrieNode n) {
  const auto t = trie.tokens(n);
  return {t.begin(), t.end()};
}

// Children contiguous and ascending, all descendants in [first, end), nothing else there.
void check_layout(const TokenTrie& trie, TrieNode n) {
  const TrieNode first = trie.first_child(n), end = trie.end(n);
  const uint32_t count = trie.child_count(n);
  CHECK(trie.descendants(n) == (count ? end - first : 0), "descendants of %u", n);
  for (uint32_t i = 0; i < count; ++i) {
    CHECK(first + i > n && trie.parent(first + i) == n, "child of %u", n);
    CHECK(i == 0 || trie.byte(first + i - 1) < trie.byte(first + i), "order under %u", n);
    CHECK(trie.child(n, trie.byte(first + i)) == first + i, "lookup under %u", n);
    const TrieNode c = first + i;
    if (trie.child_count(c)) CHECK(trie.first_child(c) >= first + count && trie.end(c) <= end, "span of %u", c);
  }
  uint32_t found = 0;
  for (unsigned b = 0; b < 256; ++b) found += trie.child(n, static_cast<uint8_t>(b)) != kNoNode;
  CHECK(found == count, "lookup finds others under %u", n);
  if (count == 0) return;
  for (TrieNode m = first; m < end; ++m) {
    TrieNode up = m;
    while (up != n && up != TokenTrie::kRoot) up = trie.parent(up);
    CHECK(up == n, "%u is no descendant of %u", m, n);
  }
}

Ids collected(const TokenTrie& trie, TrieNode n) {
  Ids out{77};
  trie.collect(n, out);
  CHECK(out[0] == 77, "collect overwrote");
  out.erase(out.begin());
  std::sort(out.begin(), out.end());
  return out;
}

void check(const Built& b) {
  const TokenTrie& trie = b.trie;
  std::map<std::string, bool> prefixes{{"", true}};
  Ids everything;
  for (const auto& [text, ids] : b.model) {
    for (size_t i = 1; i <= text.size(); ++i) prefixes[text.substr(0, i)] = true;
    everything.insert(everything.end(), ids.begin(), ids.end());
    const TrieNode n = find(trie, text);
    CHECK(n != kNoNode && trie.has_tokens(n) && ids_at(trie, n) == ids, "tokens of '%s'", support::show(text).c_str());
  }
  std::sort(everything.begin(), everything.end());
  CHECK(trie.size() == prefixes.size(), "%zu nodes for %zu prefixes", trie.size(), prefixes.size());
  CHECK(collected(trie, TokenTrie::kRoot) == everything, "collect from the root");
  for (TrieNode n = 0; n < trie.size(); ++n) {
    const std::string path = path_of(trie, n);
    CHECK(prefixes.contains(path) && find(trie, path) == n, "path of %u", n);
    const auto here = b.model.find(path);
    CHECK(ids_at(trie, n) == (here == b.model.end() ? Ids{} : here->second), "tokens at %u", n);
    CHECK(trie.has_tokens(n) == (here != b.model.end()), "has_tokens at %u", n);
    check_layout(trie, n);
    Ids below;
    for (auto it = b.model.lower_bound(path); it != b.model.end() && it->first.starts_with(path); ++it)
      below.insert(below.end(), it->second.begin(), it->second.end());
    std::sort(below.begin(), below.end());
    CHECK(collected(trie, n) == below, "collect from %u", n);
  }
}

void test_random() {
  Rng rng(20261201);
  for (int round = 0; round < 300; ++round) {
    const int64_t letters = chance(rng, 30) ? 256 : 1 + roll(rng, 3);
    const int64_t longest = 1 + roll(rng, 12);
    std::vector<std::string> strings;
    Ids ids;
    for (int64_t n = roll(rng, 80); n > 0; --n) {
      std::string s;
      for (int64_t k = roll(rng, longest + 1); k > 0; --k) s += static_cast<char>(letters == 256 ? roll(rng, 256) : 'a' + roll(rng, letters));
      strings.push_back(s);
      ids.push_back(static_cast<TokenId>(ids.size()) * 3 + 1);
    }
    for (size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[static_cast<size_t>(roll(rng, static_cast<int64_t>(i)))]);
    Built b;
    build(b, strings, ids);
    check(b);
  }
}

void test_corners() {
  Built empty, blank;
  build(empty, {}, {});
  check(empty);
  build(blank, {"", ""}, {3, 4});
  check(blank);
  CHECK(blank.trie.size() == 1 && !blank.trie.has_tokens(TokenTrie::kRoot), "empty strings are left out");
  Built zero;  // ids 0 and 1 share a node: the first list of duplicates is no token id
  build(zero, {"a", "a", "b", "b", std::string(1, '\0'), "\xff"}, {0, 1, 2, 9, 5, 6});
  check(zero);
}

void test_build_again() {
  Built b;
  build(b, {"abc", "abc", "x"}, {1, 2, 3});
  b.model.clear();
  build(b, {"b"}, {7});
  CHECK(b.trie.child(TokenTrie::kRoot, 'a') == kNoNode && collected(b.trie, TokenTrie::kRoot) == Ids{7}, "a second build");
  CHECK(b.trie.size() == 2, "a second build");
}

// Tokens of a megabyte and many of them: no recursion, and time linear in the bytes.
void test_long() {
  const std::string run(1 << 20, 'a');
  Built b;
  const std::vector<std::string> strings{run, run + "b", run.substr(1), "a"};
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  b.trie.build(views, Ids{0, 1, 2, 3});
  CHECK(b.trie.size() == run.size() + 2, "a node a byte");
  CHECK(find(b.trie, run + "b") == b.trie.size() - 1 && find(b.trie, run + "c") == kNoNode, "at the end");
  CHECK(collected(b.trie, TokenTrie::kRoot).size() == 4, "all of them");
  CHECK(path_of(b.trie, find(b.trie, run)) == run, "path");
}

}  // namespace

int main() {
  test_random();
  test_corners();
  test_build_again();
  test_long();
  std::puts("trie: ok");
  return 0;
}
