//! The actor kit through its public surface.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of the tests")]

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use wavescope_core::Error;
use wavescope_core::actor::{Actor, ActorThread, Reply, reply, spawn};
use wavescope_core::sync::Places;

enum Message {
    Echo(u32, Reply<u32>),
    /// Kept unanswered in the state.
    Keep(Reply<u32>),
    /// Answered when its deadline has passed.
    KeepUntil(Instant, Reply<u32>),
    Panic,
    Stop,
}

#[derive(Default)]
struct Echo {
    kept: Vec<Reply<u32>>,
    due: Option<Instant>,
}

impl Actor for Echo {
    type Message = Message;
    const NAME: &'static str = "echo";

    fn handle(&mut self, message: Message) -> ControlFlow<()> {
        match message {
            Message::Echo(value, reply) => reply.send(value),
            Message::Keep(reply) => self.kept.push(reply),
            Message::KeepUntil(due, reply) => {
                self.due = Some(due);
                self.kept.push(reply);
            }
            Message::Panic => panic!("on purpose"),
            Message::Stop => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn overdue(&mut self) -> ControlFlow<()> {
        self.due = None;
        self.kept.drain(..).for_each(|reply| reply.send(99));
        ControlFlow::Continue(())
    }
}

/// Handles nothing until it is let go.
struct Busy(std::sync::mpsc::Receiver<()>);

impl Actor for Busy {
    type Message = ();
    const NAME: &'static str = "busy";

    fn handle(&mut self, (): ()) -> ControlFlow<()> {
        let _ = self.0.recv();
        ControlFlow::Continue(())
    }
}

fn start(actor: Echo) -> ActorThread<Message> {
    spawn(actor, Places { requests: 8, notices: 0 }).unwrap()
}

fn is_gone(result: Result<u32, Error>) -> bool {
    matches!(result, Err(Error::ActorGone { actor: "echo" }))
}

#[test]
fn panic_wakes_waiters_in_state_and_in_mailbox() {
    let echo = start(Echo::default());
    let kept = echo.address().ask(Message::Keep);
    echo.address().send(Message::Panic).unwrap();
    let queued = echo.address().ask(|reply| Message::Echo(1, reply));
    assert!(is_gone(kept.wait()));
    assert!(is_gone(queued.wait()));
    assert!(is_gone(echo.address().ask(|reply| Message::Echo(1, reply)).wait()));
    assert!(matches!(echo.close_and_join(), Err(Error::ActorGone { .. })));
}

#[test]
fn close_handles_what_was_sent_before() {
    let echo = start(Echo::default());
    let address = echo.address().clone();
    let before = address.ask(|reply| Message::Echo(7, reply));
    echo.close_and_join().unwrap();
    assert_eq!(before.wait().unwrap(), 7);
    assert!(is_gone(address.ask(|reply| Message::Echo(8, reply)).wait()));
}

#[test]
fn actor_that_stops_itself_leaves_nobody_waiting() {
    let echo = start(Echo::default());
    echo.address().send(Message::Stop).unwrap();
    assert!(is_gone(echo.address().ask(|reply| Message::Echo(1, reply)).wait()));
    echo.close_and_join().unwrap();
}

#[test]
fn overdue_is_called_when_no_message_comes() {
    let echo = start(Echo::default());
    let due = Instant::now() + Duration::from_millis(5);
    assert_eq!(echo.address().ask(|reply| Message::KeepUntil(due, reply)).wait().unwrap(), 99);
    assert!(Instant::now() >= due);
}

#[test]
fn silent_actor_is_an_error_with_the_time_waited() {
    let (_reply, pending) = reply::<u32>("echo");
    let error = pending.wait_timeout(Duration::from_millis(1)).unwrap_err();
    assert_eq!(error.to_string(), "actor echo did not answer within 1ms");
}

#[test]
fn dropping_the_thread_twice_over_is_quiet() {
    let echo = start(Echo::default());
    let address = echo.address().clone();
    drop(echo);
    assert!(matches!(address.send(Message::Stop), Err(Error::ActorGone { actor: "echo" })));
}

// The end of the clock is no deadline at all; it must not overflow.
#[test]
fn the_longest_timeout_waits_for_the_answer() {
    let echo = start(Echo::default());
    let pending = echo.address().ask(|reply| Message::Echo(7, reply));
    assert_eq!(pending.wait_timeout(Duration::MAX).unwrap(), 7);
    assert_eq!(echo.address().ask_within(|reply| Message::Echo(8, reply), Duration::MAX).unwrap(), 8);
}

// A place for the request is part of the wait.
#[test]
fn asking_within_a_time_counts_the_wait_for_a_place() {
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let busy = spawn(Busy(blocked), Places { requests: 1, notices: 0 }).unwrap();
    // One is being handled, one has the only place.
    busy.address().send(()).unwrap();
    busy.address().send(()).unwrap();
    let asked = busy.address().ask_within(|_: Reply<()>| (), Duration::from_millis(5));
    assert_eq!(asked.unwrap_err().to_string(), "actor busy did not answer within 5ms");
    drop(unblock);
    busy.close_and_join().unwrap();
}
