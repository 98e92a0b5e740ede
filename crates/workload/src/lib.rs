//! A small HSA application over any API table.
