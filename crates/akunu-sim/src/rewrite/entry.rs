//! The entry points that stand behind a rewritten source.
//!
//! For the simulator, `akunu_entry_NAME(arguments)` calls the kernel with pointers from a table. For
//! PTX, `NAME` takes a pointer for each buffer, in the order of their indices, then the params by value,
//! then a byte offset into dynamic shared memory for each `[[threadgroup(n)]]`.

use super::Target;
use crate::msl::{AddressSpace, Builtin, Kernel, ParameterKind, ReadError, Unit};

pub fn entries(unit: &Unit, target: Target) -> Result<String, ReadError> {
    let mut out = String::from("\n#line 1 \"<entry points>\"\n");
    for kernel in &unit.kernels {
        if !kernel
            .name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            return Err(ReadError {
                file: kernel.file.clone(),
                line: kernel.line,
                problem: format!(
                    "`{}`: a kernel's name is letters, digits and `_`",
                    kernel.name
                ),
            });
        }
        let call = call(kernel, target);
        out.push_str(&match target {
            Target::Simulator => format!(
                "AKUNU_EXPORT void akunu_entry_{}(const akunu::Arguments *akunu_arguments) {{ {call} }}\n",
                kernel.name
            ),
            Target::Ptx => ptx_entry(kernel, &call),
        });
    }
    Ok(out)
}

fn call(kernel: &Kernel, target: Target) -> String {
    let arguments: Vec<String> = kernel
        .parameters
        .iter()
        .map(|parameter| match &parameter.kind {
            ParameterKind::Buffer { index, .. } if is_value(&parameter.kind, target) => {
                format!("akunu::Reference{{AKUNU_PARAMS({index})}}")
            }
            ParameterKind::Buffer {
                index, reference, ..
            } => {
                let kind = if *reference { "Reference" } else { "Pointer" };
                format!("akunu::{kind}{{AKUNU_BUFFER({index})}}")
            }
            ParameterKind::Threadgroup { index, .. } => {
                format!("akunu::Pointer{{AKUNU_THREADGROUP_BUFFER({index})}}")
            }
            ParameterKind::Builtin { builtin, ty } => {
                format!(
                    "akunu::position<{ty}>(akunu::builtin::{}())",
                    builtin_function(*builtin)
                )
            }
        })
        .collect();
    format!("{}({});", kernel.function, arguments.join(", "))
}

/// Whether a parameter is an argument itself rather than a pointer to it: for PTX, the params.
fn is_value(kind: &ParameterKind, target: Target) -> bool {
    target == Target::Ptx
        && matches!(
            kind,
            ParameterKind::Buffer {
                space: AddressSpace::Constant,
                reference: true,
                ..
            }
        )
}

/// Several attributes are one value: we always dispatch whole threadgroups.
fn builtin_function(builtin: Builtin) -> &'static str {
    match builtin {
        Builtin::DispatchThreadsPerThreadgroup => Builtin::ThreadsPerThreadgroup.name(),
        Builtin::DispatchSimdgroupsPerThreadgroup => Builtin::SimdgroupsPerThreadgroup.name(),
        Builtin::ThreadExecutionWidth => Builtin::ThreadsPerSimdgroup.name(),
        other => other.name(),
    }
}

fn ptx_entry(kernel: &Kernel, call: &str) -> String {
    let (mut buffers, mut params) = (Vec::new(), Vec::new());
    for parameter in &kernel.parameters {
        if let ParameterKind::Buffer { index, .. } = parameter.kind {
            let by_value = is_value(&parameter.kind, Target::Ptx);
            if by_value { &mut params } else { &mut buffers }.push(index);
        }
    }
    buffers.sort_unstable();
    params.sort_unstable();
    let mut threadgroup: Vec<u32> = kernel
        .threadgroup_bindings()
        .map(|(index, _)| index)
        .collect();
    threadgroup.sort_unstable();
    let parameters: Vec<String> = buffers
        .iter()
        .map(|index| format!("void *akunu_buffer_{index}"))
        .chain(
            params
                .iter()
                .map(|index| format!("akunu::Params akunu_params_{index}")),
        )
        .chain(
            threadgroup
                .iter()
                .map(|index| format!("uint akunu_offset_{index}")),
        )
        .collect();
    let parameters = parameters.join(", ");
    let name = &kernel.name;
    format!(
        "extern \"C\" [[clang::nvptx_kernel]] void akunu_entry_{name}({parameters}) __asm__(\"{name}\");\n\
         extern \"C\" [[clang::nvptx_kernel]] void akunu_entry_{name}({parameters}) {{ {call} }}\n"
    )
}
