// Bases of a lexer: what the tokens of a vocabulary do inside it, whatever the parser says (see ../bases.h).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "../bitset.h"
#include "../exit_trie.h"
#include "lexer.h"

namespace mw::lark {

// From some node of the vocabulary, in some state of the lexer under some guards.
struct LexBase {
  struct Stay {  // tokens that end in the middle of a token of the grammar
    LexState q;
    Guards guards;
    int32_t column;
    TokenSet tokens;
  };
  struct Exit {  // where a token of the grammar may end, with more behind it
    Type type;
    bool ignore, feed;
    Guards guards;
    int32_t column;
    std::unique_ptr<ExitTrie> trie;
  };
  std::vector<Stay> stays;
  std::vector<Exit> exits;
};

class LarkBases {
 public:
  const LexBase& get(Lexer& lexer, const TokenTrie& trie, size_t vocab_size, TrieNode node, LexState q, Guards g,
                     int32_t column);

 private:
  using Key = std::tuple<TrieNode, LexState, Guards, int32_t>;
  std::shared_mutex mutex_;
  std::map<Key, std::unique_ptr<LexBase>> bases_;
};

}  // namespace mw::lark
