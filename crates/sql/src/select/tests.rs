//! Tests of SELECT.
