//! Values that stand in the program text of another program, and how each job checks them.
//!
//! A program text is accepted if it is clear where each value stands: in a string, in a regular
//! expression, or outside of these. A value may then consist only of characters that end no string and
//! no regular expression, and that the language does not expand there. Outside of these it is a number,
//! or a name that the language does not use itself. So each value remains the part of the program that
//! it is in the template. What the program does with that text is the user's: a program that has words which
//! run text, such as `system` and `eval`, is not accepted.

mod alphabet;
mod value_check;
mod syntax;
mod lexer;
mod sed;
mod sql;
mod perl;
mod languages;

pub(crate) use alphabet::{Alphabet, VALUE};
pub(crate) use languages::{Language, alphabets};
pub(crate) use value_check::ValueCheck;
