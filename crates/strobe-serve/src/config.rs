// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon's configuration: a TOML file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use strobe::error::Words;

use crate::spool::Bounds;

pub mod http;
pub mod panda;
pub mod publish;

/// What a file can say; what it does not say has a default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Folder of the spools; `None`: rows stay in memory only.
    pub data: Option<PathBuf>,
    /// Folder of the recipes that clients may name.
    pub recipes: Option<PathBuf>,
    /// The simulator is offered, for who has no hardware.
    #[serde(skip)]
    pub demo: bool,
    /// How much of each run is kept.
    pub spool: Spool,
    /// Programs and browsers.
    pub http: http::Config,
    /// Who may do what.
    pub tokens: http::TokensConfig,
    /// What clients can have.
    pub limits: http::Limits,
    /// The PandA ports.
    pub panda: panda::Config,
    /// Runs that are made when the daemon starts.
    pub run: Vec<Made>,
    /// Runs of others that are served from the start.
    pub export: Vec<Exported>,
    /// Where rows are published to.
    pub publish: publish::Publish,
}

/// Bytes of a spool on the disk, at least: some files of it, of which the oldest is given up as a whole.
const BYTES_MIN: u64 = 4 << 20;
/// And in memory.
const RECENT_MIN: u64 = 1 << 20;

/// `[spool]`: how much of each run is kept.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spool {
    /// Bytes on the disk.
    #[serde(deserialize_with = "bytes")]
    pub bytes: Option<u64>,
    /// How old rows may get.
    #[serde(deserialize_with = "time")]
    pub age: Option<Duration>,
    /// Bytes in memory.
    #[serde(deserialize_with = "recent")]
    pub recent: Option<usize>,
}

/// `[[run]]`: a run that is made when the daemon starts, unless it has outlived the one before.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// Its recipe's file, from the folder of the recipes.
    pub recipe: PathBuf,
    /// Whether it is started, too.
    #[serde(default)]
    pub start: bool,
}

/// `[[export]]`: a run of somebody else.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exported {
    /// Its name, as `strobe status` shows it.
    pub run: String,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or says what nobody knows.
    pub fn read(path: &Path) -> Result<Self, Words> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Words::new(&name, error.to_string())
                .mend("give the name of a configuration that can be read")
        })?;
        let read: Result<Config, _> = toml::from_str(&text);
        let mut config = read.map_err(|error| {
            let line = error.span().map_or(1, |span| {
                let before = text.get(..span.start).unwrap_or_default();
                1 + before.matches('\n').count()
            });
            Words::new(format!("{name}:{line}"), error.message())
                .mend("docs/reference/serve.md lists all settings")
        })?;
        // Folders are those of the file, wherever the daemon is started.
        let folder = path.parent().unwrap_or(Path::new(""));
        let tls = config.http.tls.iter_mut();
        let tls = tls.flat_map(|tls| [&mut tls.certificate, &mut tls.key]);
        let others = [
            &mut config.data,
            &mut config.recipes,
            &mut config.http.unix,
            &mut config.tokens.file,
        ];
        for path in others.into_iter().flatten().chain(tls) {
            *path = folder.join(&path);
        }
        Ok(config)
    }
}

impl Spool {
    /// With what it does not say.
    pub fn bounds(&self) -> Bounds {
        let usual = Bounds::default();
        Bounds {
            recent: self.recent.unwrap_or(usual.recent),
            bytes: self.bytes.unwrap_or(usual.bytes),
            age: self.age.or(usual.age),
        }
    }
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    at_least("bytes", BYTES_MIN, from).map(Some)
}

fn recent<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    let recent = at_least("recent", RECENT_MIN, from)?;
    Ok(Some(usize::try_from(recent).unwrap_or(usize::MAX)))
}

/// What is too small is refused: more than that would be kept, and nobody would know.
fn at_least<'de, D: Deserializer<'de>>(key: &str, least: u64, from: D) -> Result<u64, D::Error> {
    let bytes = u64::deserialize(from)?;
    match bytes >= least {
        true => Ok(bytes),
        false => Err(de::Error::custom(format!(
            "`{key} = {bytes}` is too small for a spool: write {least} or more"
        ))),
    }
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    duration(from).map(Some)
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let time = strobe::quantity::duration_ns(&text);
    let time = time.map_err(|_| de::Error::custom("write a time: \"24h\", \"30min\", \"90s\""))?;
    Ok(Duration::from_nanos(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("serve.toml");
        std::fs::write(&path, text).expect("a file");
        let place = format!("{}/", folder.path().display());
        Config::read(&path).map_err(|words| words.to_string().replace(&place, ""))
    }

    #[test]
    fn a_file_says_what_is_kept_and_which_runs_there_are() {
        let config = read(
            "data = \"/var/lib/strobe\"\n[spool]\nbytes = 100_000_000\nage = \"24h\"\n\
             [[run]]\nrecipe = \"a.toml\"\nstart = true\n[[export]]\nrun = \"kernel:3\"\n",
        );
        let config = config.expect("a configuration");
        let bounds = config.spool.bounds();
        assert_eq!(bounds.bytes, 100_000_000);
        assert_eq!(bounds.age, Some(Duration::from_secs(86_400)));
        assert_eq!(config.data.as_deref(), Some("/var/lib/strobe".as_ref()));
        assert_eq!(config.run.len() + config.export.len(), 2);
    }

    #[test]
    fn what_is_rubbish_is_refused() {
        let right = [
            "data = \"/data\"\n[spool]\nbytes = 100_000_000\nage = \"24h\"\n[[run]]\nrecipe = \"a.toml\"\n",
            "[http]\nlisten = [\"127.0.0.1:8000\"]\n[limits]\nclients = 5\n[panda]\nlisten = \"127.0.0.1\"\n",
            "[publish.nats]\nurl = \"nats://bus:4222\"\n[tokens]\nfile = \"tokens\"\n",
        ];
        strobe::fuzz::texts(&right, |text| {
            let read = toml::from_str::<Config>(text);
            read.is_ok_and(|config| config.spool.bounds().recent > 0)
        });
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let wrong = |text: &str| read(text).expect_err("wrong");
        let text = wrong("\n[spool]\nbites = 3\n");
        assert!(
            text.starts_with("serve.toml:3: unknown field `bites`"),
            "{text}"
        );
        let text = wrong("[spool]\nage = \"soon\"\n");
        assert!(text.contains("write a time"), "{text}");
        for (line, least) in [("bytes", 4_194_304), ("recent", 1_048_576)] {
            let text = wrong(&format!("[spool]\n{line} = {}\n", least - 1));
            let said = format!(
                "serve.toml:2: `{line} = {}` is too small for a spool: write {least} or more;",
                least - 1
            );
            assert!(text.starts_with(&said), "{text}");
            let config = read(&format!("[spool]\n{line} = {least}\n"));
            let bounds = config.expect("enough").spool.bounds();
            assert!(bounds.bytes == least || bounds.recent as u64 == least);
        }
        let text = Config::read("/nonexistent/serve.toml".as_ref());
        let text = text.expect_err("no file").to_string();
        assert!(text.contains("give the name"), "{text}");
    }
}
