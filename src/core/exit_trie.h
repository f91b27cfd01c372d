// The merged trie of what follows an exit.
//
// When every token that leaves a large language (the body of a string, a run of white space) does so at one of many
// vocabulary nodes, what comes after the exit is the union of their sub-tries. Constraints are walked over that union
// once, instead of once an exit (specs: prototype, design point 4). Nodes are made on first visit; a member remembers
// how many characters were read before the exit, so that length bounds can be tested token by token.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "token_trie.h"

namespace mw {

struct CharRange {  // how many characters a token may have read before its exit
  uint32_t lo = 0, hi = 0xffffffffu;
  bool holds(uint32_t k) const { return lo <= k && k <= hi; }
};

class ExitTrie {
 public:
  struct Member {
    TrieNode node;
    uint32_t chars;
  };
  struct Token {
    TokenId id;
    uint32_t chars;
  };
  struct Node {
    std::vector<Member> members;
    std::vector<Token> tokens;      // that end here
    std::vector<uint8_t> bytes;     // of the children, ascending
    std::vector<Node*> children;
    std::atomic<bool> expanded{false};
  };

  ExitTrie(const TokenTrie& trie, std::vector<Member> roots) : trie_(&trie) { root_.members = std::move(roots); }
  // Only with these bytes behind the exits.
  ExitTrie(const TokenTrie& trie, std::vector<Member> roots, const std::bitset<256>& firsts)
      : ExitTrie(trie, std::move(roots)) {
    firsts_ = firsts;
  }
  ExitTrie(const ExitTrie&) = delete;
  ExitTrie& operator=(const ExitTrie&) = delete;

  bool empty() const { return root_.members.empty(); }
  const std::vector<Member>& members() const { return root_.members; }
  Node& root() { return expand(root_); }
  Node* child(const Node& node, uint8_t b);  // expanded; nullptr where there is none
  Node& expand(Node& node);

 private:
  void fill(Node& node);

  const TokenTrie* trie_;
  std::bitset<256> firsts_ = std::bitset<256>().set();
  Node root_;
  std::deque<Node> arena_;
  std::mutex mutex_;
};

}  // namespace mw
