//! Images among tokens.

mod kept;
mod reference;
mod refused;
