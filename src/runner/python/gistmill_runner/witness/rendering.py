"""A closure as text: the source's own text with other names in it, without comments, docstrings and blank lines."""

import ast
import json
from bisect import bisect_left
from collections import defaultdict

from .planned import every
from .references import BY_NAME, FOLDERS, IMPORTED_FROM, PATHS, TYPES, WITNESS
from .source import DEFINITIONS

INDENT = "    "


class Rendering:
    """The text of a witness; `lines` has the planned line that each of its lines comes from, or None."""

    def __init__(self, closure, naming, submission):
        self.closure = closure
        self.final = {**naming.final, WITNESS: submission, BY_NAME: unused("modules_by_name", naming.final.values())}
        self.naming = naming
        self.own_name = submission
        self.imported = set()
        # Names for the docstrings of modules whose code reads them.
        self.texts = {}
        for module in sorted({one.parts for one in closure.references if one.kind == "text"}):
            taken = set(self.final.values()).union(self.texts.values())
            self.texts[module] = unused(module.replace(".", "_") + "_text", taken)
        self.edits = self._edits()
        texts = []
        first = [line for _, lines in closure.tops for line in lines if line.kind == "docstring"]
        for line in first:
            self._write(line, 0, texts)
        for line in self._head():
            texts.append((line, None))
        for _, lines in closure.tops:
            if lines[0] in first:
                continue
            block = []
            for line in lines:
                self._write(line, 0, block)
            if block and isinstance(lines[0].statement, DEFINITIONS):
                block += self._other_name(lines[-1])
                block = [("", None), ("", None), *block, ("", None)]
            texts += block
        kept = [one for at, one in enumerate(texts) if one[0] or at < 2 or texts[at - 1][0] or texts[at - 2][0]]
        self.text = "\n".join(text for text, _ in kept).strip("\n") + "\n"
        self.lines = [line for _, line in kept]
        while self.lines and not kept[0][0]:
            kept.pop(0)
            self.lines.pop(0)

    def _head(self):
        """What stands above all: annotations as text, and names for the witness itself."""
        if self.closure.lazy:
            yield "from __future__ import annotations"
        kinds = {one.kind for one in self.closure.references} | ({"made"} if self.closure.finder.by_name else set())
        for kind, meaning in (("place", PATHS), ("resource", FOLDERS), ("made", TYPES)):
            if kind in kinds:
                self.imported.add(meaning)
                module, name = meaning[2], self.final[meaning]
                yield "import %s" % module if name == module else "import %s as %s" % (module, name)
        aliases = sorted(self.final[one] for one in self.closure.needed if one[0] == "alias")
        if aliases:
            self.imported.add(("external", "import", "sys", "sys"))
            yield "import sys"
        for name in aliases:
            yield "%s = sys.modules[__name__]" % name
        if self.closure.finder.by_name:
            yield "%s = {}" % self.final[BY_NAME]
        for module in self.closure.program.modules:
            if module.name in self.texts:
                yield "%s = %r" % (self.texts[module.name], module.source.documentation())

    def _other_name(self, line):
        """The name by which the rest of the witness knows a class that is defined under its own name."""
        meaning = ("symbol", line.module.name, line.statement.name)
        chosen = self.final.get(meaning)
        if chosen not in (None, line.statement.name) and self.naming.keeps_own_name(meaning):
            yield ("%s = %s" % (chosen, line.statement.name), line)

    # Edits of the sources.

    def _edits(self):
        """Per module, sorted (start, end, text) of what stands otherwise in the witness."""
        edits, annotations = defaultdict(dict), defaultdict(list)
        for reference in self.closure.references:
            if reference.weak and reference.kind in ("name", "chain", "module"):
                annotations[reference.annotation].append(reference)
                continue
            chosen = self.final.get(reference.meaning)
            if chosen is None or reference.span is None:
                continue
            text = self._edited(reference, chosen)
            if text is not None and self._is_at(reference):
                edits[reference.module.name][reference.span] = text
        for references in annotations.values():
            self._edit_annotation(references, edits)
        for _, lines in self.closure.tops:
            self._edit_definition(lines[-1], edits)
        for name, module in ((one.name, one) for one in self.closure.program.modules):
            for span in module.source.comments:
                edits[name][span] = ""
        return {name: sorted((start, end, text) for (start, end), text in of.items()) for name, of in edits.items()}

    def _edit_annotation(self, references, edits):
        """An annotation that is not evaluated loses the names of modules. It stays as it is where that would change more:
        where what it names is not there, or has become another name that no failure asked for.
        """
        asked, chosen = self.closure.planner.decisions.kept_names, {}
        for reference in references:
            if reference.span is None or not self._is_at(reference):
                continue
            start, end = reference.span
            name = reference.module.source.text[start:end].rpartition(".")[2].strip()
            final = self.final.get(reference.meaning, name)
            if reference.kind == "module" or (final != name and name not in asked):
                return
            if reference.kind == "chain" or final != name:
                chosen[reference.span] = final
        edits[references[0].module.name].update(chosen)

    def _is_at(self, reference):
        """Whether the node stands where the parser says: before 3.12 it does not know it inside f-strings."""
        if reference.kind in ("dotted", "origin", "resource", "by name"):
            return True
        start = reference.span[0]
        return reference.module.source.text.startswith(reference.name, start)

    def _edited(self, reference, chosen):
        name = reference.name
        if reference.kind == "chain":
            if chosen in reference.hidden:
                alias = self.final.get(("alias", name))
                return None if alias is None else "%s.%s" % (alias, chosen)
            return chosen
        if reference.kind == "place":
            parts = ", ".join('"%s"' % part for part in reference.module.source.path.split("/"))
            return "{0}.path.join({0}.path.dirname(__file__), {1})".format(chosen, parts)
        if reference.kind == "resource":
            parts, reads = reference.parts
            place = ", ".join(json.dumps(part, ensure_ascii=False) for part in parts)
            return "%s.Path(__file__).resolve().parent.joinpath(%s)%s" % (chosen, place, reads)
        if reference.kind == "called":
            return json.dumps(reference.module.name)
        if reference.kind == "text":
            return self.texts[reference.parts]
        if reference.kind == "by name":
            return chosen + "[" if reference.parts == "[" else "]"
        if reference.kind == "dotted":
            start, end = reference.span
            whole, rest = reference.parts
            return reference.module.source.text[start:end].replace(whole, ".".join([self.own_name, chosen] + rest))
        if reference.kind == "origin":
            start, end = reference.span
            return IMPORTED_FROM.sub(self._from_witness, reference.module.source.text[start:end])
        return chosen if chosen != name else None

    def _from_witness(self, found):
        whole, place = found[0], found.start(1) - found.start()
        if found[1] not in self.closure.program.by_name:
            return whole
        return whole[:place] + self.own_name + whole[place + len(found[1]) :]

    def _edit_definition(self, line, edits):
        """A definition that has another name in the witness."""
        statement, module = line.statement, line.module
        if not isinstance(statement, DEFINITIONS):
            return
        chosen = self.final.get(("symbol", module.name, statement.name))
        place = module.source.name_places.get((statement.lineno, statement.name))
        keeps = self.naming.keeps_own_name(("symbol", module.name, statement.name))
        if chosen not in (None, statement.name) and place is not None and not keeps:
            edits[module.name][place] = chosen

    def _segment(self, module, start, end):
        """A part of a source with its edits."""
        edits = self.edits.get(module.name, ())
        pieces, place = [], start
        for at in range(bisect_left(edits, (start,)), len(edits)):
            first, last, text = edits[at]
            if first >= end:
                break
            if first >= place and last <= end:
                pieces += [module.source.text[place:first], text]
                place = last
        pieces.append(module.source.text[place:end])
        return "".join(pieces)

    # Lines.

    def _write(self, line, depth, texts):
        write = {
            "import": self._import_texts,
            "assigned": self._assigned_texts,
            "local": self._local_texts,
            "effect": lambda line, depth: [],
            "made": self._made_texts,
            "declaration": self._declaration_texts,
        }.get(line.kind, self._texts)
        texts += [(text, line) for text in write(line, depth)]
        if line.suite is None:
            return
        before, last = len(texts), None
        for inner in line.suite:
            if line.kind == "class" and last is not None and starts_definition(inner, last):
                texts.append(("", None))
            last = inner
            self._write(inner, depth + 1, texts)
        if not any(text for text, _ in texts[before:]):
            texts.append((INDENT * (depth + 1) + "pass", line))

    def _import_texts(self, line, depth):
        names = []
        for alias, meaning, named in line.detail:
            bound = meaning[4] if meaning[1] == "from" else meaning[3]
            if named == meaning and not depth:
                # `import os` brings no `os.path`.
                if meaning[1] == "from" or alias.asname or "." not in alias.name:
                    if meaning in self.imported:
                        continue
                    self.imported.add(meaning)
            chosen = self.final.get(named, bound)
            if chosen != bound and alias.name != "*":
                names.append("%s as %s" % (alias.name, chosen))
            else:
                names.append(alias.name + (" as %s" % alias.asname if alias.asname else ""))
        pad = INDENT * depth
        if not names:
            return []
        if isinstance(line.statement, ast.Import):
            whole = ["%simport %s" % (pad, name) for name in names]
            fresh = [text for text in whole if depth or text not in self.imported]
            self.imported.update(fresh if depth == 0 else ())
            return fresh
        origin = "." * line.statement.level + (line.statement.module or "")
        return ["%sfrom %s import %s" % (pad, origin, ", ".join(names))]

    def _assigned_texts(self, line, depth):
        source = self.final.get(self.closure.stands_for(line.detail))
        target = self.final.get(("symbol", line.module.name, line.detail.name))
        return ["%s%s = %s" % (INDENT * depth, target, source)] if source and target and source != target else []

    def _local_texts(self, line, depth):
        source, target = self.final.get(self.closure.stands_for(line.detail)), line.detail.name
        if source is None:
            return []
        if source == target:
            return ["%s%s = globals()[%r]" % (INDENT * depth, target, source)]
        return ["%s%s = %s" % (INDENT * depth, target, source)]

    def _made_texts(self, line, depth):
        """A module under its name, with what of the tree it has that is in the witness."""
        module, finder = line.module.name, self.closure.finder
        found = ((name, finder.resolve(module, name)) for name in sorted(self.closure.program.bindings[module]))
        given = ", ".join("%s=%s" % (name, self.final[one]) for name, one in found if one[0] == "symbol" and one in self.final)
        place = "%s[%s]" % (self.final[BY_NAME], json.dumps(module))
        return ["%s = %s.ModuleType(%s)" % (place, self.final[TYPES], json.dumps(module)), "vars(%s).update(%s)" % (place, given)]

    def _declaration_texts(self, line, depth):
        names = line.statement.names
        word = "global" if isinstance(line.statement, ast.Global) else "nonlocal"
        if word == "global":
            meanings = (self.closure.finder.resolve(line.module.name, name) for name in names)
            names = [self.final.get(meaning, name) for meaning, name in zip(meanings, names)]
        return ["%s%s %s" % (INDENT * depth, word, ", ".join(names))]

    def _texts(self, line, depth):
        """The source's text at another depth: lines that begin inside a text stay as they are."""
        if line.text is not None:
            return [INDENT * depth + line.text]
        source = line.module.source
        text = line.prefix + self._segment(line.module, *line.span)
        lines = (text.rstrip() if line.suite is not None else text).split("\n")
        if len(lines) == 1:
            return [INDENT * depth + lines[0].rstrip()]
        shift = len(INDENT) * depth - line.statement.col_offset
        first, texts = source.line_of(line.span[0]), []
        for number, part in enumerate(lines, first):
            if number > first and number not in source.lines_in_texts:
                if not part.strip():
                    continue
                indent = len(part) - len(part.lstrip())
                part = " " * max(0, indent + shift) + part.lstrip()
            if number + 1 not in source.lines_in_texts:
                part = part.rstrip()
            texts.append(part)
        texts[0] = INDENT * depth + texts[0]
        return texts


def unused(name, taken):
    """A name that is not taken, as near to this one as can be."""
    return name if name not in taken else unused("_" + name, taken)


def starts_definition(line, before):
    """Whether a line of a class begins a definition, decorators included, after another line of it."""
    return line.kind in ("decorator", "function", "class") and not (
        before.kind == "decorator" and before.statement is line.statement
    )
