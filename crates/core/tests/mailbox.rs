//! The mailbox of production, seen from its users.
#![cfg(not(loom))]

use std::time::{Duration, Instant};

use wavescope_core::sync::{Arc, Places, RecvError, SendError, mailbox, thread};

#[test]
fn requests_and_notices_keep_one_order() {
    let (sender, mut receiver) = mailbox(Places { requests: 2, notices: 2 });
    sender.send(1).unwrap();
    sender.notify(2).unwrap();
    sender.try_send(3).unwrap();
    sender.notify(4).unwrap();
    let received: Vec<i32> = (0..4).map(|_| receiver.recv().unwrap()).collect();
    assert_eq!(received, [1, 2, 3, 4]);
}

#[test]
fn flood_of_requests_leaves_the_places_of_notices() {
    let (sender, mut receiver) = mailbox(Places { requests: 1, notices: 1 });
    sender.try_send("request").unwrap();
    assert_eq!(sender.try_send("flood"), Err(SendError::Full("flood")));
    sender.notify("retired").unwrap();
    assert_eq!((receiver.recv(), receiver.recv()), (Ok("request"), Ok("retired")));
    sender.try_send("next").unwrap();
}

#[test]
fn notice_without_a_place_is_refused_and_takes_no_request_place() {
    let (sender, mut receiver) = mailbox(Places { requests: 1, notices: 1 });
    sender.notify(1).unwrap();
    assert_eq!(sender.notify(2), Err(SendError::Full(2)));
    sender.try_send(3).unwrap();
    assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Ok(3)));
    sender.notify(4).unwrap();
}

#[test]
fn close_delivers_what_was_sent_before_and_fits_into_a_full_mailbox() {
    let (sender, mut receiver) = mailbox(Places { requests: 1, notices: 1 });
    sender.send(1).unwrap();
    sender.notify(2).unwrap();
    sender.close();
    sender.close();
    assert_eq!(sender.send(3), Err(SendError::Closed(3)));
    assert_eq!(sender.notify(3), Err(SendError::Closed(3)));
    assert_eq!((receiver.recv(), receiver.recv(), receiver.recv()), (Ok(1), Ok(2), Err(RecvError::Closed)));
    assert_eq!(receiver.try_recv(), Err(RecvError::Closed));
}

#[test]
fn last_sender_gone_closes_and_receiver_gone_refuses() {
    let (sender, mut receiver) = mailbox::<()>(Places { requests: 1, notices: 0 });
    drop(sender.clone());
    assert_eq!(receiver.try_recv(), Err(RecvError::Empty));
    drop(sender);
    assert_eq!(receiver.recv(), Err(RecvError::Closed));
    let (sender, receiver) = mailbox(Places { requests: 1, notices: 1 });
    drop(receiver);
    assert_eq!(sender.try_send(1), Err(SendError::Closed(1)));
    assert_eq!(sender.notify(1), Err(SendError::Closed(1)));
}

#[test]
fn sender_that_waits_for_room_wakes_when_the_receiver_goes() {
    let (sender, receiver) = mailbox(Places { requests: 1, notices: 0 });
    sender.send(1).unwrap();
    let waiting = thread::spawn(move || sender.send(2));
    drop(receiver);
    assert_eq!(waiting.join().unwrap(), Err(SendError::Closed(2)));
}

#[test]
fn past_deadline_comes_before_waiting_messages() {
    let (sender, mut receiver) = mailbox(Places { requests: 1, notices: 0 });
    sender.send(1).unwrap();
    assert_eq!(receiver.recv_deadline(Instant::now()), Err(RecvError::Empty));
    assert_eq!(receiver.recv_deadline(Instant::now() + Duration::from_secs(60)), Ok(1));
}

#[test]
fn many_senders_lose_nothing() {
    let (sender, mut receiver) = mailbox(Places { requests: 2, notices: 0 });
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let sender = sender.clone();
            thread::spawn(move || (0..500_u64).for_each(|value| sender.send(value).unwrap()))
        })
        .collect();
    drop(sender);
    let mut sum = 0;
    while let Ok(value) = receiver.recv() {
        sum += value;
    }
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    assert_eq!(sum, 4 * (499 * 500 / 2));
}

/// Messages count themselves: none may stay behind in a mailbox whose receiver went while senders were busy.
#[test]
fn receiver_that_goes_drops_every_message_though_senders_race_it() {
    for _ in 0..200 {
        let alive = Arc::new(());
        let (sender, receiver) = mailbox(Places { requests: 4, notices: 4 });
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let (sender, alive) = (sender.clone(), Arc::clone(&alive));
                thread::spawn(move || {
                    while !matches!(sender.notify(Arc::clone(&alive)), Err(SendError::Closed(_))) {}
                })
            })
            .collect();
        thread::yield_now();
        drop(receiver);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(Arc::strong_count(&alive), 1);
        assert!(matches!(sender.send(alive), Err(SendError::Closed(_))));
    }
}
