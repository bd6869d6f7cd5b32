//! What the record of a run keeps, and what a joblog says.
