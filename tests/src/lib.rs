//! What the tests share.

#[cfg(feature = "hosts")]
pub mod core_target;

pub mod life;
pub mod random_lists;
pub mod seeker;
