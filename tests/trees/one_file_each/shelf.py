def width(books, each=3):
    return books * each
