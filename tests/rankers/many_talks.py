"""A corpus that is large enough for pools of 100, and witnesses whose figures can be worked by hand."""

import re

import numpy as np

HEAD = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags"
FEELINGS = ("happy", "sad", "so sorry", "great", "good")


def write_talks(folder, changed="", **counts):
    """EmpatheticDialogues' files under a data folder: so many talks a split, each with one reply.

    Talk 7 says "my dog 7" and is answered with "… luck 7".
    """
    place = folder / "empathetic_dialogues"
    place.mkdir(parents=True, exist_ok=True)
    for split, count in counts.items():
        rows = [HEAD]
        for number in range(count):
            about = f"hit:{number}_conv:{number}"
            said = (f"my dog {number}{changed}", f"{FEELINGS[number % len(FEELINGS)]} luck {number}")
            rows += [
                f"{about},{turn},sad,The dog.,{turn + 10},{text},5|5|5_5|5|5,"
                for turn, text in enumerate(said, 1)
            ]
        (place / f"{split}.csv").write_text("\n".join(rows) + "\n")
    return place


def number_of(text):
    """The talk that a text belongs to."""
    return int(re.findall(r"\d+", text)[-1])


class Knows:
    """Puts the true reply first where the talk's number can be divided by `step`, otherwise last.

    Of 200 talks in pools of 100, step 2: R@1 is 50, MRR (1 + 1/100) / 2, 50.5.
    """

    def __init__(self, step=2, key="knows", name="knows", stop_at=None):
        self.step, self.key, self.name, self.stop_at = step, key, name, stop_at
        self.asked = 0

    def score(self, contexts, replies):
        if self.asked == self.stop_at:
            raise KeyboardInterrupt
        self.asked += 1
        scores = np.zeros((len(contexts), len(replies)), np.float32)
        for row, context in enumerate(contexts):
            number = number_of(context.turns[-1].text)
            own = [column for column, reply in enumerate(replies) if number_of(reply) == number]
            scores[row, own] = 1 if number % self.step == 0 else -1
        return scores
