//! What the tests share.

#[cfg(feature = "hosts")]
pub mod core_target;
