//! Experts whose weights stay in the file, because they are larger than the free memory.

use std::fmt;

/// This share of the free memory is left for keys and values and for other programs.
const SPARE: u64 = 8;

/// Weights of experts that are read from the file when they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFile {
    /// Their bytes.
    bytes: u64,
    /// The bytes that a token reads.
    of_token: u64,
    /// Bytes of memory that were free.
    free: u64,
}

/// Bytes of weights that are not laid out yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sizes {
    /// Those of experts.
    pub experts: u64,
    /// Those of experts that a token uses.
    pub of_token: u64,
    /// All others.
    pub others: u64,
}

impl InFile {
    /// Whether the weights of experts stay in the file: they do if panels of all weights need more than the free memory. Where the
    /// system does not say how much is free, everything fits.
    pub fn decide(sizes: Sizes, free: Option<u64>) -> Option<InFile> {
        let free = free?;
        let all = sizes.experts.saturating_add(sizes.others);
        (sizes.experts > 0 && all > free - free / SPARE).then_some(InFile {
            bytes: sizes.experts,
            of_token: sizes.of_token,
            free,
        })
    }
}

impl fmt::Display for InFile {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let gb = |bytes: u64| bytes as f64 / 1e9;
        let InFile {
            bytes,
            of_token,
            free,
        } = *self;
        write!(
            f,
            "the weights of the experts ({:.1} GB) do not fit into the free memory ({:.1} GB); they are read from the file when a \
             token uses them, {:.2} GB for each. With a disk that reads 1 GB a second that is {:.1} tokens a second, and more the \
             more of the file the system keeps in memory",
            gb(bytes),
            gb(free),
            gb(of_token),
            1.0 / gb(of_token.max(1)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes {
        experts: 16_000_000_000,
        of_token: 1_000_000_000,
        others: 2_000_000_000,
    };

    /// Fails when experts are laid out that do not fit, with all other weights and a spare eighth, or stay in the file though they
    /// fit.
    #[test]
    fn experts_stay_in_the_file_when_panels_do_not_fit() {
        let stay = |free| InFile::decide(SIZES, free).is_some();
        assert!(stay(Some(20_000_000_000)) && stay(Some(0)));
        assert!(!stay(Some(21_000_000_000)) && !stay(None));
        let dense = Sizes {
            experts: 0,
            ..SIZES
        };
        assert_eq!(InFile::decide(dense, Some(1)), None);
    }

    #[test]
    fn the_warning_says_sizes_and_speed() {
        let text = InFile::decide(SIZES, Some(12_300_000_000)).map(|it| it.to_string());
        let text = text.unwrap();
        for part in [
            "16.0 GB",
            "12.3 GB",
            "1.00 GB for each",
            "1.0 tokens a second",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
