"""EmpatheticIntents (Welivita & Pu 2020): texts with one of 41 labels, and its intents' own sources.

Splits train, valid and test are the classifier's data. The lexical splits hold listener utterances that
were found by n-grams of each intent (easy by construction), the split manual those labelled by hand.
"""

from collections.abc import Iterator
from pathlib import Path

from listenwell.corpora.base import CorpusLoader, is_number, text_lines
from listenwell.corpora.download import Download
from listenwell.dialogue import LabelledText
from listenwell.errors import CorpusError
from listenwell.labels import EMOTIONS_AND_INTENTS, INTENTS, MANUAL_INTENTS

_SEPARATOR = " <SEP> "
_LEXICAL = {"lexical_train": "train", "lexical_valid": "validation", "lexical_test": "test"}
_REPOSITORY = "https://raw.githubusercontent.com/anuradha1992/EmpatheticIntents/"
_PINNED = {
    "97a6c84bc82693a7bba0fdd0eab5af58df8bc9da/datasets/lexically_extended_intent_data/": """
58488a0bfb8ce7f1770ca9c451462b907cd5a43e27e6388655ac8e8ba9374e3f  lexical/test/neutral.txt
dfcd0791817b6c61d2ae995d037726829c9a28ef097b54378e0062069e95de85  lexical/test/wishing.txt
ec0a21bdb4cac195fdb3fe82fd31662171ea6c3b18a3239ba92c0e2b1112ede6  lexical/train/acknowledging.txt
909b0e6893aa054c32fdf2112d9a71c17fe1b5aa02dc5b0408765aa3ce7d87d5  lexical/train/consoling.txt
5515ef12ef6a01bbcb331babee699a2788e04a9157227a98f24467d73f2ba31a  lexical/train/questioning.txt
c29611089c8861e85e0f84409399a71dfd1d3dd225fa4f3b153487588856c83f  lexical/train/suggesting.txt
3d0416877c6fc7d32a37e64ce2f4667f639812b03a1c31d61ea1a3bff7383577  lexical/train/sympathizing.txt
9c5fe2a3f7134a5b03088f1c867fdc2b86bb0beef8731fe8d55889f5103b3c8d  lexical/train/wishing.txt
cb5dbbb42beeaa863a2710050be0f7329543e8b8ab3122e00845d58e08e98b47  lexical/validation/acknowledging.txt
9b3aaf5e2cfd1f2def1d068ce81af0abd1d1e877758a8e3c9be14d6151a9899e  lexical/validation/agreeing.txt
4aa8cf390fef32d3b12ebe2a6b5d36ce356765f5c93cffaf9a4310d0721d4c14  lexical/validation/encouraging.txt
03a50b84382979b11f0e3d2d1b9a0d5dbe8040481fff6eb98d6ab057d6694347  lexical/validation/neutral.txt
""",
    "de8dc61e4b260f81b718e0a73e05b3928f620f2d/datasets/lexically_extendedintent_data/": """
dd0adb021f556e808c2edcf9d1bca138e18d93486e1c8237593394e4ebdf7995  lexical/test/acknowledging.txt
798b0276be343156f417379cd7a8a96467fac4fd36ae76ecdc7cdb903ab2eaeb  lexical/test/agreeing.txt
0405aa1304bb4f1c769437d927b770920235f40767d1551fa4b9970e282df34e  lexical/test/consoling.txt
cc8cc5a72f738620a8dd8580b0bfc3d5b2dcc0be81ce28e528912a086edfed3a  lexical/test/encouraging.txt
5a181df5c1d78050f6dca3bb5bf4f4426d1811f41f4067a5cef6cb7890bce0ff  lexical/test/questioning.txt
3e714efdc6bdf51cef6b7498f4a775341d5f533bef68d7d5e87f22f569d0ce1b  lexical/test/suggesting.txt
b3000e197f60f1af138319fe7316537cb95168a5621d9259aab2a6faba0e9b34  lexical/test/sympathizing.txt
3ef57f77f3aa93b5e0c7fb3150c914041661137edb69ec75e55c8a7e42b31209  lexical/train/agreeing.txt
cbcbe0fd354e81050df5e4a2de8a3d3f1125ec95375b08e7e07c44456c21943b  lexical/train/encouraging.txt
4ee76d008c442430562d7165b95f8f0328c7020e0783441f5f01e29c0e8f96fb  lexical/train/neutral.txt
67cbbfe26c60097e0d6c7d72e11d6914be547383006b6c178bd1972f12194af8  lexical/validation/consoling.txt
9fc854127b62bf63c71b8230e5f253454da5cfbb688ce8bb0faf35e6f66cefc3  lexical/validation/questioning.txt
a1e1f251d1ba74c37dac6a88b60eeda16744e6d1ca93d57fa248ec10cc4c38a7  lexical/validation/suggesting.txt
d08be74fd7695139fd480b3a6f02cfe57106c3e416f38c3c676ce3bf8ee5d05d  lexical/validation/sympathizing.txt
2d422c833aa53369e7a4b5e932e6c8a521665ce9086c6ea0bd46594d4554ee77  lexical/validation/wishing.txt
""",
    "285621d0f4efc40d2a2b07b9d3e3ba71cbe0d19d/datasets/manual_annotations/": """
21e6d8e1b24797626cdd83005acb60d5b9d61cb58b67b14508e3fa4aaf23f919  manual/acknowledging.txt
092c4211d90df6763c00c8315a0ee0698adba5ccfcace3918177e15c64dbd2fa  manual/advising.txt
e87c2732503f1b7e673281be94b562d520f0dd61d1771df7c87a82b7a6c42f98  manual/agreeing.txt
35d03fabe4b48b86249b67a5a017608c9f292c6c98f4a1b54e06657186b1e3f5  manual/appreciating.txt
f41d3d47cba657bb61254eb473f5cda44b6d13d13ce2cb3bc0e9a2e6a57f6b31  manual/consoling.txt
700b6fb2dcc49447b24edeb857ca802ab8c2da29f136309811c9e5f21992b5dc  manual/disapproving.txt
4ca91b616d0b8af1238147e4ec0ef8c16b066d9b5f2d7826f6321dfa0c2befb9  manual/encouraging.txt
09ccd46d6fed2b80047202c1cfb2aec54e22522a98af3024c03fd7e65a06b647  manual/expressing_care_concern.txt
8a40565d08b8a3f3d2dafb1aeba59b77bfe3413b31ae6c67dac35bfc1c459081  manual/expressing_relief.txt
b04420d8f7575da4f1783b0330459619df5c68213bec5236090a5cb65d4fb386  manual/questioning.txt
c39342adc7d9e6794fb05ed2d48626d338bbf7e825fe6e62b446a00c9a808d22  manual/sharing_experience.txt
3b16b7d164c184ff747d8f103c3ffd2fb06f5f476306f93c7c4c71cc01a8c49b  manual/sharing_opinions.txt
0d0a277200546320973a9cb6a9c1e8e2392b835dc5b992531892add5036cc681  manual/suggesting.txt
ec2648c0de5c109abffcb8a090e31f405475bd018ee4645b89c2a70c85ba8b70  manual/sympathizing.txt
2afb1b8a152a3adb2147d58370cf15ddc1edad5266646b07675041c6b9cea988  manual/wishing.txt
""",
    "de8dc61e4b260f81b718e0a73e05b3928f620f2d/datasets/train_data/": """
179925ce7d774635bbf0004a684d29467c0c358c213062c4418844a4452c8617  labels.txt
f36d824c067ac6bc742f59aef2ce0455c14c31d7f05f45b1c7dd5f90f19d9068  test.txt
a8ed34243639d3774b7141517fa53e76dd990200ba8ac9ef866f58e71de29959  train.txt
4a7331edd43ce0fab7fcb5fb001c27d07b90e5c9e1cbd40daf39602bcf0f9b37  valid.txt
""",
}
"""By commit and folder, sha256 sums and names in our folder. No single commit is known to hold every file."""


def _downloads() -> Iterator[Download]:
    for source, listed in _PINNED.items():
        for line in listed.split("\n")[1:-1]:
            digest, target = line.split()
            name = target.removeprefix("lexical/").removeprefix("manual/")
            if target.startswith("lexical/"):  # misspelt by the publisher
                name = name.replace("acknowledging", "acknowleding")
            yield Download(f"{_REPOSITORY}{source}{name}", digest, target)


class EmpatheticIntents(CorpusLoader):
    """Situations with emotions and listener utterances with intents."""

    name = "empathetic_intents"
    title = "EmpatheticIntents: emotions and intents of utterances, 41 labels"
    licence = "none stated (texts: CC BY-NC 4.0)"
    citation = "Welivita & Pu 2020"
    splits = ("train", "valid", "test", *_LEXICAL, "manual")
    downloads = tuple(_downloads())

    def files(self, split: str) -> tuple[Path, ...]:
        """One file a split, or one an intent."""
        if split in _LEXICAL:
            names = (*INTENTS, "neutral")
            return tuple(self.path / "lexical" / _LEXICAL[split] / f"{name}.txt" for name in sorted(names))
        if split == "manual":
            return tuple(self.path / "manual" / f"{name}.txt" for name in MANUAL_INTENTS)
        return (self.path / f"{split}.txt",)

    def read(self, split: str) -> Iterator[LabelledText]:
        """Texts with their one label."""
        files = self.check(split)
        self._check_numbers()
        for file in files:
            for number, line in text_lines(file, self.report):
                where = f"{file.name}:{number}"
                if not line.strip():
                    self.report.skip("empty line", where)
                elif split == "manual":
                    yield LabelledText(line.strip(), (file.stem,), f"{split}-{file.stem}-{number}")
                elif (item := self._numbered(line, where, f"{split}-{file.stem}-{number}")) is not None:
                    yield item

    def _numbered(self, line: str, where: str, identity: str) -> LabelledText | None:
        label, separator, text = line.partition(_SEPARATOR)
        if not separator or not is_number(label) or int(label) >= len(EMOTIONS_AND_INTENTS):
            self.report.skip("no label in front", where)
        elif not text.strip():
            self.report.skip("empty text", where)
        else:
            return LabelledText(text.strip(), (EMOTIONS_AND_INTENTS[int(label)],), identity)
        return None

    def _check_numbers(self) -> None:
        """Hold labels.txt against our own list.

        Its last line reads `neutral,38`, where the data has 40 for neutral and 38 for questioning; any
        other difference means that the numbers are not those we know.
        """
        file = self.path / "labels.txt"
        if not file.exists():
            return
        for number, line in text_lines(file, self.report):
            name, _, listed = line.strip().partition(",")
            if not name:
                continue
            if name.casefold() == "neutral" and listed == "38":
                self.report.counts["label numbers corrected (neutral is 40, not 38)"] = 1
            elif name.casefold() not in EMOTIONS_AND_INTENTS or listed != str(
                EMOTIONS_AND_INTENTS.index(name.casefold())
            ):
                raise CorpusError(
                    f"{file}:{number} says {line!r}, which is not the published numbering.",
                    "Use the publisher's own files.",
                )
