//! What Apple says of an error.

use objc2::rc::Retained;
use objc2_foundation::NSError;

/// What an error says.
pub(super) fn said(error: Retained<NSError>) -> String {
    error.localizedDescription().to_string()
}
