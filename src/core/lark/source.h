// Reads a lowered grammar from the flat words of grammar/lark/lowered.py.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "grammar.h"

namespace mw::lark {

inline constexpr int32_t kSourceVersion = 3;

// nullptr and a message where the words make no grammar; nothing in them is trusted.
std::shared_ptr<const Source> read_source(std::span<const int32_t> words, std::string* error);

// The last part of the words, in place of the `0` that stands there where nothing is known.
std::vector<int32_t> write_survey(const Survey& survey);

}  // namespace mw::lark
