//! What the reader returns: kernels, their parameters, function constants.

/// Everything a flat source declares at its interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unit {
    /// Entry points, in source order.
    pub kernels: Vec<Kernel>,
    /// Function constants, in source order.
    pub constants: Vec<FunctionConstant>,
}

/// One entry point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name that the host asks for: the function's own, or its `host_name`.
    pub name: String,
    /// The C++ function, template arguments included: `gemv<block_q4_0, 4>`.
    pub function: String,
    /// The file of the entry point.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// `[[max_total_threads_per_threadgroup(n)]]`, where given.
    pub max_threads: Option<u32>,
    /// The parameters, in order.
    pub parameters: Vec<Parameter>,
}

impl Kernel {
    /// The buffer parameters, as (index, element type, space, access).
    pub fn buffers(&self) -> impl Iterator<Item = (u32, &str, AddressSpace, BufferAccess)> {
        self.parameters
            .iter()
            .filter_map(|parameter| match &parameter.kind {
                ParameterKind::Buffer {
                    index,
                    element,
                    space,
                    access,
                    ..
                } => Some((*index, element.as_str(), *space, *access)),
                _ => None,
            })
    }

    /// The name of the parameter that is bound at an index.
    pub fn buffer_name(&self, index: u32) -> Option<&str> {
        let is_it = |parameter: &&Parameter| matches!(parameter.kind, ParameterKind::Buffer { index: at, .. } if at == index);
        let parameter = self.parameters.iter().find(is_it);
        parameter.map(|parameter| parameter.name.as_str())
    }

    /// Indices and element types of the threadgroup memory that the host sizes.
    pub fn threadgroup_bindings(&self) -> impl Iterator<Item = (u32, &str)> {
        self.parameters
            .iter()
            .filter_map(|parameter| match &parameter.kind {
                ParameterKind::Threadgroup { index, element } => Some((*index, element.as_str())),
                _ => None,
            })
    }

    /// Whether some device buffer holds atomics: such a kernel's threadgroups may depend on each other.
    pub fn uses_device_atomics(&self) -> bool {
        self.buffers()
            .any(|(_, element, _, _)| element.starts_with("atomic"))
    }
}

/// One parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it is bound to.
    pub kind: ParameterKind,
}

/// What a kernel parameter is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterKind {
    /// `device T *x [[buffer(n)]]` or `constant T &p [[buffer(n)]]`.
    Buffer {
        /// `n`.
        index: u32,
        /// Element type, template arguments substituted.
        element: String,
        /// `device` or `constant`.
        space: AddressSpace,
        /// Whether the kernel may write it.
        access: BufferAccess,
        /// A reference rather than a pointer.
        reference: bool,
    },
    /// `threadgroup T *x [[threadgroup(n)]]`.
    Threadgroup {
        /// `n`.
        index: u32,
        /// Element type.
        element: String,
    },
    /// `uint x [[thread_position_in_grid]]`.
    Builtin {
        /// Which one.
        builtin: Builtin,
        /// Its declared type: `uint`, `ushort3`, …
        ty: String,
    },
}

/// Where a buffer lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSpace {
    /// Read and written by kernels.
    Device,
    /// Small and read-only.
    Constant,
}

/// Whether a kernel may write a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferAccess {
    /// `const` or `constant`.
    Read,
    /// Neither: the kernel may write it.
    ReadWrite,
}

/// A program-scope `constant T NAME [[function_constant(n)]];`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionConstant {
    /// Its name in the source.
    pub name: String,
    /// `n`.
    pub index: u32,
    /// `bool`, `uint`, `int`, `float`, …
    pub ty: String,
    /// The file that declares it.
    pub file: String,
    /// The line.
    pub line: u32,
}

macro_rules! builtins {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// The values that the hardware gives to each thread.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is the MSL attribute of the same name")]
        pub enum Builtin { $($variant),* }

        impl Builtin {
            /// Every built-in.
            pub const ALL: &'static [Builtin] = &[$(Builtin::$variant),*];

            /// The attribute's name in MSL.
            pub const fn name(self) -> &'static str {
                match self { $(Builtin::$variant => $name),* }
            }
        }
    };
}

builtins! {
    ThreadPositionInGrid = "thread_position_in_grid",
    ThreadPositionInThreadgroup = "thread_position_in_threadgroup",
    ThreadIndexInThreadgroup = "thread_index_in_threadgroup",
    ThreadgroupPositionInGrid = "threadgroup_position_in_grid",
    ThreadsPerGrid = "threads_per_grid",
    ThreadsPerThreadgroup = "threads_per_threadgroup",
    DispatchThreadsPerThreadgroup = "dispatch_threads_per_threadgroup",
    ThreadgroupsPerGrid = "threadgroups_per_grid",
    ThreadIndexInSimdgroup = "thread_index_in_simdgroup",
    SimdgroupIndexInThreadgroup = "simdgroup_index_in_threadgroup",
    SimdgroupsPerThreadgroup = "simdgroups_per_threadgroup",
    DispatchSimdgroupsPerThreadgroup = "dispatch_simdgroups_per_threadgroup",
    ThreadsPerSimdgroup = "threads_per_simdgroup",
    ThreadExecutionWidth = "thread_execution_width",
    ThreadIndexInQuadgroup = "thread_index_in_quadgroup",
    QuadgroupIndexInThreadgroup = "quadgroup_index_in_threadgroup",
    QuadgroupsPerThreadgroup = "quadgroups_per_threadgroup",
}

impl Builtin {
    /// The built-in with this attribute name.
    pub fn from_name(name: &str) -> Option<Builtin> {
        Builtin::ALL
            .iter()
            .copied()
            .find(|builtin| builtin.name() == name)
    }
}
