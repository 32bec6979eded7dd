"""The 46 files of EmpatheticIntents at their publisher's, pinned.

The publisher renamed a folder between commits, so that no single commit is known to hold every file.
"""

from listenwell.corpora.download import Download

_REPOSITORY = "https://raw.githubusercontent.com/anuradha1992/EmpatheticIntents/"

# commit and folder: (name there, place in our folder, sha256)
_FILES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "97a6c84bc82693a7bba0fdd0eab5af58df8bc9da/datasets/lexically_extended_intent_data/": (
        ("test/neutral.txt", "lexical/test/neutral.txt", "58488a0bfb8ce7f1770ca9c451462b907cd5a43e27e6388655ac8e8ba9374e3f"),
        ("test/wishing.txt", "lexical/test/wishing.txt", "dfcd0791817b6c61d2ae995d037726829c9a28ef097b54378e0062069e95de85"),
        ("train/acknowleding.txt", "lexical/train/acknowledging.txt", "ec0a21bdb4cac195fdb3fe82fd31662171ea6c3b18a3239ba92c0e2b1112ede6"),
        ("train/consoling.txt", "lexical/train/consoling.txt", "909b0e6893aa054c32fdf2112d9a71c17fe1b5aa02dc5b0408765aa3ce7d87d5"),
        ("train/questioning.txt", "lexical/train/questioning.txt", "5515ef12ef6a01bbcb331babee699a2788e04a9157227a98f24467d73f2ba31a"),
        ("train/suggesting.txt", "lexical/train/suggesting.txt", "c29611089c8861e85e0f84409399a71dfd1d3dd225fa4f3b153487588856c83f"),
        ("train/sympathizing.txt", "lexical/train/sympathizing.txt", "3d0416877c6fc7d32a37e64ce2f4667f639812b03a1c31d61ea1a3bff7383577"),
        ("train/wishing.txt", "lexical/train/wishing.txt", "9c5fe2a3f7134a5b03088f1c867fdc2b86bb0beef8731fe8d55889f5103b3c8d"),
        ("validation/acknowleding.txt", "lexical/validation/acknowledging.txt", "cb5dbbb42beeaa863a2710050be0f7329543e8b8ab3122e00845d58e08e98b47"),
        ("validation/agreeing.txt", "lexical/validation/agreeing.txt", "9b3aaf5e2cfd1f2def1d068ce81af0abd1d1e877758a8e3c9be14d6151a9899e"),
        ("validation/encouraging.txt", "lexical/validation/encouraging.txt", "4aa8cf390fef32d3b12ebe2a6b5d36ce356765f5c93cffaf9a4310d0721d4c14"),
        ("validation/neutral.txt", "lexical/validation/neutral.txt", "03a50b84382979b11f0e3d2d1b9a0d5dbe8040481fff6eb98d6ab057d6694347"),
    ),
    "de8dc61e4b260f81b718e0a73e05b3928f620f2d/datasets/lexically_extendedintent_data/": (
        ("test/acknowleding.txt", "lexical/test/acknowledging.txt", "dd0adb021f556e808c2edcf9d1bca138e18d93486e1c8237593394e4ebdf7995"),
        ("test/agreeing.txt", "lexical/test/agreeing.txt", "798b0276be343156f417379cd7a8a96467fac4fd36ae76ecdc7cdb903ab2eaeb"),
        ("test/consoling.txt", "lexical/test/consoling.txt", "0405aa1304bb4f1c769437d927b770920235f40767d1551fa4b9970e282df34e"),
        ("test/encouraging.txt", "lexical/test/encouraging.txt", "cc8cc5a72f738620a8dd8580b0bfc3d5b2dcc0be81ce28e528912a086edfed3a"),
        ("test/questioning.txt", "lexical/test/questioning.txt", "5a181df5c1d78050f6dca3bb5bf4f4426d1811f41f4067a5cef6cb7890bce0ff"),
        ("test/suggesting.txt", "lexical/test/suggesting.txt", "3e714efdc6bdf51cef6b7498f4a775341d5f533bef68d7d5e87f22f569d0ce1b"),
        ("test/sympathizing.txt", "lexical/test/sympathizing.txt", "b3000e197f60f1af138319fe7316537cb95168a5621d9259aab2a6faba0e9b34"),
        ("train/agreeing.txt", "lexical/train/agreeing.txt", "3ef57f77f3aa93b5e0c7fb3150c914041661137edb69ec75e55c8a7e42b31209"),
        ("train/encouraging.txt", "lexical/train/encouraging.txt", "cbcbe0fd354e81050df5e4a2de8a3d3f1125ec95375b08e7e07c44456c21943b"),
        ("train/neutral.txt", "lexical/train/neutral.txt", "4ee76d008c442430562d7165b95f8f0328c7020e0783441f5f01e29c0e8f96fb"),
        ("validation/consoling.txt", "lexical/validation/consoling.txt", "67cbbfe26c60097e0d6c7d72e11d6914be547383006b6c178bd1972f12194af8"),
        ("validation/questioning.txt", "lexical/validation/questioning.txt", "9fc854127b62bf63c71b8230e5f253454da5cfbb688ce8bb0faf35e6f66cefc3"),
        ("validation/suggesting.txt", "lexical/validation/suggesting.txt", "a1e1f251d1ba74c37dac6a88b60eeda16744e6d1ca93d57fa248ec10cc4c38a7"),
        ("validation/sympathizing.txt", "lexical/validation/sympathizing.txt", "d08be74fd7695139fd480b3a6f02cfe57106c3e416f38c3c676ce3bf8ee5d05d"),
        ("validation/wishing.txt", "lexical/validation/wishing.txt", "2d422c833aa53369e7a4b5e932e6c8a521665ce9086c6ea0bd46594d4554ee77"),
    ),
    "285621d0f4efc40d2a2b07b9d3e3ba71cbe0d19d/datasets/manual_annotations/": (
        ("acknowledging.txt", "manual/acknowledging.txt", "21e6d8e1b24797626cdd83005acb60d5b9d61cb58b67b14508e3fa4aaf23f919"),
        ("advising.txt", "manual/advising.txt", "092c4211d90df6763c00c8315a0ee0698adba5ccfcace3918177e15c64dbd2fa"),
        ("agreeing.txt", "manual/agreeing.txt", "e87c2732503f1b7e673281be94b562d520f0dd61d1771df7c87a82b7a6c42f98"),
        ("appreciating.txt", "manual/appreciating.txt", "35d03fabe4b48b86249b67a5a017608c9f292c6c98f4a1b54e06657186b1e3f5"),
        ("consoling.txt", "manual/consoling.txt", "f41d3d47cba657bb61254eb473f5cda44b6d13d13ce2cb3bc0e9a2e6a57f6b31"),
        ("disapproving.txt", "manual/disapproving.txt", "700b6fb2dcc49447b24edeb857ca802ab8c2da29f136309811c9e5f21992b5dc"),
        ("encouraging.txt", "manual/encouraging.txt", "4ca91b616d0b8af1238147e4ec0ef8c16b066d9b5f2d7826f6321dfa0c2befb9"),
        ("expressing_care_concern.txt", "manual/expressing_care_concern.txt", "09ccd46d6fed2b80047202c1cfb2aec54e22522a98af3024c03fd7e65a06b647"),
        ("expressing_relief.txt", "manual/expressing_relief.txt", "8a40565d08b8a3f3d2dafb1aeba59b77bfe3413b31ae6c67dac35bfc1c459081"),
        ("questioning.txt", "manual/questioning.txt", "b04420d8f7575da4f1783b0330459619df5c68213bec5236090a5cb65d4fb386"),
        ("sharing_experience.txt", "manual/sharing_experience.txt", "c39342adc7d9e6794fb05ed2d48626d338bbf7e825fe6e62b446a00c9a808d22"),
        ("sharing_opinions.txt", "manual/sharing_opinions.txt", "3b16b7d164c184ff747d8f103c3ffd2fb06f5f476306f93c7c4c71cc01a8c49b"),
        ("suggesting.txt", "manual/suggesting.txt", "0d0a277200546320973a9cb6a9c1e8e2392b835dc5b992531892add5036cc681"),
        ("sympathizing.txt", "manual/sympathizing.txt", "ec2648c0de5c109abffcb8a090e31f405475bd018ee4645b89c2a70c85ba8b70"),
        ("wishing.txt", "manual/wishing.txt", "2afb1b8a152a3adb2147d58370cf15ddc1edad5266646b07675041c6b9cea988"),
    ),
    "de8dc61e4b260f81b718e0a73e05b3928f620f2d/datasets/train_data/": (
        ("labels.txt", "labels.txt", "179925ce7d774635bbf0004a684d29467c0c358c213062c4418844a4452c8617"),
        ("test.txt", "test.txt", "f36d824c067ac6bc742f59aef2ce0455c14c31d7f05f45b1c7dd5f90f19d9068"),
        ("train.txt", "train.txt", "a8ed34243639d3774b7141517fa53e76dd990200ba8ac9ef866f58e71de29959"),
        ("valid.txt", "valid.txt", "4a7331edd43ce0fab7fcb5fb001c27d07b90e5c9e1cbd40daf39602bcf0f9b37"),
    ),
}

DOWNLOADS = tuple(
    Download(f"{_REPOSITORY}{place}{name}", sum_, target)
    for place, files in _FILES.items()
    for name, target, sum_ in files
)
