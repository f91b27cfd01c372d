// Constraints over the characters that a vocabulary can spell, where it lacks whole characters.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "automaton.h"
#include "machines/object.h"

namespace mw {

// The program (reverse Polish, see RegexDfa::from_program) of a regex whose every state can be finished without the lacking
// characters, given that the text so far has none of them; nothing where the program is one already. Sets of lacking
// characters alone become empty; where the regex intersects or complements, that is not enough, and it is intersected with
// the texts that have none.
std::optional<std::vector<int64_t>> restrict_program(std::span<const int64_t> program,
                                                     std::span<const std::pair<uint32_t, uint32_t>> lacking);

// The automaton of a regex (that of the program) for a vocabulary: one that never wants characters which no token spells.
// Inside JSON, control characters are escaped, and with all escapes everything can be. nullptr and a message where the
// restricted one is too large.
std::shared_ptr<Automaton> restrict_automaton(const std::shared_ptr<Automaton>& automaton, std::span<const int64_t> program,
                                              const Vocab& vocab, Transport transport, std::string* error);
// The texts that can be spelled.
std::vector<std::string> restrict_texts(std::vector<std::string> texts, const Vocab& vocab, Transport transport);
// Takes out the names that cannot be spelled and need not be.
void restrict_names(ObjectSpec& spec, const Vocab& vocab);

}  // namespace mw
