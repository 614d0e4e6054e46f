// SPDX-License-Identifier: MIT OR Apache-2.0
//! The objects of a file, all made before SWMR starts.

use std::collections::HashSet;

use ::hdf5::plist::dataset_create::FillTime;
use ::hdf5::types::VarLenUnicode;
use serde_json::Value;
use strobe::channel::{Channel, column_names};
use strobe::info::known_causes;

use super::*;
use crate::date::iso8601;
use crate::fields;
use crate::sink::table::{HEADER, SKIPPED, SKIPPED_COLUMN};

/// Elements of a chunk: 64 KiB, which a recording of a few rows takes for each column.
const CHUNK: usize = 8 * 1024;
const CHUNK_OF_GAPS: usize = 512;
/// Bytes of a chunk of `failed`, about.
const CHUNK_OF_FAILED: usize = 64 * 1024;
/// What failed in each row.
const FAILED: &str = "failed";

/// All objects, in an empty file.
pub(super) fn create(file: &File, info: &RunInfo) -> Result<Writing, Error> {
    class(file, "NXroot")?;
    text(file, "default", "entry")?;
    text(
        file,
        "creator",
        concat!("strobe ", env!("CARGO_PKG_VERSION")),
    )?;
    let entry = group(file, "entry", "NXentry")?;
    text(&entry, "default", "data")?;
    text_field(&entry, "title", &info.event)?;
    text_field(&entry, "start_time", &iso8601(info.start.realtime))?;
    text_field(&entry, "program_name", "strobe")?;
    let (columns, failed) = data(&entry, info)?;
    let gaps = group(&entry, "gaps", "NXcollection")?;
    let gap = |name: &str, what: &str| {
        let column = column(&gaps, name, Type::U64, CHUNK_OF_GAPS)?;
        text(&column.dataset, "description", what)?;
        Ok::<_, Error>(column)
    };
    Ok(Writing {
        shape: info.shape(),
        columns,
        failed,
        gaps: Gaps {
            row: gap("row", "number of the row after the gap")?,
            trigger: gap("trigger", "its trigger")?,
            missed: gap("missed", "triggers before it that should have made a row")?,
            lost: gap("lost", "rows before it that are not in this file")?,
        },
        account: account(&entry, info)?,
        next: (0, 0),
        skips: 0,
        rows: 0,
        lost: 0,
        flushed: Instant::now(),
    })
}

/// The datasets of the rows: a column for each word of them, and what failed.
fn data(entry: &Group, info: &RunInfo) -> Result<(Vec<Column>, Option<Failed>), Error> {
    let data = group(entry, "data", "NXdata")?;
    let described = |(name, unit, what): (&str, &str, &str)| {
        let column = column(&data, name, Type::U64, CHUNK)?;
        if !unit.is_empty() {
            text(&column.dataset, "units", unit)?;
        }
        text(&column.dataset, "description", what)?;
        Ok::<_, Error>(column)
    };
    let header = HEADER.into_iter().map(described);
    let mut columns = header.collect::<Result<Vec<_>, _>>()?;
    let skipped = info.skips.then(|| described(SKIPPED_COLUMN)).transpose()?;
    let failed = failed(&data, info)?;
    let names = HEADER.into_iter().map(|(name, ..)| name);
    let names = names.chain([SKIPPED, FAILED]).map(str::to_owned);
    let mut taken: HashSet<String> = names.collect();
    let mut signals = Vec::new();
    for (channel, name) in info.channels.iter().zip(column_names(&info.channels)) {
        let object = object_name(&name, &mut taken);
        let column = column(&data, &object, channel.kind, CHUNK)?;
        describe(&column.dataset, channel, &name)?;
        columns.push(column);
        signals.push(object);
    }
    let time_axis = "time".to_owned();
    if let Some((first, others)) = signals.split_first() {
        text(&data, "signal", first)?;
        if !others.is_empty() {
            texts(&data, "auxiliary_signals", others)?;
        }
        texts(&data, "axes", &[time_axis])?;
        data.new_attr::<i32>()
            .create("time_indices")?
            .write_scalar(&0)?;
    }
    text(&data, "title", &info.event)?;
    columns.extend(skipped);
    Ok((columns, failed))
}

/// Nothing of a run of which nothing can fail.
fn failed(data: &Group, info: &RunInfo) -> Result<Option<Failed>, Error> {
    let names = info.fault_names();
    let steps = names.len();
    if steps == 0 {
        return Ok(None);
    }
    let rows = (CHUNK_OF_FAILED / steps).max(1);
    let dataset = data.new_dataset::<u8>().chunk((rows, steps));
    let dataset = dataset
        .fill_value(0_u8)
        .shape((0.., steps))
        .create(FAILED)?;
    text(
        &dataset,
        "description",
        "1 where a channel or an output failed",
    )?;
    texts(&dataset, "columns", &names)?;
    Ok(Some(Failed {
        dataset,
        steps,
        length: 0,
        rows: 0,
        marks: Vec::new(),
    }))
}

fn describe(dataset: &Dataset, channel: &Channel, column: &str) -> Result<(), Error> {
    text(dataset, "column", column)?;
    text(dataset, "long_name", &long_name(channel, column))?;
    for (name, value) in fields::of_channel(channel) {
        // The name that NeXus has for it.
        let name = if name == "unit" { "units" } else { &name };
        attribute(dataset, name, &value)?;
    }
    Ok(())
}

/// What a plot has at its axis: it shows words, not values.
fn long_name(channel: &Channel, column: &str) -> String {
    match (channel.is_scaled(), channel.unit.as_str()) {
        (true, unit) => format!(
            "{column} (raw; * {} + {} {unit})",
            channel.scale, channel.offset
        ),
        (false, "") => column.to_owned(),
        (false, unit) => format!("{column} ({unit})"),
    }
}

fn account(entry: &Group, info: &RunInfo) -> Result<Account, Error> {
    let run = group(entry, "run", "NXcollection")?;
    text(&run, "version", env!("CARGO_PKG_VERSION"))?;
    if !info.outputs.is_empty() {
        texts(&run, "outputs", &info.outputs)?;
    }
    for (name, value) in fields::of_run(info) {
        attribute(&run, &name, &value)?;
    }
    let missed_by = group(&run, "missed_by", "NXcollection")?;
    let missed_by = known_causes().map(|cause| Ok((cause, scalar(&missed_by, cause)?)));
    let end = run.new_dataset::<Word>().create("end")?;
    end.write_scalar(&Word::default())?;
    Ok(Account {
        rows: scalar(&run, "rows")?,
        triggers: scalar(&run, "triggers")?,
        missed: scalar(&run, "missed")?,
        missed_by: missed_by.collect::<Result<_, Error>>()?,
        skipped: scalar(&run, "skipped")?,
        lost: scalar(&run, "lost")?,
        errors: scalar(&run, "errors")?,
        end_time_ns: scalar(&run, "end_time_ns")?,
        complete: scalar(&run, "complete")?,
        end,
    })
}

fn group(parent: &Group, name: &str, nexus_class: &str) -> Result<Group, Error> {
    let group = parent.create_group(name)?;
    class(&group, nexus_class)?;
    Ok(group)
}

fn class(of: &Group, name: &str) -> Result<(), Error> {
    text(of, "NX_class", name)
}

fn column(parent: &Group, name: &str, kind: Type, chunk: usize) -> Result<Column, Error> {
    let dataset = match kind {
        Type::U64 => parent.new_dataset::<u64>(),
        Type::S64 => parent.new_dataset::<i64>(),
        Type::F64 => parent.new_dataset::<f64>(),
    };
    // All of it is written: a chunk that was filled before would be written twice.
    let dataset = dataset.fill_time(FillTime::Never);
    Ok(Column {
        dataset: dataset.chunk(chunk).shape(0..).create(name)?,
        length: 0,
        values: Values::new(kind),
    })
}

fn scalar(parent: &Group, name: &str) -> Result<Dataset, Error> {
    let dataset = parent.new_dataset::<u64>().create(name)?;
    dataset.write_scalar(&0_u64)?;
    Ok(dataset)
}

fn text_field(parent: &Group, name: &str, value: &str) -> Result<(), Error> {
    let dataset = parent.new_dataset::<VarLenUnicode>().create(name)?;
    dataset.write_scalar(&unicode(value))
}

fn text(of: &::hdf5::Location, name: &str, value: &str) -> Result<(), Error> {
    let attribute = of.new_attr::<VarLenUnicode>().create(name)?;
    attribute.write_scalar(&unicode(value))
}

fn texts(of: &::hdf5::Location, name: &str, values: &[String]) -> Result<(), Error> {
    let values: Vec<_> = values.iter().map(|v| unicode(v)).collect();
    let attribute = of.new_attr::<VarLenUnicode>().shape(values.len());
    attribute.create(name)?.write(values.as_slice())
}

/// A value as an attribute: a number as one, all else as text; nothing if there is none.
fn attribute(of: &::hdf5::Location, name: &str, value: &Value) -> Result<(), Error> {
    match (value, value.as_u64(), value.as_f64()) {
        (Value::Null, ..) => Ok(()),
        (_, Some(number), _) => of.new_attr::<u64>().create(name)?.write_scalar(&number),
        (_, None, Some(real)) => of.new_attr::<f64>().create(name)?.write_scalar(&real),
        _ => text(of, name, &fields::text(value)),
    }
}

/// Text as HDF5 has it: without NUL.
fn unicode(text: &str) -> VarLenUnicode {
    text.replace('\0', "").parse().unwrap_or_default()
}

/// A name that NeXus allows, and that no other has: `sim.counter#2` becomes
/// `sim.counter_2`. The attribute `column` has the name that it stands for.
fn object_name(column: &str, taken: &mut HashSet<String>) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut name: String = column
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    if name.starts_with('.') || name.is_empty() {
        name.insert(0, '_');
    }
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_allowed_and_differ() {
        let mut taken = HashSet::from(["time".to_owned()]);
        let mut name = |column| object_name(column, &mut taken);
        assert_eq!(name("sim.counter"), "sim.counter");
        assert_eq!(name("sim.counter#2"), "sim.counter_2");
        assert_eq!(name("file:/sys/a b"), "file__sys_a_b");
        assert_eq!(name("file:/sys/a_b"), "file__sys_a_b_");
        assert_eq!(name("time"), "time_");
        assert_eq!(name(".."), "_..");
        assert_eq!(name(""), "_");
    }
}
