//! Layouts as data, and the macro that defines a struct together with its layout.

use half::f16;

use crate::e8m0::E8M0;

/// The element types that may stand in a shared struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Unsigned byte, `uint8_t`.
    U8,
    /// Signed byte, `int8_t`.
    I8,
    /// Unsigned 16-bit integer, `uint16_t`.
    U16,
    /// A quarter of an IEEE half's bits above 12 other bits, [`QuarterF16`].
    QuarterF16,
    /// Unsigned 32-bit integer, `uint32_t`.
    U32,
    /// IEEE half, MSL `half`.
    F16,
    /// IEEE single, `float`.
    F32,
    /// A power of two in a byte, [`E8M0`].
    E8M0,
}

impl Scalar {
    /// The type's spelling in the generated header.
    pub const fn msl_name(self) -> &'static str {
        match self {
            Scalar::U8 | Scalar::E8M0 => "uint8_t",
            Scalar::I8 => "int8_t",
            Scalar::U16 | Scalar::QuarterF16 => "uint16_t",
            Scalar::U32 => "uint32_t",
            Scalar::F16 => "half",
            Scalar::F32 => "float",
        }
    }

    /// Size in bytes.
    pub const fn size(self) -> usize {
        match self {
            Scalar::U8 | Scalar::I8 | Scalar::E8M0 => 1,
            Scalar::F16 | Scalar::U16 | Scalar::QuarterF16 => 2,
            Scalar::U32 | Scalar::F32 => 4,
        }
    }
}

/// 16 bits: in the highest four a quarter of an f16, whose lowest bits come first in an array of four.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct QuarterF16(pub u16);

impl QuarterF16 {
    /// The f16 of four quarters.
    pub fn join(quarters: [QuarterF16; 4]) -> f16 {
        let nibbles = quarters.into_iter().enumerate();
        f16::from_bits(nibbles.fold(0, |bits, (at, quarter)| bits | quarter.0 >> 12 << (4 * at)))
    }
}

/// A field's type: a scalar, or an array of them.
pub trait SharedField {
    /// The element type.
    const SCALAR: Scalar;
    /// Number of elements; `None` for a plain scalar.
    const ARRAY_LEN: Option<usize> = None;
}

impl SharedField for u8 {
    const SCALAR: Scalar = Scalar::U8;
}
impl SharedField for i8 {
    const SCALAR: Scalar = Scalar::I8;
}
impl SharedField for u16 {
    const SCALAR: Scalar = Scalar::U16;
}
impl SharedField for QuarterF16 {
    const SCALAR: Scalar = Scalar::QuarterF16;
}
impl SharedField for u32 {
    const SCALAR: Scalar = Scalar::U32;
}
impl SharedField for f16 {
    const SCALAR: Scalar = Scalar::F16;
}
impl SharedField for f32 {
    const SCALAR: Scalar = Scalar::F32;
}
impl SharedField for E8M0 {
    const SCALAR: Scalar = Scalar::E8M0;
}
impl<T: SharedField, const N: usize> SharedField for [T; N] {
    const SCALAR: Scalar = T::SCALAR;
    const ARRAY_LEN: Option<usize> = Some(N);
}

/// One field of a shared struct.
#[derive(Clone, Copy, Debug)]
pub struct FieldLayout {
    /// Name, the same in Rust and in MSL.
    pub name: &'static str,
    /// The doc comment, a line each.
    pub doc: &'static [&'static str],
    /// Element type.
    pub scalar: Scalar,
    /// Number of elements for an array, `None` for a scalar.
    pub array_len: Option<usize>,
    /// Byte offset from the start of the struct.
    pub offset: usize,
}

impl FieldLayout {
    /// Size in bytes.
    pub const fn size(&self) -> usize {
        match self.array_len {
            Some(n) => self.scalar.size() * n,
            None => self.scalar.size(),
        }
    }
}

/// One shared struct.
#[derive(Clone, Copy, Debug)]
pub struct StructLayout {
    /// Name in MSL.
    pub name: &'static str,
    /// The doc comment, a line each.
    pub doc: &'static [&'static str],
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub align: usize,
    /// The fields in order, padding included.
    pub fields: &'static [FieldLayout],
}

impl StructLayout {
    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&'static FieldLayout> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A struct whose bytes Rust and MSL share.
pub trait SharedStruct: bytemuck::Pod {
    /// Its layout as data.
    const LAYOUT: StructLayout;
}

/// Defines a shared struct and describes it in one place.
///
/// `pub struct Name = "msl_name", size = S { offset => field: Type, … }` expands to the `#[repr(C)]`
/// struct, a compile-time assert of `S` and of each offset, and [`SharedStruct::LAYOUT`].
macro_rules! shared_struct {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident = $msl:literal, size = $size:literal {
            $( $(#[doc = $field_doc:literal])* $offset:literal => $field:ident : $ty:ty, )+
        }
    ) => {
        $(#[doc = $doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
        #[allow(non_snake_case, reason = "fields have the same name in Rust and in MSL")]
        pub struct $name { $( $(#[doc = $field_doc])* pub $field: $ty, )+ }

        const _: () = {
            assert!(size_of::<$name>() == $size, "size");
            $( assert!(core::mem::offset_of!($name, $field) == $offset, "offset"); )+
        };

        impl Default for $name {
            fn default() -> Self {
                bytemuck::Zeroable::zeroed()
            }
        }

        impl $crate::layout::SharedStruct for $name {
            const LAYOUT: $crate::layout::StructLayout = $crate::layout::StructLayout {
                name: $msl,
                doc: &[$($doc),*],
                size: size_of::<$name>(),
                align: align_of::<$name>(),
                fields: &[$( $crate::layout::FieldLayout {
                    name: stringify!($field),
                    doc: &[$($field_doc),*],
                    scalar: <$ty as $crate::layout::SharedField>::SCALAR,
                    array_len: <$ty as $crate::layout::SharedField>::ARRAY_LEN,
                    offset: core::mem::offset_of!($name, $field),
                }, )+],
            };
        }
    };
}
pub(crate) use shared_struct;
