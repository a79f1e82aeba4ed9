//! What is compared: the cores of this machine, or one of its NVIDIA GPUs.

use std::fmt;
use std::str::FromStr;

/// Where both programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The cores of this machine.
    Cpu,
    /// The NVIDIA GPU of this number.
    Cuda(u32),
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Device, String> {
        let number = match text {
            "cpu" => return Ok(Device::Cpu),
            "cuda" => Some(0),
            _ => text.strip_prefix("cuda:").and_then(|n| n.parse().ok()),
        };
        let unknown = || "the devices are cpu, cuda and cuda:N".to_string();
        number.map(Device::Cuda).ok_or_else(unknown)
    }
}

/// As `akunu-cli --device` spells it.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(0) => f.write_str("cuda"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_read_and_written_as_akunu_cli_does() {
        for (text, device) in [
            ("cpu", Device::Cpu),
            ("cuda", Device::Cuda(0)),
            ("cuda:2", Device::Cuda(2)),
        ] {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string(), text);
        }
        assert_eq!("cuda:0".parse(), Ok(Device::Cuda(0)));
        for wrong in ["gpu", "cuda:", "cuda:x", "metal"] {
            let said = wrong.parse::<Device>().expect_err(wrong);
            assert!(said.contains("cuda:N"), "{said}");
        }
    }
}
