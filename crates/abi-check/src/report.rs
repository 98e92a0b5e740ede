//! What a comparison gives.

use std::fmt;

/// How many figures were compared, and which differ.
#[derive(Debug, Default, Clone)]
pub struct Report {
    /// Figures compared.
    pub comparisons: usize,
    /// Those that differ, in the order of the facts.
    pub differences: Vec<Difference>,
}

/// One figure that differs, or one fact without a counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where, e.g. `structs.hsa_queue_t.size`.
    pub place: String,
    /// What the facts say.
    pub expected: String,
    /// What our compiler says.
    pub compiled: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, compiled {}", self.place, self.expected, self.compiled)
    }
}

impl Report {
    /// Compares one figure; `None` is a figure that is not there.
    pub(crate) fn figure<T: PartialEq + fmt::Debug>(
        &mut self,
        place: impl fmt::Display,
        fact: Option<T>,
        compiled: Option<T>,
    ) {
        self.comparisons += 1;
        if fact != compiled || fact.is_none() {
            let shown =
                |figure: Option<T>| figure.map_or_else(|| "nothing".into(), |figure| format!("{figure:?}"));
            let (expected, compiled) = (shown(fact), shown(compiled));
            self.differences.push(Difference { place: place.to_string(), expected, compiled });
        }
    }

    /// Notes a fact that has no compiled counterpart.
    pub(crate) fn unbound(&mut self, place: impl fmt::Display) {
        self.figure(place, Some(Presence::Present), None);
    }

    /// Notes something compiled that is not among the facts.
    pub(crate) fn unfounded(&mut self, place: impl fmt::Display) {
        self.figure(place, None, Some(Presence::Present));
    }
}

/// Stands for a whole entry.
#[derive(Debug, PartialEq)]
enum Presence {
    Present,
}
