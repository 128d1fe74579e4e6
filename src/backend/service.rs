//! A [`Service`] of the driver at the loopback of a job in a sandbox of this machine.
//!
//! The sandbox makes the listening socket in its own network namespace and hands it over; the driver accepts. What
//! connects is hostile: connections are bounded in number, and all of them end with the job.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, Shutdown as Ending, recvmsg, sendmsg, shutdown,
};

use super::{Connection, Job, Service};
use crate::error::{Error, Result};

/// Connections of a job that are served at the same time; the next one waits.
pub(super) const MOST_CONNECTIONS: usize = 64;
/// Until connections are accepted again where the driver has no descriptor or thread left.
const PAUSE: Duration = Duration::from_millis(50);

/// Refuses what no backend offers together with a service.
///
/// # Errors
/// A bug of the caller's.
pub(super) fn check(job: &Job) -> Result<()> {
    if job.service.is_some() && job.channel {
        return Err(Error::internal("a job cannot have both a channel and a service"));
    }
    Ok(())
}

/// A service that answers the job of one sandbox. Dropping it ends every connection.
#[derive(Debug)]
pub(super) struct Serving {
    shared: Arc<Shared>,
    /// Where the listening socket comes from.
    handover: UnixStream,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    service: Arc<dyn Service>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    over: bool,
    listener: Option<Arc<TcpListener>>,
    /// Second handles of what is being served, to end it by.
    open: HashMap<u64, TcpStream>,
    accepted: u64,
}

impl Serving {
    /// Waits in the background for the listening socket to come through `handover` and serves what connects.
    ///
    /// # Errors
    /// The machine's, when it has no descriptor or thread left.
    pub(super) fn start(service: Arc<dyn Service>, handover: UnixStream) -> Result<Self> {
        let shared =
            Arc::new(Shared { service, state: Mutex::new(State::default()), changed: Condvar::new() });
        let (accepting, incoming) = (Arc::clone(&shared), handover.try_clone()?);
        let acceptor = std::thread::Builder::new().name("service".to_owned()).spawn(move || {
            // A sandbox that could not be set up hands over nothing, and says itself why.
            if let Some(listener) = receive(&incoming) {
                accepting.accept(listener);
            }
        })?;
        Ok(Serving { shared, handover, acceptor: Some(acceptor) })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.handover.shutdown(Shutdown::Both);
        self.shared.end();
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: TcpListener) {
        let listener = Arc::new(listener);
        self.state().listener = Some(Arc::clone(&listener));
        while self.has_room() {
            let connection = listener.accept().and_then(|(stream, _)| Ok((stream.try_clone()?, stream)));
            let served = match connection {
                Ok((second, stream)) => self.serve(second, stream).is_ok(),
                // The other side went away before it was accepted.
                Err(error) => error.kind() == std::io::ErrorKind::ConnectionAborted,
            };
            if !served {
                let _ = self.changed.wait_timeout_while(self.state(), PAUSE, |state| !state.over);
            }
        }
    }

    /// Waits until one more connection may be served; false once the job is over.
    fn has_room(&self) -> bool {
        let full = |state: &mut State| !state.over && state.open.len() >= MOST_CONNECTIONS;
        let state = self.changed.wait_while(self.state(), full).unwrap_or_else(PoisonError::into_inner);
        !state.over
    }

    fn serve(self: &Arc<Self>, second: TcpStream, stream: TcpStream) -> std::io::Result<()> {
        let number = {
            let mut state = self.state();
            if state.over {
                return Ok(());
            }
            state.accepted += 1;
            let number = state.accepted;
            state.open.insert(number, second);
            number
        };
        // Its end makes room, also when the thread cannot be started or the service panics.
        let place = Slot { shared: Arc::clone(self), number };
        let serve = move || {
            place.shared.service.serve(Connection::Tcp(stream));
            drop(place);
        };
        std::thread::Builder::new().name("service connection".to_owned()).spawn(serve).map(drop)
    }

    fn end(&self) {
        let mut state = self.state();
        state.over = true;
        if let Some(listener) = state.listener.take() {
            // Whoever waits for a connection on it is told.
            let _ = shutdown(listener.as_raw_fd(), Ending::Both);
        }
        for stream in state.open.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.changed.notify_all();
    }
}

/// A connection's place among those that are served.
struct Slot {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(stream) = self.shared.state().open.remove(&self.number) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
    }
}

/// Hands a listening socket to the driver.
///
/// # Errors
/// Those of `sendmsg`.
pub(super) fn hand_over(to: &UnixStream, listener: &TcpListener) -> nix::Result<()> {
    let descriptors = [listener.as_raw_fd()];
    let message = [ControlMessage::ScmRights(&descriptors)];
    let bytes = [std::io::IoSlice::new(b"l")];
    sendmsg::<()>(to.as_raw_fd(), &bytes, &message, MsgFlags::MSG_NOSIGNAL, None).map(drop)
}

fn receive(from: &UnixStream) -> Option<TcpListener> {
    let mut byte = [0_u8];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let mut space = nix::cmsg_space!(RawFd);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = loop {
        match recvmsg::<()>(from.as_raw_fd(), &mut bytes, Some(&mut space), flags) {
            Err(nix::errno::Errno::EINTR) => {}
            other => break other.ok()?,
        }
    };
    let mut received = message.cmsgs().ok()?.filter_map(|message| match message {
        ControlMessageOwned::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = *received.next()?.first()?;
    // SAFETY: the kernel has just made this descriptor for us, and nothing else knows of it.
    Some(TcpListener::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}
