"""What the tests call, so that they count as tests of this repository."""


def doors(floors, each):
    return floors * each
