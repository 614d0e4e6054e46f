// SPDX-License-Identifier: MIT OR Apache-2.0
//! A USB instrument that this process emulates, by FunctionFS and the kernel's own controller without hardware; what speaks
//! to it is the kernel's driver `usbtmc`. Wire format: USB Test and Measurement Class, revision 1.0.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::account::until;
use crate::machine::{command, slowness};

/// The file of its driver.
pub const NODE: &str = "/dev/usbtmc0";
/// One in so many answers to `N?` comes three seconds late; on a slow kernel as many times more.
pub const LATE: u64 = 20;
/// Bytes in the block that it answers with.
const BLOCK: usize = 10_000;
const GADGET: &str = "/sys/kernel/config/usb_gadget/lab";
const FILES: &str = "/run/usbtmc";
const CONTROLLER: &str = "dummy_udc.0";
/// Of a request: it is done, or not yet.
const DONE: u8 = 1;
const PENDING: u8 = 2;

/// It knows `N?`, the number of this question, of which one in [`LATE`] is answered late; `BLOCK?`; `BARE?`, answered
/// without an end; `LEVEL x` and `LEVEL?`.
pub struct Instrument {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    shared: Mutex<Shared>,
    sent: Condvar,
}

#[derive(Default)]
struct Shared {
    /// How often it was cleared: what is of before has no answer.
    clears: u64,
    /// An answer is on its way, and waits for a host that takes it.
    sending: bool,
    /// The host has been told to take that.
    told: bool,
}

/// What came by the bulk endpoint, with the number of clears before it.
struct Message {
    clears: u64,
    content: Content,
}

enum Content {
    Told(String),
    Asked { tag: u8, most: usize },
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no panic")
    }
}

impl Instrument {
    /// One that is not plugged in yet.
    pub fn new() -> Instrument {
        for directory in ["", "configs/c.1", "functions/ffs.lab"] {
            let path = Path::new(GADGET).join(directory);
            fs::create_dir(&path).unwrap_or_else(|why| panic!("{path:?}: {why}"));
        }
        write("idVendor", "0x1209");
        write("idProduct", "0x0001");
        let link = format!("{GADGET}/configs/c.1/ffs.lab");
        symlink(format!("{GADGET}/functions/ffs.lab"), link).expect("to add the function");
        fs::create_dir_all(FILES).expect("a directory");
        assert!(command(&format!("mount -t functionfs lab {FILES}")));
        let mut control = endpoint(0);
        control.write_all(&descriptors()).expect("descriptors");
        control.write_all(&strings()).expect("strings");
        let state = Arc::<State>::default();
        let (sender, receiver) = channel();
        let (of_control, of_out, of_in) = (state.clone(), state.clone(), state.clone());
        thread::spawn(move || serve(control, &of_control));
        thread::spawn(move || take(endpoint(1), &of_out, &sender));
        thread::spawn(move || answer(endpoint(2), &of_in, &receiver));
        Instrument { state }
    }

    /// Plugs it in, and waits for its driver.
    pub fn plug(&self) {
        write("UDC", CONTROLLER);
        until("its device file", || Path::new(NODE).exists());
    }

    /// Pulls it out, and waits until its file is gone.
    pub fn unplug(&self) {
        write("UDC", "\n");
        until("no device file", || !Path::new(NODE).exists());
    }

    /// How often a host has cleared it.
    pub fn clears(&self) -> u64 {
        self.state.lock().clears
    }
}

impl Default for Instrument {
    fn default() -> Instrument {
        Instrument::new()
    }
}

fn write(name: &str, text: &str) {
    let path = Path::new(GADGET).join(name);
    fs::write(&path, text).unwrap_or_else(|why| panic!("{path:?}: {why}"));
}

fn endpoint(number: u8) -> File {
    let file = File::options()
        .read(true)
        .write(true)
        .open(format!("{FILES}/ep{number}"));
    file.expect("an endpoint")
}

/// One interface, with a bulk endpoint for each way, at full and at high speed: `struct usb_functionfs_descs_head_v2`.
fn descriptors() -> Vec<u8> {
    let of_speed = |packet: u16| {
        let [low, high] = packet.to_le_bytes();
        let interface = [9, 4, 0, 0, 2, 0xfe, 3, 0, 0];
        let end = |address| [7, 5, address, 2, low, high, 0];
        [&interface[..], &end(0x01), &end(0x82)].concat()
    };
    let (full, high) = (of_speed(64), of_speed(512));
    let length = 4 * 5 + full.len() + high.len();
    let head: [u32; 5] = [3, length as u32, 0b11, 3, 3];
    [words(&head), full, high].concat()
}

/// None: `struct usb_functionfs_strings_head`.
fn strings() -> Vec<u8> {
    words(&[2, 16, 0, 0])
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Answers the host's requests of the class.
fn serve(mut control: File, state: &State) {
    const SETUP: u8 = 4;
    let mut event = [0; 12];
    loop {
        let Ok(12) = control.read(&mut event) else {
            // Of a host that went before it was answered.
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        let [kind, request, .., length, _, what, _, _, _] = event;
        if what != SETUP {
            continue;
        }
        let said: &[u8] = match (kind, request) {
            (0xa1, 5) => {
                let mut shared = state.lock();
                shared.clears += 1;
                shared.told = false;
                &[DONE]
            }
            (0xa1, 6) => {
                // Its thread may be about to say that the host has it.
                let soon = Duration::from_millis(500 * slowness());
                let is_sending = |shared: &mut Shared| shared.sending;
                let waited = state
                    .sent
                    .wait_timeout_while(state.lock(), soon, is_sending);
                let (mut shared, _) = waited.expect("no panic");
                if shared.sending && !shared.told {
                    shared.told = true;
                    &[PENDING, 1]
                } else {
                    let waited = state.sent.wait_while(shared, is_sending);
                    drop(waited.expect("no panic"));
                    &[DONE, 0]
                }
            }
            (0xa1, 7) => &[DONE, 0, 0, 1],
            _ => {
                // A read is no answer: the request is refused.
                let _ = control.read(&mut []);
                continue;
            }
        };
        let mut said = said.to_vec();
        said.resize(length.into(), 0);
        // Who has gone needs no answer.
        let _ = control.write(&said);
    }
}

/// Takes what the host sends.
fn take(mut out: File, state: &State, to: &Sender<Message>) {
    let mut bytes = [0; 4096];
    loop {
        let Ok(read) = out.read(&mut bytes) else {
            // It is not plugged in.
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        let [id, tag, _, _, s0, s1, s2, s3, ..] = bytes;
        let size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
        let content = match (id, read) {
            (1, 12..) => {
                let text = bytes[12..].get(..size).expect("a short message");
                Content::Told(String::from_utf8_lossy(text).trim_end().to_owned())
            }
            (2, 12..) => Content::Asked { tag, most: size },
            _ => continue,
        };
        let clears = state.lock().clears;
        if to.send(Message { clears, content }).is_err() {
            return;
        }
    }
}

/// Does what it is told, and answers, in the order of the messages. An answer that nobody takes waits until it is cleared.
fn answer(mut into: File, state: &State, from: &Receiver<Message>) {
    let (mut asked, mut level) = (0_u64, "0".to_owned());
    let mut waiting = VecDeque::new();
    let mut of_clears = 0;
    for Message { clears, content } in from {
        if clears != of_clears {
            (waiting, of_clears) = (VecDeque::new(), clears);
        }
        match content {
            Content::Told(text) => match text.as_str() {
                "N?" => {
                    asked += 1;
                    if asked % LATE == 0 {
                        thread::sleep(Duration::from_secs(3 * slowness()));
                    }
                    waiting.push_back(format!("{asked}\n").into_bytes());
                }
                "BLOCK?" => {
                    let bytes = (0..BLOCK).map(|at| at as u8);
                    let mut block = format!("#5{BLOCK:05}").into_bytes();
                    block.extend(bytes.chain(*b"\n"));
                    waiting.push_back(block);
                }
                "BARE?" => waiting.push_back(b"42".to_vec()),
                "LEVEL?" => waiting.push_back(format!("{level}\n").into_bytes()),
                _ => level = text.trim_start_matches("LEVEL ").to_owned(),
            },
            Content::Asked { tag, most } => {
                let mut shared = state.lock();
                if shared.clears != clears {
                    continue;
                }
                shared.sending = true;
                drop(shared);
                let mut part: Vec<u8> = waiting.pop_front().unwrap_or_default();
                let rest = part.split_off(part.len().min(most));
                // One that was not taken is not sent again.
                let _ = into.write(&packet(tag, &part, rest.is_empty()));
                if !rest.is_empty() {
                    waiting.push_front(rest);
                }
                state.lock().sending = false;
                state.sent.notify_all();
            }
        }
    }
}

/// `DEV_DEP_MSG_IN`.
fn packet(tag: u8, payload: &[u8], is_last: bool) -> Vec<u8> {
    let mut bytes = vec![2, tag, !tag, 0];
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend([is_last.into(), 0, 0, 0]);
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
