//! Grants on their way back to interception.

use std::sync::Arc;

use crate::sync::Mutex;
use crate::{Interception, SubscriptionId, Token};

/// Returns the grants of a service's subscription.
///
/// The subscription's id is known only when `subscribe` returned, but a dispatch may be measured and read before
/// that: its grant waits here. So the id of an earlier subscription must be forgotten before the next one is asked
/// for, or such a grant would go to the old one and never reach the agent.
pub struct GrantReturns {
    interception: Arc<dyn Interception>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    id: Option<SubscriptionId>,
    waiting: Vec<Token>,
}

impl GrantReturns {
    /// Without a subscription yet.
    pub fn new(interception: Arc<dyn Interception>) -> Self {
        Self { interception, state: Mutex::new(State::default()) }
    }

    /// Lets the agent go on behind the dispatch of `token`.
    pub fn give_back(&self, token: Token) {
        let id = {
            let mut state = self.state.lock();
            match state.id {
                Some(id) => id,
                None => return state.waiting.push(token),
            }
        };
        self.interception.return_grant(id, token);
    }

    /// The service is subscribed as `id`: gives back what waited for that.
    pub fn subscribed(&self, id: SubscriptionId) {
        let waiting = {
            let mut state = self.state.lock();
            state.id = Some(id);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(|token| self.interception.return_grant(id, token));
    }

    /// Forgets the subscription, of which no grant may be out any more: the next one has another id.
    pub fn unsubscribed(&self) {
        self.state.lock().id = None;
    }
}

impl std::fmt::Debug for GrantReturns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrantReturns").field("state", &*self.state.lock()).finish_non_exhaustive()
    }
}
