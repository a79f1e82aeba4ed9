//! Sizes as a `preprocessor_config.json` has them.

use crate::error::ConfigError;
use crate::picture::Size;
use serde::Deserialize;

/// A number, or numbers by name.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(crate) enum Lengths {
    One(u32),
    Named {
        height: Option<u32>,
        width: Option<u32>,
        shortest_edge: Option<u64>,
        longest_edge: Option<u64>,
    },
}

impl Lengths {
    pub(crate) fn size(self) -> Result<Size, ConfigError> {
        match self {
            Self::One(side) => Ok(Size::square(side)),
            Self::Named {
                height: Some(height),
                width: Some(width),
                ..
            } => Ok(Size { width, height }),
            Self::Named { .. } => Err(ConfigError::Missing("height or width")),
        }
    }

    /// The side of a square.
    pub(crate) fn side(self) -> Result<u32, ConfigError> {
        let Size { width, height } = self.size()?;
        if width != height {
            let found = format!("{height} x {width}");
            return Err(invalid("patch_size", found, "only squares are supported"));
        }
        Ok(width)
    }

    pub(crate) fn edges(self) -> (Option<u64>, Option<u64>) {
        match self {
            Self::One(_) => (None, None),
            Self::Named {
                shortest_edge,
                longest_edge,
                ..
            } => (shortest_edge, longest_edge),
        }
    }

    pub(crate) fn shortest(self) -> Result<u32, ConfigError> {
        self.edge("shortest_edge", self.edges().0)
    }

    pub(crate) fn longest(self) -> Result<u32, ConfigError> {
        self.edge("longest_edge", self.edges().1)
    }

    fn edge(self, field: &'static str, named: Option<u64>) -> Result<u32, ConfigError> {
        if let Self::One(edge) = self {
            return Ok(edge);
        }
        let edge = named.ok_or(ConfigError::Missing(field))?;
        u32::try_from(edge).map_err(|_| invalid(field, edge, "at most 8192 is supported"))
    }
}

/// The error of a field whose value cannot be used.
pub(crate) fn invalid(field: &'static str, found: impl ToString, expected: &str) -> ConfigError {
    ConfigError::Value {
        field,
        found: found.to_string(),
        expected: expected.into(),
    }
}
