from app import name


def page(text):
    return f"<h1>{name(text)}</h1>"
