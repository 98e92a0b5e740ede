//! Grants on their way back to interception.

use std::sync::Arc;

use wavescope_core::sync::Mutex;
use wavescope_core::{Interception, SubscriptionId, Token};

/// Returns grants. The subscription's id is known only when `subscribe` returned, but a dispatch may be traced
/// before that; its grant waits here.
pub(super) struct Grants {
    interception: Arc<dyn Interception>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    id: Option<SubscriptionId>,
    waiting: Vec<Token>,
}

impl Grants {
    pub(super) fn new(interception: Arc<dyn Interception>) -> Self {
        Self { interception, state: Mutex::new(State::default()) }
    }

    /// Lets the agent go on behind the dispatch of `token`.
    pub(super) fn give_back(&self, token: Token) {
        let id = {
            let mut state = self.state.lock();
            match state.id {
                Some(id) => id,
                None => return state.waiting.push(token),
            }
        };
        self.interception.return_grant(id, token);
    }

    pub(super) fn subscribed(&self, id: SubscriptionId) {
        let waiting = {
            let mut state = self.state.lock();
            state.id = Some(id);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(|token| self.interception.return_grant(id, token));
    }

    /// The next subscription has another id.
    pub(super) fn unsubscribed(&self) {
        self.state.lock().id = None;
    }
}
