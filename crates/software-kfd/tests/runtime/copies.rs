//! Copies by the SDMA engines.
