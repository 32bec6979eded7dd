"""Word lists of the self-disclosure grammar: words that tell of a life, and those that only seem to."""

from listenwell.words import word_set

RELATIVES = word_set("""
    wife husband hubby spouse partner fiance fiancee fiancé fiancée boyfriend girlfriend bf gf ex exes
    mom mum mother dad father mama papa mommy daddy parent parents stepmom stepdad stepmother stepfather
    son sons daughter daughters kid kids child children baby babies toddler boy boys girl girls stepson
    stepdaughter brother brothers sister sisters sibling siblings twin twins stepbrother stepsister
    grandma grandmother grandpa grandfather grandparents grandson granddaughter grandkids grandchildren
    gran nana granny grandad granddad uncle uncles aunt aunts aunties auntie cousin cousins nephew nephews
    niece nieces relatives family inlaws friend friends bestie buddy buddies roommate roommates roomate
    neighbor neighbors neighbour neighbours boss bosses coworker coworkers colleague colleagues manager
    teacher doctor landlord classmates crush
    """)
PETS = word_set(
    "dog dogs doggy doggie cat cats puppy puppies pup pups kitten kittens kitty pet pets hamster rabbit "
    "horse horses parrot bird birds fish hound dachshund lab poodle beagle"
)
HOME = word_set(
    "house home apartment yard car truck garden neighborhood street town city school job work office "
    "wedding honeymoon trip vacation kitchen basement"
)
"""What "our" makes a claim of; "our lives" and "our society" are everybody's."""
QUALITIES = word_set("""
    own best old older oldest elder young younger youngest little small big bigger late dear good great close
    closest ex step grand first second third last new newest poor sweet other only whole
    entire former current childhood high college elementary next door baby twin teenage teen toddler beloved
    previous long lost one two three four five six year month years bad crazy local personal adult
    middle sick rescue pit - extended most all time immediate biological real gorgeous
    """)
"""What may stand between "my" and the word it is about."""
NO_POSSESSION = word_set("""
    opinion opinions condolences condolence sympathies sympathy heart hearts goodness god gosh lord heavens
    word words apologies apology thoughts thought prayers prayer mind advice guess point view views bad
    fault pleasure knowledge understanding hat regards respect respects congratulations congrats fingers
    question questions support turn gut wishes jaw eyes eye mouth head hands skin body stomach blood face
    brain tongue soul nerves ears ear spine imagination behalf faith way day dude man guy darling
    favorite favorites favourite favourites kind type back money thing cup alley fear fears nightmare peeve
    bucket hopes hope luck side stuff that hearty sincere sincerest deepest warmest gratitude compliments
    love best butt shoulder salute recommendation suggestion perspective standards book books biggest worst
    greatest absolute strongest case problem business concern interest attention curiosity hero glad oh no
    is it its it's feelings concerns jam dream answer list tears message things top
    """)
"""What one may have, say or give without a life of one's own."""

THINKING = word_set("""
    thought heard knew guessed figured meant said asked wondered hoped assumed realized realised noticed
    forgot wanted agreed supposed imagined believed read misread misunderstood expected suspected doubted
    wished apologized mentioned suggested understood could should would might did had was were
    needed hated heared invited responded replied gotcha trusted
    appreciated admired skipped overlooked indeed need feed bed speed
    """)
"""Past forms that tell of this talk and not of a life."""
PAST = word_set("""
    went got lost took found saw felt made came left met bought broke fell ran told gave kept ate drank won
    caught hit put sold stole spent slept spoke stood taught threw wore woke wrote built drove flew froze grew
    held hurt led lent paid quit rode sat sent shot sang sank swam threw cut began became brought fought dealt
    drew forgave hid rang shook stuck swore tore understood upset bit lent let
    """)
"""Irregular pasts; the regular ones are known by their ending."""
PARTICIPLES = PAST | word_set("""
    been had done seen gone lost known grown broken fallen taken given gotten got eaten driven flown written
    worn won met made felt found come become begun forgotten fought bought thrown stolen hidden ridden risen
    spoken sworn woken beaten bitten chosen drawn frozen hurt run put cut quit left held kept read
    """)
THOUGHT = word_set("""
    heard thought wondered noticed read enjoyed said told meant forgotten believed hoped imagined understood
    assumed guessed figured decided agreed need indeed known loved liked hated considered wanted
    """)
"""Participles that tell of no life: "i have heard", "i have always thought"."""
HABITS = word_set("""
    work live own drive teach study play go travel visit cook run exercise eat drink smoke sleep walk wear
    volunteer rent attend shop babysit struggle suffer collect cry stay wake date
    """)
"""Verbs that, said of oneself in the present, tell how one lives."""
STATES = word_set("""
    married single divorced pregnant retired disabled unemployed vegan vegetarian allergic widowed engaged
    from diabetic introverted asthmatic claustrophobic deaf adopted jobless overweight
    """)
"""What "i am" may be followed by to tell who one is."""
NO_TRADE = word_set("""
    bit little lot big huge firm good great fan believer sucker listener bot computer program machine
    ai assistant stranger person tad strong total real complete bad terrible horrible
    """)
"""After "i am a": not what one is by trade or family."""
NOTHING_HAD = word_set("""
    idea ideas doubt doubts clue words feeling feelings question questions hunch suggestion suggestions faith
    confidence hope hopes respect trust sympathy empathy interest admiration compassion advice opinion
    recollection nothing you tip recommendation guess
    """)
"""What one may have in a talk without having a life."""

PARENTS = word_set("mom mum mother mama dad father papa parent")
SAME = (
    word_set("wife husband hubby spouse married fiance fiancee partner"),
    word_set("kid child baby son daughter toddler boy girl"),
    word_set("mom mum mother mama mommy parent"),
    word_set("dad father papa daddy parent"),
    word_set("dog puppy pup doggy hound pet"),
    word_set("cat kitten kitty pet"),
    word_set("job work boss coworker colleague office company career employee"),
    word_set("school college university student class teacher study graduate"),
    word_set("brother sister sibling twin"),
    word_set("grandma grandmother granny nana grandparent"),
    word_set("grandpa grandfather granddad grandparent"),
    word_set("house home apartment"),
    word_set("car truck drive driver"),
    word_set("girlfriend gf dating"),
    word_set("boyfriend bf dating"),
)
"""Words that speak of the same part of a life: a persona that tells of one supports a claim about another."""
EMPTY = word_set("""
    i i'm i've i'd i'll im ive me my mine myself we our us you your he she it its it's they them their this
    that these those there here what when where who how which why a an the and or but so if then than as of
    to in on at by for with from about into over up down out off back too also very really just only even
    still already again once ever never always often sometimes usually am is are was were be been being do
    does did done have has had having will would can could should may might must not no yes n't don't didn't
    wasn't haven't get got getting go went going gone come came make made take took same thing things
    one two three lot some any all both many much more most other another such own like know feel felt
    happened happen through before after ago last year years time times day days people something someone
    """)
"""Words too common to say what a claim is about."""
ADDRESSED = word_set("friend friends dear buddy love girl boy man")
GOVERNING = word_set("""
    of with by to from for and about like is was lost miss at as than told visit see saw met when have
    had on among wish
    """)
"""Before "my friend" at the end of a clause: it is somebody else."""
NO_MINE = word_set("gold land coal the a salt cross")
ASKING = word_set("do did can could should would may will have am was must shall might")
HYPOTHETICAL = word_set("if wish wished unless pretend imagine suppose whether hope hoping")
"""Before "i" in its clause: nothing that was or is."""
BREAKS = word_set("when because but since while so")
"""Here another clause begins, with or without a comma."""
ADVERBS = word_set("""
    just also actually once recently only finally even really still already definitely totally honestly
    personally almost usually often sometimes first always never ever accidentally not probably certainly
    generally rarely literally myself normally kinda both lately completely absolutely too sure
    """)
"""What may stand between "i" and its verb."""
USUALLY = word_set("always usually often sometimes rarely generally normally")
OPINION = word_set("""
    say think wonder believe love like enjoy hate want hope feel find worry wish prefer admire try know
    realize mean hear understand expect notice see get even suggest recommend tell agree said thought loved
    liked wanted enjoyed hated felt look assume forget support would will could can should am be
    """)
DUTIES = word_set("""
    work go get take drive pay travel live wake deal wear use leave move study clean watch fly share do
    """)
"""After "i have to": how one lives."""
BEEN_SAYING = word_set(
    "thinking wondering meaning hearing reading hoping told praying talking enjoying asking"
)
REACTIONS = word_set("laugh smile ask say chuckle look google read agree admit giggle reread")
"""After "i had to": of this talk."""
SAYING = word_set("""
    thinking wondering hoping expecting sorry glad surprised asking saying joking talking kidding referring
    curious worried right wrong confused unaware supposed gonna correct shocked
    """)
"""After "i was": of this talk."""
UNDERSTOOD = word_set("it you what how where why your the goosebumps chills ya this u when")
SOMEONE = word_set("someone somebody guy girl woman man person lady few couple friend people")
MOODS = word_set("awe shock agreement love tears disbelief favor no total complete full support")
"""After "i am in": no place."""
LIVING = word_set("""
    living working studying getting moving dealing struggling dating raising planning saving visiting
    taking attending applying retiring recovering renting learning majoring
    """)
COUNTED = word_set("a an two three four five six our some several")
"""After "we have": something of one's own."""
DONE_TO_ONE = word_set(
    "helped taught bit hit fired dumped robbed bullied stung raised gave told cheated scared"
)
"""Before "me": somebody or something did it to the listener."""
