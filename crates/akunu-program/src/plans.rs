//! The programs that a device has loaded.

use crate::device::PlanId;
use crate::error::DeviceError;

/// Loaded programs in the form `P`, by id. A place is used again when its program was unloaded.
#[derive(Debug)]
pub struct Plans<P> {
    places: Vec<(u32, Option<P>)>,
    free: Vec<u32>,
}

impl<P> Default for Plans<P> {
    fn default() -> Plans<P> {
        Plans {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<P> Plans<P> {
    /// Keeps a program.
    pub fn add(&mut self, plan: P) -> PlanId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[index as usize];
        place.1 = Some(plan);
        PlanId {
            index,
            generation: place.0,
        }
    }

    /// A program that is loaded.
    pub fn get(&self, id: PlanId) -> Result<&P, DeviceError> {
        let place = self.places.get(id.index as usize);
        let plan = place.filter(|(generation, _)| *generation == id.generation);
        plan.and_then(|(_, plan)| plan.as_ref())
            .ok_or(DeviceError::Foreign {
                what: "program",
                id: id.index,
            })
    }

    /// A program that is loaded, to change what is kept with it.
    pub fn get_mut(&mut self, id: PlanId) -> Result<&mut P, DeviceError> {
        let place = self.places.get_mut(id.index as usize);
        let plan = place.filter(|(generation, _)| *generation == id.generation);
        plan.and_then(|(_, plan)| plan.as_mut())
            .ok_or(DeviceError::Foreign {
                what: "program",
                id: id.index,
            })
    }

    /// All loaded programs.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.places.iter_mut().filter_map(|(_, plan)| plan.as_mut())
    }

    /// Forgets a program.
    pub fn remove(&mut self, id: PlanId) -> Option<P> {
        let place = self.places.get_mut(id.index as usize)?;
        if place.0 != id.generation {
            return None;
        }
        let plan = place.1.take()?;
        place.0 += 1;
        self.free.push(id.index);
        Some(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An id that outlives its program must not reach the next one in the same place.
    #[test]
    fn a_place_is_used_again_and_old_ids_stand_for_nothing() {
        let mut plans = Plans::default();
        let (a, b) = (plans.add("a"), plans.add("b"));
        assert_eq!(plans.remove(a), Some("a"));
        assert_eq!(plans.remove(a), None);
        let c = plans.add("c");
        assert_eq!(c.index, a.index);
        assert!(plans.get(a).is_err());
        assert_eq!(
            (plans.get(b).ok(), plans.get(c).ok()),
            (Some(&"b"), Some(&"c"))
        );
    }
}
