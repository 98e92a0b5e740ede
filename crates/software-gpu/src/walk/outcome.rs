//! What a branch does: the seam behind which data would be.

use crate::mix::mix;

/// A branch about which the code alone does not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its address.
    pub pc: u64,
    /// Where a relative branch goes when it is taken. `None`: a register says where, and nobody knows what is in it.
    pub target: Option<u64>,
}

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The following instruction is next.
    Falls,
    /// It goes to its target. Nothing for a branch to a register.
    Taken,
    /// It goes to this address.
    To(u64),
    /// Nobody knows: the wave stops.
    Unknown,
}

/// Answers what a branch does. Asked once for each time that one wave comes to a branch, in the wave's order.
pub trait Outcomes {
    /// What this branch does now.
    fn outcome(&mut self, branch: &Branch) -> Outcome;
}

/// Outcomes handed in, in the order in which the wave asks for them; `Unknown` when they are used up.
#[derive(Clone, Debug)]
pub struct Recorded<I>(I);

impl<I: Iterator<Item = Outcome>> Recorded<I> {
    /// Takes the outcomes.
    pub fn new(outcomes: impl IntoIterator<IntoIter = I>) -> Self {
        Self(outcomes.into_iter())
    }
}

impl<I: Iterator<Item = Outcome>> Outcomes for Recorded<I> {
    fn outcome(&mut self, _branch: &Branch) -> Outcome {
        self.0.next().unwrap_or(Outcome::Unknown)
    }
}

/// The model: a branch backwards closes a loop of one to [`Seeded::TRIPS`] trips, one forwards is taken every fourth
/// time. A loop whose way out is a forward branch ends too: from [`Seeded::PATIENCE`] visits on, a branch does what
/// it did less often so far.
#[derive(Clone, Debug)]
pub struct Seeded {
    seed: u64,
    /// Branches are told apart by their distance from here, so that the load address does not matter.
    entry: u64,
    visited: Vec<Visited>,
}

#[derive(Clone, Copy, Debug)]
struct Visited {
    pc: u64,
    /// Times that it was taken and was not.
    taken: u32,
    falls: u32,
    /// Trips left of the loop that it closes.
    trips: u32,
}

impl Seeded {
    /// Most trips of a loop.
    pub const TRIPS: u32 = 4;
    /// Visits of one branch after which it is driven the other way.
    pub const PATIENCE: u32 = 16;

    /// The model for a wave that starts at `entry`. The same seed gives the same way.
    pub const fn new(seed: u64, entry: u64) -> Self {
        Self { seed, entry, visited: Vec::new() }
    }

    fn visited(&mut self, pc: u64) -> &mut Visited {
        let place = match self.visited.binary_search_by_key(&pc, |known| known.pc) {
            Ok(place) => place,
            Err(place) => {
                self.visited.insert(place, Visited { pc, taken: 0, falls: 0, trips: 0 });
                place
            }
        };
        &mut self.visited[place]
    }
}

impl Outcomes for Seeded {
    fn outcome(&mut self, branch: &Branch) -> Outcome {
        let Some(target) = branch.target else { return Outcome::Unknown };
        let key = self.seed ^ branch.pc.wrapping_sub(self.entry).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let known = self.visited(branch.pc);
        let visits = known.taken + known.falls;
        let random = mix(key ^ u64::from(visits) << 48);
        let taken = if target <= branch.pc {
            if known.trips == 0 {
                known.trips = 1 + (random % u64::from(Self::TRIPS)) as u32;
            }
            known.trips -= 1;
            known.trips > 0
        } else if visits >= Self::PATIENCE {
            known.taken < known.falls
        } else {
            random.is_multiple_of(4)
        };
        *(if taken { &mut known.taken } else { &mut known.falls }) += 1;
        if taken { Outcome::Taken } else { Outcome::Falls }
    }
}
