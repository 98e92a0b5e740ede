//! One `properties` file of the driver: lines of `name value`, values unsigned decimal numbers.

use std::path::{Path, PathBuf};

use crate::Error;

/// The driver's files fit into one page; libhsakmt reads no more either.
const LONGEST_FILE: usize = 4095;

/// A parsed file that remembers where it came from, for messages.
#[derive(Debug)]
pub(super) struct Properties {
    path: PathBuf,
    length: usize,
    values: Vec<(String, u64)>,
}

impl Properties {
    pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let text = text(path, bytes)?;
        let mut values = Vec::new();
        let mut offset = 0;
        for (index, line) in text.split('\n').enumerate() {
            if !line.is_empty() {
                values.push(property(line).map_err(|(column, what)| Error::Malformed {
                    path: path.to_owned(),
                    line: index + 1,
                    offset: offset + column,
                    what,
                })?);
            }
            offset += line.len() + 1;
        }
        Ok(Self { path: path.to_owned(), length: bytes.len(), values })
    }

    pub(super) fn optional(&self, property: &str) -> Option<u64> {
        self.values.iter().find(|(name, _)| name == property).map(|(_, value)| *value)
    }

    pub(super) fn required(&self, property: &'static str) -> Result<u64, Error> {
        self.optional(property).ok_or_else(|| Error::MissingProperty {
            path: self.path.clone(),
            property,
            length: self.length,
        })
    }

    pub(super) fn required_u32(&self, property: &'static str) -> Result<u32, Error> {
        let value = self.required(property)?;
        u32::try_from(value).map_err(|_| self.inconsistent(format!("{property} {value} exceeds 32 bits")))
    }

    /// A count that later code divides by.
    pub(super) fn positive(&self, property: &'static str) -> Result<u32, Error> {
        match self.required_u32(property)? {
            0 => Err(self.inconsistent(format!("{property} of a GPU is 0"))),
            value => Ok(value),
        }
    }

    pub(super) fn inconsistent(&self, what: String) -> Error {
        Error::Inconsistent { path: self.path.clone(), what }
    }
}

/// A file that holds one number, like `gpu_id`.
pub(super) fn single_number(path: &Path, bytes: &[u8]) -> Result<u64, Error> {
    let text = text(path, bytes)?;
    let what = || format!("expected one number, found {text:?}");
    text.trim_end().parse().map_err(|_| Error::Malformed {
        path: path.to_owned(),
        line: 1,
        offset: 0,
        what: shorten(what()),
    })
}

fn text<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, Error> {
    let malformed = |offset: usize, what: String| Error::Malformed {
        path: path.to_owned(),
        line: 1 + bytes[..offset].iter().filter(|&&byte| byte == b'\n').count(),
        offset,
        what,
    };
    if bytes.len() > LONGEST_FILE {
        let what =
            format!("the file has {} bytes, more than the {LONGEST_FILE} of a driver file", bytes.len());
        return Err(malformed(LONGEST_FILE, what));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        malformed(offset, format!("byte {:#04x} is not text", bytes[offset]))
    })
}

/// Name and value of one line, or the column of the trouble with its description.
fn property(line: &str) -> Result<(String, u64), (usize, String)> {
    let Some((name, value)) = line.split_once(' ') else {
        return Err((0, shorten(format!("expected `name value`, found {line:?}"))));
    };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err((0, shorten(format!("{name:?} is no property name"))));
    }
    let number = value.trim_end().parse();
    let number =
        number.map_err(|_| (name.len() + 1, shorten(format!("{name} is {value:?}, not a number"))))?;
    Ok((name.to_owned(), number))
}

/// Keeps a message on one readable line whatever the file holds.
fn shorten(mut message: String) -> String {
    const LONGEST: usize = 120;
    if let Some((end, _)) = message.char_indices().nth(LONGEST) {
        message.truncate(end);
        message.push('…');
    }
    message
}
