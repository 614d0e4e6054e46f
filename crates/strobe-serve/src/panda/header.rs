// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header before the rows of a run.

use std::fmt::Write;

use super::capture::{Capture, row_bytes};
use super::number;
use super::options::{Format, Options};

/// What there is to say beside the columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Number of the run in the daemon.
    pub run: u32,
    /// The first row that is given.
    pub first: u64,
    /// Rows before it that are gone.
    pub missed: u64,
    /// When it was armed.
    pub armed: String,
    /// When it was started.
    pub started: String,
}

/// The header as this client wants it, with the blank line after it.
pub fn header(captures: &[Capture], options: &Options, about: &About) -> String {
    match options.xml {
        true => xml(captures, options, about),
        false => plain(captures, options, about),
    }
}

fn format(options: &Options) -> &'static str {
    match options.format {
        Format::Ascii => "ASCII",
        Format::Framed => "Framed",
        Format::Unframed => "Unframed",
    }
}

/// Times only for those who ask: two runs that differ in nothing else can go into one file of a stock client.
fn times(options: &Options, about: &About) -> Vec<(&'static str, String)> {
    match options.times {
        true => vec![
            ("arm_time", about.armed.clone()),
            ("start_time", about.started.clone()),
        ],
        false => Vec::new(),
    }
}

fn xml(captures: &[Capture], options: &Options, about: &About) -> String {
    let mut text = "<header>\n<data".to_owned();
    let put = |text: &mut String, name: &str, value: &str| {
        // Writing into a text cannot fail.
        let _ = write!(text, " {name}=\"{}\"", escaped(value));
    };
    for (name, value) in times(options, about) {
        put(&mut text, name, &value);
    }
    put(&mut text, "missed", &about.missed.to_string());
    put(&mut text, "process", "Scaled");
    put(&mut text, "format", format(options));
    put(&mut text, "sample_bytes", &row_bytes(captures).to_string());
    put(&mut text, "run", &about.run.to_string());
    put(&mut text, "first", &about.first.to_string());
    text.push_str(" />\n<fields>\n");
    for capture in captures {
        text.push_str("<field");
        put(&mut text, "name", &capture.name);
        put(&mut text, "type", capture.type_name());
        put(&mut text, "capture", capture.how.word());
        if let Some([scale, offset, units]) = scaling(capture) {
            put(&mut text, "scale", &scale);
            put(&mut text, "offset", &offset);
            put(&mut text, "units", &units);
        }
        text.push_str(" />\n");
    }
    text.push_str("</fields>\n</header>\n\n");
    text
}

fn plain(captures: &[Capture], options: &Options, about: &About) -> String {
    let mut text = String::new();
    for (name, value) in times(options, about) {
        let _ = writeln!(text, "{name}: {value}");
    }
    let _ = write!(
        text,
        "missed: {}\nprocess: Scaled\nformat: {}\nrun: {}\nfirst: {}\n",
        about.missed,
        format(options),
        about.run,
        about.first
    );
    if options.format != Format::Ascii {
        let _ = writeln!(text, "sample_bytes: {}", row_bytes(captures));
    }
    text.push_str("fields:\n");
    for capture in captures {
        let (name, kind) = (&capture.name, capture.type_name());
        let _ = write!(text, " {name} {kind} {}", capture.how.word());
        if let Some([scale, offset, units]) = scaling(capture) {
            let _ = write!(text, " Scale: {scale} Offset: {offset} Units: {units}");
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// Factor, offset and unit: all or none. The values have them already.
fn scaling(capture: &Capture) -> Option<[String; 3]> {
    let scaling = &capture.scaling;
    (capture.is_scaled() || !scaling.unit.is_empty()).then(|| {
        [
            number::text(scaling.scale),
            number::text(scaling.offset),
            scaling.unit.clone(),
        ]
    })
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // XML 1.0 has no way to say these.
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panda::capture::{How, Origin, Scaling};
    use crate::panda::field::{Extra, Source};
    use strobe::channel::Type;

    fn captures() -> [Capture; 2] {
        let source = Source {
            channel: "adc.x".to_owned(),
            kind: Type::S64,
            scale: 0.5,
            offset: 0.0,
            unit: String::new(),
        };
        [
            Capture {
                name: "ADC.X".to_owned(),
                how: How::Value,
                from: Origin::Channel(source),
                scaling: Scaling {
                    scale: 0.5,
                    offset: 0.0,
                    unit: "<\"&°'\u{1}>".to_owned(),
                },
            },
            Capture {
                name: "PCAP.BITS0".to_owned(),
                how: How::Value,
                from: Origin::Extra(Extra::Bits),
                scaling: Scaling {
                    scale: 1.0,
                    offset: 0.0,
                    unit: String::new(),
                },
            },
        ]
    }

    #[test]
    fn the_header_is_what_the_stock_client_reads() {
        let options = Options::read("XML FRAMED RAW").expect("options");
        let text = header(&captures(), &options, &About::default());
        let want = "<header>\n<data missed=\"0\" process=\"Scaled\" format=\"Framed\" sample_bytes=\"12\" run=\"0\" \
                    first=\"0\" />\n<fields>\n<field name=\"ADC.X\" type=\"double\" capture=\"Value\" scale=\"0.5\" \
                    offset=\"0\" units=\"&lt;&quot;&amp;°&apos; &gt;\" />\n<field name=\"PCAP.BITS0\" type=\"uint32\" \
                    capture=\"Value\" />\n</fields>\n</header>\n\n";
        assert_eq!(text, want);
    }

    #[test]
    fn times_are_there_for_those_who_ask() {
        let about = About {
            armed: "then".to_owned(),
            started: "later".to_owned(),
            ..About::default()
        };
        let with = |line: &str| {
            let options = Options::read(line).expect("options");
            header(&captures(), &options, &about).contains("later")
        };
        assert!(with("XML TIMES") && with("TIMES") && !with("XML") && !with(""));
    }
}
