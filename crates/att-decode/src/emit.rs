//! Delivery: what the caller asked for, in blocks or one by one.

use crate::record::{Event, EventKind, Info, Loss, Record, RecordKind, RecordSet, RecordSink};

/// Records of one kind are handed over once this many have come together.
pub(crate) const BLOCK: usize = 65_536;

/// Which records a caller takes, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Kinds to deliver.
    pub(crate) records: RecordSet,
    /// Kinds to deliver one by one as they are made.
    pub(crate) immediate: RecordSet,
}

/// The way out of the decoder.
pub(crate) struct Emitter<'a> {
    sink: &'a mut dyn RecordSink,
    wanted: Wanted,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(sink: &'a mut dyn RecordSink, wanted: Wanted) -> Self {
        Emitter { sink, wanted }
    }

    #[inline]
    pub(crate) fn wants(&self, kind: RecordKind) -> bool {
        self.wanted.records.contains(kind)
    }

    #[inline]
    pub(crate) fn is_immediate(&self, kind: RecordKind) -> bool {
        self.wanted.immediate.contains(kind)
    }

    pub(crate) fn emit(&mut self, record: Record<'_>) {
        if self.wants(record.kind()) {
            self.sink.record(record);
        }
    }

    #[inline(never)]
    pub(crate) fn event(&mut self, event: Event) {
        if self.wants(RecordKind::Event) {
            self.sink.record(Record::Event(event));
        }
    }

    /// An event of the whole shader engine.
    #[inline(never)]
    pub(crate) fn global_event(&mut self, kind: EventKind, time: i64) {
        if self.wants(RecordKind::Event) {
            self.sink.record(Record::Event(Event::global(kind, time)));
        }
    }

    pub(crate) fn info(&mut self, info: Info) {
        self.emit(Record::Info(info));
    }

    pub(crate) fn loss(&mut self, loss: Loss) {
        self.emit(Record::Loss(loss));
    }
}

/// Records waiting to be handed over together.
#[derive(Debug, Clone)]
pub(crate) struct Block<T> {
    waiting: Vec<T>,
    wrap: fn(&[T]) -> Record<'_>,
    kind: RecordKind,
}

impl<T: Copy> Block<T> {
    pub(crate) fn new(kind: RecordKind, wrap: fn(&[T]) -> Record<'_>) -> Self {
        Block { waiting: Vec::new(), wrap, kind }
    }

    /// Adds a record, or delivers it at once if the caller wants that.
    #[inline]
    pub(crate) fn push(&mut self, record: T, emitter: &mut Emitter<'_>) {
        if emitter.is_immediate(self.kind) {
            emitter.emit((self.wrap)(&[record]));
        } else if emitter.wants(self.kind) {
            self.waiting.push(record);
        }
    }

    /// Hands everything over once the block is full.
    #[inline]
    pub(crate) fn flush_full(&mut self, emitter: &mut Emitter<'_>) {
        if self.is_full() {
            self.flush(emitter);
        }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= BLOCK
    }

    /// Hands everything over.
    pub(crate) fn flush(&mut self, emitter: &mut Emitter<'_>) {
        if !self.waiting.is_empty() {
            emitter.emit((self.wrap)(&self.waiting));
            self.waiting.clear();
        }
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.waiting.last_mut()
    }
}
