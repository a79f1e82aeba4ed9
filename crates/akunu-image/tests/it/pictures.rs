//! Pictures by formula.

use akunu_image::{Picture, Size};

/// The picture of `make_processors.py`: squares of 8 x 8 that are smooth and noisy in turn.
pub fn picture(size: Size) -> Picture {
    let mut rgb = Vec::new();
    for y in 0..size.height {
        for x in 0..size.width {
            rgb.extend((0..3).map(|colour| byte(size, [x, y, colour])));
        }
    }
    Picture::from_rgb(size, rgb).expect("pixels")
}

fn byte(size: Size, [x, y, colour]: [u32; 3]) -> u8 {
    if (x / 8 + y / 8) % 2 == 0 {
        return (x * (3 + colour) + y * (7 - 2 * colour) + 40 * colour) as u8;
    }
    let place = (y * size.width + x) * 3 + colour;
    let noise = place.wrapping_mul(2_654_435_761);
    let noise = noise ^ (noise >> 15);
    (noise.wrapping_mul(2_246_822_519) >> 24) as u8
}
