//! Products on tensor cores: of rows that are made halves first, several in one launch where they read the same few rows.

use crate::kernel::convert::half_rows::{self, Order};
use crate::kernel::nvidia::{decode_gemm, shared_gemm, staging, tensor_gemm};
use std::mem::offset_of;

use akunu_program::{GateFunction, Op, Rows, Slice, op};
use akunu_types::params::{DecodeGemmParams, HalfRowsParams};

use super::NvidiaRules;
use super::select::{launch_kernel, n_parts, order_of_x, tensor_kernel};
use crate::constant::Constants;
use crate::lower::liveness::{is_overwritten, is_read_later};
use crate::lower::lowering::{Halved, Lowering};
use crate::lower::product::as_product;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::{BufferSet, KernelId};

/// How rows become halves.
struct Halving {
    rows: Rows,
    /// What the products that read them have as x.
    x: Slice,
    kernel: KernelId,
    inputs: Inputs,
    eps: f32,
}

/// The input that becomes halves: rows as they are, or the result of a norm or a gate.
#[derive(Clone, Copy)]
enum Inputs {
    Rows { x: Slice },
    Norm { x: Slice, gain: Slice },
    Gate { gate: Slice, up: Slice },
}

impl Inputs {
    fn call(
        self,
        kernel: KernelId,
        params: &HalfRowsParams,
        y: Slice,
        factor: Slice,
    ) -> KernelCall {
        let (key, label) = (PipelineKey::plain(kernel), "to halves");
        match self {
            Inputs::Rows { x } => {
                KernelCall::new(key, params, half_rows::Buffers { x, y, factor }, label)
            }
            Inputs::Norm { x, gain } => {
                let buffers = half_rows::NormBuffers { x, gain, y, factor };
                KernelCall::new(key, params, buffers, label)
            }
            Inputs::Gate { gate, up } => {
                let buffers = half_rows::GateBuffers {
                    gate,
                    up,
                    y,
                    factor,
                };
                KernelCall::new(key, params, buffers, label)
            }
        }
    }
}

impl Halving {
    fn plain(rows: Rows, x: Slice) -> Halving {
        Halving {
            rows,
            x,
            kernel: KernelId::HalfRows,
            inputs: Inputs::Rows { x },
            eps: 0.0,
        }
    }

    /// A norm or a gate, what it leaves in x, and its width.
    fn of(op: &Op) -> Option<(Halving, u32)> {
        match *op {
            Op::Norm(op::Norm {
                rows,
                x,
                weight,
                to,
                dim,
                eps,
            }) => Some((
                Halving {
                    rows,
                    x: to,
                    kernel: KernelId::NormHalfRows,
                    inputs: Inputs::Norm { x, gain: weight },
                    eps,
                },
                dim,
            )),
            Op::Gate(op::Gate {
                activation,
                gate,
                up,
                to,
                width,
            }) => Some((
                Halving {
                    rows: Rows::All,
                    x: to,
                    kernel: match activation {
                        GateFunction::Silu => KernelId::SiluHalfRows,
                        GateFunction::Gelu => KernelId::GeluHalfRows,
                        GateFunction::GeluErf | GateFunction::Sigmoid | GateFunction::SwigluOai => {
                            return None;
                        }
                    },
                    inputs: Inputs::Gate { gate, up },
                    eps: 0.0,
                },
                width,
            )),
            _ => None,
        }
    }
}

impl NvidiaRules {
    /// Lowers a norm or a gate that only products on tensor cores read: it leaves halves for them, and no floats; how many
    /// operations.
    pub(super) fn halved_result(&self, l: &mut Lowering, ops: &[Op]) -> Option<usize> {
        let (how, width) = Halving::of(ops.first()?)?;
        let order = self.order_of_readers(l, (how.rows, how.x), width, &ops[1..])?;
        l.halved = None;
        halve_by(l, &how, width, order).map(|_| 1)
    }

    /// The order in which the first of these operations read rows of x, if they are products on tensor cores, and if nothing reads x
    /// after them.
    pub(super) fn order_of_readers(
        &self,
        l: &Lowering,
        (rows, x): (Rows, Slice),
        width: u32,
        ops: &[Op],
    ) -> Option<Order> {
        let products: Vec<&op::Product> = ops
            .iter()
            .map_while(as_product)
            .take_while(|product| (product.rows, product.x) == (rows, x))
            .collect();
        let order = self.order_of_products(l, &products)?;
        let have_width = products.iter().all(|product| product.weight.cols == width);
        let rest = &ops[products.len()..];
        let is_last = match rows {
            Rows::All => is_overwritten(rest, x),
            Rows::Outputs => !is_read_later(rest, x),
        };
        (have_width && is_last).then_some(order)
    }

    /// The kernel on tensor cores of a product, if it gets one.
    fn tensor_kernel_of(&self, l: &Lowering, product: &op::Product) -> Option<KernelId> {
        let n_rows = l.program.room.of(product.rows.count());
        let shape = (n_rows, product.weight.rows, product.weight.cols);
        tensor_kernel(product.weight.dtype, shape, &self.chip)
    }

    /// The order in which all of these products, which follow each other, read x; those of one launch have the kernel of the first.
    fn order_of_products(&self, l: &Lowering, products: &[&op::Product]) -> Option<Order> {
        let order = order_of_x(self.tensor_kernel_of(l, products.first()?)?);
        let mut rest = products;
        while let Some(first) = rest.first() {
            if order_of_x(self.tensor_kernel_of(l, first)?) != order {
                return None;
            }
            let n_together = match order {
                Order::Rows => 1,
                Order::Spans | Order::Columns => n_together(rest),
            };
            rest = &rest[n_together..];
        }
        Some(order)
    }

    /// Lowers the first products of the same few rows as one kernel, as many as have weights of one format; how many.
    pub(super) fn products_together(
        &self,
        l: &mut Lowering,
        products: &[&op::Product],
    ) -> Option<usize> {
        let first = products.first()?;
        let n_rows = l.program.room.of(first.rows.count());
        let cols = first.weight.cols;
        let chip = &self.chip;
        let kernel = self.tensor_kernel_of(l, first)?;
        let order = order_of_x(kernel);
        if order == Order::Rows {
            return None;
        }
        let n_together = n_together(products);
        let together = &products[..n_together];
        if l.halved
            .is_some_and(|halved| together.iter().any(|product| halved.x == product.to))
        {
            l.halved = None;
        }
        let [factors, halves] = halve(l, (first.rows, first.x), cols, order)?;
        // A weight that is not there has no rows: what is bound in its place is not touched.
        let product = |at: usize| together.get(at).unwrap_or(first);
        let outputs = |at: usize| together.get(at).map_or(0, |product| product.weight.rows);
        let mut params = DecodeGemmParams {
            M: n_rows,
            K: cols,
            lda: half_stride(cols, order),
            N0: outputs(0),
            N1: outputs(1),
            N2: outputs(2),
            beta: if first.add { 1.0 } else { 0.0 },
            n_parts: 1,
        };
        let kernel = launch_kernel(kernel, &params, chip);
        params.n_parts = n_parts(kernel, &params, chip);
        let own = decode_gemm::Buffers {
            x: halves,
            weight_0: product(0).weight.place,
            weight_1: product(1).weight.place,
            weight_2: product(2).weight.place,
            y_0: product(0).to,
            y_1: product(1).to,
            y_2: product(2).to,
            scale: factors,
        };
        let key = PipelineKey::plain(kernel);
        let field = RowField::new(offset_of!(DecodeGemmParams, M), first.rows.count());
        let call = if is_shared(kernel) {
            let [parts, arrived] = share(l, kernel, &mut params)?;
            let buffers = shared_gemm::Buffers::with_parts(own, parts, arrived);
            KernelCall::new(key, &params, buffers, first.label)
        } else {
            KernelCall::new(key, &params, own, first.label)
        };
        l.push(call.with_rows([field]));
        Some(n_together)
    }

    /// Lowers a product on tensor cores whose x is rows of halves.
    pub(super) fn product_of_halves(
        &self,
        l: &mut Lowering,
        product: &op::Product,
    ) -> Option<usize> {
        let (rows, weight) = (product.rows, &product.weight);
        let kernel = self.tensor_kernel_of(l, product)?;
        if order_of_x(kernel) != Order::Rows {
            return None;
        }
        if l.halved.is_some_and(|halved| halved.x == product.to) {
            l.halved = None;
        }
        let [factors, halves] = halve(l, (rows, product.x), weight.cols, Order::Rows)?;
        let buffers = tensor_gemm::Buffers {
            x: halves,
            weight: weight.place,
            y: product.to,
            scale: factors,
        };
        let lda = half_stride(weight.cols, Order::Rows);
        l.push_product((kernel, lda), product, buffers);
        Some(1)
    }
}

/// The rows of x in halves and their factors, in scratch memory: made now, or by a product before this one.
fn halve(
    l: &mut Lowering,
    (rows, x): (Rows, Slice),
    cols: u32,
    order: Order,
) -> Option<[Slice; 2]> {
    halve_by(l, &Halving::plain(rows, x), cols, order)
}

/// The same, where x is what a kernel computes and halves.
fn halve_by(l: &mut Lowering, how: &Halving, cols: u32, order: Order) -> Option<[Slice; 2]> {
    let &Halving { rows, x, .. } = how;
    let n_rows = l.program.room.of(rows.count());
    let stride = half_stride(cols, order);
    let places = l.scratch(halved_bytes(n_rows, stride, order))?;
    let [factors, halves] = places;
    let halved = Halved { rows, x, order };
    if l.halved.replace(halved) != Some(halved) {
        let params = HalfRowsParams {
            cols,
            stride,
            order: order.code(),
            eps: how.eps,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(HalfRowsParams, rows), rows.count());
        let call = how.inputs.call(how.kernel, &params, halves, factors);
        l.push(call.with_rows([field]));
    }
    Some(places)
}

/// Whether threadgroups of a kernel may share its outputs.
fn is_shared(kernel: KernelId) -> bool {
    kernel.row().bindings == shared_gemm::Buffers::<()>::BINDINGS
}

/// The places of the parts of a product and of their counters. Where there is no room for the counters, it has one part.
fn share(l: &mut Lowering, kernel: KernelId, params: &mut DecodeGemmParams) -> Option<[Slice; 2]> {
    let required = |params: &DecodeGemmParams| {
        let none = Constants::none();
        let row = kernel.row();
        shared_gemm::Buffers::of(&(row.required)(
            &row.args(bytemuck::bytes_of(params), &none),
        ))
    };
    if l.counters(required(params).arrived).is_none() {
        params.n_parts = 1;
    }
    let arrived = l.counters(0)?;
    let bytes = required(params);
    if bytes.parts == 0 {
        // What is bound in the place of parts is not touched.
        return Some([arrived; 2]);
    }
    let [factors, halves] = halved_bytes(params.M, params.lda, order_of_x(kernel));
    let [.., parts] = l.scratch([factors, halves, bytes.parts])?;
    Some([parts, arrived])
}

/// How many products from the first on one launch can have: those with weights of one format and length.
fn n_together(products: &[&op::Product]) -> usize {
    let alike = |product: &&op::Product| (product.weight.dtype, product.weight.cols, product.add);
    let first = products.first().map(alike);
    let same = products.iter().take(decode_gemm::MAX_WEIGHTS);
    same.take_while(|product| Some(alike(product)) == first)
        .count()
}

/// Bytes of the factors and of the halves of so many rows.
pub(super) fn halved_bytes(n_rows: u32, stride: u32, order: Order) -> [usize; 2] {
    let n_halved = order.rows(n_rows) as usize;
    [4 * n_rows as usize, 2 * n_halved * stride as usize]
}

/// Halves from one row to the next, zeros included.
pub(super) fn half_stride(cols: u32, order: Order) -> u32 {
    cols.next_multiple_of(match order {
        Order::Rows => tensor_gemm::STEP,
        Order::Spans | Order::Columns => staging::QUAD,
    })
}
