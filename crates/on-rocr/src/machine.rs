//! A machine with ROCm and GPUs: what commands run on.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::libraries::{DRIVER, TOOL};
use crate::{Error, Gpus, Profile, Sysroot, sysroot};

/// Names the tool libraries that the runtime loads.
pub(crate) const TOOL_VARIABLE: &str = "HSA_TOOLS_LIB";

/// Where the driver's folder and the topology appear inside the sysroot.
const DRIVER_INSIDE: &str = "/mnt/wavescope-driver";
const TOPOLOGY_INSIDE: &str = "/mnt/wavescope-topology";

/// A sysroot, GPUs, the driver's library and the tool's.
#[derive(Clone, Debug)]
pub struct Machine {
    sysroot: Sysroot,
    topology: PathBuf,
    driver: PathBuf,
    tool: PathBuf,
}

impl Machine {
    /// Puts a machine together; unpacks and builds what is missing.
    ///
    /// # Errors
    /// Says what is missing and why: see [`Error`].
    pub fn new(profile: Profile, gpus: &Gpus) -> Result<Self, Error> {
        Ok(Self {
            sysroot: Sysroot::ensure(profile)?,
            topology: gpus.folder()?,
            driver: DRIVER.up_to_date()?,
            tool: TOOL.up_to_date()?,
        })
    }

    /// The ROCm userland.
    pub fn sysroot(&self) -> &Sysroot {
        &self.sysroot
    }

    /// The folder that describes the GPUs.
    pub fn topology(&self) -> &Path {
        &self.topology
    }

    /// Runs a program of the host on the sysroot's libraries, through the sysroot's own loader. Files are the host's;
    /// `/proc/self/exe` is the loader; children of the program are ordinary programs of the host.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(self.sysroot.loader());
        command
            .arg("--library-path")
            .arg(self.sysroot.libraries())
            .arg("--preload")
            .arg(&self.driver)
            .arg(program)
            .env("WAVESCOPE_GPU_TOPOLOGY", &self.topology);
        command
    }

    /// As [`command`](Self::command), with the tool in the runtime that [`runtime_table`](crate::runtime_table) asks.
    pub fn command_with_table(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command(program);
        command.env(TOOL_VARIABLE, &self.tool);
        command
    }

    /// Runs a program of the sysroot with the sysroot as its root folder. `binds` are folders of the host, each with
    /// the path where the program sees it. Children of the program see the GPUs, too. The environment is empty but for
    /// what [`command_in_root_with`](Self::command_in_root_with) is given.
    pub fn command_in_root(&self, program: impl AsRef<OsStr>, binds: &[(&Path, &str)]) -> Command {
        self.command_in_root_with(program, binds, &[])
    }

    /// As [`command_in_root`](Self::command_in_root), with variables of the environment.
    pub fn command_in_root_with(
        &self,
        program: impl AsRef<OsStr>,
        binds: &[(&Path, &str)],
        environment: &[(&str, &str)],
    ) -> Command {
        // Without the script there is no sysroot, so the fallback is never run.
        let mut command = Command::new(sysroot::script().unwrap_or_else(|_| PathBuf::from("rocm-sysroot")));
        command.arg("--run").arg(self.sysroot.folder());
        let (folder, library) = (self.driver.parent(), self.driver.file_name());
        let folder = folder.unwrap_or(Path::new("/"));
        let own = [(folder, DRIVER_INSIDE), (self.topology.as_path(), TOPOLOGY_INSIDE)];
        for (outside, inside) in own.iter().chain(binds) {
            command.arg("--bind").arg(bind(outside, inside));
        }
        let library = Path::new(DRIVER_INSIDE).join(library.unwrap_or_default());
        let library = library.to_string_lossy();
        let own = [("LD_PRELOAD", library.as_ref()), ("WAVESCOPE_GPU_TOPOLOGY", TOPOLOGY_INSIDE)];
        for (name, value) in own.iter().chain(environment) {
            command.arg("--env").arg(format!("{name}={value}"));
        }
        command.arg("--").arg(program);
        command
    }
}

fn bind(outside: &Path, inside: &str) -> std::ffi::OsString {
    let mut bind = outside.as_os_str().to_owned();
    bind.push(":");
    bind.push(inside);
    bind
}
