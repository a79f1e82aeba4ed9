//! The declaration of a kernel's buffers: for each its name, access, element type and size.
//!
//! ```text
//! buffers! {
//!     /// Rows and their bias.
//!     pub struct Buffers, Slices(p: MatrixParams at 2) {
//!         x: change f32 = [p.rows, p.cols],
//!         bias: read f32 = [p.cols],
//!     }
//! }
//! ```
//!
//! The buffers have the indices 0, 1, 2… of MSL in their order, and `at` says which index the params have among them. A size is
//! the lengths of an array's dimensions or a number of elements; it may use the params, or values that a pattern takes
//! from the arguments of a launch: `(|args| (tokens, table) = lookup(args), EmbeddingParams at 3)`.
//!
//! From it come
//!
//! * `Buffers<T>`, a struct with a `T` for each buffer: the slice of memory that a lowering binds, the bytes that a launch touches,
//!   the place that a CPU kernel reads;
//! * `Slices`, the memory that a twin gets: `&[f32]` or `&mut [f32]`;
//! * the bindings, params and sizes of the kernel's row ([`KernelRow::of`](super::KernelRow::of)).

use akunu_types::params::{Row, SamplingRule};
use akunu_types::{SharedStruct, StructLayout};
use bytemuck::Pod;
use half::f16;

use super::args::Args;
use super::binding::{Access, Binding, Element};
use crate::extent::product;

/// A struct with a `T` for each buffer of a kernel. `buffers!` writes it.
pub trait BufferSet: Sized {
    /// The type of the value for each buffer.
    type Item;
    /// The buffers, in the order of their indices.
    const BINDINGS: &'static [Binding];
    /// Index of the params.
    const PARAMS_INDEX: u8;
    /// Layout of the params.
    const PARAMS: StructLayout;

    /// Bytes that each buffer must hold.
    fn required(args: &Args) -> Vec<usize>;

    /// The items in the order of the buffers.
    fn in_order(self) -> Vec<Self::Item>;

    /// Of items in that order.
    fn of(items: &[Self::Item]) -> Self
    where
        Self::Item: Copy;
}

/// The element type of a buffer.
pub trait BufferElement {
    /// As the table names it.
    const ELEMENT: Element;
    /// The Rust type that a twin gets. Sizes count these.
    type Seen: Pod;
}

/// Weights in the kernel's format, counted in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Weight;

/// Keys or values in pages, counted in bytes: halves, or with a constant 8 bits and their scales.
#[derive(Clone, Copy, Debug)]
pub struct Pool;

macro_rules! elements {
    ($($type:ty: $element:ident seen as $seen:ty,)*) => {
        $(impl BufferElement for $type {
            const ELEMENT: Element = Element::$element;
            type Seen = $seen;
        })*
    };
}

elements! {
    f32: F32 seen as f32,
    f16: F16 seen as f16,
    u32: U32 seen as u32,
    u16: U16 seen as u16,
    Row: Row seen as Row,
    SamplingRule: Rule seen as SamplingRule,
    Weight: Weight seen as u8,
    Pool: F16 seen as u8,
}

/// A number of elements, or the lengths of an array's dimensions.
pub trait Extent {
    /// The number of elements; `usize::MAX` where it does not fit.
    fn elements(self) -> usize;
}

impl Extent for usize {
    fn elements(self) -> usize {
        self
    }
}

impl<const N: usize> Extent for [u32; N] {
    fn elements(self) -> usize {
        product(&self)
    }
}

/// Bytes of so many elements.
pub fn bytes_of<T: BufferElement>(extent: impl Extent) -> usize {
    extent.elements().saturating_mul(size_of::<T::Seen>())
}

/// A buffer of these elements, whose index follows from its place.
pub const fn binding<T: BufferElement>(name: &'static str, access: Access) -> Binding {
    Binding {
        index: 0,
        name,
        element: T::ELEMENT,
        access,
    }
}

/// The same with their indices: their places, but for that of the params.
pub const fn numbered<const N: usize>(mut bindings: [Binding; N], params: u8) -> [Binding; N] {
    let mut place = 0;
    while place < N {
        let index = place as u8;
        bindings[place].index = if index < params { index } else { index + 1 };
        place += 1;
    }
    bindings
}

/// The layout of a params struct.
pub const fn layout_of<P: SharedStruct>() -> StructLayout {
    P::LAYOUT
}

/// Declares the buffers of a kernel: see [the module](self).
macro_rules! buffers {
    (
        $(#[$doc:meta])* $vis:vis struct $Buffers:ident, $Slices:ident ($p:ident: $P:ident at $at:literal) { $($body:tt)* }
    ) => {
        $crate::table::buffers! {
            $(#[$doc])* $vis struct $Buffers, $Slices (|args| $p = args.params::<$P>(), $P at $at) { $($body)* }
        }
    };
    (
        $(#[$doc:meta])* $vis:vis struct $Buffers:ident, $Slices:ident (|$args:ident| $pattern:pat = $given:expr, $P:ident at $at:literal) {
            $($(#[$note:meta])* $field:ident: $access:ident $T:ty = $extent:expr,)*
        }
    ) => {
        /// A value for each buffer of a launch.
        ///
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[allow(non_snake_case, reason = "buffers are named as in MSL")]
        $vis struct $Buffers<T> {
            $(#[doc = concat!("`", stringify!($field), "`, ", stringify!($access), " as ", stringify!($T), ".")] $(#[$note])* pub $field: T,)*
        }

        #[allow(dead_code, reason = "not every kernel needs every view of its buffers")]
        impl $Buffers<usize> {
            /// The place of each buffer among all.
            $vis const PLACES: $Buffers<usize> = {
                #[allow(non_camel_case_types, reason = "the compiler counts the fields")]
                enum Place { $($field),* }
                $Buffers { $($field: Place::$field as usize),* }
            };

            /// The bytes of each buffer that a launch touches.
            $vis fn bytes($args: &$crate::table::Args) -> $Buffers<usize> {
                let $pattern = $given;
                $Buffers { $($field: $crate::table::bytes_of::<$T>($extent)),* }
            }
        }

        impl<T> $crate::table::BufferSet for $Buffers<T> {
            type Item = T;
            const BINDINGS: &'static [$crate::table::Binding] = &$crate::table::numbered(
                [$($crate::table::binding::<$T>(stringify!($field), $crate::table::access!($access))),*],
                $at,
            );
            const PARAMS_INDEX: u8 = $at;
            const PARAMS: akunu_types::StructLayout = $crate::table::layout_of::<$P>();

            fn required(args: &$crate::table::Args) -> Vec<usize> {
                $Buffers::bytes(args).in_order()
            }

            fn in_order(self) -> Vec<T> {
                vec![$(self.$field),*]
            }

            #[allow(non_snake_case, reason = "buffers are named as in MSL")]
            fn of(items: &[T]) -> $Buffers<T>
            where
                T: Copy,
            {
                let &[$($field),*] = items else {
                    unreachable!("a plan is checked before it runs: it has a place for each binding of the row")
                };
                $Buffers { $($field),* }
            }
        }

        #[doc = concat!("[`", stringify!($Buffers), "`] as a twin sees them.")]
        #[allow(dead_code, non_snake_case, reason = "buffers are named as in MSL, and a twin need not touch all")]
        #[derive(Debug)]
        $vis struct $Slices<'a> {
            $(#[doc = concat!("`", stringify!($field), "`.")] pub $field: $crate::table::slice!($access 'a, $T),)*
        }

        impl<'a> $Slices<'a> {
            /// Of an execution.
            $vis fn of(twin: &'a mut $crate::twin::Twin<'_>) -> $Slices<'a> {
                let mut slices = twin.slices();
                $Slices { $($field: slices.$access()),* }
            }
        }
    };
}

/// The access for a word of a declaration: `read`, `write` or `change`.
macro_rules! access {
    (read) => {
        $crate::table::Access::Read
    };
    (write) => {
        $crate::table::Access::Write
    };
    (change) => {
        $crate::table::Access::ReadWrite
    };
}

/// The slice of a buffer that a twin gets.
macro_rules! slice {
    (read $a:lifetime, $T:ty) => {
        &$a [<$T as $crate::table::BufferElement>::Seen]
    };
    ($other:ident $a:lifetime, $T:ty) => {
        &$a mut [<$T as $crate::table::BufferElement>::Seen]
    };
}

pub(crate) use {access, buffers, slice};
