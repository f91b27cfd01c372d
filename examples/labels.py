"""Sort reviews into labels: an enum, and labels with values of your own.

python examples/labels.py
"""

import enum

import maskwright as mw


class Sentiment(enum.Enum):
    POSITIVE = "positive"
    NEGATIVE = "negative"


REVIEWS = ["I love this phone, it is great!", "Broken after one day. What a waste of money."]


def ask(question: str, review: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{question}\n\nReview: {review}"}]


def main() -> None:
    model = mw.load_model("smollm2-135m")

    # A list of prompts runs as one batch and gives a list.
    prompts = [ask("Is this review positive or negative? Answer with one word.", review) for review in REVIEWS]
    for review, sentiment in zip(REVIEWS, mw.generate_choice(model, prompts, Sentiment), strict=True):
        print(f"{sentiment}: {review}")

    # Labels that stand for values: the label is written, the value comes back. Examples help a small model.
    stars = {"one star": 1, "three stars": 3, "five stars": 5}
    shots = [("I love it!", "five stars"), ("It is okay, nothing special.", "three stars"), ("Terrible.", "one star")]
    lines = "".join(f"Review: {review} Stars: {label}\n" for review, label in shots)
    print("stars:", mw.generate_choice(model, [f"{lines}Review: {review} Stars: " for review in REVIEWS], stars))


if __name__ == "__main__":
    main()
