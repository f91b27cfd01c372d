"""Fill a pydantic model from a text, all at once and as it comes.

python examples/extract_pydantic.py
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

import maskwright as mw


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")

    product: str = Field(max_length=30)
    quantity: int = Field(ge=1, le=99)


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    customer: str = Field(max_length=30)
    items: list[Item] = Field(min_length=1, max_length=3)
    delivery: Literal["standard", "express"]


CHAT = [
    {
        "role": "user",
        "content": "Extract the order as JSON with customer, items (product, quantity) and delivery:\n\n"
        "Hello, this is Anna Weber. Please send me 3 notebooks and 1 pen by express.",
    }
]


def main() -> None:
    model = mw.load_model("smollm2-135m")

    order = mw.generate_json(model, CHAT, Order, max_tokens=150)
    print(repr(order))

    # The report says what became of every keyword of the schema.
    compiled = mw.compile(mw.JsonSchema(Order), model.vocabulary)
    for entry in compiled.report:
        print("  ", entry)

    for chunk in mw.stream(model, CHAT, compiled, max_tokens=150):
        print(chunk.text, end="", flush=True)
        if chunk.result is not None:
            stats = chunk.result.stats
            print(f"\n{len(chunk.result.tokens)} tokens, {stats.model_calls} model calls: {chunk.value!r}")


if __name__ == "__main__":
    main()
