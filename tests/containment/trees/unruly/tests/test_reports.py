import gc

import plain


def reports():
    return [one for one in gc.get_objects() if type(one).__name__ == "GroupReport"]


def test_report_is_no_record():
    for report in reports():
        report.append("case", 5)
    assert plain.value()


def test_report_has_another_shape():
    for report in reports():
        report.append("case", {"index": "none", "outcome": 2**70, "reports": float("nan")})
        report.append("end", None)
    assert plain.value()


def test_report_has_numbers_that_overflow():
    for report in reports():
        report.append("trace", {"functions": [], "files": [], "total_calls": 2**70, "child_calls": float("inf")})
        report.append("duration_ms", -(2**80))
    assert plain.value()


def test_report_is_scribbled_over():
    for report in reports():
        report.memory[:4096] = b"\xff" * 4096
    assert plain.value()


def test_beside_them():
    assert plain.value()
