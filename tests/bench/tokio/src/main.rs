//! A tokio task that waits for messages another thread sends, 99 of them, 100 ms apart: the median delay in ns, asleep and spinning.
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, error::TryRecvError};

const MESSAGES: usize = 99;

fn pin(cpu: usize) {
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set), 0);
    }
}

async fn receive(mut inbox: mpsc::Receiver<Instant>, spins: bool) -> Vec<u128> {
    let mut delays = Vec::with_capacity(MESSAGES);
    loop {
        let sent = if spins {
            match inbox.try_recv() {
                Ok(sent) => Some(sent),
                Err(TryRecvError::Disconnected) => None,
                Err(TryRecvError::Empty) => {
                    tokio::task::yield_now().await;
                    continue;
                }
            }
        } else {
            inbox.recv().await
        };
        match sent {
            Some(sent) => delays.push(sent.elapsed().as_nanos()),
            None => return delays,
        }
    }
}

fn main() {
    let words: Vec<usize> = std::env::args().skip(1).map(|word| word.parse().expect("SENDER RECEIVER IDLE_MS SPINS")).collect();
    let (outbox, inbox) = mpsc::channel(1024);
    let (sender_cpu, idle) = (words[0], Duration::from_millis(words[2] as u64));
    let sender = std::thread::spawn(move || {
        pin(sender_cpu);
        for _ in 0..MESSAGES {
            std::thread::sleep(idle);
            outbox.blocking_send(Instant::now()).unwrap();
        }
    });
    pin(words[1]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut delays = runtime.block_on(async move { tokio::spawn(receive(inbox, words[3] != 0)).await.unwrap() });
    sender.join().unwrap();
    delays.sort();
    println!("{}", delays[delays.len() / 2]);
}
