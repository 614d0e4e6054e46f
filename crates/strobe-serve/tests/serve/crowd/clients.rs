// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients that look at each row, and count. They share no code with the server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_buffer::Buffer;
use arrow_ipc::reader::{StreamDecoder, StreamReader};
use serde_json::{Value, json};
use tungstenite::Message;

/// What is captured. The first two of a row are the same number.
pub const COLUMNS: &str =
    "PCAP.INDEX,SIM.COUNTER,SIM.RAMP,SIM.SINE,SIM.NOISE,CLOCK.ELAPSED,CLOCK.LATE";
const ROW_BYTES: usize = 7 * 8;

/// How a client gets rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Arrow,
    Csv,
    /// With the policy `skip`.
    WebSocket,
    /// With gaps told.
    Panda,
}

/// Where the rows are.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub http: SocketAddr,
    pub panda: SocketAddr,
    pub run: u64,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The server has said that all rows were given.
    Whole,
    /// The client went in the middle.
    Killed,
    /// The server cut it off.
    Cut,
}

/// What a client has had.
#[derive(Debug)]
pub struct Account {
    pub kind: Kind,
    pub end: End,
    begin: u64,
    /// The row after the last one that it had, or was told of.
    next: u64,
    pub rows: u64,
    pub lost: u64,
}

impl Account {
    /// Rows and lost are all that there was from where it began; up to the end of the run, if it was there.
    pub fn assert_exact(&self, rows: u64) {
        assert_eq!(self.rows + self.lost, self.next - self.begin, "{self:?}");
        assert!(self.end != End::Whole || self.next == rows, "{self:?}");
    }
}

/// One client.
pub struct Client {
    pub kind: Kind,
    pub begin: u64,
    pub place: Place,
    pub is_killed: Arc<AtomicBool>,
    /// It reads nothing before this is so.
    pub waits_for: Option<Arc<AtomicBool>>,
}

/// Counts the rows of a client.
struct Tally<'c> {
    client: &'c Client,
    account: Account,
}

/// The client goes, in the middle of what is sent to it: as if it was killed.
struct Gone;

impl Tally<'_> {
    /// A row, and the counter in it. Only where nothing else says so, a step is a loss.
    fn row(&mut self, row: u64, counter: u64) {
        let account = &mut self.account;
        assert_eq!(row, counter, "{account:?}");
        let is_told = matches!(account.kind, Kind::WebSocket | Kind::Panda);
        assert!(
            row == account.next || (row > account.next && !is_told),
            "row {row}: {account:?}"
        );
        account.lost += row - account.next;
        account.next = row + 1;
        account.rows += 1;
    }

    fn lost(&mut self, rows: Range<u64>) {
        let account = &mut self.account;
        assert!(
            rows.start == account.next && rows.end > rows.start,
            "{rows:?}: {account:?}"
        );
        account.lost += rows.end - rows.start;
        account.next = rows.end;
    }

    fn batch(&mut self, batch: &RecordBatch) {
        let column = |name: &str| {
            let column = batch.column_by_name(name).expect("a column");
            column.as_primitive::<UInt64Type>().values()
        };
        for (row, counter) in column("row").iter().zip(column("sim.counter")) {
            self.row(*row, *counter);
        }
    }

    fn stays(&self) -> Result<(), Gone> {
        match self.client.is_killed.load(Ordering::Relaxed) {
            true => Err(Gone),
            false => Ok(()),
        }
    }
}

impl Client {
    /// All rows that it gets.
    pub fn read(self) -> Account {
        let account = Account {
            kind: self.kind,
            end: End::Whole,
            begin: self.begin,
            next: self.begin,
            rows: 0,
            lost: 0,
        };
        let mut tally = Tally {
            client: &self,
            account,
        };
        let end = match self.kind {
            Kind::Arrow => self.arrow(&mut tally),
            Kind::Csv => self.csv(&mut tally),
            Kind::WebSocket => self.web_socket(&mut tally),
            Kind::Panda => self.panda(&mut tally),
        };
        let mut account = tally.account;
        account.end = match end {
            Ok(Ok(())) => End::Whole,
            Ok(Err(Gone)) => End::Killed,
            Err(_) => End::Cut,
        };
        account
    }

    /// One that is stuck is so until now.
    fn wait(&self) {
        while self
            .waits_for
            .as_ref()
            .is_some_and(|so| !so.load(Ordering::Relaxed))
        {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn answer(&self, format: &str) -> io::Result<impl Read + use<>> {
        let Place { http, run, .. } = self.place;
        let path = format!("/api/runs/{run}/rows?from={}&format={format}", self.begin);
        let answer = ureq::get(format!("http://{http}{path}")).call();
        let answer = answer.map_err(io::Error::other)?;
        self.wait();
        Ok(answer.into_body().into_reader())
    }

    fn arrow(&self, tally: &mut Tally) -> io::Result<Result<(), Gone>> {
        let answer = BufReader::new(self.answer("arrow")?);
        for batch in StreamReader::try_new(answer, None).map_err(io::Error::other)? {
            tally.batch(&batch.map_err(io::Error::other)?);
            if tally.stays().is_err() {
                return Ok(Err(Gone));
            }
        }
        Ok(Ok(()))
    }

    fn csv(&self, tally: &mut Tally) -> io::Result<Result<(), Gone>> {
        let lines = BufReader::new(self.answer("csv")?).lines();
        let mut lines = lines.filter(|line| !line.as_ref().is_ok_and(|line| line.starts_with('#')));
        let head = lines.next().ok_or(io::ErrorKind::UnexpectedEof)??;
        let place = head
            .split(',')
            .position(|name| name == "sim.counter")
            .expect("a column");
        for line in lines {
            let line = line?;
            let mut fields = line.split(',');
            let row = fields.next().expect("a field").parse().expect("a number");
            let counter = fields.nth(place - 1).expect("a field");
            tally.row(row, counter.parse().expect("a number"));
            if tally.stays().is_err() {
                return Ok(Err(Gone));
            }
        }
        Ok(Ok(()))
    }

    fn web_socket(&self, tally: &mut Tally) -> io::Result<Result<(), Gone>> {
        let url = format!("ws://{}/api/runs/{}/live", self.place.http, self.place.run);
        let (mut socket, _) = tungstenite::connect(url).map_err(io::Error::other)?;
        let hello = json!({"from": self.begin, "policy": "skip"}).to_string();
        socket
            .send(Message::text(hello))
            .map_err(io::Error::other)?;
        self.wait();
        let mut decoder = StreamDecoder::new();
        loop {
            match socket.read().map_err(io::Error::other)? {
                Message::Binary(bytes) => {
                    let mut bytes = Buffer::from(bytes.to_vec());
                    while !bytes.is_empty() {
                        if let Some(batch) = decoder.decode(&mut bytes).expect("a batch") {
                            tally.batch(&batch);
                        }
                    }
                }
                Message::Text(text) => {
                    let said: Value = serde_json::from_str(&text).expect("JSON");
                    let number = |at: usize| said["lost"][at].as_u64();
                    if let (Some(first), Some(next)) = (number(0), number(1)) {
                        tally.lost(first..next);
                    }
                }
                Message::Close(Some(frame)) => {
                    assert_eq!(u16::from(frame.code), 1000, "{frame:?}");
                    return Ok(Ok(()));
                }
                _ => {}
            }
            if tally.stays().is_err() {
                return Ok(Err(Gone));
            }
        }
    }

    fn panda(&self, tally: &mut Tally) -> io::Result<Result<(), Gone>> {
        let mut stream = BufReader::new(TcpStream::connect(self.place.panda)?);
        let options = format!("XML FRAMED RAW GAPS FROM={} COLS={COLUMNS}\n", self.begin);
        stream.get_mut().write_all(options.as_bytes())?;
        self.wait();
        let mut line = String::new();
        while line != "</header>\n" {
            line.clear();
            stream.read_line(&mut line)?;
        }
        // And one without a word.
        stream.read_line(&mut line)?;
        loop {
            let mut head = [0; 4];
            stream.read_exact(&mut head)?;
            if &head == b"END " {
                line.clear();
                stream.read_line(&mut line)?;
                let expected = format!("{} Ok\n", tally.account.rows);
                assert_eq!(line, expected, "{:?}", tally.account);
                return Ok(Ok(()));
            }
            let mut length = [0; 4];
            stream.read_exact(&mut length)?;
            let mut bytes = vec![0; u32::from_le_bytes(length) as usize - 8];
            stream.read_exact(&mut bytes)?;
            let word = |bytes: &[u8], at: usize| {
                let word = bytes[8 * at..].first_chunk().expect("8 bytes");
                u64::from_le_bytes(*word)
            };
            match &head {
                b"BIN " => bytes
                    .chunks_exact(ROW_BYTES)
                    .for_each(|row| tally.row(word(row, 0), word(row, 1))),
                b"GAP " => tally.lost(word(&bytes, 0)..word(&bytes, 1)),
                head => panic!("{head:?} is no frame"),
            }
            if tally.stays().is_err() {
                return Ok(Err(Gone));
            }
        }
    }
}
