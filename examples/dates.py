"""Write dates in one format: a regular expression, and a date that exists.

python examples/dates.py
"""

import datetime

import maskwright as mw

# A few examples in the prompt tell a small model more than an instruction does.
PROMPT = """3 March 2015 = "2015-03-03"
21 December 1987 = "1987-12-21"
9 May 2003 = "2003-05-09"
14 July 1999 = """


def main() -> None:
    model = mw.load_model("smollm2-135m")

    # Any text of this shape, month 17 included.
    print("regex:", mw.generate_regex(model, PROMPT, r'"\d{4}-\d{2}-\d{2}"'))

    # A date: its months have the days they have, and it comes back as one.
    date = mw.generate_json(model, PROMPT, datetime.date)
    print("date: ", repr(date), date.strftime("%A"))

    # Drawn instead of greedy; the same seed gives the same dates.
    result = mw.generate(model, PROMPT, mw.JsonSchema(datetime.date), n=3, sampling=mw.Sampling(1.2), seed=1)
    for each in result:
        print(f"drawn: {each.value}  log-probability {each.logprob:.2f}, log of the mass kept {each.log_weight:.2f}")


if __name__ == "__main__":
    main()
