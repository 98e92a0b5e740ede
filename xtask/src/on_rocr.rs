//! `cargo xtask on-rocr -- CMD...`: runs a program on the real ROCm runtime above the software GPU.
//!
//! Programs of the host, such as those that cargo builds, run through the sysroot's loader on its libraries. Programs of
//! the sysroot itself (`rocminfo`, `hipcc`), and with `--root` any other, run with the sysroot as their root folder,
//! where `--bind` shows them folders of the host.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use wavescope_on_rocr::{Gpus, Machine};

use crate::sysroot::Profile;

/// Options of `on-rocr`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which GPUs: a target, several of them as in gfx942-x8, or a topology folder
    #[arg(long, default_value = "gfx942")]
    gpu: String,
    /// Which userland
    #[arg(long, value_enum, default_value_t = Profile::Libs)]
    profile: Profile,
    /// Run with the sysroot as the root folder, also a program of the host
    #[arg(long)]
    root: bool,
    /// With the sysroot as the root folder: show the folder HOST there under PATH (default: under its own path)
    #[arg(long, value_name = "HOST[:PATH]")]
    bind: Vec<String>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the command; its failure is ours.
pub(crate) fn run(args: &Args) -> Result<()> {
    let machine = Machine::new(args.profile.into(), &args.gpu.parse::<Gpus>()?)?;
    let [program, arguments @ ..] = args.command.as_slice() else { bail!("no command given") };
    let mut command = match host_program(program).filter(|_| !args.root) {
        Some(path) => machine.command(path),
        None => in_root(&machine, program, &args.bind)?,
    };
    let status =
        command.args(arguments).status().with_context(|| format!("cannot run {program} on the sysroot"))?;
    if !status.success() {
        bail!("{program}: {status}");
    }
    Ok(())
}

/// Whether tests can run on the real runtime: unpacks and builds what they need, and asks `rocminfo` for the GPU.
pub(crate) fn check() -> Result<()> {
    let machine = Machine::new(Profile::Hip.into(), &"gfx942".parse::<Gpus>()?)?;
    let output = machine.command_in_root("rocminfo", &[]).output().context("cannot run rocminfo")?;
    if !String::from_utf8_lossy(&output.stdout).contains("gfx942") {
        bail!("rocminfo lists no gfx942: {}", String::from_utf8_lossy(&output.stderr));
    }
    Machine::new(Profile::Libs.into(), &"gfx942".parse::<Gpus>()?)?;
    Ok(())
}

/// The path of a program of the host: only what is named by a path. A bare name means the sysroot's.
fn host_program(program: &str) -> Option<PathBuf> {
    (program.contains('/') && Path::new(program).is_file()).then(|| PathBuf::from(program))
}

fn in_root(machine: &Machine, program: &str, binds: &[String]) -> Result<Command> {
    let mut absolute = Vec::new();
    for bind in binds {
        let (host, inside) = bind.split_once(':').unwrap_or((bind, bind));
        let host = Path::new(host).canonicalize().with_context(|| format!("cannot bind {host}"))?;
        if !Path::new(inside).is_absolute() {
            bail!("{inside} is not an absolute path");
        }
        absolute.push((host, inside));
    }
    let binds: Vec<_> = absolute.iter().map(|(host, inside)| (host.as_path(), *inside)).collect();
    Ok(machine.command_in_root(program, &binds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_names_mean_programs_of_the_sysroot() {
        assert_eq!(host_program("rocminfo"), None);
        assert_eq!(host_program("/nowhere/program"), None);
        assert_eq!(host_program("/bin/sh"), Some(PathBuf::from("/bin/sh")));
    }
}
