"""A listener for the page: it plans, can be steered, hears a crisis, and says back what it heard."""

from dataclasses import dataclass, replace

from listenwell.dialogue import Candidate, Factors, Scored
from listenwell.generators.plans import LEVELS
from tests.serving.fake import FakeListener

PLAN = Factors("proud", ("interpretation",), "acknowledging", "joy")
HELP = (
    ("answer", "fixed"),
    ("directory", "findahelpline.com"),
    ("emergency", "112"),
    ("help", "113 Zelfmoordpreventie: 113"),
    ("kind", "suicide"),
)


@dataclass
class PageListener(FakeListener):
    """Its reply names the planned act and expressed emotion; CRISIS and CONCERN in a message are heard."""

    def _answer(self, request):
        said = request.dialogue.turns[-1].text
        plain = super()._answer(request)
        plan = _steered(request.target) if self.plan else None
        reply = f"({plan.act}, {plan.expressed_emotion}) You said: {said}" if plan else f"You said: {said}"
        other = replace(PLAN, mechanisms=("exploration",), act="questioning", expressed_emotion="surprise")
        candidates = (
            Candidate(reply, plan, (("ranker", 0.5),)),
            Candidate("How was it?", self.plan and other),
        )
        safety = (("answer", "candidate"), ("level", "none"))
        if "CRISIS" in said:
            reply, plan, candidates, safety = "Please call someone.", None, (), (*HELP, ("level", "crisis"))
        elif "CONCERN" in said:
            safety = (*HELP, ("level", "concern"))
        heard = (Scored("proud", 0.75), Scored("joyful", 0.2), Scored("sad", 0.004))
        found = replace(plain, text=reply, emotion=heard, plan=plan, candidates=candidates, safety=safety)
        return replace(found, notices=())


def _steered(target: Factors | None) -> Factors:
    asked = {name: getattr(target, name, None) for name in LEVELS}
    return replace(PLAN, **{name: value for name, value in asked.items() if value is not None})
