//! HSA programs in C on this library. What they must print is what they print on ROCr 7.2.4 itself, run on the kernel
//! driver's face of the same software GPU (`cargo xtask on-rocr`).

#[cfg(test)]
mod bench;
#[cfg(test)]
mod on_rocr;
#[cfg(test)]
mod programs;
