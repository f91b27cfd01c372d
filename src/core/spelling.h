// Vocabularies that lack the single bytes: a text may be continued by bytes and yet by no sequence of tokens.
#pragma once

#include "request.h"

namespace mw {

// Whether, with a token ending here, some sequence of tokens completes the text. Only for vocabularies that are not
// byte-complete; exact, memoised by configuration.
bool can_be_spelled(Request& request, const Item& end);
bool can_be_spelled(Request& request, ConfigId config);

}  // namespace mw
