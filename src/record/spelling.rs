//! Enums whose variants have one spelling each.

/// Declares an enum with the spelling of each variant, which `as_str` gives; with `, ALL` behind its name also the list of its
/// variants in their order.
macro_rules! spelling {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$of:meta])* $variant:ident $spelling:literal,)+
    }) => {
        $(#[$meta])*
        $vis enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// The one spelling.
            $vis fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $spelling,)+
                }
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident, ALL {
        $($(#[$of:meta])* $variant:ident $spelling:literal,)+
    }) => {
        spelling! {
            $(#[$meta])*
            $vis enum $name {
                $($(#[$of])* $variant $spelling,)+
            }
        }

        impl $name {
            /// Every one, in order.
            $vis const ALL: [$name; [$($spelling),+].len()] = [$($name::$variant),+];
        }
    };
}

pub(crate) use spelling;
