// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fields of a run and of a channel are encoded where serde's own way would not do: as formats of files have them.

use std::str::FromStr;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strobe_ring::StartTimes;

/// A value, or its text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Either<T> {
    Value(T),
    Text(String),
}

/// A number, or its decimal digits.
pub fn number<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + FromStr,
{
    match Either::deserialize(from)? {
        Either::Value(number) => Ok(number),
        Either::Text(text) => parse(&text),
    }
}

/// A number, or its decimal digits; nothing if there is none.
pub fn optional<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + FromStr,
{
    match Option::deserialize(from)? {
        None => Ok(None),
        Some(Either::Value(number)) => Ok(Some(number)),
        Some(Either::Text(text)) => parse(&text).map(Some),
    }
}

fn parse<T: FromStr, E: Error>(text: &str) -> Result<T, E> {
    let number = text.trim().parse();
    number.map_err(|_| E::custom(format_args!("`{text}` is not a number")))
}

/// A list, or its JSON.
pub fn list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    match Either::deserialize(from)? {
        Either::Value(list) => Ok(list),
        Either::Text(text) => serde_json::from_str(&text).map_err(D::Error::custom),
    }
}

/// [`StartTimes`], by names of their own.
#[derive(Serialize, Deserialize)]
#[serde(remote = "StartTimes")]
pub struct Start {
    #[serde(rename = "start_time_ns", deserialize_with = "number")]
    time: u64,
    #[serde(rename = "start_realtime_ns", deserialize_with = "number")]
    realtime: u64,
    #[serde(rename = "start_tai_ns", deserialize_with = "number")]
    tai: u64,
    #[serde(rename = "first_due_ns", default, with = "due")]
    first_due: u64,
}

/// When the first trigger was due: nothing of an event that never is.
mod due {
    use super::{Deserializer, Serialize, Serializer, optional};

    pub fn serialize<S: Serializer>(due: &u64, to: S) -> Result<S::Ok, S::Error> {
        Some(*due).filter(|due| *due != 0).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        optional(from).map(Option::unwrap_or_default)
    }
}

/// An engine, by its name.
pub mod engine {
    use strobe_ring::Engine;

    use super::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(engine: &Engine, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(engine.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Engine, D::Error> {
        let name = String::deserialize(from)?;
        let known = [Engine::Kernel, Engine::User].into_iter();
        let mut named = known.filter(|engine| engine.name() == name);
        Ok(named.next().unwrap_or(Engine::Other(0)))
    }
}

/// Outputs, as objects: each may have more than a name some day.
pub mod named {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Named<N> {
        name: N,
    }

    pub fn serialize<S: Serializer>(names: &[String], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(names.iter().map(|name| Named { name }))
    }

    pub fn deserialize<'de, D>(from: D) -> Result<Vec<String>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let list: Vec<Named<String>> = Deserialize::deserialize(from)?;
        Ok(list.into_iter().map(|named| named.name).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::channel::{Channel, Type};
    use crate::info::{Clock, RunInfo};
    use crate::samples::{channel, info, noted};

    fn run() -> RunInfo {
        let mut info = info(vec![channel("adc.u", Type::S64)]);
        info.clock = Clock::Tai;
        info.outputs = vec!["sim.latch".into(), "sim.latch".into()];
        info.skips = true;
        info.doctor.push(noted());
        info.tunables = vec!["adc.u".into()];
        info
    }

    #[test]
    fn a_run_comes_back_from_json() {
        for limit in [None, Some(5000)] {
            let run = RunInfo { limit, ..run() };
            let text = serde_json::to_string(&run).expect("JSON");
            assert_eq!(serde_json::from_str::<RunInfo>(&text).ok(), Some(run));
        }
        let value = serde_json::to_value(run()).expect("JSON");
        assert_eq!(value["outputs"][0], json!({"name": "sim.latch"}));
        assert_eq!(value["engine"], json!("kernel"));
        assert_eq!(value["clock"], json!("tai"));
        assert_eq!(value["first_due_ns"], json!(1500));
    }

    #[test]
    fn a_run_comes_back_from_texts_where_a_format_has_nothing_else() {
        let mut value = serde_json::to_value(run()).expect("JSON");
        let fields = value.as_object_mut().expect("an object");
        for (name, value) in fields.iter_mut() {
            *value = match (name.as_str(), &*value) {
                ("channels" | "outputs" | "skips", _) | (_, Value::String(_)) => continue,
                (_, Value::Null) => continue,
                (_, value) => json!(value.to_string()),
            };
        }
        assert_eq!(value["run"], json!("7"));
        assert_eq!(serde_json::from_value::<RunInfo>(value).ok(), Some(run()));
        let few = json!({"name": "a.b", "type": "u64", "scale": "0.5"});
        let few: Channel = serde_json::from_value(few).expect("a channel");
        assert_eq!((few.scale, few.offset, few.bits), (0.5, 0.0, 64));
    }

    #[test]
    fn what_is_no_number_is_refused_by_its_text() {
        let mut value = serde_json::to_value(run()).expect("JSON");
        value["capacity"] = json!("many");
        let error = serde_json::from_value::<RunInfo>(value).expect_err("no number");
        assert_eq!(error.to_string(), "`many` is not a number");
    }
}
