// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may do what: roles, and the file of tokens that give them.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::Serialize;
use strobe::error::Words;

/// What a client may do. Each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// See everything.
    View,
    /// Make, start, stop and remove runs, write outputs and recipes.
    Control,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Control => "control",
        }
    }
}

/// Characters of a token.
const LENGTH: std::ops::RangeInclusive<usize> = 16..=256;
/// Bytes of a file of secrets, at most.
const FILE_MAX: u64 = 1 << 20;

/// Tokens, and the roles that they give.
#[derive(Debug, Default)]
pub struct Tokens(Vec<(Role, String)>);

impl Tokens {
    /// Reads a file that nobody else can read or write.
    ///
    /// # Errors
    /// It cannot be read, others can, or a line of it is none.
    pub fn read(path: &Path) -> Result<Tokens, Words> {
        let text = secret(path, "tokens")?;
        Tokens::parse(&text).map_err(|(line, why)| {
            Words::new(format!("tokens {}:{line}", path.display()), why)
                .mend("write lines such as `view TOKEN` and `control TOKEN`, with tokens of 16 to 256 letters and digits, such as of `openssl rand -hex 32`")
        })
    }

    /// One token a line, behind its role; lines that are empty or begin with `#` say nothing.
    ///
    /// # Errors
    /// The first line that is wrong, and why. What the line says is not repeated: it may be a secret.
    pub fn parse(text: &str) -> Result<Tokens, (usize, String)> {
        let mut tokens: Vec<(Role, String)> = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let mut words = line.split_whitespace();
            let (role, token) = match (words.next(), words.next(), words.next()) {
                (None, ..) => continue,
                (Some(word), ..) if word.starts_with('#') => continue,
                (Some(role), Some(token), None) => (role, token),
                _ => return Err((number, "it must be a role and a token".to_owned())),
            };
            let role = [Role::View, Role::Control]
                .into_iter()
                .find(|r| r.name() == role);
            let Some(role) = role else {
                return Err((number, "the role is not `view` or `control`".to_owned()));
            };
            if !LENGTH.contains(&token.len()) || !token.bytes().all(|byte| byte.is_ascii_graphic())
            {
                let why = format!(
                    "the token must have {} to {} ASCII characters",
                    LENGTH.start(),
                    LENGTH.end()
                );
                return Err((number, why));
            }
            if tokens.iter().any(|(_, other)| other == token) {
                return Err((number, "the token is there twice".to_owned()));
            }
            tokens.push((role, token.to_owned()));
        }
        Ok(Tokens(tokens))
    }

    /// The role of this token, if it is one. The time this takes says nothing about any token.
    pub fn role(&self, token: &str) -> Option<Role> {
        let mut role = None;
        for (has, known) in &self.0 {
            if same(known.as_bytes(), token.as_bytes()) {
                role = Some(*has);
            }
        }
        role
    }
}

/// Whether they are the same; looks at all bytes in any case.
fn same(known: &[u8], said: &[u8]) -> bool {
    let mut differing = u8::from(known.len() != said.len());
    for (index, byte) in known.iter().enumerate() {
        differing |= byte ^ said.get(index).copied().unwrap_or(!byte);
    }
    differing == 0
}

/// The text of a file that only its owner, and its group, can read.
///
/// # Errors
/// It cannot be read, or others can read or write it.
pub fn secret(path: &Path, what: &str) -> Result<String, Words> {
    let object = format!("{what} {}", path.display());
    let failed = |error: std::io::Error| {
        Words::new(&object, error.to_string()).mend("give the name of a file that can be read")
    };
    let file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    let mode = about.permissions().mode() & 0o777;
    if !about.is_file() || mode & !0o640 != 0 {
        let words = Words::new(
            &object,
            format!("other users can read or change it: its mode is {mode:04o}"),
        );
        return Err(words.mend(format!("chmod 0600 {}", path.display())));
    }
    let mut text = String::new();
    file.take(FILE_MAX)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: &str = "0123456789abcdef";
    const CONTROL: &str = "fedcba9876543210";

    #[test]
    fn a_token_gives_its_role_and_nothing_else_does() {
        let text = format!("# of the lab\n\nview {VIEW}\n  control   {CONTROL}  \n");
        let tokens = Tokens::parse(&text).expect("tokens");
        assert_eq!(tokens.role(VIEW), Some(Role::View));
        assert_eq!(tokens.role(CONTROL), Some(Role::Control));
        for other in ["", "0", &VIEW[1..], &format!("{VIEW}0"), "# of the lab"] {
            assert_eq!(tokens.role(other), None, "{other}");
        }
        assert!(Role::View < Role::Control);
    }

    #[test]
    fn a_line_that_is_wrong_is_named_and_not_repeated() {
        for (text, line) in [
            (format!("view {VIEW}\nroot {CONTROL}"), 2),
            ("view 0123456789abcde".to_owned(), 1),
            (format!("view {VIEW} more"), 1),
            (VIEW.to_owned(), 1),
            (format!("view {VIEW}\n\ncontrol {VIEW}"), 3),
            ("view 0123456789abcdeé".to_owned(), 1),
        ] {
            let (number, why) = Tokens::parse(&text).expect_err("an error");
            assert_eq!(number, line, "{text}");
            assert!(!why.contains("0123"), "{why}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), format!("view {VIEW}\n")).expect("a text");
        let set = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), mode).expect("a mode");
        };
        for mode in [0o600, 0o640, 0o400] {
            set(mode);
            assert!(Tokens::read(file.path()).is_ok(), "{mode:o}");
        }
        for mode in [0o644, 0o660, 0o604, 0o700] {
            set(mode);
            let words = Tokens::read(file.path()).expect_err("refused").to_string();
            assert!(words.contains("chmod 0600"), "{words}");
        }
    }
}
