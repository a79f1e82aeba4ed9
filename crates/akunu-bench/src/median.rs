//! The figure that outliers do not move.

/// The middle value, or the mean of the two in the middle; none of no values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[n / 2]),
        n => Some((values[n / 2 - 1] + values[n / 2]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn outliers_do_not_move_it() {
        assert_eq!(median(vec![1.0, 100.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 2.0]), Some(3.0));
        assert_eq!(median(Vec::new()), None);
    }
}
