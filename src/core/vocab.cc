#include "vocab.h"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace mw {
namespace {

std::atomic<uint64_t> next_serial{1};

bool occurs_in_utf8(unsigned b) { return b < 0xc0 || (b >= 0xc2 && b <= 0xf4); }

}  // namespace

Vocab::Vocab(std::vector<std::string> tokens, std::vector<uint8_t> kinds, std::vector<TokenId> eos)
    : tokens_(std::move(tokens)), kinds_(std::move(kinds)), eos_(std::move(eos)), serial_(next_serial++),
      bases_(trie_, tokens_.size()) {
  std::sort(eos_.begin(), eos_.end());
  for (TokenId t : eos_) kinds_[t] = 1;
  std::vector<std::string_view> views;
  std::vector<TokenId> ids;
  for (TokenId t = 0; t < tokens_.size(); ++t)
    if (is_text(t)) {
      views.push_back(tokens_[t]);
      ids.push_back(t);
    }
  trie_.build(views, ids);
  byte_complete_ = true;
  for (unsigned b = 0; b < 256; ++b) {
    const TrieNode c = trie_.child(TokenTrie::kRoot, static_cast<uint8_t>(b));
    if (occurs_in_utf8(b) && (c == kNoNode || !trie_.has_tokens(c))) byte_complete_ = false;
  }
}

bool Vocab::is_eos(TokenId t) const { return std::binary_search(eos_.begin(), eos_.end(), t); }

std::vector<uint32_t> Vocab::spelling_costs(std::string_view text) const {
  std::vector<uint32_t> costs(text.size() + 1, kNoCost);
  costs[text.size()] = 0;
  for (size_t i = text.size(); i-- > 0;) {
    TrieNode n = TokenTrie::kRoot;
    for (size_t j = i; j < text.size(); ++j) {
      n = trie_.child(n, static_cast<uint8_t>(text[j]));
      if (n == kNoNode) break;
      if (trie_.has_tokens(n)) costs[i] = std::min(costs[i], add_cost(1, costs[j + 1]));
    }
  }
  return costs;
}

}  // namespace mw
