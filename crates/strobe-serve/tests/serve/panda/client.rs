// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client of both ports, which shares no code with the server.

use std::sync::Arc;
use std::time::Duration;

use strobe_serve::config::Config;
use strobe_serve::daemon::Daemon;
use strobe_serve::panda;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How long anything may take; nothing takes so long on a machine that does nothing else.
const LIMIT: Duration = Duration::from_secs(120);

/// A daemon with its ports open.
pub struct Server {
    pub daemon: Arc<Daemon>,
    pub task: JoinHandle<()>,
    control: std::net::SocketAddr,
    data: std::net::SocketAddr,
}

impl Server {
    pub async fn start() -> Server {
        Server::with(|_| ()).await
    }

    pub async fn with(set: impl FnOnce(&mut panda::Config)) -> Server {
        let mut panda = toml::from_str("engine = \"user\"\ncapture = [\"sim.counter\"]")
            .expect("a configuration");
        set(&mut panda);
        let config = Config {
            panda,
            ..Config::default()
        };
        let daemon = Arc::new(Daemon::new(config));
        let open = async || TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (control, data) = (open().await, open().await);
        let addresses = (control.local_addr(), data.local_addr());
        Server {
            daemon: Arc::clone(&daemon),
            task: tokio::spawn(panda::serve(daemon, control, data)),
            control: addresses.0.expect("an address"),
            data: addresses.1.expect("an address"),
        }
    }

    pub async fn control(&self) -> Control {
        Control(connect(self.control).await)
    }

    pub async fn data(&self, options: &str) -> Data {
        let mut stream = connect(self.data).await;
        let line = format!("{options}\n");
        stream.write_all(line.as_bytes()).await.expect("a write");
        Data(stream)
    }

    /// A data connection that is ready.
    pub async fn reader(&self, more: &str) -> Data {
        let mut data = self.data(&format!("XML FRAMED RAW {more}")).await;
        assert_eq!(data.line().await, "OK");
        data
    }

    pub async fn stop(self) {
        self.daemon.stop.cancel();
        within(self.task).await.expect("an orderly end");
    }
}

async fn connect(address: std::net::SocketAddr) -> BufReader<TcpStream> {
    BufReader::new(
        within(TcpStream::connect(address))
            .await
            .expect("a connection"),
    )
}

pub async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, what)
        .await
        .expect("it takes too long")
}

/// Waits until the condition is true.
pub async fn until(mut condition: impl AsyncFnMut() -> bool) {
    within(async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

pub struct Control(BufReader<TcpStream>);

impl Control {
    pub async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.expect("a write");
    }

    pub async fn answer(&mut self) -> String {
        let mut answer = String::new();
        loop {
            let start = answer.len();
            let read = within(self.0.read_line(&mut answer)).await.expect("a line");
            if read == 0 || !answer[start..].starts_with('!') {
                return answer.trim_end_matches('\n').to_owned();
            }
        }
    }

    pub async fn ask(&mut self, line: &str) -> String {
        self.send(&format!("{line}\n")).await;
        self.answer().await
    }

    /// All of these are done.
    pub async fn set(&mut self, lines: &[&str]) {
        for line in lines {
            assert_eq!(self.ask(line).await, "OK", "{line}");
        }
    }

    /// What comes until the connection ends, however it does.
    pub async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        // A server that does not read what is still under way resets.
        let _ = within(self.0.read_to_end(&mut bytes)).await;
        String::from_utf8(bytes).expect("a text")
    }

    pub async fn until(&mut self, question: &str, answer: &str) {
        until(async || self.ask(question).await == format!("OK ={answer}")).await;
    }
}

pub struct Data(BufReader<TcpStream>);

/// What comes where rows are.
#[derive(Debug, PartialEq)]
pub enum Frame {
    Rows(Vec<u8>),
    Gap(u64, u64),
    End(u64, String),
    /// The connection has ended like this.
    Closed(Option<std::io::ErrorKind>),
}

impl Data {
    pub async fn line(&mut self) -> String {
        let mut line = String::new();
        within(self.0.read_line(&mut line)).await.expect("a line");
        line.trim_end_matches('\n').to_owned()
    }

    /// The header, without what may stand before it.
    pub async fn header(&mut self) -> String {
        let mut text = String::new();
        loop {
            let line = self.line().await;
            if line == "<header>" || !text.is_empty() {
                text.push_str(&line);
                text.push('\n');
            }
            if line == "</header>" {
                assert_eq!(self.line().await, "");
                return text;
            }
        }
    }

    pub async fn frame(&mut self) -> Frame {
        let mut head = [0; 4];
        if let Err(error) = within(self.0.read_exact(&mut head)).await {
            let kind = error.kind();
            return Frame::Closed((kind != std::io::ErrorKind::UnexpectedEof).then_some(kind));
        }
        if &head == b"END " {
            let line = self.line().await;
            let (rows, reason) = line.split_once(' ').expect("rows and a reason");
            return Frame::End(rows.parse().expect("a number"), reason.to_owned());
        }
        let mut length = [0; 4];
        within(self.0.read_exact(&mut length))
            .await
            .expect("a length");
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize - 8];
        within(self.0.read_exact(&mut bytes))
            .await
            .expect("a frame");
        match &head {
            b"BIN " => Frame::Rows(bytes),
            b"GAP " => {
                let word =
                    |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
                Frame::Gap(word(0), word(8))
            }
            head => panic!("{head:?} is no frame"),
        }
    }

    /// How the connection ends.
    pub async fn close(&mut self) -> Option<std::io::ErrorKind> {
        let mut bytes = Vec::new();
        let read = within(self.0.read_to_end(&mut bytes)).await;
        read.err().map(|error| error.kind())
    }

    /// All rows of one column of 8 bytes, and the end.
    pub async fn words(&mut self) -> (Vec<u64>, u64, String) {
        let mut words = Vec::new();
        loop {
            match self.frame().await {
                Frame::Rows(bytes) => words.extend(
                    bytes
                        .chunks_exact(8)
                        .map(|b| u64::from_le_bytes(b.try_into().expect("8 bytes"))),
                ),
                Frame::End(rows, reason) => return (words, rows, reason),
                frame => panic!("{frame:?} among rows"),
            }
        }
    }
}
