from situs.placers import Placer, get_placer
from situs.testing.placer_suite import PlacerSuite


class TestDefault(PlacerSuite):
    evaluations = 60

    def placer(self) -> Placer:
        return get_placer("hsdag{hidden=16}")


class TestPaper(PlacerSuite):
    evaluations = 60

    def placer(self) -> Placer:
        return get_placer("hsdag{variant=paper,hidden=16}")
