//! The tests of rows and pages.

mod rows;
