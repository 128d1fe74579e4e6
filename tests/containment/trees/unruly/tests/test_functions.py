import plain


def test_calls_a_function_with_a_lone_surrogate():
    code = plain.value.__code__
    name = "odd\udcff\ud800"
    changes = {"co_name": name}
    if hasattr(code, "co_qualname"):
        changes["co_qualname"] = name
    type(plain.value)(code.replace(**changes), {})()
    assert plain.value()


def test_beside_it():
    assert plain.value()
