//! When a trace instruction may be a program line.

use wavescope_isa::InstructionClass;

use crate::record::Category;

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
#[inline]
pub(crate) fn is_same(category: Category, class: InstructionClass) -> bool {
    category_of(class) == Some(category)
}

/// Whether a line is what the instruction says, without further conditions.
#[inline]
pub(crate) fn is_trivial(category: Category, class: InstructionClass) -> bool {
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
