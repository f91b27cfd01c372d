// Regexes over the characters that a vocabulary can spell.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mw {

// The program (reverse Polish, see RegexDfa::from_program) of a regex whose every state can be finished without the lacking
// characters, given that the text so far has none of them; nothing where the program is one already. Sets of lacking
// characters alone become empty; where the regex intersects or complements, that is not enough, and it is intersected with
// the texts that have none.
std::optional<std::vector<int64_t>> restrict_program(std::span<const int64_t> program,
                                                     std::span<const std::pair<uint32_t, uint32_t>> lacking);

}  // namespace mw
