//! Kinds of syntax nodes under the names of CPython's `ast` module.

use ruff_python_ast::AnyNodeRef;

/// Every kind that can be asked for, by its name in CPython's `ast` module.
pub const KINDS: [&str; 76] = [
    "FunctionDef",
    "AsyncFunctionDef",
    "ClassDef",
    "Return",
    "Delete",
    "Assign",
    "TypeAlias",
    "AugAssign",
    "AnnAssign",
    "For",
    "AsyncFor",
    "While",
    "If",
    "With",
    "AsyncWith",
    "Match",
    "Raise",
    "Try",
    "TryStar",
    "Assert",
    "Import",
    "ImportFrom",
    "Global",
    "Nonlocal",
    "Expr",
    "Pass",
    "Break",
    "Continue",
    "BoolOp",
    "NamedExpr",
    "BinOp",
    "UnaryOp",
    "Lambda",
    "IfExp",
    "Dict",
    "Set",
    "ListComp",
    "SetComp",
    "DictComp",
    "GeneratorExp",
    "Await",
    "Yield",
    "YieldFrom",
    "Compare",
    "Call",
    "FormattedValue",
    "JoinedStr",
    "Interpolation",
    "TemplateStr",
    "Constant",
    "Attribute",
    "Subscript",
    "Starred",
    "Name",
    "List",
    "Tuple",
    "Slice",
    "ExceptHandler",
    "MatchValue",
    "MatchSingleton",
    "MatchSequence",
    "MatchMapping",
    "MatchClass",
    "MatchStar",
    "MatchAs",
    "MatchOr",
    "TypeVar",
    "ParamSpec",
    "TypeVarTuple",
    "comprehension",
    "arguments",
    "arg",
    "keyword",
    "alias",
    "withitem",
    "match_case",
];

/// Whether this is the name of a kind.
pub fn is_kind(name: &str) -> bool {
    KINDS.contains(&name)
}

/// The bit of a kind in a set of kinds.
pub(super) fn bit(kind: &str) -> Option<u128> {
    KINDS.iter().position(|known| *known == kind).map(|place| 1 << place)
}

/// The bit of a node's kind; none for nodes that CPython does not have.
pub(super) fn bit_of(node: AnyNodeRef<'_>) -> u128 {
    bit(&name(node)).unwrap_or(0)
}

/// Kinds that ruff gives another name; where only the family comes in front (`StmtReturn`), it is cut off.
const NAMED_OTHERWISE: [(&str, &str); 20] = [
    ("ExprNamed", "NamedExpr"),
    ("ExprIf", "IfExp"),
    ("ExprGenerator", "GeneratorExp"),
    ("ExprFString", "JoinedStr"),
    ("ExprTString", "TemplateStr"),
    ("InterpolatedElement", "FormattedValue"),
    ("ExprStringLiteral", "Constant"),
    ("ExprBytesLiteral", "Constant"),
    ("ExprNumberLiteral", "Constant"),
    ("ExprBooleanLiteral", "Constant"),
    ("ExprNoneLiteral", "Constant"),
    ("ExprEllipsisLiteral", "Constant"),
    ("Comprehension", "comprehension"),
    ("Parameters", "arguments"),
    ("Parameter", "arg"),
    ("Keyword", "keyword"),
    ("Alias", "alias"),
    ("WithItem", "withitem"),
    ("MatchCase", "match_case"),
    ("ExceptHandlerExceptHandler", "ExceptHandler"),
];
const FAMILIES: [&str; 4] = ["Stmt", "Expr", "Pattern", "TypeParam"];

fn name(node: AnyNodeRef<'_>) -> String {
    let whole = format!("{:?}", node.kind());
    let known = NAMED_OTHERWISE.iter().find(|(other, _)| *other == whole).map(|(_, name)| *name);
    let cut = || FAMILIES.iter().find_map(|family| whole.strip_prefix(family)).unwrap_or(&whole);
    let name = known.unwrap_or_else(cut);
    match node {
        AnyNodeRef::StmtFunctionDef(function) if function.is_async => format!("Async{name}"),
        AnyNodeRef::StmtFor(statement) if statement.is_async => format!("Async{name}"),
        AnyNodeRef::StmtWith(statement) if statement.is_async => format!("Async{name}"),
        AnyNodeRef::StmtTry(statement) if statement.is_star => format!("{name}Star"),
        AnyNodeRef::ElifElseClause(clause) if clause.test.is_some() => "If".to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_distinct_and_fit_into_a_set() {
        let mut sorted = KINDS.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), KINDS.len());
        assert!(KINDS.len() <= 128);
        assert!(is_kind("AsyncFunctionDef") && !is_kind("asyncfunctiondef"));
        assert!(NAMED_OTHERWISE.iter().all(|(other, name)| is_kind(name) && !is_kind(other)));
    }
}
