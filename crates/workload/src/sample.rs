//! A small mixed workload: all kernels in several shapes, spread over the application's queues.

use crate::{Application, Arguments, Batch, Buffer, Error, Gpu, Launch, Module, kernels};

/// Elements of each vector; a prime, so that the last work-group is partial.
const ELEMENTS: u32 = 10_007;

/// Side lengths of the matrix; neither is a multiple of the tile.
const MATRIX: [u32; 2] = [200, 120];

/// Code and data of the workload on one GPU. Keep it until everything submitted has completed.
#[derive(Debug)]
pub struct Sample {
    vectors: Module,
    tiles: Module,
    input: Buffer,
    other: Buffer,
    output: Buffer,
}

impl Sample {
    /// Loads the kernels and makes the data.
    ///
    /// # Errors
    /// [`Error::NoKernels`], [`Error::Call`].
    pub fn load(application: &Application, gpu: &Gpu) -> Result<Self, Error> {
        let bytes = (MATRIX[0] * MATRIX[1]).max(ELEMENTS) as usize * size_of::<u32>();
        let mut input = application.buffer(gpu, bytes)?;
        for (index, word) in input.bytes_mut().chunks_exact_mut(4).enumerate() {
            word.copy_from_slice(&(index as f32).to_le_bytes());
        }
        Ok(Self {
            vectors: application.load(gpu, kernels::vectors(gpu.target())?)?,
            tiles: application.load(gpu, kernels::tiles(gpu.target())?)?,
            input,
            other: application.buffer(gpu, bytes)?,
            output: application.buffer(gpu, bytes)?,
        })
    }

    /// One launch of each kernel, in different shapes: one, two and three dimensions, partial work-groups, LDS.
    ///
    /// # Errors
    /// [`Error::NoKernel`], [`Error::Call`].
    pub fn launches(&self) -> Result<Vec<Launch>, Error> {
        let [width, height] = MATRIX;
        let (input, other, output) = (&self.input, &self.other, &self.output);
        let vector = || Arguments::new().buffer(input).buffer(other).buffer(output).u32(ELEMENTS);
        let matrix = || Arguments::new().buffer(input).buffer(output).u32(width).u32(height);
        let whole_tiles = |side: u32| side.next_multiple_of(16);
        Ok(vec![
            Launch::new(self.vectors.kernel("vector_add")?, [ELEMENTS, 1, 1], [256, 1, 1])
                .arguments(vector()),
            Launch::new(self.vectors.kernel("saxpy")?, [ELEMENTS, 1, 1], [64, 1, 1])
                .arguments(Arguments::new().buffer(input).buffer(output).f32(2.0).u32(ELEMENTS)),
            Launch::new(self.vectors.kernel("collatz")?, [4096, 1, 1], [1024, 1, 1])
                .arguments(Arguments::new().buffer(output).u32(4096)),
            Launch::new(
                self.tiles.kernel("reduce_sum")?,
                [ELEMENTS.next_multiple_of(256), 1, 1],
                [256, 1, 1],
            )
            .arguments(Arguments::new().buffer(input).buffer(output).u32(ELEMENTS)),
            Launch::new(
                self.tiles.kernel("transpose")?,
                [whole_tiles(width), whole_tiles(height), 1],
                [16, 16, 1],
            )
            .arguments(matrix()),
            Launch::new(self.tiles.kernel("stencil")?, [width, height, 1], [32, 4, 1]).arguments(matrix()),
            Launch::new(self.vectors.kernel("empty")?, [100, 10, 3], [32, 4, 2]),
        ])
    }

    /// The launches dealt out to `queues` batches, each dispatch with a signal of its own.
    ///
    /// # Errors
    /// As for [`launches`](Self::launches).
    pub fn batches(&self, queues: usize) -> Result<Vec<Batch>, Error> {
        let mut batches = vec![Batch::new().own_signals(); queues];
        for (index, launch) in self.launches()?.into_iter().enumerate() {
            if let Some(batch) = batches.get_mut(index % queues.max(1)) {
                batch.launch(launch);
            }
        }
        Ok(batches)
    }
}
