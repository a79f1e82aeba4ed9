//! The C++ program that says how a compiler lays the header's structs out.
//!
//! For each struct it prints `struct NAME SIZE ALIGN`, and for each field `field NAME OFFSET TYPE`,
//! with -1 and `missing` for what the header does not have: templates look each field up, so that a
//! missing one is an answer and not a compiler error.

use akunu_types::layout::{FieldLayout, StructLayout};

/// The program's text, for a header of this file name.
pub fn source(header: &str, structs: &[StructLayout]) -> String {
    let mut text = structs
        .iter()
        .map(|s| format!("struct {};\n", s.name))
        .collect::<String>();
    text += &PROLOGUE.replace("HEADER", header);
    let fields = || {
        structs
            .iter()
            .flat_map(|s| s.fields.iter().map(move |field| (s, field)))
    };
    text += &fields()
        .map(|(s, field)| lookup(s, field))
        .collect::<String>();
    text += "int main() {\n";
    for layout in structs {
        let name = layout.name;
        text += &format!(
            "  std::printf(\"struct {name} %ld %ld\\n\", size<{name}>(0), align<{name}>(0));\n"
        );
        for field in layout.fields {
            let (probe, field) = (probe_name(layout, field), field.name);
            text += &format!(
                "  std::printf(\"field {field} %ld %s\\n\", {probe}_offset<{name}>(0), \
                 {probe}_type<{name}>(0).c_str());\n"
            );
        }
    }
    text + "}\n"
}

/// The header's own asserts are switched off: they would stop the compiler before it could say where
/// a field lies.
const PROLOGUE: &str = r#"
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#define static_assert(...)
#include "HEADER"
#undef static_assert

template <class T> long size(char (*)[sizeof(T)]) { return long(sizeof(T)); }
template <class T> long size(...) { return -1; }
template <class T> long align(char (*)[sizeof(T)]) { return long(alignof(T)); }
template <class T> long align(...) { return -1; }

template <class T> std::string scalar() { return "unknown"; }
template <> std::string scalar<uint8_t>() { return "uint8_t"; }
template <> std::string scalar<int8_t>() { return "int8_t"; }
template <> std::string scalar<uint16_t>() { return "uint16_t"; }
template <> std::string scalar<half>() { return "half"; }
template <> std::string scalar<uint32_t>() { return "uint32_t"; }
template <> std::string scalar<float>() { return "float"; }

template <class T> std::string type_name() {
  std::string name = scalar<std::remove_extent_t<T>>();
  return std::is_array<T>::value ? name + "[" + std::to_string(std::extent<T>::value) + "]" : name;
}

"#;

fn lookup(layout: &StructLayout, field: &FieldLayout) -> String {
    let (probe, field) = (probe_name(layout, field), field.name);
    format!(
        "template <class T> long {probe}_offset(decltype(&T::{field})) {{ return offsetof(T, {field}); }}\n\
         template <class T> long {probe}_offset(...) {{ return -1; }}\n\
         template <class T> std::string {probe}_type(decltype(&T::{field})) {{ return type_name<decltype(T::{field})>(); }}\n\
         template <class T> std::string {probe}_type(...) {{ return \"missing\"; }}\n"
    )
}

fn probe_name(layout: &StructLayout, field: &FieldLayout) -> String {
    format!("{}_{}", layout.name, field.name)
}
