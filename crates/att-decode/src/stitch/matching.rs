//! When a trace instruction may be a program line.

use wavescope_isa::InstructionClass;

use crate::record::Category;
use crate::source::LineTraits;

/// Class of a line as the fast part of a walk sees it: the instruction class, or one of those that need a closer look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineClass(u8);

impl LineClass {
    /// Left out by the capture.
    pub(super) const EXCLUDED: Self = Self::of_number(14);
    /// Ends the walk, or may be left out by the capture.
    const CLOSER_LOOK: Self = Self::of_number(15);

    pub(super) const fn new(class: InstructionClass, traits: LineTraits) -> Self {
        if traits.is_blank || traits.is_barrier_wait {
            return Self::CLOSER_LOOK;
        }
        Self::of_number(class as u8)
    }

    /// Kept in the high four bits, so that a category fits below.
    const fn of_number(number: u8) -> Self {
        Self(number << 4)
    }
}

/// What the fast part of a walk does with a line and an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Step {
    /// They match; the line behind is next.
    Match = 0,
    /// They match; the branch target is next.
    Jump = 1,
    /// The line shows nothing in a trace; the one behind is next.
    Silent = 2,
    /// The rules have more to say.
    CloserLook,
}

/// Numbers of categories, unused ones included.
const CATEGORIES: u8 = 16;

/// The step for each class and category.
static STEPS: [Step; 256] = steps();

const CLASSES: [InstructionClass; 14] = [
    InstructionClass::Unknown,
    InstructionClass::Skip,
    InstructionClass::Smem,
    InstructionClass::Salu,
    InstructionClass::Vmem,
    InstructionClass::Flat,
    InstructionClass::Lds,
    InstructionClass::Valu,
    InstructionClass::Branch,
    InstructionClass::Immediate,
    InstructionClass::Bvh,
    InstructionClass::Barrier9,
    InstructionClass::MfmaScale,
    InstructionClass::Mov64,
];

const fn steps() -> [Step; 256] {
    let mut steps = [Step::CloserLook; 256];
    let mut at = 0;
    while at < CLASSES.len() {
        let class = CLASSES[at];
        let mut number = 0;
        while number < CATEGORIES {
            if let Some(category) = Category::from_number(number) {
                let step = &mut steps[(LineClass::of_number(class as u8).0 | number) as usize];
                let is_silent = matches!(class, InstructionClass::Unknown | InstructionClass::Skip);
                let waits = matches!(category, Category::Trap | Category::Unfinished);
                if is_silent && !waits {
                    *step = Step::Silent;
                } else if is_trivial(category, class) {
                    *step = Step::Match;
                } else if matches!((class, category), (InstructionClass::Branch, Category::Jump)) {
                    *step = Step::Jump;
                }
            }
            number += 1;
        }
        at += 1;
    }
    steps
}

/// What to do with a line of this class and an instruction of this category.
#[inline(always)]
pub(super) fn step(class: LineClass, category_number: u8) -> Step {
    STEPS[usize::from(class.0 | (category_number % CATEGORIES))]
}

/// The category that carries the name of a class; none for classes of their own.
pub(crate) const fn category_of(class: InstructionClass) -> Option<Category> {
    Some(match class {
        InstructionClass::Smem => Category::Smem,
        InstructionClass::Salu => Category::Salu,
        InstructionClass::Vmem => Category::Vmem,
        InstructionClass::Flat => Category::Flat,
        InstructionClass::Lds => Category::Lds,
        InstructionClass::Valu => Category::Valu,
        InstructionClass::Immediate => Category::Immed,
        InstructionClass::Bvh => Category::Bvh,
        _ => return None,
    })
}

/// Whether category and class carry the same name.
pub(crate) const fn is_same(category: Category, class: InstructionClass) -> bool {
    match category_of(class) {
        Some(named) => named as u8 == category as u8,
        None => false,
    }
}

/// Whether a line is what the instruction says, without further conditions.
pub(crate) const fn is_trivial(category: Category, class: InstructionClass) -> bool {
    is_same(category, class)
        || matches!(
            (class, category),
            (InstructionClass::Branch, Category::Next)
                | (InstructionClass::Immediate, Category::Msg)
                | (InstructionClass::Vmem, Category::Flat)
        )
}

/// Whether an immediate of the trace may stand for a line of this class on RDNA.
pub(crate) const fn is_skippable(class: InstructionClass) -> bool {
    matches!(
        class,
        InstructionClass::Skip
            | InstructionClass::Smem
            | InstructionClass::Vmem
            | InstructionClass::Flat
            | InstructionClass::Lds
            | InstructionClass::Valu
            | InstructionClass::Immediate
    )
}

/// The looser match of the look-ahead.
pub(crate) fn is_elaborate(category: Category, class: InstructionClass) -> bool {
    is_trivial(category, class)
        || matches!((class, category), (InstructionClass::Branch, Category::Jump))
        || category == Category::Immed && is_skippable(class)
}
