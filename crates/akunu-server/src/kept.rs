//! Conversations that a response can go on with, in bounded memory: those that were used last.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use akunu::Message;
use serde_json::Value;

/// Bytes of an entry besides its texts, about.
const OVERHEAD: usize = 128;

/// Conversations by the ids of their responses.
pub(crate) struct Kept {
    inner: Mutex<Inner>,
    max_bytes: usize,
}

#[derive(Default)]
struct Inner {
    conversations: HashMap<String, Entry>,
    bytes: usize,
    /// Counts uses, so that each is later than the one before.
    clock: u64,
}

struct Entry {
    messages: Vec<Message>,
    bytes: usize,
    last_used: u64,
}

impl Kept {
    pub fn new(max_bytes: usize) -> Kept {
        Kept {
            inner: Mutex::default(),
            max_bytes,
        }
    }

    /// Keeps a conversation, and forgets those that were not used for longest until there is room. One that is larger than all room is
    /// not kept.
    pub fn put(&self, id: &str, messages: Vec<Message>) {
        let bytes = id.len() + messages.iter().map(size).sum::<usize>();
        if bytes > self.max_bytes {
            return;
        }
        let mut inner = self.lock();
        while inner.bytes + bytes > self.max_bytes && inner.forget_oldest() {}
        inner.clock += 1;
        inner.bytes += bytes;
        let last_used = inner.clock;
        let entry = Entry {
            messages,
            bytes,
            last_used,
        };
        inner.conversations.insert(id.to_string(), entry);
    }

    /// The messages of a conversation up to the end of this response.
    pub fn get(&self, id: &str) -> Option<Vec<Message>> {
        let mut inner = self.lock();
        inner.clock += 1;
        let now = inner.clock;
        let entry = inner.conversations.get_mut(id)?;
        entry.last_used = now;
        Some(entry.messages.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whether there was one.
    fn forget_oldest(&mut self) -> bool {
        let oldest = self.conversations.iter().min_by_key(|(_, it)| it.last_used);
        let Some(id) = oldest.map(|(id, _)| id.clone()) else {
            return false;
        };
        let entry = self.conversations.remove(&id);
        self.bytes -= entry.map_or(0, |entry| entry.bytes);
        true
    }
}

/// About the bytes of a message in memory.
fn size(message: &Message) -> usize {
    let extra = message.extra.iter();
    let extra = extra.map(|(name, value)| OVERHEAD + name.len() + value_size(value));
    OVERHEAD + message.role.len() + value_size(&message.content) + extra.sum::<usize>()
}

fn value_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => OVERHEAD,
        Value::String(text) => OVERHEAD + text.len(),
        Value::Array(values) => OVERHEAD + values.iter().map(value_size).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| OVERHEAD + name.len() + value_size(value));
            OVERHEAD + fields.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(n_bytes: usize) -> Vec<Message> {
        vec![Message::new("user", "x".repeat(n_bytes))]
    }

    /// Breaks when memory grows without end, when a used one is forgotten before an unused one, or when the bytes of what is
    /// gone are still counted.
    #[test]
    fn the_oldest_are_forgotten_when_there_is_no_room() {
        let kept = Kept::new(10_000);
        for id in ["a", "b", "c"] {
            kept.put(id, said(2_000));
        }
        assert!(kept.get("a").is_some());
        kept.put("d", said(7_000));
        assert!(kept.get("b").is_none() && kept.get("c").is_none());
        assert!(kept.get("a").is_some() && kept.get("d").is_some());
        kept.put("huge", said(20_000));
        assert!(kept.get("huge").is_none() && kept.get("a").is_some());
        for n in 0..1000 {
            kept.put(&n.to_string(), said(1_000));
        }
        let inner = kept.lock();
        assert!(inner.bytes <= 10_000, "{}", inner.bytes);
        let sum: usize = inner.conversations.values().map(|it| it.bytes).sum();
        assert_eq!(inner.bytes, sum);
        assert!(inner.conversations.len() > 5);
    }
}
