// Reads a lowered grammar from the flat words of grammar/lark/lowered.py.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "grammar.h"

namespace mw::lark {

inline constexpr int32_t kSourceVersion = 2;

// nullptr and a message where the words make no grammar; nothing in them is trusted.
std::shared_ptr<const Source> read_source(std::span<const int32_t> words, std::string* error);

}  // namespace mw::lark
