//! Which implementation is used: `WAVESCOPE_AQLPROFILE`.

use std::sync::Arc;

use crate::builtin::Builtin;
use crate::error::Error;
use crate::native::Native;
use crate::program::PacketPrograms;

/// The environment variable.
pub const CHOICE_VARIABLE: &str = "WAVESCOPE_AQLPROFILE";

/// A choice of implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Choice {
    /// Our own packets.
    Builtin,
    /// The installed library, or an error that says why not.
    Native,
    /// Whatever serves the agent with the least that must be installed: our own packets, since they are the
    /// library's to the byte on every chip that either drives.
    #[default]
    Auto,
}

impl Choice {
    /// Reads the variable's value; absent or empty means [`Choice::Auto`].
    ///
    /// # Errors
    /// [`Error::UnknownChoice`].
    pub fn parse(value: Option<&str>) -> Result<Self, Error> {
        match value {
            None | Some("" | "auto") => Ok(Self::Auto),
            Some("builtin") => Ok(Self::Builtin),
            Some("native") => Ok(Self::Native),
            Some(other) => Err(Error::UnknownChoice { value: other.to_owned() }),
        }
    }

    /// What the process's environment asks for.
    ///
    /// # Errors
    /// [`Error::UnknownChoice`].
    pub fn from_environment() -> Result<Self, Error> {
        let value = std::env::var_os(CHOICE_VARIABLE);
        Self::parse(value.as_ref().map(|value| value.to_string_lossy()).as_deref())
    }

    /// The implementation.
    ///
    /// # Errors
    /// Those of [`Native::open`], if the library is asked for.
    pub fn open(self) -> Result<Arc<dyn PacketPrograms>, Error> {
        match self {
            Self::Builtin | Self::Auto => Ok(Arc::new(Builtin)),
            Self::Native => Ok(Arc::new(Native::open()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_meaning_and_others_are_refused() {
        assert_eq!(Choice::parse(None).unwrap(), Choice::Auto);
        assert_eq!(Choice::parse(Some("")).unwrap(), Choice::Auto);
        assert_eq!(Choice::parse(Some("builtin")).unwrap(), Choice::Builtin);
        assert_eq!(Choice::parse(Some("native")).unwrap(), Choice::Native);
        let error = Choice::parse(Some("Native")).unwrap_err();
        assert_eq!(error.to_string(), "WAVESCOPE_AQLPROFILE=\"Native\" is none of builtin, native, auto");
    }

    // Nothing in this test process has loaded the HSA runtime.
    #[test]
    fn the_library_is_refused_without_the_runtime() {
        let error = Choice::Native.open().err().unwrap();
        assert!(matches!(error, Error::RuntimeNotInitialised { .. }), "{error}");
        assert_eq!(Choice::Auto.open().unwrap().origin(), "built in");
    }
}
