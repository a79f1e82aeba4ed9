//! Relative positions: a learned bias of the attention scores for each bucket of distances.
//!
//! With `n = query - key`, half of the buckets is for n < 0 and half for n >= 0. Of a half, the first half is for one
//! distance each; the others grow with the logarithm up to `max_distance`, and the last one is for all beyond:
//!
//! ```text
//! half = n_buckets / 2;  exact = half / 2
//! bucket(n) = (half if n < 0) + |n|                                                            |n| < exact
//!           = (half if n < 0) + min(half - 1, exact + log(|n| / exact) / log(max_distance / exact) * (half - exact))
//! ```

/// How distances are divided into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelativePositions {
    /// Buckets, a multiple of 4.
    pub n_buckets: u32,
    /// From this distance on, all are in the last bucket of their side.
    pub max_distance: u32,
}

impl RelativePositions {
    /// The bucket of a query that lies `distance` tokens behind its key. The logarithm is rounded in f32, as the models
    /// were trained.
    pub fn bucket(self, distance: i32) -> u32 {
        let half = self.n_buckets / 2;
        let exact = half / 2;
        let side = if distance < 0 { half } else { 0 };
        let n = distance.unsigned_abs();
        if n < exact {
            return side + n;
        }
        let base = (f64::from(self.max_distance) / f64::from(exact)).ln() as f32;
        let steps = (n as f32 / exact as f32).ln() / base * (half - exact) as f32;
        side + (exact + steps as u32).min(half - 1)
    }

    /// The biases by distance, (n_heads, 2 * max_distance + 1), entry `max_distance + query - key`, of those by bucket,
    /// (n_buckets, n_heads).
    pub fn by_distance(self, by_bucket: &[f32], n_heads: u32) -> Vec<f32> {
        let reach = self.max_distance.cast_signed();
        let entry = |head: usize, distance: i32| {
            by_bucket[self.bucket(distance) as usize * n_heads as usize + head]
        };
        let heads = 0..n_heads as usize;
        heads
            .flat_map(|head| (-reach..=reach).map(move |distance| entry(head, distance)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: RelativePositions = RelativePositions {
        n_buckets: 32,
        max_distance: 128,
    };

    /// The first distance of each bucket, as `relative_position_bucket` of `transformers` 5.22 (torch 2.15) gives them for
    /// 32 buckets and distances up to 600: 16, 32 and 64 lie where rounding decides.
    #[test]
    fn buckets_begin_where_those_of_transformers_do() {
        let begins = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91];
        for distance in 0..600 {
            let wanted = begins.iter().filter(|&&first| first <= distance).count() - 1;
            assert_eq!(MODEL.bucket(distance) as usize, wanted, "{distance}");
            if distance > 0 {
                assert_eq!(MODEL.bucket(-distance) as usize, 16 + wanted, "-{distance}");
            }
        }
    }

    /// Head 1 has 100 more than head 0.
    #[test]
    fn a_table_by_distance_has_all_entries_of_a_head_side_by_side() {
        let by_bucket: Vec<f32> = (0..32u8)
            .flat_map(|bucket| [f32::from(bucket), f32::from(bucket) + 100.0])
            .collect();
        let table = MODEL.by_distance(&by_bucket, 2);
        assert_eq!(table.len(), 2 * 257);
        assert_eq!(
            [table[0], table[127], table[128], table[129]],
            [31.0, 17.0, 0.0, 1.0]
        );
        assert_eq!([table[256], table[257 + 128]], [15.0, 100.0]);
    }
}
