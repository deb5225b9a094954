//! What the tests share.

#[cfg(feature = "hosts")]
pub mod core_target;

#[allow(clippy::panic)] // A life that breaks a promise ends the test.
pub mod life;
pub mod random_lists;
pub mod seeker;
