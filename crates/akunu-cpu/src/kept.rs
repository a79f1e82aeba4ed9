//! What the kernels of a thread keep from one dispatch to the next.
//!
//! A thread knows nothing of its kernels, so it keeps one value of each type, whatever they are.

use std::any::Any;

/// One value of each type that was asked for.
#[derive(Default)]
pub(crate) struct Kept {
    values: Vec<Box<dyn Any + Send>>,
}

impl Kept {
    /// The value of this type; its default at first. There are a handful, so they are looked through.
    pub fn get<T: Default + Send + 'static>(&mut self) -> &mut T {
        let known = self.values.iter().position(|value| value.is::<T>());
        let at = known.unwrap_or_else(|| {
            self.values.push(Box::<T>::default());
            self.values.len() - 1
        });
        match self.values[at].downcast_mut() {
            Some(value) => value,
            None => unreachable!("the value at this place has this type"),
        }
    }
}

/// A stretch of a job between two barriers of its plan. No two of a thread are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section(u64);

impl Section {
    /// Begins the next one.
    pub fn advance(&mut self) {
        self.0 += 1;
    }
}

/// Something that holds until the plan's next barrier: what it was made of may change after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UntilBarrier<T> {
    value: Option<T>,
    section: Section,
}

impl<T> Default for UntilBarrier<T> {
    fn default() -> UntilBarrier<T> {
        UntilBarrier {
            value: None,
            section: Section::default(),
        }
    }
}

impl<T> UntilBarrier<T> {
    /// The value, if it was set in this section.
    pub fn get(&self, now: Section) -> Option<&T> {
        self.value.as_ref().filter(|_| self.section == now)
    }

    /// Sets it, or says that there is none.
    pub fn set(&mut self, value: Option<T>, now: Section) {
        self.value = value;
        self.section = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_a_value_of_its_own() {
        let mut kept = Kept::default();
        *kept.get::<u32>() = 7;
        kept.get::<Vec<u8>>().push(1);
        assert_eq!((*kept.get::<u32>(), kept.get::<Vec<u8>>().len()), (7, 1));
        assert_eq!(*kept.get::<u64>(), 0);
    }

    /// Breaks when a value outlives the barrier.
    #[test]
    fn values_hold_until_the_next_section() {
        let mut now = Section::default();
        let mut value = UntilBarrier::default();
        assert_eq!(value.get(now), None);
        value.set(Some(3), now);
        assert_eq!(value.get(now), Some(&3));
        now.advance();
        assert_eq!(value.get(now), None);
        value.set(None, now);
        assert_eq!(value.get(now), None);
    }
}
