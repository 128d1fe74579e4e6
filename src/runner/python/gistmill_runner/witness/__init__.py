"""The generator of witnesses: from what a group ran, one file that passes without the repository.

    trace → `program` (sources, what ran, what names mean) → `plan` and `closure` (which lines) → `naming` →
    `rendering` (text) → tried by the driver → `search` (repair, narrow, prune)

It reads files of the tree as text and runs none of their code: the driver runs every text that it proposes, and alone
judges. The same trace and the same results of trials give the same text.
"""
