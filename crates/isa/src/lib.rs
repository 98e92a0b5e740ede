//! Length, class and branch target of AMD GPU instructions, and code-object reading
