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
    kind(node).and_then(bit).unwrap_or(0)
}

fn kind(node: AnyNodeRef<'_>) -> Option<&'static str> {
    Some(match node {
        AnyNodeRef::StmtFunctionDef(function) if function.is_async => "AsyncFunctionDef",
        AnyNodeRef::StmtFunctionDef(_) => "FunctionDef",
        AnyNodeRef::StmtClassDef(_) => "ClassDef",
        AnyNodeRef::StmtReturn(_) => "Return",
        AnyNodeRef::StmtDelete(_) => "Delete",
        AnyNodeRef::StmtTypeAlias(_) => "TypeAlias",
        AnyNodeRef::StmtAssign(_) => "Assign",
        AnyNodeRef::StmtAugAssign(_) => "AugAssign",
        AnyNodeRef::StmtAnnAssign(_) => "AnnAssign",
        AnyNodeRef::StmtFor(statement) if statement.is_async => "AsyncFor",
        AnyNodeRef::StmtFor(_) => "For",
        AnyNodeRef::StmtWhile(_) => "While",
        AnyNodeRef::StmtIf(_) => "If",
        AnyNodeRef::ElifElseClause(clause) => clause.test.as_ref().map(|_| "If")?,
        AnyNodeRef::StmtWith(statement) if statement.is_async => "AsyncWith",
        AnyNodeRef::StmtWith(_) => "With",
        AnyNodeRef::StmtMatch(_) => "Match",
        AnyNodeRef::StmtRaise(_) => "Raise",
        AnyNodeRef::StmtTry(statement) if statement.is_star => "TryStar",
        AnyNodeRef::StmtTry(_) => "Try",
        AnyNodeRef::StmtAssert(_) => "Assert",
        AnyNodeRef::StmtImport(_) => "Import",
        AnyNodeRef::StmtImportFrom(_) => "ImportFrom",
        AnyNodeRef::StmtGlobal(_) => "Global",
        AnyNodeRef::StmtNonlocal(_) => "Nonlocal",
        AnyNodeRef::StmtExpr(_) => "Expr",
        AnyNodeRef::StmtPass(_) => "Pass",
        AnyNodeRef::StmtBreak(_) => "Break",
        AnyNodeRef::StmtContinue(_) => "Continue",
        AnyNodeRef::ExprBoolOp(_) => "BoolOp",
        AnyNodeRef::ExprNamed(_) => "NamedExpr",
        AnyNodeRef::ExprBinOp(_) => "BinOp",
        AnyNodeRef::ExprUnaryOp(_) => "UnaryOp",
        AnyNodeRef::ExprLambda(_) => "Lambda",
        AnyNodeRef::ExprIf(_) => "IfExp",
        AnyNodeRef::ExprDict(_) => "Dict",
        AnyNodeRef::ExprSet(_) => "Set",
        AnyNodeRef::ExprListComp(_) => "ListComp",
        AnyNodeRef::ExprSetComp(_) => "SetComp",
        AnyNodeRef::ExprDictComp(_) => "DictComp",
        AnyNodeRef::ExprGenerator(_) => "GeneratorExp",
        AnyNodeRef::ExprAwait(_) => "Await",
        AnyNodeRef::ExprYield(_) => "Yield",
        AnyNodeRef::ExprYieldFrom(_) => "YieldFrom",
        AnyNodeRef::ExprCompare(_) => "Compare",
        AnyNodeRef::ExprCall(_) => "Call",
        AnyNodeRef::ExprFString(_) => "JoinedStr",
        AnyNodeRef::ExprTString(_) => "TemplateStr",
        AnyNodeRef::InterpolatedElement(_) => "FormattedValue",
        AnyNodeRef::ExprStringLiteral(_)
        | AnyNodeRef::ExprBytesLiteral(_)
        | AnyNodeRef::ExprNumberLiteral(_)
        | AnyNodeRef::ExprBooleanLiteral(_)
        | AnyNodeRef::ExprNoneLiteral(_)
        | AnyNodeRef::ExprEllipsisLiteral(_) => "Constant",
        AnyNodeRef::ExprAttribute(_) => "Attribute",
        AnyNodeRef::ExprSubscript(_) => "Subscript",
        AnyNodeRef::ExprStarred(_) => "Starred",
        AnyNodeRef::ExprName(_) => "Name",
        AnyNodeRef::ExprList(_) => "List",
        AnyNodeRef::ExprTuple(_) => "Tuple",
        AnyNodeRef::ExprSlice(_) => "Slice",
        AnyNodeRef::ExceptHandlerExceptHandler(_) => "ExceptHandler",
        AnyNodeRef::PatternMatchValue(_) => "MatchValue",
        AnyNodeRef::PatternMatchSingleton(_) => "MatchSingleton",
        AnyNodeRef::PatternMatchSequence(_) => "MatchSequence",
        AnyNodeRef::PatternMatchMapping(_) => "MatchMapping",
        AnyNodeRef::PatternMatchClass(_) => "MatchClass",
        AnyNodeRef::PatternMatchStar(_) => "MatchStar",
        AnyNodeRef::PatternMatchAs(_) => "MatchAs",
        AnyNodeRef::PatternMatchOr(_) => "MatchOr",
        AnyNodeRef::TypeParamTypeVar(_) => "TypeVar",
        AnyNodeRef::TypeParamParamSpec(_) => "ParamSpec",
        AnyNodeRef::TypeParamTypeVarTuple(_) => "TypeVarTuple",
        AnyNodeRef::Comprehension(_) => "comprehension",
        AnyNodeRef::Parameters(_) => "arguments",
        AnyNodeRef::Parameter(_) => "arg",
        AnyNodeRef::Keyword(_) => "keyword",
        AnyNodeRef::Alias(_) => "alias",
        AnyNodeRef::WithItem(_) => "withitem",
        AnyNodeRef::MatchCase(_) => "match_case",
        _ => return None,
    })
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
    }
}
