//! Models of the actor kit. Each has a twin with one step of the product switched off.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p wavescope-core --test loom_actor`
#![cfg(loom)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of the tests")]

use std::ops::ControlFlow;

use wavescope_core::Error;
use wavescope_core::actor::{Actor, Reply, spawn};
use wavescope_core::fault::{self, Fault};
use wavescope_core::sync::model::explore;
use wavescope_core::sync::{Places, thread};

enum Message {
    Ask(Reply<u32>),
    Panic,
    Stop,
}

struct Subject;

impl Actor for Subject {
    type Message = Message;
    const NAME: &'static str = "subject";

    fn handle(&mut self, message: Message) -> ControlFlow<()> {
        match message {
            Message::Ask(reply) => reply.send(1),
            Message::Panic => std::panic::resume_unwind(Box::new("dies on purpose")),
            Message::Stop => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }
}

/// A client asks while another message ends the actor: answered or told, never left behind.
fn client_is_woken_by(last: fn() -> Message) {
    let subject = spawn(Subject, Places { requests: 2, notices: 0 }).unwrap();
    let address = subject.address().clone();
    let client = thread::spawn(move || address.ask(Message::Ask));
    let _ = subject.address().send(last());
    let mut pending = client.join().unwrap();
    let _ = subject.close_and_join();
    match pending.try_take() {
        Some(Ok(1) | Err(Error::ActorGone { .. })) => {}
        other => panic!("a client was left behind by an actor that ended: {other:?}"),
    }
}

fn death() {
    client_is_woken_by(|| Message::Panic);
}

fn shutdown() {
    client_is_woken_by(|| Message::Stop);
}

#[test]
fn death_wakes_waiters() {
    explore("death_wakes_waiters", death);
}

#[test]
#[should_panic(expected = "a client was left behind by an actor that ended")]
fn death_with_silent_replies_leaves_a_waiter() {
    fault::set(Fault::SilentUnansweredReply);
    loom::model(death);
}

#[test]
fn shutdown_during_a_request_ends() {
    explore("shutdown_during_a_request_ends", shutdown);
}

#[test]
#[should_panic(expected = "a client was left behind by an actor that ended")]
fn shutdown_that_keeps_undelivered_requests_leaves_a_waiter() {
    fault::set(Fault::UndeliveredKept);
    loom::model(shutdown);
}

/// The same with a client that sleeps in `wait`: loom reports a deadlock if it is never woken.
#[test]
fn sleeping_client_wakes_when_the_actor_dies() {
    explore("sleeping_client_wakes_when_the_actor_dies", || {
        let subject = spawn(Subject, Places { requests: 2, notices: 0 }).unwrap();
        let address = subject.address().clone();
        let client = thread::spawn(move || address.ask(Message::Ask).wait());
        let _ = subject.address().send(Message::Panic);
        assert!(matches!(client.join().unwrap(), Ok(1) | Err(Error::ActorGone { .. })));
    });
}
